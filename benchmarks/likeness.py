"""How far graphs from a model of one graph resemble it, at its size and at others.

The graph is Cora's, or any other that is given. Each row has means over some draws; the first is the graph itself,
and the last those of networkx's configuration model, which keeps the degrees and nothing else.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import networkx as nx
import numpy as np
import torch
from tables import publish

from graphite_gen.network.generation import LargeGraphSampler, fit_network_model
from graphite_gen.network.network import read_network

FACTORS = (0.5, 1, 2, 10)


def figures(graph: nx.Graph, observed: nx.Graph | None) -> list[float]:
    """Figures of degrees, of what holds together and of triangles, and how many edges recur."""
    degrees = np.array([degree for _, degree in graph.degree])
    recurring = np.nan if observed is None else sum(observed.has_edge(*edge) for edge in graph.edges) / graph.size()

    return [
        degrees.mean(),
        degrees.std(),
        degrees.max(),
        100 * (degrees == 0).mean(),
        100 * len(max(nx.connected_components(graph), key=len)) / len(graph),
        nx.transitivity(graph),
        nx.average_clustering(graph),
        nx.degree_assortativity_coefficient(graph),
        100 * recurring,
    ]


def _cell(values: np.ndarray) -> str:
    """The mean of some draws, with its standard error if there are several."""
    if np.isnan(values).any():
        return "–"
    error = f" ± {values.std(ddof=1) / np.sqrt(len(values)):.2g}" if len(values) > 1 else ""

    return f"{values.mean():.3g}{error}"


def _without_loops(graph: nx.Graph) -> nx.Graph:
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))

    return graph


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph", type=Path, help="a file of one graph, such as cora.h5")
    parser.add_argument("--draws", type=int, default=5, help="graphs of each size  [5]")
    arguments = parser.parse_args()
    torch.set_num_threads(1)

    given = read_network(arguments.graph)
    observed = given.graph.to_networkx()
    model = fit_network_model(given)
    rows = [["observed", f"{given.nodes:,}", *(_cell(np.array([value])) for value in figures(observed, None))]]
    for factor in FACTORS:
        nodes = round(factor * given.nodes)
        draws = [graph.to_networkx() for graph in LargeGraphSampler(model, arguments.draws, nodes=nodes)]
        # Only at the size of the graph itself does node i take after node i.
        found = [figures(graph, observed if factor == 1 else None) for graph in draws]
        rows.append([f"{factor:g} ×", f"{nodes:,}", *map(_cell, np.transpose(found))])
    degrees = [degree for _, degree in observed.degree]
    peers = (nx.Graph(nx.configuration_model(degrees, seed=draw)) for draw in range(arguments.draws))
    found = [figures(_without_loops(graph), observed) for graph in peers]
    rows.append(["configuration model", f"{given.nodes:,}", *map(_cell, np.transpose(found))])
    header = [
        "size",
        "nodes",
        "mean degree",
        "deviation",
        "largest",
        "isolated, %",
        "largest component, %",
        "transitivity",
        "clustering",
        "assortativity",
        "edges that recur, %",
    ]
    name = arguments.graph.stem.capitalize()
    title = f"Graphs like {name}'s, means of {arguments.draws} draws with their standard errors"
    publish("likeness", title, header, rows, {"draws": arguments.draws})


if __name__ == "__main__":
    main()
