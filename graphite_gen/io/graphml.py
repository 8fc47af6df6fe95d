"""GraphML: one ``<graph>`` element per graph; networkx and igraph read each of them.

Attributes are typed by their value (boolean, long, double, string); other values, such as lists, are JSON after
``json:``. Weights are the edge attribute ``weight``, features the node attribute ``features``, a JSON list. Keys are
declared before the first graph that uses them. Names are the ids of the nodes; where these do not tell strings from
integers, the graph attribute ``integerNames`` lists the integers.

The reader streams, and refuses document types, entities, hyperedges, ports and nested graphs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, BinaryIO
from xml.parsers import expat

from ..graph import SimpleGraph
from ..records import Provenance
from .build import Context, Row, build_graph
from .values import (
    INTEGERS,
    edge_rows,
    from_text,
    gather,
    names_from_texts,
    node_rows,
    plain,
    provenance_attributes,
    scatter,
    take_integers,
    texts_from_names,
    to_text,
)

__all__ = ["read", "write"]

_CHUNK = 1 << 16
_MAX_TEXT = 1 << 26
_NO_ELEMENT = expat.errors.codes[expat.errors.XML_ERROR_NO_ELEMENTS]
_REFUSED = ("hyperedge", "endpoint", "port")


def read(stream: BinaryIO, context: Context) -> Iterator[SimpleGraph]:
    """The graphs of a GraphML file."""
    parser = _Parser(context)
    while chunk := stream.read(_CHUNK):
        yield from parser.feed(chunk)
    yield from parser.feed(b"", final=True)


class _Parser:
    """Builds graphs from XML events."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._xml = expat.ParserCreate(namespace_separator=" ")
        self._xml.buffer_text = True
        self._xml.StartElementHandler = self._start
        self._xml.EndElementHandler = self._end
        self._xml.StartDoctypeDeclHandler = self._refuse_doctype
        self._xml.EntityDeclHandler = self._refuse_doctype
        self._bytes = 0
        self._count = 0
        self._done: list[SimpleGraph] = []
        self._local: dict[str, str] = {}
        self._inside: list[str] = []
        self._keys: dict[str, _Key] = {}
        self._key: _Key | None = None
        self._text: list[str] | None = None
        self._length = 0

    def feed(self, chunk: bytes, final: bool = False) -> list[SimpleGraph]:
        """Parse a chunk and return the graphs that end in it."""
        self._done = []
        self._bytes += len(chunk)
        try:
            self._xml.Parse(chunk, final)
        except expat.ExpatError as error:
            # Only blank lines, so no graphs; a truncated file ends within an element.
            if error.code == _NO_ELEMENT and not self._inside:
                return self._done
            raise self._damage(f"not valid XML ({expat.ErrorString(error.code)}).") from error
        except (ValueError, LookupError) as error:
            raise self._damage(f"not valid XML ({error}).") from error
        # The parser keeps an unfinished tag and parses it again with every chunk.
        if self._bytes - self._xml.CurrentByteIndex > _MAX_TEXT:
            raise self._damage(f"a tag longer than the limit of {_MAX_TEXT} bytes.")

        return self._done

    @property
    def _where(self) -> str:
        return f"line {self._xml.CurrentLineNumber}"

    def _damage(self, problem: str) -> Exception:
        return self._context.damage(self._where, problem)

    def _unsupported(self, kind: str) -> Exception:
        return self._context.error(self._where, f"a {kind} is not supported; expected edges between two nodes.")

    def _refuse_doctype(self, *_: Any) -> None:
        raise self._context.error(self._where, "document types and entities are not supported; remove '<!DOCTYPE …>'.")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        kind = self._local.get(name)
        if kind is None:
            kind = self._local[name] = name.rpartition(" ")[2]
        parent = self._inside[-1] if self._inside else ""
        self._inside.append(kind)

        if kind == "edge" and parent == "graph":
            source, target = attributes.get("source"), attributes.get("target")
            if source is None or target is None:
                raise self._damage("an edge without 'source' or 'target'.")
            if "sourceport" in attributes or "targetport" in attributes:
                raise self._unsupported("port")
            self._directed |= attributes.get("directed", "false") in ("true", "1")
            self._undirected += attributes.get("directed") in ("false", "0")
            self._ends.append((source, target))
            self._edge_rows.append(None)
        elif kind == "node" and parent == "graph":
            if "id" not in attributes:
                raise self._damage("a node without 'id'.")
            if len(self._ids) % _CHUNK == 0:
                self._context.check_nodes(self._where, len(self._ids))
            self._ids.append(attributes["id"])
            self._node_rows.append(None)
        elif kind == "data" and parent in ("graph", "node", "edge"):
            self._key = self._keys.get(attributes.get("key", ""))
            if self._key is None:
                raise self._damage(f"the key '{attributes.get('key')}' is not declared.")
            self._start_text()
        elif kind == "graph":
            if len(self._inside) != 2:
                raise self._damage("'<graph>' must be a child of '<graphml>'.")
            self._open_graph(attributes)
        elif kind == "key":
            if len(self._inside) != 2:
                raise self._damage(f"'<key>' within '<{parent}>'; expected '<graphml>'.")
            self._declare(attributes)
        elif kind == "default" and parent == "key":
            self._start_text()
        elif kind in ("node", "edge"):
            raise self._damage(f"'<{kind}>' within '<{parent}>'; expected '<graph>'.")
        elif kind in _REFUSED:
            raise self._unsupported(kind)
        elif not parent and kind != "graphml":
            raise self._damage(f"the file starts with '<{kind}>'; expected '<graphml>'.")

    def _end(self, name: str) -> None:
        kind = self._inside.pop()

        if kind == "data" and self._text is not None:
            self._store(self._inside[-1], self._end_text())
        elif kind == "default" and self._text is not None and self._key is not None:
            self._key.default = self._value(self._key, self._end_text())
        elif kind == "graph":
            self._done.append(self._close_graph())

    def _start_text(self) -> None:
        self._text, self._length = [], 0
        self._xml.CharacterDataHandler = self._add_text

    def _add_text(self, text: str) -> None:
        assert self._text is not None
        self._text.append(text)
        self._length += len(text)
        if self._length > _MAX_TEXT:
            raise self._damage(f"a value longer than the limit of {_MAX_TEXT} characters.")

    def _end_text(self) -> str:
        assert self._text is not None
        text, self._text = "".join(self._text), None
        self._xml.CharacterDataHandler = None

        return text

    def _declare(self, attributes: Mapping[str, str]) -> None:
        kind = attributes.get("attr.type", "string")
        if kind not in _TYPES:
            raise self._damage(f"the attribute type '{kind}'; expected one of {', '.join(_TYPES)}.")
        if "id" not in attributes:
            raise self._damage("a key without 'id'.")
        # A key without a name is drawing data of another program, which is ignored.
        name = None if "yfiles.type" in attributes else attributes.get("attr.name")
        self._key = self._keys[attributes["id"]] = _Key(
            None if name is None else str(from_text(name)), attributes.get("for", "all"), kind
        )

    def _value(self, key: _Key, text: str) -> Any:
        try:
            return _TYPES[key.kind](text)
        except (ValueError, OverflowError):
            raise self._damage(f"'{key.name}' is {text[:40]!r}; expected {key.kind}.") from None

    def _store(self, owner: str, text: str) -> None:
        key = self._key
        assert key is not None
        if key.name is None:
            return
        value = self._value(key, text)
        if owner == "graph":
            self._attributes[key.name] = value
            return
        rows = self._node_rows if owner == "node" else self._edge_rows
        row = rows[-1]
        if row is None:
            rows[-1] = {key.name: value}
        else:
            row[key.name] = value

    def _open_graph(self, attributes: Mapping[str, str]) -> None:
        default = attributes.get("edgedefault", "undirected")
        if default not in ("directed", "undirected"):
            raise self._damage(f"edgedefault is '{default}'; expected 'directed' or 'undirected'.")
        self._default_directed = default == "directed"
        self._directed = False
        self._undirected = 0
        self._line = self._xml.CurrentLineNumber
        self._ids: list[str] = []
        self._ends: list[tuple[str, str]] = []
        self._node_rows: list[dict[str, Any] | None] = []
        self._edge_rows: list[dict[str, Any] | None] = []
        self._attributes: dict[str, Any] = {}

    def _close_graph(self) -> SimpleGraph:
        where = f"graph {self._count} (line {self._line})"
        self._count += 1
        index = {name: i for i, name in enumerate(self._ids)}
        if len(index) < len(self._ids):
            twice = next(name for i, name in enumerate(self._ids) if index[name] != i)
            raise self._context.damage(where, f"two nodes have the id '{twice}'.")
        try:
            pairs = [(index[u], index[v]) for u, v in self._ends]
        except KeyError as error:
            raise self._context.damage(where, f"an edge ends at '{error.args[0]}', an unknown node.") from None
        for key in self._keys.values():
            if key.default is not None and key.name is not None:
                self._fill(key, key.name)

        return build_graph(
            self._context,
            where,
            len(self._ids),
            pairs,
            directed=self._directed or (self._default_directed and self._undirected < len(pairs)),
            names=names_from_texts(self._ids, take_integers(self._attributes)),
            node_rows=self._node_rows,
            edge_rows=self._edge_rows,
            attributes=scatter(self._attributes),
        )

    def _fill(self, key: _Key, name: str) -> None:
        """Apply the default of a key where there is no value."""
        if key.domain in ("graph", "all"):
            self._attributes.setdefault(name, key.default)
        for domain, rows in (("node", self._node_rows), ("edge", self._edge_rows)):
            if key.domain in (domain, "all"):
                rows[:] = [{name: key.default, **(row or {})} for row in rows]


