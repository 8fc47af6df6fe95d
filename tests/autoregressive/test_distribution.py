"""The law of a staged model is a law, whatever its schedule, and its samples follow it."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
import torch

from graphite_gen.autoregressive import distribution as growing
from graphite_gen.autoregressive.decoder import AutoregressiveDecoder
from graphite_gen.autoregressive.distribution import AutoregressiveGraphs, Schedule

DECODING_STEPS = (0, 1, 2, 3, 9)


@pytest.fixture
def decoder() -> AutoregressiveDecoder:
    torch.manual_seed(0)
    decoder = AutoregressiveDecoder(latent=2, node_features=1, width=12, layers=2, pair_layers=1, row_layers=2, rank=3)
    # Weights large enough that every answer matters to the ones after it.
    for parameter in decoder.parameters():
        torch.nn.init.normal_(parameter, std=0.4)

    return decoder


def all_graphs(nodes: int, padded: int) -> torch.Tensor:
    """Every labelled graph, with shape (2^C(n,2), N, N)."""
    pairs = list(itertools.combinations(range(nodes), 2))
    graphs = torch.zeros(2 ** len(pairs), padded, padded)
    for graph, edges in zip(graphs, itertools.product((0, 1), repeat=len(pairs)), strict=True):
        for (i, j), edge in zip(pairs, edges, strict=True):
            graph[i, j] = graph[j, i] = edge

    return graphs


def law(
    decoder: AutoregressiveDecoder, sizes: torch.Tensor, padded: int, decoding_steps: int, seed: int = 1
) -> AutoregressiveGraphs:
    generator = torch.Generator().manual_seed(seed)
    z, x = torch.randn(1, padded, 2, generator=generator), torch.randn(1, padded, 1, generator=generator)

    return AutoregressiveGraphs(
        decoder, z.expand(len(sizes), -1, -1), x.expand(len(sizes), -1, -1), sizes, Schedule(decoding_steps)
    )


@pytest.mark.parametrize("decoding_steps", DECODING_STEPS)
def test_the_law_sums_to_one_over_all_graphs_on_four_nodes(decoder: AutoregressiveDecoder, decoding_steps: int) -> None:
    graphs = all_graphs(4, padded=6)

    log_prob = law(decoder, torch.full((64,), 4), 6, decoding_steps).log_prob(graphs)

    assert log_prob.exp().sum().item() == pytest.approx(1, abs=1e-10)
    assert log_prob.std() > 0.1


@pytest.mark.parametrize("decoding_steps", DECODING_STEPS)
def test_the_rows_of_a_graph_add_up_to_it(decoder: AutoregressiveDecoder, decoding_steps: int) -> None:
    graphs = all_graphs(4, padded=6)[::7]
    grown = law(decoder, torch.full((len(graphs),), 4), 6, decoding_steps)

    rows = [grown.row_log_prob(graphs, torch.full((len(graphs),), row)) for row in (1, 2, 3)]

    assert torch.allclose(sum(rows), grown.log_prob(graphs))


def test_one_stage_is_the_factorised_law_of_the_paper(decoder: AutoregressiveDecoder) -> None:
    graphs = all_graphs(4, padded=4)
    probabilities = law(decoder, torch.full((64,), 4), 4, 1).log_prob(graphs).exp()

    marginals = (probabilities[:, None, None] * graphs).sum(0)
    cells = torch.where(graphs > 0, marginals, 1 - marginals)
    i, j = np.triu_indices(4, 1)

    assert torch.allclose(probabilities, cells[:, i, j].prod(-1))


@pytest.mark.parametrize("decoding_steps", DECODING_STEPS)
def test_samples_follow_the_law(decoder: AutoregressiveDecoder, decoding_steps: int) -> None:
    draws = 4_000
    grown = law(decoder, torch.full((draws,), 4), 5, decoding_steps)
    uniform = torch.rand(draws, 5, 5, generator=torch.Generator().manual_seed(3))
    graphs = all_graphs(4, padded=5)
    expected = draws * law(decoder, torch.full((64,), 4), 5, decoding_steps).log_prob(graphs).exp().detach().numpy()

    with torch.no_grad():
        counts = Counter(tuple(sample.flatten().tolist()) for sample in grown.sample(uniform))
    observed = np.array([counts[tuple(graph.flatten().tolist())] for graph in graphs])

    assert observed.sum() == draws
    large = expected > 5
    # Mean 1 and variance 2 per degree of freedom.
    statistic = ((observed - expected)[large] ** 2 / expected[large]).sum()
    assert statistic < large.sum() + 5 * np.sqrt(2 * large.sum())


def test_a_graph_scores_the_same_in_any_company(decoder: AutoregressiveDecoder) -> None:
    small, large = all_graphs(3, padded=7)[5:6], all_graphs(4, padded=7)[40:41]
    both = law(decoder, torch.tensor([3, 4]), 7, 0).log_prob(torch.cat([small, large]))

    alone = law(decoder, torch.tensor([3]), 7, 0).log_prob(small[:, :3, :3])

    assert torch.allclose(both[:1], alone)


def test_a_single_node_has_one_graph(decoder: AutoregressiveDecoder) -> None:
    grown = law(decoder, torch.tensor([1]), 1, 0)

    assert grown.log_prob(torch.zeros(1, 1, 1)).item() == 0
    assert grown.sample(torch.rand(1, 1, 1)).sum() == 0


@pytest.mark.parametrize("decoding_steps", DECODING_STEPS)
def test_rows_drawn_a_few_at_a_time_are_the_same(
    decoder: AutoregressiveDecoder, decoding_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown = law(decoder, torch.tensor([4, 5, 2]), 5, decoding_steps)
    uniform = torch.rand(3, 5, 5, generator=torch.Generator().manual_seed(4))

    with torch.no_grad():
        at_once = grown.sample(uniform)
        monkeypatch.setattr(growing, "DRAWN_CELLS", 1)
        one_by_one = grown.sample(uniform)

    assert torch.equal(at_once, one_by_one)


@pytest.mark.parametrize(("decoding_steps", "states"), [(1, 8), (3, 8 * 3), (8, 8 * 7), (0, 8 * 7)])
def test_nodes_that_arrive_together_share_the_states_of_what_they_see(
    decoder: AutoregressiveDecoder, decoding_steps: int, states: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[int] = []
    of = decoder.states
    monkeypatch.setattr(decoder, "states", lambda seen: found.append(len(seen.sizes)) or of(seen))

    law(decoder, torch.full((8,), 8), 8, decoding_steps).sample(torch.rand(8, 8, 8))

    assert sum(found) == states


@pytest.mark.parametrize(("decoding_steps", "most"), [(1, 7), (8, 7), (16, 7 + 6)])
def test_a_row_takes_no_more_rounds_than_its_pairs_have_stages(
    decoder: AutoregressiveDecoder, decoding_steps: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[int] = []
    of = decoder.answer
    monkeypatch.setattr(
        decoder, "answer", lambda questions, answers: rounds.append(len(answers)) or of(questions, answers)
    )

    law(decoder, torch.tensor([8]), 8, decoding_steps).sample(
        torch.rand(1, 8, 8, generator=torch.Generator().manual_seed(0))
    )

    assert 7 <= sum(rounds) <= most
