"""Verdicts on estimates in words: how reliable they are, how they compare with the baseline, and what to do."""

import math
from collections.abc import Sequence

from graphite_gen.completion import Completion
from graphite_gen.errors import GraphiteError
from graphite_gen.families import family as family_of
from graphite_gen.graph import SimpleGraph
from graphite_gen.likelihood.bdmc import BDMCEstimate
from graphite_gen.likelihood.excess import Entropy, expected_entropy, paired_entropy
from graphite_gen.records import NLLEstimate, Provenance, mean_with_error
from graphite_gen.training.checkpoint import TrainedModel
from graphite_gen.training.trainer import Trainer

from .console import count_of, duration, nats

TOLERANCE = 1.0  # nats by which a reliable estimate may differ from its bound
SIGNIFICANT = 2.0  # standard errors beyond which a difference is significant
ROUNDING = 0.005  # nats that are shown as 0.00
MIN_MARGIN = 0.5  # nats between baseline and entropy below which no model is much better than the baseline
MIN_EXCESS = 0.05  # nats above the baseline that are worth reporting
# The largest standard error of the probabilities of a converged completion, and fraction of variance between its runs.
MAX_ERROR, MAX_DISAGREEMENT = 0.1, 0.25


def nll_diagnosis(estimate: NLLEstimate, *, anneals: bool = True) -> str:
    """A diagnosis of the importance weights by k-hat, with advice; an autoregressive model cannot be annealed."""
    of = f"of {estimate.graphs} graphs"
    unknown = sum(row.khat is None for row in estimate.per_graph)
    more = "Raise '-k'" if estimate.method == "is" else "Raise '--chains' or '--steps'"
    if estimate.flagged:
        can = anneals and estimate.method == "is" and estimate.convention == "pairs"
        instead = ", or use '--method auto'" if can else ""
        return f"k̂ > 0.7 for {estimate.flagged} {of}: their NLL is likely too high. {more}{instead}."
    if unknown:
        return f"too few weights to estimate k̂ for {unknown} {of}. {more} to 25 at least."

    return f"k̂ ≤ 0.7 for all {estimate.graphs} graphs: no sign of an unreliable estimate."


class _Distance:
    """The mean distance of an estimate above a BDMC bound, in nats per graph, and its standard error if known."""

    def __init__(self, bdmc: BDMCEstimate, method: str, bound: str = "lower") -> None:
        name = {"is": "importance", "auto": "auto", "ais": "upper"}[method]
        distances = [getattr(row, name) - getattr(row, bound) for row in bdmc.per_graph]
        self.nats, self.error = mean_with_error(distances)
        noise = math.inf if self.error is None else SIGNIFICANT * self.error
        self.is_small = abs(self.nats) + noise < TOLERANCE
        self.is_large = not math.isfinite(self.nats) or abs(self.nats) - noise >= TOLERANCE
        known = ", within noise" if abs(self.nats) <= noise else ", significantly"
        self.significance = "" if self.error is None else known

    def __str__(self) -> str:
        return nats(abs(self.nats), self.error)


def bdmc_verdict(bdmc: BDMCEstimate, method: str, *, anneals: bool = True) -> str:
    """Whether the estimate of a method is reliable, with advice; an autoregressive model cannot be annealed."""
    off, above, gap = _Distance(bdmc, method), _Distance(bdmc, method, "upper"), _Distance(bdmc, "ais")
    where = f"on {count_of(bdmc.graphs, 'graph')} sampled from the model"
    again = "Check again with more " + ("'--steps' or '--chains'." if anneals else "samples ('-k').")
    if off.nats <= -ROUNDING:
        position = f"method '{method}' is {off} nats below the lower bound on average{off.significance}"
    else:
        outside = f" and {above} above the upper bound{above.significance}" if above.nats >= ROUNDING else ""
        position = f"method '{method}' is at most {off} nats too high on average{outside}"
    if off.is_small and above.is_large and above.nats > 0:
        return f"unknown: {where}, the bounds cross: {position}. {again}"
    if off.is_small:
        return f"reliable: {where}, {position}."
    if not off.is_large:
        few = "too few graphs" if off.error is None else "too noisy"
        return f"inconclusive: {where}, {position}, {few} to compare with {TOLERANCE:g} nat. Raise '--check-graphs'."
    if off.nats < 0:
        more = "'-k'" if method == "is" else "'--chains' or '--steps'"
        return f"not reliable: {where}, {position}. Raise {more}, or '--check-graphs'."
    if not gap.is_small:
        return f"unknown: {where}, the bounds are {gap} nats apart. {again}"

    return f"not reliable: {where}, {position}. " + ("Use '--method ais', or raise '-k'." if anneals else "Raise '-k'.")


