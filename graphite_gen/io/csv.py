"""CSV: a table of edges with a header, one row per edge, such as ``graph,source,target,weight``.

Rows of one graph are consecutive; without a column ``graph`` there is one graph. A row without a target is a node
without edges. Other columns are edge attributes, except for those of the graph: ``split``, and ``directed`` (1 or 0) or
Gephi's ``Type`` (Directed or Undirected). Values that look like numbers are read as numbers. Nodes called ``0 … n-1``
keep that order, others are in order of appearance.
"""

from __future__ import annotations

import csv
import io
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, groupby
from typing import Any, BinaryIO

import numpy as np

from ..data.dataset import SPELLINGS
from ..errors import FormatError
from ..graph import SimpleGraph
from ..records import Provenance, listed
from .build import Context, build_graph
from .values import (
    PREFIX,
    edge_rows,
    from_text,
    gather,
    names_from_words,
    plain,
    scatter,
    to_json,
    to_text,
)

__all__ = ["graphs_of", "read", "table", "write"]

ENDS = (("source", "target"), ("from", "to"), ("src", "dst"), ("u", "v"), ("node1", "node2"), ("i", "j"))
"""Names of the columns of the two ends of an edge, whatever their case."""
GRAPH = ("graph", "graph_id")
HEADER = ("graph", "source", "target")
_RESERVED = frozenset({*HEADER, "split", "directed"})
_DIRECTED = {
    "directed": {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False},
    "type": {"directed": True, "undirected": False},
}
_KEY = re.compile(r"\w(?:[\w .:()-]*[\w)])?")

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_MEMORY = 1 << 24

Rows = Iterable[tuple[str, Sequence[Any]]]


def read(stream: BinaryIO, context: Context, *, headed: bool = True) -> Iterator[SimpleGraph]:
    """The graphs of a table separated by commas, semicolons or tabs.

    Without a header, a table of two or three columns has source, target and weight. Unless ``headed`` is False, its
    first row then has to be two integers, since names could be a header.
    """
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    try:
        rows = _rows(text, context, headed)
        first = next(rows, None)
        if first is None:
            return
        where, header = first
        names = [name.strip() for name in header]
        is_edge = len(header) in (2, 3) and (not headed or all(re.fullmatch(r"\d+", name) for name in names[:2]))
        ends = _ends(names)
        if ends is None and is_edge:
            names, ends, rows = ["source", "target", "weight"][: len(header)], (0, 1), chain([first], rows)
        if ends is None:
            problem = f"the columns are {listed(names[:10])}; expected a header with 'source' and 'target'"
            raise context.error(where, f"{problem}, and optionally 'graph'.")
        if len(set(filter(None, names))) < len(names) - names.count(""):
            raise context.damage(where, "two columns have the same name.")
        place = next((k for k, name in enumerate(names) if name.lower() in GRAPH), None)
        typed = ((where, _fields(context, where, row, headed)) for where, row in rows)
        yield from graphs_of(context, names, ends, place, typed, texts=True)
    finally:
        # The stream is not ours to close, and may be closed already.
        with suppress(ValueError):
            text.detach()


def _rows(text: io.TextIOWrapper, context: Context, headed: bool) -> Iterator[tuple[str, list[str]]]:
    """The rows that are neither blank nor comments, and their positions.

    Below a header, a row with a value for every column is no comment: names such as ``#tag`` are common.
    """
    first = next((line for line in text if line.strip() and not line.startswith("#")), "")
    delimiter = max("\t;,", key=first.count)
    reader = csv.reader(chain([first], text), delimiter=delimiter, strict=True)
    width = 0
    try:
        for row in reader:
            is_comment = row[:1] and row[0].startswith("#") and not (headed and len(row) == width)
            if any(field.strip() for field in row) and not is_comment:
                width = width or len(row)
                yield f"line {reader.line_num}", row
    except csv.Error as error:
        raise context.damage(f"line {reader.line_num}", f"not a row of a table ({error}).") from error


def _fields(context: Context, where: str, row: list[str], headed: bool) -> list[str | None]:
    fields = [field.strip() or None for field in row]
    # An edge list separated by spaces would otherwise be isolated nodes, or '1,2 1,3' an edge from 1 to '2 1'.
    is_list = len(fields) == 1 and len(str(fields[0]).split()) > 1
    if is_list or (not headed and any(re.fullmatch(r"\d+\s+\d+", field or "") for field in fields)):
        raise context.error(where, f"{','.join(row)!r}; expected values separated as in the first line.")

    return fields


def _value(text: Any) -> Any:
    """A number where the text is one."""
    if not isinstance(text, str) or not _NUMBER.fullmatch(text) or len(text) > 300:
        return from_text(text)

    return int(text) if text.lstrip("+-").isdigit() else float(text)


def _ends(columns: Sequence[str]) -> tuple[int, int] | None:
    lower = [name.lower() for name in columns]

    return next(((lower.index(u), lower.index(v)) for u, v in ENDS if u in lower and v in lower), None)


