from collections.abc import Callable
from itertools import product

import networkx as nx
import numpy as np
import pytest
import torch
from tiny import AUTOREGRESSIVE, all_graphs, coin_model, random_graph, small_model

from graphite_gen.api import fit
from graphite_gen.errors import SamplingError
from graphite_gen.sampling import Acyclic, Connected, Constraint, Degrees, Edges, MaxDegree, Planar, Regular, Tree
from graphite_gen.sampling import sampler as module
from graphite_gen.sampling.constraints import AllOf, Requirements
from graphite_gen.sampling.sampler import Sampler
from graphite_gen.training.checkpoint import TrainedModel

ORACLES: dict[Constraint, Callable[[nx.Graph], bool]] = {
    Tree(): nx.is_tree,
    Connected(): nx.is_connected,
    Acyclic(): nx.is_forest,
    Planar(): lambda graph: nx.check_planarity(graph)[0],
    Regular(2): lambda graph: nx.is_k_regular(graph, 2),
    Regular(3): lambda graph: nx.is_k_regular(graph, 3),
    MaxDegree(2): lambda graph: max(dict(graph.degree).values()) <= 2,
    Edges(4): lambda graph: graph.number_of_edges() == 4,
    Degrees([2, 1, 2, 1]): lambda graph: [degree for _, degree in graph.degree] == [2, 1, 2, 1],
}

