"""graph6: the upper triangle of the adjacency matrix as printable characters of six bits, one graph per line.

Only nodes and edges are stored. The encoding of sizes and bits is shared with sparse6 (``s6.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..errors import OutputError
from ..graph import SimpleGraph
from ..records import Provenance
from .build import Context
from .files import MAX_LINE, lines

__all__ = ["pack_bits", "pack_size", "read", "read_lines", "unpack_bits", "unpack_size", "write"]

_SLICE = 1 << 20


def read(stream: BinaryIO, context: Context) -> Iterator[SimpleGraph]:
    """The graphs of graph6 lines."""
    for where, text in read_lines(stream, context, b">>graph6<<"):
        if text.startswith((b":", b";")):
            raise context.error(where, "sparse6; expected graph6. Its format is 's6'.", "format-mismatch")
        nodes, sixes = unpack_size(context, where, text)
        context.is_directed(where, stated=False)
        pairs = nodes * (nodes - 1) // 2
        expected = -(-pairs // 6)
        if len(sixes) != expected:
            problem = f"{len(sixes)} characters after the size; {nodes} nodes require {expected}: damaged or truncated."
            raise context.damage(where, problem)
        starts = range(0, max(len(sixes), 1), _SLICE)
        ones = np.concatenate([6 * s + np.flatnonzero(unpack_bits(sixes[s : s + _SLICE])) for s in starts])
        if len(ones) and ones[-1] >= pairs:
            raise context.damage(where, "bits are set after the last pair of nodes.")
        yield SimpleGraph(nodes, _edges_at(ones, nodes))


def write(graphs: Iterable[SimpleGraph], stream: BinaryIO, provenance: Provenance) -> None:
    """Write graph6 lines."""
    for graph in graphs:
        n = graph.nodes
        if n * (n - 1) // 12 > MAX_LINE - 16:
            raise OutputError(f"A graph with {n} nodes is too large for graph6; '.s6' and '.h5' can store it.")
        i, j = graph.edges.T.astype(np.int64)
        bits = np.zeros(-(-n * (n - 1) // 12) * 6, dtype=np.uint8)
        bits[j * (j - 1) // 2 + i] = 1
        stream.write(pack_size(n) + pack_bits(bits) + b"\n")


def _edges_at(ones: NDArray[np.intp], nodes: int) -> NDArray[np.int32]:
    """Edges in lexicographic order, from positions in the upper triangle read column by column."""
    # The root is accurate to half a unit for all supported sizes, so its floor may be one too large.
    j = ((1 + np.sqrt(1 + 8.0 * ones)) / 2).astype(np.int64)
    j -= j * (j - 1) // 2 > ones
    i = ones - j * (j - 1) // 2

    return np.stack([i, j], axis=1)[np.argsort(i, kind="stable")].astype(np.int32)


def read_lines(stream: BinaryIO, context: Context, header: bytes) -> Iterator[tuple[str, bytes]]:
    """Position and text of each graph, without the optional header such as ``>>graph6<<``."""
    for where, line in lines(stream, context):
        text = line.removeprefix(header)
        if text.startswith(b">>"):
            raise context.damage(where, f"unknown header; expected '{header.decode()}' or none.")
        if text.startswith(b"&"):
            raise context.error(where, "digraph6, which is not supported; expected undirected graphs.")
        if text:
            yield where, text


def pack_size(nodes: int) -> bytes:
    """The number of nodes in one, four or eight characters."""
    if nodes <= 62:
        return bytes((nodes + 63,))
    long = nodes > 258047
    digits = [(nodes >> shift & 63) + 63 for shift in range(30 if long else 12, -1, -6)]

    return (b"~~" if long else b"~") + bytes(digits)


def unpack_size(context: Context, where: str, text: bytes) -> tuple[int, NDArray[np.uint8]]:
    """The number of nodes, and the characters that follow as numbers from 0 to 63."""
    sixes = np.frombuffer(text, dtype=np.uint8) - np.uint8(63)
    if len(sixes) and sixes.max() > 63:
        at = int(np.argmax(sixes > 63))
        raise context.damage(where, f"character {chr(text[at])!r} at column {at + 1}; expected '?' to '~'.")
    start, stop = (0, 1) if text[:1] != b"~" else (1, 4) if text[1:2] != b"~" else (2, 8)
    if len(sixes) < stop:
        raise context.damage(where, "the line ends within the number of nodes.")
    nodes = 0
    for six in sixes[start:stop].tolist():
        nodes = nodes << 6 | six
    context.check_nodes(where, nodes)

    return nodes, sixes[stop:]


def pack_bits(bits: NDArray[np.uint8]) -> bytes:
    """Bits, a multiple of six, as printable characters."""
    return ((np.packbits(bits.reshape(-1, 6), axis=1) >> 2) + 63).tobytes()


def unpack_bits(sixes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The bits of numbers from 0 to 63, most significant first, with shape :math:`(6 S,)`."""
    return np.unpackbits(sixes[:, None] << np.uint8(2), axis=1, count=6).ravel()
