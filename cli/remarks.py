"""What to say, and to do, where a model is no better than the ER baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .console import nats
from .trust import SURE

if TYPE_CHECKING:
    from graphite_gen.likelihood.floor import Floor
    from graphite_gen.records import NLLEstimate
    from graphite_gen.training import Trainer

__all__ = ["ROOM", "nll_remark", "training_remark"]

ROOM = 0.5
"""Nats between baseline and floor below which there is no way to speak of."""

TELLING = 0.05
"""Nats above the baseline that are worth a word."""


def nll_remark(estimate: NLLEstimate, floor: Floor | None) -> str | None:
    """What to say of an NLL above the ER baseline; None where it is not, or where no model can do better."""
    from graphite_gen.likelihood.estimate import mean_with_error

    if estimate.baseline is None or (floor is not None and estimate.baseline - floor.nats < ROOM):
        return None
    excess, error = mean_with_error([row.nll - row.baseline for row in estimate.per_graph if row.baseline is not None])
    if excess < TELLING:
        return None
    is_noise = error is not None and excess <= SURE * error
    noise, does = (", within noise", "as well as") if is_noise else ("", "better than")
    doubtful = estimate.flagged or any(row.khat is None for row in estimate.per_graph)
    first = "The estimate may be too high: see the diagnosis. Else use" if doubtful else "Use"

    return (
        f"The NLL is {nats(excess, error)} above the ER baseline{noise}: one edge probability per size does {does} the "
        f"model. {first} a model that was trained on such graphs, or train one for longer ('train --epochs')."
    )


def training_remark(trainer: Trainer, figure: float | None, baseline: float | None) -> str | None:
    """What to say of a run whose best validation figure is above the ER baseline; None where it is not."""
    if figure is None or baseline is None or figure - baseline < TELLING:
        return None
    instead = "" if trainer.config.is_staged else ", decide pairs in stages ('--preset default')"

    return (
        f"The validation figure is {nats(figure - baseline)} above the ER baseline: one edge probability per size does "
        f"better than the model. Train for longer ('--epochs', now {trainer.training.epochs}){instead}, or on more "
        f"graphs than {len(trainer.graphs)}."
    )
