"""Edge list: one graph per file, one edge per line as ``u v``, ``u v weight`` or ``u v {'weight': 2.5}``.

A node alone on a line has no edges; networkx ignores such lines. A comment before the first edge that starts with
``# Directed graph``, as in the files of SNAP, says that edges are arcs from u to v. A list that is separated by commas
or semicolons is read as a table, see :mod:`.csv`. Nodes called ``0 … n-1`` keep that order, others are in order of
appearance. Names that all look like integers are read as integers, otherwise as strings.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np

from ..graph import SimpleGraph
from ..records import Provenance
from . import csv
from .build import Context, Row, build_graph, several_graphs
from .files import decoded, lines
from .values import PREFIX, edge_rows, from_text, names_from_words, plain, texts_from_names, to_text

__all__ = ["read", "write"]

_MAX_DATA = 1 << 20
_BLOCK = 1 << 14
_COMMA = re.compile("[,;]")
_DIRECTED = re.compile(rb"#\s*(un)?directed graph\b", re.IGNORECASE)
# The first line that is neither blank nor a comment starts with a word and a comma; names in JSON may have commas.
_SEPARATED = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s*#[^\n]*\n)*\s*(?!json:)[^\s#,;]*\s?[,;]")


def read(stream: BinaryIO, context: Context) -> Iterator[SimpleGraph]:
    """The graph of an edge list; none if all lines are blank."""
    if _SEPARATED.match(stream.peek(1 << 16)):  # type: ignore[attr-defined]
        yield from csv.read(stream, context, headed=False)
        return

    index: dict[str, int] = {}
    pairs: list[tuple[int, int]] = []
    rows: list[Row] = []
    is_blank = True
    directed: bool | None = None
    for where, line in lines(stream, context):
        fields = decoded(context, where, line.partition(b"#")[0]).split(None, 2)
        is_blank = is_blank and not fields and b"#" not in line
        if directed is None and not pairs and (comment := _DIRECTED.match(line)):
            directed = comment[1] is None
        if wrong := next((name for name in fields[:2] if _COMMA.search(name) and not name.startswith(PREFIX)), None):
            raise context.error(where, f"{wrong!r}; expected nodes separated by white space; tables are '.csv' files.")
        ends = [index.setdefault(name, len(index)) for name in fields[:2]]
        if len(ends) == 2:
            pairs.append((ends[0], ends[1]))
            rows.append(_data(context, where, fields[2]) if len(fields) > 2 else None)
    if is_blank:
        return

    names = names_from_words(list(index))
    numbered = set(names) == set(range(len(names))) and all(type(name) is int for name in names)
    yield build_graph(
        context,
        "graph 0",
        len(names),
        [(names[i], names[j]) for i, j in pairs] if numbered else pairs,
        directed=directed,
        names=None if numbered else names,
        edge_rows=rows if any(rows) else (),
    )


def _data(context: Context, where: str, text: str) -> Row:
    """Edge attributes: a weight, or a dictionary of Python literals."""
    if len(text) > _MAX_DATA:
        raise context.damage(where, f"edge data longer than the limit of {_MAX_DATA} characters.")
    try:
        with warnings.catch_warnings():
            # Python warns about '1or', which is then refused anyway.
            warnings.simplefilter("ignore")
            data = ast.literal_eval(text.strip()) if text.startswith("{") else {"weight": float(text)}
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise context.damage(where, f"edge data {text[:40]!r}; expected a weight, or data such as {{'weight': 2.5}}.")

    return {str(key): from_text(value) for key, value in data.items()}


def write(graphs: Iterable[SimpleGraph], stream: BinaryIO, provenance: Provenance) -> None:
    """Write the edges of the only graph."""
    graphs = iter(graphs)
    graph = next(graphs)
    if next(graphs, None) is not None:
        raise several_graphs("edgelist")
    if graph.directed:
        stream.write(b"# Directed graph\n")
    if not graph.nodes:
        stream.write(b"# a graph without nodes\n")
    ids = [str(i) for i in range(graph.nodes)] if graph.names is None else _words(graph.names)
    alone = range(graph.nodes) if graph.names is not None else np.flatnonzero(graph.degrees() == 0).tolist()
    stream.write("".join(f"{ids[i]}\n" for i in alone).encode())

    rows = edge_rows(graph)
    for start in range(0, len(graph.edges), _BLOCK):
        block = enumerate(graph.edges[start : start + _BLOCK].tolist(), start)
        stream.write("".join(f"{ids[i]} {ids[j]}{_literal(rows[e]) if rows else ''}\n" for e, (i, j) in block).encode())


def _words(names: tuple[Any, ...]) -> list[str]:
    """Names without white space, separators and comment characters."""
    return [
        text if text and not re.search(r"[\s#,;]", text) else PREFIX + _unspaced(from_text(text))
        for text in texts_from_names(names)[0]
    ]


def _unspaced(value: Any) -> str:
    return json.dumps(value, separators=(",", ":")).replace(" ", "\\u0020").replace("#", "\\u0023")


def _literal(row: Mapping[str, Any]) -> str:
    """Edge attributes as a Python dictionary, in which a comment character can only be inside a string."""
    data = {key: _literal_value(plain(value)) for key, value in row.items()}

    return " " + ascii(data).replace("#", "\\x23") if data else ""


def _literal_value(value: Any) -> Any:
    """The value if it can be written as a Python literal, which infinities cannot, otherwise as text."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return to_text(value)

    return to_text(value) if isinstance(value, str) else value
