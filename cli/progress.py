"""Plan, progress and results of a training run on the terminal."""

import math
import shlex
import sys
from pathlib import Path
from typing import Any

from graphite_gen.records import TrainRecord
from graphite_gen.training.model_card import latents_in_words
from graphite_gen.training.pilot import OrderingChoice
from graphite_gen.training.trainer import Trainer

from .console import count_of, duration, nats, note, progress_bar, show_facts, show_json
from .diagnosis import training_finding
from .signals import stop_gracefully

LINES = 20
"""The approximate number of lines of progress without a terminal."""
COLUMNS = "loss {task.fields[loss]}  KL {task.fields[kl]}  validation {task.fields[validation]}"


def show_plan(trainer: Trainer) -> None:
    """Print on stderr what is about to be trained, after the pilot runs that choose the node ordering."""
    budget, compares = trainer.training.budget, trainer.config.ordering == "auto" and trainer.config.is_autoregressive
    # A run that is resumed has its ordering and its length.
    if not trainer.has_saved and (budget or compares):
        timing = f"timing steps for a budget of {duration(budget)}" if budget else ""
        doing = " and ".join(["comparing node orderings in pilot runs"] * compares + [timing] * bool(timing))
        note(f"{doing[0].upper()}{doing[1:]} …")
    plan = trainer.plan()
    if compares:
        note(f"Node ordering: {_ordering(trainer.config.ordering, plan.ordering)}.")
    low, high = plan.nodes
    parameters = f"{plan.parameters:,}".replace(",", " ")
    memory = f"{plan.memory / 1e9:.1f} GB" if plan.memory >= 1e9 else f"{max(1, round(plan.memory / 1e6))} MB"
    note(
        f"Graphs: {plan.graphs} of {low if low == high else f'{low} to {high}'} nodes, validation on "
        f"{plan.validation_graphs}."
    )
    note(
        f"Plan: {count_of(plan.epochs, 'epoch')} of {count_of(plan.epoch_graphs, 'graph')}, about "
        f"{count_of(plan.steps, 'step')} of up to {count_of(plan.batch_size, 'graph')}, {parameters} parameters; about "
        f"{duration(plan.seconds)}, and {memory} of memory per step."
    )


def _ordering(name: str, choice: OrderingChoice | None) -> str:
    """A node ordering and by how much it was better than the next one."""
    if choice is None:
        return f"{name} (the run is too short to compare orderings)"
    error = choice.margin_error if math.isfinite(choice.margin_error) else None
    better = f"{nats(choice.margin, error)} nats per graph better than {choice.scores[1].ordering}"
    left_out = f", too short for {choice.left_out} others" if choice.left_out else ""

    return f"{name} ({better} in pilot runs of {count_of(len(choice.scores), 'ordering')}{left_out})"


def train_with_progress(trainer: Trainer) -> None:
    """Train to the end, with a progress bar on a terminal and occasional lines elsewhere."""
    # The first signal stops after a step and saves; a second one ends the program at once.
    with stop_gracefully(trainer.stop):
        if sys.stderr.isatty():
            _show_bar(trainer)
        else:
            _show_lines(trainer)
    if trainer.stopped_early:
        stale = count_of(trainer.length.patience, "validation")
        note(f"Stopped early, in epoch {trainer.epoch}: the last {stale} did not improve on the best one.")


def _show_bar(trainer: Trainer) -> None:
    figures: dict[str, Any] = {"loss": "-", "kl": "-", "validation": "-"}
    with progress_bar(COLUMNS) as progress:
        task = progress.add_task("Epoch", total=trainer.length.epochs, completed=len(trainer.history), **figures)
        for record in trainer:
            figures |= {"loss": nats(record.loss), "kl": nats(record.kl)}
            if record.validation is not None:
                figures["validation"] = _validation(record)
            progress.update(task, total=trainer.length.epochs, completed=record.epoch, **figures)


def _show_lines(trainer: Trainer) -> None:
    due = 0.0
    for record in trainer:
        # A budget may change the number of epochs.
        epochs = trainer.length.epochs
        if record.validation is not None and (record.epoch >= due or record.epoch == epochs):
            note(
                f"epoch {record.epoch}/{epochs}  loss {nats(record.loss)}  KL {nats(record.kl)}  "
                f"validation {_validation(record)}  {record.seconds:.0f} s"
            )
            due = record.epoch + epochs / LINES


def _validation(record: TrainRecord) -> str:
    found = record.latents
    latents = f"  active {found['active_units']}  MI {nats(found['mutual_information'])}" if found else ""
    novelty = "" if record.novelty is None else f"  novel {record.novelty:.0%}"

    return f"{nats(record.validation)} (best {nats(record.best)}){latents}{novelty}"


def show_results(trainer: Trainer, folder: Path, as_json: bool) -> None:
    """Print the folder and the results of a run, and the next command."""
    model = trainer.model
    # The baseline is a distribution over pairs of unweighted graphs.
    comparable = model.config.observation == "bernoulli" and model.training.convention == "pairs"
    baselines = [model.sizes.baseline(graph) for graph in trainer.validation] if comparable else []
    baseline = sum(baselines) / len(baselines) if baselines else None
    results = {**model.results, "baseline": baseline}
    finding = training_finding(trainer, model, baselines)
    if as_json:
        show_json({"name": model.name, "folder": str(folder), "results": {**results, "remark": finding}})
        return

    novelty = results.get("novelty")
    figure = "validation NLL" if model.config.is_variational else "validation reconstruction"
    epochs = count_of(results["epochs"], "epoch")
    show_facts(
        [
            ("model", str(folder)),
            (figure, f"{nats(results['validation'])} nats per graph (epoch {results['best_epoch']})"),
            ("ER baseline", None if baseline is None else f"{nats(baseline)} nats per graph"),
            ("novelty", None if novelty is None else f"{novelty:.0%} of samples, not isomorphic to a training graph"),
            ("latents", latents_in_words(results, model.config.latent, model.provenance.family)),
            ("finding", finding),
            ("trained", f"{epochs}, {count_of(results['steps'], 'step')}, {duration(results['seconds'])}"),
        ]
    )
    if model.config.is_variational:
        note(f"Next: graphite-gen sample --model {shlex.quote(str(folder))} -n 100 -o samples.graphml")
