"""What every family of random graphs can do, and how one is found by name."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, get_type_hints

import numpy as np
from numpy.typing import ArrayLike

from ..errors import FamilyError
from ..graph import SimpleGraph, as_simple_graph

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["FAMILIES", "Family", "family", "shuffled"]

# How often to draw before a size is said to be out of reach.
MOST_DRAWS = 10_000

_registry: dict[str, type[Family]] = {}

FAMILIES: Mapping[str, type[Family]] = MappingProxyType(_registry)
"""Every family by its name, aliases not included."""


class Family(ABC):
    r"""A law :math:`p(A \mid n)` over labelled graphs that does not depend on how nodes are numbered.

    A subclass is a frozen dataclass whose fields are the parameters of the law, checked when it is made. It writes
    the steps with a leading underscore; the public ones, here, check what they are given and take graphs of either
    kind.

    Attributes:
        name: What users call it.
        aliases: Other names it answers to.
        summary: One line for the table of families.
        has_law: Whether :meth:`log_prob` is tractable for some parameters.
        most_nodes: The largest graphs it draws: they take :math:`n^2` memory on the way, here about a gigabyte.
        ordering: The node ordering of autoregressive models of it (``benchmarks/reproduce/orderings.py``).
        most_judged: How many graphs are judged valid or not when many are at hand, where that takes seconds.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    summary: ClassVar[str]
    has_log_prob: ClassVar[bool] = True
    most_nodes: ClassVar[int] = 5000
    ordering: ClassVar[str] = "bfs"
    most_judged: ClassVar[int | None] = None

    def __init_subclass__(cls) -> None:
        if "name" in cls.__dict__:
            known = {**_registry, cls.name: cls}
            # By name, whichever module was imported first.
            _registry.clear()
            _registry.update(sorted(known.items()))

    def check_size(self, n: int) -> None:
        """Do nothing if :meth:`sample` can draw graphs from ``n`` nodes.

        Raises:
            FamilyError: It cannot: the message says which sizes it has.
        """
        if n > self.most_nodes:
            raise FamilyError(
                f"'{self.name}' draws graphs of at most {self.most_nodes} nodes, not {n}: pass a smaller number."
            )
        self._check_size(n)

    def sizes(self, low: int, high: int) -> list[int]:
        """The numbers of nodes from ``low`` to ``high`` for which the family has graphs.

        Raises:
            FamilyError: There are none, or ``high`` is above :attr:`most_nodes`.
        """
        if high > self.most_nodes:
            self.check_size(high)
        sizes = [n for n in range(max(low, 0), high + 1) if self._has_size(n)]
        if not sizes:
            self.check_size(high)

        return sizes

    def sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        """A graph on ``n`` nodes, its labels uniformly shuffled.

        Raises:
            FamilyError: The family has no graphs of that size, or draws none so large.
        """
        self.check_size(n)

        return self._sample(n, rng)

    def contains(self, graph: SimpleGraph | nx.Graph) -> bool:
        """Whether the graph has positive probability given its number of nodes."""
        return self._contains(as_simple_graph(graph))

    def log_prob(self, graph: SimpleGraph | nx.Graph) -> float:
        r"""The exact :math:`\log p(A \mid n)` in nats, ``-inf`` where the family does not contain the graph.

        Raises:
            FamilyError: The law is not tractable, or not for a graph like this.
        """
        return self._log_prob(as_simple_graph(graph))

    def entropy(self, n: int) -> float | None:
        r"""The expected :math:`-\log p(A \mid n)` in nats, or None where it has no closed form.

        Without one, see :func:`graphite_gen.families.entropies.known_floor`, or average :meth:`draw_nats`.

        Raises:
            FamilyError: The family has no graphs of that size.
        """
        self._check_size(n)

        return self._entropy(n)

    def draw_nats(self, n: int, rng: np.random.Generator) -> tuple[float, float]:
        r"""A lower and an upper bound, each in expectation, of :math:`-\log p(A \mid n)` of a fresh graph, in nats.

        Where the law is exact they are one figure. Their means over graphs enclose the floor.

        Raises:
            FamilyError: The family has no graphs of that size, or its law is not tractable.
        """
        self.check_size(n)

        return self._draw_nats(n, rng)

    @abstractmethod
    def _check_size(self, n: int) -> None:
        """Do nothing if the family has graphs with ``n`` nodes, else raise what :meth:`_refuse_size` gives."""

    @abstractmethod
    def _sample(self, n: int, rng: np.random.Generator) -> SimpleGraph: ...

    @abstractmethod
    def _contains(self, graph: SimpleGraph) -> bool: ...

    def _log_prob(self, graph: SimpleGraph) -> float:
        raise FamilyError(
            f"The law of '{self.name}' has no tractable probability, see 'log_prob_bounds' if it has them."
        )

    def _entropy(self, n: int) -> float | None:
        return None

    def _draw_nats(self, n: int, rng: np.random.Generator) -> tuple[float, float]:
        # Where largest components are kept, most draws may be smaller than asked for.
        for _ in range(MOST_DRAWS):
            graph = self._sample(n, rng)
            if graph.nodes == n:
                nats = -self._log_prob(graph)
                return nats, nats
        raise FamilyError(
            f"'{self.name}' ({self._settings()}) kept all n={n} nodes in none of {MOST_DRAWS} draws: pass another n."
        )

    @property
    def can_draw_nats(self) -> bool:
        """Whether :meth:`draw_nats` works with these parameters, at least for small graphs."""
        return True

    def parameters(self) -> dict[str, Any]:
        """The parameters of the law by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def _has_size(self, n: int) -> bool:
        try:
            self._check_size(n)
        except FamilyError:
            return False

        return True

    def _refuse_size(self, n: int, wanted: str) -> FamilyError:
        return FamilyError(f"'{self.name}' ({self._settings()}) has no graphs with n={n} nodes: {wanted}.")

    def _refuse_law(self, n: int, most: int) -> FamilyError:
        return FamilyError(
            f"The law of '{self.name}' ({self._settings()}) is not tractable above n={most}, "
            f"and the graph has {n} nodes."
        )

    def _settings(self) -> str:
        return ", ".join(f"{key}={value}" for key, value in self.parameters().items())

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
