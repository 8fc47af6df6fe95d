"""Arrays of many graphs, computed by several processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.parcels import pack_arrays, unpack_arrays
from ..distributed import ProcessGroup
from ..graph import SimpleGraph

__all__ = ["arrays_of"]

# The maximum number of graphs at a time; fewer where each process would not get several parts.
MOST_AT_ONCE = 64
PARTS = 4

Arrays = Mapping[str, NDArray[Any]]


def arrays_of(
    graphs: Sequence[SimpleGraph], make: Callable[[Sequence[SimpleGraph]], Arrays], group: ProcessGroup
) -> Arrays:
    """Named arrays of graphs, on every process, from a function that computes those of some graphs.

    Rows of one graph may not depend on the others, except for their number of columns: missing ones are zero.
    """
    if group.size == 1 or not graphs:
        return make(graphs)
    step = max(1, min(MOST_AT_ONCE, -(-len(graphs) // (PARTS * group.size))))
    starts = range(0, len(graphs), step)
    parts = group.shared(len(starts), lambda number: make(graphs[starts[number] :][:step]), pack_arrays, unpack_arrays)

    return {name: _joined([part[name] for part in parts]) for name in parts[0]}


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    if arrays[0].ndim == 1:
        return np.concatenate(arrays)
    width = max(array.shape[1] for array in arrays)

    return np.concatenate([np.pad(array, ((0, 0), (0, width - array.shape[1]))) for array in arrays])
