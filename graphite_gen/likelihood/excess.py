"""What the true law says of the same graphs: the floor, and how far a model is above it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import DatasetError, FamilyError
from ..families import Family
from ..families.entropies import EntropyEstimate, known_entropy, mean_entropy
from ..graph import SimpleGraph
from ..records import Record, mean_with_error

__all__ = ["Entropy", "expected_entropy", "find_entropy", "paired_entropy"]


@dataclass(frozen=True)
class Entropy(Record):
    """The floor of graphs and a model's excess over it, in nats per graph.

    Attributes:
        nats: The mean of -log p(A|n) under the family's law: of these very graphs if paired, else expected of graphs of
            their sizes.
        excess: The mean of a model's NLL less that, graph by graph.
        excess_standard_error: Its standard error over graphs, with that of an expected floor; None for a single graph.
        per_graph: -log p(A|n) of each graph; None for each if it is only expected.
        paired: Whether the floor is of these very graphs.
        standard_error: The standard error of an expected floor; None if paired.
    """

    nats: float
    excess: float
    excess_standard_error: float | None
    per_graph: tuple[float | None, ...]
    paired: bool = True
    standard_error: float | None = None


def find_entropy(law: Family, graphs: Sequence[SimpleGraph], nlls: Sequence[float]) -> Entropy:
    """The paired floor where the law is exact, else the expected one."""
    return (paired_entropy if law.has_log_prob else expected_entropy)(law, graphs, nlls)


def paired_entropy(law: Family, graphs: Sequence[SimpleGraph], nlls: Sequence[float]) -> Entropy:
    """The floor over these very graphs, and the paired excess of a model's NLLs.

    The difference is taken graph by graph: its noise is a small part of the NLL's own.

    Raises:
        FamilyError: The law is not tractable.
        DatasetError: A graph is not of the family.
    """
    entropies = []
    for index, graph in enumerate(graphs):
        value = -law.log_prob(graph)
        if not math.isfinite(value):
            raise _refuse(law, index)
        entropies.append(value)
    excess, error = mean_with_error((np.asarray(nlls) - entropies).tolist())

    return Entropy(float(np.mean(entropies)), excess, error, tuple(entropies))


def expected_entropy(law: Family, graphs: Sequence[SimpleGraph], nlls: Sequence[float]) -> Entropy:
    """The floor that graphs of these sizes have in expectation, and the excess of a model's NLLs over it.

    A graph may lie above or below what is expected of its size, so the excess is noisier than a paired one: its
    standard error combines that over graphs with the floor's own.

    Raises:
        FamilyError: The floor is not known for these parameters or sizes: the message says how to estimate it.
        DatasetError: A graph is not of the family.
    """
    sizes = [graph.nodes for graph in graphs]
    known = {n: known_entropy(law, n) for n in sorted(set(sizes))}
    entropies: dict[int, EntropyEstimate] = {n: entropy for n, entropy in known.items() if entropy is not None}
    if len(entropies) < len(known):
        raise FamilyError(_how_to_estimate(law, [n for n in known if n not in entropies]))
    for index, graph in enumerate(graphs):
        if not law.contains(graph):
            raise _refuse(law, index)
    entropy = mean_entropy(entropies, sizes)
    excess, error = mean_with_error([nll - entropies[n].nats for nll, n in zip(nlls, sizes, strict=True)])
    combined = None if error is None or entropy.standard_error is None else math.hypot(error, entropy.standard_error)

    return Entropy(
        entropy.nats, excess, combined, (None,) * len(sizes), paired=False, standard_error=entropy.standard_error
    )


def _how_to_estimate(law: Family, missing: Sequence[int]) -> str:
    if not law.can_draw_nats:
        return f"The law of '{law.name}' ({_settings(law)}) cannot be bounded; it can with default parameters."
    changed = {key: value for key, value in law.parameters().items() if value != getattr(type(law)(), key)}
    options = "".join(f" --param {key}={str(value).lower()}" for key, value in changed.items())
    nodes = f"{missing[0]}:{missing[-1]}" if len(missing) > 1 else f"{missing[0]}"

    return (
        f"'{law.name}' ({_settings(law)}) has none in the shipped table for {nodes} nodes. "
        f"Estimate it with 'graphite-gen families --floor {law.name}{options} --nodes {nodes}'."
    )


def _refuse(law: Family, index: int) -> DatasetError:
    return DatasetError(f"Graph {index} cannot come from '{law.name}' with {_settings(law)}.")


def _settings(law: Family) -> str:
    return ", ".join(f"{key}={value}" for key, value in law.parameters().items())
