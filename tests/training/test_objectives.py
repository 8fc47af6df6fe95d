import math
from itertools import product

import numpy as np
import pytest
import torch
from tiny import normal, small_batch, small_network
from torch import Tensor

from graphite_gen.data.batch import GraphBatch
from graphite_gen.nn.distributions import NodeNormal
from graphite_gen.nn.path_lengths import structural_features
from graphite_gen.training import objectives
from graphite_gen.training.objectives import STRUCTURE_WEIGHT, draft_cost, elbo, log_weights, reconstruction


def test_the_elbo_of_vgae_agrees_with_a_direct_implementation() -> None:
    network = small_network("paper", kind="vgae", mlp=False, encoder_features=("degree", "identity"))
    batch, epsilon = small_batch(), normal(3, 7, 2)

    log_likelihood, kl = elbo(network, batch, torch.zeros(3, 7, 0), epsilon)

    stack = network.encoder.stack
    layers = [*stack.hidden, stack.out]
    weights = [(layer.linear.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in layers]
    for row, n in enumerate(batch.sizes.tolist()):
        a = batch.adj[row, :n, :n].numpy()
        degree = a.sum(1)
        loops = a + np.eye(n)
        root = np.diag(loops.sum(1) ** -0.5)
        total = max(degree.sum(), 1)
        h = np.stack([degree / n, np.log1p(degree), degree / total, np.full(n, np.log1p(n) / 3)], axis=1)
        h = np.concatenate([h, np.eye(n, 8)], axis=1)
        for depth, (weight, bias) in enumerate(weights):
            h = root @ loops @ root @ h @ weight.T + bias
            h = np.maximum(h, 0) if depth < len(weights) - 1 else h
        mu, log_sigma = h[:, :2], 6 * np.tanh(h[:, 2:] / 6)
        z = mu + np.exp(log_sigma) * epsilon[row, :n].numpy()
        p = 1 / (1 + np.exp(-z @ z.T))
        expected = sum(
            math.log(p[i, j]) if a[i, j] else math.log1p(-p[i, j]) for i in range(n) for j in range(i + 1, n)
        )
        assert float(log_likelihood[row].detach()) == pytest.approx(expected)
        assert float(kl[row].detach()) == pytest.approx(
            float(0.5 * (mu**2 + np.exp(2 * log_sigma) - 1 - 2 * log_sigma).sum())
        )


@pytest.mark.parametrize("name", ["one-shot", "paper"])
@pytest.mark.parametrize(
    ("refinement", "skip", "head"), list(product(("gcn", "residual"), ("convex", "incremental"), ("inner", "signed")))
)
def test_padding_changes_neither_bounds_nor_gradients(name: str, refinement: str, skip: str, head: str) -> None:
    parts = {"refinement": refinement, "skip": skip, "head": head, "skip_weight": 0.6}
    network = small_network(name, node_features=2, latent=4, **parts)
    narrow, wide = (small_batch(padding, features=2) for padding in (0, 3))
    noise = normal(2, 3, 8, network.noise_features).requires_grad_()
    epsilon = normal(2, 2, 3, 8, 4, seed=1).requires_grad_()

    def both(batch: GraphBatch, nodes: int) -> tuple[Tensor, Tensor]:
        e, f = noise[:, :, :nodes], epsilon[:, :, :, :nodes]
        log_likelihood, kl = elbo(network, batch, e[0], f[0, 0])
        return log_likelihood - kl, log_weights(network, batch, e, f)

    results = [both(narrow, 5), both(wide, 8)]
    gradients = [
        torch.autograd.grad(bound.sum() + weights.sum(), [*network.parameters(), noise, epsilon], allow_unused=True)
        for bound, weights in results
    ]

    for first, second in zip(*results, strict=True):
        assert torch.allclose(first, second)
    for first, second in zip(*(each[:-2] for each in gradients), strict=True):
        assert (first is None) == (second is None)
        assert first is None or torch.allclose(first, second)
    for gradient in gradients[1][-2:]:
        if gradient is not None:
            assert (gradient[..., ~wide.mask, :] == 0).all()
    assert (gradients[1][-1][..., wide.mask, :] != 0).any()


def test_reconstruction_is_the_likelihood_at_the_posterior_mean() -> None:
    network = small_network(kind="graphite-ae")
    batch, noise = small_batch(), normal(3, 7, 3)
    posterior = network.encode(batch, noise)

    expected = network.decode(posterior.sample(torch.zeros(3, 7, 2)), batch.x, batch.mask).log_prob(batch.adj)

    assert torch.allclose(reconstruction(network, batch, noise), expected)


@pytest.mark.parametrize("observation", ["bernoulli", "normal"])
def test_a_weight_is_likelihood_times_prior_over_the_mixture(observation: str) -> None:
    network = small_network(observation=observation)
    batch = small_batch(weighted=observation == "normal")
    noise, epsilon = normal(3, 3, 7, 3), normal(3, 2, 3, 7, 2, seed=1)

    out = log_weights(network, batch, noise, epsilon)

    assert out.shape == (6, 3)
    posteriors = [network.encode(batch, noise[m]) for m in range(3)]
    for m in range(3):
        for s in range(2):
            z = posteriors[m].sample(epsilon[m, s])
            mean_density = sum(posterior.log_prob(z).exp() for posterior in posteriors) / 3
            likelihood = network.decode(z, batch.x, batch.mask).log_prob(batch.adj)
            prior = network.prior(batch.mask).log_prob(z)
            assert torch.allclose(out[2 * m + s], likelihood + prior - mean_density.log())


def test_convention_paper_scores_cells_under_the_same_proposals() -> None:
    network = small_network("paper")
    batch = small_batch()
    noise, epsilon = normal(1, 3, 7, 0), normal(1, 1, 3, 7, 2)
    z = network.encode(batch, noise[0]).sample(epsilon[0, 0])
    edges = network.decode(z, batch.x, batch.mask)

    pairs = log_weights(network, batch, noise, epsilon)
    cells = log_weights(network, batch, noise, epsilon, "paper")

    assert torch.allclose(cells - pairs, edges.log_score_of_cells(batch.adj) - edges.log_prob(batch.adj))


def test_the_draft_costs_edges_and_ordering_given_standardised_posterior_means_and_structural_features() -> None:
    network, batch = small_network("default", encoder="residual", latent=3), small_batch()
    mu = normal(3, 7, 3)
    features = structural_features(batch)
    network.decoder.draft_head.standardise_like(features[batch.mask])
    with torch.no_grad():
        network.decoder.draft_head.products.copy_(torch.tensor([0.7, -0.2]))
    weight, bias = (part.detach().numpy() for part in network.decoder.draft_head.bias.parameters())
    place = network.decoder.draft_head.place.weight.detach().numpy()[0]
    slope, intercept = (part.detach().numpy() for part in network.decoder.draft_head.structure.parameters())
    every = features[batch.mask].numpy()
    targets = (features.numpy() - every.mean(0)) / every.std(0)
    cost = draft_cost(network, batch, NodeNormal(mu, normal(3, 7, 3), batch.mask))

    for row, n in enumerate(batch.sizes.tolist()):
        z = mu[row, :n].numpy()
        z = (z - z.mean(0)) / np.maximum(z.std(0), 1e-3)
        terms = []
        for i in range(n):
            for j in range(i + 1, n):
                own = -0.2 * (z[i] @ z[i] + z[j] @ z[j]) + float((weight @ (z[i] + z[j]) + 2 * bias)[0])
                logit = 0.7 * z[i] @ z[j] + own
                terms.append(math.log1p(math.exp(-logit if batch.adj[row, i, j] else logit)))
                terms[-1] += math.log1p(math.exp(place @ (z[i] - z[j])))
        errors = 10 * mu[row, :n].numpy() @ slope.T + intercept - targets[row, :n]
        expected = (n * np.mean(terms) if terms else 0) + STRUCTURE_WEIGHT * np.square(errors).sum() / 2
        assert float(cost[row].detach()) == pytest.approx(expected)


def test_the_draft_teaches_the_encoder_where_nodes_are_at_any_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objectives, "STRUCTURE_WEIGHT", 0.0)
    network, batch = small_network("default", encoder="residual"), small_batch()
    posterior = network.encode(batch, normal(3, 7, network.noise_features))
    # With few units the means of a node may be equal; those of a smaller scale cost the same.
    small = NodeNormal(0.25 * posterior.mu + 3.0, posterior.log_sigma, batch.mask)
    cost = draft_cost(network, batch, posterior)

    assert torch.allclose(cost, draft_cost(network, batch, small))
    cost.sum().backward()
    gradients = [parameter.grad for parameter in network.encoder.parameters()]
    assert all(gradient is not None and gradient.abs().sum() > 0 for gradient in gradients[:2])
