"""What more stages buy: validity of samples and NLL by the number of stages of a staged model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..errors import ConfigError
from ..evaluation import Proportion
from ..families import Family
from ..graph import SimpleGraph
from ..likelihood import NLLOptions, estimate_nll
from ..records import Record
from ..sampling import Sampler
from ..training.checkpoint import TrainedModel

__all__ = ["DECODING_STEPS", "DecodingStepsPoint", "iterate_decoding_steps"]


@dataclass(frozen=True)
class DecodingStepsPoint(Record):
    """The figures of one number of stages.

    Attributes:
        stages: The number of stages; 0 is one pair at a time.
        valid: The share of valid samples; None where nothing was asked of them.
        nll: The mean NLL, in nats per graph.
        nll_error: Its standard error over graphs; None for a single graph.
    """

    decoding_steps: int
    valid: Proportion | None
    nll: float
    nll_error: float | None


DECODING_STEPS = (1, 4, 16, 64, 0)
"""The numbers of stages that are compared; 0 is one pair at a time."""


def iterate_decoding_steps(
    model: TrainedModel,
    graphs: Sequence[SimpleGraph],
    law: Family | None = None,
    *,
    decoding_steps: Sequence[int] = DECODING_STEPS,
    samples: int = 64,
    orders: int = 10,
    seed: int = 0,
) -> Iterator[DecodingStepsPoint]:
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
    if not model.config.is_autoregressive:
        raise ConfigError(f"'{model.name}' decides all pairs at once, so there are no stages to compare.")
    for count in decoding_steps:
        estimate = estimate_nll(model, graphs, NLLOptions(orders, seed, decoding_steps=count))
        valid = None
        if law is not None:
            drawn = list(Sampler(model, min(samples, law.most_judged or samples), seed=seed, decoding_steps=count))
            valid = Proportion.of(sum(map(law.contains, drawn)), len(drawn))
        yield DecodingStepsPoint(count, valid, estimate.nll, estimate.standard_error)
