"""What to say, and to do, where a model is no better than the ER baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .console import nats
from .trust import SURE

if TYPE_CHECKING:
    from graphite_gen.graph import SimpleGraph
    from graphite_gen.likelihood.excess import Entropy
    from graphite_gen.records import NLLEstimate, Provenance
    from graphite_gen.training.checkpoint import TrainedModel
    from graphite_gen.training.trainer import Trainer

__all__ = ["ROOM", "nll_remark", "training_remark"]

ROOM = 0.5
"""Nats between baseline and floor below which there is no way to speak of."""

TELLING = 0.05
"""Nats above the baseline that are worth a word."""


def nll_remark(estimate: NLLEstimate, entropy: Entropy | None) -> str | None:
    """What to say of an NLL above the ER baseline; None where it is not, or where no model can do better."""
    from graphite_gen.records import mean_with_error

    if estimate.baseline is None or (entropy is not None and estimate.baseline - entropy.nats < ROOM):
        return None
    excess, error = mean_with_error([row.nll - row.baseline for row in estimate.per_graph if row.baseline is not None])
    if excess < TELLING:
        return None
    doubtful = estimate.flagged or any(row.khat is None for row in estimate.per_graph)
    first = "The estimate may be too high: see the diagnosis. Else use" if doubtful else "Use"

    return (
        f"The NLL is {_above(excess, error)}. {first} a model that was trained on such graphs, or train one for longer "
        f"('train --epochs')."
    )


def training_remark(trainer: Trainer, model: TrainedModel, baselines: Sequence[float]) -> str | None:
    """What to say of a run whose best validation figure is above the ER baseline.

    Arguments:
        trainer: The run.
        model: Its best model.
        baselines: The ER baseline of each validation graph; none where it says nothing of the figure.

    Returns:
        None where the figure is not above, or where no model can do better.
    """
    from graphite_gen.records import mean_with_error
    from graphite_gen.training.trainer import validation_nats

    figure = model.results["validation"]
    if figure is None or not baselines or figure - sum(baselines) / len(baselines) < TELLING:
        return None
    room = _room(model.provenance, trainer.validation, baselines)
    if room is not None and room < ROOM:
        return None
    own = validation_nats(model, trainer.validation)
    excess, error = mean_with_error([nll - baseline for nll, baseline in zip(own, baselines, strict=True)])
    # Of the kinds of models only this one has stages.
    can_stage = model.config.kind == "graphite-vae" and not model.config.is_autoregressive
    instead = ", decide pairs in stages ('--preset default')" if can_stage else ""

    return (
        f"The validation figure is {_above(excess, error)}. Train for longer ('--epochs', now "
        f"{trainer.training.epochs}){instead}, or on more graphs than {len(trainer.graphs)}."
    )


def _above(excess: float, error: float | None) -> str:
    """How far something is above the baseline, and what that means; of a single graph it may be noise."""
    if error is None:
        noise, does = ", perhaps by noise", "as well as"
    elif excess <= SURE * error:
        noise, does = ", within noise", "as well as"
    else:
        noise, does = "", "better than"

    return f"{nats(excess, error)} above the ER baseline{noise}: one edge probability per size does {does} the model"


def _room(provenance: Provenance, graphs: Sequence[SimpleGraph], baselines: Sequence[float]) -> float | None:
    """Nats between the baseline and the floor of the family that graphs come from; None where that is not known."""
    from graphite_gen.errors import GraphiteError
    from graphite_gen.families import family
    from graphite_gen.likelihood.excess import expected_entropy, paired_entropy

    if provenance.family is None:
        return None
    try:
        law = family(provenance.family, **provenance.parameters)
        # The law of a graph takes long where the floor has no closed form, and the expected floor then says enough.
        is_closed = law.has_log_prob and all(law.entropy(graph.nodes) is not None for graph in graphs)

        return (paired_entropy if is_closed else expected_entropy)(law, graphs, baselines).excess
    except GraphiteError:
        return None
