from functools import partial as partial_of
from itertools import islice

import networkx as nx
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from graphite_gen.autoregressive import ordering
from graphite_gen.completion import PartialGraph, mcmc
from graphite_gen.completion.mcmc import CHAINS, Chains, initial_edges, move_particles, regular_completions
from graphite_gen.completion.posterior import Posterior
from graphite_gen.graph import SimpleGraph

from .test_smc import HIDDEN, PAW, autoregressive, exact


def frequencies(states: NDArray[np.bool_], unknown: NDArray[np.bool_]) -> NDArray[np.float64]:
    return (states[..., None, :] == unknown).all(-1).mean(tuple(range(states.ndim - 1)))


@pytest.mark.parametrize("order", ["uniform", pytest.param("attachment", marks=pytest.mark.slow)])
def test_chains_sample_the_exact_posterior_from_any_start(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, partial = autoregressive(order), PartialGraph.from_pairs(PAW, HIDDEN)
    # Estimates that vary much between orderings make chains stick. An untrained model follows no rule, so irregular
    # and nearly uniform orderings must be common.
    monkeypatch.setattr(ordering, "SOFTNESS", (0.99,))
    monkeypatch.setattr(ordering, "IRREGULAR_WEIGHT", 0.3)
    monkeypatch.setattr(mcmc, "propose_orderings", partial_of(ordering.propose_orderings, soft_fraction=0.5))
    with torch.no_grad():
        for parameter in model.network.decoder.parameters():
            parameter.mul_(0.5)
    joint, unknown = exact(model, partial)
    expected = joint / joint.sum()
    start = np.zeros((150, 3), dtype=np.bool_)
    chains = Chains(model, partial, start, np.random.default_rng(0))

    states = np.stack(list(islice(chains, 30, 100)))

    # Chains are independent, so their spread gives the standard error.
    each = np.stack([frequencies(states[:, chain], unknown) for chain in range(states.shape[1])])
    errors = each.std(0, ddof=1) / np.sqrt(len(each))
    assert (np.abs(each.mean(0) - expected) < 4 * errors + 0.002).all()


def test_moved_particles_follow_the_posterior_and_keep_the_marginal_likelihood() -> None:
    model, partial = autoregressive("uniform"), PartialGraph.from_pairs(PAW, HIDDEN)
    joint, unknown = exact(model, partial)
    weights = np.tile(np.log(joint), (24, 1))
    start = Posterior.weighted(np.tile(unknown.astype(np.float32), (24, 1, 1)), weights)

    moved = move_particles(model, partial, start, steps=40, rng=np.random.default_rng(1))

    assert moved.log_evidence == start.log_evidence
    assert moved.probabilities.shape == (24, CHAINS * 20, 3)
    means, errors = moved.edge_probabilities()
    assert (errors < 0.06).all()
    assert (np.abs(means - joint / joint.sum() @ unknown) < 4 * errors + 0.01).all()


def test_chains_of_a_run_start_from_its_own_particles() -> None:
    particles = np.array([[[0, 0, 0], [0, 0, 1]], [[1, 1, 1], [1, 1, 0]]], dtype=np.bool_)
    # By weight alone, all chains would start from the second run.
    start = Posterior.weighted(particles, np.array([[-90.0, -90.0], [0.0, 0.0]]))

    first, second = initial_edges(start, np.random.default_rng(0)).reshape(2, CHAINS, 3)

    assert not first[:, :2].any()
    assert second[:, :2].all()
    assert len(np.unique(first, axis=0)) == len(np.unique(second, axis=0)) == 2


@pytest.mark.parametrize("edges", [0, 1, 3, 6])
def test_proposal_ratios_satisfy_detailed_balance(edges: int) -> None:
    partial = PartialGraph.from_pairs(SimpleGraph.from_pairs(5, []), [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (1, 4)])
    row = np.arange(6) < edges
    chains = Chains(autoregressive("uniform"), partial, row[None], np.random.default_rng(0))

    there = proposals(chains, row)

    assert len(there) > 1
    for new, ratios in there.items():
        back = proposals(chains, np.array(new))[tuple(row.tolist())]
        # An edge may move to the same pair by two kinds of moves with ratios of their own: both are counted.
        assert_equal_sums(ratios, np.ones(len(back)))
        assert_equal_sums(back, np.ones(len(ratios)))


DRAWS = 4000


def proposals(chains: Chains, row: NDArray[np.bool_]) -> dict[tuple[bool, ...], NDArray[np.float64]]:
    """The proposal ratios of all moves to each other row."""
    found: dict[tuple[bool, ...], list[float]] = {}
    for _ in range(DRAWS):
        new, log_ratio = chains._move(row)
        found.setdefault(tuple(new.tolist()), []).append(np.exp(log_ratio))
    found.pop(tuple(row.tolist()), None)

    return {new: np.array(ratios) for new, ratios in found.items()}


def assert_equal_sums(one: NDArray[np.float64], other: NDArray[np.float64]) -> None:
    """Sums over all draws, of which those not listed have the value 0."""
    variances = [np.square(values).sum() - values.sum() ** 2 / DRAWS for values in (one, other)]
    error = np.sqrt(sum(variances))

    assert error < 0.012 * DRAWS
    assert abs(one.sum() - other.sum()) < 4 * error


def test_regular_completions_have_attachment_orderings_more_often_than_random_ones() -> None:
    nodes, m = 14, 3
    graph = SimpleGraph.from_networkx(nx.barabasi_albert_graph(nodes, m, seed=4))
    rng = np.random.default_rng(0)
    pairs = np.argwhere(np.triu(np.ones((nodes, nodes)), 1))
    partial = PartialGraph.from_pairs(graph, rng.permutation(pairs)[:18].tolist())
    density = m * (nodes - m) / len(pairs)

    completions = regular_completions(partial, density, 200, rng)

    assert completions.shape == (200, 18)
    assert len(np.unique(completions, axis=0)) > 20
    assert fraction_regular(partial, completions, m) > 3 * fraction_regular(partial, rng.random((200, 18)) < density, m)


def fraction_regular(partial: PartialGraph, completions: NDArray[np.bool_], m: int) -> float:
    """The fraction of completions with about m (n - m) edges and core number m."""
    graphs = [partial.completed(edges_at).to_networkx() for edges_at in completions]
    edges = m * (partial.nodes - m)

    return float(np.mean([abs(len(g.edges) - edges) <= 1 and max(nx.core_number(g).values()) == m for g in graphs]))