@dataclass
class _Key:
    """A declared attribute."""

    name: str | None
    domain: str
    kind: str
    default: Any = None


def _boolean(text: str) -> bool:
    value = {"true": True, "1": True, "false": False, "0": False}.get(text.strip().lower())
    if value is None:
        raise ValueError(text)

    return value


_TYPES: dict[str, Callable[[str], Any]] = {
    "boolean": _boolean,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "string": from_text,
}

_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" \
xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""
_GRAPH_KEYS = frozenset({INTEGERS})
_SMALL = 64
_BLOCK = 1 << 14


def write(graphs: Iterable[SimpleGraph], stream: BinaryIO, provenance: Provenance) -> None:
    """Write one ``<graph>`` element per graph."""
    common = provenance_attributes(provenance)
    keys = _Keys()
    stream.write(_HEAD.encode())
    for index, graph in enumerate(graphs):
        texts, integers = (None, {}) if graph.names is None else texts_from_names(graph.names)
        ids = None if texts is None else list(map(_quoted, texts))
        data = keys.data("graph", {**gather({**common, **graph.attributes}, _GRAPH_KEYS), **integers})
        head = f'<graph id="G{index}" edgedefault="undirected">\n{data}'
        # Keys are found while the pieces are made. A large graph is made twice, to be written piece by piece.
        if graph.nodes + len(graph.edges) <= _BLOCK:
            body = "".join(_pieces(graph, ids, keys))
            stream.write(f"{keys.declare()}{head}{body}</graph>\n".encode())
            continue
        deque(_pieces(graph, ids, keys), maxlen=0)
        stream.write(f"{keys.declare()}{head}".encode())
        for piece in _pieces(graph, ids, keys):
            stream.write(piece.encode())
        stream.write(b"</graph>\n")
    stream.write(b"</graphml>\n")