def completion_diagnosis(completion: Completion) -> str:
    """Whether the runs of a completion agree, with advice."""
    figures = "all completions enumerated, " if completion.method == "enumeration" else ""
    figures += (
        f"probabilities ± {completion.error:.2f}, log-evidence {nats(completion.log_evidence, completion.spread)} nats "
        f"(ER baseline {nats(completion.baseline)})"
    )
    if completion.error > MAX_ERROR or completion.disagreement > MAX_DISAGREEMENT:
        more = "'--particles'" if completion.method == "latents" else "'--steps'"
        return f"Not converged, as the runs disagree in their graphs: {figures}. Raise {more}."
    if completion.spread > TOLERANCE:
        more = "'--steps'" if completion.method == "enumeration" else "'--particles'"
        return f"Not converged, as the runs disagree in log-evidence: {figures}. Raise {more}."
    if completion.log_evidence < completion.baseline - TOLERANCE - completion.spread:
        return f"Unlike the training graphs: {figures}. Use a model of such graphs."

    return f"Converged: {figures}."


def nll_finding(estimate: NLLEstimate, entropy: Entropy | None) -> str | None:
    """A finding about an NLL above the ER baseline; None if it is below, or if no model can do better."""
    if estimate.baseline is None or (entropy is not None and estimate.baseline - entropy.nats < MIN_MARGIN):
        return None
    excess = [row.nll - row.baseline for row in estimate.per_graph if row.baseline is not None]
    if sum(excess) / len(excess) < MIN_EXCESS:
        return None
    doubtful = estimate.flagged or any(row.khat is None for row in estimate.per_graph)
    first = "The estimate may be too high: see the diagnosis. Otherwise use" if doubtful else "Use"

    return f"The NLL is {_above(excess)}. {first} a model trained on such graphs, or train longer ('train --budget')."


def training_finding(trainer: Trainer, model: TrainedModel, baselines: Sequence[float]) -> str | None:
    """A finding about a run whose best model is above the ER baselines of the validation graphs, if these are known."""
    from graphite_gen.training.validation import validation_nats

    nll = model.results["validation"]
    if nll is None or not baselines or nll - sum(baselines) / len(baselines) < MIN_EXCESS:
        return None
    margin = entropy_margin(model.provenance, trainer.validation, baselines)
    if margin is not None and margin < MIN_MARGIN:
        return None
    own = validation_nats(model, trainer.validation)
    excess = [value - baseline for value, baseline in zip(own, baselines, strict=True)]
    # Only a Graphite-VAE can be autoregressive.
    one_shot = model.config.kind == "graphite-vae" and not model.config.is_autoregressive
    instead = ", use an autoregressive decoder ('--preset default')" if one_shot else ""

    training = trainer.training
    longer = f"'--budget', now {duration(training.budget)}" if training.budget else f"'--epochs', now {training.epochs}"

    return (
        f"The validation NLL is {_above(excess)}. Train longer ({longer}){instead}, "
        f"or on more than {count_of(len(trainer.graphs), 'graph')}."
    )


def _above(excess: Sequence[float]) -> str:
    mean, error = mean_with_error(excess)
    is_significant = error is not None and mean > SIGNIFICANT * error
    noise = "" if is_significant else ", possibly by noise" if error is None else ", within noise"
    does = "better than" if is_significant else "as well as"

    return f"{nats(mean, error)} above the ER baseline{noise}, which does {does} the model"


def late_gain(trainer: Trainer) -> float | None:
    """Nats by which the last quarter of a run improved on the rest, if its last validation is the best one."""
    found = [(record.epoch, record.validation) for record in trainer.history if record.validation is not None]
    earlier = [nll for epoch, nll in found if epoch <= 0.75 * trainer.length.epochs]
    if not earlier or found[-1][0] != trainer.model.results["best_epoch"]:
        return None
    gain = min(earlier) - found[-1][1]

    return gain if gain > MIN_EXCESS else None


def entropy_margin(provenance: Provenance, graphs: Sequence[SimpleGraph], baselines: Sequence[float]) -> float | None:
    """Nats between the baseline and the entropy of the family of graphs; None if it is not known."""
    if provenance.family is None:
        return None
    try:
        family = family_of(provenance.family, **provenance.parameters)
        # Without a closed form, probabilities are slow, and the expected entropy is accurate enough.
        is_closed = family.has_log_prob and all(family.entropy(graph.nodes) is not None for graph in graphs)

        return (paired_entropy if is_closed else expected_entropy)(family, graphs, baselines).excess
    except GraphiteError:
        return None
