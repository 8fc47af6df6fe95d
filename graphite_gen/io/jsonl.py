"""JSON lines: one networkx node-link object per line.

Weights are the edge attribute ``weight``, features the node attribute ``features``. Attributes whose names the format
uses itself, such as ``id`` of a node, are stored in the object ``otherAttributes``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, BinaryIO

from ..graph import SimpleGraph
from ..records import Provenance
from .build import Context, build_graph
from .files import decoded, lines
from .values import edge_rows, gather, hashable, node_rows, plain, provenance_attributes, scatter

__all__ = ["read", "write"]

_NODE_KEYS = frozenset({"id"})
_EDGE_KEYS = frozenset({"source", "target", "key"})


def read(stream: BinaryIO, context: Context) -> Iterator[SimpleGraph]:
    """The graphs of node-link lines; the list of edges may be called ``edges`` or ``links``."""
    for number, line in lines(stream, context):
        if line:
            yield _graph(context, f"line {number}", line)


def _graph(context: Context, where: str, line: bytes) -> SimpleGraph:
    try:
        data = json.loads(decoded(context, where, line))
    except (ValueError, RecursionError) as error:
        raise context.damage(where, f"not JSON ({error}); expected a node-link object.") from error
    if not isinstance(data, dict) or "nodes" not in data:
        raise context.damage(where, "expected a node-link object with 'nodes' and 'edges'.")
    nodes = _objects(context, where, data, "nodes", ("id",))
    edges = _objects(context, where, data, "links" if "edges" not in data else "edges", ("source", "target"))
    attributes = data.get("graph", {})
    if isinstance(attributes, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in attributes):
        # Older versions of networkx wrote a list of pairs.
        attributes = dict(attributes)
    if not isinstance(attributes, dict):
        raise context.damage(where, "'graph' is not an object.")

    try:
        names = tuple(hashable(node.pop("id")) for node in nodes)
        index = {name: i for i, name in enumerate(names)}
        ends = [(hashable(edge.pop("source")), hashable(edge.pop("target"))) for edge in edges]
        unknown = next((end for end in ends if end[0] not in index or end[1] not in index), None)
    except TypeError:
        raise context.damage(where, "a node id is an object; expected a number or a string.") from None
    if len(index) < len(names):
        raise context.damage(where, "two nodes have the same id.")
    if unknown is not None:
        raise context.damage(where, f"the edge {unknown[0]!r} - {unknown[1]!r} ends at an unknown node.")
    if data.get("multigraph") is True:
        for edge in edges:
            edge.pop("key", None)

    return build_graph(
        context,
        where,
        len(names),
        [(index[u], index[v]) for u, v in ends],
        directed=data.get("directed") is True,
        names=None if all(type(name) is int and name == i for i, name in enumerate(names)) else names,
        node_rows=[scatter(node) for node in nodes],
        edge_rows=[scatter(edge) for edge in edges],
        attributes=attributes,
    )


def _objects(
    context: Context, where: str, data: dict[str, Any], key: str, required: tuple[str, ...]
) -> list[dict[str, Any]]:
    items = data.get(key, [])
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise context.damage(where, f"'{key}' is not a list of objects.")
    for name in required:
        if not all(name in item for item in items):
            raise context.damage(where, f"one of '{key}' has no '{name}'.")

    return items


def write(graphs: Iterable[SimpleGraph], stream: BinaryIO, provenance: Provenance) -> None:
    """Write node-link lines."""
    common = provenance_attributes(provenance)
    for graph in graphs:
        head = json.dumps(plain({**common, **graph.attributes}))
        stream.write(
            f'{{"directed": false, "multigraph": false, "graph": {head}, '
            f'"nodes": [{_nodes(graph)}], "edges": [{_edges(graph)}]}}\n'.encode()
        )


def _nodes(graph: SimpleGraph) -> str:
    rows = node_rows(graph)
    if rows is None and graph.names is None:
        return _numbered(graph.nodes)
    ids = range(graph.nodes) if graph.names is None else graph.names
    rows = rows or [{}] * graph.nodes

    return ", ".join(_object({"id": name}, row, _NODE_KEYS) for name, row in zip(ids, rows, strict=True))


def _edges(graph: SimpleGraph) -> str:
    rows = edge_rows(graph)
    if rows is None and graph.names is None:
        pairs = tuple(graph.edges.ravel().tolist())
        return ('{"source": %d, "target": %d}, ' * (len(pairs) // 2) % pairs)[:-2]
    ids = range(graph.nodes) if graph.names is None else graph.names

    return ", ".join(
        _object({"source": ids[i], "target": ids[j]}, row, _EDGE_KEYS)
        for (i, j), row in zip(graph.edges.tolist(), rows or [{}] * len(graph.edges), strict=True)
    )


def _object(ends: dict[str, Any], row: dict[str, Any], reserved: frozenset[str]) -> str:
    return json.dumps(plain({**ends, **gather(row, reserved)}))


@lru_cache(maxsize=256)
def _numbered(nodes: int) -> str:
    return ", ".join(f'{{"id": {i}}}' for i in range(nodes))
