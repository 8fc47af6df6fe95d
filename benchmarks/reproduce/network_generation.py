"""Statistics of graphs that resemble one observed network, by our model and by classical random graph models.

The networks are Cora (or another file), a grid of 50 x 100 nodes with 5 % of its edges rewired, and a social network of
1500 nodes in communities (networkx's Gaussian random partition graph). Each row is a mean over samples; the first row
of each network is the network itself.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import torch
from scipy import sparse
from scipy.sparse.linalg import eigsh
from scipy.stats import ks_2samp

from benchmarks.reproduce.null_models import NULL_MODELS
from benchmarks.tables import lines, publish
from graphite_gen.evaluation.statistics import mean_path_lengths
from graphite_gen.graph import SimpleGraph
from graphite_gen.network.generation import fit_network_model, generation_settings, sample_networks
from graphite_gen.network.network import Network, read_network

ROWS, COLUMNS, REWIRED = 50, 100, 0.05
# Communities of the social network: nodes, mean size, shape of their variance, probabilities of edges.
COMMUNITIES = (1500, 12, 8, 0.45, 0.0015)
# The same of a short trial, and its training epochs.
QUICK_ROWS, QUICK_COLUMNS, QUICK_COMMUNITIES, QUICK_EPOCHS = 8, 12, (90, 12, 8, 0.45, 0.02), 3


def rewired_grid(rows: int, columns: int, proportion: float, seed: int) -> nx.Graph:
    """Return a grid with one end of a proportion of its edges moved to a random node."""
    rng = np.random.default_rng(seed)
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, columns))
    for i, j in list(graph.edges):
        if rng.random() < proportion:
            k = int(rng.integers(len(graph)))
            if k != i and not graph.has_edge(i, k):
                graph.remove_edge(i, j)
                graph.add_edge(i, k)

    return graph


def social_network(seed: int, shape: tuple[float, ...] = COMMUNITIES) -> nx.Graph:
    """Return the largest component of a graph with many communities of unequal size."""
    graph = nx.gaussian_random_partition_graph(*shape, seed=seed)
    part = graph.subgraph(max(nx.connected_components(graph), key=len))

    return nx.Graph(nx.convert_node_labels_to_integers(part).edges)


def spectral_gap(graph: nx.Graph) -> float:
    """Return the second eigenvalue of the normalised Laplacian of the largest component."""
    nodes = max(nx.connected_components(graph), key=len)
    matrix = nx.to_scipy_sparse_array(graph.subgraph(nodes), dtype=float)
    scale = sparse.diags_array(matrix.sum(axis=1) ** -0.5)
    values = eigsh(scale @ matrix @ scale + sparse.eye_array(len(nodes)), k=2, which="LA", return_eigenvectors=False)

    return float(2 - values.min())


def by_degree(graph: nx.Graph) -> dict[int, float]:
    """Return the mean clustering coefficient of nodes by octave of the degree, from degree 2."""
    octaves: dict[int, list[float]] = {}
    for node, value in nx.clustering(graph).items():
        if graph.degree[node] > 1:
            octaves.setdefault(int(np.log2(graph.degree[node])), []).append(value)

    return {octave: float(np.mean(values)) for octave, values in octaves.items()}


def figures(graph: nx.Graph, observed: nx.Graph) -> dict[str, float]:
    """Return the statistics of a graph, and its distances from the network, by column."""
    degrees, own = ([degree for _, degree in each.degree] for each in (graph, observed))
    found, wanted = by_degree(graph), by_degree(observed)
    counts = np.bincount(np.log2(np.maximum(own, 1)).astype(int))
    weights = {octave: counts[octave] for octave in wanted}
    error = sum(weight * abs(found.get(octave, 0.0) - wanted[octave]) for octave, weight in weights.items())
    simple = SimpleGraph.from_pairs(len(graph), [tuple(sorted(edge)) for edge in graph.edges])

    return {
        "isolated, %": 100 * np.mean(np.array(degrees) == 0),
        "components": nx.number_connected_components(graph),
        "degrees, KS": ks_2samp(degrees, own).statistic,
        "clustering": nx.average_clustering(graph),
        "error of clustering by degree": error / max(sum(weights.values()), 1),
        "assortativity": nx.degree_assortativity_coefficient(graph),
        "path length": float(mean_path_lengths([simple])[0]),
        "spectral gap": spectral_gap(graph),
        "copied edges, %": 100 * sum(observed.has_edge(*edge) for edge in graph.edges) / graph.size(),
    }


def _cell(values: list[float]) -> str:
    """Format the mean over samples, with its standard error if there are several."""
    error = f" ± {np.std(values, ddof=1) / np.sqrt(len(values)):.1g}" if len(values) > 1 else ""

    return f"{np.mean(values):.3g}{error}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph", type=Path, help="a file of one network, such as cora.h5")
    parser.add_argument("--draws", type=int, default=3, help="samples per network and model  [3]")
    parser.add_argument("--quick", action="store_true", help="a short trial on small networks, which is only printed")
    arguments = parser.parse_args()
    quick = arguments.quick
    torch.set_num_threads(1)

    networks: dict[str, Network] = {arguments.graph.stem.capitalize(): read_network(arguments.graph)}
    for name, graph in (
        ("grid", rewired_grid(*((QUICK_ROWS, QUICK_COLUMNS) if quick else (ROWS, COLUMNS)), REWIRED, seed=1)),
        ("communities", social_network(1, QUICK_COMMUNITIES if quick else COMMUNITIES)),
    ):
        networks[name] = Network(SimpleGraph.from_pairs(len(graph), [tuple(sorted(edge)) for edge in graph.edges]))
    rows, details = [], {}
    header: list[str] = []
    for name, network in networks.items():
        observed = network.graph.to_networkx()
        start = time.perf_counter()
        settings = generation_settings(network.nodes)
        model = fit_network_model(network, replace(settings, epochs=QUICK_EPOCHS) if quick else settings)
        training = time.perf_counter() - start

        def ours(draw: int, model=model) -> nx.Graph:
            return next(iter(sample_networks(model, 1, seed=draw))).to_networkx()

        methods: dict[str, Callable[[int], nx.Graph]] = {"graphite-gen": ours}
        methods |= {
            label: lambda draw, make=make, observed=observed: make(observed, np.random.default_rng(draw))
            for label, make in NULL_MODELS.items()
        }
        itself = figures(observed, observed)
        header = ["network", "model", *itself, "seconds per sample"]
        rows.append([name, "observed", *(_cell([value]) for value in list(itself.values())[:-1]), "–", "–"])
        details[name] = {"observed": itself, "training seconds": training}
        for label, make in methods.items():
            start = time.perf_counter()
            graphs = [make(draw) for draw in range(arguments.draws)]
            seconds = (time.perf_counter() - start) / arguments.draws
            found = [figures(graph, observed) for graph in graphs]
            details[name][label] = found
            rows.append([name, label, *(_cell([each[key] for each in found]) for key in itself), f"{seconds:.2g}"])
            print(rows[-1], flush=True)
    title = f"Graphs that resemble one network, mean over {arguments.draws} samples with standard error"
    if quick:
        print(f"\n{title}\n\n" + "\n".join(lines(header, rows)))
        return
    publish("network_generation", title, header, rows, {"draws": arguments.draws, "networks": details})


if __name__ == "__main__":
    main()
