"""Validity of samples and NLL by the number of decoding steps of an autoregressive model."""

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
    """The results of one number of decoding steps; the NLL is in nats per graph, with its standard error."""

    decoding_steps: int
    valid: Proportion | None
    nll: float
    nll_error: float | None


DECODING_STEPS = (1, 4, 16, 64, 0)
"""The numbers of decoding steps that are compared; 0 is one pair at a time."""


def iterate_decoding_steps(
    model: TrainedModel,
    graphs: Sequence[SimpleGraph],
    family: Family | None = None,
    *,
    decoding_steps: Sequence[int] = DECODING_STEPS,
    samples: int = 64,
    orders: int = 10,
    seed: int = 0,
) -> Iterator[DecodingStepsPoint]:
    """Yield the results of each number of decoding steps; validity only with a family.

    At most :attr:`Family.max_checked` graphs are sampled; ``orders`` is the number of node orderings per graph.
    """
    if not model.config.is_autoregressive:
        raise ConfigError(f"'{model.name}' has a one-shot decoder: there are no decoding steps to compare.")
    for count in decoding_steps:
        estimate = estimate_nll(model, graphs, NLLOptions(orders, seed, decoding_steps=count))
        valid = None
        if family is not None:
            drawn = list(Sampler(model, min(samples, family.max_checked or samples), seed=seed, decoding_steps=count))
            valid = Proportion.of(sum(map(family.contains, drawn)), len(drawn))
        yield DecodingStepsPoint(count, valid, estimate.nll, estimate.standard_error)
