from __future__ import annotations

import numpy as np
import pytest
import torch

from graphite_gen.network import edge_sampler as module
from graphite_gen.network.edge_sampler import sample_edges, visit_every_pair
from graphite_gen.network.pair_logits import PairLogits

from .test_pair_logits import pair_logits


@pytest.mark.parametrize("tile", [1, 30, 1 << 17])
@pytest.mark.parametrize("visited", [0, 100])
def test_edges_have_the_probabilities_of_the_matrix(tile: int, visited: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TILE", tile)
    monkeypatch.setattr(module, "VISITED_NODES", visited)
    logits, draws, rng = pair_logits(11), 3000, np.random.default_rng(1)
    counts = np.zeros((11, 11))
    for _ in range(draws):
        counts[tuple(sample_edges(logits, rng))] += 1

    wanted = torch.sigmoid(logits.tile(slice(None), slice(None))).triu(1).numpy()
    error = np.sqrt(wanted * (1 - wanted) / draws)
    assert (np.abs(counts / draws - wanted) <= 4.5 * error).all()


def test_edges_are_ascending_pairs() -> None:
    i, j = visit_every_pair(pair_logits(40), np.random.default_rng(0))

    assert (i < j).all()
    assert (np.diff(i * 40 + j) > 0).all()


def test_rare_edges_are_no_more_frequent_than_random_numbers_are_fine() -> None:
    # Four and a half million pairs, each an edge once in 1.3 thousand million draws: a number of single precision is
    # zero sixty times as often, and zero is below any probability.
    logits = PairLogits(torch.zeros(3000, 1), torch.ones(1), torch.zeros(3000), torch.tensor(-21.0))
    rng = np.random.default_rng(2)

    assert sum(visit_every_pair(logits, rng).shape[1] for _ in range(30)) <= 2


@pytest.mark.parametrize("nodes", [0, 1])
def test_without_a_pair_there_is_no_edge(nodes: int) -> None:
    assert visit_every_pair(pair_logits(nodes), np.random.default_rng(0)).shape == (2, 0)
