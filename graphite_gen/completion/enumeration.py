r"""Completions by a staged model where few pairs are unknown: all of them, each with its probability.

Every completion has a probability :math:`p(A) = \frac{1}{n!} \sum_\sigma p(A_\sigma)`, which orders of arrival estimate
without bias as :func:`graphite_gen.likelihood.graph_log_weights` does for the NLL. Which completions there are is not
left to chance; the orders, and the latents that go with them, are.
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

# The part of the orders that follow no rule. Of as few orders as there are here the few in a hundred of other estimates
# would be none: every run would then miss the same graphs that the model grows as its rule never does, and runs that
# agree would say nothing. A half costs at most as much again of those by the rule.
ANY_ORDER = 0.5


def enumerate_completions(
    model: TrainedModel,
    partial: PartialGraph,
    *,
    runs: int,
    orders: int,
    schedule: Schedule,
    seed: int,
    tick: Callable[[], None] = lambda: None,
) -> Posterior:
    """All completions, weighed by a staged model.

    Arguments:
        model: A staged model.
        partial: What is known; every further unknown pair doubles the work.
        runs: Independent runs.
        orders: Orders of arrival by which each run estimates the probability of each completion.
        schedule: Which pairs are decided at once.
        seed: The run's seed.
        tick: Called after each completion.
    """
    pairs = len(partial.unknown)
    answers = np.array(list(product((False, True), repeat=pairs)))
    log_p = np.zeros((runs, len(answers)))
    for index, row in enumerate(answers):
        batch = batch_for(model, partial.completed(row))
        weights = graph_log_weights(
            model.network, batch, runs * orders, seed, index, schedule=schedule, any_order=ANY_ORDER
        )
        log_p[:, index] = weights.reshape(runs, orders).logsumexp(1).numpy() - math.log(orders)
        tick()

    # The probability of what is known is the sum over completions, and a posterior has the mean of its weights for it.
    return Posterior.weighted(np.tile(answers, (runs, 1, 1)), log_p + pairs * math.log(2))
