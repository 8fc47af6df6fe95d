import math
import time
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from tiny import path, star

from graphite_gen.errors import DatasetError
from graphite_gen.evaluation import find_isomorphic
from graphite_gen.evaluation.validity import is_tree
from graphite_gen.evaluation.vun import Proportion, score_vun
from graphite_gen.families.simulate import generate
from graphite_gen.graph import SimpleGraph


def ring(nodes: int) -> SimpleGraph:
    return SimpleGraph.from_networkx(nx.cycle_graph(nodes))


def test_each_proportion_counts_its_graphs() -> None:
    # Two paths of which one is known, a known star, two equal new stars, two rings, which are no trees.
    samples = [path(5), path(6), star(5), star(7), star(7, centre=3), ring(5), ring(6)]
    rng = np.random.default_rng(0)
    train = [graph.permuted(rng.permutation(graph.nodes)) for graph in (path(5), path(5), star(5), ring(6), star(9))]

    found = score_vun(samples, train, is_tree)

    counts = {key: (value["count"], value["total"]) for key, value in found.to_json().items()}
    of_all = {"valid": (5, 7), "unique": (6, 7), "novel": (4, 7), "vun": (2, 7)}
    assert counts == {**of_all, "unique_of_valid": (4, 5), "novel_of_valid": (3, 5)}


def test_missing_criteria_are_not_counted_and_no_valid_samples_have_no_proportion() -> None:
    found, none = score_vun([path(4), ring(4)]), score_vun([ring(4)], [path(4)], is_tree)

    assert (found.valid, found.novel, found.vun.count) == (None, None, 2)
    assert (none.unique_of_valid.total, none.unique_of_valid.value) == (0, None)
    with pytest.raises(DatasetError, match="no samples"):
        score_vun([])


@pytest.mark.parametrize(("count", "total"), [(0, 10), (10, 10), (3, 10), (471, 1000)])
def test_the_wilson_interval_inverts_the_normal_test(count: int, total: int) -> None:
    proportion = Proportion.of(count, total)

    for end in (proportion.low, proportion.high):
        if 0 < end < 1:
            assert abs(proportion.value - end) / math.sqrt(end * (1 - end) / total) == pytest.approx(1.959964, abs=1e-5)
    assert 0 <= proportion.low <= proportion.value <= proportion.high <= 1
    assert proportion.low < proportion.high


@pytest.mark.slow
def test_hundreds_of_samples_are_scored_against_a_large_training_set_in_seconds() -> None:
    train, samples = (generate("barabasi", count, seed=seed).graphs for count, seed in ((8000, 1), (400, 2)))

    started = time.process_time()
    score_vun(samples, train)

    assert time.process_time() - started < 10


def test_isomorphism_ignores_attributes_but_validity_may_depend_on_them() -> None:
    labelled = [replace(path(3), node_attributes={"kind": kinds}) for kinds in (["a"] * 3, ["b"] * 3, ["a"] * 3)]
    arcs = SimpleGraph.from_networkx(nx.DiGraph([(0, 1), (1, 0), (1, 2)]))

    found = score_vun([*labelled, arcs], [path(3)], lambda graph: graph.node_attributes.get("kind", [""])[0] == "a")

    assert (found.unique.count, found.novel.count, found.valid.count) == (1, 0, 2)
    assert (found.unique_of_valid.count, found.unique_of_valid.total) == (1, 2)
    assert find_isomorphic([arcs], [star(4), path(3)]) == [1]
