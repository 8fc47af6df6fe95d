r"""Families of random graphs with a known distribution: the true processes that models are compared with.

**To add a family, add one file to this package.** It needs no registration elsewhere: every module here is imported,
and a :class:`Family` subclass with a ``name`` registers itself. The subclass is a frozen dataclass whose fields are
the parameters, and implements at least ``_sample`` and ``_contains`` (``ego.py`` is a short example):

.. code-block:: python

    @dataclass(frozen=True)
    class Cycle(Family):
        name: ClassVar[str] = "cycle"
        summary: ClassVar[str] = "one cycle through all nodes"
        least_nodes: ClassVar[int] = 3

        def _sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
            return shuffled(n, [(i, (i + 1) % n) for i in range(n)], rng)

        def _contains(self, graph: SimpleGraph) -> bool:
            return graph.nodes > 2 and bool((graph.degrees() == 2).all()) and is_connected(graph)

With ``_log_prob`` (exact :math:`\log p(A \mid n)`) and ``_entropy`` (closed form), or ``has_log_prob = False``, models
of the family can be scored against the truth. ``tests/families/test_base.py`` tests every family.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from .base import FAMILIES, Family, family

__all__ = ["FAMILIES", "Family", "family"]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
