"""The NLL of a staged model against the sum over all orders of arrival."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from tiny import all_graphs, random_graph, small_model
from tiny import staged_model as staged

from graphite_gen.arrival import in_order
from graphite_gen.batch import collate
from graphite_gen.checkpoint import TrainedModel
from graphite_gen.config import ORDERS
from graphite_gen.errors import ConfigError, DatasetError
from graphite_gen.graph import SimpleGraph
from graphite_gen.likelihood import estimate_nll
from graphite_gen.likelihood.sandwich import sandwich_nll
from graphite_gen.sampling import Sampler
from graphite_gen.schedule import Schedule


@torch.no_grad()
def exact_log_prob(model: TrainedModel, graph: SimpleGraph, stages: int = 0) -> float:
    """log p(A) by summing over all orders of arrival."""
    n = graph.nodes
    orders = torch.tensor(list(itertools.permutations(range(n))))
    batch = collate([graph] * len(orders))
    ordered = in_order(batch, orders)
    z = torch.zeros(len(orders), n, model.config.latent)
    law = model.network.grow(z, ordered.x, ordered.sizes, Schedule(stages))

    return float(law.log_prob(ordered.adj).logsumexp(0)) - math.lgamma(n + 1)


@pytest.mark.parametrize("stages", [0, 1, 2])
def test_the_exchangeable_law_sums_to_one_over_all_graphs_on_four_nodes(stages: int) -> None:
    model = staged()

    total = sum(math.exp(exact_log_prob(model, graph, stages)) for graph in all_graphs(4))

    assert total == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("order", ORDERS)
def test_the_estimate_never_exceeds_the_law_and_meets_it_where_all_orders_are_proposed(order: str) -> None:
    model = staged(order)
    graphs = [random_graph(4, seed) for seed in range(3)]

    estimate = estimate_nll(model, graphs, 2000)

    for row, graph in zip(estimate.per_graph, graphs, strict=True):
        # Rules that leave orders out bound the law from below, by the orders they give.
        assert row.nll > -exact_log_prob(model, graph) - 0.1
        if order == "uniform":
            assert row.nll == pytest.approx(-exact_log_prob(model, graph), abs=0.1)


def test_numbering_the_nodes_otherwise_does_not_matter() -> None:
    model, graph = staged("breadth"), random_graph(4, 3)
    other = graph.permuted(np.array([3, 0, 1, 2]))

    first, second = estimate_nll(model, [graph], 3000).nll, estimate_nll(model, [other], 3000).nll

    assert first == pytest.approx(second, abs=0.1)


def test_fewer_stages_are_scored_as_such() -> None:
    model, graph = staged("uniform"), random_graph(4, 1)

    for stages in (1, 2, 3):
        assert estimate_nll(model, [graph], 2000, stages=stages).nll == pytest.approx(
            -exact_log_prob(model, graph, stages), abs=0.1
        )


@pytest.mark.parametrize("order", ["uniform", "breadth", "peel"])
def test_the_bounds_enclose_the_law_of_graphs_that_the_model_grows(order: str) -> None:
    found = sandwich_nll(staged(order), 30, samples=400)

    assert found.lower <= found.upper + 2 * (found.gap_standard_error or 0)
    if order == "uniform":
        assert abs(found.gap) < 0.2
        assert found.importance == pytest.approx(found.upper, abs=0.1)


def test_samples_follow_the_exchangeable_law() -> None:
    model, draws = staged("breadth"), 4000
    classes = {(len(graph.edges), tuple(sorted(graph.degrees().tolist()))): 0.0 for graph in all_graphs(4)}
    for graph in all_graphs(4):
        classes[len(graph.edges), tuple(sorted(graph.degrees().tolist()))] += math.exp(exact_log_prob(model, graph))

    seen = dict.fromkeys(classes, 0)
    labels = np.zeros(4)
    for graph in Sampler(model, draws, nodes=4):
        seen[len(graph.edges), tuple(sorted(graph.degrees().tolist()))] += 1
        labels += graph.degrees()

    for key, probability in classes.items():
        assert abs(seen[key] - draws * probability) < 5 * math.sqrt(draws * probability) + 3
    # A node's number says nothing about when it came.
    assert labels.max() - labels.min() < 0.1 * labels.mean()


def test_what_a_staged_model_cannot_do_is_said() -> None:
    model, graphs = staged(), [random_graph(4, 0)]

    with pytest.raises(ConfigError, match="cannot be annealed"):
        estimate_nll(model, graphs, method="ais")
    with pytest.raises(DatasetError, match="no convention 'paper'"):
        estimate_nll(model, graphs, convention="paper")
    with pytest.raises(ConfigError, match="stages have no use"):
        estimate_nll(small_model(), graphs, stages=4)
