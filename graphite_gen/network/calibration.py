"""Biases and a shift that give the logits of all pairs the degrees and the density of an observed graph."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from .edge_sampler import sample_edges
from .losses import pair_count
from .pair_logits import PairLogits

__all__ = ["density_shift", "expected_degrees", "fit_biases"]

# So many logits are held at once.
_TILE = 1 << 18
# Beside this many edges a node that has none still has a finite bias.
_ENTROPY = 0.1
# Steps are no longer than if this part of a degree could still change: that of a hub is mostly settled.
_LEAST_SLOPE = 0.1
# A shift is found by all pairs of so many nodes; of more, first by the pairs of a few, then by edges of so many.
_ALL_NODES, _FEW_NODES, _MANY_NODES = 4096, 2048, 100_000
_SHIFTS = (-100.0, 100.0)
# Steps to a shift, if no earlier one is as short as this.
_STEPS, _PRECISION = 50, 1e-5
# Drawn edges tell what a shift does as far as this, and nothing of pairs that would be edges under a larger one.
_NEAR = 1.0
# Graphs that are drawn until the shift is near.
_DRAWS = 5


@torch.no_grad()
def expected_degrees(logits: PairLogits, part: float = 1.0) -> tuple[Tensor, Tensor]:
    """The expected degree of each node, and how fast it grows with the node's bias, both with shape :math:`(N,)`.

    Arguments:
        logits: The logits of all pairs.
        part: The part of the other nodes that are there to be tied to.
    """
    degrees, slopes = torch.zeros_like(logits.bias), torch.zeros_like(logits.bias)
    height = max(1, _TILE // max(logits.nodes, 1))
    for start in range(0, logits.nodes, height):
        rows, columns = slice(start, min(start + height, logits.nodes)), slice(start, logits.nodes)
        # Each pair stands once, above the diagonal.
        chances = logits.tile(rows, columns).sigmoid_().triu_(1)
        for sums, values in ((degrees, chances), (slopes, chances - chances.square())):
            sums[rows] += values.sum(1)
            sums[columns] += values.sum(0)

    return part * degrees, part * slopes


@torch.no_grad()
def fit_biases(draws: Iterable[PairLogits], degrees: Tensor, part: float = 1.0) -> Tensor:
    r"""Biases :math:`b_i` by which expected degrees are the observed ones, with shape :math:`(N,)`.

    That is their maximum-likelihood estimate, since the derivative of the log-likelihood by :math:`b_i` is the observed
    less the expected degree of node :math:`i`. Every draw takes half a step of Newton's method on the logarithm of each
    degree, as both ends of a pair move.

    Arguments:
        draws: Logits, of other latents at every draw: degrees are to be right on average over them.
        degrees: The observed degrees, with shape :math:`(N,)`.
        part: The part of the nodes that are there, as for :func:`expected_degrees`.
    """
    biases = torch.zeros_like(degrees)
    for logits in draws:
        expected, slopes = expected_degrees(replace(logits, bias=logits.bias + biases), part)
        open_share = (slopes / expected.clamp_min(torch.finfo(expected.dtype).tiny)).clamp_min(_LEAST_SLOPE)
        biases += 0.5 * torch.log((degrees + _ENTROPY) / (expected + _ENTROPY)) / open_share

    return biases


@torch.no_grad()
def density_shift(logits: PairLogits, edges: float, rng: np.random.Generator) -> float:
    """What is to be added to all logits for the expected number of edges to be the one given.

    Of many nodes, first a few are looked at. Then a graph of them, or of a large part, is drawn: its edges, each
    weighted by how much more or less likely it would be, tell the expected number under any shift near by. Where none
    so near is enough, as when no edge was drawn at all, another graph is drawn from there.

    Arguments:
        logits: The logits of all pairs.
        edges: The expected number of edges, less than that of all pairs.
        rng: The randomness, on which little depends.
    """
    order = torch.from_numpy(rng.permutation(logits.nodes))
    density = edges / max(pair_count(logits.nodes), 1)
    few = _part(logits, order if len(order) <= _ALL_NODES else order[:_FEW_NODES])
    values = few.tile(slice(None), slice(None)).fill_diagonal_(-math.inf).flatten()
    # Each pair stands twice.
    shift = _solve(values, torch.full_like(values, 0.5), density * pair_count(few.nodes), *_SHIFTS)
    if few.nodes == logits.nodes:
        return shift

    many = _part(logits, order[:_MANY_NODES])
    for _ in range(_DRAWS):
        near = replace(many, shift=many.shift + shift)
        found = near.of(torch.from_numpy(sample_edges(near, rng)))
        step = _solve(found, 1 / torch.sigmoid(found), density * pair_count(many.nodes), -_NEAR, _NEAR)
        shift += step
        if abs(step) < 0.99 * _NEAR:
            break

    return shift


def _part(logits: PairLogits, nodes: Tensor) -> PairLogits:
    """The logits of some nodes, by their numbers."""
    return replace(logits, factor=logits.factor[nodes], bias=logits.bias[nodes])


def _solve(values: Tensor, weights: Tensor, total: float, low: float, high: float) -> float:
    """The shift between two by which the weighted sum of probabilities is the total.

    Newton's method on the logarithm of the sum, which is nearly a straight line where probabilities are small; a step
    that would leave what is still possible goes to its middle instead.
    """
    shift = 0.0
    for _ in range(_STEPS):
        chances = torch.sigmoid(values + shift)
        found = float(chances @ weights)
        if found < total:
            low = shift
        else:
            high = shift
        slope = found - float(chances.square_() @ weights)
        step = math.log(total / found) * found / slope if min(total, found, slope) > 0 else math.inf
        before, shift = shift, shift + step if low < shift + step < high else (low + high) / 2
        if abs(shift - before) < _PRECISION:
            break

    return shift
