"""How far an estimate can be trusted, in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .console import count_of, nats

if TYPE_CHECKING:
    from graphite_gen.completion import Completion
    from graphite_gen.likelihood.bdmc import BDMCEstimate
    from graphite_gen.records import NLLEstimate

__all__ = ["SURE", "completion_diagnosis", "diagnosis", "is_trusted", "verdict"]

CLOSE = 1.0
"""Bounds this many nats apart are as good as one figure."""

SURE = 2.0
"""Standard errors beyond which a difference is more than noise."""

NOTHING = 0.005
"""Nats that are shown as 0.00."""

ROUGH = 0.1
"""Probabilities with larger standard errors are not settled."""

APART = 0.25
"""Runs between which a larger part of the variance lies have seen too few graphs to agree."""


def diagnosis(estimate: NLLEstimate, *, anneals: bool = True) -> str:
    """What the weights say about the estimate, and what to do; a staged model cannot be annealed."""
    of = f"of {estimate.graphs} graphs"
    unknown = sum(row.khat is None for row in estimate.per_graph)
    more = "Raise '-k'" if estimate.method == "is" else "Raise '--chains' or '--steps'"
    if estimate.flagged:
        can = anneals and estimate.method == "is" and estimate.convention == "pairs"
        instead = ", or use '--method auto'" if can else ""
        return f"k̂ > 0.7 for {estimate.flagged} {of}: their NLL is likely too high. {more}{instead}."
    if unknown:
        return f"too few weights to tell k̂ for {unknown} {of}. {more} to 25 at least."

    return f"k̂ ≤ 0.7 for all {estimate.graphs} graphs: nothing speaks against the estimate."


def is_trusted(bdmc: BDMCEstimate, method: str) -> bool:
    """Whether what the method gives lies at the lower bound, by more than the noise of both.

    The truth is not below it, so it does not matter how far the other bound is above; if that is below, by more than
    noise, neither is a bound.
    """
    return _Distance.of_method(bdmc, method).is_small and not _cross(bdmc, method)


@dataclass(frozen=True)
class _Distance:
    """How far something lies above a bound, in nats per graph.

    Attributes:
        nats: The mean over graphs, negative below the bound.
        error: Its standard error; None for a single graph, which tells nothing of its noise, and for a mean that is not
            finite.
    """

    nats: float
    error: float | None

    @classmethod
    def of_method(cls, bdmc: BDMCEstimate, method: str, bound: str = "lower") -> _Distance:
        from graphite_gen.records import mean_with_error

        name = {"is": "importance", "auto": "auto", "ais": "upper"}[method]

        return cls(*mean_with_error([getattr(row, name) - getattr(row, bound) for row in bdmc.per_graph]))

    @property
    def is_small(self) -> bool:
        return self.error is not None and abs(self.nats) + SURE * self.error < CLOSE

    @property
    def is_large(self) -> bool:
        if not math.isfinite(self.nats):
            return True

        return self.error is not None and abs(self.nats) - SURE * self.error >= CLOSE

    @property
    def noise(self) -> str:
        """Whether it is more than noise, in words to go on with; none where that cannot be told."""
        if self.error is None:
            return ""

        return ", within noise" if abs(self.nats) <= SURE * self.error else ", more than noise"

    def __str__(self) -> str:
        return nats(abs(self.nats), self.error)


def _cross(bdmc: BDMCEstimate, method: str) -> bool:
    """Whether what lies at the lower bound is far above the upper one."""
    off, above = _Distance.of_method(bdmc, method), _Distance.of_method(bdmc, method, "upper")

    return off.is_small and above.is_large and above.nats > 0


def verdict(bdmc: BDMCEstimate, method: str, *, anneals: bool = True) -> str:
    """Whether what a method gives can be trusted, and what to do if not; a staged model cannot be annealed."""
    off, gap = _Distance.of_method(bdmc, method), _Distance.of_method(bdmc, "ais")
    where = f"on {count_of(bdmc.graphs, 'graph')} of the model itself"
    stands = _standing(bdmc, method)
    again = "Check again with more " + ("'--steps' or '--chains'." if anneals else "samples ('-k').")
    if _cross(bdmc, method):
        return f"not known: {where}, the bounds cross: {stands}. {again}"
    if off.is_small:
        return f"trusted: {where}, {stands}."
    if not off.is_large:
        few = "too few graphs" if off.error is None else "too noisy"
        return f"not settled: {where}, {stands}, {few} to tell from {CLOSE:g}. Raise '--check-graphs'."
    if off.nats < 0:
        more = "'-k'" if method == "is" else "'--chains' or '--steps'"
        return f"not trusted: {where}, {stands}. Raise {more}, or '--check-graphs'."
    if not gap.is_small:
        return f"not known: {where}, the bounds are {gap} nats apart. {again}"

    return f"not trusted: {where}, {stands}. " + ("Use '--method ais', or raise '-k'." if anneals else "Raise '-k'.")


def _standing(bdmc: BDMCEstimate, method: str) -> str:
    """Where what a method gives lies, and by how much it is outside of the bounds."""
    off, above = _Distance.of_method(bdmc, method), _Distance.of_method(bdmc, method, "upper")
    if off.nats <= -NOTHING:
        return f"method '{method}' is {off} nats below the lower bound in the mean{off.noise}"
    outside = f" and {above} above the upper bound{above.noise}" if above.nats >= NOTHING else ""

    return f"method '{method}' is at most {off} nats too high in the mean{outside}"


def completion_diagnosis(completion: Completion) -> str:
    """What the runs say about completed graphs, and what to do."""
    figures = "all completions weighed, " if completion.method == "enumeration" else ""
    figures += (
        f"probabilities ± {completion.error:.2f}, log-evidence {nats(completion.log_evidence, completion.spread)} nats "
        f"(ER baseline {nats(completion.baseline)})"
    )
    if completion.error > ROUGH or completion.disagreement > APART:
        more = "'--particles'" if completion.method == "latents" else "'--steps'"
        return f"Not settled, as the runs differ in what they find: {figures}. Raise {more}."
    if completion.spread > CLOSE:
        more = "'--steps'" if completion.method == "enumeration" else "'--particles'"
        return f"Not settled, as the runs differ in log-evidence: {figures}. Raise {more}."
    if completion.log_evidence < completion.baseline - CLOSE - completion.spread:
        return f"Unlike the training graphs: {figures}. Use a model of such graphs."

    return f"Settled: {figures}."
