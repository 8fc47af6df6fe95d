"""The interface of a family of random graphs, and the registry of families by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, get_type_hints

import numpy as np
from numpy.typing import ArrayLike

from ..errors import FamilyError, did_you_mean
from ..graph import SimpleGraph, as_simple_graph
from ..records import listed

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["FAMILIES", "PAPER_FAMILIES", "Family", "family", "neighbour_masks", "shuffled"]

# Draws before :meth:`Family.draw_nats` gives up on a size.
MAX_DRAWS = 10_000

_registry: dict[str, type[Family]] = {}

FAMILIES: Mapping[str, type[Family]] = MappingProxyType(_registry)
"""Every family by its name, without aliases."""

PAPER_FAMILIES = ("barabasi", "ego", "erdos-renyi", "geometric", "powerlaw-tree", "regular")
"""The families of the paper, which have bundled models; their graphs are undirected and have no attributes."""


class Family(ABC):
    r"""An exchangeable distribution :math:`p(A \mid n)` over graphs on numbered nodes.

    With node labels or weights it is their joint distribution with the edges; weights have a density.

    A subclass is a frozen dataclass whose fields are its parameters. It implements the methods with a leading
    underscore; the public methods here validate their arguments and accept networkx graphs.

    Attributes:
        aliases: Other accepted names.
        summary: One line for the table of families.
        has_log_prob: Whether :meth:`log_prob` is tractable for some parameters.
        least_nodes: The smallest graphs, unless that depends on the parameters.
        most_nodes: The largest graphs that are sampled; sampling takes :math:`n^2` memory, here about a gigabyte.
        max_checked: The number of samples that are checked for validity, where that is slow; None for all.
        node_label: The node attribute that is part of a graph; None if there is none.
        weighted: Whether edges have weights.
        directed: Whether edges are arcs.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    summary: ClassVar[str]
    has_log_prob: ClassVar[bool] = True
    least_nodes: ClassVar[int] = 1
    most_nodes: ClassVar[int] = 5000
    max_checked: ClassVar[int | None] = None
    node_label: ClassVar[str | None] = None
    weighted: ClassVar[bool] = False
    directed: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        if "name" in cls.__dict__:
            known = {**_registry, cls.name: cls}
            # Sorted, so that the order of imports does not matter.
            _registry.clear()
            _registry.update(sorted(known.items()))

    def check_size(self, n: int) -> None:
        """Raise a :class:`FamilyError` if graphs with ``n`` nodes cannot be sampled."""
        if n > self.most_nodes:
            message = f"'{self.name}' has samples of at most {self.most_nodes} nodes, not {n}."
            raise FamilyError(message, reason="family-size", n=n, most=self.most_nodes)
        self._check_size(n)

    def sizes(self, low: int, high: int) -> list[int]:
        """The numbers of nodes from ``low`` to ``high`` that the family has graphs with, at least one."""
        sizes = [n for n in range(max(low, 0), high + 1) if self._has_size(n)] if high <= self.most_nodes else []
        if not sizes:
            self.check_size(high)

        return sizes

    def sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        """A graph on ``n`` nodes, its labels uniformly shuffled."""
        self.check_size(n)

        return self._sample(n, rng)

    def contains(self, graph: SimpleGraph | nx.Graph) -> bool:
        """Whether the graph has positive probability given its number of nodes; False without the attributes."""
        graph = as_simple_graph(graph)

        return not self._missing(graph) and self._contains(graph)

    def log_prob(self, graph: SimpleGraph | nx.Graph) -> float:
        r"""The exact :math:`\log p(A \mid n)` in nats, ``-inf`` for graphs outside the family.

        It raises a :class:`FamilyError` where it is intractable, in general or for this graph, and for a graph without
        the attributes of the family.
        """
        return self._log_prob(self._with_attributes(graph))

    def log_prob_parts(self, graph: SimpleGraph | nx.Graph) -> dict[str, float]:
        """The terms of :meth:`log_prob`, which is their sum: ``structure`` and, where there are any, ``labels`` and
        ``weights``; each is conditional on those before it.
        """
        return self._log_prob_parts(self._with_attributes(graph))

    def entropy(self, n: int) -> float | None:
        r"""The expected :math:`-\log p(A \mid n)` in nats, a lower bound on the NLL of any model; None without a closed
        form: see :func:`graphite_gen.families.entropies.known_entropy`, or average :meth:`draw_nats`.
        """
        self._check_size(n)

        return self._entropy(n)

    def draw_nats(self, n: int, rng: np.random.Generator) -> tuple[float, float]:
        r"""Lower and upper bounds, in expectation, on :math:`-\log p(A \mid n)` of a new sample, in nats.

        They are equal where :meth:`log_prob` is exact. Their means over samples enclose the entropy.
        """
        self.check_size(n)

        return self._draw_nats(n, rng)

    def _check_size(self, n: int) -> None:
        """Raise :meth:`_size_error` if the family has no graphs with ``n`` nodes."""
        if n < self.least_nodes:
            raise self._size_error(n, f"n should be at least {self.least_nodes}")

    @abstractmethod
    def _sample(self, n: int, rng: np.random.Generator) -> SimpleGraph: ...

    @abstractmethod
    def _contains(self, graph: SimpleGraph) -> bool: ...

    def _log_prob(self, graph: SimpleGraph) -> float:
        raise FamilyError(f"'{self.name}' has no tractable probability.", reason="intractable")

    def _log_prob_parts(self, graph: SimpleGraph) -> dict[str, float]:
        return {"structure": self._log_prob(graph)}

    def _entropy(self, n: int) -> float | None:
        return None

    def _draw_nats(self, n: int, rng: np.random.Generator) -> tuple[float, float]:
        # With 'largest_component', most samples may have fewer than n nodes.
        for _ in range(MAX_DRAWS):
            graph = self._sample(n, rng)
            if graph.nodes == n:
                nats = -self._log_prob(graph)
                return nats, nats
        raise FamilyError(f"{self.label()} had no connected graph with n={n} nodes in {MAX_DRAWS} samples.")

    def _with_attributes(self, graph: SimpleGraph | nx.Graph) -> SimpleGraph:
        graph = as_simple_graph(graph)
        missing = self._missing(graph)
        if missing:
            raise FamilyError(f"Graphs of '{self.name}' {missing}.", reason="family-attributes")

        return graph

    def _missing(self, graph: SimpleGraph) -> str:
        """What distinguishes graphs of the family from a graph with other attributes; empty if there is nothing."""
        if graph.directed != self.directed:
            return "are directed; this one is not" if self.directed else "are undirected; this one is directed"
        if self.node_label is not None and self.node_label not in graph.node_attributes:
            return f"have the node attribute '{self.node_label}'; this one does not"

        return "have weights; this one does not" if self.weighted and graph.weights is None else ""

    @property
    def can_draw_nats(self) -> bool:
        """Whether :meth:`draw_nats` works with these parameters, at least for small graphs."""
        return True

    def parameters(self) -> dict[str, Any]:
        """The parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def _has_size(self, n: int) -> bool:
        try:
            self._check_size(n)
        except FamilyError:
            return False

        return True

    def _size_error(self, n: int, expected: str) -> FamilyError:
        message = f"{self.label()} has no graphs with n={n} nodes: {expected}."

        return FamilyError(message, reason="family-size", n=n)

    def _intractable_error(self, why: str, **facts: int) -> FamilyError:
        message = f"The probability of {self.label()} is intractable {why}."

        return FamilyError(message, reason="intractable", **facts)

    @classmethod
    def _value_error(cls, parameter: str, value: object, expected: str) -> FamilyError:
        message = f"'{cls.name}' has {parameter}={value}; it should be {expected}."

        return FamilyError(message, reason="family-value", parameter=parameter)

    def label(self) -> str:
        """The name and the parameters, for messages."""
        return f"'{self.name}' ({', '.join(f'{key}={value}' for key, value in self.parameters().items())})"


def family(name: str, **parameters: Any) -> Family:
    """The family of that name or alias, with its parameters; strings are parsed as the type of the parameter."""
    kinds = {key: kind for kind in FAMILIES.values() for key in (kind.name, *kind.aliases)}
    kind = kinds.get(name.strip().lower().replace("_", "-"))
    if kind is None:
        message = f"There is no family '{name}'{did_you_mean(name, kinds)}; there are {listed(FAMILIES)}."
        raise FamilyError(message, reason="unknown-family", name=name)

    hints = get_type_hints(kind)
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for key in parameters:
        if key not in known:
            message = f"'{kind.name}' has no parameter '{key}'{did_you_mean(key, known)}; it has {listed(known)}."
            raise FamilyError(message, reason="unknown-parameter", name=key)

    return kind(**{key: _parsed(kind, key, hints[key], value) for key, value in parameters.items()})


def _parsed(family: type[Family], key: str, kind: type, value: Any) -> Any:
    """A parameter value converted to the type of its field."""
    expected = {int: "an integer", float: "a number", bool: "true or false"}[kind]
    error = family._value_error(key, repr(value), expected)

    if kind is bool:
        found = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if str(value).strip().lower() not in found:
            raise error
        return found[str(value).strip().lower()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, str | Real):
        raise error
    try:
        number = float(value)
        if kind is int and not number.is_integer():
            raise error
        return kind(number)
    except (ValueError, OverflowError):
        raise error from None


def shuffled(n: int, pairs: ArrayLike, rng: np.random.Generator) -> SimpleGraph:
    """The graph with these edges, its nodes relabelled by a uniform permutation."""
    return SimpleGraph.from_pairs(n, rng.permutation(n)[np.asarray(pairs, dtype=np.int64).reshape(-1, 2)])


def neighbour_masks(graph: SimpleGraph) -> list[int]:
    """The neighbours of each node as a bit mask."""
    masks = [0] * graph.nodes
    for i, j in graph.edges.tolist():
        masks[i] |= 1 << j
        masks[j] |= 1 << i

    return masks
