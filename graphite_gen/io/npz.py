"""Arrays of npz files from anywhere: nothing is unpickled, expanded or allocated before it is checked."""

from __future__ import annotations

import io
import math
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from .files import is_special

__all__ = ["read_npz"]

# The expanded size and ratio from which an archive counts as a zip bomb.
_BOMB_BYTES, _BOMB_RATIO = 1 << 28, 200
_DAMAGE = (zipfile.BadZipFile, zlib.error, tokenize.TokenError)
# The size of the end record of a zip file without a comment.
_END_BYTES = 22


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """Arrays of an npz file; unlike NumPy's reader this checks shapes first, and that all bytes are used."""
    # A device may never end.
    if is_special(path):
        raise FormatError(f"'{path}' is not a regular file.")
    try:
        with path.open("rb") as stream, zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            # zipfile does not notice that a damaged directory has fewer members than its end record says.
            stream.seek(-_END_BYTES, io.SEEK_END)
            if len(members) != int.from_bytes(stream.read()[10:12], "little"):
                raise ValueError("missing arrays")
            if not all(member.filename.endswith(".npy") for member in members):
                raise ValueError("a member that is not an array")
            if len({member.filename for member in members}) < len(members):
                raise ValueError("two arrays of one name")
            packed = sum(member.compress_size for member in members)
            # zipfile allocates the size that a damaged directory says.
            if packed > stream.tell():
                raise ValueError("arrays larger than the file")
            if sum(member.file_size for member in members) > max(_BOMB_BYTES, _BOMB_RATIO * packed):
                raise FormatError(
                    f"'{path}' expands more than {_BOMB_RATIO} times, to over {_BOMB_BYTES >> 20} MB. If that is "
                    f"intended, save it uncompressed with 'numpy.savez'."
                )
            return {member.filename.removesuffix(".npy"): _array(archive.read(member)) for member in members}
    except OSError as error:
        raise FormatError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    except (ValueError, TypeError, SyntaxError, RuntimeError, EOFError, *_DAMAGE) as error:
        problem = " ".join(str(error).split())[:200]
        raise FormatError(f"'{path}' is not an npz file of plain arrays ({problem}).") from error


def _array(data: bytes) -> NDArray[Any]:
    """The array of a complete npy file."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"an array of version {version}")
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, is_fortran, dtype = read_header(stream)
    # Rows of no bytes could be of any number.
    if dtype.hasobject or dtype.itemsize == 0 or 0 in shape[1:] or min(shape, default=0) < 0:
        raise ValueError(f"an array of type {dtype} and shape {shape}")
    if len(data) - stream.tell() != math.prod(shape) * dtype.itemsize:
        raise ValueError("an array whose size does not fit its shape")

    return np.frombuffer(data, dtype, offset=stream.tell()).reshape(shape, order="F" if is_fortran else "C")
