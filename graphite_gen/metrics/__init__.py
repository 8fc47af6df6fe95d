"""How good sampled graphs are: descriptors, their distances, and what is valid, unique and novel."""

from .classifier import ClassifierScore, tell_apart
from .descriptors import DESCRIPTORS, describe
from .isomorphism import are_isomorphic, find_isomorphic, isomorphism_classes
from .mmd import CONVENTIONS, MMDEstimate, MMDRow, compare_graphs, estimate_mmd
from .orbits import orbit_counts
from .summaries import SUMMARIES, summarise_graphs
from .validity import VALIDITY, is_planar, is_sbm, is_tree
from .vun import VUN, Share, score_vun

__all__ = [
    "CONVENTIONS",
    "DESCRIPTORS",
    "SUMMARIES",
    "VALIDITY",
    "VUN",
    "ClassifierScore",
    "MMDEstimate",
    "MMDRow",
    "Share",
    "are_isomorphic",
    "compare_graphs",
    "describe",
    "estimate_mmd",
    "find_isomorphic",
    "is_planar",
    "is_sbm",
    "is_tree",
    "isomorphism_classes",
    "orbit_counts",
    "score_vun",
    "summarise_graphs",
    "tell_apart",
]
