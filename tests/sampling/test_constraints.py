"""Constraints are what networkx calls them, and every sample keeps them."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
import torch
from tiny import all_graphs, coin_model, random_graph, small_model

from graphite_gen.api import fit
from graphite_gen.errors import SamplingError
from graphite_gen.graph import SimpleGraph
from graphite_gen.sampling import (
    Acyclic,
    Connected,
    Constraint,
    Degrees,
    Edges,
    MaxDegree,
    Planar,
    Regular,
    Sampler,
    Tree,
    sampler,
)
from graphite_gen.sampling.requirements import Demands
from graphite_gen.training.checkpoint import TrainedModel

ORACLES: list[tuple[Constraint, Callable[[nx.Graph], bool]]] = [
    (Tree(), nx.is_tree),
    (Connected(), nx.is_connected),
    (Acyclic(), nx.is_forest),
    (Planar(), lambda graph: nx.check_planarity(graph)[0]),
    (Regular(2), lambda graph: nx.is_k_regular(graph, 2)),
    (Regular(3), lambda graph: nx.is_k_regular(graph, 3)),
    (MaxDegree(2), lambda graph: max(dict(graph.degree).values()) <= 2),
    (Edges(4), lambda graph: graph.number_of_edges() == 4),
    (Degrees([2, 1, 2, 1]), lambda graph: [degree for _, degree in graph.degree] == [2, 1, 2, 1]),
]
ORACLE = dict(ORACLES)

TOGETHER: list[tuple[Constraint, ...]] = [
    *((constraint,) for constraint in ORACLE),
    (Connected(), MaxDegree(2)),
    (Connected(), Regular(2)),
    (Connected(), Edges(4)),
    (Connected(), Planar()),
    (Acyclic(), Edges(4)),
    (Acyclic(), MaxDegree(2), Edges(4)),
    (Tree(), MaxDegree(2)),
    (Planar(), Edges(4)),
    (Planar(), Regular(3)),
    (Degrees([2, 1, 2, 1]), Tree()),
]


@pytest.fixture(scope="module")
def models() -> dict[str, TrainedModel]:
    """Untrained and briefly trained models, of one stage and of many."""
    torch.set_num_threads(1)
    graphs = [random_graph(nodes, seed, density=0.3) for nodes in (6, 7, 9) for seed in range(8)]
    settings = {"width": 8, "latent": 2, "head_rank": 4, "rounds": 2, "epochs": 2, "epoch_graphs": 0, "batch_size": 8}
    one_stage = fit(graphs, decoding_steps=1, encoder="residual", encoder_layers=2, **settings)
    autoregressive = fit(graphs, decoding_steps=0, encoder="none", ordering="bfs", **settings)

    return {
        "one-shot": small_model(decoding_steps=1, encoder="residual"),
        "one-shot trained": one_stage.trained,
        "staged": small_model(decoding_steps=0, encoder="none"),
        "staged trained": autoregressive.trained,
    }


@pytest.mark.parametrize(("constraint", "oracle"), ORACLES, ids=lambda value: getattr(value, "label", ""))
def test_constraints_hold_where_networkx_says_so(constraint: Constraint, oracle: Callable[[nx.Graph], bool]) -> None:
    graphs = [graph for nodes in (1, 2, 3, 4) for graph in all_graphs(nodes)]
    graphs += [random_graph(nodes, seed, density) for nodes in (6, 9) for seed in range(20) for density in (0.2, 0.5)]

    for graph in graphs:
        assert constraint.holds(graph) == oracle(graph.to_networkx())


@pytest.mark.parametrize("kind", ["one-shot", "one-shot trained", "staged", "staged trained"])
@pytest.mark.parametrize(
    "constraints", TOGETHER, ids=lambda constraints: "+".join(constraint.label for constraint in constraints)
)
def test_every_sample_is_what_it_must_be(
    models: dict[str, TrainedModel],
    kind: str,
    constraints: tuple[Constraint, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sampler, "BLOCK", 12)
    # No second plain draws: what is asked for has to come from looking ahead.
    monkeypatch.setattr(sampler, "COMMON", 2)
    nodes = None if any(constraint.nodes for constraint in constraints) else (1, 12)

    draws = Sampler(models[kind], 12, nodes=nodes, constraints=constraints, seed=2)
    graphs = list(draws)

    assert len(graphs) == 12 == draws.kept + draws.made
    for graph in graphs:
        assert all(ORACLE[constraint](graph.to_networkx()) for constraint in constraints)
        assert graph.attributes["constraints"] == ", ".join(constraint.label for constraint in constraints)
        assert graph.attributes["enforced"] in ("exact", "exact given latents", "masks")


@pytest.mark.parametrize("kind", ["one-shot", "staged"])
@pytest.mark.parametrize("constraints", [(Tree(),), (Regular(2),), (Planar(), Connected()), (Edges(5),)])
def test_a_seed_gives_the_same_graphs_however_many_are_drawn(
    models: dict[str, TrainedModel],
    kind: str,
    constraints: tuple[Constraint, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sampler, "BLOCK", 8)
    monkeypatch.setattr(sampler, "FIRST", 4)

    many, few, one, again, other = (
        [(graph.nodes, graph.edges.tolist(), graph.attributes) for graph in draws]
        for draws in (
            Sampler(models[kind], count, nodes=(4, 9), constraints=constraints, seed=seed)
            for count, seed in ((20, 5), (11, 5), (1, 5), (20, 5), (20, 6))
        )
    )

    assert many == again != other
    assert few == many[:11]
    assert one == many[:1]


def test_plain_draws_that_do_what_they_must_are_kept_as_they_are() -> None:
    model = small_model(decoding_steps=1, encoder="residual")
    plain = list(Sampler(model, 60, nodes=4))

    for constraint in (Connected(), MaxDegree(2), Planar()):
        held = list(Sampler(model, 60, nodes=4, constraints=[constraint]))
        for before, after in zip(plain, held, strict=True):
            if constraint.holds(before):
                assert np.array_equal(before.edges, after.edges)
                assert after.attributes["enforced"] == "exact"


def test_redrawn_graphs_follow_the_models_law_given_what_they_are() -> None:
    draws = Sampler(coin_model(0.0, decoding_steps=1, encoder="residual"), 1000, nodes=3, constraints=[Connected()])
    graphs = list(draws)

    assert {graph.attributes["enforced"] for graph in graphs} == {"exact"}
    assert draws.kept == 1000 < draws.drawn
    # Of the eight graphs on three nodes three paths and the triangle are connected.
    assert np.mean([len(graph.edges) == 3 for graph in graphs]) == pytest.approx(0.25, abs=5 * 0.433 / 1000**0.5)


def test_sizes_that_cannot_be_are_not_drawn() -> None:
    model = small_model(decoding_steps=0, encoder="none")

    drawn = {graph.nodes for graph in Sampler(model, 60, nodes=(1, 9), constraints=[Regular(3)])}
    assert drawn == {4, 6, 8}
    # The training graphs have 3 to 5 nodes.
    assert {graph.nodes for graph in Sampler(model, 20, constraints=[Regular(3)])} == {4}
    with pytest.raises(SamplingError, match=r"No graph on 3 nodes can be 'regular 5', nor on any of 3 sizes up to 5"):
        Sampler(model, 1, constraints=[Regular(5)])


def test_nodes_arrive_one_at_a_time_in_however_few_stages_a_model_decides_otherwise() -> None:
    model = small_model(decoding_steps=2, encoder="none")

    assert all(map(Tree().holds, Sampler(model, 10, nodes=8, constraints=[Tree()], decoding_steps=3)))


def test_what_is_never_found_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "IN_VAIN", 5)
    monkeypatch.setattr(sampler, "FIRST", 1)
    draws = Sampler(small_model(decoding_steps=1, encoder="residual"), 2, nodes=14, constraints=[Planar(), Regular(5)])

    # The degrees of a planar graph on 14 nodes that are all five: there is none.
    with pytest.raises(SamplingError, match=r"0 of 2 graphs were found that are 'planar, regular 5': the last 6 draws"):
        list(draws)
    assert draws.drawn == 2


def test_nothing_is_given_up_while_graphs_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "IN_VAIN", 4)
    monkeypatch.setattr(sampler, "COMMON", 2)
    held = iter([[False] * 4, [True, False, False, False], [False] * 3, [False, True, False], [True, True]])
    draws = Sampler(small_model(decoding_steps=1, encoder="residual"), 4, nodes=3, constraints=[Connected()])
    answers: list[bool] = []

    def holds(_: SimpleGraph) -> bool:
        if not answers:
            answers.extend(next(held))
        return answers.pop(0)

    monkeypatch.setattr(sampler, "FIRST", 1)
    monkeypatch.setattr(Connected, "holds", lambda _, graph: holds(graph))

    assert len(list(draws)) == 4 == draws.made


def test_components_and_weights_are_refused() -> None:
    with pytest.raises(SamplingError, match="largest component or for constraints"):
        Sampler(small_model(), 1, constraints=[Tree()], largest=True)
    weighted = small_model(decoding_steps=1, encoder="residual", observation="normal")
    with pytest.raises(SamplingError, match="draws a weight for every pair"):
        Sampler(weighted, 1, constraints=[Tree()])
    assert len(list(Sampler(weighted, 3, constraints=[Connected()]))) == 3


@pytest.mark.parametrize("make", [lambda: Regular(-1), lambda: Edges(2.5), lambda: Degrees([]), lambda: MaxDegree("3")])
def test_what_is_no_number_is_refused(make: Callable[[], Constraint]) -> None:
    with pytest.raises(SamplingError):
        make()


def test_a_forest_of_many_nodes_is_recognised() -> None:
    path = SimpleGraph.from_pairs(50, [(i, i + 1) for i in range(49)])

    assert Acyclic().holds(path)
    assert not Acyclic().holds(SimpleGraph.from_pairs(50, [*path.edges.tolist(), (3, 40)]))


@pytest.mark.parametrize("kind", ["one-shot trained", "staged trained"])
def test_as_many_edges_as_the_plane_holds_are_found_at_once(models: dict[str, TrainedModel], kind: str) -> None:
    draws = Sampler(models[kind], 4, nodes=11, constraints=[Planar(), Edges(3 * 11 - 6)])

    assert all(map(Planar().holds, draws))
    assert draws.made == 4


def test_demands_are_not_worked_out_where_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Demands, "nothing", None)

    assert len(list(Sampler(small_model(decoding_steps=0, encoder="none"), 2, nodes=(2, 9)))) == 2


@pytest.mark.parametrize("number", [-1, 2**63, 10**30])
def test_numbers_that_cannot_be_counted_to_are_refused(number: int) -> None:
    for constraint in (Edges, MaxDegree):
        with pytest.raises(SamplingError, match="whole number of at least 0"):
            constraint(number)
