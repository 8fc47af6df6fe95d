"""What a staged model does in so many stages."""

from __future__ import annotations

from dataclasses import dataclass

from ..metrics import Share
from ..records import Record

__all__ = ["StagePoint"]


@dataclass(frozen=True)
class StagePoint(Record):
    """The figures of one number of stages.

    Attributes:
        stages: The number of stages; 0 is one pair at a time.
        valid: The share of valid samples; None where nothing was asked of them.
        nll: The mean NLL, in nats per graph.
        nll_error: Its standard error over graphs; None for a single graph.
    """

    stages: int
    valid: Share | None
    nll: float
    nll_error: float | None
