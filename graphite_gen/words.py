"""Numbers of things, as people say them."""

from __future__ import annotations

__all__ = ["so_many"]


def so_many(number: int, what: str) -> str:
    """A number of things in words: one node, two nodes, three classes."""
    ending = "es" if what.endswith("s") else "s"

    return f"{number} {what}{ending * (number != 1)}"
