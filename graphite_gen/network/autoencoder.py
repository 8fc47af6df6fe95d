"""The autoencoders of one large graph: the paper's parts over a sparse graph and sparse features."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ..nn import GCNRefinement, GraphConv, Skip
from ..nn.distributions import NodeNormal
from ..nn.encoder import MAX_LOG_SIGMA
from ..nn.operators import Graph, PageRankGraph, SparseGraph
from .node_inputs import NodeInputs
from .pair_logits import PairLogits
from .settings import LinkSettings

__all__ = [
    "BiasedProduct",
    "InputConv",
    "LinkEncoder",
    "LinkNetwork",
    "PairDecoder",
    "build_link_network",
    "build_pair_decoder",
]


# Means start far enough apart to tell nodes by, after they have been passed on.
EMBEDDING_SCALE = 4.0


class InputConv(nn.Module):
    r"""The first graph convolution :math:`H^1 = \tilde{A} H^0 W + b` (eq. 3), of inputs that are never made dense."""

    def __init__(self, in_features: int, out_features: int, scale: float = 1.0) -> None:
        super().__init__()

        # Rows of the inputs are about one long, however many columns there are: so are those of the product, times the
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

    def forward(self, graph: SparseGraph, inputs: NodeInputs) -> NodeNormal:
        """The posterior of the latents, with shape :math:`(N, D)`, of a normalised graph and what its nodes bring."""
        return self.posterior(graph, self.hidden_states(graph, inputs))

    def hidden_states(self, graph: SparseGraph, inputs: NodeInputs) -> Tensor | NodeInputs:
        """The units of the hidden layer, with shape :math:`(N, W)`, or the inputs where there is none."""
        return inputs if self.hidden is None else torch.relu(self.hidden(graph, inputs))

    def far(self, graph: SparseGraph) -> Graph:
        """The graph that the last layer listens over."""
        return PageRankGraph(graph, self.teleport, self.hops)

    def posterior(self, graph: SparseGraph, h: Tensor | NodeInputs) -> NodeNormal:
        """The posterior given the units of the hidden layer."""
        far = self.far(graph)
        mu = self.mu(far, h)
        log_sigma = self.log_sigma if isinstance(self.log_sigma, Tensor) else self.log_sigma(far, h)
        mask = torch.ones(len(mu), dtype=torch.bool, device=mu.device)

        return NodeNormal(mu, MAX_LOG_SIGMA * torch.tanh(log_sigma / MAX_LOG_SIGMA), mask)


class BiasedProduct(nn.Module):
    r"""An inner product with a bias per node and one for the density (beyond the paper).

    .. math:: l_{ij} = \sum_k s_k z_{ik} z_{jk} + b_i + b_j + c

    A plain inner product cannot say that a node has many neighbours of all kinds, nor that a graph is sparse. Where all
    signs are positive, neither can it say that nodes are tied to others and not to their like.
    """

    def __init__(self, latent: int, negative: int = 0) -> None:
        super().__init__()

        self.negative = negative
        self.bias = nn.Linear(latent, 1, bias=False)
        self.shift = nn.Parameter(torch.zeros(()))

    def forward(self, z: Tensor) -> PairLogits:
        sign = z.new_ones(z.shape[1])
        sign[len(sign) - self.negative :] = -1

        return PairLogits(z, sign, self.bias(z).squeeze(-1), self.shift)


class PairDecoder(nn.Module):
    r"""Rounds of refinement over the low-rank graph of the latents (eqs. 8-9), then logits (eq. 10), in :math:`O(N)`.

    It knows nodes by their latents and what else is said of them, so it decodes any number of them.
    """

    def __init__(self, latent: int, width: int, rounds: int, skip: Skip, head: BiasedProduct | None) -> None:
        super().__init__()

        self.rounds = nn.ModuleList(GCNRefinement(latent, width, width) for _ in range(rounds))
        self.skip = skip
        self.head = head

    def forward(self, z: Tensor, x: Tensor) -> PairLogits:
        """The log-odds of all pairs.

        Arguments:
            z: Latents, with shape :math:`(N, D)`.
            x: The second part of :math:`[Z | X]`, with shape :math:`(N, W)`; not read without rounds.
        """
        mask = torch.ones(len(z), dtype=torch.bool, device=z.device)
        for refine in self.rounds:
            z = self.skip(z, refine(z, x, mask))
        if self.head is None:
            return PairLogits.inner_product(z)
        logits: PairLogits = self.head(z)

        return logits


class LinkNetwork(nn.Module):
    r"""An encoder and a decoder of one graph: Graphite or VGAE by its rounds.

    What the decoder is told of a node besides its latents is :math:`X W`, learned and narrow, which any first layer
    would make of its features.
    """

    def __init__(self, encoder: LinkEncoder, evidence: nn.Parameter, decoder: PairDecoder) -> None:
        super().__init__()

        self.encoder = encoder
        self.evidence = evidence
        self.decoder = decoder

    def encode(self, graph: SparseGraph, inputs: NodeInputs) -> NodeNormal:
        """The posterior of the latents (eq. 7), of a normalised graph; their shape is :math:`(N, D)`."""
        posterior: NodeNormal = self.encoder(graph, inputs)

        return posterior

    def decode(self, z: Tensor, inputs: NodeInputs) -> PairLogits:
        """The log-odds of all pairs (eqs. 8-10) given latents of shape :math:`(N, D)`."""
        logits: PairLogits = self.decoder(z, inputs @ self.evidence)

        return logits

    def reconstruct(self, graph: SparseGraph, inputs: NodeInputs) -> PairLogits:
        """The log-odds of all pairs given the mean of the latents."""
        return self.decode(self.encode(graph, inputs).mu, inputs)


def build_link_network(settings: LinkSettings, in_features: int, seed: int) -> LinkNetwork:
    """The network of some settings, with the fresh weights of a seed."""
    # Layers draw their weights from torch's own generator: the user's must come out as it was.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = LinkEncoder(in_features, settings.width, settings.latent, settings.hops, settings.teleport)
        width = settings.decoder_width if settings.refinement_rounds else 0
        evidence = torch.empty(in_features, width)
        if width:
            nn.init.xavier_uniform_(evidence)

        return LinkNetwork(encoder, nn.Parameter(evidence), build_pair_decoder(settings))


def build_pair_decoder(settings: LinkSettings) -> PairDecoder:
    """The decoder of some settings, with weights of torch's own generator."""
    # A quarter of the dimensions is enough to tell apart those that would not be tied to each other.
    negative = settings.latent // 4 if settings.head == "signed" else 0

    return PairDecoder(
        settings.latent,
        settings.decoder_width,
        settings.refinement_rounds,
        Skip(settings.skip, settings.skip_weight),
        None if settings.head == "inner" else BiasedProduct(settings.latent, negative),
    )
