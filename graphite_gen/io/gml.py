"""GML: one ``graph [ … ]`` block per graph; networkx and igraph read a file with one graph.

Names are the labels of the nodes; values and names that GML does not have are encoded by :mod:`.values`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from html.entities import html5
from typing import Any, BinaryIO

from ..graph import SimpleGraph
from ..records import Provenance
from . import values
from .build import Context, build_graph, pairs_of
from .files import decoded, lines

__all__ = ["read", "write"]

Fields = dict[str, list[Any]]

_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![0-9A-Za-z_.])|[+-]?(?:INF|NAN)\b"
_TOKEN = re.compile(
    rf'\s*(?:(?P<string>"[^"]*")|(?P<key>(?!(?:INF|NAN)\b)[A-Za-z_][0-9A-Za-z_]*)|(?P<number>{_NUMBER})'
    r'|(?P<open>\[)|(?P<close>\])|(?P<comment>#.*)|(?P<start>"[^"]*)|(?P<end>$))',
    re.DOTALL | re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:#([0-9]{1,7})|#x([0-9A-Fa-f]{1,6})|([0-9A-Za-z]{1,32}));")
_UNPRINTABLE = re.compile(r'[^ -~]|[&"]')
_KEY = re.compile(r"(?!(?i:INF|NAN)$)[A-Za-z][0-9A-Za-z]*", re.ASCII)
_LIST_START = "_networkx_list_start"
_MAX_TEXT = 1 << 26
_MAX_DEPTH = 32
_MAX_DIGITS = 1000
_NODE_KEYS = frozenset({"id", "label"})
_EDGE_KEYS = frozenset({"source", "target", "key"})
_GRAPH_KEYS = frozenset({"node", "edge", "directed", "multigraph", "label", values.INTEGERS})


def read(stream: BinaryIO, context: Context) -> Iterator[SimpleGraph]:
    """The graphs of a GML file; a list is parsed as the values of each key, in order."""
    count = 0
    depth: list[Fields] = [{}]
    key: str | None = None
    where = "line 1"
    for where, kind, token in _tokens(stream, context):
        if kind == "close":
            if key is not None or len(depth) == 1:
                raise context.damage(where, f"']' after {key!r}; expected a value." if key else "unmatched ']'.")
            closed = depth.pop()
            if len(depth) == 1 and "graph" in depth[0]:
                yield _graph(context, f"graph {count} (ends on {where})", closed)
                count += 1
            if len(depth) == 1:
                depth[0].clear()
        elif key is None:
            if kind != "key":
                raise context.damage(where, f"{token[:40]!r}; expected a key such as 'graph', 'node' or 'edge'.")
            key = token
        elif kind == "open":
            if len(depth) > _MAX_DEPTH:
                raise context.damage(where, f"lists nested deeper than {_MAX_DEPTH} levels.")
            depth[-1].setdefault(key, []).append({})
            depth.append(depth[-1][key][-1])
            key = None
        elif kind in ("string", "number"):
            value = _ENTITY.sub(_entity, token[1:-1]) if kind == "string" else _number(context, where, token)
            if len(depth) == 1 and key == "graph":
                raise context.damage(where, "'graph' without '['.")
            if len(depth) > 1:
                depth[-1].setdefault(key, []).append(value)
            key = None
        else:
            raise context.damage(where, f"the key '{token}' after the key '{key}'; expected a value.")
    if len(depth) > 1 or key is not None:
        raise context.damage(where, "the file ends within a list.")


def _tokens(stream: BinaryIO, context: Context) -> Iterator[tuple[str, str, str]]:
    """Position, kind and text of each token; strings may span lines."""
    pending: list[str] = []
    length = 0
    for where, line in lines(stream, context):
        text, at = decoded(context, where, line), 0
        if pending:
            end = text.find('"')
            pending.append(text if end < 0 else text[: end + 1])
            length += len(text)
            if length > _MAX_TEXT:
                raise context.damage(where, f"a string longer than the limit of {_MAX_TEXT} characters.")
            if end < 0:
                continue
            yield where, "string", "\n".join(pending)
            pending, at = [], end + 1
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                found = text[at : at + 40].strip()
                raise context.damage(where, f"{found!r}; expected keys, numbers, strings and lists.")
            kind, at = match.lastgroup or "", match.end()
            if kind == "start":
                pending, length = [match["start"]], 0
            elif kind not in ("comment", "end"):
                yield where, kind, match[kind]
    if pending:
        raise context.damage("the end", "the file ends within a string.")


def _number(context: Context, where: str, text: str) -> int | float:
    if len(text) > _MAX_DIGITS:
        raise context.damage(where, f"a number of {len(text)} characters; at most {_MAX_DIGITS} are supported.")
    try:
        return int(text)
    except ValueError:
        return float(text)


def _entity(match: re.Match[str]) -> str:
    decimal, hexadecimal, name = match.groups()
    if name is not None:
        return html5.get(f"{name};", match[0])
    code = int(decimal) if decimal is not None else int(hexadecimal, 16)

    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else match[0]


def _graph(context: Context, where: str, data: Fields) -> SimpleGraph:
    nodes, edges = data.pop("node", []), data.pop("edge", [])
    for key, items in (("node", nodes), ("edge", edges)):
        if not all(isinstance(item, dict) for item in items):
            raise context.damage(where, f"'{key}' without '['.")
    context.check_nodes(where, len(nodes))
    ids = [_single(node.pop("id", [None])) for node in nodes]
    wrong = [name for name in ids if type(name) is not int or name < 0]
    if wrong:
        raise context.damage(where, f"a node has the id {wrong[0]!r}; expected a non-negative integer.")
    ends = [[_single(edge.pop(key, [None])) for key in ("source", "target")] for edge in edges]
    pairs = pairs_of(context, where, ids, ends)
    if data.pop("multigraph", [0]) == [1]:
        for edge in edges:
            edge.pop("key", None)
    directed = data.pop("directed", [0]) == [1]
    attributes = _plain_row(data)

    return build_graph(
        context,
        where,
        len(nodes),
        pairs,
        directed=directed,
        names=_take_names(nodes, ids, attributes),
        node_rows=[values.scatter(_plain_row(node)) for node in nodes],
        edge_rows=[values.scatter(_plain_row(edge)) for edge in edges],
        attributes=values.scatter(attributes),
    )


def _single(found: list[Any]) -> Any:
    return found[0] if len(found) == 1 else found


def _take_names(nodes: list[Fields], ids: list[int], attributes: dict[str, Any]) -> tuple[Any, ...] | None:
    """The labels if they are distinct, otherwise the ids."""
    labels = [_single(node.get("label", [None])) for node in nodes]
    texts = list(map(str, labels))
    if nodes and all(isinstance(label, str | int) for label in labels) and len(set(texts)) == len(texts):
        for node in nodes:
            del node["label"]
    else:
        texts = list(map(str, ids))

    return values.names_from_texts(texts, attributes)


def _plain_row(row: Fields) -> dict[str, Any]:
    return {key: _plain_value(found) for key, found in row.items()}


def _plain_value(found: list[Any]) -> Any:
    """The value of a key, or the list of the values of a repeated key."""
    items = [_plain_row(item) if isinstance(item, dict) else values.from_text(item) for item in found]

    return items[1:] if len(items) > 1 and found[0] == _LIST_START else _single(items)


def write(graphs: Iterable[SimpleGraph], stream: BinaryIO, provenance: Provenance) -> None:
    """Write one ``graph`` block per graph."""
    common = values.provenance_attributes(provenance)
    for graph in graphs:
        stream.write("".join(_block(graph, {**common, **graph.attributes})).encode("ascii"))


def _block(graph: SimpleGraph, attributes: Mapping[str, Any]) -> Iterator[str]:
    numbers = [str(i) for i in range(graph.nodes)]
    labels, integers = (numbers, {}) if graph.names is None else values.texts_from_names(graph.names)
    nodes, edges = values.node_rows(graph), values.edge_rows(graph)

    yield "graph [\n  directed 1\n" if graph.directed else "graph [\n"
    yield _pairs(integers, frozenset(), "  ")
    yield _pairs(attributes, _GRAPH_KEYS, "  ")
    for i, label in enumerate(labels):
        yield f'  node [\n    id {i}\n    label "{_escaped(label)}"\n'
        yield _pairs(nodes[i], _NODE_KEYS, "    ") if nodes else ""
        yield "  ]\n"
    for e, (i, j) in enumerate(graph.edges.tolist()):
        yield f"  edge [\n    source {i}\n    target {j}\n"
        yield _pairs(edges[e], _EDGE_KEYS, "    ") if edges else ""
        yield "  ]\n"
    yield "]\n"


def _pairs(row: Mapping[str, Any], reserved: frozenset[str], indent: str) -> str:
    present = values.gather({key: value for key, value in row.items() if value is not None}, reserved, _KEY)

    return "".join(f"{indent}{key} {_literal(values.plain(value))}\n" for key, value in present.items())


def _literal(value: Any) -> str:
    if type(value) is int and -(2**31) <= value < 2**31:
        return str(value)
    if type(value) is float and abs(value) < float("inf"):
        text = repr(value)
        # GML requires a decimal point in every real number.
        return text if "." in text else text.replace("e", ".0e")

    return f'"{_escaped(values.to_text(value))}"'


def _escaped(text: str) -> str:
    return _UNPRINTABLE.sub(lambda match: {"&": "&amp;", '"': "&quot;"}.get(match[0], f"&#{ord(match[0])};"), text)
