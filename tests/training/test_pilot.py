"""Pilot runs choose an ordering that suits the graphs, the same for the same seed; runs keep to their budget."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphite_gen.config import ORDERINGS, ModelConfig, preset
from graphite_gen.data.schema import AttributeSchema
from graphite_gen.graph import SimpleGraph, as_simple_graph
from graphite_gen.training import pilot
from graphite_gen.training import trainer as training_module
from graphite_gen.training.pilot import FALLBACK, OrderingChoice, choose_ordering
from graphite_gen.training.trainer import Trainer, adapt_config, prepare

GRAPHS = [
    SimpleGraph.from_pairs(9, [tuple(sorted((int(order[u]), int(order[v])))) for u, v in nx.star_graph(8).edges])
    for order in (np.random.default_rng(seed).permutation(9) for seed in range(40))
]
SMALL = {"width": 8, "batch_size": 8}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pilot, "STEPS", 25)


def choose(run_steps: int = 10_000, **changes: Any) -> OrderingChoice | None:
    config, training = preset("default", **(SMALL | changes))

    return choose_ordering(GRAPHS[:30], GRAPHS[30:], adapt_config(config, GRAPHS), training, run_steps=run_steps)


def test_stars_are_decoded_from_their_centre() -> None:
    choice = choose()

    assert choice is not None
    assert choice.ordering in ("bfs", "dfs", "max-degree", "max-cardinality")
    nll = {score.ordering: score.nll for score in choice.scores}
    assert set(nll) <= set(ORDERINGS)
    assert nll[choice.ordering] < nll["uniform"] - 0.3
    best, second = choice.scores[:2]
    assert choice.margin == pytest.approx(second.nll - best.nll)
    assert choice.margin_error >= 0


def test_the_choice_depends_on_the_seed_alone() -> None:
    assert choose(dropout=0.3) == choose(dropout=0.3)


def test_scores_do_not_depend_on_how_graphs_are_batched(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = choose()
    monkeypatch.setattr(pilot, "SCORED_CELLS", 200)
    parts = choose()

    assert whole is not None
    assert parts is not None
    # Orderings and latents of the held-out graphs are drawn batch by batch, so scores agree up to that noise.
    assert parts.scores[0].nll == pytest.approx(whole.scores[0].nll, abs=1)


def test_short_runs_are_not_compared() -> None:
    assert choose(run_steps=30 * 19) is None


def run(folder: Path | None = None, resume: bool = False, **changes: Any) -> Trainer:
    return prepare("stars", GRAPHS[:30], GRAPHS[30:], SMALL | changes, folder=folder)


def test_a_run_has_the_chosen_ordering_and_keeps_its_margin_when_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choice = OrderingChoice("dfs", 1.5, 0.25, [])
    monkeypatch.setattr(training_module, "choose_ordering", lambda *arguments, **limits: choice)
    first = run(tmp_path / "run", epochs=4, epoch_graphs=8)
    for record in first:
        if record.epoch == 2:
            break
    resumed = Trainer(
        "stars", first.config, first.training, GRAPHS[:30], GRAPHS[30:], folder=tmp_path / "run", resume=True
    )
    list(resumed)

    for trainer in (first, resumed):
        assert trainer.model.config.ordering == "dfs"
        margin = {key: trainer.model.results[key] for key in ("ordering_margin", "ordering_margin_error")}
        assert margin == {"ordering_margin": 1.5, "ordering_margin_error": 0.25}
    assert first.plan().ordering == choice


def test_a_run_too_short_for_pilots_has_the_fallback() -> None:
    trainer = run(epochs=1, epoch_graphs=8)
    list(trainer)

    assert trainer.model.config.ordering == FALLBACK
    assert "ordering_margin" not in trainer.model.results


def test_attachment_is_compared_where_nodes_add_several_edges_and_degeneracy_never() -> None:
    def compared(edges_each: int) -> list[str]:
        graphs = [nx.barabasi_albert_graph(12, edges_each, seed=seed) for seed in range(4)]
        return pilot._candidates(list(map(as_simple_graph, graphs)), ModelConfig())

    assert compared(3)[0] == "attachment"
    assert "attachment" not in compared(1)
    assert not {"degeneracy", "frontier"} & {*compared(1), *compared(3)}


def test_topological_orderings_are_compared_for_acyclic_graphs() -> None:
    def compared(*arcs: tuple[int, int]) -> list[str]:
        graphs = [as_simple_graph(nx.DiGraph(arcs))]
        schema = AttributeSchema.of(graphs)
        config = preset("default")[0].changed(**schema.settings())
        return pilot._candidates([schema.encode(graph) for graph in graphs], config)

    assert compared((0, 1), (1, 2), (0, 2))[0] == "topological"
    assert "topological" not in compared((0, 1), (1, 2), (2, 0))


@pytest.mark.parametrize(("nodes", "least"), [(24, 24), (40, 25)])
def test_larger_graphs_need_longer_pilots(nodes: int, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = [as_simple_graph(nx.star_graph(nodes - 1))] * 4
    config, training = preset("default", width=8)

    def trained(*_: Any) -> None:
        raise RuntimeError("a pilot was trained")

    monkeypatch.setattr(pilot._Pilot, "train", trained)

    assert choose_ordering(graphs, [], adapt_config(config, graphs), training, run_steps=30 * (least - 1)) is None
    with pytest.raises(RuntimeError, match="trained"):
        choose_ordering(graphs, [], adapt_config(config, graphs), training, run_steps=30 * least)


def test_pilots_that_time_makes_too_short_are_not_begun() -> None:
    class Second:
        """A pilot each of whose steps takes a second."""

        now = 0.0

        def train(self, steps: int) -> None:
            self.now += steps

        def score(self, _: Any) -> None:
            pass

    def affordable(least: int) -> tuple[int, int]:
        run: Any = Second()
        return pilot._affordable(run, GRAPHS, 2, least, 1 + pilot.TIMED_STEPS + 2 * 22, lambda: run.now)

    assert affordable(22) == (22, 2)
    assert affordable(23) == (0, 0)
