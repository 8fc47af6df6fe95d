"""HDF5, version 1: graphs side by side in a few long arrays.

Root attributes ``format = "graphite-gen"``, ``version = 1``, and ``family``, ``parameters`` (JSON text), ``seed``,
``source``, ``model`` where known, with their CRC-32 as ``checksum``. Datasets, for :math:`G` graphs with :math:`ΣN`
nodes and :math:`ΣE` edges in all:

=========================  ============================================================================
``node_counts (G,)``       int32
``edge_counts (G,)``       int32
``edges (ΣE, 2)``          int32, node ids local to each graph, i < j
``weights (ΣE,)``          float64; NaN on the edges of an unweighted graph among weighted ones
``node_features (ΣN, F)``  float32; NaN on the nodes of a graph without features among others
``split (G,)``             uint8: 0 train, 1 validation, 2 test, 255 none
``node_names (ΣN,)``       where a graph has names
=========================  ============================================================================

and a column per attribute in ``node_attributes``, ``edge_attributes`` and ``graph_attributes``. A column, and
``node_names``, is bool, int64 or float64 if every value is there and of that kind, and JSON text of one width
otherwise, empty where a value is missing. In an attribute's name ``/`` stands as ``%2F`` and ``%`` as ``%25``.

Read as well: the same without ``format`` and ``version``, and a single graph as ``edge_index (2, E)`` with ``labels``
(-1 is none), as node attribute ``label``, and the nodes ``train_idx``, ``val_idx`` and ``test_idx``, as ``split``.
Only what lies in the file itself is read: links out of it and virtual datasets are refused.

Files are written in the layout of HDF5 1.10, whose metadata carry checksums, as compressed data do: a file with a bit
flipped gives the graphs that were written, or none.
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

from ..errors import FormatError, OutputError
from ..graph import SimpleGraph
from ..records import Provenance
from .build import MEND, Context, build_graph
from .h5_reader import Reader, dataset, facts_in
from .h5_safety import PatientFile, has_endless_heap, undisturbed
from .h5_writer import GRAPHS, SPLITS, Writer
from .values import facts_of, plain, to_json

__all__ = ["EMBEDDING", "read", "write"]

_LAYOUT = ("v110", "v110")
EMBEDDING = "graphite-gen embedding"
"""The format of a file of latents, which holds no graphs."""


def read(stream: BinaryIO, context: Context) -> Iterator[SimpleGraph]:
    """The graphs of an HDF5 file, some thousands at a time."""
    try:
        if has_endless_heap(stream):
            raise FormatError(f"'{context.name}' is damaged: a block of its texts has no end; write the file again.")
        with h5py.File(stream.name, "r") as file:
            if "edge_index" in file:
                yield _network(file, context)
            else:
                _check_version(file, context)
                _check_facts(file, context)
                yield from Reader(file, context).graphs()
    except (OSError, RuntimeError, LookupError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise FormatError(f"'{context.name}' is damaged or not HDF5 ({_first_line(error)}). {MEND}") from error


def _check_version(file: Any, context: Context) -> None:
    """Refuse what a later version may have written; files of others name neither format nor version."""
    format, version = plain(file.attrs.get("format")), plain(file.attrs.get("version"))
    if format == EMBEDDING:
        raise FormatError(
            f"'{context.name}' holds the latents that 'graphite-gen embed' wrote, and no graphs: open it with h5py, or "
            f"pass the file of the graph."
        )
    if (format, version) not in ((None, None), ("graphite-gen", 1)):
        found = f"version {reprlib.repr(version)} of the format {reprlib.repr(format)}"
        raise FormatError(
            f"'{context.name}' is {found}, and version 1 of 'graphite-gen' is read: update graphite-gen, or write the "
            f"file again."
        )


def _check_facts(file: Any, context: Context) -> None:
    """Compare the file's facts with their checksum: HDF5 has one of everything but texts of any length."""
    checksum = plain(file.attrs.get("checksum"))
    if checksum is not None and checksum != _checksum(facts_in(file)):
        raise context.damage("the root", "the facts about the file are not those that were written.")


def _checksum(facts: Mapping[str, Any]) -> int:
    return zlib.crc32(to_json(sorted(facts.items())).encode())


def _network(file: Any, context: Context) -> SimpleGraph:
    """The one graph of a node classification set; its features are left to those who train on it."""
    pairs = dataset(context, file, "edge_index", "iu", width=0)
    if pairs.shape[0] != 2:
        raise context.damage("dataset 'edge_index'", f"has shape {pairs.shape}, and (2, E) was wanted.")
    ends = pairs[:].T
    labels = dataset(context, file, "labels", "iu")[:].tolist() if "labels" in file else []
    nodes = len(labels) or int(file.attrs.get("num_nodes", ends.max(initial=-1) + 1))
    rows = [{"label": label} if label >= 0 else None for label in labels]

    graph = build_graph(context, "graph 0", nodes, ends, node_rows=rows, attributes=facts_in(file))
    parts = _parts(file, context, nodes)

    return graph if parts is None else replace(graph, node_attributes={**graph.node_attributes, "split": parts})


def _parts(file: Any, context: Context, nodes: int) -> list[str | None] | None:
    """The part of the split that each node is in, if there is a split."""
    names = dict(zip(("train_idx", "val_idx", "test_idx"), SPLITS, strict=True))
    missing = [name for name in names if name not in file]
    if len(missing) == len(names):
        return None
    # Without it a split would be drawn, and tested nodes might be learned from.
    if missing:
        raise context.error(
            "the split",
            f"{' and '.join(missing)} not found; write all of {', '.join(names)}, or none for a split at random.",
        )
    parts: list[str | None] = [None] * nodes
    for name, part in names.items():
        listed = dataset(context, file, name, "iu")[:].astype(np.int64)
        if len(listed) and not 0 <= listed.min() <= listed.max() < nodes:
            raise context.error(f"dataset '{name}'", f"a node out of range; write nodes from 0 to {nodes - 1}.")
        for node in listed.tolist():
            # Whoever is tested on what was learned from is right too often.
            if parts[node] is not None:
                raise context.error("the split", f"a node stands twice in {', '.join(names)}; write it to one, once.")
            parts[node] = part

    return parts if any(parts) else None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def write(graphs: Iterable[SimpleGraph], stream: BinaryIO, provenance: Provenance) -> int:
    """Write version 1 to the file that the stream has opened."""
    facts = facts_of(provenance)
    target = PatientFile(stream)
    graphs = iter(graphs)
    with undisturbed():
        file = h5py.File(target, "w", libver=_LAYOUT)
    try:
        with undisturbed():
            file.attrs["format"], file.attrs["version"] = "graphite-gen", 1
            file.attrs["checksum"] = _checksum(facts)
            for name, value in facts.items():
                file.attrs[name] = to_json(value) if name == "parameters" else value
            writer = Writer(file, facts)
        # Only making graphs takes long enough to be interrupted.
        while target.error is None and (block := list(islice(graphs, GRAPHS))):
            with undisturbed():
                writer.write(block)
    except RuntimeError as error:
        raise OutputError(f"The HDF5 file cannot be written: {_first_line(error)}.") from error
    finally:
        with undisturbed():
            file.close()
    target.check()

    return writer.graphs
