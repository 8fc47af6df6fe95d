from collections import Counter
from dataclasses import replace
from itertools import product
from math import e, exp, inf, log, nan, pi

import networkx as nx
import numpy as np
import pytest
from scipy import integrate, stats
from tiny import all_graphs

from graphite_gen.errors import FamilyError
from graphite_gen.families import family as family_of
from graphite_gen.families.entropies import EntropyEstimate, draw_nats, known_entropy
from graphite_gen.graph import SimpleGraph

from .helpers import ALPHA, fit


def test_the_parts_are_those_of_barabasi_and_of_independent_log_normal_weights() -> None:
    family, plain = family_of("weighted-barabasi", m=2, exponent=0.3, sigma=0.7), family_of("barabasi", m=2)
    rng = np.random.default_rng(0)
    for _ in range(5):
        graph = family.sample(9, rng)
        degree = dict(graph.to_networkx().degree())
        scales = [(degree[i] * degree[j]) ** 0.3 for i, j in graph.edges.tolist()]
        parts = family.log_prob_parts(graph)

        assert parts["structure"] == plain.log_prob(graph)
        assert parts["weights"] == pytest.approx(stats.lognorm.logpdf(graph.weights, s=0.7, scale=scales).sum())
        assert sum(parts.values()) == family.log_prob(graph) == pytest.approx(family.log_prob(graph.to_networkx()))
        assert family.log_prob(graph.permuted(rng.permutation(9))) == pytest.approx(family.log_prob(graph))


def test_the_density_of_one_edge_integrates_to_one() -> None:
    family, edge = family_of("weighted-barabasi", m=1), SimpleGraph.from_pairs(2, [(0, 1)])
    total, _ = integrate.quad(lambda w: exp(family.log_prob(replace(edge, weights=np.array([w])))), 0, inf)

    assert total == pytest.approx(1, abs=1e-6)


def test_samples_follow_the_joint_density() -> None:
    family, rng = family_of("weighted-barabasi", m=1), np.random.default_rng(0)
    # Three paths with two weights: the cells of the midpoint rule in log w do not straddle the threshold.
    step, threshold = 0.2, 1.5
    logs = log(threshold) + step * (np.arange(-20, 20) + 0.5)
    probabilities: Counter[tuple[bytes, bool, bool]] = Counter()
    for graph in all_graphs(3):
        if not family_of("barabasi", m=1).contains(graph):
            continue
        for pair in product(logs, repeat=2):
            density = exp(family.log_prob(replace(graph, weights=np.exp(pair))) + sum(pair))
            probabilities[graph.edges.tobytes(), pair[0] > logs[19], pair[1] > logs[19]] += density * step**2
    samples = [family.sample(3, rng) for _ in range(3000)]
    counts = Counter((graph.edges.tobytes(), *(graph.weights > threshold).tolist()) for graph in samples)

    assert sum(probabilities.values()) == pytest.approx(1, abs=1e-6)
    assert len(probabilities) == 12
    assert fit(counts, probabilities) > ALPHA


def test_weights_of_large_samples_are_log_normal_around_powers_of_degrees() -> None:
    family, rng = family_of("weighted-barabasi", exponent=-0.4, sigma=0.2), np.random.default_rng(1)
    z = []
    for _ in range(20):
        graph = family.sample(20, rng)
        i, j = graph.edges.T
        z.extend((np.log(graph.weights) + 0.4 * np.log(graph.degrees()[i] * graph.degrees()[j])) / 0.2)

    assert len(z) == 20 * 64
    assert stats.kstest(z, "norm").pvalue > ALPHA


def test_draws_average_to_the_entropy() -> None:
    family, rng = family_of("weighted-barabasi", m=1), np.random.default_rng(0)
    # A tree on four nodes is one of twelve paths or four stars.
    weights = {
        graph: sum(0.5 * log(d) * d for _, d in graph.degree()) + 3 * log(2 * pi * e * 0.25) / 2
        for graph in (nx.path_graph(4), nx.star_graph(3))
    }
    plain = {graph: family_of("barabasi", m=1).log_prob(graph) for graph in weights}
    exact = sum(
        count * exp(plain[graph]) * (weights[graph] - plain[graph])
        for count, graph in zip((12, 4), weights, strict=True)
    )
    found = EntropyEstimate.of(list(draw_nats(family, 4, 800, seed=0)))
    nats = [-family.log_prob(family.sample(4, rng)) for _ in range(2000)]

    assert found.nats == pytest.approx(exact, abs=4 * found.standard_error)
    assert np.mean(nats) == pytest.approx(exact, abs=4 * stats.sem(nats))
    # Weights are integrated out, so that draws vary less than samples.
    assert found.standard_error * 800**0.5 < np.std(nats) / 2


@pytest.mark.parametrize("n", [10, 16])
def test_the_entropy_in_the_table_is_the_mean_over_samples(n: int) -> None:
    family, rng = family_of("weighted-barabasi"), np.random.default_rng(n)
    known, nats = known_entropy(family, n), [-family.log_prob(family.sample(n, rng)) for _ in range(100)]

    assert known is not None
    assert np.mean(nats) == pytest.approx(known.nats, abs=4 * np.hypot(stats.sem(nats), known.standard_error))


@pytest.mark.parametrize("weight", [0.0, -1.0, nan, inf])
def test_weights_that_are_not_positive_numbers_are_outside_the_family(weight: float) -> None:
    family = family_of("weighted-barabasi")
    graph = family.sample(12, np.random.default_rng(0))
    other = replace(graph, weights=np.array([weight, *graph.weights[1:]]))

    assert family.contains(graph)
    assert not family.contains(other)
    assert family.log_prob(other) == -inf


def test_a_graph_outside_barabasi_or_without_weights_is_outside_the_family() -> None:
    family, cycle = (
        family_of("weighted-barabasi", m=1),
        SimpleGraph.from_adjacency(nx.to_numpy_array(nx.cycle_graph(4))),
    )
    weighted = replace(cycle, weights=np.ones(4))

    assert not family.contains(weighted)
    assert family.log_prob(weighted) == -inf
    assert not family.contains(nx.path_graph(4))
    with pytest.raises(FamilyError, match="have weights"):
        family.log_prob(nx.path_graph(4))
