"""Small graphs with something to learn, small logits, and dense matrices to compare with."""

from typing import Any

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from tiny import normal
from torch import Tensor

from graphite_gen.graph import SimpleGraph
from graphite_gen.network.network import Network, describe_nodes
from graphite_gen.network.pair_logits import PairLogits

GROUPS, MEMBERS = 4, 15


def planted(seed: int = 0) -> Network:
    """Four groups with many edges inside and few between; features tell the group now and then, labels always."""
    draw = np.random.default_rng(seed)
    graph = nx.planted_partition_graph(GROUPS, MEMBERS, 0.6, 0.02, seed=seed)
    groups = np.repeat(np.arange(GROUPS), MEMBERS)
    features = np.eye(GROUPS)[groups] * (draw.random((len(groups), 1)) < 0.5)

    return describe_nodes(network_of(graph).graph, sparse.csr_array(features, dtype=np.float32), groups.tolist())


def network_of(graph: nx.Graph) -> Network:
    """A network without annotations, of a graph on nodes 0, 1, …."""
    return Network(SimpleGraph.from_pairs(len(graph), list(graph.edges)))


def pairs_of(graph: nx.Graph) -> NDArray[np.int64]:
    """Edges i < j, with shape (E, 2)."""
    return network_of(graph).edges.astype(np.int64)


def edge_tensor(network: Network) -> Tensor:
    """Edges i < j, with shape (2, E)."""
    return torch.tensor(network.edges.T.copy(), dtype=torch.int64)


def adjacency(edges: Tensor, nodes: int) -> Tensor:
    """The adjacency matrix of edges with shape (2, E)."""
    matrix = torch.zeros(nodes, nodes)
    matrix[edges[0], edges[1]] = matrix[edges[1], edges[0]] = 1

    return matrix


def dense_gcn(edges: Tensor, nodes: int) -> Tensor:
    """The propagation matrix of a GCN."""
    matrix = adjacency(edges, nodes) + torch.eye(nodes)
    scale = matrix.sum(1) ** -0.5

    return scale[:, None] * matrix * scale


def pair_logits(nodes: int, rank: int = 3, seed: int = 0) -> PairLogits:
    sign = torch.ones(rank)
    sign[rank // 2 :] = -1

    return PairLogits(normal(nodes, rank, seed=seed), sign, normal(nodes, seed=seed + 1), torch.tensor(-1.5))


def dense(logits: PairLogits) -> Tensor:
    return logits.tile(slice(None), slice(None))


def labels_of(network: Network) -> list[Any]:
    """The label of each node, None if unlabelled."""
    return [None if code < 0 else network.classes[code] for code in network.labels]


def features_of(network: Network) -> list[list[float]]:
    return network.features.toarray().tolist()


def parts_of(network: Network) -> list[list[int]]:
    """The nodes for training, validation and test."""
    return [part.tolist() for part in (network.split.train, network.split.validation, network.split.test)]
