"""Graph files: read any supported format as a stream of graphs, write any as a stream of bytes.

The module of a format has its name and is imported on first use. Its ``read(stream, context)`` yields graphs, or raises
``context.damage(where, problem)``, and its ``write(graphs, stream, provenance)`` stores the provenance of a file as
attributes of each graph. The architecture page of the documentation explains how to add one.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import FormatError, OutputError
from ..graph import SimpleGraph, as_simple_graph
from ..records import Provenance
from .atomic import is_settled
from .build import MAX_NODES, Context, several_graphs
from .files import Template, check_not_pickle, check_target, is_special, is_template, open_input, open_output
from .union import disjoint_union
from .values import provenance_of

if TYPE_CHECKING:
    import networkx as nx

__all__ = [
    "FORMATS",
    "MAX_NODES",
    "GraphReader",
    "check_node_attributes",
    "check_output",
    "check_target",
    "dropped_by",
    "format_of",
    "keeps_node_attributes",
    "open_output",
    "read_graphs",
    "write_graphs",
]

_NAMES = ("graphml", "h5", "g6", "s6", "jsonl", "gml", "edgelist", "csv", "tsv")
FORMATS = MappingProxyType({name: (f".{name}",) for name in _NAMES} | {"h5": (".h5", ".hdf5")})
"""The suffixes of each format."""

_SUFFIXES = {suffix: name for name, suffixes in FORMATS.items() for suffix in suffixes}
_ALL = ("weights", "features", "names", "node_attributes", "edge_attributes")
_UNDIRECTED = ("g6", "s6")
_DROPPED = {"g6": _ALL, "s6": _ALL, **dict.fromkeys(("edgelist", "csv", "tsv"), ("features", "node_attributes"))}


def format_of(path: str | Path, format: str | None = None, *, reason: str = "format-unknown") -> str:
    """The format of a file: the one given, otherwise by its suffix."""
    file = Path(path).name.lower()
    known = ", ".join(FORMATS)
    if format is not None:
        name = _SUFFIXES.get("." + format.lower().removeprefix("."))
        problem = f"Unknown format '{format}'; expected one of {known}."
    elif str(path) == "-":
        name, problem = None, f"'-' has no suffix; its format must be given as one of {known}."
    else:
        check_not_pickle(path)
        name = _SUFFIXES.get(Path(file.removesuffix(".gz")).suffix)
        problem = f"'{path}' has no known suffix; expected one of {', '.join(_SUFFIXES)} (text formats also '.gz')."
    if name is None:
        raise FormatError(problem, reason=reason, path=path, format=format, formats=known)
    if name == "h5" and file.endswith(".gz"):
        raise FormatError(
            f"'{path}': HDF5 files are compressed internally and cannot be gzipped: leave out '.gz'.", path=path
        )

    return name


def keeps_node_attributes(format: str) -> bool:
    """Whether a format, as returned by :func:`format_of`, stores node attributes."""
    return "node_attributes" not in _DROPPED.get(format, ())


def dropped_by(format: str, graph: SimpleGraph) -> list[str]:
    """The parts of a graph that a format does not store, such as ``weights`` or ``names``."""
    parts = ((name, getattr(graph, name)) for name in _DROPPED.get(format, ()))

    return [name.replace("_", " ") for name, value in parts if value is not None and len(value)]


def check_node_attributes(format: str, what: str) -> None:
    """Raise :class:`OutputError` if a format has no node attributes and so cannot store ``what``, as in ``a union``."""
    if not keeps_node_attributes(format):
        suitable = ", ".join(filter(keeps_node_attributes, FORMATS))
        problem = f"The format '{format}' has no node attributes and cannot store {what}; expected one of {suitable}."
        raise OutputError(problem, reason="format-drops-attributes", format=format, formats=suitable)


class GraphReader(Iterator[SimpleGraph], AbstractContextManager["GraphReader"]):
    """A stream of graphs from a file; it is closed at its end, by :meth:`close`, or as a context manager.

    Attributes:
        name: The file or folder.
        format: The format of the file; of the first one for a folder.
        provenance: The provenance of the first graph.
    """

    def __init__(self, format: str, graphs: Iterator[SimpleGraph], name: str) -> None:
        self.format, self.name = format, name
        self._files = graphs
        first = next(graphs, None)
        if first is None:
            raise _no_graphs(name)
        self.provenance: Provenance = provenance_of(first.attributes)
        self._graphs = chain((first,), graphs)

    def __iter__(self) -> Iterator[SimpleGraph]:
        # The chain itself, so that a plain loop does not pay for a Python call per graph.
        return self._graphs

    def __next__(self) -> SimpleGraph:
        return next(self._graphs)

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"GraphReader('{self.name}', {self.format})"

    def to_networkx(self) -> list[nx.Graph]:
        """The graphs that are left, as networkx graphs."""
        return [graph.to_networkx() for graph in self]

    def close(self) -> None:
        """Close the file and end the stream."""
        self._files.close()  # type: ignore[attr-defined]
        self._graphs = chain()


def _no_graphs(name: str) -> FormatError:
    return FormatError(f"'{name}' contains no graphs.", reason="no-graphs", path=name)


def read_graphs(
    source: str | Path, *, format: str | None = None, simplify: bool = False, directed: bool | None = None
) -> GraphReader:
    """The graphs of a file, or of all files in a folder, as a stream.

    Arguments:
        source: A file, a folder whose files are read in the order of their names, or ``-`` for stdin.
        format: The format; by default it follows from the suffix.
        simplify: Whether to drop self-loops and repeated edges instead of refusing them, and, unless ``directed`` is
            True, edge directions.
        directed: None for graphs as the file has them; edge lists and tables that do not say so are undirected. True
            for directed graphs, also of edge lists and tables; False for undirected graphs.

    Raises:
        FormatError: The file is missing, damaged, empty or in another format, or a graph is of the other kind;
            possibly raised during iteration.
    """
    path = None if str(source) == "-" else Path(source)
    # Unlike Path.is_dir, this is False for invalid names, which then fail to open.
    if path is not None and os.path.isdir(path):  # noqa: PTH112
        files: list[tuple[Path | None, str]] = list(_folder_files(path, format))
    else:
        files = [(path, format_of(source, format))]
    if path is None and files[0][1] == "h5":
        raise FormatError("HDF5 cannot be read from '-', which is not seekable: expected a file.", path="-")

    return GraphReader(files[0][1], _read_files(files, simplify, directed), str(source))


def _folder_files(folder: Path, format: str | None) -> Iterator[tuple[Path, str]]:
    """The visible files of a folder with a known suffix, or all of them if the format is given."""
    if all((folder / name).is_file() for name in ("config.json", "model.safetensors")):
        raise FormatError(f"'{folder}' is a model; expected graphs.", reason="model-not-graphs", path=folder)
    if not is_settled(folder):
        raise FormatError(f"'{folder}' is incomplete: it is being written, or its writer was killed.", path=folder)
    try:
        # A broken link is listed too, so that reading fails instead of skipping its graphs.
        files = sorted(
            path
            for path in folder.iterdir()
            if not path.name.startswith(".") and (path.is_file() or (path.is_symlink() and not path.exists()))
        )
    except OSError as error:
        raise FormatError(f"'{folder}' cannot be read: {error.strerror or error}.", path=folder) from error
    if format is None:
        formats = {path: _SUFFIXES.get(Path(path.name.lower().removesuffix(".gz")).suffix) for path in files}
        known = [path for path in files if formats[path]]
        # Tables beside graphs have features or labels of nodes, or scores.
        files = [path for path in known if formats[path] not in ("csv", "tsv")] or known
    if not files:
        suffixes = ", ".join(_SUFFIXES)
        raise FormatError(f"'{folder}' contains no graph files; expected {suffixes}.", reason="no-graphs", path=folder)
    for path in files:
        yield path, format_of(path, format)


def _read_files(files: list[tuple[Path | None, str]], simplify: bool, directed: bool | None) -> Iterator[SimpleGraph]:
    for path, format in files:
        context = Context("-" if path is None else str(path), simplify, directed)
        try:
            with open_input(path, context) as stream:
                count = 0
                # An empty file is reported as having no graphs, whatever the format requires.
                graphs = _module(format).read(stream, context) if stream.peek(1) else ()
                for count, graph in enumerate(graphs, 1):  # noqa: B007
                    yield graph
        except UnicodeDecodeError as error:
            raise context.error(f"graph {count + 1}", f"not UTF-8 ({error.reason}); save the file as UTF-8.") from error
        except (MemoryError, RecursionError) as error:
            raise context.error(f"graph {count + 1}", "too large or too deeply nested to read.") from error
        if not count:
            raise _no_graphs(context.name)


def _module(format: str) -> Any:
    return importlib.import_module(f"{__name__}.{format}")


def check_output(
    target: str | Path, *, format: str | None = None, force: bool = False, union: bool = False, many: bool = False
) -> str:
    """Check that :func:`write_graphs` can write a target, before work is done for it, and return its format.

    ``many`` tells that there will be more than one graph.
    """
    path = None if str(target) == "-" else Path(target)
    if path is not None and os.path.isdir(path):  # noqa: PTH112
        check_target(path, force)
    name = format_of(target, format, reason="output-format-unknown")
    if name == "h5" and is_special(path):
        problem = f"HDF5 cannot be written to '{target}', which is not seekable."
        raise OutputError(problem, reason="h5-not-seekable", path=target)
    if union:
        check_node_attributes(name, "a union")
    if name == "edgelist" and many and not is_template(target):
        raise several_graphs(name)
    if is_template(target):
        Template(str(target)).check(force)
    elif path is not None:
        check_target(path, force)

    return name


def write_graphs(
    graphs: Iterable[SimpleGraph | nx.Graph],
    target: str | Path,
    *,
    format: str | None = None,
    provenance: Provenance | None = None,
    force: bool = False,
    union: bool = False,
) -> int:
    """Write a stream of graphs to a file and return their number.

    The file, or all files of a template, appear when everything is written: if anything fails, nothing is left behind
    and existing files stay as they were. With ``force``, the files of a template replace all of its earlier ones.

    Arguments:
        graphs: The graphs, also networkx graphs.
        target: A file, ``-`` for stdout, or a template such as ``out/{index:04d}.graphml`` for one file per graph.
        format: The format; by default it follows from the suffix.
        provenance: Where the graphs come from, by default the provenance of the first graph. The attributes of a
            graph take precedence.
        force: Whether to replace existing files.
        union: Whether to write one graph, the disjoint union, with the index of the graph as node attribute ``graph``.

    Raises:
        FormatError: The format is unknown.
        OutputError: The target cannot be written, or the format cannot store the graphs.
        DatasetError: A networkx graph is not a simple graph.
    """
    name = check_output(target, format=format, force=force, union=union)
    path = None if str(target) == "-" else Path(target)

    count = 0

    def checked() -> Iterator[SimpleGraph]:
        nonlocal count
        for index, graph in enumerate(map(as_simple_graph, graphs)):
            for what, values in (("weight", graph.weights), ("feature", graph.features)):
                if values is not None and not np.isfinite(values).all():
                    raise OutputError(f"Graph {index} has a {what} that is not a finite number.", index=index)
            if graph.directed and name in _UNDIRECTED:
                suitable = ", ".join(format for format in FORMATS if format not in _UNDIRECTED)
                problem = f"Graph {index} is directed, which the format '{name}' cannot store; expected one of"
                raise OutputError(f"{problem} {suitable}.", index=index, format=name)
            count = index + 1
            yield graph

    valid = checked()
    if (first := next(valid, None)) is None:
        raise OutputError(f"There are no graphs to write to '{target}'.", path=target)
    if provenance is None:
        provenance = provenance_of(first.attributes)
    every: Iterable[SimpleGraph] = chain((first,), valid)
    if union:
        every = (disjoint_union(every),)

    write = _module(name).write
    if is_template(target):
        with Template(str(target)).files(force) as open_next:
            for graph in every:
                with open_next() as stream:
                    write((graph,), stream, provenance)
    else:
        with open_output(path, force) as stream:
            write(every, stream, provenance)

    return count
