import math

import numpy as np
import pytest
import torch
from tiny import exact_nll, mild_model, path, random_graph, small_model, small_network, star

from graphite_gen.data.batch import collate
from graphite_gen.graph import SimpleGraph
from graphite_gen.likelihood import NLLOptions, graph_log_weights, iterate_nll
from graphite_gen.likelihood.importance import PRIOR_FRACTION, _blocks, order_log_weights


@pytest.mark.parametrize("name", ["one-shot", "paper"])
@pytest.mark.parametrize("graph", [path(3), star(2), SimpleGraph.from_pairs(3, [])])
def test_importance_sampling_agrees_with_quadrature(graph: SimpleGraph, name: str) -> None:
    model = mild_model(name, latent=1)

    (row,) = iterate_nll(model, [graph], NLLOptions(20_000))

    assert row.nll == pytest.approx(exact_nll(model, graph), abs=5 / math.sqrt(row.ess))
    assert row.ess > 2000
    assert row.khat is not None
    assert row.khat < 0.7


@pytest.mark.parametrize("samples", [1, 5, 16, 17, 256, 300, 1000, 1001])
@pytest.mark.parametrize("nodes", [1, 20, 3000, 10**5])
def test_blocks_have_the_requested_samples_within_the_memory_limit(samples: int, nodes: int) -> None:
    blocks = list(_blocks(samples, nodes))

    assert sum(mixture * each for mixture, each in blocks) == samples
    assert all(mixture * each <= 256 for mixture, each in blocks)
    assert all(mixture * each * nodes**2 <= 1 << 24 or mixture * each == 1 for mixture, each in blocks)


def test_more_samples_extend_the_weights_of_fewer() -> None:
    model, batch = small_model(), collate([random_graph(4, 0)], 5)

    long = graph_log_weights(model.network, batch, 600, 0, 3)
    short = graph_log_weights(model.network, batch, 256, 0, 3)

    assert long.shape == (600,)
    assert long.dtype == torch.float64
    assert torch.equal(long[:256], short)
    assert not torch.equal(long[256:512], short)


def test_weights_are_bounded_where_the_encoder_is_overconfident() -> None:
    """With a fraction of the proposals from the prior, no weight exceeds p(A | Z) / (fraction n! q)."""
    network = small_network("default", scale=0.2)
    with torch.no_grad():
        bias = network.encoder.stack.out.bias
        bias[: len(bias) // 2], bias[len(bias) // 2 :] = 5.0, -4.0
    orders, log_q = np.tile(np.arange(4), (200, 1)), np.zeros(200)

    found = order_log_weights(network, collate([random_graph(4, 1)]), orders, log_q, np.random.default_rng(0))

    assert found.max() <= -math.log(PRIOR_FRACTION) - math.lgamma(5)
    # Those from the prior, which the encoder would hardly propose, have weights that matter.
    assert 5 < (found > found.max() - 5).sum() < 60
