"""The autoregressive distribution is normalised for every number of decoding steps, and its samples follow it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from tiny import all_graphs, normal

from graphite_gen.autoregressive import distribution
from graphite_gen.autoregressive.decoder import AutoregressiveDecoder, RowContext
from graphite_gen.autoregressive.distribution import AutoregressiveGraphs, Schedule
from graphite_gen.data.batch import collate

DECODING_STEPS = (0, 1, 2, 3, 9)


@pytest.fixture
def decoder() -> AutoregressiveDecoder:
    torch.manual_seed(0)
    decoder = AutoregressiveDecoder(latent=2, node_features=1, width=12, layers=2, pair_layers=1, row_layers=2, rank=3)
    # Weights large enough that every edge matters to the pairs after it.
    for parameter in decoder.parameters():
        torch.nn.init.normal_(parameter, std=0.4)

    return decoder


def graphs_on(nodes: int, padded: int) -> torch.Tensor:
    """Every labelled graph, with shape (2^C(n,2), N, N)."""
    return collate(all_graphs(nodes), padded).adj


def conditional(
    decoder: AutoregressiveDecoder, sizes: list[int], padded: int, decoding_steps: int
) -> AutoregressiveGraphs:
    """The distribution of graphs of these sizes, all with the same latents and features."""
    z, x = (normal(1, padded, width, seed=1).expand(len(sizes), -1, -1) for width in (2, 1))

    return AutoregressiveGraphs(decoder, z, x, torch.tensor(sizes), Schedule(decoding_steps))


@pytest.mark.parametrize("decoding_steps", DECODING_STEPS)
def test_probabilities_of_all_graphs_sum_to_one_and_factorise_over_rows(
    decoder: AutoregressiveDecoder, decoding_steps: int
) -> None:
    graphs = graphs_on(4, padded=6)
    model = conditional(decoder, [4] * 64, 6, decoding_steps)

    log_prob = model.log_prob(graphs)

    assert log_prob.exp().sum().item() == pytest.approx(1, abs=1e-10)
    assert log_prob.std() > 0.1
    assert torch.allclose(sum(model.row_log_prob(graphs, torch.full((64,), row)) for row in (1, 2, 3)), log_prob)


def test_one_decoding_step_factorises_over_pairs(decoder: AutoregressiveDecoder) -> None:
    graphs = graphs_on(4, padded=4)
    probabilities = conditional(decoder, [4] * 64, 4, 1).log_prob(graphs).exp()

    marginals = (probabilities[:, None, None] * graphs).sum(0)
    cells = torch.where(graphs > 0, marginals, 1 - marginals)
    i, j = np.triu_indices(4, 1)

    assert torch.allclose(probabilities, cells[:, i, j].prod(-1))


@pytest.mark.parametrize("decoding_steps", DECODING_STEPS)
def test_samples_follow_the_distribution(decoder: AutoregressiveDecoder, decoding_steps: int) -> None:
    draws = 4_000
    model = conditional(decoder, [4] * draws, 5, decoding_steps)
    uniform = torch.rand(draws, 5, 5, generator=torch.Generator().manual_seed(3))
    graphs = graphs_on(4, padded=5)
    expected = draws * conditional(decoder, [4] * 64, 5, decoding_steps).log_prob(graphs).exp().detach().numpy()

    with torch.no_grad():
        counts = Counter(tuple(sample.flatten().tolist()) for sample in model.sample(uniform))
    observed = np.array([counts[tuple(graph.flatten().tolist())] for graph in graphs])

    assert observed.sum() == draws
    large = expected > 5
    # Mean 1 and variance 2 per degree of freedom.
    statistic = ((observed - expected)[large] ** 2 / expected[large]).sum()
    assert statistic < large.sum() + 5 * np.sqrt(2 * large.sum())


def test_log_probability_does_not_depend_on_the_batch(decoder: AutoregressiveDecoder) -> None:
    small, large = graphs_on(3, padded=7)[5:6], graphs_on(4, padded=7)[40:41]
    both = conditional(decoder, [3, 4], 7, 0).log_prob(torch.cat([small, large]))

    alone = conditional(decoder, [3], 7, 0).log_prob(small[:, :3, :3])

    assert torch.allclose(both[:1], alone)


def test_one_node_has_one_graph(decoder: AutoregressiveDecoder) -> None:
    model = conditional(decoder, [1], 1, 0)

    assert model.log_prob(torch.zeros(1, 1, 1)).item() == 0
    assert model.sample(torch.rand(1, 1, 1)).sum() == 0


@pytest.mark.parametrize("decoding_steps", DECODING_STEPS)
def test_rows_sampled_in_pieces_are_the_same(
    decoder: AutoregressiveDecoder, decoding_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = conditional(decoder, [4, 5, 2], 5, decoding_steps)
    uniform = torch.rand(3, 5, 5, generator=torch.Generator().manual_seed(4))
    at_once = model.sample(uniform)

    monkeypatch.setattr(distribution, "DRAWN_CELLS", 1)

    assert torch.equal(at_once, model.sample(uniform))


@pytest.mark.parametrize(("decoding_steps", "states"), [(1, 8), (3, 8 * 3), (8, 8 * 7), (0, 8 * 7)])
def test_nodes_of_a_block_share_their_states(
    decoder: AutoregressiveDecoder, decoding_steps: int, states: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[int] = []
    of = decoder.states
    monkeypatch.setattr(decoder, "states", lambda partial: found.append(len(partial.sizes)) or of(partial))

    conditional(decoder, [8] * 8, 8, decoding_steps).sample(torch.rand(8, 8, 8))

    assert sum(found) == states


@pytest.mark.parametrize(("decoding_steps", "most"), [(1, 7), (8, 7), (16, 7 + 6)])
def test_a_row_takes_no_more_iterations_than_it_has_decoding_steps(
    decoder: AutoregressiveDecoder, decoding_steps: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    iterations: list[int] = []
    of = RowContext.logits
    monkeypatch.setattr(RowContext, "logits", lambda rows, edges: iterations.append(len(edges)) or of(rows, edges))

    conditional(decoder, [8], 8, decoding_steps).sample(torch.rand(1, 8, 8, generator=torch.Generator().manual_seed(0)))

    assert 7 <= sum(iterations) <= most
