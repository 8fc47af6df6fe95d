"""graph6: the upper triangle of the adjacency matrix, one graph per line.

It holds nodes and edges alone: weights, features, names and attributes are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..errors import OutputError
from ..graph import SimpleGraph
from ..records import Provenance
from .build import Context
from .files import MAX_LINE
from .sixbit import pack_bits, pack_size, read_lines, unpack_bits, unpack_size

__all__ = ["read", "write"]

_SLICE = 1 << 20


def read(stream: BinaryIO, context: Context) -> Iterator[SimpleGraph]:
    """The graphs of graph6 lines."""
    for where, text in read_lines(stream, context, b">>graph6<<"):
        if text.startswith((b":", b";")):
            raise context.error(where, "sparse6, and graph6 was wanted; pass --format s6.")
        nodes, sixes = unpack_size(context, where, text)
        pairs = nodes * (nodes - 1) // 2
        wanted = -(-pairs // 6)
        if len(sixes) != wanted:
            raise context.damage(
                where, f"{len(sixes)} characters after the size, and {nodes} nodes need {wanted}; the line is damaged."
            )
        if len(sixes) <= _SLICE:
            ones = np.flatnonzero(unpack_bits(sixes))
        else:
            starts = range(0, len(sixes), _SLICE)
            ones = np.concatenate([6 * s + np.flatnonzero(unpack_bits(sixes[s : s + _SLICE])) for s in starts])
        if len(ones) and ones[-1] >= pairs:
            raise context.damage(where, "bits are set after the last pair of nodes; the line is damaged.")
        yield SimpleGraph(nodes, _edges_at(ones, nodes))


def write(graphs: Iterable[SimpleGraph], stream: BinaryIO, provenance: Provenance) -> int:
    """Write graph6 lines."""
    count = 0
    for count, graph in enumerate(graphs, 1):  # noqa: B007
        n = graph.nodes
        if n * (n - 1) // 12 > MAX_LINE - 16:
            raise OutputError(f"graph6 takes a bit per pair of nodes, too many for {n} nodes: write '.s6' or '.h5'.")
        i, j = graph.edges.T.astype(np.int64)
        bits = np.zeros(-(-n * (n - 1) // 12) * 6, dtype=np.uint8)
        bits[j * (j - 1) // 2 + i] = 1
        stream.write(pack_size(n) + pack_bits(bits) + b"\n")

    return count


def _edges_at(ones: NDArray[np.intp], nodes: int) -> NDArray[np.int32]:
    """The edges in our order for positions in the triangle read column by column."""
    if nodes <= 128:
        edges, ranks = _triangle(nodes)
        return edges[np.sort(ranks[ones])]
    # The root is exact to half a unit for all sizes we read, so that rounding it down may be one too many.
    j = ((1 + np.sqrt(1 + 8.0 * ones)) / 2).astype(np.int64)
    j -= j * (j - 1) // 2 > ones
    i = ones - j * (j - 1) // 2

    return np.stack([i, j], axis=1)[np.argsort(i, kind="stable")].astype(np.int32)


@lru_cache(maxsize=128)
def _triangle(nodes: int) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """All pairs in our order, and for each position in graph6's order its rank in ours."""
    i, j = np.triu_indices(nodes, 1)
    ranks = np.empty(len(i), dtype=np.intp)
    ranks[j * (j - 1) // 2 + i] = np.arange(len(i))

    return np.stack([i, j], axis=1).astype(np.int32), ranks
