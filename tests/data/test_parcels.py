"""What goes from one process to another comes out as it went in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from graphite_gen.data.parcels import (
    pack_arrays,
    pack_graphs,
    pack_record,
    unpack_arrays,
    unpack_graphs,
    unpack_record,
)
from graphite_gen.evaluation.mmd import MMDEstimate, MMDRow
from graphite_gen.graph import SimpleGraph
from graphite_gen.records import GraphNLL, Record

words = st.text(max_size=4)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | words
names = st.integers() | words | st.tuples(st.integers(), words) | st.tuples(st.floats(allow_nan=False))
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(words | st.integers(), inner, max_size=3)
    ),
    max_leaves=4,
)
quickly = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def graphs(draw: st.DrawFn) -> SimpleGraph:
    nodes = draw(st.integers(0, 6))
    pairs = [(i, j) for i in range(nodes) for j in range(i + 1, nodes)]
    edges = sorted(draw(st.sets(st.sampled_from(pairs)))) if pairs else []

    def columns(length: int) -> dict[str, list[Any]]:
        return draw(st.dictionaries(words, st.lists(values, min_size=length, max_size=length), max_size=2))

    return SimpleGraph(
        nodes,
        np.array(edges, dtype=np.int32).reshape(-1, 2),
        draw(st.none() | arrays.arrays(np.float64, len(edges))),
        draw(st.none() | arrays.arrays(np.float32, (nodes, 2))),
        draw(st.none() | st.lists(names, min_size=nodes, max_size=nodes, unique=True).map(tuple)),
        columns(nodes),
        columns(len(edges)),
        draw(st.dictionaries(words, values, max_size=3)),
    )


def same(first: Any, second: Any) -> bool:
    """Equal in kind and value to the last bit, except that one not-a-number is like another."""
    if type(first) is not type(second):
        return False
    if isinstance(first, float):
        return (math.isnan(first) and math.isnan(second)) or (
            first == second and math.copysign(1, first) == math.copysign(1, second)
        )
    if isinstance(first, np.ndarray):
        return (first.dtype, first.shape, first.tobytes()) == (second.dtype, second.shape, second.tobytes())
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, dict):
        return same(list(first.items()), list(second.items()))

    return bool(first == second)


@quickly
@given(st.lists(graphs(), max_size=3), st.none() | st.lists(st.integers() | st.none()))
def test_graphs_come_back_as_they_were(sent: list[SimpleGraph], facts: Any) -> None:
    found, told = unpack_graphs(pack_graphs(sent, facts))

    assert told == facts
    assert len(found) == len(sent)
    for graph, other in zip(sent, found, strict=True):
        for name in SimpleGraph.__slots__:
            assert same(getattr(graph, name), getattr(other, name)), name


def test_numbers_of_numpy_among_attributes_travel_as_plain_ones() -> None:
    graph = SimpleGraph(2, np.zeros((0, 2), np.int32), attributes={"x": np.float32(0.1), "n": np.int64(3)})
    ((found,), _) = unpack_graphs(pack_graphs([graph]))

    assert found.attributes == {"x": float(np.float32(0.1)), "n": 3}


def test_what_has_no_plain_form_is_not_sent() -> None:
    with pytest.raises(TypeError, match="object cannot travel"):
        pack_graphs([SimpleGraph(1, np.zeros((0, 2), np.int32), attributes={"x": object()})])


@quickly
@given(
    st.dictionaries(
        words,
        arrays.arrays(
            st.sampled_from([np.float64, np.float32, np.uint64, np.int64, np.bool_]),
            arrays.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=4),
        ),
        max_size=3,
    )
)
def test_arrays_come_back_as_they_were(sent: dict[str, np.ndarray]) -> None:
    assert same(unpack_arrays(pack_arrays(sent)), sent)


@quickly
@given(st.floats(), st.none() | st.floats(), st.lists(st.tuples(st.integers(1, 9), st.floats())))
def test_a_record_comes_back_as_it_was(nll: float, khat: float | None, curve: list[tuple[int, float]]) -> None:
    row = GraphNLL(3, 2, nll, -1.5, 4.0, None, 0.0, khat, "ais", tuple(curve))
    found = unpack_record(GraphNLL, pack_record(row))

    assert all(same(getattr(found, name), getattr(row, name)) for name in GraphNLL.__dataclass_fields__)


@pytest.mark.parametrize("attainable", [None, MMDEstimate("orbit", "rbf", -1e-5, None, None, 1.0, (5, 4))])
def test_records_within_a_record_come_back_too(attainable: MMDEstimate | None) -> None:
    row = MMDRow(MMDEstimate("orbit", "rbf", 0.1 + 0.2, 0.1, 0.5, 3.0, (3, 4)), attainable, chance=0.1)

    assert unpack_record(MMDRow, pack_record(row)) == row


def test_a_record_with_numbers_of_numpy_becomes_plain() -> None:
    @dataclass(frozen=True)
    class Figure(Record):
        value: float

    assert same(unpack_record(Figure, pack_record(Figure(np.float64(0.1)))), Figure(0.1))
