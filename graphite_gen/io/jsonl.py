"""JSON lines: one networkx node-link object per line.

Weights are the edge attribute ``weight``, features the node attribute ``features``. An attribute whose name the
format uses itself, such as a node's ``id``, goes into the object ``otherAttributes``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, BinaryIO

from ..graph import SimpleGraph
from ..records import Provenance
from .build import Context, build_graph
from .files import lines
from .values import edge_rows, facts_of, gather, hashable, node_rows, plain, scatter

__all__ = ["read", "write"]

_NODE_KEYS = frozenset({"id"})
_EDGE_KEYS = frozenset({"source", "target", "key"})


def read(stream: BinaryIO, context: Context) -> Iterator[SimpleGraph]:
    """The graphs of node-link lines; edges may be called ``edges`` or ``links``."""
    for number, line in lines(stream, context):
        if line:
            yield _graph(context, f"line {number}", line)


def _graph(context: Context, where: str, line: bytes) -> SimpleGraph:
    try:
        data = json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise context.error(where, f"not UTF-8 at byte {error.start}; save the file as UTF-8.") from error
    except (ValueError, RecursionError) as error:
        raise context.damage(where, f"not JSON ({error}); wanted one node-link object per line.") from error
    if not isinstance(data, dict) or "nodes" not in data:
        raise context.damage(where, "no object with 'nodes' and 'edges'; wanted one node-link object per line.")
    nodes = _objects(context, where, data, "nodes", ("id",))
    edges = _objects(context, where, data, "links" if "edges" not in data else "edges", ("source", "target"))
    facts = data.get("graph", {})
    if isinstance(facts, list):
        # Old networkx wrote a list of pairs.
        facts = dict(facts) if all(isinstance(fact, list) and len(fact) == 2 for fact in facts) else None
    if not isinstance(facts, dict):
        raise context.damage(where, "'graph' is no object of graph attributes.")

    try:
        names = tuple(hashable(node.pop("id")) for node in nodes)
        index = {name: i for i, name in enumerate(names)}
        ends = [(hashable(edge.pop("source")), hashable(edge.pop("target"))) for edge in edges]
        lost = next((end for end in ends if end[0] not in index or end[1] not in index), None)
    except TypeError:
        raise context.damage(where, "a node id is an object; wanted a number or a text.") from None
    if len(index) < len(names):
        raise context.damage(where, "two nodes have the same id.")
    if lost is not None:
        raise context.damage(where, f"the edge {lost[0]!r} - {lost[1]!r} ends at no node of the graph.")
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
        attributes=facts,
    )


def _objects(
    context: Context, where: str, data: dict[str, Any], key: str, wanted: Sequence[str]
) -> list[dict[str, Any]]:
    items = data.get(key, [])
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise context.damage(where, f"'{key}' is no list of objects.")
    for name in wanted:
        if not all(name in item for item in items):
            raise context.damage(where, f"one of the '{key}' has no '{name}'.")

    return items


def write(graphs: Iterable[SimpleGraph], stream: BinaryIO, provenance: Provenance) -> int:
    """Write node-link lines."""
    facts = facts_of(provenance)
    count = 0
    for count, graph in enumerate(graphs, 1):  # noqa: B007
        head = json.dumps(plain({**facts, **graph.attributes}))
        stream.write(
            f'{{"directed": false, "multigraph": false, "graph": {head}, '
            f'"nodes": [{_nodes(graph)}], "edges": [{_edges(graph)}]}}\n'.encode()
        )

    return count


def _nodes(graph: SimpleGraph) -> str:
    rows = node_rows(graph)
    if rows is None and graph.names is None:
        return _numbered(graph.nodes)
    ids = range(graph.nodes) if graph.names is None else graph.names

    return ", ".join(
        _object({"id": name}, row, _NODE_KEYS) for name, row in zip(ids, rows or [{}] * graph.nodes, strict=True)
    )


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
