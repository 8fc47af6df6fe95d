"""States of edges, compared with a list of pairs of arcs."""

from itertools import product

import numpy as np
import pytest

from graphite_gen.data.edge_states import arc_codes, count_states, directions, edge_state, transposed


@pytest.mark.parametrize("labels", [0, 1, 3])
def test_states_of_directed_edges_are_pairs_of_arcs(labels: int) -> None:
    pairs = list(product(range(max(labels, 1) + 1), repeat=2))[1:]
    forward, backward = np.array(pairs).T

    assert count_states(labels, True) == len(pairs)
    assert edge_state(forward, backward, labels).tolist() == list(range(len(pairs)))
    assert list(zip(*(codes.tolist() for codes in arc_codes(np.arange(len(pairs)), labels)), strict=True)) == pairs
    assert transposed(labels, True).tolist() == [pairs.index((b, a)) for a, b in pairs]
    assert directions(labels, True).tolist() == [0 if not b else 1 if not a else 2 for a, b in pairs]


@pytest.mark.parametrize(("labels", "states"), [(0, 0), (1, 1), (4, 4)])
def test_states_of_undirected_edges_are_their_labels(labels: int, states: int) -> None:
    assert count_states(labels, False) == states
    assert transposed(labels, False).tolist() == list(range(states))
    assert directions(labels, False).tolist() == [0] * states
