"""Graph files: read any of our formats as a stream of graphs, write any as a stream of bytes.

Each format is one module with ``read(stream, context)`` and ``write(graphs, stream, provenance)``, loaded when it is
used. ``g6``, ``s6`` and ``edgelist`` drop what they cannot hold, as :func:`dropped_by` tells; the others keep weights,
features, names and attributes.

A file's origin (family, parameters, seed, source, model) is a fact about each of its graphs: the writers put it among
the graph's attributes, where networkx sees it too, the readers leave it there, and :attr:`GraphReader.provenance` is
what the first graph says.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import FormatError, OutputError
from ..graph import SimpleGraph, as_simple_graph
from ..records import Provenance
from .atomic import is_settled
from .build import MAX_NODES, Context
from .files import Template, check_target, is_special, open_input, open_output
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

FORMATS: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(
    {
        "graphml": (".graphml",),
        "h5": (".h5", ".hdf5"),
        "g6": (".g6",),
        "s6": (".s6",),
        "jsonl": (".jsonl",),
        "gml": (".gml",),
        "edgelist": (".edgelist",),
    }
)
"""The formats we read and write, and the suffixes that mean them."""

_SUFFIXES = {suffix: name for name, suffixes in FORMATS.items() for suffix in suffixes}
_DROPPED: dict[str, tuple[str, ...]] = {
    "g6": ("weights", "features", "names", "node_attributes", "edge_attributes"),
    "s6": ("weights", "features", "names", "node_attributes", "edge_attributes"),
    "edgelist": ("features", "node_attributes"),
}


def format_of(path: str | Path, format: str | None = None) -> str:
    """The format of a file by its suffix, or the one asked for by name.

    Raises:
        FormatError: There is no such format, or the suffix means none.
    """
    file = Path(path).name.lower()
    if format is not None:
        name = _SUFFIXES.get("." + format.lower().removeprefix("."))
        if name is None:
            raise FormatError(f"'{format}' is not a format we read or write: pass one of {', '.join(FORMATS)}.")
    elif str(path) == "-":
        raise FormatError(f"'-' has no suffix to tell its format: pass --format with one of {', '.join(FORMATS)}.")
    else:
        name = _SUFFIXES.get(Path(file.removesuffix(".gz")).suffix)
    if name is None:
        known = ", ".join(f"'{suffix}'" for suffix in _SUFFIXES)
        raise FormatError(f"'{path}' has no suffix we know: name it {known} (text also '.gz'), or pass --format.")
    if name == "h5" and file.endswith(".gz"):
        raise FormatError(f"'{path}': HDF5 is compressed inside and not read or written through gzip; drop the '.gz'.")

    return name


def keeps_node_attributes(format: str) -> bool:
    """Whether a format, as :func:`format_of` names it, holds what nodes carry."""
    return "node_attributes" not in _DROPPED.get(format, ())


def dropped_by(format: str, graph: SimpleGraph) -> list[str]:
    """What a graph carries that a format, as :func:`format_of` names it, does not hold: ``weights``, ``names``, …."""
    carried = ((name, getattr(graph, name)) for name in _DROPPED.get(format, ()))

    return [name.replace("_", " ") for name, value in carried if value is not None and len(value)]


def check_node_attributes(format: str, what: str) -> None:
    """Refuse a format that would drop what is about to be made.

    Arguments:
        format: The format, as :func:`format_of` names it.
        what: What it has to hold, as in ``a union``.

    Raises:
        OutputError: The format has no node attributes.
    """
    if not keeps_node_attributes(format):
        raise OutputError(
            f"'{format}' cannot hold {what}, as it has no node attributes: "
            f"pass one of {', '.join(filter(keeps_node_attributes, FORMATS))}."
        )


class GraphReader(Iterator[SimpleGraph]):
    """A stream of graphs from a file; it closes at its end, or as a context manager.

    Attributes:
        format: The format of the file, of the first one for a folder.
        provenance: Where the graphs come from, as the first one tells.
    """

    def __init__(self, format: str, graphs: Iterator[SimpleGraph], name: str) -> None:
        self.format = format
        self._files = graphs
        first = next(graphs, None)
        if first is None:
            raise FormatError(f"'{name}' holds no graphs: pass a file with at least one.")
        self.provenance: Provenance = provenance_of(first.attributes)
        self._graphs = chain((first,), graphs)

    def __iter__(self) -> Iterator[SimpleGraph]:
        # The chain itself, so that a plain loop does not pay for a Python call per graph.
        return self._graphs

    def __next__(self) -> SimpleGraph:
        return next(self._graphs)

    def __enter__(self) -> GraphReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the stream then ends."""
        self._files.close()  # type: ignore[attr-defined]
        self._graphs = chain()


def read_graphs(source: str | Path, *, format: str | None = None, simplify: bool = False) -> GraphReader:
    """The graphs of a file or of a folder of files, one after the other.

    Arguments:
        source: A file, a folder whose files are read in the order of their names, or ``-`` for stdin.
        format: The format, where the suffix does not tell.
        simplify: Whether to ignore directions and drop self-loops and repeated edges, rather than refuse them.

    Raises:
        FormatError: The file is missing, damaged, empty or not what it claims to be; also while reading on.
    """
    path = None if str(source) == "-" else Path(source)
    # Unlike the method of a path, this holds names that cannot be for no folders, and opening them then fails.
    if path is not None and os.path.isdir(path):  # noqa: PTH112
        files: list[tuple[Path | None, str]] = list(_folder_files(path, format))
    else:
        files = [(path, format_of(source, format))]
    if path is None and files[0][1] == "h5":
        raise FormatError("'-' cannot be HDF5, which is not read front to back: save it to a file and pass that.")

    return GraphReader(files[0][1], _read_files(files, simplify), str(source))


