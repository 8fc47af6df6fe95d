r"""Enumeration of all completions under an autoregressive model, for few unknown pairs.

The probability :math:`p(A) = \frac{1}{n!} \sum_\sigma p(A_\sigma)` of every completion is estimated by sampling node
orderings and latents, without bias, as :func:`graphite_gen.likelihood.graph_log_weights` does for the NLL.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np

from ..autoregressive.distribution import Schedule
from ..likelihood import graph_log_weights
from ..training.checkpoint import TrainedModel
from .partial import PartialGraph
from .posterior import Posterior, batch_for

__all__ = ["enumerate_completions"]

# The fraction of uniform orderings. With as few orderings as here, the default of a few percent would give none: every
# run would miss the same graphs, and agreement between runs would mean nothing. A half at most doubles the variance.
UNIFORM_FRACTION = 0.5


def enumerate_completions(
    model: TrainedModel,
    partial: PartialGraph,
    *,
    runs: int,
    orderings: int,
    schedule: Schedule,
    seed: int,
    tick: Callable[[], None] = lambda: None,
) -> Posterior:
    """Weight all completions by their probability, estimated from ``orderings`` node orderings each per run.

    Every further unknown pair doubles the cost; ``tick`` is called after each completion.
    """
    pairs = len(partial.unknown)
    completions = np.array(list(product((False, True), repeat=pairs)))
    log_p = np.zeros((runs, len(completions)))
    for index, edges in enumerate(completions):
        batch = batch_for(model, partial.completed(edges))
        weights = graph_log_weights(
            model.network, batch, runs * orderings, seed, index, schedule=schedule, any_order=UNIFORM_FRACTION
        )
        log_p[:, index] = weights.reshape(runs, orderings).logsumexp(1).numpy() - math.log(orderings)
        tick()

    # The marginal likelihood is the sum over completions, and that of a posterior is the mean of its weights.
    return Posterior.weighted(np.tile(completions, (runs, 1, 1)), log_p + pairs * math.log(2))
