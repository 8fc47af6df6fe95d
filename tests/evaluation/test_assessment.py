import json
import time
from typing import Any

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
    return evaluate(graphs("barabasi", 0), graphs("barabasi", 1), graphs("barabasi", 2), family="ba", seed=0)


def quickly(*sets: list[SimpleGraph], **options: Any) -> Evaluation:
    return evaluate(*sets, **{"conventions": ["rbf"], "replicates": 0, "seed": 0, **options})


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
    found = quickly(graphs(family, 0), graphs("barabasi", 1), graphs("barabasi", 2))

    assert found.ratio > 3
    assert found.classifier.low > 0
    assert "clearly differ" in verdict(found)
    assert "They differ most in" in verdict(found)


def test_memorised_training_graphs_are_detected() -> None:
    train, rng = graphs("barabasi", 2), np.random.default_rng(0)

    found = quickly([graph.permuted(rng.permutation(graph.nodes)) for graph in train], graphs("barabasi", 1), train)

    assert (found.vun.novel.value, found.reference_vun.novel.value) == (0, 1)
    assert found.ratio < 1.5
    assert found.findings[0].startswith("Novelty is 0: every sample is a copy of a training graph")
    assert "memorised" in found.findings[0]


def test_copies_are_expected_where_there_are_few_distinct_graphs() -> None:
    stars = [nx.star_graph(n % 3 + 4) for n in range(30)]

    found = quickly(stars, stars, stars)

    assert found.vun.novel.value == 0
    assert "but so are 30 of the 30 reference graphs" in verdict(found)
    assert "memorised" not in verdict(found)
    assert "repeat" not in verdict(found)


def test_uniqueness_is_compared_for_equally_many_graphs() -> None:
    many, few = generate("ego", 300, (6, 6), seed=0).graphs, generate("ego", 20, (6, 6), seed=1).graphs

    found = quickly(many, few)

    assert found.vun.unique.high < found.reference_vun.unique.low
    assert [proportion.total for proportion in found.comparable_unique] == [20, 20]
    assert "repeat" not in verdict(found)


def test_a_descriptor_that_is_constant_in_training_graphs_counts_if_it_varies_in_samples() -> None:
    samples, reference, train = (generate("regular", 60, seed=seed).graphs for seed in range(3))
    broken = [SimpleGraph(graph.nodes, graph.edges[k % 10 == 0 :]) for k, graph in enumerate(samples)]
    kites = [nx.lollipop_graph(4, 3)] * 60

    whole, part, other = (
        next(row for row in quickly(sampled, reference, train).mmd if row.samples.descriptor == "degree")
        for sampled in (samples, broken, kites)
    )

    assert (whole.samples.value, whole.ratio) == (0, 1)
    # The MMD of training graphs is 0, so the level is the chance level of the samples.
    assert part.samples.value > 0
    assert part.ratio == pytest.approx(1 + part.samples.value / part.chance)
    assert part.ratio > 3
    assert other.ratio == pytest.approx(61)


def test_a_model_that_samples_one_or_few_graphs_is_detected_unless_the_reference_is_the_same() -> None:
    one = quickly(graphs("barabasi", 0)[:1] * 50, graphs("barabasi", 1), graphs("barabasi", 2))
    few = quickly(graphs("barabasi", 0)[:5] * 12, graphs("barabasi", 1))
    complete = [nx.complete_graph(5)] * 20
    same = quickly(complete, complete, complete)

    assert one.vun.unique.count == 1
    assert "All 50" in one.findings[0]
    assert "collapsed" in one.findings[0]
    assert (one.ratio > 3, same.ratio) == (True, 1)
    assert "repeat: 5 of 60" in few.findings[0]
    for found in (same, quickly(complete[:2], graphs("ego", 0, 2))):
        assert "collapsed" not in verdict(found)


def test_without_training_graphs_there_is_no_ratio_but_the_difference_is_reported() -> None:
    found = quickly(graphs("ego", 0), graphs("barabasi", 1))

    assert (found.ratio, found.attainable_classifier) == (None, None)
    assert {(row.attainable, row.level, row.ratio) for row in found.mmd} == {(None, None, None)}
    assert "Without training graphs" in verdict(found)
    assert "They differ most in" in verdict(found)


def test_the_record_has_means_over_graphs_is_json_and_the_same_for_a_seed(true: Evaluation) -> None:
    again = evaluate(graphs("barabasi", 0), graphs("barabasi", 1), graphs("barabasi", 2), family="barabasi", seed=0)
    own = [len(graph.edges) for graph in graphs("barabasi", 0)]
    edges = next(row for row in true.summaries if row.name == "edges")

    assert again == true
    assert len(true.mmd) == 12
    assert (edges.samples, edges.samples_deviation) == pytest.approx((np.mean(own), np.std(own)))
    assert json.loads(json.dumps(true.to_json()))["mmd"][0]["samples"]["convention"] == "tv"
    assert set(true.figures()) == {"ratio", "discrepancy", "auc", "valid", "unique", "novel", "vun"}


def test_large_sets_are_subsampled_and_only_the_first_samples_of_slow_families_are_checked() -> None:
    found = quickly(graphs("geometric", 0, 40), graphs("geometric", 1, 40), family="geometric", most=20)

    assert {row.samples.graphs for row in found.mmd} == {(20, 20)}
    assert found.vun.valid.total == found.vun.vun.total == 30
    assert found.samples == found.vun.unique.total == 40
    assert "of the first 30 samples are valid 'geometric' graphs" in verdict(found)


@pytest.mark.parametrize("count", [3, 12])
def test_few_graphs_of_the_true_process_rarely_get_a_negative_verdict(count: int) -> None:
    pool = graphs("barabasi", 0, 20 * 3 * count)
    negative = 0
    for start in range(0, len(pool), 3 * count):
        own, known, seen = (pool[start + part * count :][:count] for part in range(3))
        words, bare = verdict(quickly(own, known, seen)), verdict(quickly(own, known))
        assert ("too few graphs" in words) == (count < 8)
        negative += any(word in text for word in ("differ", "clearly", "separates them by") for text in (words, bare))

    assert negative <= 3


def test_invalid_inputs_are_refused() -> None:
    some = graphs("ego", 0, 9)
    for samples, options, kind, fact in (
        (some[:1], {}, DatasetError, "1 sample and 9"),
        (some, {"train": some[:1]}, DatasetError, "1 training graph"),
        (some, {"family": "frobnicate"}, FamilyError, "frobnicate"),
        ([nx.empty_graph(0), *some], {}, DatasetError, "has no nodes"),
    ):
        with pytest.raises(kind, match=fact):
            gg.evaluate(samples, some, **options)


@pytest.mark.slow
def test_hundreds_of_graphs_take_seconds() -> None:
    sets = [generate("barabasi", 400, (20, 20), seed=seed).graphs for seed in range(3)]
    # CPU time, as the machine may be busy.
    started = time.process_time()
    evaluate(*sets, family="barabasi", seed=0)

    assert time.process_time() - started < 25
