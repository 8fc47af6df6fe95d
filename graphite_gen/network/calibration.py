"""Calibration of logits to the degrees and the density of an observed network."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from .edge_sampler import sample_edges
from .pair_logits import PairLogits

__all__ = ["density_shift", "expected_degrees", "fit_biases"]

# Logits in memory at once.
_TILE = 1 << 18
# Added to degrees, so that isolated nodes have a finite bias.
_PSEUDOCOUNT = 0.1
# Lower bound on the relative slope of a degree, which limits the steps of saturated hubs.
_LEAST_SLOPE = 0.1
# Up to _ALL_NODES nodes the shift uses all pairs; beyond, all pairs of a few nodes, then sampled edges of many.
_ALL_NODES, _FEW_NODES, _MANY_NODES = 4096, 2048, 100_000
_SHIFTS = (-100.0, 100.0)
# Iterations of the root finder, and its tolerance.
_STEPS, _PRECISION = 50, 1e-5
# Importance weights of sampled edges are reliable for shifts up to this size.
_NEAR = 1.0
# Maximum number of graphs sampled to find a shift.
_DRAWS = 5


@torch.no_grad()
def expected_degrees(logits: PairLogits, fraction: float = 1.0) -> tuple[Tensor, Tensor]:
    """Expected degree of each node, if a fraction of the others is present, and its derivative by the node's bias."""
    degrees, slopes = torch.zeros_like(logits.bias), torch.zeros_like(logits.bias)
    height = max(1, _TILE // max(logits.nodes, 1))
    for start in range(0, logits.nodes, height):
        rows, columns = slice(start, min(start + height, logits.nodes)), slice(start, logits.nodes)
        # Each pair once, above the diagonal.
        p = logits.tile(rows, columns).sigmoid_().triu_(1)
        for sums, values in ((degrees, p), (slopes, p - p.square())):
            sums[rows] += values.sum(1)
            sums[columns] += values.sum(0)

    return fraction * degrees, fraction * slopes


@torch.no_grad()
def fit_biases(draws: Iterable[PairLogits], degrees: Tensor, fraction: float = 1.0) -> Tensor:
    r"""Biases :math:`b_i` for which expected degrees equal the observed ones, with shape :math:`(N,)`.

    That is the maximum-likelihood estimate: the derivative of the log-likelihood by :math:`b_i` is the observed minus
    the expected degree of node :math:`i`. Each draw is half a Newton step on the log degrees; half, since both ends of
    a pair move. Degrees are matched on average over the draws, which differ in their latents.
    """
    biases = torch.zeros_like(degrees)
    for logits in draws:
        expected, slopes = expected_degrees(replace(logits, bias=logits.bias + biases), fraction)
        slope = (slopes / expected.clamp_min(torch.finfo(expected.dtype).tiny)).clamp_min(_LEAST_SLOPE)
        biases += 0.5 * torch.log((degrees + _PSEUDOCOUNT) / (expected + _PSEUDOCOUNT)) / slope

    return biases


@torch.no_grad()
def density_shift(logits: PairLogits, edges: float, rng: np.random.Generator) -> float:
    """The shift of all logits for which the expected number of edges is the given one.

    For many nodes, a first estimate comes from all pairs of a few of them. A graph is then sampled, and its edges with
    importance weights give the expected number of edges for shifts near by. If the root is out of reach, for example
    because no edge was sampled, another graph is sampled from there.
    """
    order = torch.from_numpy(rng.permutation(logits.nodes))
    density = edges / max(math.comb(logits.nodes, 2), 1)
    few = _subset(logits, order if len(order) <= _ALL_NODES else order[:_FEW_NODES])
    values = few.tile(slice(None), slice(None)).fill_diagonal_(-math.inf).flatten()
    # Each pair occurs twice.
    shift = _solve(values, torch.full_like(values, 0.5), density * math.comb(few.nodes, 2), *_SHIFTS)
    if few.nodes == logits.nodes:
        return shift

    many = _subset(logits, order[:_MANY_NODES])
    for _ in range(_DRAWS):
        near = replace(many, shift=many.shift + shift)
        found = near.of(torch.from_numpy(sample_edges(near, rng)))
        step = _solve(found, 1 / torch.sigmoid(found), density * math.comb(many.nodes, 2), -_NEAR, _NEAR)
        shift += step
        if abs(step) < 0.99 * _NEAR:
            break

    return shift


def _subset(logits: PairLogits, nodes: Tensor) -> PairLogits:
    return replace(logits, factor=logits.factor[nodes], bias=logits.bias[nodes])


def _solve(values: Tensor, weights: Tensor, total: float, low: float, high: float) -> float:
    """The shift in an interval for which the weighted sum of probabilities is the total.

    Newton's method on the logarithm of the sum, which is nearly linear for small probabilities, with bisection where a
    step would leave the interval.
    """
    shift = 0.0
    for _ in range(_STEPS):
        p = torch.sigmoid(values + shift)
        found = float(p @ weights)
        if found < total:
            low = shift
        else:
            high = shift
        slope = found - float(p.square_() @ weights)
        step = math.log(total / found) * found / slope if min(total, found, slope) > 0 else math.inf
        before, shift = shift, shift + step if low < shift + step < high else (low + high) / 2
        if abs(shift - before) < _PRECISION:
            break

    return shift
