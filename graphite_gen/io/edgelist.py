"""Edge list: one graph, an edge per line as ``u v``, ``u v weight`` or ``u v {'weight': 2.5}``.

We write the first and the last, which networkx opens without being told more. A node alone on its line has no edges;
networkx reads past such lines, so only there isolated nodes are lost. Node and graph attributes and features are
dropped. Nodes called ``0 … n-1`` are in that order, any others in the order they appear.

Names that are strings or integers are written as they are, and nothing in the file tells which they were: names that
all look like integers are read as integers, any others as strings.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np

from ..errors import OutputError
from ..graph import SimpleGraph
from ..records import Provenance
from .build import Context, Row, build_graph
from .files import lines
from .values import edge_rows, from_text, names_from_words, plain, texts_from_names, to_text

__all__ = ["read", "write"]

_MAX_DATA = 1 << 20
_BLOCK = 1 << 14


def read(stream: BinaryIO, context: Context) -> Iterator[SimpleGraph]:
    """The one graph of an edge list; a file of blank lines holds none."""
    index: dict[str, int] = {}
    pairs: list[tuple[int, int]] = []
    rows: list[Row] = []
    is_blank = True
    for number, line in lines(stream, context):
        where = f"line {number}"
        try:
            fields = line.partition(b"#")[0].decode().split(None, 2)
        except UnicodeDecodeError as error:
            raise context.error(where, f"not UTF-8 at byte {error.start}; save the file as UTF-8.") from error
        is_blank = is_blank and not fields and b"#" not in line
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
        names=None if numbered else names,
        edge_rows=rows if any(rows) else (),
    )


def _data(context: Context, where: str, text: str) -> Row:
    """What follows the two nodes: a weight, or a dictionary of literals."""
    if len(text) > _MAX_DATA:
        raise context.damage(where, f"more than {_MAX_DATA} characters of edge data, the most that is read.")
    try:
        data = _literals(text.strip()) if text.startswith("{") else {"weight": float(text)}
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise context.damage(
            where, f"{text[:40]!r} after the nodes; wanted a weight, or data such as {{'weight': 2.5}}."
        )

    return {str(key): from_text(value) if isinstance(value, str) else value for key, value in data.items()}


def _literals(text: str) -> Any:
    with warnings.catch_warnings():
        # Python has its doubts about '1or', which is then refused anyway.
        warnings.simplefilter("ignore")
        return ast.literal_eval(text)


def write(graphs: Iterable[SimpleGraph], stream: BinaryIO, provenance: Provenance) -> int:
    """Write the edges of the only graph."""
    graphs = iter(graphs)
    graph = next(graphs)
    if next(graphs, None) is not None:
        raise OutputError(
            "An edge list holds one graph, and there are more: "
            "write '.graphml', '.g6' or '.h5', or one file each with '{index:04d}.edgelist'."
        )
    if not graph.nodes:
        stream.write(b"# a graph without nodes\n")
    ids = [str(i) for i in range(graph.nodes)] if graph.names is None else _words(graph.names)
    lonely = range(graph.nodes) if graph.names is not None else np.flatnonzero(graph.degrees() == 0).tolist()
    stream.write("".join(f"{ids[i]}\n" for i in lonely).encode())

    rows = edge_rows(graph)
    for start in range(0, len(graph.edges), _BLOCK):
        block = enumerate(graph.edges[start : start + _BLOCK].tolist(), start)
        stream.write("".join(f"{ids[i]} {ids[j]}{_literal(rows[e]) if rows else ''}\n" for e, (i, j) in block).encode())

    return 1


def _words(names: tuple[Any, ...]) -> list[str]:
    """Names without the spaces and signs that would end them."""
    texts, _ = texts_from_names(names)

    return [
        text
        if text and not any(sign.isspace() or sign == "#" for sign in text)
        else "json:" + _unspaced(from_text(text))
        for text in texts
    ]


def _unspaced(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"))

    return text.replace(" ", "\\u0020").replace("#", "\\u0023")


def _literal(row: Mapping[str, Any]) -> str:
    if not row:
        return ""
    data = {key: _literal_value(plain(value)) for key, value in row.items()}

    # A sign that starts a comment can only be inside a text here.
    return " " + ascii(data).replace("#", "\\x23")


def _literal_value(value: Any) -> Any:
    """The value if Python's literals can write it; JSON knows infinities, which they do not."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return to_text(value)

    return to_text(value) if isinstance(value, str) else value
