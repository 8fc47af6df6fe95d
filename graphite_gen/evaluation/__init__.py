"""Evaluation of samples: descriptors, MMD, validity, uniqueness, novelty, a classifier test and a verdict in words."""

from .assessment import Evaluation, evaluate
from .attributes import AttributeRow
from .classifier import ClassifierScore
from .conditional_accuracy import ConditionalAccuracy
from .descriptors import describe
from .isomorphism import find_isomorphic
from .mmd import estimate_mmd
from .resemblance import NetworkComparison, compare_networks
from .validity import VALIDITY
from .vun import Proportion, score_vun

__all__ = [
    "VALIDITY",
    "AttributeRow",
    "ClassifierScore",
    "ConditionalAccuracy",
    "Evaluation",
    "NetworkComparison",
    "Proportion",
    "compare_networks",
    "describe",
    "estimate_mmd",
    "evaluate",
    "find_isomorphic",
    "score_vun",
]
