"""Layers, encoders and decoders; small, built from plain numbers, without memory."""

from .conv import GraphConv
from .decoder import GraphiteDecoder
from .encoder import GraphEncoder
from .features import NodeFeatures
from .heads import InnerProduct, SignedInnerProduct
from .refinement import GCNRefinement, ResidualRefinement, Skip

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
