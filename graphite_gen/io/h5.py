"""HDF5, version 1: all graphs concatenated in a few arrays; the page of formats of the documentation lists them.

Also read: files without ``format`` and ``version``, and a network as ``edge_index (2, E)`` with ``labels`` (-1 for
none) and the nodes ``train_idx``, ``val_idx`` and ``test_idx``. External links and virtual datasets are refused. Files
are written in the layout of HDF5 1.10, whose checksums detect flipped bits.
"""

from __future__ import annotations

import reprlib
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, BinaryIO

import h5py
import numpy as np

from ..data.dataset import SPLITS
from ..errors import FormatError, OutputError
from ..graph import SimpleGraph
from ..records import Provenance
from .build import Context, build_graph
from .h5_reader import Reader, dataset, file_attributes, has_endless_heap
from .h5_writer import GRAPHS, PatientFile, Writer, undisturbed
from .values import plain, provenance_attributes, to_json

__all__ = ["EMBEDDING", "LATENTS", "read", "write"]

EMBEDDING = "graphite-gen embedding"
"""The format attribute of a file of node embeddings, which contains no graphs."""

LATENTS = "graphite-gen latents"
"""The format attribute of a file of encoded graphs, which contains no graphs either."""


def read(stream: BinaryIO, context: Context) -> Iterator[SimpleGraph]:
    """The graphs of an HDF5 file, read in blocks."""
    try:
        if has_endless_heap(stream):
            raise ValueError("a heap object has size zero")
        with h5py.File(stream.name, "r") as file:
            if "edge_index" in file:
                yield _network(file, context)
            else:
                _check_attributes(file, context)
                yield from Reader(file, context).graphs()
    except (OSError, RuntimeError, LookupError, ValueError, TypeError, AttributeError, OverflowError) as error:
        problem = f"'{context.name}' is damaged or not HDF5 ({_first_line(error)})."
        raise FormatError(problem, reason="file-damaged", path=context.name) from error


def _check_attributes(file: Any, context: Context) -> None:
    """Refuse later versions, and attributes that do not match their checksum; other programs write neither."""
    name = context.name
    format, version, checksum = (plain(file.attrs.get(key)) for key in ("format", "version", "checksum"))
    if format == EMBEDDING:
        raise FormatError(f"'{name}' contains node embeddings, no graphs.", reason="embedding-not-graphs", path=name)
    if format == LATENTS:
        raise FormatError(f"'{name}' contains latents, no graphs.", reason="latents-not-graphs", path=name)
    if (format, version) not in ((None, None), ("graphite-gen", 1)):
        found = f"version {reprlib.repr(version)} of the format {reprlib.repr(format)}"
        problem = f"'{name}' is {found}; this version of graphite-gen reads version 1 of 'graphite-gen'."
        raise FormatError(problem, path=name)
    if checksum is not None and checksum != _checksum(file_attributes(file)):
        raise context.damage("the root", "the attributes of the file do not match their checksum.")


def _checksum(attributes: Mapping[str, Any]) -> int:
    """The CRC-32 of the attributes of the file: text of variable length, which has no checksum in HDF5."""
    return zlib.crc32(to_json(sorted(attributes.items())).encode())


def _network(file: Any, context: Context) -> SimpleGraph:
    """The graph of a network, without its features, which :mod:`graphite_gen.network` reads."""
    pairs = dataset(context, file, "edge_index", "iu", width=0)
    if pairs.shape[0] != 2:
        raise context.damage("dataset 'edge_index'", f"has shape {pairs.shape}; expected (2, E).")
    ends = pairs[:].T
    labels = dataset(context, file, "labels", "iu")[:].tolist() if "labels" in file else []
    nodes = len(labels) or int(file.attrs.get("num_nodes", ends.max(initial=-1) + 1))
    rows = [{"label": label} if label >= 0 else None for label in labels]

    about = file_attributes(file)
    graph = build_graph(context, "graph 0", nodes, ends, directed=None, node_rows=rows, attributes=about)
    parts = _parts(file, context, nodes)

    return replace(graph, node_attributes={**graph.node_attributes, "split": parts}) if any(parts) else graph


def _parts(file: Any, context: Context, nodes: int) -> list[str | None]:
    """The split of each node."""
    parts: list[str | None] = [None] * nodes
    names = dict(zip(("train_idx", "val_idx", "test_idx"), SPLITS, strict=True))
    missing = [name for name in names if name not in file]
    if len(missing) == len(names):
        return parts
    # Drawing the missing part at random could train on test nodes.
    if missing:
        problem = f"{' and '.join(missing)} not found; expected all of {', '.join(names)}, or none."
        raise context.error("the split", problem)
    for name, part in names.items():
        listed = dataset(context, file, name, "iu")[:].astype(np.int64)
        if len(listed) and not 0 <= listed.min() <= listed.max() < nodes:
            raise context.error(f"dataset '{name}'", f"a node out of range; expected 0 to {nodes - 1}.")
        for node in listed.tolist():
            if parts[node] is not None:
                raise context.error("the split", f"node {node} is in {', '.join(names)} more than once.")
            parts[node] = part

    return parts


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def write(graphs: Iterable[SimpleGraph], stream: BinaryIO, provenance: Provenance) -> None:
    """Write a version 1 file."""
    common, target, graphs = provenance_attributes(provenance), PatientFile(stream), iter(graphs)
    with undisturbed():
        file = h5py.File(target, "w", libver=("v110", "v110"))
    try:
        with undisturbed():
            file.attrs["format"], file.attrs["version"] = "graphite-gen", 1
            file.attrs["checksum"] = _checksum(common)
            for name, value in common.items():
                file.attrs[name] = to_json(value) if name == "parameters" else value
            writer = Writer(file, common)
        # Interrupts are handled between blocks, while graphs are generated.
        while target.error is None and (block := list(islice(graphs, GRAPHS))):
            with undisturbed():
                writer.write(block)
    except RuntimeError as error:
        raise OutputError(f"The HDF5 file cannot be written: {_first_line(error)}.") from error
    finally:
        with undisturbed():
            file.close()
    target.check()
