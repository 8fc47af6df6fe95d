"""Runs keep to their time budget by a simulated clock, whatever the speed of the machine."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from tiny import random_graph

from graphite_gen.graph import SimpleGraph
from graphite_gen.training import pilot
from graphite_gen.training import trainer as training_module
from graphite_gen.training.budget import RunLength, default_batch_size, fit_epochs, fit_validation
from graphite_gen.training.trainer import Trainer, configure

pytestmark = pytest.mark.usefixtures("single_precision")

GRAPHS = [random_graph(nodes, seed) for nodes in (3, 5, 6) for seed in range(10)]
SAMPLES = 4
LENGTH = RunLength(epochs=30, epoch_graphs=4000, validate_every=2, patience=6, validation_graphs=200)


class Machine:
    """A clock that training, validation and pilot runs advance; ``speed`` depends on the time."""

    def __init__(self, patch: pytest.MonkeyPatch, graph_seconds: float, speed: Callable[[float], float]) -> None:
        self.now, self.parts = 0.0, dict.fromkeys(("steps", "validation", "pilots"), 0.0)
        self.speed = speed
        places = (
            (training_module, "backward", "steps", lambda network, step, *_: len(step.batch.mask)),
            (training_module, "validation_nll", "validation", lambda network, graphs, *_: 2 * len(graphs) / 3),
            (training_module, "sample_novelty", "validation", lambda *_: SAMPLES),
            (pilot._Pilot, "_log_weights", "pilots", lambda run, graphs, *_: len(graphs) / 2),
        )
        # As few as for large graphs, since steps are as long.
        patch.setattr(training_module, "novelty_samples", lambda graphs: SAMPLES)
        for owner, name, part, graphs in places:
            patch.setattr(owner, name, self._timed(getattr(owner, name), part, graphs, graph_seconds))

    def _timed(
        self, function: Callable[..., Any], part: str, graphs: Callable[..., float], graph_seconds: float
    ) -> Callable[..., Any]:
        def timed(*args: Any) -> Any:
            seconds = graphs(*args) * graph_seconds / self.speed(self.now)
            self.now += seconds
            self.parts[part] += seconds
            return function(*args)

        return timed

    def __call__(self) -> float:
        return self.now


def trainer(machine: Machine, held: list[SimpleGraph] = GRAPHS[::4], **changes: Any) -> Trainer:
    settings = {"width": 8, "rounds": 1, "budget": 100.0, "ordering": "bfs", "patience": 0} | changes
    others = {key: settings.pop(key) for key in ("folder", "resume") if key in settings}
    model, training = configure("default", GRAPHS, **settings)

    return Trainer("tiny", model, training, GRAPHS, held, clock=machine, **others)


SPEEDS: dict[str, Callable[[float], float]] = {
    "constant": lambda now: 1.0,
    "slower": lambda now: 1.0 if now < 30 else 0.3,
    "faster": lambda now: 0.3 if now < 30 else 1.0,
    "changing": lambda now: (1.0, 0.5)[int(now / 7) % 2],
}


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("graph_seconds", [0.1, 0.5, 1.0])
def test_a_run_ends_close_to_its_budget(graph_seconds: float, speed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, graph_seconds, SPEEDS[speed])
    run = trainer(machine, batch_size=4)

    history = list(run)

    assert machine.now == pytest.approx(100, rel=0.15)
    assert history[-1].seconds <= machine.now
    assert run.model.results["seconds"] == pytest.approx(machine.now, abs=0.1)
    assert history[-1].validation is not None
    assert speed != "constant" or machine.parts["validation"] < 15
    # The learning rate has decayed.
    assert history[-1].learning_rate < 0.2 * run.training.learning_rate


def test_pilot_runs_take_a_fifth_of_the_budget_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    for graph_seconds, least in ((0.003, 6), (0.01, 2), (0.1, 0)):
        machine = Machine(monkeypatch, graph_seconds, lambda now: 1.0)
        run = trainer(machine, ordering="auto")
        run.settle()

        choice = run.plan().ordering
        assert machine.parts["pilots"] <= 22
        assert (len(choice.scores) if choice else 0) >= least
        assert choice is None or len(choice.scores) + choice.left_out >= 6
        assert (choice is None) == (least == 0)
        monkeypatch.undo()


def test_pilot_runs_stop_when_the_machine_becomes_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 0.004, lambda now: 1.0 if now < 8 else 0.2)
    trainer(machine, ordering="auto").settle()

    assert machine.parts["pilots"] < 35


def test_a_resumed_run_continues_its_plan_and_keeps_the_budget(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = Machine(monkeypatch, 0.5, SPEEDS["constant"])
    first = trainer(machine, batch_size=4, folder=tmp_path)
    for record in first:
        if record.epoch == 10:
            break
    machine.now += 1000
    resumed = trainer(machine, batch_size=4, folder=tmp_path, resume=True)

    assert resumed.length == first.length
    assert resumed._batches() == first._batches()
    list(resumed)
    assert machine.now - 1000 == pytest.approx(100, rel=0.15)


def test_time_before_the_run_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 0.5, SPEEDS["constant"])
    run = trainer(machine, batch_size=4)
    run.count_seconds(50)
    list(run)

    assert machine.now == pytest.approx(50, rel=0.15)


def test_fitted_epochs_fill_the_time() -> None:
    for batch_size, graph_seconds in ((64, 0.002), (16, 0.05), (5, 0.4)):
        length = fit_epochs(LENGTH, 0, 30, 300 / graph_seconds, batch_size, 1.0 / graph_seconds)

        seconds = length.epochs * length.epoch_graphs * graph_seconds + length.validations()
        assert seconds == pytest.approx(300, rel=0.3)
        assert length.epoch_graphs % batch_size == 0
    # Even one batch per epoch would take too long: fewer epochs, at least one, or none if some are done.
    assert fit_epochs(LENGTH, 0, 30, 30, 4, 0.0).epochs == 8
    assert fit_epochs(LENGTH, 0, 30, 1, 4, 0.0).epochs == 1
    assert fit_epochs(LENGTH, 5, 30, 1, 4, 0.0).epochs == 5


def test_validation_takes_a_tenth_of_the_budget() -> None:
    assert fit_validation(LENGTH, 300, 0.001, 0.1) == LENGTH
    fewer = fit_validation(LENGTH, 300, 0.02, 0.0)
    assert fewer == replace(LENGTH, validation_graphs=100)
    rarer = fit_validation(LENGTH, 300, 0.1, 0.5)
    assert rarer.validation_graphs == 64
    assert rarer.validations() * (64 * 0.1 + 0.5) <= 1.2 * 30
    assert 2 <= rarer.patience < LENGTH.patience
    assert fit_validation(replace(LENGTH, patience=0), 300, 0.1, 0.5).patience == 0


@pytest.mark.parametrize(("nodes", "size"), [(5, 64), (15, 64), (60, 16), (200, 5), (1000, 4)])
def test_the_batch_size_follows_the_graphs(nodes: int, size: int) -> None:
    graphs = [SimpleGraph.from_pairs(nodes, list(nx.path_graph(nodes).edges))]
    model, training = configure("default", graphs)

    assert default_batch_size(graphs) == size
    assert Trainer("x", model, training, graphs, []).training.batch_size == size
    model, training = configure("default", graphs, batch_size=7)
    assert Trainer("x", model, training, graphs, []).training.batch_size == 7


def test_a_slow_validation_does_not_end_a_run() -> None:
    """Those left would take longer than the rest of the budget, which is enough for hundreds of batches."""
    length = RunLength(epochs=30, epoch_graphs=100, validate_every=2, patience=6, validation_graphs=64)

    assert fit_epochs(length, 4, 30, 8700, 16, 700).epochs > 20