class _Keys:
    """Declared attributes, and those still to be declared."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str, str], str] = {}
        self._new: list[str] = []

    def declare(self) -> str:
        """The declarations that are not yet in the file."""
        text, self._new = "".join(self._new), []

        return text

    def data(self, domain: str, row: Row) -> str:
        """The ``<data>`` elements of a graph, node or edge."""
        if not row:
            return ""

        return "".join(f"  {self._datum(domain, name, plain(row[name]))}\n" for name in row if row[name] is not None)

    def _datum(self, domain: str, name: str, value: Any) -> str:
        kind = type(value)
        if kind is float:
            kind_name, text = "double", repr(value)
        elif kind is int and -(2**63) <= value < 2**63:
            kind_name, text = "long", str(value)
        elif kind is bool:
            kind_name, text = "boolean", "true" if value else "false"
        else:
            kind_name, text = "string", _escaped(to_text(value))
        key = self._ids.get((domain, name, kind_name))
        if key is None:
            key = self._ids[domain, name, kind_name] = f"d{len(self._ids)}"
            self._new.append(
                f'<key id="{key}" for="{domain}" attr.name="{_quoted(to_text(name))}" attr.type="{kind_name}"/>\n'
            )

        return f'<data key="{key}">{text}</data>'


def _pieces(graph: SimpleGraph, ids: list[str] | None, keys: _Keys) -> Iterator[str]:
    """The nodes, then the edges, in blocks; without ids the nodes are numbered."""
    rows = node_rows(graph)
    if rows is None and ids is None:
        yield _plain_nodes(graph.nodes)
    else:
        for start in range(0, graph.nodes, _BLOCK):
            block = range(start, min(start + _BLOCK, graph.nodes))
            data = [keys.data("node", rows[i]) for i in block] if rows else [""] * len(block)
            yield "".join(
                _element(f'<node id="{i if ids is None else ids[i]}"', "node", datum)
                for i, datum in zip(block, data, strict=True)
            )

    rows = edge_rows(graph)
    if rows is None and ids is None and graph.nodes <= _SMALL:
        table = _edge_table()
        yield "".join([table[i][j] for i, j in graph.edges.tolist()])
        return
    for start in range(0, len(graph.edges), _BLOCK):
        pairs = graph.edges[start : start + _BLOCK]
        if rows is None and ids is None:
            yield '<edge source="%d" target="%d"/>\n' * len(pairs) % tuple(pairs.ravel().tolist())
            continue
        yield "".join(
            _element(
                f'<edge source="{i if ids is None else ids[i]}" target="{j if ids is None else ids[j]}"',
                "edge",
                keys.data("edge", rows[e] if rows else None),
            )
            for e, (i, j) in enumerate(pairs.tolist(), start)
        )


def _element(tag: str, kind: str, data: str) -> str:
    return f"{tag}>\n{data}</{kind}>\n" if data else f"{tag}/>\n"


@lru_cache(maxsize=256)
def _plain_nodes(nodes: int) -> str:
    return "".join([f'<node id="{i}"/>\n' for i in range(nodes)])


@lru_cache(maxsize=1)
def _edge_table() -> list[list[str]]:
    return [[f'<edge source="{i}" target="{j}"/>\n' for j in range(_SMALL)] for i in range(_SMALL)]


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")
