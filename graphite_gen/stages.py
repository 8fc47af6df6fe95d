"""What more stages buy: validity of samples and NLL by the number of stages of a staged model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .checkpoint import TrainedModel
from .errors import ConfigError
from .evaluation import StagePoint
from .families import Family
from .graph import SimpleGraph
from .likelihood import estimate_nll
from .metrics import Share
from .sampling import Sampler

__all__ = ["STAGES", "iterate_stages"]

STAGES = (1, 4, 16, 64, 0)
"""The numbers of stages that are compared; 0 is one pair at a time."""


def iterate_stages(
    model: TrainedModel,
    graphs: Sequence[SimpleGraph],
    law: Family | None = None,
    *,
    stages: Sequence[int] = STAGES,
    samples: int = 64,
    orders: int = 10,
    seed: int = 0,
) -> Iterator[StagePoint]:
    """The figures of each number of stages, one after the other.

    Arguments:
        model: A staged model.
        graphs: What to score.
        law: The family that samples should belong to; None asks nothing of them.
        stages: The numbers of stages.
        samples: Graphs to draw; at most as many as the family judges.
        orders: Orders of arrival per graph.
        seed: The run's one seed.

    Raises:
        ConfigError: The model decides all pairs at once.
    """
    if not model.config.is_staged:
        raise ConfigError(f"'{model.name}' decides all pairs at once, so there are no stages to compare.")
    for count in stages:
        estimate = estimate_nll(model, graphs, orders, seed, stages=count)
        valid = None
        if law is not None:
            drawn = list(Sampler(model, min(samples, law.most_judged or samples), seed=seed, stages=count))
            valid = Share.of(sum(map(law.contains, drawn)), len(drawn))
        yield StagePoint(count, valid, estimate.nll, estimate.standard_error)
