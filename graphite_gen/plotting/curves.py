"""Figures against epochs, and against stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import DatasetError
from ..evaluation import StagePoint
from ..records import TrainRecord
from .figure import GREY, INK, SAMPLES, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_stages", "plot_training"]

# Beside blue: dark enough in print without colours, and dashed.
SECOND = "#D55E00"


def plot_training(history: Sequence[TrainRecord], *, title: str = "") -> Figure:
    """Loss and validation NLL by epoch, and the learning rate.

    Arguments:
        history: The records of a run, as ``history`` of a model.
        title: What to write above.

    Raises:
        ConfigError: matplotlib is not installed.
        DatasetError: There is no history.
    """
    if not history:
        raise DatasetError("There is no training history to draw: pass the records of at least one epoch.")
    figure = new_figure(9, 3.4, title)
    loss, rate = figure.subplots(1, 2, width_ratios=(2, 1))
    epochs = [record.epoch for record in history]
    loss.plot(epochs, [record.loss for record in history], color=SAMPLES, linewidth=1.3, label="training loss")
    validated = [(record.epoch, record.validation) for record in history if record.validation is not None]
    if validated:
        loss.plot(*zip(*validated, strict=True), "s--", color=SECOND, markersize=4, linewidth=1, label="validation")
    if any(record.kl for record in history):
        loss.plot(epochs, [record.kl for record in history], ":", color=INK, linewidth=1.2, label="KL")
    tidy(loss, "nats per graph", "epoch")
    loss.legend(frameon=False, fontsize=8)
    rate.plot(epochs, [record.learning_rate for record in history], color=INK, linewidth=1.3)
    tidy(rate, "learning rate", "epoch")

    return figure


def plot_stages(points: Sequence[StagePoint], *, floor: float | None = None, title: str = "") -> Figure:
    """The share of valid samples and the NLL against the number of stages, each with its error.

    Arguments:
        points: What :func:`graphite_gen.stages.iterate_stages` gives.
        floor: The lowest NLL there can be, in nats per graph.
        title: What to write above.

    Raises:
        ConfigError: matplotlib is not installed.
        DatasetError: There are no points.
    """
    if not points:
        raise DatasetError("There are no stages to draw: pass at least one.")
    figure = new_figure(8, 3.2, title)
    judged = [point for point in points if point.valid is not None]
    panels = list(figure.subplots(1, 2 if judged else 1, squeeze=False)[0])
    if judged:
        shares = [point.valid for point in judged if point.valid is not None]
        values = [share.value or 0.0 for share in shares]
        errors = [
            [value - share.low for value, share in zip(values, shares, strict=True)],
            [share.high - value for value, share in zip(values, shares, strict=True)],
        ]
        panels[0].errorbar(
            [_name(point) for point in judged], values, errors, fmt="o-", color=SAMPLES, markersize=5, capsize=3
        )
        panels[0].set_ylim(-0.03, 1.03)
        tidy(panels[0], "valid samples", "stages")
    panels[-1].errorbar(
        [_name(point) for point in points],
        [point.nll for point in points],
        [point.nll_error or 0.0 for point in points],
        fmt="s--",
        color=SECOND,
        markersize=5,
        capsize=3,
        label="NLL",
    )
    if floor is not None:
        panels[-1].axhline(floor, color=GREY, linewidth=1.2, linestyle=":", label="floor")
        panels[-1].legend(frameon=False, fontsize=8)
    tidy(panels[-1], "NLL, nats per graph", "stages")

    return figure


def _name(point: StagePoint) -> str:
    return str(point.stages or "all")
