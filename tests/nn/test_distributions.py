import pytest
import torch
from tiny import normal, small_batch
from torch import Tensor
from torch.distributions import Bernoulli, Normal, kl_divergence

from graphite_gen.data.batch import node_mask, pair_mask
from graphite_gen.nn.distributions import EdgeBernoulli, EdgeNormal, NodeNormal


def small_normal() -> NodeNormal:
    return NodeNormal(normal(3, 7, 2), normal(3, 7, 2, seed=1), small_batch().mask)


def symmetric(seed: int = 0) -> Tensor:
    upper = 2 * normal(3, 7, 7, seed=seed)

    return upper + upper.mT


def test_log_density_and_divergence_of_latents_agree_with_torch() -> None:
    distribution, z = small_normal(), normal(3, 7, 2, seed=2)

    density, divergence = distribution.log_prob(z), distribution.kl_to_standard()

    for row, n in enumerate(distribution.mask.sum(-1).tolist()):
        expected = Normal(distribution.mu[row, :n], distribution.sigma[row, :n])
        assert torch.allclose(density[row], expected.log_prob(z[row, :n]).sum())
        assert torch.allclose(divergence[row], kl_divergence(expected, Normal(0.0, 1.0)).sum())
    assert (NodeNormal.standard(distribution.mask, 2).kl_to_standard() == 0).all()


def test_latents_are_reparameterised_noise_and_zero_at_padding() -> None:
    distribution, noise = small_normal(), normal(4, 3, 7, 2, seed=2)

    z = distribution.sample(noise)

    expected = distribution.mu + distribution.sigma * noise
    assert torch.equal(z[:, distribution.mask], expected[:, distribution.mask])
    assert (z[:, ~distribution.mask] == 0).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_log_probability_of_graphs_agrees_with_torch(weighted: bool) -> None:
    batch, values, log_scale = small_batch(weighted=weighted), symmetric(), torch.tensor(-0.7)
    ours = EdgeNormal(values, log_scale, batch.mask) if weighted else EdgeBernoulli(values, batch.mask)

    out = ours.log_prob(batch.adj)

    for row, n in enumerate(batch.sizes.tolist()):
        i, j = torch.triu_indices(n, n, 1)
        own = values[row, i, j]
        theirs = Normal(own, log_scale.exp()) if weighted else Bernoulli(logits=own)
        assert torch.allclose(out[row], theirs.log_prob(batch.adj[row, i, j]).sum())


def test_certain_edges_are_exact() -> None:
    edge, mask = torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([True, True])
    sure, never = EdgeBernoulli(800 * edge, mask), EdgeBernoulli(-800 * edge, mask)
    uniform = torch.tensor([0.0, 0.5, 1 - 2**-24]).reshape(3, 1, 1).expand(3, 2, 2)

    assert sure.log_prob(edge) == 0
    assert sure.log_prob(1 - edge) == -800
    assert (sure.sample(uniform)[:, 0, 1] == 1).all()
    assert (never.sample(uniform)[:, 0, 1] == 0).all()


def test_the_score_of_cells_is_the_sum_over_the_padded_matrix() -> None:
    batch, logits = small_batch(), symmetric()

    out = EdgeBernoulli(logits, batch.mask).log_score_of_cells(batch.adj)

    for row, n in enumerate(batch.sizes.tolist()):
        cells = batch.adj[row] + torch.diag(torch.tensor([1.0] * n + [0.0] * (7 - n)))
        assert torch.allclose(out[row], Bernoulli(logits=logits[row]).log_prob(cells).sum())


@pytest.mark.parametrize("weighted", [False, True])
def test_sampled_edges_and_weights_follow_their_distribution(weighted: bool) -> None:
    mask, values = node_mask(torch.tensor(4), 5), symmetric()[0, :5, :5] / 2
    uniform = torch.rand(20000, 5, 5, generator=torch.Generator().manual_seed(0))
    uniform[0, 0, 1], uniform[1, 0, 1] = 0.0, 1.0  # the ends, where the inverse of the normal is infinite
    ours = EdgeNormal(values, torch.tensor(0.5).log(), mask) if weighted else EdgeBernoulli(values, mask)
    theirs = Normal(values, 0.5) if weighted else Bernoulli(logits=values)

    graphs = ours.sample(uniform)

    assert graphs.isfinite().all()
    assert torch.equal(graphs, graphs.mT)
    assert ((graphs.mean(0) - theirs.mean)[pair_mask(mask)].abs() < 5 * 0.5 / 20000**0.5).all()
    assert ((graphs.std(0) - theirs.stddev)[pair_mask(mask)].abs() < 0.02).all()
    assert (graphs[:, 4] == 0).all()
    assert (graphs.diagonal(dim1=-2, dim2=-1) == 0).all()
    assert weighted or set(graphs.unique().tolist()) == {0.0, 1.0}


def test_latents_without_a_mask_are_those_of_real_nodes() -> None:
    mu, log_sigma, noise = normal(2, 5, 3, seed=1), normal(2, 5, 3, seed=2), normal(2, 5, 3, seed=3)
    plain = NodeNormal(mu, log_sigma, None)
    masked = NodeNormal(mu, log_sigma, torch.ones(2, 5, dtype=torch.bool))

    assert torch.equal(plain.sample(noise), masked.sample(noise))
    assert torch.allclose(plain.log_prob(noise), masked.log_prob(noise))
    assert torch.allclose(plain.kl_to_standard(), masked.kl_to_standard())
