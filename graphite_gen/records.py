"""Results as frozen dataclasses, which files store and commands print."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "CurvePoint",
    "GraphNLL",
    "NLLEstimate",
    "Provenance",
    "Record",
    "TrainRecord",
    "count_of",
    "listed",
    "mean_with_error",
    "typed",
]


def mean_with_error(values: Sequence[float] | NDArray[np.float64]) -> tuple[float, float | None]:
    """The mean and its standard error; None for a single value, or if the mean is not finite."""
    mean = fmean(values)
    if len(values) < 2 or not math.isfinite(mean):
        return mean, None

    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))


def count_of(number: int, noun: str) -> str:
    """A number with a noun in singular or plural: ``1 node``, ``2 nodes``, ``3 classes``."""
    ending = "es" if noun.endswith("s") else "s"

    return f"{number} {noun}{ending * (number != 1)}"


def listed(names: Iterable[str]) -> str:
    """Names in quotes, separated by commas."""
    return ", ".join(f"'{name}'" for name in names)


T = TypeVar("T")


def typed(cls: type[T], values: Mapping[str, Any]) -> T:
    """A dataclass from a JSON object.

    Raises:
        TypeError: It is not an object, a key is unknown, or a value has the wrong type.
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
    """A frozen dataclass with a JSON representation."""

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return asdict(self)  # type: ignore[call-overload]


@dataclass(frozen=True)
class Provenance(Record):
    """The origin of a file of graphs.

    Attributes:
        family: The family the graphs were drawn from; None if unknown.
        parameters: The parameters of the family.
        seed: The seed.
        source: The command that wrote them, such as ``generate`` or ``sample``.
        model: The model they were sampled from.
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
        epoch: The number of finished epochs.
        step: The number of optimiser steps.
        loss: The mean training objective of the epoch, in nats per graph.
        kl: The mean KL divergence of posterior and prior, in nats per graph.
        validation: The validation NLL (reconstruction error for autoencoders), in nats per graph; None in epochs
            without validation.
        best: The lowest validation NLL so far.
        learning_rate: The learning rate of the last step.
        seconds: The time of the run, including that before resuming.
        novelty: The proportion of a few samples that are isomorphic to no training graph; None where it is not checked.
        latents: The activity of the latents of validation graphs, with the keys ``kl``, ``active_units`` and
            ``mutual_information`` (:class:`.LatentActivity`), and ``gain``, by how much they raise log p(A|Z) compared
            with those of other nodes, with its standard error ``gain_error``; empty in epochs without validation and
            for models without a variational posterior.
    """

    epoch: int
    step: int
    loss: float
    kl: float
    validation: float | None
    best: float | None
    learning_rate: float
    seconds: float
    novelty: float | None = None
    latents: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class GraphNLL(Record):
    """The NLL estimate for one graph, in nats.

    Attributes:
        nll: The estimate of -log p(A|n).
        elbo: The ELBO, the mean log-weight: from the same samples in a one-shot model, else from separate ones whose
            orderings all follow the rule, so that it may exceed ``-nll`` by chance.
        ess: The effective sample size, from 1 to the number of samples (or chains).
        size_nats: -log p(n); None for a size that never occurred in training.
        baseline: -log p(A|n) of the ER baseline.
        khat: The PSIS k-hat: above 0.7 the estimate is unreliable. None if there are too few weights.
        method: The method used: ``is`` or ``ais``.
        curve: Pairs of a number of samples and the NLL estimate from them; empty unless requested.
        parts: What structure, labels, types and weights contribute to the NLL; empty for graphs without attributes.
        baselines: The baseline of each part, whose sum is ``baseline``.
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
    parts: Mapping[str, float] = field(default_factory=dict)
    baselines: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class CurvePoint(Record):
    """The mean NLL for a number of samples per graph, in nats per graph, and its standard error; None for one graph."""

    samples: int
    nll: float
    standard_error: float | None


@dataclass(frozen=True)
class NLLEstimate(Record):
    """The mean NLL of graphs, in nats per graph, with diagnostics and baseline.

    Attributes:
        convention: ``pairs``, or ``paper``, which is not a normalised distribution over graphs.
        samples: The number of samples per graph, K.
        nll: The mean of -log p(A|n).
        standard_error: Its standard error over graphs.
        elbo: The mean ELBO.
        ess: The median effective sample size.
        size_nats: The mean of -log p(n); None if some size never occurred in training.
        baseline: The mean ER baseline; None for weighted graphs and for convention ``paper``.
        per_graph: The estimates of each graph.
        method: The requested method: ``is``, ``ais`` or ``auto``.
        chains: The number of AIS chains per graph; None without AIS.
        steps: The number of temperatures of each chain; None without AIS.
        khat: The largest finite k-hat of a graph; None if no graph has one.
        flagged: The number of graphs with k-hat above 0.7, whose estimates are unreliable.
        annealed: The number of graphs estimated by AIS.
        curve: The mean NLL from fewer samples; empty unless requested.
        parts: The mean contributions of structure, labels, types and weights; empty for graphs without attributes.
        baselines: Their mean baselines, whose sum is ``baseline``.
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
    per_graph: tuple[GraphNLL, ...] = field(repr=False)
    method: str = "is"
    chains: int | None = None
    steps: int | None = None
    khat: float | None = None
    flagged: int = 0
    annealed: int = 0
    curve: tuple[CurvePoint, ...] = field(default=(), repr=False)
    parts: Mapping[str, float] = field(default_factory=dict)
    baselines: Mapping[str, float] = field(default_factory=dict)