def _folder_files(folder: Path, format: str | None) -> Iterator[tuple[Path, str]]:
    """The visible files of a folder that are of a format we read, or all of them if one is given."""
    if all((folder / name).is_file() for name in ("config.json", "model.safetensors")):
        raise FormatError(f"'{folder}' is a model, not graphs: pass it with --model, and a file of graphs here.")
    if not is_settled(folder):
        raise FormatError(f"'{folder}' is being filled, or its writer was killed at it: write it again, then read it.")
    try:
        # A link to nowhere counts, so that it is missed: without it there would be fewer graphs than it seems.
        files = sorted(
            path
            for path in folder.iterdir()
            if not path.name.startswith(".") and (path.is_file() or (path.is_symlink() and not path.exists()))
        )
    except OSError as error:
        raise FormatError(f"'{folder}' cannot be read: {error.strerror or error}.") from error
    found = False
    for path in files:
        if format is not None or Path(path.name.lower().removesuffix(".gz")).suffix in _SUFFIXES:
            found = True
            yield path, format_of(path, format)
    if not found:
        raise FormatError(f"'{folder}' holds no file of graphs: wanted {', '.join(_SUFFIXES)}.")


def _read_files(files: list[tuple[Path | None, str]], simplify: bool) -> Iterator[SimpleGraph]:
    for path, format in files:
        context = Context("-" if path is None else str(path), simplify)
        try:
            with open_input(path, context) as stream:
                count = 0
                # What an empty file lacks is graphs, not a signature or a root element.
                graphs = _module(format).read(stream, context) if stream.peek(1) else ()
                for count, graph in enumerate(graphs, 1):  # noqa: B007
                    yield graph
        except UnicodeDecodeError as error:
            raise context.error(f"graph {count + 1}", f"not UTF-8 text ({error.reason}); save it as UTF-8.") from error
        except (MemoryError, RecursionError) as error:
            problem = "too large or too deeply nested to read. Pass smaller graphs, or one file each."
            raise context.error(f"graph {count + 1}", problem) from error
        if not count:
            raise FormatError(
                f"'{context.name}' holds no graphs: wanted at least one in the format '{format}'. "
                f"Pass another file, or make one with 'graphite-gen generate --family NAME -o FILE'."
            )


def _module(format: str) -> Any:
    return importlib.import_module(f"{__name__}.{format}")


def check_output(target: str | Path, *, format: str | None = None, force: bool = False) -> str:
    """Refuse a target that :func:`write_graphs` could not write, before any work is done for it, and give its format.

    Raises:
        FormatError: There is no such format.
        OutputError: The target cannot be written.
    """
    path = None if str(target) == "-" else Path(target)
    if path is not None and os.path.isdir(path):  # noqa: PTH112
        check_target(path, force)
    name = format_of(target, format)
    if name == "h5" and is_special(path):
        raise OutputError(
            f"'{target}' cannot be HDF5, which is not written front to back: pass a file, or another --format."
        )
    if "{index" in str(target):
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
    """Write graphs to a file as they come, and give their number.

    The file, or all files of a template, appear when all is written: if anything fails on the way, nothing is left and
    existing files stay as they were. With ``force`` the files of a template replace all that it had given before.

    Arguments:
        graphs: The graphs, ours or networkx's.
        target: A file, ``-`` for stdout, or a template such as ``out/{index:04d}.graphml`` for one file per graph.
        format: The format, where the suffix does not tell.
        provenance: Where the graphs come from; a graph's own attributes go before it. By default, what the first
            graph tells.
        force: Whether to replace existing files.
        union: Whether to write one graph, their disjoint union, with the graph's number as node attribute ``graph``.

    Raises:
        FormatError: There is no such format.
        OutputError: The target cannot be written, or the format cannot hold the graphs.
        DatasetError: A networkx graph is not a simple graph.
    """
    name = check_output(target, format=format, force=force)
    path = None if str(target) == "-" else Path(target)
    template = Template(str(target)) if "{index" in str(target) else None
    if union:
        check_node_attributes(name, "a union")

    checked = _checked(graphs)
    first = next(checked, None)
    if first is None:
        raise OutputError(f"There are no graphs to write to '{target}'.")
    if provenance is None:
        provenance = provenance_of(first.attributes)
    checked = chain((first,), checked)
    count = 1
    if union:
        united, count = disjoint_union(checked)
        checked = iter((united,))

    write = _module(name).write
    if template is None:
        with open_output(path, force) as stream:
            written: int = write(checked, stream, provenance)
        return count if union else written

    written = 0
    with template.files(force) as open_next:
        for written, graph in enumerate(checked, 1):  # noqa: B007
            with open_next() as stream:
                write((graph,), stream, provenance)

    return count if union else written


def _checked(graphs: Iterable[SimpleGraph | nx.Graph]) -> Iterator[SimpleGraph]:
    """The graphs, refusing numbers that no reader would accept."""
    for index, graph in enumerate(map(as_simple_graph, graphs)):
        for what, values in (("weight", graph.weights), ("feature", graph.features)):
            if values is not None and not np.isfinite(values).all():
                raise OutputError(
                    f"Graph {index} has a {what} that is not a finite number, which no file of ours holds."
                )
        yield graph
