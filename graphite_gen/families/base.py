"""What every family of random graphs can do, and how one is found by name."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from numbers import Real
from types import MappingProxyType
from typing import Any, ClassVar, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import FamilyError
from ..graph import SimpleGraph

__all__ = ["FAMILIES", "Family", "family"]

_registry: dict[str, type[Family]] = {}

FAMILIES: Mapping[str, type[Family]] = MappingProxyType(_registry)
"""Every family by its name, aliases not included."""


class Family(ABC):
    r"""A law :math:`p(A \mid n)` over labelled graphs that does not depend on how nodes are numbered.

    A subclass is a frozen dataclass whose fields are the parameters of the law, checked when it is made.

    Attributes:
        name: What users call it.
        aliases: Other names it answers to.
        summary: One line for the table of families.
        has_law: Whether :meth:`log_prob` is tractable for some parameters.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    summary: ClassVar[str]
    has_law: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        if "name" in cls.__dict__:
            known = {**_registry, cls.name: cls}
            # By name, whichever module was imported first.
            _registry.clear()
            _registry.update(sorted(known.items()))

    @abstractmethod
    def check_size(self, n: int) -> None:
        """Do nothing if :meth:`sample` can draw graphs from ``n`` nodes.

        Raises:
            FamilyError: It cannot: the message says which sizes it has.
        """

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        """A graph on ``n`` nodes, its labels uniformly shuffled.

        Raises:
            FamilyError: The family has no graphs of that size.
        """

    @abstractmethod
    def contains(self, graph: SimpleGraph) -> bool:
        """Whether the graph has positive probability given its number of nodes."""

    def log_prob(self, graph: SimpleGraph) -> float:
        r"""The exact :math:`\log p(A \mid n)` in nats, ``-inf`` where the family does not contain the graph.

        Raises:
            FamilyError: The law is not tractable.
        """
        raise FamilyError(
            f"The law of '{self.name}' has no tractable probability, see 'log_prob_bounds' if it has them."
        )

    def floor(self, n: int) -> float | None:
        r"""The expected :math:`-\log p(A \mid n)` in nats, or None where it has no closed form.

        Without one, average :meth:`log_prob` over fresh samples.
        """
        return None

    def parameters(self) -> dict[str, Any]:
        """The parameters of the law by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def _refuse_size(self, n: int, wanted: str) -> FamilyError:
        settings = ", ".join(f"{key}={value}" for key, value in self.parameters().items())

        return FamilyError(f"'{self.name}' ({settings}) has no graphs with n={n} nodes: {wanted}.")

    def _refuse_value(self, parameter: str, wanted: str) -> FamilyError:
        value = getattr(self, parameter)

        return FamilyError(f"'{self.name}' cannot have {parameter}={value}: pass {wanted}.")


def family(name: str, **parameters: Any) -> Family:
    """The family of that name or alias, with its parameters.

    Arguments:
        name: A key of :data:`FAMILIES` or an alias.
        parameters: Values for its parameters; text, as from a command line, is read as the parameter's type.

    Raises:
        FamilyError: There is no such family or parameter, or a value does not fit.
    """
    kinds = {key: kind for kind in FAMILIES.values() for key in (kind.name, *kind.aliases)}
    kind = kinds.get(name.strip().lower().replace("_", "-"))
    if kind is None:
        raise FamilyError(f"No family is called '{name}'{_closest(name, kinds)}: pass one of {_listed(FAMILIES)}.")

    hints = get_type_hints(kind)
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for key in parameters:
        if key not in known:
            raise FamilyError(f"'{kind.name}' has no parameter '{key}': pass one of {_listed(known)}.")

    return kind(**{key: _parsed(kind.name, key, hints[key], value) for key, value in parameters.items()})


def _closest(name: str, choices: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name, choices, n=1)

    return f" (did you mean '{close[0]}'?)" if close else ""


def _listed(names: Mapping[str, Any] | list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _parsed(name: str, key: str, kind: type, value: Any) -> Any:
    """A value as the type of its field, or an error that shows both."""
    wanted = {int: "a whole number", float: "a number", bool: "true or false"}[kind]
    error = FamilyError(f"'{name}' cannot read {key}={value!r}: pass {wanted}.")

    if kind is bool:
        choices = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        try:
            return choices[str(value).strip().lower()]
        except KeyError:
            raise error from None
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
    """The graph of these pairs, its nodes renumbered uniformly at random."""
    return SimpleGraph.from_pairs(n, rng.permutation(n)[np.asarray(pairs, dtype=np.int64).reshape(-1, 2)])


def components(graph: SimpleGraph) -> list[list[int]]:
    """The connected components as sorted node lists, by their smallest node."""
    neighbours: list[list[int]] = [[] for _ in range(graph.nodes)]
    for i, j in graph.edges.tolist():
        neighbours[i].append(j)
        neighbours[j].append(i)

    found: list[list[int]] = []
    seen = [False] * graph.nodes
    for root in range(graph.nodes):
        if seen[root]:
            continue
        seen[root] = True
        members = [root]
        for node in members:
            for other in neighbours[node]:
                if not seen[other]:
                    seen[other] = True
                    members.append(other)
        found.append(sorted(members))

    return found


def is_connected(graph: SimpleGraph) -> bool:
    """Whether the graph has one component."""
    return len(graph.edges) >= graph.nodes - 1 and len(components(graph)) == 1


def largest_component(graph: SimpleGraph) -> SimpleGraph:
    """The component with most nodes, the first among equals, its nodes renumbered in order.

    Given its size, and whatever the rest of the graph, its law is that of the family conditioned on connectedness.
    """
    members = max(components(graph), key=len)
    if len(members) == graph.nodes:
        return graph

    rank: NDArray[np.int32] = np.full(graph.nodes, -1, dtype=np.int32)
    rank[members] = np.arange(len(members))
    edges = rank[graph.edges]

    return SimpleGraph(len(members), edges[edges[:, 0] >= 0])
