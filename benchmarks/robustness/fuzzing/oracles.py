"""Independent readers of corrupted files, based on the standard library, networkx and h5py."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import h5py
import networkx as nx
import numpy as np

from graphite_gen.graph import SimpleGraph

__all__ = ["PLAIN_READERS", "Plain", "plain_h5", "plain_of", "whole_of"]

Plain = tuple[int, list[tuple[int, int]], dict[tuple[int, int], float] | None, bool]
"""The number of nodes, the sorted pairs, the weights by pair if every edge has one, and whether pairs are arcs."""


def plain_of(graph: SimpleGraph) -> Plain:
    """Return what all readers must agree on."""
    pairs = [(i, j) for i, j in graph.edges.tolist()]
    weights = None if graph.weights is None else dict(zip(pairs, graph.weights.tolist(), strict=True))

    return graph.nodes, pairs, weights or None, graph.directed


def whole_of(graph: SimpleGraph) -> tuple[Any, ...]:
    """Return the whole content of a graph, for comparison with the one that was written."""
    arrays = (graph.edges, graph.weights, graph.features)

    return (
        graph.nodes,
        graph.directed,
        *(None if array is None or not array.size else (array.shape, array.tobytes()) for array in arrays),
        repr(graph.names),
        *(repr(sorted(each.items())) for each in (graph.node_attributes, graph.edge_attributes, graph.attributes)),
    )


def _plain(nodes: int, ends: Sequence[tuple[int, int]], weights: Sequence[Any], directed: bool = False) -> Plain:
    pairs = [(i, j) if directed else (min(i, j), max(i, j)) for i, j in ends]
    known = len(weights) > 0 and all(weight is not None for weight in weights)

    return nodes, sorted(pairs), dict(zip(pairs, map(float, weights), strict=True)) if known else None, directed


def _one_kind(kinds: Sequence[bool], default: bool = False) -> bool:
    """Whether all edges are directed; the default if there are none."""
    if len(set(kinds)) > 1:
        raise ValueError("directed and undirected edges")

    return kinds[0] if kinds else default


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
        default = child.get("edgedefault") == "directed"
        said = {"true": True, "1": True, "false": False, "0": False}
        directed = _one_kind([said.get(edge.get("directed", ""), default) for edge in edges], default)
        ends = [(index[edge.get("source")], index[edge.get("target")]) for edge in edges]
        found.append(_plain(len(index), ends, weights, directed))

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
        # As in networkx, 1 and 1.0 are the same node.
        ends = [(index[_decoded(edge["source"])], index[_decoded(edge["target"])]) for edge in edges]
        said = [row for name, row in rows if name == "directed"]
        directed = len(said) == 1 and isinstance(said[0], str) and said[0][0] != '"' and float(said[0]) == 1
        found.append(_plain(len(nodes), ends, [edge.get("weight") for edge in edges], directed))

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
        weights = [edge.get("weight") for edge in edges]
        found.append(_plain(len(tree["nodes"]), ends, weights, tree.get("directed") is True))

    return found


def _name(value: Any) -> Any:
    return repr(value) if isinstance(value, list | dict) else value


def edgelist(data: bytes) -> list[Plain] | None:
    """Read an edge list line by line; None for one separated by commas, or with names in JSON."""
    index: dict[str, int] = {}
    ends, weights = [], []
    directed: bool | None = None
    for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        words = line.partition(b"#")[0].decode().split(None, 2)
        if any(sign in word for word in words[:2] for sign in ",;"):
            return None
        comment = re.match(r"\s*#\s*((?:un)?directed) graph\b", line.decode(errors="replace"), re.I | re.A)
        if comment and directed is None and not ends:
            directed = comment[1].lower() == "directed"
        numbers = [index.setdefault(word, len(index)) for word in words[:2]]
        if len(numbers) == 2:
            ends.append((numbers[0], numbers[1]))
            rest = words[2].strip() if len(words) > 2 else "{}"
            weights.append(ast.literal_eval(rest).get("weight") if rest.startswith("{") else rest)
    if set(index) == set(map(str, range(len(index)))):
        order = {i: int(word) for word, i in index.items()}
        ends = [(order[i], order[j]) for i, j in ends]

    return [_plain(len(index), ends, weights, bool(directed))]


def table(data: bytes) -> list[Plain] | None:
    """Read a table of edges with the standard library; None if its first columns are not those that we write."""
    lines = list(io.StringIO(data.decode("utf-8-sig"), newline=""))
    while lines and (not lines[0].strip() or lines[0].startswith("#")):
        del lines[0]
    if not lines:
        return []
    delimiter = max("\t;,", key=lines[0].count)
    header, *rows = csv.reader(lines, delimiter=delimiter, strict=True)
    names = [name.strip() for name in header]
    others = {name.lower() for name in names if name not in ("weight", "directed")}
    if names[:3] != ["graph", "source", "target"] or others & {"weight", "directed", "type", "otherattributes"}:
        return None
    whole = [[field.strip() or None for field in row] for row in rows if row[:1] and _is_row(row, len(header))]
    padded = [[*row, *[None] * (len(header) - len(row))] for row in whole]

    return [_of_rows(names, list(group)) for _, group in groupby(padded, lambda row: row[0])]


def _is_row(row: Sequence[str], width: int) -> bool:
    """Whether a row is neither blank nor a comment."""
    return any(field.strip() for field in row) and not (row[0].startswith("#") and len(row) != width)


def _of_rows(names: Sequence[str], rows: Sequence[Sequence[str | None]]) -> Plain:
    index: dict[str, int] = {}
    for row in rows:
        if row[1] is None and row[2] is not None:
            raise ValueError("an edge without a source")
        for name in row[1:3]:
            if name is not None:
                index.setdefault(name, len(index))
    words = [_decoded(name) if name.startswith("json:") else name for name in index]
    order = list(range(len(index)))
    if set(index) == set(map(str, order)) or set(map(repr, words)) == set(map(str, order)):
        order = list(map(int, words))
    edges = [row for row in rows if row[2] is not None]
    ends = [(order[index[str(row[1])]], order[index[str(row[2])]]) for row in edges]
    columns = {name: [_decoded(row[k]) for row in edges or rows] for k, name in enumerate(names)}
    said = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False, "none": False}
    kinds = [said.get(str(value).lower()) for value in columns.get("directed", ())]
    directed = False if None in kinds else _one_kind([bool(kind) for kind in kinds])

    return _plain(len(index), ends, columns.get("weight", []) if edges else [], directed)


def _decoded(text: str | None) -> Any:
    """The value of a field: JSON after ``json:``, else a number, else text."""
    try:
        if text is not None and text.startswith("json:"):
            return json.loads(text[5:])
        return None if text is None else int(text)
    except (ValueError, RecursionError):
        pass
    try:
        return float(str(text))
    except ValueError:
        return text


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
    "csv": table,
    "tsv": table,
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
        kinds = file["directed"][:].tolist() if "directed" in file else [0] * len(nodes)
    found, at = [], 0
    for n, count, kind in zip(nodes, counts, kinds, strict=True):
        own = None if weights is None or np.isnan(weights[at : at + count]).all() else weights[at : at + count].tolist()
        found.append(_plain(n, [(i, j) for i, j in pairs[at : at + count]], own or (), kind == 1))
        at += count

    return found
