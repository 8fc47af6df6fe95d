from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from tiny import path

from graphite_gen.completion import PartialGraph
from graphite_gen.completion.mcmc import Chains
from graphite_gen.completion.partial import MAX_NODES
from graphite_gen.errors import DatasetError
from graphite_gen.graph import SimpleGraph


def marked(*states: str | None, names: tuple[str, ...] | None = None) -> SimpleGraph:
    """A path whose edges have the given states in turn."""
    plain = path(len(states) + 1)

    return SimpleGraph(plain.nodes, plain.edges, names=names, edge_attributes={"state": list(states)})


def pairs(partial: PartialGraph) -> set[tuple[int, ...]]:
    return {tuple(pair) for pair in partial.unknown.tolist()}


def test_states_determine_known_edges_and_unknown_pairs() -> None:
    partial = PartialGraph.from_marks(marked("present", "unknown", "absent", None, " Unknown "))

    assert partial.graph.edges.tolist() == [[0, 1], [3, 4]]
    assert pairs(partial) == {(1, 2), (4, 5)}
    assert "state" not in partial.graph.edge_attributes


def test_unlisted_pairs_are_unknown_only_if_absent_but_no_unknown_pairs_are_listed() -> None:
    everything = {(0, 2), (0, 3), (1, 3)}

    assert pairs(PartialGraph.from_marks(marked("present", "absent", None))) == everything
    assert pairs(PartialGraph.from_marks(marked("unknown", "absent", None))) == {(0, 1)}
    assert pairs(PartialGraph.from_marks(marked("unknown", None, None), unlisted="unknown")) == everything | {(0, 1)}
    assert pairs(PartialGraph.from_marks(path(4), unlisted="unknown")) == everything


def test_all_other_pairs_are_known() -> None:
    known = PartialGraph.from_marks(marked("unknown", "absent", "present")).known()

    assert not known[0, 1]
    assert not known[1, 0]
    assert known.sum() == 14


def test_unknown_pairs_are_given_by_name_and_may_be_edges() -> None:
    graph = SimpleGraph(3, path(3).edges, names=("a", "b", "c"))
    partial = PartialGraph.from_pairs(graph, [("c", "b"), ("a", "c"), ("b", "c")])

    assert partial.graph.edges.tolist() == [[0, 1]]
    assert pairs(partial) == {(1, 2), (0, 2)}


@pytest.mark.parametrize("pair", [("a", "z"), ("a", "a"), ("a",), ("a", "b", "c")])
def test_invalid_pairs_are_refused(pair: tuple[str, ...]) -> None:
    with pytest.raises(DatasetError, match="pair"):
        PartialGraph.from_pairs(SimpleGraph(3, path(3).edges, names=("a", "b", "c")), [pair])


def test_pairs_of_added_nodes_are_unknown() -> None:
    partial = PartialGraph.from_marks(path(3), add_nodes=2)

    assert partial.nodes == 5
    assert pairs(partial) == {(i, j) for j in (3, 4) for i in range(j)}
    assert partial.graph.node_attributes["added"] == [False] * 3 + [True] * 2


@pytest.mark.parametrize(
    ("names", "new"),
    [(None, (0, 1, 2, 3, 4)), ((7, 3, 5), (7, 3, 5, 8, 9)), (("a", "new1", 2), ("a", "new1", 2, "new2", "new3"))],
)
def test_added_nodes_get_unused_names(names: tuple[object, ...] | None, new: tuple[object, ...]) -> None:
    assert PartialGraph.from_marks(SimpleGraph(3, path(3).edges, names=names), add_nodes=2).names == new


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
        (path(3), {}, "nothing to complete"),
        (marked("maybe"), {}, "'maybe'"),
        (marked("unknown"), {"unlisted": "missing"}, "'missing'"),
        (path(3), {"add_nodes": -1}, "-1"),
        (path(3), {"add_nodes": 10_000}, "at most 200"),
    ],
)
def test_invalid_partial_graphs_are_refused(graph: SimpleGraph, options: dict[str, object], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        PartialGraph.from_marks(graph, **options)  # type: ignore[arg-type]


def test_new_edges_get_unit_weights() -> None:
    plain = path(4)
    graph = SimpleGraph(4, plain.edges, weights=np.ones(3))
    partial = PartialGraph.from_pairs(graph, [(0, 2), (1, 2)])

    completed = partial.completed(np.array([True, False]))

    assert completed.edges.tolist() == [[0, 1], [0, 2], [2, 3]]
    assert completed.weights is not None
    assert completed.weights.tolist() == [1, 1, 1]
    assert completed.to_networkx().size(weight="weight") == 3


def test_reserved_attributes_are_refused() -> None:
    edges = SimpleGraph(3, path(3).edges, edge_attributes={"sampled": [1, 2], "state": ["unknown", None]})
    nodes = SimpleGraph(3, path(3).edges, node_attributes={"added": ["May", "June", None]})

    with pytest.raises(DatasetError, match="'sampled'"):
        PartialGraph.from_marks(edges)
    with pytest.raises(DatasetError, match="'added'"):
        PartialGraph.from_marks(nodes, add_nodes=1)
    kept = PartialGraph.from_marks(nodes, unlisted="unknown").completed(np.array([True]))
    assert kept.node_attributes["added"] == ["May", "June", None]


def test_moves_on_the_largest_graphs_need_little_memory() -> None:
    # A matrix of pairs by pairs would take gigabytes.
    partial = PartialGraph.from_marks(path(MAX_NODES), unlisted="unknown")
    chains = Chains.__new__(Chains)
    chains.partial, chains.rng = partial, np.random.default_rng(0)

    rows = [chains._move(np.arange(len(partial.unknown)) % 9 == 0)[0] for _ in range(8)]

    assert len({row.tobytes() for row in rows}) > 1
