"""Drawing the weights of complete graphs, arc after arc, beside weights that are known."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .feature_head import pair_features
from .heads import Arcs, AttributeNoise, WeightHead, WeightInputs

__all__ = ["draw_weights"]


def draw_weights(
    head: WeightHead,
    arcs: Arcs,
    states: Tensor,
    degrees: Tensor,
    noise: AttributeNoise,
    known: Tensor | None = None,
    features: Tensor | None = None,
) -> Tensor:
    """Draw the weights of arcs from their noise, each given those before it, with shape :math:`(B, N, N)`.

    Arguments:
        states: The final states of nodes, with shape :math:`(B, N, d)`.
        degrees: Their degrees, with shape :math:`(B, N)`.
        known: Weights that are kept, NaN where one is drawn, with shape :math:`(B, N, N)`; None to draw all.
        features: Standardised node features, with shape :math:`(B, N, C)`, if they are generated.

    Returns:
        The weights from sources to targets; zero elsewhere.
    """
    assert noise.components is not None
    assert noise.values is not None
    place = np.empty_like(arcs.graph)
    order = np.argsort(arcs.graph, kind="stable")
    place[order] = np.arange(len(order)) - np.searchsorted(arcs.graph[order], arcs.graph[order])
    weights = torch.zeros(*degrees.shape, degrees.shape[1], dtype=torch.float64, device=degrees.device)
    # Sums and numbers of weights so far: of each graph and of each node.
    of_graph = weights.new_zeros(len(weights), 2)
    of_node = weights.new_zeros(*weights.shape[:2], 2)
    by_place = np.argsort(place, kind="stable")
    for at in np.split(by_place, np.searchsorted(place[by_place], np.arange(1, place.max(initial=0) + 1))):
        every = tuple(_tensor(part[at], degrees) for part in arcs)
        values = weights.new_zeros(len(at)) if known is None else known[every[:3]]
        is_drawn = torch.ones_like(values, dtype=torch.bool) if known is None else values.isnan()
        if is_drawn.any():
            own, i, j, kind = (part[is_drawn] for part in every)
            read = torch.stack([of_graph[own], of_node[own, i], of_node[own, j]], -1).flatten(1)
            if features is not None:
                read = torch.cat([read, pair_features(features[own, i], features[own, j])], -1)
            inputs = WeightInputs(
                states[own, i],
                states[own, j],
                torch.stack([degrees[own, i], degrees[own, j]], -1),
                kind,
                read,
            )
            values[is_drawn] = head.sample(inputs, noise.components[own, i, j], noise.values[own, i, j])
        own, i, j, _ = every
        weights[own, i, j] = values
        added = torch.stack([head.standardised(values), torch.ones_like(values)], -1)
        of_graph[own] += added
        of_node[own, i] += added
        of_node[own, j] += added

    return weights


def _tensor(values: NDArray[np.int64], like: Tensor) -> Tensor:
    return torch.from_numpy(values).to(like.device)
