"""The autoencoders of one large graph: the paper's parts over a sparse graph and sparse features."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..distributions import NodeNormal
from ..nn import GCNRefinement, GraphConv, Skip
from ..nn.encoder import MAX_LOG_SIGMA
from ..operators import Graph
from ..operators.pagerank import PageRankGraph
from .inputs import NodeInputs
from .pairs import PairLogits
from .settings import LinkSettings

__all__ = [
    "BiasedProduct",
    "InputConv",
    "LinkEncoder",
    "LinkNetwork",
    "RefiningDecoder",
    "build_link_network",
]


# Means start far enough apart to tell nodes by, after they have been passed on.
EMBEDDING_SCALE = 4.0


class InputConv(nn.Module):
    r"""The first graph convolution :math:`H^1 = \tilde{A} H^0 W + b` (eq. 3), of inputs that are never made dense."""

    def __init__(self, in_features: int, out_features: int, scale: float = 1.0) -> None:
        super().__init__()

        # Rows of the inputs have length one, however many columns there are: so have those of the product, times the
        # scale.
        self.weight = nn.Parameter(torch.randn(in_features, out_features) * (scale / math.sqrt(out_features)))
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, graph: Graph, inputs: NodeInputs) -> Tensor:
        return graph @ (inputs @ self.weight) + self.bias


class LinkEncoder(nn.Module):
    r"""The encoder :math:`\mu, \sigma = GNN(A, X)` (eqs. 6-7): a hidden layer of near neighbours, then far ones.

    The last layer listens by personalised PageRank, as an edge that is to be predicted mostly closes a long way round.
    One hop without teleport is the two-layer GCN of the paper. Without a hidden layer, each input has an embedding of
    its own that is passed on: nodes without features need no more.
    """

    def __init__(self, in_features: int, width: int, latent: int, hops: int, teleport: float) -> None:
        super().__init__()

        self.hidden = InputConv(in_features, width) if width else None
        self.mu = GraphConv(width, latent) if width else InputConv(in_features, latent, EMBEDDING_SCALE)
        # An embedding of deviations would double the weights: all nodes share theirs.
        self.log_sigma = GraphConv(width, latent) if width else nn.Parameter(torch.full((latent,), -1.0))
        self.hops = hops
        self.teleport = teleport

    def forward(self, graph: Graph, inputs: NodeInputs, thin: Callable[[Tensor], Tensor] | None = None) -> NodeNormal:
        """The posterior of the latents, with shape :math:`(N, D)`.

        Arguments:
            graph: The normalised graph.
            inputs: What the nodes bring along.
            thin: What is done to hidden units, such as dropout.
        """
        far = PageRankGraph(graph, self.teleport, self.hops)
        h: Tensor | NodeInputs = inputs
        if self.hidden is not None:
            h = torch.relu(self.hidden(graph, inputs))
            h = h if thin is None else thin(h)
        mu = self.mu(far, h)
        log_sigma = self.log_sigma.expand_as(mu) if isinstance(self.log_sigma, Tensor) else self.log_sigma(far, h)
        mask = torch.ones(len(mu), dtype=torch.bool, device=mu.device)

        return NodeNormal(mu, MAX_LOG_SIGMA * torch.tanh(log_sigma / MAX_LOG_SIGMA), mask)


class RefiningDecoder(nn.Module):
    r"""Rounds of refinement over the low-rank graph of the latents (eqs. 8-9), in :math:`O(N)`.

    The second part of :math:`[Z | X]` is :math:`X W`, learned and narrow, which any first layer would make of it.
    """

    def __init__(self, in_features: int, latent: int, width: int, rounds: int, skip: Skip) -> None:
        super().__init__()

        self.evidence = nn.Parameter(nn.init.xavier_uniform_(torch.empty(in_features, width))) if rounds else None
        self.rounds = nn.ModuleList(GCNRefinement(latent, width, width) for _ in range(rounds))
        self.skip = skip

    def forward(self, z: Tensor, inputs: NodeInputs) -> Tensor:
        """Refined states, with the shape of the latents :math:`(N, D)`."""
        if self.evidence is None:
            return z
        x = inputs @ self.evidence
        mask = torch.ones(len(z), dtype=torch.bool, device=z.device)
        for refine in self.rounds:
            z = self.skip(z, refine(z, x, mask))

        return z


class BiasedProduct(nn.Module):
    r"""An inner product with a bias per node and one for the density (beyond the paper).

    .. math:: l_{ij} = z_i^T z_j + b_i + b_j + c

    A plain inner product cannot say that a node has many neighbours of all kinds, nor that a graph is sparse.
    """

    def __init__(self, latent: int) -> None:
        super().__init__()

        self.bias = nn.Linear(latent, 1, bias=False)
        self.shift = nn.Parameter(torch.zeros(()))

    def forward(self, z: Tensor) -> PairLogits:
        return PairLogits(z, z.new_ones(z.shape[1]), self.bias(z).squeeze(-1), self.shift)


class LinkNetwork(nn.Module):
    """An encoder and a decoder of one graph: Graphite or VGAE by its rounds."""

    def __init__(self, encoder: LinkEncoder, decoder: RefiningDecoder, head: BiasedProduct | None) -> None:
        super().__init__()

        self.encoder = encoder
        self.decoder = decoder
        self.head = head

    def encode(self, graph: Graph, inputs: NodeInputs) -> NodeNormal:
        """The posterior of the latents (eq. 7), of a normalised graph; their shape is :math:`(N, D)`."""
        posterior: NodeNormal = self.encoder(graph, inputs)

        return posterior

    def decode(self, z: Tensor, inputs: NodeInputs) -> PairLogits:
        """The log-odds of all pairs (eqs. 8-10) given latents of shape :math:`(N, D)`."""
        states = self.decoder(z, inputs)
        logits: PairLogits = PairLogits.inner_product(states) if self.head is None else self.head(states)

        return logits

    def reconstruct(self, graph: Graph, inputs: NodeInputs) -> PairLogits:
        """The log-odds of all pairs given the mean of the latents."""
        return self.decode(self.encode(graph, inputs).mu, inputs)


def build_link_network(settings: LinkSettings, in_features: int, seed: int) -> LinkNetwork:
    """The network of some settings, with the fresh weights of a seed."""
    # Layers draw their weights from torch's own generator: the user's must come out as it was.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)

        return LinkNetwork(
            LinkEncoder(in_features, settings.width, settings.latent, settings.hops, settings.teleport),
            RefiningDecoder(
                in_features,
                settings.latent,
                settings.decoder_width,
                settings.refinement_rounds,
                Skip(settings.skip, settings.skip_weight),
            ),
            BiasedProduct(settings.latent) if settings.head == "biased" else None,
        )
