"""What is believed of the unknown pairs: weighted particles, from independent runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.batch import GraphBatch, collate
from ..graph import SimpleGraph
from ..rng import stream
from ..training.checkpoint import TrainedModel

__all__ = ["Posterior", "batch_for", "pick_evenly"]


def batch_for(model: TrainedModel, graph: SimpleGraph) -> GraphBatch:
    """A batch of one graph, in the model's precision and on its device; without features that the model does not read.

    Arguments:
        model: The model.
        graph: The graph.
    """
    like, batch = next(model.network.parameters()), collate([graph])
    x = batch.x if model.config.node_features else batch.x[..., :0]

    return GraphBatch(batch.adj.to(like), batch.mask.to(like.device), x.to(like))


def pick_evenly(log_weights: NDArray[np.float64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Particles as often as their share of the weights says, up to rounding: one draw for all (systematic resampling).

    Arguments:
        log_weights: With shape :math:`(P,)`, in nats.
        count: How many to pick.
        rng: The randomness.

    Returns:
        Indices in ascending order, with shape ``(count,)``.
    """
    steps = np.exp(log_weights - log_weights.max()).cumsum()
    ticks = (np.arange(count) + rng.random()) / count * steps[-1]

    return np.searchsorted(steps, ticks, side="right").clip(max=len(steps) - 1)


@dataclass(frozen=True, eq=False)
class Posterior:
    r"""The law of the unknown pairs given the known ones, as :math:`P` weighted particles of each of :math:`R` runs.

    Attributes:
        probabilities: The probability of an edge, pair by pair and independently, given the particle; 0 or 1 where a
            particle is a graph, which are kept as truth values. With shape :math:`(R, P, U)`.
        log_weights: With shape :math:`(R, P)`, in nats.
        run_log_evidence: The log-probability of the known pairs by each run, in nats, with shape :math:`(R,)`.
    """

    probabilities: NDArray[np.float32 | np.bool_]
    log_weights: NDArray[np.float64]
    run_log_evidence: NDArray[np.float64]

    @classmethod
    def weighted(cls, probabilities: NDArray[np.float32 | np.bool_], log_weights: NDArray[np.float64]) -> Posterior:
        """Particles whose mean weight in a run is an unbiased estimate of the probability of what is known."""
        evidence = np.logaddexp.reduce(log_weights, axis=1) - math.log(log_weights.shape[1])

        return cls(probabilities, log_weights, evidence)

    @property
    def log_evidence(self) -> float:
        """The log-probability of the known pairs, in nats."""
        return float(np.logaddexp.reduce(self.run_log_evidence)) - math.log(len(self.run_log_evidence))

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights that sum to one, with shape :math:`(R, P)`."""
        return np.exp(self.log_weights - np.logaddexp.reduce(self.log_weights, axis=None))

    def edge_probabilities(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The probability of an edge at each unknown pair and its standard error over runs, both of shape (U,)."""
        # Run by run: the particles of all at once in double precision would be the largest array of a completion.
        parts = np.stack([weights @ run for weights, run in zip(self.weights, self.probabilities, strict=True)])
        runs = self.weights.sum(1)
        means = parts.sum(0)
        # The error of a ratio of two means, of which both numerator and denominator vary from run to run.
        errors = np.sqrt(np.square(parts - runs[:, None] * means).sum(0) * len(runs) / max(len(runs) - 1, 1))

        return means.clip(0, 1), errors

    @property
    def disagreement(self) -> float:
        """The part of the variance of the unknown pairs that lies between runs, from 0 to about 1."""
        means, errors = self.edge_probabilities()
        within = float((means * (1 - means)).sum())

        return len(self.log_weights) * float(np.square(errors).sum()) / within if within else 0.0

    def samples(self, count: int, seed: int) -> Iterator[NDArray[np.bool_]]:
        """Edges at the unknown pairs, each with shape :math:`(U,)`; sample i is the same however many are drawn."""
        steps = self.weights.ravel().cumsum()
        flat = self.probabilities.reshape(len(steps), -1)
        for index in range(count):
            rng = stream(seed, "completion sample", index)
            particle = min(int(np.searchsorted(steps, rng.random() * steps[-1], side="right")), len(steps) - 1)
            yield rng.random(flat.shape[1]) < flat[particle]
