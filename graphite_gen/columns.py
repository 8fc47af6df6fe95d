"""What nodes and edges carry, as columns, and which of them are the weights and the features of a graph."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["columns_of", "take_features", "take_weights"]

Columns = dict[str, list[Any]]

# Comparing with the greatest number of a type refuses NaN, infinities and whole numbers of any length alike.
_MOST_32, _MOST_64 = float(np.finfo(np.float32).max), float(np.finfo(np.float64).max)


def columns_of(rows: Sequence[Mapping[Any, Any] | None]) -> Columns:
    """Rows of attributes as columns, None where a row has no value."""
    keys = dict.fromkeys(key for row in rows if row for key in row)

    return {str(key): [row.get(key) if row else None for row in rows] for key in keys}


def take_weights(
    columns: Columns, edges: NDArray[np.int32], names: Sequence[Any] | None = None
) -> NDArray[np.float64] | None:
    """Take the column ``weight`` out of the edges' columns; weights on some edges only stay an attribute.

    What is called a weight and is no finite number is refused wherever it stands: to leave it an attribute would be
    to learn from an unweighted graph and not say so.

    Arguments:
        columns: The edges' columns.
        edges: The edges, with shape :math:`(E, 2)`.
        names: The nodes' names, for the message; None means ``0 … n-1``.

    Raises:
        ValueError: A weight is not a finite number; the message starts with the edge it is on.
    """
    column = columns.get("weight")
    if not column:
        return None
    for edge, value in zip(edges.tolist(), column, strict=True):
        if value is not None and not (_is_number(value) and _is_at_most(_MOST_64, value)):
            u, v = (repr(node if names is None else names[node]) for node in edge)
            raise ValueError(f"edge {u} - {v} has weight {reprlib.repr(value)}, not a finite number.")

    return None if None in column else np.array(columns.pop("weight"), dtype=np.float64)


def take_features(columns: Columns, names: Sequence[Any] | None = None) -> NDArray[np.float32] | None:
    """Take the column ``features`` out of the nodes' columns if it has a row of numbers of one length on every node.

    Anything else by that name, such as texts or rows of several lengths, stays an ordinary attribute.

    Arguments:
        columns: The nodes' columns.
        names: The nodes' names, for the message; None means ``0 … n-1``.

    Raises:
        ValueError: A feature is not a finite number; the message starts with the node it is on.
    """
    column = columns.get("features")
    if not column or not all(_is_row(row) and len(row) == len(column[0]) for row in column):
        return None
    for node, row in enumerate(column):
        wrong = next((value for value in row if not _is_at_most(_MOST_32, value)), None)
        if wrong is not None:
            name = repr(node if names is None else names[node])
            raise ValueError(f"node {name} has feature {reprlib.repr(wrong)}, not a finite number of 32 bits.")

    return np.array(columns.pop("features"), dtype=np.float32)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_at_most(most: float, value: Any) -> bool:
    # NumPy would compare in the value's own type, in which the greatest number of another may be infinite.
    number = value.item() if isinstance(value, np.generic) else value

    return bool(-most <= number <= most)


def _is_row(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype.kind in "biuf"

    return isinstance(value, list | tuple) and all(
        isinstance(item, int | float | np.integer | np.floating | np.bool_) for item in value
    )
