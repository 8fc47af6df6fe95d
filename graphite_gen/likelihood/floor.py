"""What the true law says of the same graphs: the floor, and how far a model is above it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import DatasetError
from ..families import Family
from ..graph import SimpleGraph
from ..records import Record

__all__ = ["Floor", "paired_floor"]


@dataclass(frozen=True)
class Floor(Record):
    """The floor of graphs and a model's excess over it, in nats per graph.

    Attributes:
        nats: The mean of -log p(A|n) under the family's law.
        excess: The mean of a model's NLL less that, graph by graph.
        excess_standard_error: Its standard error over graphs; None for a single graph.
        per_graph: -log p(A|n) of each graph.
    """

    nats: float
    excess: float
    excess_standard_error: float | None
    per_graph: tuple[float, ...]


def paired_floor(law: Family, graphs: Sequence[SimpleGraph], nlls: Sequence[float]) -> Floor:
    """The floor over these very graphs, and the paired excess of a model's NLLs.

    The difference is taken graph by graph: its noise is a small part of the NLL's own.

    Raises:
        FamilyError: The law is not tractable.
        DatasetError: A graph is not of the family.
    """
    floors = []
    for index, graph in enumerate(graphs):
        value = -law.log_prob(graph)
        if not math.isfinite(value):
            raise DatasetError(f"Graph {index} cannot come from '{law.name}' with {_settings(law)}.")
        floors.append(value)
    excess = np.asarray(nlls) - floors
    error = float(excess.std(ddof=1) / math.sqrt(len(excess))) if len(excess) > 1 else None

    return Floor(float(np.mean(floors)), float(excess.mean()), error, tuple(floors))


def _settings(law: Family) -> str:
    return ", ".join(f"{key}={value}" for key, value in law.parameters().items())
