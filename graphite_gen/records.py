"""Small frozen results: what functions give, files store and commands print."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CurvePoint",
    "GraphNLL",
    "NLLEstimate",
    "Provenance",
    "Record",
    "TrainRecord",
    "mean_with_error",
    "so_many",
    "typed",
]


def mean_with_error(values: Sequence[float] | NDArray[np.float64]) -> tuple[float, float | None]:
    """The mean over graphs or runs and its standard error, which one has none of, nor figures that are not finite."""
    mean = float(np.mean(values))
    if len(values) < 2 or not math.isfinite(mean):
        return mean, None

    return mean, float(np.std(values, ddof=1)) / math.sqrt(len(values))


def so_many(number: int, what: str) -> str:
    """A number of things in words: one node, two nodes, three classes."""
    ending = "es" if what.endswith("s") else "s"

    return f"{number} {what}{ending * (number != 1)}"


T = TypeVar("T")


def typed(cls: type[T], values: Mapping[str, Any]) -> T:
    """The dataclass of a JSON object that a file holds.

    Raises:
        TypeError: It is no object, a key is unknown, or a value has another type than the field.
    """
    if not isinstance(values, Mapping):
        raise TypeError(f"{cls.__name__} should be a JSON object, not {type(values).__name__}")
    hints = get_type_hints(cls)
    for name, value in values.items():
        if name in hints and not _fits(value, hints[name]):
            raise TypeError(f"'{name}' should be {hints[name]}, not {str(value)[:40]!r}")

    return cls(**values)


def _fits(value: Any, hint: Any) -> bool:
    if hint is Any:
        return True
    if get_origin(hint) is UnionType:
        return any(_fits(value, each) for each in get_args(hint))
    if get_origin(hint) is not None:
        return isinstance(value, get_origin(hint))

    return type(value) in ((int, float) if hint is float else (hint,))


class Record:
    """A frozen dataclass that becomes a JSON object."""

    def to_json(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        return asdict(self)  # type: ignore[call-overload]


@dataclass(frozen=True)
class Provenance(Record):
    """Where a file of graphs comes from.

    Attributes:
        family: The family whose law made the graphs, or None where the law is unknown.
        parameters: The parameters of that law.
        seed: The seed they were drawn with.
        source: What drew them, such as ``generate`` or ``sample``.
        model: The model that was sampled from.
    """

    family: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    source: str | None = None
    model: str | None = None


@dataclass(frozen=True)
class TrainRecord(Record):
    """The state of a training run at the end of an epoch.

    Attributes:
        epoch: Epochs done, from 1.
        step: Optimiser steps done.
        loss: The mean training objective of the epoch, in nats per graph.
        kl: The mean divergence of posterior and prior, in nats per graph.
        validation: The validation NLL (reconstruction error for autoencoders), in nats per graph; None between
            validations.
        best: The lowest validation figure so far.
        learning_rate: The learning rate of the last step.
        seconds: Time spent training, over all resumed parts.
    """

    epoch: int
    step: int
    loss: float
    kl: float
    validation: float | None
    best: float | None
    learning_rate: float
    seconds: float


@dataclass(frozen=True)
class GraphNLL(Record):
    """The estimate for one graph, in nats.

    Attributes:
        nodes: Its number of nodes.
        edges: Its number of edges.
        nll: The estimate of -log p(A|n).
        elbo: The bound by the same samples: the mean log-weight.
        ess: The effective sample size, from 1 to the number of samples (or chains).
        size_nats: -log p(n); None for a size that never occurred in training.
        baseline: -log p(A|n) of the ER baseline.
        khat: The Pareto shape of the largest weights: above 0.7 the estimate is not to be trusted. None where there
            are too few weights to tell.
        method: What made it: ``is`` or ``ais``.
        curve: Pairs of a number of samples and the NLL by so many, where asked for.
    """

    nodes: int
    edges: int
    nll: float
    elbo: float
    ess: float
    size_nats: float | None
    baseline: float | None
    khat: float | None = None
    method: str = "is"
    curve: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class CurvePoint(Record):
    """The mean NLL that so many samples per graph give.

    Attributes:
        samples: The samples per graph.
        nll: The mean NLL, in nats per graph.
        standard_error: Its standard error over graphs; None for a single graph.
    """

    samples: int
    nll: float
    standard_error: float | None


@dataclass(frozen=True)
class NLLEstimate(Record):
    """The mean NLL of graphs, in nats per graph, beside what it should be compared with.

    Attributes:
        model: The model's name.
        convention: ``pairs``, or ``paper``, which is no law over graphs.
        graphs: The number of graphs.
        samples: The proposals per graph, K.
        nll: The mean of -log p(A|n).
        standard_error: Its standard error over graphs.
        elbo: The mean evidence lower bound by the same samples.
        ess: The median effective sample size.
        size_nats: The mean of -log p(n); None if some size never occurred in training.
        baseline: The mean ER baseline; None for weighted graphs and for convention ``paper``.
        per_graph: The estimates of each graph.
        method: What was asked for: ``is``, ``ais`` or ``auto``.
        chains: The chains per graph of annealed importance sampling; None where none was asked for.
        steps: The temperatures of each chain; None likewise.
        khat: The largest finite Pareto shape of a graph's weights; None where no graph has one.
        flagged: The number of graphs whose Pareto shape is above 0.7: their estimates are not to be trusted.
        annealed: The number of graphs scored by annealed importance sampling.
        curve: The mean NLL by fewer samples, where asked for.
    """

    model: str
    convention: str
    graphs: int
    samples: int
    nll: float
    standard_error: float | None
    elbo: float
    ess: float
    size_nats: float | None
    baseline: float | None
    per_graph: tuple[GraphNLL, ...]
    method: str = "is"
    chains: int | None = None
    steps: int | None = None
    khat: float | None = None
    flagged: int = 0
    annealed: int = 0
    curve: tuple[CurvePoint, ...] = ()
