"""Strategies for graphs of every kind, equality of graphs, and what a refusal looks like."""

import itertools
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from graphite_gen.errors import FormatError, OutputError
from graphite_gen.graph import SimpleGraph
from graphite_gen.io import read_graphs, write_graphs

from ..evaluation.graphs import small_graphs

TEXT = st.text(max_size=6)
KEYS = st.text(min_size=1, max_size=6).filter(lambda key: key not in ("weight", "features", "split", "graph"))
SCALARS = st.one_of(st.booleans(), st.integers(-(2**70), 2**70), st.floats(), TEXT)
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=2), st.dictionaries(TEXT, SCALARS, max_size=2))


@st.composite
def small_digraphs(draw: st.DrawFn, most: int = 5) -> SimpleGraph:
    """Any directed graph on a few nodes."""
    nodes = draw(st.integers(0, most))
    pairs = list(itertools.permutations(range(nodes), 2))
    chosen = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))

    return SimpleGraph.from_pairs(nodes, [pair for pair, kept in zip(pairs, chosen, strict=True) if kept], True)


@st.composite
def rich_graphs(draw: Callable[..., Any], width: int = 2) -> SimpleGraph:
    """A graph, undirected or directed, with some of weights, features, names and attributes."""
    graph = draw(st.one_of(small_graphs(0, 9), small_digraphs()))
    n, e = graph.nodes, len(graph.edges)
    finite = st.floats(allow_nan=False, allow_infinity=False)
    numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
    names = st.lists(st.one_of(TEXT, st.integers(-(2**60), 2**60)), min_size=n, max_size=n, unique_by=lambda x: str(x))

    return SimpleGraph(
        n,
        graph.edges,
        np.array(draw(st.lists(finite, min_size=e, max_size=e))) if e and draw(st.booleans()) else None,
        np.array(draw(st.lists(st.lists(numbers, min_size=width, max_size=width), min_size=n, max_size=n)), np.float32)
        if n and draw(st.booleans())
        else None,
        tuple(draw(names)) if n and draw(st.booleans()) else None,
        draw(columns(n)),
        draw(columns(e)),
        draw(st.dictionaries(KEYS, VALUES, max_size=2)),
        graph.directed,
    )


def columns(length: int) -> st.SearchStrategy[dict[str, list[Any]]]:
    """Columns with missing values, but none with missing values only."""
    if not length:
        return st.just({})
    column = st.lists(st.one_of(st.none(), VALUES), min_size=length, max_size=length)

    return st.dictionaries(KEYS, column.filter(lambda values: any(value is not None for value in values)), max_size=2)


def assert_same(graph: SimpleGraph, other: SimpleGraph) -> None:
    assert_same_edges(graph, other)
    for one, two in ((graph.weights, other.weights), (graph.features, other.features)):
        # An empty array is the same as none.
        one, two = (None if array is None or not len(array) else array for array in (one, two))
        assert (one is None) == (two is None)
        assert one is None or two is None or np.array_equal(one, two)
    assert (graph.names or tuple(range(graph.nodes))) == (other.names or tuple(range(other.nodes)))
    assert list(map(type, graph.names or ())) == list(map(type, other.names or ())) or other.names is None
    assert same(dict(graph.node_attributes), dict(other.node_attributes))
    assert same(dict(graph.edge_attributes), dict(other.edge_attributes))
    assert same(dict(graph.attributes), dict(other.attributes))


def assert_kept(graphs: Sequence[SimpleGraph], path: Path) -> None:
    """Graphs that are written to a file and read back are equal in every field."""
    assert write_graphs(iter(graphs), path) == len(graphs)
    for graph, read in zip(graphs, read_graphs(path), strict=True):
        assert_same(graph, read)


def assert_same_edges(graph: SimpleGraph, other: SimpleGraph) -> None:
    assert (graph.nodes, graph.directed) == (other.nodes, other.directed)
    assert np.array_equal(graph.edges, other.edges)
    assert other.edges.dtype == np.int32


def same(one: Any, two: Any) -> bool:
    """Equality that distinguishes types, and in which NaN equals itself."""
    if type(one) is not type(two):
        return False
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(two)

    return bool(one == two)


def assert_not_written(target: str | Path, expected: str, *graphs: SimpleGraph, **how: Any) -> None:
    """Writing raises an error with the expected reason, or with a message that matches a pattern."""
    with pytest.raises(OutputError) as caught:
        write_graphs(graphs, target, **how)
    assert caught.value.reason == expected or re.search(expected, str(caught.value)), caught.value


def assert_refused(
    path: Path, expected: str, body: bytes | str | None = None, reason: str | None = None, **how: Any
) -> None:
    """Reading the file raises a one-line error that names it and has the expected reason, or matches a pattern."""
    if body is not None:
        path.write_bytes(body if isinstance(body, bytes) else body.encode())
    with pytest.raises(FormatError) as caught:
        list(read_graphs(path, **how))
    message = str(caught.value)
    assert caught.value.reason == expected or re.search(expected, message), message
    assert f"{path.name}'" in message
    assert "\n" not in message
    assert reason is None or caught.value.reason == reason
