"""A path of graphs between two graphs, through their latents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from ..data.encoded import EncodedGraph
from ..errors import SamplingError
from ..graph import SimpleGraph
from ..rng import stream
from ..training.checkpoint import TrainedModel
from .constraints import Constraint
from .encoding import encode_graphs
from .sampler import Sampler

__all__ = ["interpolate", "latent_path", "spherical"]

Floats = NDArray[np.float32]

# The sine of an angle below which a spherical path is a straight line in single precision.
STRAIGHT = 1e-4


def interpolate(
    model: TrainedModel,
    first: SimpleGraph,
    last: SimpleGraph,
    count: int,
    *,
    seed: int = 0,
    constraints: Sequence[Constraint] = (),
) -> list[SimpleGraph]:
    """Decode ``count`` graphs on a path between two graphs, whose ends are decoded from the graphs themselves.

    The graph attribute ``t`` goes from 0 to 1. Graphs of the same size are decoded with the same random numbers, so
    that they differ by their latents (and node orderings) alone.
    """
    if count < 2:
        raise SamplingError(f"The number of graphs on a path is {count}; it should be at least 2, for its ends.")
    start, end = encode_graphs(model, [first, last], seed)
    path = latent_path(start, end, count, seed)
    graphs = [next(iter(Sampler(model, 1, seed=seed, constraints=constraints, encoded=[point]))) for point in path]

    return [
        replace(graph, attributes={**graph.attributes, "t": index / (count - 1)}) for index, graph in enumerate(graphs)
    ]


def latent_path(first: EncodedGraph, last: EncodedGraph, count: int, seed: int = 0) -> list[EncodedGraph]:
    """Latents on a path between two encoded graphs.

    Nodes are matched by linear assignment of their posterior means, and matched nodes share the noise of their draw
    from the posteriors, so that latents which say nothing about the graphs stay as they are. All latents of the matched
    nodes together follow a spherical path (Shoemake, 1985), on which they keep the norm that the prior gives them. The
    nodes that only the larger graph has keep their latents, and are added one by one in its node ordering. Positions in
    the node ordering and node features change linearly.
    """
    if first.nodes > last.nodes:
        return latent_path(last, first, count, seed)[::-1]
    a, b = _matched(first, last)
    common, nodes = first.nodes, last.nodes
    noise = stream(seed, "interpolate").standard_normal(b.mean.shape, dtype=np.float32)
    start, end = a.mean + a.std * noise[:common], b.mean + b.std * noise

    path = []
    for t in np.linspace(0, 1, count):
        size = round(common + t * (nodes - common))
        z = np.concatenate([spherical(start, end[:common], t), end[common:]])[:size]
        features = None
        if a.features is not None and b.features is not None:
            features = np.concatenate([(1 - t) * a.features + t * b.features[:common], b.features[common:]])[:size]
            features = features.astype(np.float32)
        path.append(EncodedGraph.exact(z, position=_positions(a, b, t, size), features=features))

    return path


def spherical(start: Floats, end: Floats, t: float) -> Floats:
    """Spherical linear interpolation between two arrays, seen as vectors."""
    norms = float(np.linalg.norm(start)) * float(np.linalg.norm(end))
    angle = float(np.arccos(np.clip(np.vdot(start, end) / norms, -1, 1))) if norms else 0.0
    if t in (0, 1) or np.sin(angle) < STRAIGHT:
        return ((1 - t) * start + t * end).astype(np.float32)

    return ((np.sin((1 - t) * angle) * start + np.sin(t * angle) * end) / np.sin(angle)).astype(np.float32)


def _matched(first: EncodedGraph, last: EncodedGraph) -> tuple[EncodedGraph, EncodedGraph]:
    """The graphs with matched nodes first, in the order of the first graph, and the others in decoding order."""
    cost = np.square(first.mean[:, None] - last.mean).sum(-1)
    matched = linear_sum_assignment(cost)[1]
    others = np.setdiff1d(np.arange(last.nodes), matched)
    if last.position is not None:
        others = others[np.argsort(last.position[others])]
    order = np.concatenate([matched, others])

    return replace(first, names=None), EncodedGraph(
        last.mean[order],
        last.std[order],
        None if last.position is None else last.position[order],
        None if last.features is None else last.features[order],
    )


def _positions(a: EncodedGraph, b: EncodedGraph, t: float, size: int) -> NDArray[np.int32] | None:
    """The node ordering at ``t``, by positions relative to the size of each graph."""
    if a.position is None or b.position is None:
        return None
    keys = b.position / b.nodes
    keys[: a.nodes] = (1 - t) * a.position / a.nodes + t * keys[: a.nodes]

    return np.argsort(np.argsort(keys[:size], kind="stable"), kind="stable").astype(np.int32)
