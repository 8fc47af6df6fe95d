"""Entropy of a family as the lower bound on NLL, and the excess NLL of a model over it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..data.schema import AttributeSchema
from ..errors import DatasetError, FamilyError
from ..families import Family
from ..families.entropies import EntropyEstimate, known_entropy, mean_entropy
from ..graph import SimpleGraph
from ..records import Record, mean_with_error

__all__ = ["Entropy", "expected_entropy", "find_entropy", "paired_entropy"]

PLAIN = AttributeSchema()


@dataclass(frozen=True)
class Entropy(Record):
    """The entropy of graphs under their family and the excess NLL of a model, in nats per graph.

    Attributes:
        nats: The mean of -log p(A|n) under the family: of these graphs if paired, else expected for their sizes.
        excess: The mean of the model's NLL minus that, graph by graph.
        excess_standard_error: Its standard error, combined with that of an expected entropy; None for one graph.
        per_graph: -log p(A|n) of each graph under the family; all None unless paired.
        standard_error: The standard error of an expected entropy; None if paired.
    """

    nats: float
    excess: float
    excess_standard_error: float | None
    per_graph: tuple[float | None, ...]
    paired: bool = True
    standard_error: float | None = None


def find_entropy(
    family: Family, graphs: Sequence[SimpleGraph], nlls: Sequence[float], schema: AttributeSchema = PLAIN
) -> Entropy:
    """The paired entropy and excess NLL if the family has exact probabilities, else the expected ones.

    Raises:
        FamilyError: The entropy is not known, or includes other attributes than the NLLs of a model with this schema.
    """
    _check_attributes(family, schema)

    return (paired_entropy if family.has_log_prob else expected_entropy)(family, graphs, nlls)


def paired_entropy(family: Family, graphs: Sequence[SimpleGraph], nlls: Sequence[float]) -> Entropy:
    """-log p(A|n) of these graphs under the family, and the paired excess of a model's NLLs.

    The difference is taken graph by graph, which removes most of the variance of the NLL.
    """
    entropies = []
    for index, graph in enumerate(graphs):
        entropies.append(-family.log_prob(graph))
        if not math.isfinite(entropies[-1]):
            raise _outside_support(family, index)
    excess, error = mean_with_error((np.asarray(nlls) - entropies).tolist())

    return Entropy(float(np.mean(entropies)), excess, error, tuple(entropies))


def expected_entropy(family: Family, graphs: Sequence[SimpleGraph], nlls: Sequence[float]) -> Entropy:
    """The entropy of the family for graphs of these sizes, and the excess of a model's NLLs over it.

    The difference is not paired and therefore noisier than that of :func:`paired_entropy`.
    """
    sizes = [graph.nodes for graph in graphs]
    known = {n: known_entropy(family, n) for n in sorted(set(sizes))}
    entropies: dict[int, EntropyEstimate] = {n: entropy for n, entropy in known.items() if entropy is not None}
    if len(entropies) < len(known):
        raise _unknown_entropy(family, [n for n in known if n not in entropies])
    for index, graph in enumerate(graphs):
        if not family.contains(graph):
            raise _outside_support(family, index)
    entropy = mean_entropy(entropies, sizes)
    excess, error = mean_with_error([nll - entropies[n].nats for nll, n in zip(nlls, sizes, strict=True)])
    combined = None if error is None or entropy.standard_error is None else math.hypot(error, entropy.standard_error)

    return Entropy(
        entropy.nats, excess, combined, (None,) * len(sizes), paired=False, standard_error=entropy.standard_error
    )


def _check_attributes(family: Family, schema: AttributeSchema) -> None:
    """Raise a :class:`FamilyError` if the entropy is one of other attributes than the NLL of a model."""
    parts = {
        "node labels": (family.node_label, schema.node_label),
        "edge labels": (None, schema.edge_label),
        "weights": (family.weighted, bool(schema.weights)),
        "edge directions": (family.directed, schema.directed),
        "node features": (False, bool(schema.features.names)),
    }
    for part, (is_of_family, is_of_model) in parts.items():
        if is_of_family and not is_of_model:
            raise FamilyError(f"The entropy of {family.label()} includes {part}, the NLL of the model does not.")
        if is_of_model and not is_of_family:
            raise FamilyError(f"The NLL of the model includes {part}, the entropy of {family.label()} does not.")


def _unknown_entropy(family: Family, missing: Sequence[int]) -> FamilyError:
    if not family.can_draw_nats:
        return FamilyError(f"The entropy of {family.label()} cannot be bounded; it can with default parameters.")
    nodes = f"{missing[0]}:{missing[-1]}" if len(missing) > 1 else f"{missing[0]}"

    return FamilyError(
        f"The entropy of {family.label()} is not in the shipped table for {nodes} nodes.",
        reason="entropy-unknown",
        family=family.name,
        nodes=nodes,
        parameters={key: value for key, value in family.parameters().items() if value != getattr(type(family)(), key)},
    )


def _outside_support(family: Family, index: int) -> DatasetError:
    return DatasetError(f"Graph {index} cannot come from {family.label()}.")
