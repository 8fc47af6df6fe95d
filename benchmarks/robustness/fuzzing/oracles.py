"""Independent readers of corrupted files, based on the standard library, networkx and h5py."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import h5py
import networkx as nx
import numpy as np

from graphite_gen.graph import SimpleGraph

__all__ = ["PLAIN_READERS", "Plain", "plain_h5", "plain_of", "whole_of"]

Plain = tuple[int, list[tuple[int, int]], dict[tuple[int, int], float] | None]
"""The number of nodes, the sorted pairs, and the weights by pair if every edge has one."""


def plain_of(graph: SimpleGraph) -> Plain:
    """Return what all readers must agree on."""
    pairs = [(i, j) for i, j in graph.edges.tolist()]
    weights = None if graph.weights is None else dict(zip(pairs, graph.weights.tolist(), strict=True))

    return graph.nodes, pairs, weights or None


def whole_of(graph: SimpleGraph) -> tuple[Any, ...]:
    """Return the whole content of a graph, for comparison with the one that was written."""
    arrays = (graph.edges, graph.weights, graph.features)

    return (
        graph.nodes,
        *(None if array is None or not array.size else (array.shape, array.tobytes()) for array in arrays),
        repr(graph.names),
        *(repr(sorted(each.items())) for each in (graph.node_attributes, graph.edge_attributes, graph.attributes)),
    )


def _plain(nodes: int, ends: Sequence[tuple[int, int]], weights: Sequence[Any]) -> Plain:
    pairs = [(min(pair), max(pair)) for pair in ends]
    known = len(weights) > 0 and all(weight is not None for weight in weights)

    return nodes, sorted(pairs), dict(zip(pairs, map(float, weights), strict=True)) if known else None


def graphml(data: bytes) -> list[Plain]:
    """Read GraphML with ElementTree."""
    root = ElementTree.fromstring(data)

    def kind(element: ElementTree.Element) -> str:
        return element.tag.rpartition("}")[2]

    # A key may be redeclared with another meaning.
    found, keys, defaults = [], {}, {}
    for child in root:
        if kind(child) == "key":
            keys[child.get("id")] = child.get("attr.name")
            default = next((each.text for each in child if kind(each) == "default"), None)
            if child.get("attr.name") == "weight" and child.get("for", "all") in ("edge", "all"):
                defaults = {"weight": default}
        if kind(child) != "graph":
            continue
        names = [each.get("id") for each in child if kind(each) == "node"]
        index = {name: i for i, name in enumerate(names)}
        edges = [each for each in child if kind(each) == "edge"]
        weights = [
            next(
                (each.text for each in reversed(edge) if kind(each) == "data" and keys[each.get("key")] == "weight"),
                defaults.get("weight"),
            )
            for edge in edges
        ]
        found.append(_plain(len(index), [(index[e.get("source")], index[e.get("target")]) for e in edges], weights))

    return found


def gml(data: bytes) -> list[Plain]:
    """Read GML with a small scanner."""
    text = data.decode("utf-8-sig")
    words = re.findall(r'"[^"]*"|\[|\]|#[^\n]*|[A-Za-z_]\w*|[^\s\[\]"#A-Za-z_][^\s\[\]"#]*', text)
    stack: list[list[Any]] = [[]]
    for word in words:
        if word == "[":
            stack.append([])
        elif word == "]":
            inner = stack.pop()
            stack[-1].append(list(zip(inner[::2], inner[1::2], strict=True)))
        elif not word.startswith("#"):
            stack[-1].append(word)
    found = []
    for key, rows in zip(stack[0][::2], stack[0][1::2], strict=True):
        if key != "graph":
            continue
        nodes = [int(dict(row)["id"]) for name, row in rows if name == "node"]
        index = {name: i for i, name in enumerate(nodes)}
        edges = [dict(row) for name, row in rows if name == "edge"]
        ends = [(index[int(edge["source"])], index[int(edge["target"])]) for edge in edges]
        found.append(_plain(len(nodes), ends, [edge.get("weight") for edge in edges]))

    return found


def jsonl(data: bytes) -> list[Plain]:
    """Read node-link lines with the standard library."""
    found = []
    for line in data.decode("utf-8-sig").split("\n"):
        if not line.strip():
            continue
        tree = json.loads(line)
        # As in networkx, 1 and 1.0 are the same name.
        index = {_name(node["id"]): i for i, node in enumerate(tree["nodes"])}
        edges = tree["edges"] if "edges" in tree else tree.get("links", [])
        ends = [(index[_name(edge["source"])], index[_name(edge["target"])]) for edge in edges]
        found.append(_plain(len(tree["nodes"]), ends, [edge.get("weight") for edge in edges]))

    return found


def _name(value: Any) -> Any:
    return repr(value) if isinstance(value, list | dict) else value


def edgelist(data: bytes) -> list[Plain] | None:
    """Read an edge list line by line; None for one separated by commas, or with names in JSON."""
    index: dict[str, int] = {}
    ends, weights = [], []
    for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        words = line.partition(b"#")[0].decode().split(None, 2)
        if any(sign in word for word in words[:2] for sign in ",;"):
            return None
        numbers = [index.setdefault(word, len(index)) for word in words[:2]]
        if len(numbers) == 2:
            ends.append((numbers[0], numbers[1]))
            rest = words[2].strip() if len(words) > 2 else "{}"
            weights.append(ast.literal_eval(rest).get("weight") if rest.startswith("{") else rest)
    if set(index) == set(map(str, range(len(index)))):
        order = {i: int(word) for word, i in index.items()}
        ends = [(order[i], order[j]) for i, j in ends]

    return [_plain(len(index), ends, weights)]


def _sixes(read: Callable[[bytes], nx.Graph]) -> Callable[[bytes], list[Plain]]:
    def lines(data: bytes) -> list[Plain]:
        texts = [line.strip() for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
        graphs = [read(text) for text in texts if text]

        return [_plain(len(graph), list(graph.edges()), ()) for graph in graphs]

    return lines


# They return None for contents that they do not compare.
PLAIN_READERS: dict[str, Callable[[bytes], list[Plain] | None]] = {
    "graphml": graphml,
    "gml": gml,
    "jsonl": jsonl,
    "edgelist": edgelist,
    "g6": _sixes(nx.from_graph6_bytes),
    "s6": _sixes(nx.from_sparse6_bytes),
}


def plain_h5(path: Path) -> list[Plain]:
    """Read the arrays of an HDF5 file."""
    with h5py.File(path, "r") as file:
        if "edge_index" in file:
            ends = file["edge_index"][:].T.tolist()
            nodes = len(file["labels"]) if "labels" in file and len(file["labels"]) else None
            nodes = nodes or int(file.attrs.get("num_nodes", 1 + max((max(pair) for pair in ends), default=-1)))
            return [_plain(nodes, [(int(i), int(j)) for i, j in ends], ())]
        nodes, counts, pairs = (file[name][:].tolist() for name in ("node_counts", "edge_counts", "edges"))
        weights = file["weights"][:] if "weights" in file else None
    found, at = [], 0
    for n, count in zip(nodes, counts, strict=True):
        own = None if weights is None or np.isnan(weights[at : at + count]).all() else weights[at : at + count].tolist()
        found.append(_plain(n, [(i, j) for i, j in pairs[at : at + count]], own or ()))
        at += count

    return found
