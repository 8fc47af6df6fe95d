"""Descriptors of many graphs, computed by the ranks of a process group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..distributed import ProcessGroup
from ..graph import SimpleGraph

__all__ = ["arrays_of", "same_width"]

Arrays = Mapping[str, NDArray[Any]]


def arrays_of(
    graphs: Sequence[SimpleGraph], make: Callable[[Sequence[SimpleGraph]], Arrays], group: ProcessGroup
) -> Arrays:
    """Concatenate named arrays of chunks of the graphs; every rank passes all graphs and gets the whole result.

    ``make`` computes the rows of some graphs, each row from its graph alone. Tables with fewer columns than the widest
    are padded with zeros.
    """
    if group.world_size == 1 or not graphs:
        return make(graphs)
    # Several chunks per rank balance the load.
    step = max(1, min(64, -(-len(graphs) // (4 * group.world_size))))
    parts = group.all_gather_in_order(-(-len(graphs) // step), lambda part: make(graphs[part * step :][:step]))

    return {name: np.concatenate(same_width(*(part[name] for part in parts))) for name in parts[0]}


def same_width(*arrays: NDArray[Any]) -> list[NDArray[Any]]:
    """Tables padded with columns of zeros to the width of the widest; vectors unchanged."""
    if arrays[0].ndim == 1:
        return list(arrays)
    width = max(array.shape[1] for array in arrays)

    return [np.pad(array, ((0, 0), (0, width - array.shape[1]))) for array in arrays]
