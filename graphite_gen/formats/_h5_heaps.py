"""A look at an HDF5 file's text heaps before the library walks through them.

The library goes from object to object by their sizes, and for ever where a damaged size takes it nowhere; no
exception and no signal gets it out of there. Everything else that is damaged it reports by itself.
"""

from __future__ import annotations

import mmap
import struct
from typing import BinaryIO

__all__ = ["has_endless_heap"]

_SIGNATURE = b"GCOL\x01\0\0\0"
_OBJECT = struct.Struct("<HHIQ")


def has_endless_heap(stream: BinaryIO) -> bool:
    """Whether a heap of the file has an object that ends where it starts."""
    try:
        data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except (ValueError, OSError):
        # An empty file, or one that is no file: it holds no heap.
        return False
    with data:
        at = data.find(_SIGNATURE)
        while at >= 0:
            if _is_endless(data, at):
                return True
            at = data.find(_SIGNATURE, at + 1)

    return False


def _is_endless(data: mmap.mmap, at: int) -> bool:
    size = int.from_bytes(data[at + 8 : at + 16], "little")
    end, at = min(at + size, len(data)), at + 16
    while at + _OBJECT.size <= end:
        index, _, _, length = _OBJECT.unpack_from(data, at)
        # Object 0 is the free space and counts its own header; the others are padded to eight bytes, modulo 2⁶⁴.
        step = length if index == 0 else (_OBJECT.size + length + 7 & ~7) % 2**64
        if step == 0:
            return True
        at += step

    return False
