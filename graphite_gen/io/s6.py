"""sparse6: a list of edges as printable characters of six bits, one graph per line; only nodes and edges are stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..graph import SimpleGraph
from ..records import Provenance
from .build import Context, build_graph
from .g6 import pack_bits, pack_size, read_lines, unpack_bits, unpack_size

__all__ = ["read", "write"]


def read(stream: BinaryIO, context: Context) -> Iterator[SimpleGraph]:
    """The graphs of sparse6 lines."""
    for where, text in read_lines(stream, context, b">>sparse6<<"):
        if text.startswith(b";"):
            raise context.error(where, "incremental sparse6; expected plain sparse6.")
        if not text.startswith(b":"):
            problem = "no leading ':'; expected sparse6. The format of graph6 is 'g6'."
            raise context.error(where, problem, "format-mismatch")
        nodes, sixes = unpack_size(context, where, text[1:])
        bits = unpack_bits(sixes)
        # The last character is padded with ones, after possibly a zero.
        rest = bits[len(bits) // (_width(nodes) + 1) * (_width(nodes) + 1) :]
        if not rest[1:].all():
            raise context.damage(where, "the line ends within an edge.")
        yield build_graph(context, where, nodes, _pairs(nodes, bits))


def _pairs(nodes: int, bits: NDArray[np.uint8]) -> list[tuple[int, int]]:
    """The pairs encoded by steps ``(b, x)``: b moves to the next node, x is a neighbour or the node to jump to."""
    width = _width(nodes)
    steps = bits[: len(bits) // (width + 1) * (width + 1)].reshape(-1, width + 1)
    values = steps[:, 1:] @ (1 << np.arange(width - 1, -1, -1, dtype=np.int64))
    pairs = []
    v = 0
    for b, x in zip(steps[:, 0].tolist(), values.tolist(), strict=True):
        v += b
        if x >= nodes or v >= nodes:
            break
        if x > v:
            v = x
        else:
            pairs.append((x, v))

    return pairs


def write(graphs: Iterable[SimpleGraph], stream: BinaryIO, provenance: Provenance) -> None:
    """Write sparse6 lines."""
    for graph in graphs:
        stream.write(b":" + pack_size(graph.nodes) + pack_bits(_bits(graph)) + b"\n")


def _bits(graph: SimpleGraph) -> NDArray[np.uint8]:
    """The steps of all edges, ordered by their larger node and padded to a multiple of six bits."""
    edges = graph.edges[np.lexsort((graph.edges[:, 0], graph.edges[:, 1]))].astype(np.int64)
    advance = np.diff(edges[:, 1], prepend=0)
    # Advancing by two or more nodes takes a jump (1, v) before (0, u).
    rows = np.repeat(np.arange(len(edges)), 1 + (advance > 1))
    jumps = np.zeros(len(rows), dtype=np.bool_)
    jumps[:-1] = rows[:-1] == rows[1:]
    b = np.where(jumps | (advance[rows] == 1), 1, 0)
    x = np.where(jumps, edges[rows, 1], edges[rows, 0])

    width = _width(graph.nodes)
    steps = np.concatenate([b[:, None], x[:, None] >> np.arange(width - 1, -1, -1) & 1], axis=1)
    padding = np.ones(-steps.size % 6, dtype=np.uint8)
    # Where the last node is all ones in binary, the padding could read as a self-loop of it.
    last = int(edges[-1, 1]) if len(edges) else 0
    if graph.nodes == 1 << width and len(padding) > width and last == graph.nodes - 2:
        padding[0] = 0

    return np.concatenate([steps.astype(np.uint8).ravel(), padding])


def _width(nodes: int) -> int:
    return max(nodes - 1, 0).bit_length()
