"""Files of encoded graphs: the same arrays in HDF5 and npz, a row per node in CSV, a line per graph in JSON."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO

import h5py
import numpy as np
from numpy.typing import NDArray

from ..data.encoded import EncodedGraph
from ..errors import DatasetError, FormatError, OutputError
from .build import Context
from .files import check_target, decoded, is_special, lines, open_input, open_output
from .h5 import LATENTS
from .h5_reader import dataset, has_endless_heap
from .h5_writer import PatientFile, undisturbed
from .npz import read_npz
from .values import hashable, names_from_words, plain, to_json

__all__ = ["check_latents_target", "latents_format", "read_latents", "write_latents"]

FORMATS = {".h5": "h5", ".hdf5": "h5", ".npz": "npz", ".csv": "csv", ".jsonl": "jsonl"}
# The arrays that are read from HDF5 and npz: their kinds of dtype, and whether they have two dimensions.
ARRAYS = {
    "node_counts": ("iu", False),
    "mean": ("f", True),
    "std": ("f", True),
    "position": ("iu", False),
    "node_features": ("f", True),
    "node_names": ("S", False),
}
_DAMAGE = (OSError, RuntimeError, LookupError, ValueError, TypeError, AttributeError, OverflowError, csv.Error)

# The columns of numbers in CSV, without their index.
KEYS = ("z", "std", "x")

Arrays = dict[str, NDArray[Any]]


def latents_format(path: Path) -> str:
    """The format of a file of latents, by its suffix; ``-`` is CSV."""
    if str(path) == "-":
        return "csv"
    try:
        return FORMATS[path.suffix.lower()]
    except KeyError:
        known = ", ".join(f"'{suffix}'" for suffix in FORMATS)
        raise FormatError(f"'{path}' has no suffix of a file of latents: expected {known}.", path=path) from None


def check_latents_target(target: Path, *, force: bool = False) -> str:
    """Check that latents can be written to a file, before work is done for it, and return its format."""
    name = latents_format(target)
    if str(target) != "-":
        check_target(target, force)
        if name == "h5" and is_special(target):
            raise OutputError(f"HDF5 cannot be written to '{target}', which is not seekable.", path=target)

    return name


def write_latents(encoded: Sequence[EncodedGraph], target: str | Path, *, model: str = "", force: bool = False) -> None:
    """Write encoded graphs to a file, completely or not at all; ``-`` is CSV on stdout.

    Raises:
        FormatError: The suffix is unknown.
        OutputError: The file exists or cannot be written, or there is nothing to write.
    """
    path = Path(target)
    name = check_latents_target(path, force=force)
    if not encoded:
        raise OutputError(f"There are no latents to write to '{target}'.", path=target)
    with open_output(None if str(path) == "-" else path, force) as stream:
        if name == "csv":
            stream.write(_csv(encoded).encode())
        elif name == "jsonl":
            stream.writelines(f"{to_json(_row(one))}\n".encode() for one in encoded)
        elif name == "npz":
            np.savez(stream, allow_pickle=False, **_arrays(encoded))
        else:
            _write_h5(encoded, stream, model)


def _write_h5(encoded: Sequence[EncodedGraph], stream: BinaryIO, model: str) -> None:
    own_file = PatientFile(stream)
    with undisturbed(), h5py.File(own_file, "w") as file:
        file.attrs["format"], file.attrs["version"], file.attrs["model"] = LATENTS, 1, model
        for key, array in _arrays(encoded).items():
            file[key] = array
    own_file.check()


def _arrays(encoded: Sequence[EncodedGraph]) -> Arrays:
    """All graphs in a few arrays; what not every graph has is left out."""
    arrays: Arrays = {
        "node_counts": np.array([one.nodes for one in encoded], dtype=np.int32),
        "mean": np.concatenate([one.mean for one in encoded]),
        "std": np.concatenate([one.std for one in encoded]),
        "graph_vectors": np.stack([one.vector for one in encoded]),
    }
    positions = [one.position for one in encoded if one.position is not None]
    features = [one.features for one in encoded if one.features is not None]
    if len(positions) == len(encoded):
        arrays["position"] = np.concatenate(positions)
    if len(features) == len(encoded):
        arrays["node_features"] = np.concatenate(features)
    if any(one.names is not None for one in encoded):
        arrays["node_names"] = np.array([to_json(name).encode() for one in encoded for name in _names(one)])

    return arrays


def _names(one: EncodedGraph) -> Sequence[Any]:
    return range(one.nodes) if one.names is None else one.names


def _row(one: EncodedGraph) -> dict[str, Any]:
    """The object of a line of JSON."""
    values = {"mean": one.mean, "std": one.std, "position": one.position, "features": one.features}

    return {
        "nodes": [plain(name) for name in _names(one)],
        **{key: value.tolist() for key, value in values.items() if value is not None},
        "vector": one.vector.tolist(),
    }


def _csv(encoded: Sequence[EncodedGraph]) -> str:
    width, features = encoded[0].mean.shape[1], encoded[0].features
    has_positions = all(one.position is not None for one in encoded)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = [f"z{d}" for d in range(width)] + [f"std{d}" for d in range(width)]
    inputs = [] if features is None else [f"x{d}" for d in range(features.shape[1])]
    writer.writerow(["graph", "node", *["position"] * has_positions, *columns, *inputs])
    for index, one in enumerate(encoded):
        for node, name in enumerate(_names(one)):
            place = [one.position[node]] if has_positions and one.position is not None else []
            own = () if one.features is None else one.features[node]
            # The shortest text that round-trips.
            writer.writerow([index, name, *map(str, (*place, *one.mean[node], *one.std[node], *own))])

    return text.getvalue()


def read_latents(source: str | Path) -> list[EncodedGraph]:
    """Read encoded graphs from a file that :func:`write_latents` wrote, or one with at least its latents.

    Standard deviations, positions, features and names may be missing: then latents are exact, and orderings random.

    Raises:
        FormatError: The file is missing, damaged, empty or in an unknown format.
    """
    path = Path(source)
    name, context = latents_format(path), Context(str(source))
    readers: Mapping[str, Callable[[BinaryIO, Context], list[EncodedGraph]]] = {
        "h5": _read_h5,
        "npz": _read_npz,
        "csv": _read_csv,
        "jsonl": _read_jsonl,
    }
    if str(path) != "-" and not os.path.exists(path):  # noqa: PTH110
        problem = f"'{source}' does not exist; expected a file of latents."
        raise FormatError(problem, reason="latents-missing", path=path)
    with open_input(None if str(path) == "-" else path, context) as stream:
        try:
            encoded = readers[name](stream, context) if stream.peek(1) else []
        except DatasetError as error:
            raise context.damage("the latents", str(error)) from error
        except _DAMAGE as error:
            problem = f"'{context.name}' is damaged or not {name} ({(str(error).splitlines() or [''])[0][:200]})."
            raise FormatError(problem, reason="file-damaged", path=context.name) from error
    if not encoded:
        raise FormatError(f"'{context.name}' contains no latents.", path=context.name)

    return encoded


def _read_h5(stream: BinaryIO, context: Context) -> list[EncodedGraph]:
    if has_endless_heap(stream):
        raise ValueError("a heap object has size zero")
    with h5py.File(stream.name, "r") as file:
        format = plain(file.attrs.get("format"))
        if format not in (None, LATENTS):
            problem = f"'{context.name}' is a file of format '{str(format)[:80]}'; expected '{LATENTS}'."
            raise FormatError(problem, reason="latents-missing", path=context.name)
        found = {
            key: dataset(context, file, key, kinds, width=0 if is_wide else None)[:]
            for key, (kinds, is_wide) in ARRAYS.items()
            if key in file
        }

    return _from_arrays(found)


def _read_npz(stream: BinaryIO, context: Context) -> list[EncodedGraph]:
    return _from_arrays({key: array for key, array in read_npz(Path(context.name)).items() if key in ARRAYS})


def _from_arrays(arrays: Arrays) -> list[EncodedGraph]:
    for key in ("node_counts", "mean"):
        if key not in arrays:
            raise ValueError(f"'{key}' is missing")
    counts = arrays.pop("node_counts")
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or (counts < 1).any():
        raise ValueError("'node_counts' are not positive whole numbers")
    counts = counts.astype(np.int64)
    rows = int(counts.sum())
    for key, array in arrays.items():
        kinds, is_wide = ARRAYS[key]
        if len(array) != rows or array.ndim != 1 + is_wide or array.dtype.kind not in kinds:
            raise ValueError(f"'{key}' has shape {array.shape} and dtype {array.dtype}; expected {rows} rows")
    parts = {key: np.split(array, np.cumsum(counts)[:-1]) for key, array in arrays.items()}

    return [_encoded(**{key: part[index] for key, part in parts.items()}) for index in range(len(counts))]


def _encoded(
    mean: Any, std: Any = None, position: Any = None, node_features: Any = None, node_names: Any = None
) -> EncodedGraph:
    """An encoded graph from parts of any numeric type, of which all but the means may be missing."""
    # Copies, because torch does not take arrays that are read-only.
    mean = np.array(mean, dtype=np.float32)
    names = None
    if node_names is not None:
        found = tuple(hashable(json.loads(name) if isinstance(name, bytes) else name) for name in node_names)
        names = None if found == tuple(range(len(found))) else found
        if len(found) != len(mean) or len(set(found)) < len(found):
            raise ValueError("node names are repeated, or not as many as latents")

    return EncodedGraph(
        mean,
        np.zeros_like(mean) if std is None else np.array(std, dtype=np.float32),
        None if position is None else np.array(position, dtype=np.int32),
        None if node_features is None else np.array(node_features, dtype=np.float32),
        names,
    )


def _read_jsonl(stream: BinaryIO, context: Context) -> list[EncodedGraph]:
    return [_from_line(context, where, line) for where, line in lines(stream, context) if line]


def _from_line(context: Context, where: str, line: bytes) -> EncodedGraph:
    row = json.loads(decoded(context, where, line))
    if not isinstance(row, dict) or "mean" not in row:
        raise context.damage(where, "expected an object with 'mean'.")

    return _encoded(row["mean"], row.get("std"), row.get("position"), row.get("features"), row.get("nodes"))


def _read_csv(stream: BinaryIO, context: Context) -> list[EncodedGraph]:
    text = (decoded(context, where, line) for where, line in lines(stream, context) if line)
    rows = csv.DictReader(text)
    columns = rows.fieldnames or ()
    found = {key: [name for name in columns if name[len(key) :].isdecimal() and name.startswith(key)] for key in KEYS}
    if "graph" not in columns or not found["z"]:
        raise ValueError("the header has no columns 'graph' and 'z0'")

    return [_from_rows(list(own), found) for _, own in groupby(_complete(rows), key=lambda row: row["graph"])]


def _complete(rows: Iterator[dict[str, str]] | csv.DictReader[str]) -> Iterator[dict[str, str]]:
    for row in rows:
        if None in row or None in row.values():
            raise ValueError("a row is longer or shorter than the header")
        yield row


def _from_rows(rows: Sequence[Mapping[str, str]], columns: Mapping[str, list[str]]) -> EncodedGraph:
    """An encoded graph from its rows of a table."""
    parts = {
        key: [[float(row[name]) for name in names] for row in rows] if names else None for key, names in columns.items()
    }
    position = [int(row["position"]) for row in rows] if "position" in rows[0] else None
    names = names_from_words([row["node"] for row in rows]) if "node" in rows[0] else None

    return _encoded(parts["z"], parts["std"], position, parts["x"], names)
