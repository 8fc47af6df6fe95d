"""Hard constraints on sampled graphs, and the bounds on degrees and edges that they amount to."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import ClassVar

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ..data.properties import has_planar_embedding, is_acyclic, is_connected, is_dag, is_tree
from ..errors import SamplingError
from ..graph import SimpleGraph

__all__ = [
    "Acyclic",
    "AllOf",
    "Connected",
    "Constraint",
    "Dag",
    "Degrees",
    "Edges",
    "MaxDegree",
    "Planar",
    "Regular",
    "Requirements",
    "Tree",
]


@dataclass(frozen=True)
class Requirements:
    """The common form of all constraints on a graph with :math:`n` nodes.

    Bounds on the degrees have shape :math:`(n,)`; flags tell whether the graph must be connected, a forest, or planar.
    """

    min_degree: NDArray[np.int64]
    max_degree: NDArray[np.int64]
    min_edges: int
    max_edges: int
    connected: bool = False
    acyclic: bool = False
    planar: bool = False

    @classmethod
    def none(cls, nodes: int) -> Requirements:
        """Return the bounds that every graph satisfies."""
        return cls(np.zeros(nodes, dtype=np.int64), np.full(nodes, max(nodes - 1, 0)), 0, math.comb(nodes, 2))

    @property
    def nodes(self) -> int:
        """The number of nodes :math:`n`."""
        return len(self.min_degree)

    def __and__(self, other: Requirements) -> Requirements:
        return Requirements(
            np.maximum(self.min_degree, other.min_degree),
            np.minimum(self.max_degree, other.max_degree),
            max(self.min_edges, other.min_edges),
            min(self.max_edges, other.max_edges),
            self.connected or other.connected,
            self.acyclic or other.acyclic,
            self.planar or other.planar,
        )

    def tightened(self) -> Requirements:
        """Add the bounds on degrees and edges that follow from the others."""
        nodes = self.nodes
        min_degree = np.maximum(self.min_degree, 1) if self.connected and nodes > 1 else self.min_degree
        min_edges = max(self.min_edges, -(-int(min_degree.sum()) // 2), nodes - 1 if self.connected else 0)
        max_edges = min(self.max_edges, int(self.max_degree.sum()) // 2)
        if self.acyclic:
            # A forest on the nodes that may have edges has fewer edges than nodes.
            max_edges = min(max_edges, max(int((self.max_degree > 0).sum()) - 1, 0))
        if self.planar and nodes >= 3:
            max_edges = min(max_edges, 3 * nodes - 6)

        return replace(self, min_degree=min_degree, min_edges=min_edges, max_edges=max_edges)

    def conflict(self) -> str | None:
        """Return why no graph satisfies the requirements, or None if no conflict is known.

        This is exact for degrees, edges, trees and forests, and necessary only for planar graphs with given degrees.
        """
        if self.nodes and self.min_degree.max() > self.nodes - 1:
            return f"a degree is at most {self.nodes - 1}, and {self.min_degree.max()} is required"
        tight = self.tightened()
        clash = np.flatnonzero(tight.min_degree > tight.max_degree)
        if len(clash):
            low, high = tight.min_degree[clash[0]], tight.max_degree[clash[0]]
            return f"a node would have at least {low} and at most {high} neighbours"
        if (self.min_degree == self.max_degree).all():
            total = int(self.min_degree.sum())
            if total % 2:
                return f"the degrees sum to {total}, which is odd"
            if not nx.is_graphical(self.min_degree.tolist()):
                return "the degree sequence is not graphical"
        if tight.min_edges > tight.max_edges:
            return f"at least {tight.min_edges} edges are required, and at most {tight.max_edges} are possible"

        return None

    def permuted(self, order: NDArray[np.int64]) -> Requirements:
        """Move node ``order[i]`` to position ``i``."""
        return replace(self, min_degree=self.min_degree[order], max_degree=self.max_degree[order])


class Constraint(ABC):
    """A property that every sampled graph must have."""

    @property
    @abstractmethod
    def label(self) -> str:
        """A short name, for metadata and messages."""

    @abstractmethod
    def requirements(self, nodes: int) -> Requirements:
        """Return the requirements on a graph with this number of nodes."""

    @abstractmethod
    def holds(self, graph: SimpleGraph) -> bool:
        """Whether a graph satisfies the constraint, checked independently of how it was sampled."""

    def conflict(self, nodes: int) -> str | None:
        """Return why no graph with this number of nodes satisfies the constraint, or None if no reason is known."""
        if self.nodes not in (None, nodes):
            return f"the degree sequence has length {self.nodes}"

        return self.requirements(nodes).conflict()

    @property
    def nodes(self) -> int | None:
        """The only possible number of nodes; None for any."""
        return None


@dataclass(frozen=True)
class Tree(Constraint):
    """The graph is a tree: connected and acyclic."""

    label = "tree"

    def requirements(self, nodes: int) -> Requirements:
        return replace(Requirements.none(nodes), connected=True, acyclic=True)

    def holds(self, graph: SimpleGraph) -> bool:
        return is_tree(graph)


@dataclass(frozen=True)
class Connected(Constraint):
    """The graph is connected."""

    label = "connected"

    def requirements(self, nodes: int) -> Requirements:
        return replace(Requirements.none(nodes), connected=True)

    def holds(self, graph: SimpleGraph) -> bool:
        return is_connected(graph)


@dataclass(frozen=True)
class Acyclic(Constraint):
    """The graph is a forest: it has no cycle."""

    label = "acyclic"

    def requirements(self, nodes: int) -> Requirements:
        return replace(Requirements.none(nodes), acyclic=True)

    def holds(self, graph: SimpleGraph) -> bool:
        return is_acyclic(graph)


@dataclass(frozen=True)
class Dag(Constraint):
    """The graph is directed and has no directed cycle."""

    label = "dag"

    def requirements(self, nodes: int) -> Requirements:
        return Requirements.none(nodes)

    def holds(self, graph: SimpleGraph) -> bool:
        return graph.directed and is_dag(graph.nodes, graph.edges)


@dataclass(frozen=True)
class Planar(Constraint):
    """The graph can be drawn in the plane without crossings."""

    label = "planar"

    def requirements(self, nodes: int) -> Requirements:
        return replace(Requirements.none(nodes), planar=True)

    def holds(self, graph: SimpleGraph) -> bool:
        return has_planar_embedding(graph)


class _Count(Constraint):
    """A constraint whose only field is a number."""

    name: ClassVar[str]

    def __post_init__(self) -> None:
        for field, value in vars(self).items():
            object.__setattr__(self, field, _checked(self.name, value))

    @property
    def label(self) -> str:
        return " ".join([self.name, *map(str, vars(self).values())])


@dataclass(frozen=True)
class Edges(_Count):
    """The graph has ``count`` edges."""

    count: int
    name = "edges"

    def requirements(self, nodes: int) -> Requirements:
        return replace(Requirements.none(nodes), min_edges=self.count, max_edges=min(self.count, math.comb(nodes, 2)))

    def holds(self, graph: SimpleGraph) -> bool:
        return len(graph.edges) == self.count


@dataclass(frozen=True)
class MaxDegree(_Count):
    """No node has more than ``degree`` neighbours."""

    degree: int
    name = "max-degree"

    def requirements(self, nodes: int) -> Requirements:
        free = Requirements.none(nodes)

        return replace(free, max_degree=np.minimum(free.max_degree, self.degree))

    def holds(self, graph: SimpleGraph) -> bool:
        return bool((graph.degrees() <= self.degree).all())


@dataclass(frozen=True)
class Regular(_Count):
    """Every node has ``degree`` neighbours."""

    degree: int
    name = "regular"

    def requirements(self, nodes: int) -> Requirements:
        degrees = np.full(nodes, self.degree)

        return replace(Requirements.none(nodes), min_degree=degrees, max_degree=degrees)

    def holds(self, graph: SimpleGraph) -> bool:
        return bool((graph.degrees() == self.degree).all())


@dataclass(frozen=True)
class Degrees(Constraint):
    """Node i has ``degrees[i]`` neighbours."""

    degrees: tuple[int, ...]

    def __init__(self, degrees: Iterable[int]) -> None:
        found = tuple(_checked("degrees", degree) for degree in degrees)
        if not found:
            raise SamplingError("The degree sequence is empty; it should have one degree for each node.")
        object.__setattr__(self, "degrees", found)

    @property
    def label(self) -> str:
        return f"degrees {','.join(map(str, self.degrees))}"

    @property
    def nodes(self) -> int:
        return len(self.degrees)

    def requirements(self, nodes: int) -> Requirements:
        degrees = np.array(self.degrees)

        return replace(Requirements.none(nodes), min_degree=degrees, max_degree=degrees)

    def holds(self, graph: SimpleGraph) -> bool:
        return graph.nodes == self.nodes and bool((graph.degrees() == np.array(self.degrees)).all())


@dataclass(frozen=True)
class AllOf(Constraint):
    """The conjunction of several constraints."""

    constraints: tuple[Constraint, ...]

    def __post_init__(self) -> None:
        for part in self.constraints:
            if not isinstance(part, Constraint):
                is_class = isinstance(part, type) and issubclass(part, Constraint)
                name = part.__name__ if is_class else "Tree"
                found = f"the class '{name}'" if is_class else repr(part)
                raise SamplingError(f"A constraint is {found}; expected an instance of gg.{name}.")

    @property
    def label(self) -> str:
        return ", ".join(dict.fromkeys(constraint.label for constraint in self.constraints))

    @property
    def nodes(self) -> int | None:
        return next((part.nodes for part in self.constraints if part.nodes is not None), None)

    def requirements(self, nodes: int) -> Requirements:
        return reduce(operator.and_, (part.requirements(nodes) for part in self.constraints), Requirements.none(nodes))

    def conflict(self, nodes: int) -> str | None:
        wrong = next((part for part in self.constraints if part.nodes not in (None, nodes)), None)

        return super().conflict(nodes) if wrong is None else wrong.conflict(nodes)

    def holds(self, graph: SimpleGraph) -> bool:
        # All others are about the skeleton.
        return all(
            constraint.holds(graph if isinstance(constraint, Dag) else graph.skeleton())
            for constraint in self.constraints
        )


def _checked(name: str, value: int) -> int:
    """Convert any integer type to int."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number < 2**63:
        raise SamplingError(f"'{name}' is {value!r}; it should be an integer of at least 0, and less than 2⁶³.")

    return number
