from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from tiny import path

from graphite_gen.completion import PartialGraph
from graphite_gen.completion.mcmc import Chains
from graphite_gen.completion.partial import MAX_NODES
from graphite_gen.errors import DatasetError
from graphite_gen.graph import SimpleGraph


def marked(*states: str | None) -> SimpleGraph:
    """A path whose edges have the given states in turn."""
    return replace(path(len(states) + 1), edge_attributes={"state": list(states)})


def pairs(partial: PartialGraph) -> set[tuple[int, ...]]:
    return {tuple(pair) for pair in partial.unknown.tolist()}


@pytest.mark.parametrize(
    ("states", "unlisted", "unknown"),
    [
        (("present", "unknown", "absent", None, " Unknown "), None, {(1, 2), (4, 5)}),
        # Unlisted pairs are unknown by default only if absent but no unknown pairs are listed.
        (("present", "absent", None), None, {(0, 2), (0, 3), (1, 3)}),
        (("unknown", "absent", None), None, {(0, 1)}),
        (("unknown", None, None), "unknown", {(0, 2), (0, 3), (1, 3), (0, 1)}),
        ((None, None, None), "unknown", {(0, 2), (0, 3), (1, 3)}),
    ],
)
def test_states_determine_known_edges_and_unknown_pairs(
    states: tuple[str | None, ...], unlisted: str | None, unknown: set[tuple[int, int]]
) -> None:
    partial = PartialGraph.from_marks(marked(*states), unlisted=unlisted)

    assert partial.graph.edges.tolist() == [[i, i + 1] for i, s in enumerate(states) if s in ("present", None)]
    assert pairs(partial) == unknown == {(i, j) for i, j in np.argwhere(~partial.known()).tolist() if i < j}
    assert (partial.known() == partial.known().T).all()
    assert "state" not in partial.graph.edge_attributes


def test_unknown_pairs_are_given_by_name_and_may_be_edges() -> None:
    graph = SimpleGraph(3, path(3).edges, names=("a", "b", "c"))
    partial = PartialGraph.from_pairs(graph, [("c", "b"), ("a", "c"), ("b", "c")])

    assert partial.graph.edges.tolist() == [[0, 1]]
    assert pairs(partial) == {(1, 2), (0, 2)}


@pytest.mark.parametrize("pair", [("a", "z"), ("a", "a"), ("a",), ("a", "b", "c")])
def test_invalid_pairs_are_refused(pair: tuple[str, ...]) -> None:
    with pytest.raises(DatasetError, match="pair"):
        PartialGraph.from_pairs(SimpleGraph(3, path(3).edges, names=("a", "b", "c")), [pair])


@pytest.mark.parametrize(
    ("names", "new"),
    [(None, (0, 1, 2, 3, 4)), ((7, 3, 5), (7, 3, 5, 8, 9)), (("a", "new1", 2), ("a", "new1", 2, "new2", "new3"))],
)
def test_added_nodes_get_names_and_unknown_pairs(names: tuple[object, ...] | None, new: tuple[object, ...]) -> None:
    partial = PartialGraph.from_marks(SimpleGraph(3, path(3).edges, names=names), add_nodes=2)

    assert partial.names == new
    assert pairs(partial) == {(i, j) for j in (3, 4) for i in range(j)}
    assert partial.graph.node_attributes["added"] == [False] * 3 + [True] * 2


def test_completed_graphs_keep_attributes_and_mark_new_edges() -> None:
    graph = nx.Graph([("a", "b", {"kind": "x"}), ("b", "c", {"state": "unknown"}), ("c", "d", {"kind": "y"})])
    partial = PartialGraph.from_marks(SimpleGraph.from_networkx(graph), unlisted="unknown")
    done = partial.completed(np.array([tuple(pair) in {(1, 2), (0, 3)} for pair in partial.unknown.tolist()]))
    found = done.to_networkx()

    assert {frozenset(edge): data["sampled"] for *edge, data in found.edges(data=True)} == {
        frozenset("ab"): False,
        frozenset("bc"): True,
        frozenset("cd"): False,
        frozenset("ad"): True,
    }
    assert found.edges["c", "d"]["kind"] == "y"
    assert "kind" not in found.edges["b", "c"]


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        (marked("maybe"), {}, "'maybe'"),
        (marked("unknown"), {"unlisted": "missing"}, "'missing'"),
        (path(3), {"add_nodes": -1}, "-1"),
        (path(3), {"add_nodes": 10_000}, "at most 200"),
        (SimpleGraph(3, path(3).edges, node_attributes={"added": [1, 2, 3]}), {"add_nodes": 1}, "'added'"),
        (SimpleGraph(3, path(3).edges, edge_attributes={"sampled": [1, 2]}), {"unlisted": "unknown"}, "'sampled'"),
    ],
)
def test_invalid_partial_graphs_are_refused(graph: SimpleGraph, options: dict[str, object], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        PartialGraph.from_marks(graph, **options)  # type: ignore[arg-type]


def test_new_edges_get_unit_weights() -> None:
    partial = PartialGraph.from_pairs(SimpleGraph(4, path(4).edges, weights=np.ones(3)), [(0, 2), (1, 2)])

    completed = partial.completed(np.array([True, False]))

    assert completed.edges.tolist() == [[0, 1], [0, 2], [2, 3]]
    assert completed.weights is not None
    assert completed.weights.tolist() == [1, 1, 1]


def test_reserved_attributes_are_kept_where_nothing_overwrites_them() -> None:
    nodes = SimpleGraph(3, path(3).edges, node_attributes={"added": ["May", "June", None]})

    kept = PartialGraph.from_marks(nodes, unlisted="unknown").completed(np.array([True]))

    assert kept.node_attributes["added"] == ["May", "June", None]


def test_moves_on_the_largest_graphs_need_little_memory() -> None:
    # A matrix of pairs by pairs would take gigabytes.
    partial = PartialGraph.from_marks(path(MAX_NODES), unlisted="unknown")
    chains = Chains.__new__(Chains)
    chains.partial, chains.rng = partial, np.random.default_rng(0)

    rows = [chains._move(np.arange(len(partial.unknown)) % 9 == 0)[0] for _ in range(8)]

    assert len({row.tobytes() for row in rows}) > 1
