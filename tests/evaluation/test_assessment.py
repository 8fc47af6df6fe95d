"""Samples of the true process pass; other graphs, copies and repetitions are detected, in numbers and in words."""

from __future__ import annotations

import json
import time

import networkx as nx
import numpy as np
import pytest

import graphite_gen as gg
from graphite_gen.errors import DatasetError, FamilyError
from graphite_gen.evaluation import Evaluation, evaluate
from graphite_gen.families.simulate import generate
from graphite_gen.graph import SimpleGraph


def graphs(family: str, seed: int, count: int = 60) -> list[SimpleGraph]:
    return generate(family, count, seed=seed).graphs


@pytest.fixture(scope="module")
def true() -> Evaluation:
    return evaluate(graphs("barabasi", 0), graphs("barabasi", 1), graphs("barabasi", 2), family="ba")


def verdict(evaluation: Evaluation) -> str:
    return " ".join(evaluation.findings)


def test_samples_of_the_true_process_are_as_good_as_training_graphs(true: Evaluation) -> None:
    assert true.ratio == pytest.approx(1, abs=0.25)
    assert true.classifier.low == 0
    assert true.vun.valid.value == true.vun.novel.value == 1
    assert "samples are as close to the reference as training graphs" in verdict(true)
    assert "cannot separate them" in verdict(true)
    assert "differ" not in verdict(true)


@pytest.mark.parametrize("family", ["ego", "erdos-renyi", "geometric", "powerlaw-tree", "regular"])
def test_samples_of_another_family_are_clearly_further_away(family: str) -> None:
    found = evaluate(graphs(family, 0), graphs("barabasi", 1), graphs("barabasi", 2), conventions=["rbf"], replicates=0)

    assert found.ratio > 3
    assert found.classifier.low > 0
    assert "clearly differ" in verdict(found)
    assert "They differ most in" in verdict(found)


def test_memorised_training_graphs_are_detected() -> None:
    train = graphs("barabasi", 2)
    rng = np.random.default_rng(0)
    copies = [graph.permuted(rng.permutation(graph.nodes)) for graph in train]

    found = evaluate(copies, graphs("barabasi", 1), train)

    assert found.vun.novel.value == 0
    assert found.reference_vun.novel.value == 1
    assert found.ratio < 1.5
    assert found.findings[0].startswith("Novelty is 0: every sample is a copy of a training graph")
    assert "memorised" in found.findings[0]


def test_copies_are_expected_where_there_are_few_distinct_graphs() -> None:
    stars = [nx.star_graph(n % 3 + 4) for n in range(30)]

    found = evaluate(stars, stars, stars)

    assert found.vun.novel.value == 0
    assert "but so are 30 of the 30 reference graphs" in verdict(found)
    assert "memorised" not in verdict(found)
    assert "repeat" not in verdict(found)


def test_uniqueness_is_compared_for_equally_many_graphs() -> None:
    many, few = generate("ego", 300, (6, 6), seed=0).graphs, generate("ego", 20, (6, 6), seed=1).graphs

    found = evaluate(many, few, conventions=["rbf"], replicates=0)

    assert found.vun.unique.high < found.reference_vun.unique.low
    assert [proportion.total for proportion in found.comparable_unique] == [20, 20]
    assert "repeat" not in verdict(found)


def test_one_repeated_graph_is_no_collapse_if_the_reference_is_the_same() -> None:
    complete = [nx.complete_graph(5)] * 20

    found = evaluate(complete, complete, complete, replicates=0)

    assert found.ratio == 1
    assert "collapsed" not in verdict(found)
    assert "collapsed" not in verdict(evaluate(complete[:2], graphs("ego", 0, 2), replicates=0))


def test_a_descriptor_that_is_constant_in_training_graphs_counts_if_it_varies_in_samples() -> None:
    samples, reference, train = (generate("regular", 60, seed=seed).graphs for seed in range(3))
    broken = [
        SimpleGraph(graph.nodes, graph.edges[1:]) if index % 10 == 0 else graph for index, graph in enumerate(samples)
    ]
    kites = [nx.lollipop_graph(4, 3)] * 60

    whole, part, other = (
        next(row for row in found.mmd if row.samples.descriptor == "degree")
        for found in (
            evaluate(sampled, reference, train, conventions=["rbf"], replicates=0)
            for sampled in (samples, broken, kites)
        )
    )

    assert (whole.samples.value, whole.ratio) == (0, 1)
    # The MMD of training graphs is 0, so the level is the chance level of the samples.
    assert part.samples.value > 0
    assert part.ratio == pytest.approx(1 + part.samples.value / part.chance)
    assert part.ratio > 3
    assert other.ratio == pytest.approx(61)


