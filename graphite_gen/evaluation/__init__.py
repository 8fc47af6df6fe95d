"""Evaluation of samples: descriptors, MMD, validity, uniqueness, novelty, a classifier test and a verdict in words."""

from .assessment import Evaluation, Summary, evaluate
from .classifier import ClassifierScore, score_classifier
from .descriptors import DESCRIPTORS, describe
from .isomorphism import are_isomorphic, find_isomorphic, isomorphism_classes
from .mmd import CONVENTIONS, MMDEstimate, MMDRow, compare_rows, estimate_mmd
from .orbits import orbit_counts
from .statistics import SUMMARIES, summarise_graphs
from .validity import VALIDITY, is_planar, is_sbm, is_tree
from .vun import VUN, Proportion, score_vun

__all__ = [
    "CONVENTIONS",
    "DESCRIPTORS",
    "SUMMARIES",
    "VALIDITY",
    "VUN",
    "ClassifierScore",
    "Evaluation",
    "MMDEstimate",
    "MMDRow",
    "Proportion",
    "Summary",
    "are_isomorphic",
    "compare_rows",
    "describe",
    "estimate_mmd",
    "evaluate",
    "find_isomorphic",
    "is_planar",
    "is_sbm",
    "is_tree",
    "isomorphism_classes",
    "orbit_counts",
    "score_classifier",
    "score_vun",
    "summarise_graphs",
]
