"""Plan, progress and results of a training run on the terminal."""

import math
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from graphite_gen.likelihood.parts import baseline_nats
from graphite_gen.records import TrainRecord
from graphite_gen.training.model_card import latents_in_words
from graphite_gen.training.pilot import OrderingChoice
from graphite_gen.training.trainer import Trainer

from .console import count_of, duration, nats, note, progress_bar, show_facts, show_json
from .diagnosis import MIN_MARGIN, entropy_margin, late_gain, training_finding
from .signals import stop_gracefully
from .types import shown_duration

LINES = 20
"""The approximate number of lines of progress without a terminal."""
SILENCE = 30.0
"""Seconds without a line after which there is another one."""
COLUMNS = "loss {task.fields[loss]}  KL {task.fields[kl]}  validation {task.fields[validation]}"


def show_plan(trainer: Trainer) -> None:
    """Print on stderr what is about to be trained, after the pilot runs that choose the node ordering."""
    budget, compares = trainer.training.budget, trainer.config.ordering == "auto" and trainer.config.is_autoregressive
    # A run that is resumed has its ordering and its length.
    if not trainer.has_saved and (budget or compares):
        timing = f"timing steps for a budget of {duration(budget)}" if budget else ""
        doing = " and ".join(["comparing node orderings in pilot runs"] * compares + [timing] * bool(timing))
        note(f"{doing[0].upper()}{doing[1:]} …")
    with _watching_pilots(trainer):
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


@contextmanager
def _watching_pilots(trainer: Trainer) -> Iterator[None]:
    """Show which node ordering is compared: a status on a terminal, elsewhere a line now and then."""
    from rich.console import Console

    shown_at = time.monotonic()
    with Console(stderr=True).status("") if sys.stderr.isatty() else nullcontext() as status:

        def show() -> None:
            nonlocal shown_at
            text = f"Comparing node orderings: {trainer.status.pilot}"
            if status is not None:
                status.update(text)
            elif time.monotonic() - shown_at >= SILENCE:
                shown_at = time.monotonic()
                note(f"{text} …")

        trainer.watch = show
        yield


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
        task = progress.add_task("Epoch", total=None, completed=trainer.status.step, **figures)

        def update() -> None:
            now = trainer.status
            where = f"Epoch {now.epoch}/{now.epochs}, step"
            figures["loss"] = figures["loss"] if now.loss is None else nats(now.loss)
            progress.update(task, description=where, total=now.steps, completed=now.step, **figures)

        trainer.watch = update
        for record in trainer:
            figures |= {"loss": nats(record.loss), "kl": nats(record.kl)}
            if record.validation is not None:
                figures["validation"] = _validation(record)
            update()


def _show_lines(trainer: Trainer) -> None:
    due, shown_at = 0.0, time.monotonic()

    def show() -> None:
        nonlocal shown_at
        if time.monotonic() - shown_at < SILENCE:
            return
        now, shown_at = trainer.status, time.monotonic()
        left = "" if now.seconds_left is None else f"  about {duration(now.seconds_left)} left"
        note(f"epoch {now.epoch}/{now.epochs}  step {now.step}/{now.steps}  loss {nats(now.loss)}{left}")

    trainer.watch = show
    for record in trainer:
        # A budget may change the number of epochs.
        epochs = trainer.length.epochs
        if record.validation is not None and (record.epoch >= due or record.epoch == epochs):
            note(
                f"epoch {record.epoch}/{epochs}  loss {nats(record.loss)}  KL {nats(record.kl)}  "
                f"validation {_validation(record)}  {record.seconds:.0f} s"
            )
            due, shown_at = record.epoch + epochs / LINES, time.monotonic()


def _validation(record: TrainRecord) -> str:
    found = record.latents
    latents = f"  active {found['active_units']}  MI {nats(found['mutual_information'])}" if found else ""
    latents += f"  gain {nats(found['gain'])}" if "gain" in found else ""
    novelty = "" if record.novelty is None else f"  novel {record.novelty:.0%}"

    return f"{nats(record.validation)} (best {nats(record.best)}){latents}{novelty}"


def show_results(trainer: Trainer, folder: Path, as_json: bool, resume: str) -> None:
    """Print the folder and the results of a run, and the next commands; ``resume`` is the one that resumes it."""
    model = trainer.model
    # Weights on all pairs have no baseline.
    comparable = model.config.observation == "bernoulli" and model.training.convention == "pairs"
    baselines = [sum(baseline_nats(model, graph).values()) for graph in trainer.validation] if comparable else []
    baseline = sum(baselines) / len(baselines) if baselines else None
    is_bounded = baselines and model.config.is_variational
    margin = entropy_margin(model.provenance, trainer.validation, baselines) if is_bounded else None
    entropy = None if baseline is None or margin is None else baseline - margin
    results = {**model.results, "baseline": baseline, "entropy": entropy}
    finding = training_finding(trainer, model, baselines)
    covered = None
    if baseline is not None and margin is not None and margin >= MIN_MARGIN and not finding:
        part = (baseline - results["validation"]) / margin
        covered = f"{part:.0%} of the way from the baseline to the entropy"
    gain = late_gain(trainer)
    if gain is not None:
        budget, epochs = trainer.training.budget, trainer.training.epochs
        longer = f"--budget {shown_duration(2 * budget)}" if budget else f"--epochs {2 * epochs}"
        note(f"Still improving, by {nats(gain)} nats over the last quarter of the run. Extend it: {resume} {longer}")
    if as_json:
        show_json({"name": model.name, "folder": str(folder), "results": {**results, "remark": finding}})
        return

    novelty = results.get("novelty")
    figure = "validation NLL" if model.config.is_variational else "validation reconstruction"
    trained = f"{count_of(results['epochs'], 'epoch')}, {count_of(results['steps'], 'step')}"
    show_facts(
        [
            ("model", str(folder)),
            (figure, f"{nats(results['validation'])} nats per graph (epoch {results['best_epoch']})"),
            ("ER baseline", None if baseline is None else f"{nats(baseline)} nats per graph"),
            ("entropy", None if entropy is None else f"{nats(entropy)} nats per graph, of the true process"),
            ("covered", covered),
            ("novelty", None if novelty is None else f"{novelty:.0%} of samples, not isomorphic to a training graph"),
            ("latents", latents_in_words(results, model.config.latent, model.provenance.family)),
            ("finding", finding),
            ("trained", f"{trained}, {duration(results['seconds'])}"),
        ]
    )
    if model.config.is_variational:
        note(f"Next: graphite-gen sample --model {shlex.quote(str(folder))} -n 100 -o samples.graphml")
