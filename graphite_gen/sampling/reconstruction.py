"""Graphs decoded from their own latents, and how many of their edges come back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import SamplingError
from ..graph import SimpleGraph
from ..records import Record
from ..training.checkpoint import TrainedModel
from .encoding import encode_graphs
from .sampler import Sampler

__all__ = ["EdgeRecovery", "Reconstruction", "edge_recovery", "reconstruct"]


@dataclass(frozen=True)
class EdgeRecovery(Record):
    """How many edges of some graphs are edges of others on the same nodes.

    Attributes:
        precision: The proportion of decoded edges that are edges of the graphs; None if there are none.
        recall: The proportion of edges of the graphs that were decoded; None if there are none.
    """

    precision: float | None
    recall: float | None


@dataclass(frozen=True)
class Reconstruction:
    """Graphs decoded from their own latents.

    Attributes:
        graphs: The decoded graphs, with the nodes of the graphs given.
        recovery: The edges that come back.
        chance: The expected value for random graphs with the numbers of edges of the decoded ones.
        prior: The same with latents from the prior, and the same node orderings: what sizes and orderings alone give
            away. None for an autoencoder, which has no prior.
    """

    graphs: tuple[SimpleGraph, ...] = field(repr=False)
    recovery: EdgeRecovery
    chance: EdgeRecovery
    prior: EdgeRecovery | None

    def to_json(self) -> dict[str, Any]:
        """The numbers as JSON values."""
        parts = {name: getattr(self, name) for name in ("recovery", "chance", "prior")}

        return {"graphs": len(self.graphs), **{name: part and part.to_json() for name, part in parts.items()}}


def reconstruct(model: TrainedModel, graphs: Sequence[SimpleGraph], seed: int = 0) -> Reconstruction:
    """Encode graphs, draw latents from their posteriors, and decode them."""
    if model.config.observation == "normal":
        raise SamplingError(
            f"'{model.name}' decodes a weight for every pair of nodes, so there are no edges to recover.",
            reason="weighted-model",
        )
    encoded = list(encode_graphs(model, graphs, seed))
    decoded = list(Sampler(model, len(graphs), seed=seed, encoded=encoded))
    # Whether edges come back, whatever they carry.
    graphs, found, prior = [graph.skeleton() for graph in graphs], [graph.skeleton() for graph in decoded], None
    if model.config.is_variational:
        blind = [replace(one, mean=np.zeros_like(one.mean), std=np.ones_like(one.std)) for one in encoded]
        drawn = [graph.skeleton() for graph in Sampler(model, len(graphs), seed=seed, encoded=blind)]
        prior = edge_recovery(graphs, drawn)

    return Reconstruction(tuple(decoded), edge_recovery(graphs, found), _chance(graphs, found), prior)


def edge_recovery(graphs: Sequence[SimpleGraph], decoded: Sequence[SimpleGraph]) -> EdgeRecovery:
    """Compare graphs with decoded ones, over all of their edges together."""
    pairs = zip(graphs, decoded, strict=True)
    hits = [len(_edges(graph) & _edges(other)) for graph, other in pairs]

    return _proportions(math.fsum(hits), graphs, decoded)


def _edges(graph: SimpleGraph) -> set[tuple[int, ...]]:
    return set(map(tuple, graph.edges.tolist()))


def _chance(graphs: Sequence[SimpleGraph], decoded: Sequence[SimpleGraph]) -> EdgeRecovery:
    """The expected recovery if the edges of each decoded graph were uniformly random pairs: hypergeometric means."""
    hits = [
        len(graph.edges) * len(other.edges) / max(math.comb(graph.nodes, 2), 1)
        for graph, other in zip(graphs, decoded, strict=True)
    ]

    return _proportions(math.fsum(hits), graphs, decoded)


def _proportions(hits: float, graphs: Sequence[SimpleGraph], decoded: Sequence[SimpleGraph]) -> EdgeRecovery:
    given, found = (sum(len(graph.edges) for graph in some) for some in (graphs, decoded))

    return EdgeRecovery(hits / found if found else None, hits / given if given else None)
