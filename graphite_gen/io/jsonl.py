"""JSON lines: one networkx node-link object per line.

Weights are the edge attribute ``weight``, features the node attribute ``features``. Attributes whose names the format
uses itself, such as ``id`` of a node, are stored in the object ``otherAttributes``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..graph import SimpleGraph
from ..records import Provenance
from .build import Context, build_graph, pairs_of
from .files import decoded, lines
from .values import edge_rows, gather, hashable, node_rows, plain, provenance_attributes, scatter

__all__ = ["read", "write"]

Row = dict[str, Any]

_NODE_KEYS = frozenset({"id"})
_EDGE_KEYS = frozenset({"source", "target", "key"})


def read(stream: BinaryIO, context: Context) -> Iterator[SimpleGraph]:
    """The graphs of node-link lines; the list of edges may be called ``edges`` or ``links``."""
    for where, line in lines(stream, context):
        if line:
            yield _graph(context, where, line)


def _graph(context: Context, where: str, line: bytes) -> SimpleGraph:
    try:
        data = json.loads(decoded(context, where, line))
    except (ValueError, RecursionError) as error:
        raise context.damage(where, f"not JSON ({error}); expected a node-link object.") from error
    if not isinstance(data, dict) or "nodes" not in data:
        raise context.damage(where, "expected a node-link object with 'nodes' and 'edges'.")
    nodes = _rows(context, where, data, "nodes", ("id",))
    edges = _rows(context, where, data, "links" if "edges" not in data else "edges", ("source", "target"))
    attributes = data.get("graph", {})
    if isinstance(attributes, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in attributes):
        # Older versions of networkx wrote a list of pairs.
        attributes = dict(attributes)
    if not isinstance(attributes, dict):
        raise context.damage(where, "'graph' is not an object.")

    names = tuple(hashable(node.pop("id")) for node in nodes)
    ends = [[hashable(edge.pop(end)) for end in ("source", "target")] for edge in edges]
    pairs = pairs_of(context, where, names, ends)
    if data.get("multigraph") is True:
        for edge in edges:
            edge.pop("key", None)

    return build_graph(
        context,
        where,
        len(names),
        pairs,
        directed=None if "directed" not in data else data["directed"] is True,
        names=None if all(type(name) is int and name == i for i, name in enumerate(names)) else names,
        node_rows=[scatter(node) for node in nodes],
        edge_rows=[scatter(edge) for edge in edges],
        attributes=attributes,
    )


def _rows(context: Context, where: str, data: Row, key: str, required: Sequence[str]) -> list[Row]:
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
        nodes = _objects(graph, ("id",), np.arange(graph.nodes)[:, None], node_rows(graph), _NODE_KEYS)
        edges = _objects(graph, ("source", "target"), graph.edges, edge_rows(graph), _EDGE_KEYS)
        kind = f'"directed": {"true" if graph.directed else "false"}, "multigraph": false'
        stream.write(f'{{{kind}, "graph": {head}, "nodes": [{nodes}], "edges": [{edges}]}}\n'.encode())


def _objects(
    graph: SimpleGraph, keys: Sequence[str], numbers: NDArray[Any], rows: list[Row] | None, reserved: frozenset[str]
) -> str:
    """Nodes or edges as JSON objects."""
    if rows is None and graph.names is None:
        pattern = ", ".join(f'"{key}": %d' for key in keys)
        return (f"{{{pattern}}}, " * len(numbers) % tuple(numbers.ravel().tolist()))[:-2]
    ids = range(graph.nodes) if graph.names is None else graph.names

    return ", ".join(
        json.dumps(plain({**dict(zip(keys, (ids[i] for i in ends), strict=True)), **gather(row, reserved)}))
        for ends, row in zip(numbers.tolist(), rows or [{}] * len(numbers), strict=True)
    )
