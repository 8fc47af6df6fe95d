"""Entropies of families: in closed form, from the bundled table, or estimated from new samples.

Samples can take seconds each, so ``benchmarks/reproduce/entropies.py`` writes their means to the table.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from ..errors import ConfigError
from ..records import Record, mean_with_error
from ..rng import stream
from .base import Family

__all__ = ["EntropyEstimate", "draw_nats", "known_entropy", "mean_entropy"]

TABLE = "entropies.json"


@dataclass(frozen=True)
class EntropyEstimate(Record):
    r"""The expected :math:`-\log p(A \mid n)` of a family, in nats per graph.

    Attributes:
        lower: The mean of the lower bounds; equal to ``upper`` if the probability is exact.
        upper: The mean of the upper bounds.
        standard_error: The standard error of :attr:`nats` over graphs; 0 in closed form, None for a single graph.
        graphs: The number of sampled graphs; 0 in closed form.
        gap_standard_error: The standard error of :attr:`gap`; 0 in closed form, None if unknown.
    """

    lower: float
    upper: float
    standard_error: float | None = 0.0
    graphs: int = 0
    gap_standard_error: float | None = None

    @classmethod
    def exact(cls, nats: float) -> EntropyEstimate:
        """An entropy in closed form."""
        return cls(nats, nats, gap_standard_error=0.0)

    @classmethod
    def of(cls, bounds: Sequence[tuple[float, float]]) -> EntropyEstimate:
        """The mean over the bounds of :func:`draw_nats`."""
        lower, upper = np.asarray(bounds, dtype=np.float64).T
        (_, error), (_, gap_error) = map(mean_with_error, ((lower + upper) / 2, upper - lower))

        return cls(float(lower.mean()), float(upper.mean()), error, len(lower), gap_error)

    @property
    def nats(self) -> float:
        """The estimate: the midpoint of the bounds."""
        return (self.lower + self.upper) / 2

    @property
    def gap(self) -> float:
        """The difference of the bounds; with few graphs, noise can make it negative."""
        return self.upper - self.lower


def draw_nats(family: Family, n: int, graphs: int, seed: int) -> Iterator[tuple[float, float]]:
    """Yield :meth:`Family.draw_nats` of new samples; sample ``i`` depends only on ``n``, ``seed`` and ``i``."""
    if graphs < 1:
        raise ConfigError(f"'graphs' is {graphs}; it should be at least 1.")
    family.check_size(n)

    # The name of a random stream determines its numbers, so "floor" stays.
    return (family.draw_nats(n, stream(seed, "floor", n, i)) for i in range(graphs))


def known_entropy(family: Family, n: int) -> EntropyEstimate | None:
    """The entropy in closed form or from the bundled table; None if it is in neither."""
    exact = family.entropy(n)
    if exact is not None:
        return EntropyEstimate.exact(exact)
    known = _table().get(family.name)
    if known is None or known["parameters"] != family.parameters():
        return None
    row = known["entropies"].get(str(n))

    return None if row is None else EntropyEstimate(**row)


def mean_entropy(entropies: Mapping[int, EntropyEstimate], sizes: Sequence[int]) -> EntropyEstimate:
    """The mean entropy over graphs of these sizes, from independent estimates for each size."""
    weights = {n: count / len(sizes) for n, count in Counter(sizes).items()}

    return EntropyEstimate(
        lower=sum(weight * entropies[n].lower for n, weight in weights.items()),
        upper=sum(weight * entropies[n].upper for n, weight in weights.items()),
        standard_error=_joined([(weight, entropies[n].standard_error) for n, weight in weights.items()]),
        graphs=sum(entropies[n].graphs for n in weights),
        gap_standard_error=_joined([(weight, entropies[n].gap_standard_error) for n, weight in weights.items()]),
    )


def _joined(errors: Sequence[tuple[float, float | None]]) -> float | None:
    """The standard error of a weighted sum of independent estimates; None if one of theirs is unknown."""
    known = [weight * error for weight, error in errors if error is not None]

    return math.hypot(*known) if len(known) == len(errors) else None


@cache
def _table() -> Mapping[str, Any]:
    return dict(json.loads(files(__package__).joinpath(TABLE).read_text(encoding="utf-8")))
