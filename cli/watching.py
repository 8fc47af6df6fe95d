"""A training run as a person sees it: its progress, and what came of it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .console import count_of, duration, nats, note, progress_bar, show_facts, show_json
from .remarks import training_remark
from .signals import stop_gracefully

if TYPE_CHECKING:
    from graphite_gen.records import TrainRecord
    from graphite_gen.training.trainer import Trainer

__all__ = ["show_outcome", "watch"]

LINES = 20
"""About how many lines a run prints where there is no terminal."""


def watch(trainer: Trainer) -> None:
    """Train to the end, with a bar on a terminal and now and then a line elsewhere."""
    # Where it can be resumed; a second signal ends it at once.
    with stop_gracefully(trainer.stop):
        if sys.stderr.isatty():
            _watch_bar(trainer)
        else:
            _watch_lines(trainer)


def _watch_bar(trainer: Trainer) -> None:
    figures = "loss {task.fields[loss]}  KL {task.fields[kl]}  validation {task.fields[validation]}"
    with progress_bar(figures) as progress:
        done = len(trainer.history)
        task = progress.add_task(
            "Epoch", total=trainer.training.epochs, completed=done, loss="-", kl="-", validation="-"
        )
        for record in trainer:
            fields: dict[str, Any] = {"loss": nats(record.loss), "kl": nats(record.kl)}
            if record.validation is not None:
                fields["validation"] = f"{nats(record.validation)} (best {nats(record.best)})"
            progress.update(task, completed=record.epoch, **fields)


def _watch_lines(trainer: Trainer) -> None:
    epochs, due = trainer.training.epochs, 0.0
    for record in trainer:
        if record.validation is not None and (record.epoch >= due or record.epoch == epochs):
            note(_line(record, epochs))
            due = record.epoch + epochs / LINES


def _line(record: TrainRecord, epochs: int) -> str:
    return (
        f"epoch {record.epoch}/{epochs}  loss {nats(record.loss)}  KL {nats(record.kl)}  "
        f"validation {nats(record.validation)} (best {nats(record.best)})  {record.seconds:.0f} s"
    )


def show_outcome(trainer: Trainer, folder: Path, as_json: bool) -> None:
    """Where the model is, how good it is, and what to run next."""
    model = trainer.model
    # Weights and all cells of a padded matrix are not what the baseline is a law of.
    comparable = model.config.observation == "bernoulli" and model.training.convention == "pairs"
    baselines = [model.sizes.baseline(graph) for graph in trainer.validation] if comparable else []
    baseline = sum(baselines) / len(baselines) if baselines else None
    results = {**model.results, "baseline": baseline}
    remark = training_remark(trainer, model, baselines)
    if as_json:
        show_json({"name": model.name, "folder": str(folder), "results": {**results, "remark": remark}})
        return

    figure = "validation NLL" if model.config.is_variational else "validation reconstruction"
    epochs = count_of(results["epochs"], "epoch")
    show_facts(
        [
            ("model", str(folder)),
            (figure, f"{nats(results['validation'])} nats per graph (epoch {results['best_epoch']})"),
            *([] if baseline is None else [("ER baseline", f"{nats(baseline)} nats per graph")]),
            *([("remark", remark)] if remark else []),
            ("trained", f"{epochs}, {count_of(results['steps'], 'step')}, {duration(results['seconds'])}"),
        ]
    )
    if model.config.is_variational:
        note(f"Next: graphite-gen sample --model {shlex.quote(str(folder))} -n 100 -o samples.graphml")
