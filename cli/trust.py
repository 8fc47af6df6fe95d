"""How far an estimate can be trusted, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphite_gen.likelihood.sandwich import Sandwich
    from graphite_gen.records import NLLEstimate

__all__ = ["diagnosis", "is_trusted", "verdict"]

CLOSE = 1.0
"""Bounds this many nats apart are as good as one figure."""


def diagnosis(estimate: NLLEstimate) -> str:
    """What the weights say about the estimate, and what to do."""
    of = f"of {estimate.graphs} graphs"
    unknown = sum(row.khat is None for row in estimate.per_graph)
    more = "Raise '-k'" if estimate.method == "is" else "Raise '--chains' or '--steps'"
    if estimate.flagged:
        instead = ", or use '--method auto'" if estimate.method == "is" and estimate.convention == "pairs" else ""
        return f"k̂ > 0.7 for {estimate.flagged} {of}: their NLL is likely too high. {more}{instead}."
    if unknown:
        return f"too few weights to tell k̂ for {unknown} {of}. {more} to 25 at least."

    return f"k̂ ≤ 0.7 for all {estimate.graphs} graphs: nothing speaks against the estimate."


def is_trusted(sandwich: Sandwich, method: str) -> bool:
    """Whether the bounds meet, and what the method gives lies at them."""
    return sandwich.gap < CLOSE and _estimate(sandwich, method) - sandwich.lower < CLOSE


def _estimate(sandwich: Sandwich, method: str) -> float:
    return {"is": sandwich.importance, "auto": sandwich.auto, "ais": sandwich.upper}[method]


def verdict(sandwich: Sandwich, method: str) -> str:
    """Whether what a method gives can be trusted, and what to do if not."""
    off = max(_estimate(sandwich, method) - sandwich.lower, 0)
    where = f"on {sandwich.graphs} graphs of the model itself"
    if is_trusted(sandwich, method):
        return f"trusted: {where}, method '{method}' is at most {off:.2f} nats too high in the mean."
    if sandwich.gap >= CLOSE:
        return (
            f"not known: {where}, the bounds are {sandwich.gap:.2f} nats apart. "
            f"Check again with more '--steps' or '--chains'."
        )

    return (
        f"not trusted: {where}, method '{method}' is up to {off:.2f} nats too high in the mean. "
        f"Use '--method ais', or raise '-k'."
    )
