r"""Floors of families with their errors: in closed form, from the table that is shipped, or estimated afresh.

Where a law has no closed form, its floor is a mean over graphs that take seconds each. The table holds such means for
default parameters, so that nobody waits; ``benchmarks/reproduce/entropies.py`` makes it.
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
        lower: The mean lower bound of each graph's figure; the figure itself where the law is exact.
        upper: The mean upper bound.
        standard_error: The standard error over graphs of what lies midway; 0 in closed form, None for a single graph.
        graphs: How many graphs were drawn, 0 in closed form.
        gap_standard_error: The standard error over graphs of how far the bounds are apart; 0 in closed form, None where
            it is not known.
    """

    lower: float
    upper: float
    standard_error: float | None = 0.0
    graphs: int = 0
    gap_standard_error: float | None = None

    @classmethod
    def exact(cls, nats: float) -> EntropyEstimate:
        """A closed form, which has no error."""
        return cls(nats, nats, gap_standard_error=0.0)

    @classmethod
    def of(cls, bounds: Sequence[tuple[float, float]]) -> EntropyEstimate:
        """The mean over graphs of what :func:`draw_nats` gives."""
        lower, upper = np.asarray(bounds, dtype=np.float64).T
        _, error = mean_with_error((lower + upper) / 2)
        _, gap_error = mean_with_error(upper - lower)

        return cls(float(lower.mean()), float(upper.mean()), error, len(lower), gap_error)

    @property
    def nats(self) -> float:
        """The floor: midway between the bounds."""
        return (self.lower + self.upper) / 2

    @property
    def gap(self) -> float:
        """How far the bounds are apart; below 0 where the noise of few graphs has turned their order."""
        return self.upper - self.lower


def draw_nats(law: Family, n: int, graphs: int, seed: int) -> Iterator[tuple[float, float]]:
    r"""Bounds of :math:`-\log p(A \mid n)` of fresh graphs, one after the other; graph ``i`` depends on its size, the
    seed and ``i`` alone.

    Raises:
        ConfigError: The number of graphs is not positive.
        FamilyError: The family has no graphs of that size, or its law is not tractable.
    """
    if graphs < 1:
        raise ConfigError(f"'graphs' is {graphs}; it should be at least 1.")
    law.check_size(n)

    return (law.draw_nats(n, stream(seed, "floor", n, i)) for i in range(graphs))


def known_entropy(law: Family, n: int) -> EntropyEstimate | None:
    """The floor without drawing a graph: in closed form, or from the shipped table; None where neither has it.

    Raises:
        FamilyError: The family has no graphs of that size.
    """
    exact = law.entropy(n)
    if exact is not None:
        return EntropyEstimate.exact(exact)
    shipped = _table().get(law.name)
    if shipped is None or shipped["parameters"] != law.parameters():
        return None
    row = shipped["floors"].get(str(n))

    return None if row is None else EntropyEstimate(**row)


def mean_entropy(entropies: Mapping[int, EntropyEstimate], sizes: Sequence[int]) -> EntropyEstimate:
    """The floor of graphs of these sizes, which may occur more than once.

    Arguments:
        floors: The floor of each size, independent of each other.
        sizes: The number of nodes of each graph.
    """
    shares = {n: count / len(sizes) for n, count in Counter(sizes).items()}

    return EntropyEstimate(
        lower=sum(share * entropies[n].lower for n, share in shares.items()),
        upper=sum(share * entropies[n].upper for n, share in shares.items()),
        standard_error=_joined([(share, entropies[n].standard_error) for n, share in shares.items()]),
        graphs=sum(entropies[n].graphs for n in shares),
        gap_standard_error=_joined([(share, entropies[n].gap_standard_error) for n, share in shares.items()]),
    )


def _joined(errors: Sequence[tuple[float, float | None]]) -> float | None:
    """The standard error of a weighted sum of independent figures; None where that of one is not known."""
    known = [share * error for share, error in errors if error is not None]

    return math.hypot(*known) if len(known) == len(errors) else None


@cache
def _table() -> Mapping[str, Any]:
    """The shipped floors, by family."""
    content: Mapping[str, Any] = json.loads(files(__package__).joinpath(TABLE).read_text(encoding="utf-8"))

    return content
