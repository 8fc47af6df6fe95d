"""The encoder: from graphs to the posterior of their latents (eqs. 6-7)."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from ..data.batch import GraphBatch
from .conv import GraphConv, ResidualMessages
from .distributions import NodeNormal
from .operators import gcn_normalise
from .path_lengths import STRUCTURAL_FEATURES, structural_features

__all__ = ["GCNStack", "GraphEncoder", "NodeFeatures", "ResidualStack", "mean_field_posterior", "spectral_features"]

# Posterior standard deviations stay within e^±MAX_LOG_SIGMA, so that no importance weight overflows.
MAX_LOG_SIGMA = 6.0
# Two products with the graph each.
SUBSPACE_STEPS = 6
RIDGE = 1e-3
TINY = 1e-20


def mean_field_posterior(mu: Tensor, log_sigma: Tensor, mask: Tensor | None) -> NodeNormal:
    r"""The posterior :math:`q(Z | A, X) = \prod_i N(z_i | \mu_i, \sigma_i^2)` (eq. 6) of the outputs of eq. 7."""
    return NodeNormal(mu, MAX_LOG_SIGMA * torch.tanh(log_sigma / MAX_LOG_SIGMA), mask)


class NodeFeatures(nn.Module):
    r"""The input features :math:`H^0` of a batch of graphs.

    ``identity`` is the paper's :math:`H^0 = I`, a one-hot code of the node number, for at most ``max_nodes`` nodes.
    ``constant`` and ``degree`` are permutation-invariant. ``random`` breaks symmetries by noise, so the encoder differs
    from draw to draw; the proposal of the NLL is a mixture over draws. ``spectral`` approximates the leading
    eigenvectors of the graph, from the same noise: they show communities and positions (:func:`spectral_features`).
    ``structure`` has path lengths and clustering (:func:`.structural_features`), which few layers cannot compute.
    """

    def __init__(
        self, kinds: tuple[str, ...], max_nodes: int, random_features: int, node_features: int, node_labels: int = 0
    ) -> None:
        super().__init__()

        noise = random_features
        widths = {"identity": max_nodes, "constant": 1, "degree": 4, "random": noise, "spectral": noise}
        widths["structure"] = STRUCTURAL_FEATURES
        self.kinds = kinds
        self.max_nodes = max_nodes
        self.noise_features = noise if {"random", "spectral"} & {*kinds} else 0
        self.node_labels = node_labels
        self.out_features = sum(widths[kind] for kind in kinds) + node_features + node_labels

    def forward(self, batch: GraphBatch, noise: Tensor) -> Tensor:
        """Features with shape :math:`(*, B, N, F)`, zero at padding; the noise has shape :math:`(*, B, N, R)`."""
        parts = [batch.x]
        if batch.labels is not None:
            parts.append(nn.functional.one_hot(batch.labels, self.node_labels).to(noise))
        for kind in self.kinds:
            if kind == "identity":
                parts.append(torch.eye(noise.shape[-2], self.max_nodes, dtype=noise.dtype, device=noise.device))
            elif kind == "constant":
                parts.append(noise.new_ones(1))
            elif kind == "degree":
                parts.append(_degree_features(batch))
            elif kind == "structure":
                parts.append(structural_features(batch))
            else:
                parts.append(noise if kind == "random" else spectral_features(batch, noise))
        features = torch.cat([part.expand(*noise.shape[:-1], -1) for part in parts], dim=-1)

        return features * batch.mask.unsqueeze(-1).to(noise)


def _degree_features(batch: GraphBatch) -> Tensor:
    """Degree and graph size, scaled for graphs of ten to thousands of nodes, with shape :math:`(B, N, 4)`."""
    sizes = batch.sizes.to(batch.adj).unsqueeze(-1).expand(batch.mask.shape)
    degrees = batch.adj.sum(-1)

    return torch.stack(
        [
            degrees / sizes.clamp_min(1),
            torch.log1p(degrees.clamp_min(0)),
            degrees / degrees.sum(-1, keepdim=True).clamp_min(1),
            torch.log1p(sizes) / 3,
        ],
        dim=-1,
    )


@torch.no_grad()
def spectral_features(batch: GraphBatch, noise: Tensor) -> Tensor:
    r"""Approximate leading eigenvectors of :math:`\tilde{A}` (eq. 3), with the shape of the noise.

    A few steps of subspace iteration from the noise, with shape :math:`(*, B, N, R)`: eigenvectors of similar
    eigenvalues stay mixed at random, and signs are random. Columns have norm :math:`\sqrt{n}`, or less where the graph
    has fewer directions.
    """
    graph, basis = gcn_normalise(batch.adj, batch.mask), noise * batch.mask.unsqueeze(-1).to(noise)
    eye = torch.eye(noise.shape[-1], dtype=noise.dtype, device=noise.device)
    for _ in range(SUBSPACE_STEPS):
        basis = graph @ (graph @ basis)
        gram = basis.mT @ basis
        # The ridge keeps directions small that a graph of few nodes does not have.
        scale = torch.diagonal(gram, dim1=-2, dim2=-1).mean(-1)[..., None, None].clamp_min(TINY)
        factor = torch.linalg.cholesky(gram / scale + RIDGE * eye)
        basis = torch.linalg.solve_triangular(factor.mT, basis / scale.sqrt(), upper=True, left=False)

    return basis * batch.sizes.to(noise)[:, None, None].sqrt()


class GCNStack(nn.Module):
    """Graph convolutions with ReLU between them, as in Kipf & Welling (2016)."""

    def __init__(self, in_features: int, width: int, out_features: int, layers: int) -> None:
        super().__init__()

        sizes = [in_features, *[width] * layers]
        self.hidden = nn.ModuleList(GraphConv(a, b) for a, b in pairwise(sizes))
        self.out = GraphConv(sizes[-1], out_features)

    def forward(self, batch: GraphBatch, h: Tensor) -> Tensor:
        graph = gcn_normalise(batch.adj, batch.mask)
        for layer in self.hidden:
            h = torch.relu(layer(graph, h))

        return self.out(graph, h)


class ResidualStack(nn.Module):
    """Residual message passing over the adjacency matrix and its normalised form (beyond the paper)."""

    def __init__(self, in_features: int, width: int, out_features: int, layers: int) -> None:
        super().__init__()

        self.inp = nn.Linear(in_features, width)
        self.hidden = nn.ModuleList(ResidualMessages(width, graphs=2) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, out_features)

    def forward(self, batch: GraphBatch, h: Tensor) -> Tensor:
        # The factor 1/3 keeps sums over neighbours on the scale of the node states.
        graphs = (batch.adj / 3, gcn_normalise(batch.adj, batch.mask))
        h = self.inp(h)
        for layer in self.hidden:
            h = layer(graphs, h, batch.mask)

        return self.out(self.norm(h))


class GraphEncoder(nn.Module):
    r"""The encoder :math:`\mu, \sigma = GNN(A, X)` (eqs. 6-7)."""

    def __init__(self, features: NodeFeatures, stack: GCNStack | ResidualStack) -> None:
        super().__init__()

        self.features = features
        self.stack = stack

    def forward(self, batch: GraphBatch, noise: Tensor) -> NodeNormal:
        """Posterior of latents with shape :math:`(*, B, N, D)`; the noise feeds the ``random`` features."""
        mu, log_sigma = self.stack(batch, self.features(batch, noise)).chunk(2, dim=-1)

        return mean_field_posterior(mu, log_sigma, batch.mask)
