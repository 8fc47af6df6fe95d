"""Figures of many graphs, made by several processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.parcels import pack_arrays, unpack_arrays
from ..distributed import ProcessGroup
from ..graph import SimpleGraph

__all__ = ["arrays_of"]

# So many graphs at a time; fewer where each process would not get several such parts.
MOST_AT_ONCE = 64
PARTS = 4

Arrays = Mapping[str, NDArray[Any]]


def arrays_of(
    graphs: Sequence[SimpleGraph], make: Callable[[Sequence[SimpleGraph]], Arrays], group: ProcessGroup
) -> Arrays:
    """Named arrays of graphs, for every process.

    Arguments:
        graphs: The graphs, the same for every process.
        make: What gives arrays of some graphs, those of one after those of the other, which may not depend on what
            others there are. Tables may have fewer columns than those of other graphs, which then are zero.
        crew: The processes that share them.
    """
    if group.size == 1 or not graphs:
        return make(graphs)
    step = max(1, min(MOST_AT_ONCE, -(-len(graphs) // (PARTS * group.size))))
    parts = group.shared(
        -(-len(graphs) // step),
        lambda number: make(graphs[number * step : (number + 1) * step]),
        pack_arrays,
        unpack_arrays,
    )

    return {name: _joined([part[name] for part in parts]) for name in parts[0]}


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    if arrays[0].ndim == 1:
        return np.concatenate(arrays)
    width = max(array.shape[1] for array in arrays)

    return np.concatenate([np.pad(array, ((0, 0), (0, width - array.shape[1]))) for array in arrays])
