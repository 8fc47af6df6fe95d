"""What graph6 and sparse6 share: a size, then bits in printable sixes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from .build import Context
from .files import lines

__all__ = ["pack_bits", "pack_size", "read_lines", "unpack_bits", "unpack_size"]


def read_lines(stream: BinaryIO, context: Context, header: bytes) -> Iterator[tuple[str, bytes]]:
    """The place and the text of each graph, without the optional header such as ``>>graph6<<``."""
    for number, line in lines(stream, context):
        text = line.removeprefix(header)
        if text.startswith(b">>"):
            raise context.damage(f"line {number}", f"wanted the header '{header.decode()}' or none.")
        if text.startswith(b"&"):
            problem = "digraph6, a directed graph; wanted undirected ones. Write it as graph6, without directions."
            raise context.error(f"line {number}", problem)
        if text:
            yield f"line {number}", text


def pack_size(nodes: int) -> bytes:
    """The size in one, four or eight characters."""
    if nodes <= 62:
        return bytes((nodes + 63,))
    long = nodes > 258047
    digits = [(nodes >> shift & 63) + 63 for shift in range(30 if long else 12, -1, -6)]

    return (b"~~" if long else b"~") + bytes(digits)


def unpack_size(context: Context, where: str, text: bytes) -> tuple[int, NDArray[np.uint8]]:
    """The size, and the sixes that follow as numbers from 0 to 63."""
    sixes = np.frombuffer(text, dtype=np.uint8) - np.uint8(63)
    if len(sixes) and sixes.max() > 63:
        at = int(np.argmax(sixes > 63))
        raise context.damage(
            where, f"the character {chr(text[at])!r} at column {at + 1}, and only '?' to '~' may stand."
        )
    start, stop = (0, 1) if text[:1] != b"~" else (1, 4) if text[1:2] != b"~" else (2, 8)
    if len(sixes) < stop:
        raise context.damage(where, "the line ends within the number of nodes; it was cut short.")
    nodes = 0
    for six in sixes[start:stop].tolist():
        nodes = nodes << 6 | six
    context.check_nodes(where, nodes)

    return nodes, sixes[stop:]


def pack_bits(bits: NDArray[np.uint8]) -> bytes:
    """Bits, a multiple of six of them, as printable characters."""
    return ((np.packbits(bits.reshape(-1, 6), axis=1) >> 2) + 63).tobytes()


def unpack_bits(sixes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The bits of numbers from 0 to 63, most significant first, with shape :math:`(6 S,)`."""
    return np.unpackbits(sixes[:, None] << np.uint8(2), axis=1, count=6).ravel()
