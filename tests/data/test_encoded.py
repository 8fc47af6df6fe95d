from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphite_gen.data.encoded import EncodedGraph
from graphite_gen.errors import DatasetError


def test_the_vector_of_a_graph_pools_means_over_nodes_in_any_order() -> None:
    z = np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 4.0]])

    vector = EncodedGraph.exact(z).vector

    assert np.allclose(vector, [2, 2, np.sqrt(8 / 3), np.sqrt(2), 3])
    assert np.allclose(vector, EncodedGraph.exact(z[[2, 0, 1]]).vector)


@pytest.mark.parametrize(
    ("z", "rest", "problem"),
    [
        (np.zeros(3), {}, "shape"),
        (np.zeros((0, 2)), {}, "shape"),
        ([[1.0], [1.0, 2.0]], {}, "array of numbers"),
        (np.full((2, 2), np.nan), {}, "not finite"),
        (np.zeros((2, 2)), {"position": np.array([0, 2])}, "permutation"),
        (np.zeros((2, 2)), {"features": np.zeros((3, 1))}, "2 nodes"),
    ],
)
def test_latents_that_are_none_are_refused(z: Any, rest: dict, problem: str) -> None:
    with pytest.raises(DatasetError, match=problem):
        EncodedGraph.exact(z, **rest)