TOGETHER: list[tuple[Constraint, ...]] = [
    *((constraint,) for constraint in ORACLES),
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


ONE_SHOT = {"decoder": "one-shot", "encoder": "residual"}


@pytest.fixture(scope="module")
def models() -> dict[str, TrainedModel]:
    """Untrained and briefly trained models."""
    torch.set_num_threads(1)
    graphs = [random_graph(nodes, seed, density=0.3) for nodes in (6, 7, 9) for seed in range(8)]
    settings = {"width": 8, "rounds": 2, "epochs": 2, "epoch_graphs": 0, "batch_size": 8, "seed": 0}

    return {
        "one-shot": small_model(**ONE_SHOT),
        "one-shot trained": fit(graphs, encoder_layers=2, latent=2, head_rank=4, **ONE_SHOT, **settings).trained,
        "autoregressive": small_model(**AUTOREGRESSIVE),
        "autoregressive trained": fit(graphs, ordering="bfs", **AUTOREGRESSIVE, **settings).trained,
    }


@pytest.mark.parametrize(("constraint", "oracle"), ORACLES.items(), ids=lambda value: getattr(value, "label", ""))
def test_constraints_agree_with_networkx(constraint: Constraint, oracle: Callable[[nx.Graph], bool]) -> None:
    graphs = [graph for nodes in (1, 2, 3, 4) for graph in all_graphs(nodes)]
    graphs += [random_graph(nodes, seed, density) for nodes in (6, 9) for seed in range(20) for density in (0.2, 0.5)]

    for graph in graphs:
        assert constraint.holds(graph) == oracle(graph.to_networkx())


@pytest.mark.parametrize("kind", ["one-shot", "one-shot trained", "autoregressive", "autoregressive trained"])
@pytest.mark.parametrize(
    "constraints", TOGETHER, ids=lambda constraints: "+".join(constraint.label for constraint in constraints)
)
def test_every_sample_satisfies_its_constraints(
    models: dict[str, TrainedModel], kind: str, constraints: tuple[Constraint, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK", 12)
    monkeypatch.setattr(module, "AUTOREGRESSIVE_BLOCK", 12)
    # No rejection sampling: the graphs have to come from masks.
    monkeypatch.setattr(module, "MIN_ACCEPTANCE", 2)
    nodes = None if any(constraint.nodes for constraint in constraints) else (1, 12)

    draws = Sampler(models[kind], 12, nodes=nodes, constraints=constraints, seed=2)
    graphs = list(draws)

    assert len(graphs) == 12 == draws.accepted + draws.masked
    for graph in graphs:
        assert all(ORACLES[constraint](graph.to_networkx()) for constraint in constraints)
        assert graph.attributes["constraints"] == ", ".join(constraint.label for constraint in constraints)
        assert graph.attributes["enforced"] in ("exact", "exact given latents", "masks")


@pytest.mark.parametrize("kind", ["one-shot", "autoregressive"])
@pytest.mark.parametrize("constraints", [(Tree(),), (Regular(2),), (Planar(), Connected()), (Edges(5),)])
def test_graph_i_is_the_same_for_any_count(
    models: dict[str, TrainedModel], kind: str, constraints: tuple[Constraint, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Few redraws, so that graphs come from rejection as well as from masks.
    blocks = dict.fromkeys(("BLOCK", "AUTOREGRESSIVE_BLOCK"), 8)
    for name, value in {**blocks, "PILOT": 4, "MAX_REDRAWS": 4, "EDGE_SAMPLES": 16}.items():
        monkeypatch.setattr(module, name, value)

    def drawn(count: int, seed: int = 5) -> list[object]:
        draws = Sampler(models[kind], count, nodes=(4, 7), constraints=constraints, seed=seed)
        return [(graph.nodes, graph.edges.tolist(), graph.attributes) for graph in draws]

    many = drawn(20)
    assert drawn(11) == many[:11]
    assert drawn(1) == many[:1]
    assert drawn(20, seed=6) != many


def test_unconstrained_samples_that_satisfy_a_constraint_are_kept() -> None:
    model = small_model(**ONE_SHOT)
    plain = list(Sampler(model, 60, nodes=(3, 5)))

    for constraint in (Connected(), MaxDegree(2)):
        for before, after in zip(plain, Sampler(model, 60, nodes=(3, 5), constraints=[constraint]), strict=True):
            # Sizes are drawn once: rejecting graphs does not favour sizes at which few are rejected.
            assert before.nodes == after.nodes
            if constraint.holds(before):
                assert np.array_equal(before.edges, after.edges)
                assert after.attributes["enforced"] == "exact"


def test_rejection_samples_follow_the_conditional_distribution() -> None:
    draws = Sampler(coin_model(0.0, **ONE_SHOT), 1000, nodes=3, connected=True)
    graphs = list(draws)

    assert {graph.attributes["enforced"] for graph in graphs} == {"exact"}
    assert draws.accepted == 1000 < draws.drawn
    # Of the eight graphs on three nodes three paths and the triangle are connected.
    assert np.mean([len(graph.edges) == 3 for graph in graphs]) == pytest.approx(0.25, abs=5 * 0.433 / 1000**0.5)


def test_infeasible_sizes_are_not_sampled() -> None:
    model = small_model(**AUTOREGRESSIVE)

    drawn = {graph.nodes for graph in Sampler(model, 60, nodes=(1, 9), constraints=[Regular(3)])}
    assert drawn == {4, 6, 8}
    # The training graphs have 3 to 5 nodes.
    assert {graph.nodes for graph in Sampler(model, 20, constraints=[Regular(3)])} == {4}
    with pytest.raises(SamplingError, match="nor on any of 3 sizes") as error:
        Sampler(model, 1, constraints=[Regular(5)])
    assert (error.value.reason, error.value.nodes) == ("infeasible-constraints", 3)


def test_sampling_stops_after_many_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FAILURES", 5)
    monkeypatch.setattr(module, "PILOT", 1)
    draws = Sampler(small_model(**ONE_SHOT), 2, nodes=14, constraints=[Planar(), Regular(5)])

    # No planar graph on 14 nodes is 5-regular.
    with pytest.raises(SamplingError, match="0 of 2 graphs were found: the last 6") as error:
        list(draws)
    assert error.value.reason == "constraints-not-met"
    assert draws.drawn == 2


def test_sampling_goes_on_while_graphs_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MAX_FAILURES", 4), ("MIN_ACCEPTANCE", 2), ("PILOT", 1)):
        monkeypatch.setattr(module, name, value)
    # Of five attempts at the graphs still missing, the first is unconstrained.
    verdicts = map(bool, [0, 0, 0, 0, *[1, 0, 0, 0], *[0, 0, 0], *[0, 1, 0], *[1, 1]])
    monkeypatch.setattr(Connected, "holds", lambda *_: next(verdicts))
    draws = Sampler(small_model(**ONE_SHOT), 4, nodes=3, constraints=[Connected()])

    assert len(list(draws)) == 4 == draws.masked


def test_largest_components_and_weighted_models_take_no_constraints() -> None:
    with pytest.raises(SamplingError, match="largest component"):
        Sampler(small_model(), 1, constraints=[Tree()], largest=True)
    weighted = small_model(**ONE_SHOT, observation="normal")
    with pytest.raises(SamplingError, match="weight for every pair"):
        Sampler(weighted, 1, constraints=[Tree()])
    assert len(list(Sampler(weighted, 3, constraints=[Connected()]))) == 3


@pytest.mark.parametrize(
    ("kind", "value"),
    [(Regular, -1), (Edges, 2.5), (Edges, 2**63), (Degrees, []), (Degrees, [1, "1"]), (MaxDegree, "3")],
)
def test_values_that_are_no_counts_are_refused(kind: Callable[[object], Constraint], value: object) -> None:
    with pytest.raises(SamplingError):
        kind(value)


@pytest.mark.parametrize("kind", ["one-shot trained", "autoregressive trained"])
def test_maximal_planar_graphs_are_sampled_without_dead_ends(models: dict[str, TrainedModel], kind: str) -> None:
    draws = Sampler(models[kind], 4, nodes=11, constraints=[Planar(), Edges(3 * 11 - 6)])

    assert all(map(Planar().holds, draws))
    assert (draws.drawn, draws.accepted, draws.masked) == (4, 0, 4)


def test_requirements_are_not_computed_without_constraints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Requirements, "none", None)

    assert len(list(Sampler(small_model(**AUTOREGRESSIVE), 2, nodes=(2, 9)))) == 2


SOME: list[Constraint] = [Tree(), Connected(), Acyclic(), Planar()]
SOME += [Regular(1), Regular(2), MaxDegree(1), MaxDegree(2), Edges(2), Edges(4), Edges(11)]


@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 5])
def test_a_conflict_is_found_exactly_where_no_graph_satisfies_two_constraints(nodes: int) -> None:
    graphs = all_graphs(nodes)
    held = {constraint: [constraint.holds(graph) for graph in graphs] for constraint in SOME}

    for first, second in product(SOME, SOME):
        exists = any(map(min, held[first], held[second]))
        assert (AllOf((first, second)).conflict(nodes) is None) == exists, (first, second)


@pytest.mark.parametrize("nodes", [1, 2, 3, 4])
@pytest.mark.parametrize("other", [Connected(), Acyclic(), Tree(), Edges(3), MaxDegree(2)])
def test_degrees_are_feasible_exactly_where_some_graph_has_them(nodes: int, other: Constraint) -> None:
    graphs = [graph for graph in all_graphs(nodes) if other.holds(graph)]
    found = {tuple(graph.degrees().tolist()) for graph in graphs}

    for degrees in product(range(nodes + 1), repeat=nodes):
        assert (AllOf((Degrees(degrees), other)).conflict(nodes) is None) == (degrees in found), degrees
