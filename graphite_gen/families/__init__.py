"""Families of random graphs with a known distribution: the true processes that models are compared with.

Every module here is imported, and a :class:`Family` subclass with a ``name`` registers itself. The architecture page of
the documentation explains how to add one.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from .base import FAMILIES, PAPER_FAMILIES, Family, family

__all__ = ["FAMILIES", "PAPER_FAMILIES", "Family", "family"]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
