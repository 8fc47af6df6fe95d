"""Training objectives: reconstruction, ELBO (eq. 5) and the log-weights of the marginal likelihood (eq. 4)."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from ..autoregressive.decoder import AutoregressiveDecoder
from ..data.batch import GraphBatch
from ..nn.distributions import EdgeBernoulli, EdgeDistribution, NodeNormal
from ..nn.path_lengths import structural_features
from .model import GraphNetwork

__all__ = [
    "autoregressive_bound",
    "autoregressive_log_weights",
    "draft_cost",
    "elbo",
    "log_likelihood",
    "log_weights",
    "reconstruction",
    "weight_terms",
]

# Posterior means of a smaller scale are not scaled up further.
LEAST_SCALE = 1e-3
# The weight of structural features beside pairs of nodes. With more, means would tell little about positions.
STRUCTURE_WEIGHT = 0.05


def _log_likelihood(graphs: EdgeDistribution, adj: Tensor, convention: str) -> Tensor:
    """log p(A | Z), or the score of all cells in convention ``paper``, with shape :math:`(*,)`."""
    if convention == "pairs":
        return graphs.log_prob(adj)
    assert isinstance(graphs, EdgeBernoulli), "weighted graphs have no convention 'paper'"

    return graphs.log_score_of_cells(adj)


def log_likelihood(network: GraphNetwork, batch: GraphBatch, z: Tensor, convention: str = "pairs") -> Tensor:
    """log p(A | Z) of graphs with latents :math:`(B, N, D)`, nodes in decoding order if there is one, shape (B,)."""
    if network.config.is_autoregressive:
        return network.decode_autoregressive(z, batch.x, batch.sizes).log_prob_of(batch)

    return _log_likelihood(network.decode(z, batch.x, batch.mask), batch.adj, convention)


def reconstruction(network: GraphNetwork, batch: GraphBatch, noise: Tensor, convention: str = "pairs") -> Tensor:
    """The log-probability of graphs given the mean of their posterior, with shape :math:`(B,)`.

    Graphite-AE and GAE maximise it. The arguments are those of :func:`elbo`.
    """
    posterior = network.encode(batch, noise)
    z = posterior.mu * batch.mask.unsqueeze(-1).to(posterior.mu)

    return _log_likelihood(network.decode(z, batch.x, batch.mask), batch.adj, convention)


def elbo(
    network: GraphNetwork, batch: GraphBatch, noise: Tensor, epsilon: Tensor, convention: str = "pairs"
) -> tuple[Tensor, Tensor]:
    r"""The two terms of the evidence lower bound (eq. 5), from one sample.

    .. math:: \log p(A) \ge E_q[\log p(A | Z)] - KL(q(Z | A) \| p(Z))

    Arguments:
        network: The model.
        batch: The graphs.
        noise: Noise for ``random`` and ``spectral`` features, with shape :math:`(B, N, R)`.
        epsilon: Standard normal noise, with shape :math:`(B, N, D)`.
        convention: ``pairs``, or ``paper`` to score all cells of the padded matrix.

    Returns:
        The log-likelihood and the KL divergence, each with shape :math:`(B,)`.
    """
    posterior = network.encode(batch, noise)
    graphs = network.decode(posterior.sample(epsilon), batch.x, batch.mask)

    return _log_likelihood(graphs, batch.adj, convention), posterior.kl_to_standard()


def weight_terms(
    network: GraphNetwork, batch: GraphBatch, noise: Tensor, epsilon: Tensor, convention: str = "pairs"
) -> tuple[Tensor, Tensor]:
    r"""The two terms of :func:`log_weights`, :math:`\log p(A | Z_k)` and :math:`\log \bar{q}(Z_k | A) - \log p(Z_k)`.

    The mean of the second estimates the KL divergence of the mixture from the prior.
    """
    mixture = network.encode(batch, noise)
    each = NodeNormal(mixture.mu.unsqueeze(1), mixture.log_sigma.unsqueeze(1), batch.mask)
    z = each.sample(epsilon).flatten(0, 1)

    log_likelihood = _log_likelihood(network.decode(z, batch.x, batch.mask), batch.adj, convention)
    components = [
        NodeNormal(mu, log_sigma, batch.mask).log_prob(z)
        for mu, log_sigma in zip(mixture.mu, mixture.log_sigma, strict=True)
    ]
    log_proposal = torch.stack(components).logsumexp(0) - math.log(len(components))

    return log_likelihood, log_proposal - network.prior(batch.mask).log_prob(z)


def log_weights(
    network: GraphNetwork, batch: GraphBatch, noise: Tensor, epsilon: Tensor, convention: str = "pairs"
) -> Tensor:
    r"""Importance weights of the marginal likelihood (eq. 4).

    .. math:: \log w_k = \log p(A | Z_k) + \log p(Z_k) - \log \frac{1}{M} \sum_m q(Z_k | A, e_m)

    With :math:`M` draws of its ``random`` features :math:`e_m` the encoder is a mixture of proposals. Dividing by the
    whole mixture (the balance heuristic of Veach & Guibas, 1995) keeps the mean weight equal to :math:`p(A)` and covers
    posterior modes that single proposals miss.

    ``noise`` has shape :math:`(M, B, N, R)` and ``epsilon``, with S samples per proposal, :math:`(M, S, B, N, D)`; the
    log-weights have shape :math:`(M S, B)`.
    """
    log_likelihood, log_ratio = weight_terms(network, batch, noise, epsilon, convention)

    return log_likelihood - log_ratio


def autoregressive_bound(
    network: GraphNetwork, batch: GraphBatch, posterior: NodeNormal, epsilon: Tensor
) -> tuple[Tensor, Tensor]:
    r"""The two terms of the evidence lower bound of an autoregressive model.

    The graphs have their nodes in decoding order; ``epsilon`` is standard normal, with shape :math:`(B, N, D)`.

    Returns:
        The log-likelihood, with shape :math:`(B,)`, and the KL divergence of each dimension, with shape :math:`(B, D)`.
    """
    graphs = network.decode_autoregressive(posterior.sample(epsilon), batch.x, batch.sizes)

    return graphs.log_prob_of(batch), posterior.kl_by_dimension()


def draft_cost(network: GraphNetwork, batch: GraphBatch, posterior: NodeNormal) -> Tensor:
    r"""The cost of reconstructing graphs from their posterior means, in nats, with shape :math:`(B,)`.

    An autoregressive decoder knows the earlier edges, so it needs little of what latents could tell, and the KL
    divergence holds their means close to zero. As in an autoencoder, edges that are independent given the means (eq.
    10), standardised over the nodes of each graph, make these tell where nodes are, at any scale; the cost has no part
    in the likelihood. A second term asks which node of a pair was added first: where the structure shows it, as it
    shows the age of nodes in preferential attachment, the means do too. A third one asks for structural features of
    nodes (:func:`.structural_features`), so that the average means of graphs differ as their properties do.

    The mean cost of a pair is multiplied by the number of nodes.
    """
    assert isinstance(network.decoder, AutoregressiveDecoder)
    head = network.decoder.draft_head
    is_real, nodes = batch.mask.unsqueeze(-1).to(posterior.mu), batch.sizes.to(posterior.mu)
    count = nodes[:, None, None].clamp_min(1)
    mu = posterior.mu * is_real
    mu = (mu - mu.sum(-2, keepdim=True) / count) * is_real
    scale = (mu.square().sum(-2, keepdim=True) / count).clamp_min(LEAST_SCALE**2).sqrt()
    z = mu / scale
    pairs = (batch.mask.unsqueeze(-1) & batch.mask.unsqueeze(-2)).triu(1)
    costs = F.binary_cross_entropy_with_logits(head(z), (batch.adj > 0).to(z), reduction="none")
    costs = (costs + F.softplus(-head.order_logits(z))) * pairs
    pairwise = nodes * costs.sum((-2, -1)) / pairs.sum((-2, -1)).clamp_min(1)

    errors = head.structure_errors(posterior.mu, structural_features(batch).to(posterior.mu)) * batch.mask

    return pairwise + STRUCTURE_WEIGHT * errors.sum(-1)


def autoregressive_log_weights(
    network: GraphNetwork,
    batch: GraphBatch,
    noise: Tensor,
    epsilon: Tensor,
    log_q: Tensor,
    *,
    prior_fraction: float = 0.0,
    from_prior: Tensor | None = None,
) -> Tensor:
    r"""Importance weights of an autoregressive model over node orderings and latents, with shape :math:`(B,)`.

    .. math:: \log w = \log p(A_\sigma | Z) - \log n! - \log q(\sigma | A) + \log p(Z) - \log q(Z | A)

    The mean weight is :math:`\frac{1}{n!} \sum_\sigma p(A_\sigma)` over the orderings that the proposal can produce:
    the exchangeable :math:`p(A)` if these are all, else a lower bound, tight if the model has learned the rule.

    The graphs have their nodes in decoding order, and ``log_q`` is the log-probability of that ordering, with shape
    :math:`(B,)`. With a ``prior_fraction``, latents are proposed by a defensive mixture of posterior and prior, which
    bounds the weights; ``from_prior`` marks those from the prior, with shape :math:`(B,)`. Other arguments are those
    of :func:`elbo`.
    """
    posterior, prior = network.encode(batch, noise), network.prior(batch.mask)
    z = posterior.sample(epsilon)
    if from_prior is not None:
        z = torch.where(from_prior[:, None, None], prior.sample(epsilon), z)
    log_likelihood = network.decode_autoregressive(z, batch.x, batch.sizes).log_prob_of(batch)
    log_orders = torch.lgamma(batch.sizes.to(log_likelihood) + 1) + log_q

    log_prior, log_proposal = prior.log_prob(z), posterior.log_prob(z)
    if prior_fraction:
        log_proposal = torch.logaddexp(math.log1p(-prior_fraction) + log_proposal, math.log(prior_fraction) + log_prior)

    return log_likelihood - log_orders + log_prior - log_proposal
