"""Layers, encoders and decoders; small, built from plain numbers, without memory."""

from .conv import GraphConv
from .encoder import GraphEncoder, NodeFeatures
from .one_shot import GCNRefinement, GraphiteDecoder, InnerProduct, ResidualRefinement, SignedInnerProduct, Skip

__all__ = [
    "GCNRefinement",
    "GraphConv",
    "GraphEncoder",
    "GraphiteDecoder",
    "InnerProduct",
    "NodeFeatures",
    "ResidualRefinement",
    "SignedInnerProduct",
    "Skip",
]
