"""Statistics of graphs sampled from a model of one network, beside those of the network, at its size and at others.

The network is Cora or any other file. Each row is a mean over samples; the first row is the network itself, and the
last one networkx's configuration model, which preserves the degrees only.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import networkx as nx
import numpy as np
import torch

from benchmarks.tables import publish
from graphite_gen.network.generation import fit_network_model, sample_networks
from graphite_gen.network.network import read_network

FACTORS = (0.5, 1, 2, 10)


def figures(graph: nx.Graph, observed: nx.Graph | None) -> list[float]:
    """Return statistics of degrees, components and triangles, and the percentage of edges shared with the network."""
    degrees = np.array([degree for _, degree in graph.degree])
    shared = np.nan if observed is None else sum(observed.has_edge(*edge) for edge in graph.edges) / graph.size()

    return [
        degrees.mean(),
        degrees.std(),
        degrees.max(),
        100 * (degrees == 0).mean(),
        100 * len(max(nx.connected_components(graph), key=len)) / len(graph),
        nx.transitivity(graph),
        nx.average_clustering(graph),
        nx.degree_assortativity_coefficient(graph),
        100 * shared,
    ]


def _cell(values: np.ndarray) -> str:
    """Format the mean over samples, with its standard error if there are several."""
    if np.isnan(values).any():
        return "–"
    error = f" ± {values.std(ddof=1) / np.sqrt(len(values)):.2g}" if len(values) > 1 else ""

    return f"{values.mean():.3g}{error}"


def _without_loops(graph: nx.Graph) -> nx.Graph:
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))

    return graph


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph", type=Path, help="a file of one network, such as cora.h5")
    parser.add_argument("--draws", type=int, default=5, help="samples per size  [5]")
    arguments = parser.parse_args()
    torch.set_num_threads(1)

    given = read_network(arguments.graph)
    observed = given.graph.to_networkx()
    model = fit_network_model(given)
    rows = [["observed", f"{given.nodes:,}", *(_cell(np.array([value])) for value in figures(observed, None))]]
    for factor in FACTORS:
        nodes = round(factor * given.nodes)
        draws = [graph.to_networkx() for graph in sample_networks(model, arguments.draws, nodes=nodes)]
        # Node i of a sample corresponds to node i of the network only at the size of the network.
        found = [figures(graph, observed if factor == 1 else None) for graph in draws]
        rows.append([f"{factor:g} ×", f"{nodes:,}", *map(_cell, np.transpose(found))])
    degrees = [degree for _, degree in observed.degree]
    peers = (nx.Graph(nx.configuration_model(degrees, seed=draw)) for draw in range(arguments.draws))
    found = [figures(_without_loops(graph), observed) for graph in peers]
    rows.append(["configuration model", f"{given.nodes:,}", *map(_cell, np.transpose(found))])
    name = arguments.graph.stem.capitalize()
    header = [
        "size",
        "nodes",
        "mean degree",
        "degree s.d.",
        "largest degree",
        "isolated, %",
        "largest component, %",
        "transitivity",
        "clustering",
        "assortativity",
        f"edges shared with {name}, %",
    ]
    title = f"Graphs sampled from a model of {name}, mean over {arguments.draws} samples with standard error"
    publish("network_generation", title, header, rows, {"draws": arguments.draws})


if __name__ == "__main__":
    main()
