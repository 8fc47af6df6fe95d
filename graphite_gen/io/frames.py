"""Graphs from and to tables of edges in pandas, with the columns of :mod:`.csv`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError
from ..graph import SimpleGraph, as_simple_graph
from .build import Context
from .csv import HEADER, graphs_of, table

if TYPE_CHECKING:
    import igraph
    import networkx as nx
    import pandas as pd

__all__ = ["from_pandas", "to_pandas"]


def from_pandas(
    edges: pd.DataFrame,
    source: str = "source",
    target: str = "target",
    *,
    graph: str | None = None,
    nodes: pd.DataFrame | None = None,
    node: str = "node",
    simplify: bool = False,
    directed: bool | None = None,
) -> list[nx.Graph]:
    """networkx graphs from a table with one row per edge.

    Other columns are edge attributes, such as ``weight``; a column ``split`` is that of the graph, and ``directed`` (1
    or 0) tells whether it is directed. A row without a target is a node without edges.

    Arguments:
        edges: The table.
        source: The column of one end of an edge, where an arc starts.
        target: The column of the other end.
        graph: The column that tells which graph a row belongs to, by default ``graph`` if there is one; otherwise all
            edges belong to one graph.
        nodes: A table with one row per node, whose other columns are node attributes; a node without edges needs no
            row in ``edges``. It has the column of graphs if ``edges`` has it.
        node: The column of the nodes in it.
        simplify: Whether to drop self-loops and repeated edges instead of refusing them, and, unless ``directed`` is
            True, edge directions.
        directed: Whether rows are arcs, from source to target; None for what the table says, otherwise False.

    Raises:
        ConfigError: A column is missing, or a node has two rows.
        FormatError: A row is not an edge of a simple graph.
    """
    import pandas as pd

    graph = "graph" if graph is None and "graph" in edges.columns else graph
    _check_columns(edges, source, target, graph)
    if nodes is not None:
        _check_columns(nodes, node, graph)
        # A row without a target is a node; those of graphs without edges come last.
        own = nodes.rename(columns={node: source})[[*filter(None, (graph, source))]]
        # As objects, since missing targets would make large integers inexact.
        edges = pd.concat([edges.astype(object), own.astype(object)])
    if graph is not None:
        # The rows of a graph together, and graphs in order of appearance, whatever the types of their names.
        codes, _ = edges[graph].factorize(use_na_sentinel=False)
        edges = edges.iloc[codes.argsort(kind="stable")]
    names = [str(name) for name in edges.columns]
    ends = edges.columns.get_loc(source), edges.columns.get_loc(target)
    place = None if graph is None else edges.columns.get_loc(graph)
    values = (column.astype(object).where(column.notna(), None) for _, column in edges.items())
    rows = zip(edges.index, zip(*values, strict=True), strict=True)
    plain = ((f"row {label}", list(map(_plain, row))) for label, row in rows)

    context = Context("DataFrame", simplify, directed)

    found = [own.to_networkx() for own in graphs_of(context, names, ends, place, plain)]
    if nodes is not None:
        _add_attributes(found, nodes, node, graph, None if place is None else list(dict.fromkeys(edges[graph])))

    return found


def _check_columns(frame: pd.DataFrame, *needed: str | None) -> None:
    for name in filter(None, needed):
        if name not in frame.columns:
            found = ", ".join(map(str, frame.columns[:10]))
            raise ConfigError(f"The table has no column '{name}'; it has {found}.")
    if not frame.columns.is_unique:
        raise ConfigError("Two columns of the table have the same name.")


def _add_attributes(
    graphs: list[nx.Graph], nodes: pd.DataFrame, node: str, graph: str | None, names: list[Any] | None
) -> None:
    """Set the node attributes of a table; names are those of the graphs."""
    own = [str(name) for name in nodes.columns if name not in (node, graph)]
    number = {name: index for index, name in enumerate(names or [None])}
    seen = set()
    for row in nodes.to_dict("records"):
        key = number[None if graph is None else row[graph]], _plain(row[node])
        if key in seen:
            raise ConfigError(f"Node {key[1]!r} has two rows in the table of nodes.")
        seen.add(key)
        values = {name: _plain(row[name]) for name in own}
        graphs[key[0]].nodes[key[1]].update({name: value for name, value in values.items() if value == value})


def _plain(value: Any) -> Any:
    """Python numbers; node numbers beside missing targets are floats in pandas."""
    value = value.item() if hasattr(value, "item") else value

    return int(value) if isinstance(value, float) and value.is_integer() else value


def to_pandas(graphs: Iterable[SimpleGraph | nx.Graph | igraph.Graph]) -> pd.DataFrame:
    """A table with one row per edge: ``graph`` (counted from 0), ``source``, ``target``, and edge attributes.

    A node without edges has a row without a target. The column ``directed`` is 1 for directed graphs. Node attributes
    and features are not in the table.
    """
    try:
        import pandas as pd
    except ImportError:
        raise ConfigError("pandas is not installed: 'pip install graphite-gen[pandas]'.") from None
    rows = (table(as_simple_graph(graph), index) for index, graph in enumerate(graphs))
    frame = pd.DataFrame(list(chain.from_iterable(rows)))

    return frame.reindex(columns=list(dict.fromkeys([*HEADER, *frame.columns])))
