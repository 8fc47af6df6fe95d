"""Random graphs with labels, weights and directions."""

from typing import Any

import networkx as nx
import numpy as np


def attributed(
    seed: int, *, directed: bool = False, carbon: float = 0.5, weight: float = 1.0, **graph: Any
) -> nx.Graph:
    """A graph on 5 to 9 nodes with the labels 'element' and 'bond', and weights."""
    rng = np.random.default_rng(seed)
    found = nx.gnp_random_graph(int(rng.integers(5, 10)), 0.4, seed=seed, directed=directed)
    found.graph.update(graph)
    for node in found:
        found.nodes[node]["element"] = str(rng.choice(["C", "N", "O"], p=[carbon, (1 - carbon) / 2, (1 - carbon) / 2]))
    for data in found.edges.values():
        data["bond"] = int(rng.integers(1, 4))
        data["weight"] = float(rng.lognormal(weight))

    return found
