"""The posterior of the unknown pairs, as weighted particles from independent runs."""

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

__all__ = ["Posterior", "batch_for", "systematic_resample"]


def batch_for(model: TrainedModel, graph: SimpleGraph) -> GraphBatch:
    """Collate one graph in the model's precision and on its device, without features that the model does not use."""
    like, batch = next(model.network.parameters()), collate([graph])
    x = batch.x if model.config.node_features else batch.x[..., :0]

    return GraphBatch(batch.adj.to(like), batch.mask.to(like.device), x.to(like))


def systematic_resample(log_weights: NDArray[np.float64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return ``count`` indices in ascending order by systematic resampling, from weights of shape :math:`(P,)`."""
    cumulative = np.exp(log_weights - log_weights.max()).cumsum()
    points = (np.arange(count) + rng.random()) / count * cumulative[-1]

    return np.searchsorted(cumulative, points, side="right").clip(max=len(cumulative) - 1)


@dataclass(frozen=True, eq=False)
class Posterior:
    r"""The distribution of the unknown pairs given the known ones: :math:`P` weighted particles per run.

    Attributes:
        probabilities: The probability of each edge given the particle, independently, or booleans if particles are
            graphs, with shape :math:`(R, P, U)`.
        log_weights: With shape :math:`(R, P)`, in nats.
        run_log_evidence: The log-marginal likelihood of the known pairs, per run, in nats, with shape :math:`(R,)`.
    """

    probabilities: NDArray[np.float32 | np.bool_]
    log_weights: NDArray[np.float64]
    run_log_evidence: NDArray[np.float64]

    @classmethod
    def weighted(cls, probabilities: NDArray[np.float32 | np.bool_], log_weights: NDArray[np.float64]) -> Posterior:
        """Make a posterior of particles whose mean weight per run is an unbiased marginal likelihood estimate."""
        evidence = np.logaddexp.reduce(log_weights, axis=1) - math.log(log_weights.shape[1])

        return cls(probabilities, log_weights, evidence)

    @property
    def log_evidence(self) -> float:
        """The log-marginal likelihood of the known pairs, in nats."""
        return float(np.logaddexp.reduce(self.run_log_evidence)) - math.log(len(self.run_log_evidence))

    @property
    def weights(self) -> NDArray[np.float64]:
        """The normalised weights, with shape :math:`(R, P)`."""
        return np.exp(self.log_weights - np.logaddexp.reduce(self.log_weights, axis=None))

    def edge_probabilities(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the probabilities of the unknown edges and their standard errors, both with shape :math:`(U,)`."""
        # Run by run: all particles in double precision would be the largest array of a completion.
        parts = np.stack([weights @ run for weights, run in zip(self.weights, self.probabilities, strict=True)])
        runs = self.weights.sum(1)
        means = parts.sum(0)
        # The standard error of a ratio of two means over runs.
        errors = np.sqrt(np.square(parts - runs[:, None] * means).sum(0) * len(runs) / max(len(runs) - 1, 1))

        return means.clip(0, 1), errors

    @property
    def disagreement(self) -> float:
        """The fraction of the variance of the unknown pairs that lies between runs, from 0 to about 1."""
        means, errors = self.edge_probabilities()
        within = float((means * (1 - means)).sum())

        return len(self.log_weights) * float(np.square(errors).sum()) / within if within else 0.0

    def samples(self, count: int, seed: int) -> Iterator[NDArray[np.bool_]]:
        """Sample edges at the unknown pairs, each with shape :math:`(U,)`; sample i does not depend on the count."""
        flat = self.probabilities.reshape(-1, self.probabilities.shape[-1])
        for particle, rng in self.chosen(count, seed):
            yield rng.random(flat.shape[1]) < flat[particle]

    def chosen(self, count: int, seed: int) -> Iterator[tuple[int, np.random.Generator]]:
        """Choose particles of all runs by weight; yield each with its random stream."""
        steps = self.weights.ravel().cumsum()
        for index in range(count):
            rng = stream(seed, "completion sample", index)
            yield min(int(np.searchsorted(steps, rng.random() * steps[-1], side="right")), len(steps) - 1), rng
