from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from graphite_gen.errors import DatasetError, FamilyError
from graphite_gen.families import family
from graphite_gen.graph import SimpleGraph
from graphite_gen.likelihood.floor import paired_floor

STAR = SimpleGraph.from_pairs(4, [(0, 1), (0, 2), (0, 3)])
COMPLETE = SimpleGraph.from_pairs(4, list(combinations(range(4), 2)))


def test_the_floor_is_the_mean_over_these_very_graphs_and_the_excess_is_paired() -> None:
    # p(star) = 1/4 · 2⁻³ and p(complete) = 1 · 2⁻³: any of the universal nodes may be the ego.
    floors = np.log([32, 8])
    floor = paired_floor(family("ego"), [STAR, COMPLETE], [5.0, 3.0])
    excess = np.array([5.0, 3.0]) - floors

    assert floor.per_graph == pytest.approx(floors)
    assert floor.nats == pytest.approx(floors.mean())
    assert floor.excess == pytest.approx(excess.mean())
    assert floor.excess_standard_error == pytest.approx(excess.std(ddof=1) / math.sqrt(2))


def test_one_graph_has_no_standard_error() -> None:
    assert paired_floor(family("ego"), [STAR], [4.0]).excess_standard_error is None


def test_a_graph_outside_the_family_is_named() -> None:
    with pytest.raises(DatasetError, match="Graph 1 cannot come from 'powerlaw-tree'"):
        paired_floor(family("tree"), [STAR, COMPLETE], [1.0, 1.0])


def test_a_law_without_probabilities_has_no_floor() -> None:
    with pytest.raises(FamilyError, match="geometric"):
        paired_floor(family("geometric"), [STAR], [1.0])
