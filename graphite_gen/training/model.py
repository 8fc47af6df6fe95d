"""The four models of the paper and the autoregressive one, assembled from shared parts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from ..autoregressive.decoder import AutoregressiveDecoder
from ..autoregressive.distribution import AutoregressiveGraphs
from ..autoregressive.heads import Attributes
from ..config import ModelConfig
from ..data.batch import GraphBatch, collate
from ..data.schema import CodedGraph
from ..graph import SimpleGraph
from ..nn.distributions import EdgeBernoulli, EdgeDistribution, EdgeNormal, NodeNormal
from ..nn.encoder import GCNStack, GraphEncoder, NodeFeatures, ResidualStack
from ..nn.one_shot import (
    GCNRefinement,
    GraphiteDecoder,
    InnerProduct,
    LatentMLP,
    ResidualRefinement,
    SignedInnerProduct,
    Skip,
)
from ..nn.path_lengths import structural_features

__all__ = ["GraphNetwork", "build_network", "standardise_structure", "start_at_density"]


LEAST_STATE = 8
# Graphs whose structural features are standardised, and the most cells of their padded matrices.
DESCRIBED, DESCRIBED_CELLS = 500, 1 << 21


class GraphNetwork(nn.Module):
    """An encoder, a prior and a decoder: Graphite-VAE, Graphite-AE, VGAE or GAE, one-shot or autoregressive.

    Without an encoder the posterior is the prior, so latents are noise.
    """

    def __init__(
        self, config: ModelConfig, encoder: GraphEncoder | None, decoder: GraphiteDecoder | AutoregressiveDecoder
    ) -> None:
        super().__init__()

        self.config = config
        self.encoder = encoder
        self.decoder = decoder
        self.log_scale = nn.Parameter(torch.zeros(())) if config.observation == "normal" else None

    @property
    def noise_features(self) -> int:
        """The number of random features per node that the encoder reads."""
        return 0 if self.encoder is None else self.encoder.features.noise_features

    def encode(self, batch: GraphBatch, noise: Tensor) -> NodeNormal:
        """The posterior of the latents (eq. 7), given noise for random features of shape :math:`(*, B, N, R)`."""
        if self.encoder is None:
            return self.prior(batch.mask)
        posterior: NodeNormal = self.encoder(batch, noise)

        return posterior

    def prior(self, mask: Tensor) -> NodeNormal:
        """A standard normal per real node, for a mask of shape :math:`(*, N)`."""
        return NodeNormal.standard(mask, self.config.latent, next(self.parameters()).dtype)

    def decode(self, z: Tensor, x: Tensor, mask: Tensor) -> EdgeDistribution:
        """The one-shot distribution over graphs given latents of shape :math:`(*, N, D)` (eqs. 8-10)."""
        assert isinstance(self.decoder, GraphiteDecoder), "the decoder is autoregressive"
        logits = self.decoder(z, x, mask)

        if self.log_scale is None:
            return EdgeBernoulli(logits, mask)
        return EdgeNormal(logits, self.log_scale, mask)

    def decode_autoregressive(self, z: Tensor, x: Tensor, sizes: Tensor) -> AutoregressiveGraphs:
        """The autoregressive distribution over graphs, given latents and node features in decoding order."""
        assert isinstance(self.decoder, AutoregressiveDecoder), "the decoder is one-shot"

        return AutoregressiveGraphs(self.decoder, z, x, sizes)


def build_network(config: ModelConfig, seed: int = 0) -> GraphNetwork:
    """The network of a config, with weights initialised by a seed."""
    # Layers are initialised from torch's global generator, whose state is restored afterwards.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if not config.is_autoregressive:
            return GraphNetwork(config, _encoder(config), _decoder(config))
        decoder = AutoregressiveDecoder(
            config.latent,
            config.node_features + config.conditions,
            config.width,
            config.rounds,
            config.skip_weight,
            config.dropout,
            reads_latents=config.encoder != "none",
            attributes=Attributes(
                config.node_labels, config.edge_labels, config.directed, config.weights, config.feature_kinds
            ),
        )
        return GraphNetwork(config, None if config.encoder == "none" else _encoder(config), decoder)


def start_at_density(network: GraphNetwork, graphs: Sequence[SimpleGraph]) -> None:
    """Set the bias of a decoder to the log-odds of an edge, and the scales of weights and generated node features."""
    if network.config.observation != "bernoulli":
        return
    pairs = sum(math.comb(graph.nodes, 2) for graph in graphs)
    density = (sum(len(graph.edges) for graph in graphs) + 0.5) / (pairs + 1)
    network.decoder.start_at(math.log(density / (1 - density)))
    if not isinstance(network.decoder, AutoregressiveDecoder):
        return
    standardise_structure(network, graphs)
    coded = [graph for graph in graphs if isinstance(graph, CodedGraph)]
    if network.decoder.edge_weight is not None:
        values = np.concatenate([graph.arc_weights.ravel() for graph in coded if graph.arc_weights is not None])
        network.decoder.edge_weight.standardise_like(torch.from_numpy(values[~np.isnan(values)]))
    if network.decoder.node_feature is not None:
        features = np.concatenate([graph.generated for graph in coded if graph.generated is not None])
        network.decoder.node_feature.standardise_like(torch.from_numpy(features))


def standardise_structure(network: GraphNetwork, graphs: Sequence[SimpleGraph]) -> None:
    """Set the scales of structural features to those of graphs, of which some are read if they are many or large."""
    if network.encoder is None or not isinstance(network.decoder, AutoregressiveDecoder):
        return
    head = network.decoder.draft_head
    largest = max(graph.nodes for graph in graphs)
    most = min(DESCRIBED, max(1, DESCRIBED_CELLS // largest**2))
    batch = collate(graphs[:: math.ceil(len(graphs) / most)])
    head.standardise_like(structural_features(batch)[batch.mask].to(head.mean))


def _encoder(config: ModelConfig) -> GraphEncoder:
    given = config.node_features + config.conditions
    features = NodeFeatures(
        config.encoder_features, config.max_nodes, config.random_features, given, config.node_labels
    )
    stack = GCNStack if config.encoder == "gcn" else ResidualStack

    return GraphEncoder(features, stack(features.out_features, config.width, 2 * config.latent, config.encoder_layers))


def _decoder(config: ModelConfig) -> GraphiteDecoder:
    # The refinements of the paper have the width of the latents; residual ones that of the hidden layers.
    residual = config.refinement == "residual"
    state = config.width if residual and config.mlp else config.latent
    if config.head == "signed" and config.mlp:
        # The signed head normalises every state: of one or two dimensions, nothing or a sign would be left.
        state = max(state, LEAST_STATE)
    identity = config.max_nodes if "identity" in config.decoder_features else 0
    features = config.node_features + identity
    mlp = LatentMLP(config.latent, config.width, state, reads_size=residual) if config.mlp else None
    rounds = (
        [ResidualRefinement(state, config.latent, features) for _ in range(config.refinement_rounds)]
        if residual
        else [GCNRefinement(state, config.width, features) for _ in range(config.refinement_rounds)]
    )
    head = SignedInnerProduct(state, config.head_rank) if config.head == "signed" else InnerProduct()

    skip = Skip(config.skip, config.skip_weight, config.outer_skip)

    return GraphiteDecoder(mlp, rounds, skip, head, identity)
