"""Degree-preserving edge swaps towards a decoder's log-odds and the statistics of an observed network."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .arcs import Arcs, Flags, Indices
from .pair_logits import PairLogits
from .splits import is_among

__all__ = ["Observed", "Rewiring", "degree_classes"]

Values = NDArray[np.float64]

# Decoders place edges a little too far, since they are low-rank: log-odds are multiplied by this.
SHARPNESS = 2.0
# Proposals of a sweep, as a proportion of the edges, and the longest random walk between two edges to swap.
_PROPOSED, _WALK = 0.125, 3
# The proportion of proposals that swap with an edge anywhere.
_ANYWHERE = 0.1
# Steps of the multipliers, which shrink with the sweeps as 1 / (1 + sweep / _SETTLING), and their bound.
_COPY_STEP, _TRIANGLE_STEP, _MIXING_STEP, _SETTLING, _MOST = 0.4, 0.6, 8.0, 60, 20.0
_AHEAD = 30
# Sweeps in which the proportion of copied edges goes from one to the bound.
_FALL = 40
# Sweeps between two adaptations to the triangles, whose count takes as long as a sweep.
_COUNTED = 2
# The multiplier of copied edges at the start, before the bound is known to need more.
_COPY_COST = 4.0
# The proportion of copied edges that the chain aims at, relative to the bound.
_AIM = 0.95


def degree_classes(degrees: Indices) -> Indices:
    """Classes of similar degrees, four per octave; nodes of degree 0 and 1, which have no triangles, are in class 0."""
    return np.floor(4 * np.log2(np.maximum(degrees, 1))).astype(np.int64)


@dataclass(frozen=True)
class Observed:
    """Statistics of an observed network, which rewired graphs should have.

    Attributes:
        nodes: The number of its nodes.
        keys: Its edges i < j, as the numbers i * nodes + j in ascending order, with shape :math:`(E,)`.
        triangles: The mean number of triangles at a node of each degree class, with shape :math:`(C,)`.
        assortativity: The degree assortativity; None if all degrees are equal.
    """

    nodes: int
    keys: Indices
    triangles: Values
    assortativity: float | None

    @classmethod
    def of(cls, edges: Indices, nodes: int) -> Observed:
        """The statistics of edges i < j with shape :math:`(2, E)`."""
        arcs = Arcs.of(edges, nodes)
        classes = degree_classes(arcs.degrees())
        sums = np.bincount(classes, weights=arcs.triangles())
        x = _standardised(arcs.degrees(), edges)
        mixing = float((x[edges[0]] * x[edges[1]]).mean()) if x.any() else None

        return cls(nodes, np.sort(edges[0] * nodes + edges[1]), sums / np.maximum(np.bincount(classes), 1), mixing)

    def contain(self, i: Indices, j: Indices) -> Flags:
        """Whether pairs of observed nodes are edges, with the shape of the arguments."""
        return is_among(np.minimum(i, j) * self.nodes + np.maximum(i, j), self.keys)


@dataclass
class Rewiring:
    r"""A graph under degree-preserving swaps, many at a time; a Markov chain whose target is

    .. math:: p(A) \propto \exp\Big(\beta \sum_{ij \in A} l_{ij} - \nu |A \cap A_0| + \sum_c \mu_c t_c + \alpha r\Big).

    For :math:`\beta = 1` and without the other terms that is the decoder's distribution over graphs (eq. 10), given
    their degrees. They tilt it by the number of edges shared with the observed graph :math:`A_0`, by the triangles
    :math:`t_c` at the nodes of degree class :math:`c`, and by the assortativity :math:`r`. The multipliers are adapted
    between sweeps, so that the statistics approach those of the observed network. Biases of nodes in the log-odds
    have no effect, since degrees do not change.

    A swap replaces the edges ab and cd by ac and bd. The walks that propose cd for ab depend on the graph, which is not
    corrected for, and the swaps of a sweep are accepted at once: it is a search for likely graphs with the statistics,
    rather than an exact sampler.

    Attributes:
        edges: The current edges, with shape :math:`(2, E)`.
        logits: Log-odds of pairs of its :math:`N` nodes.
        like: The observed node that each node is a copy of, with shape :math:`(N,)`.
        observed: The statistics to approach.
        bound: The largest proportion of edges that are copied from the observed network.
    """

    edges: Indices
    logits: PairLogits
    like: Indices
    observed: Observed
    bound: float
    copy_cost: float = field(default=_COPY_COST, init=False)
    mixing: float = field(default=0.0, init=False)
    closing: Values = field(init=False)
    arcs: Arcs = field(init=False)
    sweeps: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.replace_edges(self.edges)
        degrees = self.arcs.degrees()
        self._classes = degree_classes(degrees)
        count = max(len(self.observed.triangles), int(self._classes.max(initial=0)) + 1)
        self._wanted = np.pad(self.observed.triangles, (0, count - len(self.observed.triangles)))
        self._wanted *= np.bincount(self._classes, minlength=count)
        self._excess = _standardised(degrees, self.edges)
        self._factor = self.logits.factor.detach().numpy()
        self._signed = SHARPNESS * self._factor * self.logits.sign.detach().numpy()
        self.closing = np.zeros(count)
        self._copied_before = self.copied()

    def copied(self) -> float:
        """The proportion of edges that are copied: whose ends are copies of adjacent nodes of the observed network."""
        return float(self._is_copied(*self.edges).mean()) if self.edges.size else 0.0

    def affinity(self, i: Indices, j: Indices) -> Values:
        """The sharpened log-odds of pairs without the terms of their nodes, with the shape of the arguments."""
        return np.einsum("...r,...r->...", self._signed[i], self._factor[j]).astype(np.float64)

    def sweep(self, rng: np.random.Generator) -> int:
        """Propose swaps of an eighth of the edges, then adapt the multipliers; the number of accepted swaps."""
        swaps = self._proposals(max(1, round(_PROPOSED * self.edges.shape[1])), rng)
        # In two stages, so that triangles are counted for few proposals: each is a Metropolis rule for its terms.
        swaps = swaps[:, np.log1p(-rng.random(swaps.shape[1])) < self.gain(swaps)]
        swaps = swaps[:, np.log1p(-rng.random(swaps.shape[1])) < self.closed(swaps)]
        self.apply(swaps)
        self._adapt()
        self.sweeps += 1

        return int(swaps.shape[1])

    def apply(self, swaps: Indices) -> None:
        """Perform swaps with shape (6, M): the positions of both edges, and the nodes a, b, c, d."""
        first, second, a, b, c, d = swaps
        self.edges[:, first] = np.minimum(a, c), np.maximum(a, c)
        self.edges[:, second] = np.minimum(b, d), np.maximum(b, d)
        self.replace_edges(self.edges)

    def replace_edges(self, edges: Indices) -> None:
        """Continue with other edges of the same degrees."""
        self.edges = edges
        self.arcs = Arcs.of(edges, len(self.like))

    def _proposals(self, count: int, rng: np.random.Generator) -> Indices:
        """Possible swaps that have no edge in common, and no new edge; see :meth:`apply`."""
        first = rng.permutation(self.edges.shape[1])[:count]
        a, b = rng.permuted(self.edges[:, first], axis=0)
        c, steps = a.copy(), rng.integers(1, _WALK + 1, len(first))
        for step in range(_WALK):
            going = step < steps
            c[going] = self.arcs.targets[self.arcs.step(c[going], rng)]
        anywhere = rng.random(len(first)) < _ANYWHERE
        c[anywhere] = self.arcs.targets[rng.integers(0, len(self.arcs.targets), int(anywhere.sum()))]
        arc = self.arcs.step(c, rng)
        c, d = rng.permuted(np.stack([c, self.arcs.targets[arc]]), axis=0)
        swaps = np.stack([first, self.arcs.edge[arc], a, b, c, d])
        possible = (a != c) & (a != d) & (b != c) & (b != d)
        swaps = swaps[:, possible & ~self.arcs.contain(a, c) & ~self.arcs.contain(b, d)]
        swaps = swaps[:, _apart(swaps[:2])]
        ends = np.sort(swaps[[[2, 3], [4, 5]]], axis=0)

        return swaps[:, _apart(ends[0] * len(self.like) + ends[1])]

    def gain(self, swaps: Indices) -> Values:
        """The change of the exponent by each swap, without its triangles, with shape (M,)."""
        _, _, a, b, c, d = swaps
        x = self._excess
        gain = self.affinity(a, c) + self.affinity(b, d) - self.affinity(a, b) - self.affinity(c, d)
        gain += self.mixing * (x[a] - x[d]) * (x[c] - x[b])
        new, old = (self._is_copied(*ends).reshape(2, -1).sum(0) for ends in _ends(swaps))

        return gain - self.copy_cost * (new - old.astype(np.float64))

    def closed(self, swaps: Indices) -> Values:
        """The change of the triangle terms of the exponent by each swap, with shape (M,)."""
        count = swaps.shape[1]
        near, far = np.concatenate(_ends(swaps), axis=1)
        pair, node = self.arcs.common_neighbours(near, far)
        swap = pair % max(count, 1)
        # The removed edges close no triangle with the new ones.
        counted = (pair >= 2 * count) | (node != swaps[2:, swap]).all(0)
        pair, node, swap = pair[counted], node[counted], swap[counted]
        terms = self.closing[self._classes]
        value = terms[near[pair]] + terms[far[pair]] + terms[node]

        change = np.bincount(swap, weights=np.where(pair < 2 * count, value, -value), minlength=count)

        return change.astype(np.float64, copy=False)

    def _adapt(self) -> None:
        share = 1 / (1 + self.sweeps / _SETTLING)
        aim = max(_AIM * self.bound, 1 - self.sweeps / _FALL)
        # The proportion expected after some sweeps, since swaps follow the multiplier slowly.
        now = self.copied()
        expected = max(now + _AHEAD * (now - self._copied_before), 0.0)
        self._copied_before = now
        step = _COPY_STEP * np.clip(np.log((expected + 0.01) / (aim + 0.01)), -2, 2)
        # The bound holds even if the other terms need edges that are copied.
        step *= share if step < 0 or now <= self.bound else 1.0
        self.copy_cost = max(self.copy_cost + float(step), 0.0) if self.bound < 1 else 0.0
        if self.observed.assortativity is not None and self.edges.size:
            x = self._excess
            missing = self.observed.assortativity - float((x[self.edges[0]] * x[self.edges[1]]).mean())
            self.mixing = float(np.clip(self.mixing + _MIXING_STEP * share * missing, -_MOST, _MOST))
        if self.sweeps % _COUNTED == 0:
            found = np.bincount(self._classes, weights=self.arcs.triangles(), minlength=len(self.closing))
            step = _TRIANGLE_STEP * np.sqrt(share) * np.log((self._wanted + 1) / (found + 1))
            self.closing = np.clip(self.closing + step, -_MOST, _MOST)

    def _is_copied(self, i: Indices, j: Indices) -> Flags:
        return self.observed.contain(self.like[i], self.like[j])


def _ends(swaps: Indices) -> tuple[Indices, Indices]:
    """The ends of the new edges ac and bd, then those of the removed edges ab and cd, each with shape (2, 2M)."""
    a, b, c, d = swaps[2:]

    return np.hstack([[a, c], [b, d]]), np.hstack([[a, b], [c, d]])


def _apart(pairs: Indices) -> Flags:
    """Columns of shape (2, M) neither of whose numbers is in an earlier column, or twice in the same one."""
    numbers = pairs.T.ravel()
    is_first = np.zeros(len(numbers), dtype=np.bool_)
    is_first[np.unique(numbers, return_index=True)[1]] = True

    return np.asarray(is_first.reshape(-1, 2).all(1))


def _standardised(degrees: Indices, edges: Indices) -> Values:
    """Degrees less their mean over ends of edges, by their standard deviation; zeros if that is zero."""
    ends = degrees[edges].astype(np.float64)
    spread = ends.std() if ends.size else 0.0

    return (degrees - ends.mean()) / spread if spread > 0 else np.zeros(len(degrees))
