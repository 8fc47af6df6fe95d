"""Small graphs with something to learn."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
from scipy import sparse

from graphite_gen.graph import SimpleGraph
from graphite_gen.network.network import Network, describe_nodes

GROUPS, MEMBERS = 4, 15


def planted(seed: int = 0) -> Network:
    """Four groups with many edges inside and few between; features tell the group now and then, labels always."""
    draw = np.random.default_rng(seed)
    graph = nx.planted_partition_graph(GROUPS, MEMBERS, 0.6, 0.02, seed=seed)
    groups = np.repeat(np.arange(GROUPS), MEMBERS)
    features = np.eye(GROUPS)[groups] * (draw.random((len(groups), 1)) < 0.5)
    simple = SimpleGraph.from_pairs(len(groups), list(graph.edges))

    return describe_nodes(simple, sparse.csr_array(features, dtype=np.float32), groups.tolist())


def labels_of(network: Network) -> list[Any]:
    """The label of each node, None if unlabelled."""

    return [None if code < 0 else network.classes[code] for code in network.labels]


def features_of(network: Network) -> list[list[float]]:

    return network.features.toarray().tolist()


def parts_of(network: Network) -> list[list[int]]:
    """The nodes for training, validation and test."""

    return [part.tolist() for part in (network.split.train, network.split.validation, network.split.test)]
