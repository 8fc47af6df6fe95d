from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest

from graphite_gen.cli.progress import show_plan, train_with_progress
from graphite_gen.records import TrainRecord
from graphite_gen.training.trainer import TrainingPlan


class Run:
    """A stand-in for a trainer that validates every few epochs."""

    def __init__(self, epochs: int, every: int) -> None:
        self.training = SimpleNamespace(epochs=epochs)
        self.every = every

    def stop(self) -> None:
        """Not called here."""

    def __iter__(self) -> Iterator[TrainRecord]:
        for epoch in range(1, self.training.epochs + 1):
            validates = epoch % self.every == 0 or epoch == self.training.epochs
            yield TrainRecord(epoch, epoch, 1.0, 1.0, 2.0 if validates else None, 2.0, 0.1, float(epoch))


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


def test_a_plan_is_printed_and_shortened_epochs_are_announced(capsys: pytest.CaptureFixture[str]) -> None:
    plan = TrainingPlan(540, 60, 123456, 60, 162, 600, 32, 162, 95.0, 2_500_000_000)
    show_plan(plan)
    out, err = capsys.readouterr()
    first, second = err.splitlines()

    assert out == ""
    for fact in ("60 epochs of 162 graphs", "162 steps", "32 graphs", "123 456 parameters", "1 min 35 s", "2.5 GB"):
        assert fact in first
    assert "from 600 to 162 graphs" in second
    show_plan(replace(plan, requested_epoch_graphs=162))
    assert len(capsys.readouterr().err.splitlines()) == 1
