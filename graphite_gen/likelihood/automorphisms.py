"""From labelled graphs to isomorphism classes, whose labelled copies all have the same probability."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..errors import ConfigError, DatasetError
from ..graph import SimpleGraph
from ..records import GraphNLL
from .excess import Entropy

__all__ = ["entropy_of_classes", "log_labellings", "nll_of_class"]


def log_labellings(graph: SimpleGraph) -> float:
    r"""The logarithm of the number of labelled copies of a graph, :math:`\log(n! / |Aut(A)|)`."""
    try:
        import igraph
    except ImportError as error:
        raise ConfigError("Counting automorphisms needs igraph: install it with 'pip install igraph'.") from error
    if graph.weights is not None or graph.features is not None:
        raise DatasetError("Isomorphism classes are defined here for graphs without weights and node features only.")
    automorphisms = igraph.Graph(n=graph.nodes, edges=graph.edges.tolist()).count_automorphisms()

    return math.lgamma(graph.nodes + 1) - math.log(automorphisms)


def nll_of_class(row: GraphNLL, labellings: float) -> GraphNLL:
    """Convert the estimate of a labelled graph to its isomorphism class, given its :func:`log_labellings`."""
    return replace(
        row,
        nll=row.nll - labellings,
        elbo=row.elbo + labellings,
        baseline=None if row.baseline is None else row.baseline - labellings,
        curve=tuple((samples, nats - labellings) for samples, nats in row.curve),
    )


def entropy_of_classes(entropy: Entropy, labellings: Sequence[float]) -> Entropy:
    """The entropy over isomorphism classes of the same graphs; the excess NLL is unchanged."""
    per_graph = tuple(
        None if own is None else own - shift for own, shift in zip(entropy.per_graph, labellings, strict=True)
    )

    return replace(entropy, nats=entropy.nats - float(np.mean(labellings)), per_graph=per_graph)
