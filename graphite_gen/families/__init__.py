"""Families of random graphs whose law is known: the true processes that models are measured against.

A family is one file of this package: every module here is imported, and a :class:`Family` subclass with a name
registers itself. Adding a seventh family is adding a seventh file.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from .base import FAMILIES, Family, family

__all__ = ["FAMILIES", "Family", "family"]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
