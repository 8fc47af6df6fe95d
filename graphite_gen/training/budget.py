"""The length of a run, and how it follows a time budget: epochs and validation are fitted to the measured speed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..config import TrainConfig
from ..graph import SimpleGraph
from ..records import Record

__all__ = ["PILOT_SHARE", "TIMING_SHARE", "RunLength", "default_batch_size", "fit_epochs", "fit_validation"]

# The most of a budget that timing steps, pilot runs and validation take.
TIMING_SHARE, PILOT_SHARE, VALIDATION_SHARE = 0.02, 0.2, 0.1
# Validation becomes rarer rather than use fewer graphs than these.
LEAST_VALIDATED = 64
# In equal time, small batches of large graphs train better than large ones.
BATCH_NODES, LEAST_BATCH, LARGEST_BATCH = 960, 4, 64


def default_batch_size(graphs: Sequence[SimpleGraph]) -> int:
    """The batch size of an autoregressive model of these graphs: 64 of 15 nodes, 16 of 60 nodes, 5 of 200 nodes."""
    mean = sum(graph.nodes for graph in graphs) / len(graphs)

    return int(np.clip(round(BATCH_NODES / mean), LEAST_BATCH, LARGEST_BATCH))


@dataclass(frozen=True)
class RunLength(Record):
    """The length of a run: its settings, or what its budget made of them.

    Attributes:
        epoch_graphs: The number of graphs in each epoch that is left.
        validate_every: Epochs between validations.
        patience: Validations without improvement before stopping; 0 never stops early.
    """

    epochs: int
    epoch_graphs: int
    validate_every: int
    patience: int
    validation_graphs: int

    @classmethod
    def of(cls, training: TrainConfig, graphs: int, validation_graphs: int) -> RunLength:
        """The length that the settings give, for some numbers of graphs."""
        each = training.epoch_graphs or graphs

        return cls(training.epochs, each, training.validate_every, training.patience, validation_graphs)

    def validates(self, epoch: int) -> bool:
        """Whether there is a validation after an epoch, counted from 1."""
        return epoch == self.epochs or epoch % self.validate_every == 0

    def validations(self, first: int = 1) -> int:
        """The number of validations from an epoch on."""
        return sum(map(self.validates, range(first, self.epochs + 1)))

    def validation_cost(self, each: float, other: float) -> float:
        """The cost of a validation that has some cost for each graph, and another besides."""
        return self.validation_graphs * each + other


def fit_epochs(
    length: RunLength, done: int, most: int, left: float, batch_size: int, validation_cost: float
) -> RunLength:
    """The length whose epochs after the first ``done`` ones fill the time that is left.

    There are fewer than ``most`` epochs where even one batch for each would take too long. The validation after the
    last epoch that is done is still to come. Times are in units of the time of a training step for each of its graphs.
    """
    # Validations that turn out to be slow may take most of the time, but do not end the run.
    validation = min(length.validations(max(done, 1)) * validation_cost, 0.8 * left)
    batches = max(0.0, left - validation) / batch_size
    epochs = min(most - done, max(round(batches), 0 if done else 1))
    # Rounding to whole batches is made up for by the next epochs.
    graphs = batch_size * max(1, round(batches / max(epochs, 1)))

    return replace(length, epochs=done + epochs, epoch_graphs=graphs)


def fit_validation(length: RunLength, budget: float, each: float, other: float) -> RunLength:
    """The length with fewer validation graphs, or else rarer validation, as its share of a budget allows.

    A validation takes the time ``each`` for each graph, and ``other`` besides.
    """
    validations, affordable = length.validations(), VALIDATION_SHARE * budget
    if not length.validation_cost(each, other):
        return length
    least = min(LEAST_VALIDATED, length.validation_graphs)
    graphs = int(np.clip((affordable / validations - other) / each, least, length.validation_graphs))
    fitted = replace(length, validation_graphs=graphs)
    excess = max(1.0, validations * fitted.validation_cost(each, other) / affordable)
    fitted = replace(fitted, validate_every=min(length.epochs, math.ceil(length.validate_every * excess)))
    # The same part of the run has to pass without improvement.
    patience = max(2, round(length.patience * fitted.validations() / validations)) if length.patience else 0

    return replace(fitted, patience=patience)
