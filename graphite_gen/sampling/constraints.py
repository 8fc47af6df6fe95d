"""Hard constraints on sampled graphs: what each one asks, and whether a graph does it."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ..data.properties import has_planar_embedding, is_connected, is_tree
from ..errors import SamplingError
from ..graph import SimpleGraph
from .requirements import Demands

__all__ = [
    "Acyclic",
    "AllOf",
    "Connected",
    "Constraint",
    "Degrees",
    "Edges",
    "MaxDegree",
    "Planar",
    "Regular",
    "Tree",
]


class Constraint(ABC):
    """Something that every sampled graph must be."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The constraint in a word or two, as metadata and messages have it."""

    @abstractmethod
    def demands(self, nodes: int) -> Demands:
        """What is asked of a graph on so many nodes."""

    @abstractmethod
    def holds(self, graph: SimpleGraph) -> bool:
        """Whether a graph does it, found out independently of how it was drawn."""

    def obstacle(self, nodes: int) -> str | None:
        """Why no graph on so many nodes does it, or None where nothing speaks against it."""
        return self.demands(nodes).obstacle()

    @property
    def nodes(self) -> int | None:
        """The one number of nodes that the constraint leaves possible; None for any."""
        return None


@dataclass(frozen=True)
class Tree(Constraint):
    """The graph is a tree: connected and without cycles."""

    @property
    def label(self) -> str:
        return "tree"

    def demands(self, nodes: int) -> Demands:
        return replace(Demands.nothing(nodes), connected=True, acyclic=True)

    def holds(self, graph: SimpleGraph) -> bool:
        return is_tree(graph)


@dataclass(frozen=True)
class Connected(Constraint):
    """The graph has one component."""

    @property
    def label(self) -> str:
        return "connected"

    def demands(self, nodes: int) -> Demands:
        return replace(Demands.nothing(nodes), connected=True)

    def holds(self, graph: SimpleGraph) -> bool:
        return is_connected(graph)


@dataclass(frozen=True)
class Acyclic(Constraint):
    """The graph is a forest: it has no cycle."""

    @property
    def label(self) -> str:
        return "acyclic"

    def demands(self, nodes: int) -> Demands:
        return replace(Demands.nothing(nodes), acyclic=True)

    def holds(self, graph: SimpleGraph) -> bool:
        leaves = graph.degrees()
        alive = np.ones(len(graph.edges), dtype=np.bool_)
        # Take away edges at leaves until none is left: what remains are the cycles.
        while len(ends := np.flatnonzero(alive & (leaves[graph.edges] == 1).any(1))):
            alive[ends] = False
            leaves = np.bincount(graph.edges[alive].ravel(), minlength=graph.nodes)

        return not alive.any()


@dataclass(frozen=True)
class Planar(Constraint):
    """The graph can be drawn in the plane without crossings."""

    @property
    def label(self) -> str:
        return "planar"

    def demands(self, nodes: int) -> Demands:
        return replace(Demands.nothing(nodes), planar=True)

    def holds(self, graph: SimpleGraph) -> bool:
        return has_planar_embedding(graph)


@dataclass(frozen=True)
class Edges(Constraint):
    """The graph has a given number of edges.

    Attributes:
        count: The number of edges.
    """

    count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", _whole("edges", self.count))

    @property
    def label(self) -> str:
        return f"edges {self.count}"

    def demands(self, nodes: int) -> Demands:
        anything = Demands.nothing(nodes)

        return replace(anything, least=self.count, most=min(self.count, anything.most))

    def holds(self, graph: SimpleGraph) -> bool:
        return len(graph.edges) == self.count


@dataclass(frozen=True)
class MaxDegree(Constraint):
    """No node has more than a given number of neighbours.

    Attributes:
        degree: That number.
    """

    degree: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", _whole("max_degree", self.degree))

    @property
    def label(self) -> str:
        return f"max-degree {self.degree}"

    def demands(self, nodes: int) -> Demands:
        anything = Demands.nothing(nodes)

        return replace(anything, highest=np.minimum(anything.highest, self.degree))

    def holds(self, graph: SimpleGraph) -> bool:
        return bool((graph.degrees() <= self.degree).all())


@dataclass(frozen=True)
class Regular(Constraint):
    """Every node has the same number of neighbours.

    Attributes:
        degree: That number.
    """

    degree: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", _whole("regular", self.degree))

    @property
    def label(self) -> str:
        return f"regular {self.degree}"

    def demands(self, nodes: int) -> Demands:
        return _fixed(nodes, np.full(nodes, self.degree))

    def holds(self, graph: SimpleGraph) -> bool:
        return bool((graph.degrees() == self.degree).all())


@dataclass(frozen=True)
class Degrees(Constraint):
    """Node i has the i-th of the given numbers of neighbours.

    Attributes:
        degrees: The number of neighbours of each node.
    """

    degrees: tuple[int, ...]

    def __init__(self, degrees: Iterable[int]) -> None:
        found = tuple(_whole("degrees", degree) for degree in degrees)
        if not found:
            raise SamplingError("No degrees were given. Pass one for each node, as in 3,2,2,1.")
        object.__setattr__(self, "degrees", found)

    @property
    def label(self) -> str:
        return f"degrees {','.join(map(str, self.degrees))}"

    @property
    def nodes(self) -> int:
        return len(self.degrees)

    def demands(self, nodes: int) -> Demands:
        assert nodes == self.nodes

        return _fixed(nodes, np.array(self.degrees))

    def obstacle(self, nodes: int) -> str | None:
        if nodes != self.nodes:
            return f"{self.nodes} degree{'s are' if self.nodes > 1 else ' is'} given"

        return super().obstacle(nodes)

    def holds(self, graph: SimpleGraph) -> bool:
        return graph.nodes == self.nodes and bool((graph.degrees() == np.array(self.degrees)).all())


@dataclass(frozen=True)
class AllOf(Constraint):
    """Several constraints at once.

    Attributes:
        constraints: What must hold.
    """

    constraints: tuple[Constraint, ...]

    @property
    def label(self) -> str:
        return ", ".join(dict.fromkeys(constraint.label for constraint in self.constraints))

    @property
    def nodes(self) -> int | None:
        return next((part.nodes for part in self.constraints if part.nodes is not None), None)

    def demands(self, nodes: int) -> Demands:
        joined = Demands.nothing(nodes)
        for constraint in self.constraints:
            joined &= constraint.demands(nodes)

        return joined

    def obstacle(self, nodes: int) -> str | None:
        wrong = next((part for part in self.constraints if part.nodes not in (None, nodes)), None)

        return super().obstacle(nodes) if wrong is None else wrong.obstacle(nodes)

    def holds(self, graph: SimpleGraph) -> bool:
        return all(constraint.holds(graph) for constraint in self.constraints)


def _fixed(nodes: int, degrees: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Demands:
    return replace(Demands.nothing(nodes), lowest=degrees, highest=degrees)


def _whole(name: str, value: int) -> int:
    """A number that can be counted to, whichever integer it came as."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number < 2**63:
        raise SamplingError(f"'{name}' is {value!r}; it should be a whole number of at least 0, and less than 2⁶³.")

    return number