def test_a_model_that_samples_one_graph_is_detected() -> None:
    found = evaluate(graphs("barabasi", 0)[:1] * 50, graphs("barabasi", 1), graphs("barabasi", 2))

    assert found.vun.unique.count == 1
    assert "All 50" in found.findings[0]
    assert "collapsed" in found.findings[0]
    assert found.ratio > 3


def test_a_model_that_samples_few_graphs_is_detected() -> None:
    found = evaluate(graphs("barabasi", 0)[:5] * 12, graphs("barabasi", 1))

    assert "repeat: 5 of 60" in found.findings[0]


def test_without_training_graphs_there_is_no_ratio_but_the_difference_is_reported() -> None:
    found = evaluate(graphs("ego", 0), graphs("barabasi", 1))

    assert found.ratio is None
    assert found.attainable_classifier is None
    assert "Without training graphs" in verdict(found)
    assert "They differ most in" in verdict(found)


def test_summaries_are_means_over_graphs(true: Evaluation) -> None:
    own = [len(graph.edges) for graph in graphs("barabasi", 0)]
    edges = next(row for row in true.summaries if row.name == "edges")

    assert edges.samples == pytest.approx(np.mean(own))
    assert edges.samples_deviation == pytest.approx(np.std(own))


def test_the_record_is_json_and_the_same_for_a_seed(true: Evaluation) -> None:
    again = evaluate(graphs("barabasi", 0), graphs("barabasi", 1), graphs("barabasi", 2), family="barabasi")

    assert again == true
    assert json.loads(json.dumps(true.to_json()))["mmd"][0]["samples"]["convention"] == "tv"
    assert set(true.figures()) == {"ratio", "discrepancy", "auc", "valid", "unique", "novel", "vun"}


def test_large_sets_are_subsampled() -> None:
    found = evaluate(graphs("ego", 0), graphs("ego", 1), most=20, conventions=["rbf"], replicates=0)

    assert found.samples == 60
    assert found.vun.unique.total == 60
    assert {row.samples.graphs for row in found.mmd} == {(20, 20)}


def test_only_the_first_samples_of_slow_families_are_checked() -> None:
    found = evaluate(graphs("geometric", 0, 40), graphs("geometric", 1, 40), family="geometric", replicates=0)

    assert found.vun.valid.total == found.vun.vun.total == 30
    assert found.vun.unique.total == 40
    assert "of the first 30 samples are valid 'geometric' graphs" in verdict(found)


@pytest.mark.parametrize("count", [3, 12])
def test_few_graphs_of_the_true_process_rarely_get_a_negative_verdict(count: int) -> None:
    pool = graphs("barabasi", 0, 20 * 3 * count)
    negative = 0
    for start in range(0, len(pool), 3 * count):
        own, known, seen = (pool[start + part * count :][:count] for part in range(3))
        words = verdict(evaluate(own, known, seen, conventions=["rbf"], replicates=0))
        bare = verdict(evaluate(own, known, conventions=["rbf"], replicates=0))
        assert ("too few graphs" in words) == (count < 8)
        negative += any(word in text for word in ("differ", "clearly", "separates them by") for text in (words, bare))

    assert negative <= 3


def test_invalid_inputs_are_refused() -> None:
    some = graphs("ego", 0, 9)
    with pytest.raises(DatasetError, match="1 samples and 9"):
        gg.evaluate(some[:1], some)
    with pytest.raises(DatasetError, match="1 training graph"):
        gg.evaluate(some, some, some[:1])
    with pytest.raises(FamilyError):
        gg.evaluate(some, some, family="frobnicate")
    with pytest.raises(DatasetError, match="has no nodes"):
        gg.evaluate([nx.empty_graph(0), *some], some)


@pytest.mark.slow
def test_hundreds_of_graphs_take_seconds() -> None:
    sets = [generate("barabasi", 400, (20, 20), seed=seed).graphs for seed in range(3)]
    # CPU time, as the machine may be busy.
    started = time.process_time()
    evaluate(*sets, family="barabasi")

    assert time.process_time() - started < 25
