from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest
from tiny import star

from graphite_gen.cli import progress
from graphite_gen.cli.progress import show_plan, train_with_progress
from graphite_gen.config import ModelConfig, TrainConfig
from graphite_gen.records import TrainRecord
from graphite_gen.training import pilot
from graphite_gen.training.pilot import OrderingChoice, OrderingScore
from graphite_gen.training.trainer import TrainingPlan, prepare


class Run:
    """A stand-in for a trainer that validates every few epochs."""

    def __init__(self, epochs: int, every: int, stops: bool = False) -> None:
        self.length, self.epoch, self.stopped_early = SimpleNamespace(epochs=epochs, patience=3), epochs, stops
        self.every = every

    def stop(self) -> None:
        """Not called here."""

    def __iter__(self) -> Iterator[TrainRecord]:
        for epoch in range(1, self.length.epochs + 1):
            validates = epoch % self.every == 0 or epoch == self.length.epochs
            latents = {"kl": 1.0, "active_units": 3, "mutual_information": 0.5}
            yield TrainRecord(epoch, epoch, 1.0, 1.0, 2.0 if validates else None, 2.0, 0.1, float(epoch), 0.75, latents)


@pytest.mark.parametrize(("epochs", "every"), [(1, 1), (2, 1), (100, 1), (100, 4), (1000, 1), (1000, 7), (30, 40)])
def test_a_run_without_a_terminal_prints_few_lines_and_the_last(
    capsys: pytest.CaptureFixture[str], epochs: int, every: int
) -> None:
    train_with_progress(Run(epochs, every))  # type: ignore[arg-type]
    out, err = capsys.readouterr()
    lines = err.splitlines()

    assert out == ""
    assert 1 <= len(lines) <= 21
    assert lines[-1].startswith(f"epoch {epochs}/{epochs} ")
    assert "active 3  MI 0.50  novel 75%" in lines[-1]


def test_a_long_epoch_prints_its_steps_and_the_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SILENCE", 0.0)
    graphs = [star(nodes) for nodes in (4, 5, 6)] * 4
    quick = {"width": 8, "ordering": "bfs", "epochs": 2, "epoch_graphs": 0, "batch_size": 4}
    train_with_progress(prepare("stars", graphs, graphs[:2], quick))

    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  loss")[0] for line in lines[:3]] == [f"epoch 1/2  step {step}/6" for step in range(3)]
    assert all("left" in line for line in lines[1:3])


def pilots_of_stars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SILENCE", 0.0)
    monkeypatch.setattr(pilot, "STEPS", 2)
    monkeypatch.setattr(pilot, "LEAST_STEPS", 2)
    graphs = [star(nodes) for nodes in (4, 5, 6)] * 4
    show_plan(prepare("stars", graphs, graphs[:2], {"width": 8, "epochs": 60, "epoch_graphs": 8, "batch_size": 4}))


def test_pilot_runs_print_the_ordering_that_is_compared(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pilots_of_stars(monkeypatch)

    begin, *lines = capsys.readouterr().err.splitlines()
    assert "node orderings" in begin
    for ordering in ("bfs", "uniform", "dfs"):
        assert f"Comparing node orderings: {ordering} …" in lines


def test_pilot_runs_show_the_ordering_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    pilots_of_stars(monkeypatch)

    shown = capsys.readouterr().err
    assert "Comparing node orderings: " in shown
    assert "…\nComparing" not in shown


def test_early_stopping_is_announced(capsys: pytest.CaptureFixture[str]) -> None:
    train_with_progress(Run(7, 1, stops=True))  # type: ignore[arg-type]

    last = capsys.readouterr().err.splitlines()[-1]
    assert "Stopped early, in epoch 7" in last
    assert "3 validations" in last


CHOICE = OrderingChoice(
    "attachment",
    2.4,
    0.4,
    [OrderingScore("attachment", 60.0, 120), OrderingScore("max-degree", 62.4, 120), OrderingScore("bfs", 61.0, 60)],
)


class Planned:
    """A stand-in for a trainer that has to choose an ordering and a number of steps."""

    def __init__(self, ordering: str, budget: float, choice: OrderingChoice | None = None) -> None:
        self.config = ModelConfig(decoder="autoregressive", ordering=ordering)
        self.training, self.has_saved, self.choice = TrainConfig(budget=budget), False, choice

    def plan(self) -> TrainingPlan:
        if self.config.ordering == "auto":
            self.config = replace(self.config, ordering=self.choice.ordering if self.choice else "bfs")

        return TrainingPlan(540, (8, 19), 60, 123456, 60, 162, 32, 162, 95.0, 2_500_000_000, self.choice)


def shown(trainer: Planned, capsys: pytest.CaptureFixture[str]) -> list[str]:
    show_plan(trainer)  # type: ignore[arg-type]
    out, err = capsys.readouterr()
    assert out == ""

    return err.splitlines()


def test_a_plan_has_steps_time_and_memory(capsys: pytest.CaptureFixture[str]) -> None:
    graphs, line = shown(Planned("bfs", 0.0), capsys)

    assert "540 of 8 to 19 nodes, validation on 60" in graphs
    for fact in ("60 epochs of 162 graphs", "162 steps", "32 graphs", "123 456 parameters", "1 min 35 s", "2.5 GB"):
        assert fact in line


def test_what_is_chosen_is_announced_before_and_after(capsys: pytest.CaptureFixture[str]) -> None:
    before, ordering, *_ = shown(Planned("auto", 300.0, CHOICE), capsys)

    assert "node orderings" in before
    assert "5 min 0 s" in before
    assert "attachment (2.40 ± 0.40 nats per graph better than max-degree in pilot runs of 3 orderings)" in ordering
    ordering = shown(Planned("auto", 300.0, replace(CHOICE, left_out=4)), capsys)[1]
    assert "pilot runs of 3 orderings, too short for 4 others" in ordering


@pytest.mark.parametrize(
    ("ordering", "budget", "resumed", "lines"),
    [("auto", 0.0, False, 4), ("bfs", 60.0, False, 3), ("bfs", 0.0, False, 2), ("bfs", 60.0, True, 2)],
)
def test_only_what_is_left_to_choose_is_announced(
    capsys: pytest.CaptureFixture[str], ordering: str, budget: float, resumed: bool, lines: int
) -> None:
    trainer = Planned(ordering, budget)
    trainer.has_saved = resumed
    found = shown(trainer, capsys)

    assert len(found) == lines
    assert ("node orderings" in found[0], "budget" in found[0]) == (ordering == "auto", budget > 0 and not resumed)
    if ordering == "auto":
        assert "bfs (the run is too short" in found[1]
