"""Graphs as things to multiply by: dense, sparse or low-rank."""

from .dense import gcn_normalise
from .low_rank import LowRankGraph
from .protocol import Graph
from .sparse import SparseGraph

__all__ = ["Graph", "LowRankGraph", "SparseGraph", "gcn_normalise"]
