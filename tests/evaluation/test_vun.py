"""Copies, repetitions and invalid graphs each lower their own proportion."""

from __future__ import annotations

import json
import math
import time

import networkx as nx
import numpy as np
import pytest

from graphite_gen.errors import DatasetError
from graphite_gen.evaluation.validity import is_tree
from graphite_gen.evaluation.vun import Proportion, score_vun
from graphite_gen.families import family
from graphite_gen.families.simulate import generate
from graphite_gen.graph import SimpleGraph

RNG = np.random.default_rng(0)


def path(nodes: int) -> SimpleGraph:
    return SimpleGraph.from_networkx(nx.path_graph(nodes)).permuted(RNG.permutation(nodes))


def star(nodes: int) -> SimpleGraph:
    return SimpleGraph.from_networkx(nx.star_graph(nodes - 1)).permuted(RNG.permutation(nodes))


def ring(nodes: int) -> SimpleGraph:
    return SimpleGraph.from_networkx(nx.cycle_graph(nodes)).permuted(RNG.permutation(nodes))


def test_each_proportion_counts_its_graphs() -> None:
    # Two paths of which one is known, a known star, two equal new stars, two rings, which are no trees.
    samples = [path(5), path(6), star(5), star(7), star(7), ring(5), ring(6)]
    train = [path(5), path(5), star(5), ring(6), star(9)]

    found = score_vun(samples, train, is_tree)

    counts = {key: (value["count"], value["total"]) for key, value in found.to_json().items()}
    assert counts == {
        "valid": (5, 7),
        "unique": (6, 7),
        "novel": (4, 7),
        "vun": (2, 7),
        "unique_of_valid": (4, 5),
        "novel_of_valid": (3, 5),
    }


def test_a_memorising_sampler_has_no_novelty() -> None:
    train = generate("barabasi", 50, seed=0).graphs
    samples = [graph.permuted(RNG.permutation(graph.nodes)) for graph in train]

    found = score_vun(samples, train, family("barabasi"))

    assert found.valid is not None
    assert found.novel is not None
    assert found.valid.value == 1
    assert found.novel.count == found.vun.count == 0


def test_a_sampler_of_one_graph_is_not_unique() -> None:
    graph = generate("barabasi", 1, nodes=(15, 15), seed=1).graphs[0]
    samples = [graph.permuted(RNG.permutation(15)) for _ in range(40)]

    found = score_vun(samples, generate("barabasi", 20, seed=2).graphs)

    assert found.unique.count == found.vun.count == 1
    assert found.novel is not None
    assert found.novel.count == 40


def test_missing_criteria_are_not_counted() -> None:
    found = score_vun([path(4), ring(4)])

    assert found.valid is None
    assert found.novel is None
    assert found.vun.count == 2
    assert json.loads(json.dumps(found.to_json()))["unique"]["count"] == 2


def test_proportions_of_no_valid_samples_are_undefined() -> None:
    found = score_vun([ring(4)], [path(4)], is_tree)

    assert found.unique_of_valid is not None
    assert (found.unique_of_valid.total, found.unique_of_valid.value) == (0, None)


def test_no_samples_are_refused() -> None:
    with pytest.raises(DatasetError, match="no samples"):
        score_vun([])


@pytest.mark.parametrize(("count", "total"), [(0, 10), (10, 10), (3, 10), (471, 1000)])
def test_the_wilson_interval_inverts_the_normal_test(count: int, total: int) -> None:
    proportion = Proportion.of(count, total)

    assert proportion.value is not None
    for end in (proportion.low, proportion.high):
        if 0 < end < 1:
            assert abs(proportion.value - end) / math.sqrt(end * (1 - end) / total) == pytest.approx(1.959964, abs=1e-5)
    assert 0 <= proportion.low <= proportion.value <= proportion.high <= 1
    assert proportion.low < proportion.high


@pytest.mark.slow
def test_hundreds_of_samples_are_scored_against_a_large_training_set_in_seconds() -> None:
    train = generate("barabasi", 8000, nodes=(10, 20), seed=1).graphs
    samples = generate("barabasi", 400, nodes=(10, 20), seed=2).graphs

    started = time.process_time()
    score_vun(samples, train)

    assert time.process_time() - started < 10
