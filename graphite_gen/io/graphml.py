"""GraphML: one ``<graph>`` element per graph; networkx and igraph read each of them.

Attributes are typed by their value; values and names that GraphML does not have are encoded by :mod:`.values`.
The reader streams, and refuses document types, entities, hyperedges, ports and nested graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from io import StringIO
from itertools import chain
from typing import Any, BinaryIO
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from ..graph import SimpleGraph
from ..records import Provenance
from . import values
from .build import Context, build_graph, pairs_of

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
    yield from parser.feed(b"")


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
        self._inside: list[str] = []
        self._keys: dict[str, _Key] = {}
        self._key: _Key | None = None
        self._text = StringIO()
        self._rows: dict[str, list[dict[str, Any]]] = {}

    def feed(self, chunk: bytes) -> list[SimpleGraph]:
        """Parse a chunk, an empty one at the end, and return the graphs that end in it."""
        self._done = []
        self._bytes += len(chunk)
        try:
            self._xml.Parse(chunk, not chunk)
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
        kind = name.rpartition(" ")[2]
        parent = self._inside[-1] if self._inside else ""
        self._inside.append(kind)

        if kind == "edge" and parent == "graph":
            source, target = attributes.get("source"), attributes.get("target")
            if source is None or target is None:
                raise self._damage("an edge without 'source' or 'target'.")
            if "sourceport" in attributes or "targetport" in attributes:
                raise self._unsupported("port")
            self._arcs += _BOOLEANS.get(attributes.get("directed", ""), self._default_directed)
            self._ends.append((source, target))
            self._rows["edge"].append({})
        elif kind == "node" and parent == "graph":
            if "id" not in attributes:
                raise self._damage("a node without 'id'.")
            if len(self._ids) % _CHUNK == 0:
                self._context.check_nodes(self._where, len(self._ids))
            self._ids.append(attributes["id"])
            self._rows["node"].append({})
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
        if kind == "graph":
            self._done.append(self._close_graph())
        elif kind in ("data", "default") and self._inside[-1] in ("key", *self._rows) and self._key is not None:
            text = self._text.getvalue()
            self._xml.CharacterDataHandler = None
            if self._key.name is None:
                return
            try:
                value = _TYPES[self._key.kind](text)
            except (ValueError, LookupError, OverflowError):
                raise self._damage(f"'{self._key.name}' is {text[:40]!r}; expected {self._key.kind}.") from None
            if kind == "default":
                self._key.default = value
            else:
                self._rows[self._inside[-1]][-1][self._key.name] = value

    def _start_text(self) -> None:
        self._text = StringIO()
        self._xml.CharacterDataHandler = self._add_text

    def _add_text(self, text: str) -> None:
        self._text.write(text)
        if self._text.tell() > _MAX_TEXT:
            raise self._damage(f"a value longer than the limit of {_MAX_TEXT} characters.")

    def _declare(self, attributes: Mapping[str, str]) -> None:
        kind = attributes.get("attr.type", "string")
        if kind not in _TYPES:
            raise self._damage(f"the attribute type '{kind}'; expected one of {', '.join(_TYPES)}.")
        if "id" not in attributes:
            raise self._damage("a key without 'id'.")
        # A key without a name is drawing data of another program, which is ignored.
        name = None if "yfiles.type" in attributes else attributes.get("attr.name")
        name = None if name is None else str(values.from_text(name))
        self._key = self._keys[attributes["id"]] = _Key(name, attributes.get("for", "all"), kind)

    def _open_graph(self, attributes: Mapping[str, str]) -> None:
        default = attributes.get("edgedefault", "undirected")
        if default not in ("directed", "undirected"):
            raise self._damage(f"edgedefault is '{default}'; expected 'directed' or 'undirected'.")
        self._default_directed = default == "directed"
        self._arcs = 0
        self._line = self._xml.CurrentLineNumber
        self._ids: list[str] = []
        self._ends: list[tuple[str, str]] = []
        self._rows = {"graph": [{}], "node": [], "edge": []}

    def _close_graph(self) -> SimpleGraph:
        where = f"graph {self._count} (line {self._line})"
        self._count += 1
        pairs = pairs_of(self._context, where, self._ids, self._ends)
        for key in self._keys.values():
            if key.default is not None and key.name is not None:
                for domain in self._rows if key.domain == "all" else (key.domain,):
                    for row in self._rows.get(domain, ()):
                        row.setdefault(key.name, key.default)
        (attributes,) = self._rows["graph"]
        directed = self._arcs == len(pairs) if pairs else self._default_directed
        if 0 < self._arcs < len(pairs):
            directed = self._context.mixed_edges(where)

        return build_graph(
            self._context,
            where,
            len(self._ids),
            pairs,
            directed=directed,
            names=values.names_from_texts(self._ids, attributes),
            node_rows=self._rows["node"],
            edge_rows=self._rows["edge"],
            attributes=values.scatter(attributes),
        )


@dataclass
class _Key:
    """A declared attribute."""

    name: str | None
    domain: str
    kind: str
    default: Any = None


_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}

_TYPES: dict[str, Callable[[str], Any]] = {
    "boolean": lambda text: _BOOLEANS[text.strip().lower()],
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "string": values.from_text,
}

_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" \
xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""
_GRAPH_KEYS = frozenset({values.INTEGERS})
_BLOCK = 1 << 14


def write(graphs: Iterable[SimpleGraph], stream: BinaryIO, provenance: Provenance) -> None:
    """Write one ``<graph>`` element per graph."""
    common = values.provenance_attributes(provenance)
    elements = _Elements()
    stream.write(_HEAD.encode())
    for index, graph in enumerate(graphs):
        texts, integers = (None, {}) if graph.names is None else values.texts_from_names(graph.names)
        ids = None if texts is None else list(map(_quoted, texts))
        data = elements.data("graph", {**values.gather({**common, **graph.attributes}, _GRAPH_KEYS), **integers})
        nodes, edges = values.node_rows(graph), values.edge_rows(graph)
        pieces: Iterable[str] = chain(
            elements.blocks("node", '<node id="%s"', np.arange(graph.nodes)[:, None], ids, nodes),
            elements.blocks("edge", '<edge source="%s" target="%s"', graph.edges, ids, edges),
        )
        if nodes or edges:
            # This finds the keys, which are declared before the graph.
            pieces = list(pieces)
        default = "directed" if graph.directed else "undirected"
        stream.write(f'{elements.declare()}<graph id="G{index}" edgedefault="{default}">\n{data}'.encode())
        for piece in pieces:
            stream.write(piece.encode())
        stream.write(b"</graph>\n")
    stream.write(b"</graphml>\n")


class _Elements:
    """Elements with their attributes, of which some are declared in the file, and others still to be declared."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str, str], str] = {}
        self._new: list[str] = []

    def declare(self) -> str:
        """The declarations that are not yet in the file."""
        text, self._new = "".join(self._new), []

        return text

    def data(self, domain: str, row: Mapping[str, Any]) -> str:
        """The ``<data>`` elements of a graph, node or edge."""
        return "".join(self._datum(domain, name, values.plain(row[name])) for name in row if row[name] is not None)

    def _datum(self, domain: str, name: str, value: Any) -> str:
        if type(value) is float:
            kind, text = "double", repr(value)
        elif type(value) is int and -(2**63) <= value < 2**63:
            kind, text = "long", str(value)
        elif type(value) is bool:
            kind, text = "boolean", "true" if value else "false"
        else:
            kind, text = "string", escape(values.to_text(value), quote=False)
        key = self._ids.get((domain, name, kind))
        if key is None:
            key = self._ids[domain, name, kind] = f"d{len(self._ids)}"
            label = _quoted(values.to_text(name))
            self._new.append(f'<key id="{key}" for="{domain}" attr.name="{label}" attr.type="{kind}"/>\n')

        return f'  <data key="{key}">{text}</data>\n'

    def blocks(
        self, kind: str, tag: str, numbers: NDArray[Any], ids: list[str] | None, rows: list[dict[str, Any]] | None
    ) -> Iterator[str]:
        """The nodes or edges in blocks; without ids the nodes are numbered."""
        for start in range(0, len(numbers), _BLOCK):
            block = numbers[start : start + _BLOCK]
            ends = block.ravel().tolist() if ids is None else [ids[i] for i in block.ravel().tolist()]
            if rows is None:
                yield f"{tag}/>\n" * len(block) % tuple(ends)
                continue
            data = (self.data(kind, row) for row in rows[start : start + _BLOCK])
            tags = (tag % end for end in zip(*[iter(ends)] * block.shape[1], strict=True))
            yield "".join(f"{t}>\n{d}</{kind}>\n" if d else f"{t}/>\n" for t, d in zip(tags, data, strict=True))


def _quoted(text: str) -> str:
    return escape(text, quote=False).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")
