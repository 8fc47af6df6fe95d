"""Stochastic block model whose blocks are node labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from string import ascii_lowercase
from typing import ClassVar

import numpy as np

from ..graph import SimpleGraph
from .base import Family
from .erdos_renyi import log_prob_of_pairs, pair_entropy

__all__ = ["LabelledSBM"]


@dataclass(frozen=True)
class LabelledSBM(Family):
    r"""The block of each node is uniform among :math:`k`, and pairs are edges with probability :math:`p_\mathrm{in}`
    within a block and :math:`p_\mathrm{out}` between blocks.

    The node attribute ``block`` is a letter. Graph and labels have the joint probability
    :math:`p(A, L \mid n) = k^{-n} p(A \mid L)`.
    """

    name: ClassVar[str] = "labelled-sbm"
    summary: ClassVar[str] = "node labels are k blocks, edges have probability p_in within and p_out between"
    node_label: ClassVar[str] = "block"

    k: int = 3
    p_in: float = 0.8
    p_out: float = 0.1

    def __post_init__(self) -> None:
        if not 1 <= self.k <= len(ascii_lowercase):
            raise self._value_error("k", self.k, f"between 1 and {len(ascii_lowercase)}")
        for name in ("p_in", "p_out"):
            if not 0 <= getattr(self, name) <= 1:
                raise self._value_error(name, getattr(self, name), "between 0 and 1")

    def _sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        blocks = rng.integers(self.k, size=n)
        i, j = np.triu_indices(n, 1)
        chosen = rng.random(len(i)) < np.where(blocks[i] == blocks[j], self.p_in, self.p_out)
        edges = np.stack([i[chosen], j[chosen]], axis=1).astype(np.int32)

        return SimpleGraph(n, edges, node_attributes={self.node_label: [ascii_lowercase[b] for b in blocks]})

    def _contains(self, graph: SimpleGraph) -> bool:
        return self._log_prob(graph) > -math.inf

    def _log_prob(self, graph: SimpleGraph) -> float:
        return sum(self._log_prob_parts(graph).values())

    def _log_prob_parts(self, graph: SimpleGraph) -> dict[str, float]:
        n, labels = graph.nodes, graph.node_attributes[self.node_label]
        blocks = {letter: block for block, letter in enumerate(ascii_lowercase[: self.k])}
        if n < self.least_nodes or not all(isinstance(label, str) and label in blocks for label in labels):
            return {"labels": -math.inf, "structure": -math.inf}
        block = np.array([blocks[label] for label in labels])
        inside = sum(math.comb(size, 2) for size in np.bincount(block).tolist())
        edges_inside = int((block[graph.edges[:, 0]] == block[graph.edges[:, 1]]).sum())
        outside, edges_outside = math.comb(n, 2) - inside, len(graph.edges) - edges_inside

        return {
            "labels": -n * math.log(self.k),
            "structure": log_prob_of_pairs(edges_inside, inside, self.p_in)
            + log_prob_of_pairs(edges_outside, outside, self.p_out),
        }

    def _entropy(self, n: int) -> float:
        # A pair is within a block with probability 1 / k.
        pair = (pair_entropy(self.p_in) + (self.k - 1) * pair_entropy(self.p_out)) / self.k

        return n * math.log(self.k) + math.comb(n, 2) * pair
