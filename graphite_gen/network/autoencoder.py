"""Autoencoders of one large network: the equations of ``nn`` over a sparse graph and sparse node features."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ..nn.conv import GraphConv
from ..nn.distributions import NodeNormal
from ..nn.encoder import mean_field_posterior
from ..nn.one_shot import GCNRefinement, Skip, refine_iteratively
from ..nn.operators import Graph, PageRankGraph, SparseGraph
from .hyperparameters import LinkSettings
from .node_inputs import NodeInputs
from .pair_logits import PairLogits

__all__ = ["InputConv", "LinkNetwork", "PairDecoder", "build_link_network", "build_pair_decoder"]

# Initial scale of embeddings, large enough to keep nodes distinguishable after propagation.
EMBEDDING_SCALE = 4.0


class InputConv(nn.Module):
    r"""First graph convolution :math:`H^1 = \tilde{A} H^0 W + b` (eq. 3), of inputs that are never made dense."""

    def __init__(self, in_features: int, out_features: int, scale: float = 1.0) -> None:
        super().__init__()

        # Rows of the inputs have a norm near one for any number of columns: rows of the product then have the scale.
        self.weight = nn.Parameter(torch.randn(in_features, out_features) * (scale / math.sqrt(out_features)))
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, graph: Graph, inputs: NodeInputs) -> Tensor:
        return graph @ (inputs @ self.weight) + self.bias


class LinkEncoder(nn.Module):
    r"""The encoder :math:`\mu, \sigma = GNN(A, X)` (eqs. 6-7): a graph convolution, then personalised PageRank (APPNP).

    The last layer propagates several steps, since a missing edge often closes a long cycle. One step with teleport
    probability 0 is the two-layer GCN of the paper. Without a hidden layer the weights are node embeddings (or
    embeddings of features), which are propagated; that is enough for nodes without features.
    """

    def __init__(self, in_features: int, width: int, latent: int, hops: int, teleport: float) -> None:
        super().__init__()

        self.hidden = InputConv(in_features, width) if width else None
        self.mu = GraphConv(width, latent) if width else InputConv(in_features, latent, EMBEDDING_SCALE)
        # Without a hidden layer all nodes share their standard deviations: embeddings of them would double the weights.
        self.log_sigma = GraphConv(width, latent) if width else nn.Parameter(torch.full((latent,), -1.0))
        self.hops = hops
        self.teleport = teleport

    def forward(self, graph: SparseGraph, inputs: NodeInputs) -> NodeNormal:
        """Posterior of the latents, with shape :math:`(N, D)`, given a normalised graph and node inputs."""
        return self.posterior(graph, inputs if self.hidden is None else torch.relu(self.hidden(graph, inputs)))

    def propagation(self, graph: SparseGraph) -> Graph:
        """The operator of the last layer."""
        return PageRankGraph(graph, self.teleport, self.hops)

    def posterior(self, graph: SparseGraph, h: Tensor | NodeInputs) -> NodeNormal:
        """Posterior of the latents given the hidden states, or the inputs without a hidden layer."""
        propagation = self.propagation(graph)
        mu = self.mu(propagation, h)
        log_sigma = self.log_sigma if isinstance(self.log_sigma, Tensor) else self.log_sigma(propagation, h)

        return mean_field_posterior(mu, log_sigma, None)


class BiasedProduct(nn.Module):
    r"""An inner product with a bias per node and a global one (beyond the paper).

    .. math:: l_{ij} = \sum_k s_k z_{ik} z_{jk} + b_i + b_j + c

    The biases represent degrees and density; negative signs :math:`s_k` represent disassortative mixing. A plain inner
    product can represent neither.
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
    r"""The iterative decoder (eqs. 8-9) with low-rank logits (eq. 10), in :math:`O(N)`, for any :math:`N`."""

    def __init__(self, latent: int, width: int, rounds: int, skip: Skip, head: BiasedProduct | None) -> None:
        super().__init__()

        self.rounds = nn.ModuleList(GCNRefinement(latent, width, width) for _ in range(rounds))
        self.skip = skip
        self.head = head

    def forward(self, z: Tensor, x: Tensor) -> PairLogits:
        """Log-odds of all pairs of latents :math:`(N, D)` and node features :math:`(N, W)`, unused without rounds."""
        z = refine_iteratively(self.rounds, self.skip, z, x, None)

        return PairLogits.inner_product(z) if self.head is None else self.head(z)


class LinkNetwork(nn.Module):
    r"""An encoder and a decoder of one network: Graphite, or VGAE without refinement rounds.

    The node features of the decoder are a learned low-dimensional projection :math:`X W` of the inputs. Its weights
    ``evidence`` are a key of saved models.
    """

    def __init__(self, encoder: LinkEncoder, evidence: nn.Parameter, decoder: PairDecoder) -> None:
        super().__init__()

        self.encoder = encoder
        self.evidence = evidence
        self.decoder = decoder

    def encode(self, graph: SparseGraph, inputs: NodeInputs) -> NodeNormal:
        """Posterior of the latents (eq. 7), with shape :math:`(N, D)`, given a normalised graph."""
        return self.encoder(graph, inputs)

    def decode(self, z: Tensor, inputs: NodeInputs) -> PairLogits:
        """Log-odds of all pairs (eqs. 8-10) given latents of shape :math:`(N, D)`."""
        return self.decoder(z, inputs @ self.evidence)

    def reconstruct(self, graph: SparseGraph, inputs: NodeInputs) -> PairLogits:
        """Log-odds of all pairs given the posterior mean of the latents."""
        return self.decode(self.encode(graph, inputs).mu, inputs)


def build_link_network(settings: LinkSettings, in_features: int, seed: int) -> LinkNetwork:
    """Build an autoencoder with weights initialised from a seed."""
    # Layers draw from torch's global generator, whose state is restored for the caller.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = LinkEncoder(in_features, settings.width, settings.latent, settings.hops, settings.teleport)
        evidence = torch.empty(in_features, settings.projection_width)
        if settings.projection_width:
            nn.init.xavier_uniform_(evidence)

        return LinkNetwork(encoder, nn.Parameter(evidence), build_pair_decoder(settings))


def build_pair_decoder(settings: LinkSettings) -> PairDecoder:
    """Build a decoder with weights from torch's global generator."""
    # A quarter of the dimensions is enough for disassortative mixing.
    negative = settings.latent // 4 if settings.head == "signed" else 0

    return PairDecoder(
        settings.latent,
        settings.decoder_width,
        settings.refinement_rounds,
        Skip(settings.skip, settings.skip_weight),
        None if settings.head == "inner" else BiasedProduct(settings.latent, negative),
    )