def graphs_of(
    context: Context, columns: Sequence[str], ends: tuple[int, int], place: int | None, rows: Rows, texts: bool = False
) -> Iterator[SimpleGraph]:
    """The graphs of a table.

    Arguments:
        columns: The names of the columns; those without a name are ignored.
        ends: The positions of the columns of source and target.
        place: The position of the column of the graph; None for one graph.
        rows: The position and the values of each row, None for missing ones; rows may be shorter than the header.
        texts: Whether names and values are texts, some of which are numbers.
    """
    others = {name: k for k, name in enumerate(columns) if name and k not in (*ends, place)}
    seen: set[Any] = set()

    def filled() -> Iterator[tuple[str, list[Any]]]:
        for where, row in rows:
            if len(row) > len(columns):
                raise context.damage(where, f"{len(row)} values; the header has {len(columns)} columns.")
            yield where, [*row, *[None] * (len(columns) - len(row))]

    for index, (graph, group) in enumerate(groupby(filled(), lambda row: None if place is None else row[1][place])):
        if graph in seen:
            raise context.error(f"graph {graph}", "its rows are not consecutive; sort the rows by graph.")
        seen.add(graph)
        name = {} if graph is None or str(graph) == str(index) else {"name": _value(graph)}
        at = f"graph {index if graph is None else graph}"
        try:
            yield _graph(context, at, ends, others, group, name, texts)
        except FormatError as error:
            if place is not None or error.reason != "needs-simplify":
                raise
            problem = f"{error} If the table has several graphs, call their column 'graph'."
            raise FormatError(problem, reason=error.reason, path=context.name, where=at) from None


def _graph(
    context: Context,
    where: str,
    ends: tuple[int, int],
    others: dict[str, int],
    rows: Rows,
    attributes: dict[str, Any],
    texts: bool,
) -> SimpleGraph:
    index: dict[Any, int] = {}
    pairs: list[tuple[int, int]] = []
    data: list[dict[str, Any]] = []
    alone: list[dict[str, Any]] = []
    splits: dict[str, Any] = {}
    for at, row in rows:
        u, v = (row[end] for end in ends)
        if u is None and v is not None:
            raise context.damage(at, f"an edge to {v!r} without a source.")
        nodes = [index.setdefault(name, len(index)) for name in (u, v) if name is not None]
        own = {key: _value(row[k]) if texts else row[k] for key, k in others.items() if row[k] is not None}
        splits[repr(own.get("split"))] = own.get("split")
        if len(nodes) == 2:
            pairs.append((nodes[0], nodes[1]))
        (data if len(nodes) == 2 else alone).append(own)
    directed = None
    for key in others:
        if kinds := _directions(key, (own.get(key) for own in data or alone)):
            directed = context.mixed_edges(where) if len(kinds) > 1 else kinds.pop()
            for own in data:
                own.pop(key, None)
            break
    if len(splits) == 1 and str(split := splits.popitem()[1]).lower() in SPELLINGS:
        attributes = {**attributes, "split": split}
        for own in data:
            del own["split"]
    data = [scatter(own) for own in data]
    names = names_from_words(list(index)) if texts else tuple(index)
    numbered = set(names) == set(range(len(names))) and all(type(name) is int for name in names)

    return build_graph(
        context,
        where,
        len(names),
        [(names[i], names[j]) for i, j in pairs] if numbered else pairs,
        directed=directed,
        names=None if numbered else names,
        edge_rows=data if any(data) else (),
        attributes=attributes,
    )


def _directions(key: str, values: Iterable[Any]) -> set[bool]:
    """Whether a column says that edges are directed, one value or both; none if it is an edge attribute."""
    if key.lower() not in _DIRECTED:
        return set()
    # An empty field is an undirected edge, in Gephi's column beside others.
    words = {**_DIRECTED[key.lower()], "none": False}
    texts = {str(value).lower() for value in values}
    is_other = not texts <= words.keys() or (texts == {"none"} and key.lower() == "type")

    return set() if is_other else {words[text] for text in texts}


def table(graph: SimpleGraph, index: int) -> Iterator[dict[str, Any]]:
    """The rows of a graph: its edges, then its nodes without edges."""
    names = graph.names or range(graph.nodes)
    about = {} if graph.attributes.get("split") is None else {"split": graph.attributes["split"]}
    about |= {"directed": 1} if graph.directed else {}
    reserved = _RESERVED.union(key for key, column in graph.edge_attributes.items() if _directions(key, column))
    data = edge_rows(graph) or [{}] * len(graph.edges)
    for (i, j), row in zip(graph.edges.tolist(), data, strict=True):
        yield {"graph": index, "source": names[i], "target": names[j], **gather(row, reserved, _KEY), **about}
    for node in np.flatnonzero(graph.degrees() == 0).tolist():
        yield {"graph": index, "source": names[node], **about}
    if not graph.nodes:
        yield {"graph": index, **about}


def write(graphs: Iterable[SimpleGraph], stream: BinaryIO, provenance: Provenance, delimiter: str = ",") -> None:
    """Write the edges of all graphs, with a column for every attribute that some edge has."""
    columns = dict.fromkeys(HEADER)
    # The header comes first, and the columns are known last.
    with tempfile.SpooledTemporaryFile(_MEMORY) as body:
        for index, graph in enumerate(graphs):
            rows = list(table(graph, index))
            columns.update(dict.fromkeys(chain.from_iterable(rows)))
            # Numbers are read as names only where all names are integers.
            marked = HEADER[1:] if graph.names and names_from_words(list(map(str, graph.names))) != graph.names else ()
            body.write(_lines(([_text(row.get(key), key in marked) for key in columns] for row in rows), delimiter))
        stream.write(_lines([columns], delimiter))
        body.seek(0)
        shutil.copyfileobj(body, stream)


def _lines(rows: Iterable[Iterable[str]], delimiter: str) -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)

    return text.getvalue().encode()


def _text(value: Any, is_marked: bool = False) -> str:
    """A value as the text of a field, from which :func:`_value` reads it; a number as JSON if it is marked."""
    if value is None:
        return ""
    value = plain(value)
    if isinstance(value, str):
        is_plain = value == value.strip() and value and "\n" not in value and not _NUMBER.fullmatch(value)
        return to_text(value) if is_plain else PREFIX + to_json(value)
    number = not is_marked and type(value) in (int, float) and _NUMBER.fullmatch(repr(value))

    return repr(value) if number else PREFIX + to_json(value)
