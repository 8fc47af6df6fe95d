from __future__ import annotations

import warnings

import pytest
import torch
from tiny import as_matrix, normal, random_graph

from graphite_gen.nn.operators import SparseGraph, gcn_normalise


def edges_and_matrix(nodes: int = 9, *, weighted: bool = False) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The edges of a random graph in mixed order, their weights, and the dense matrix of both."""
    graph = random_graph(nodes, seed=3, density=0.3, weighted=weighted)
    edges = torch.as_tensor(graph.edges.T.copy(), dtype=torch.long)
    weights = torch.ones(edges.shape[1]) if graph.weights is None else torch.as_tensor(graph.weights)
    dense = torch.zeros(nodes, nodes)
    dense[edges[0], edges[1]] = weights
    order = torch.randperm(edges.shape[1], generator=torch.Generator().manual_seed(0))
    edges, weights = edges[:, order], weights[order]
    edges[:, ::2] = edges[:, ::2].flip(0)

    return edges, weights, dense + dense.mT


@pytest.mark.parametrize("weighted", [False, True])
def test_a_sparse_graph_is_the_dense_matrix_plain_and_normalised(weighted: bool) -> None:
    edges, weights, dense = edges_and_matrix(weighted=weighted)

    graph = SparseGraph.from_edges(edges, 9, weights if weighted else None)

    assert torch.equal(as_matrix(graph, 9), dense)
    assert torch.allclose(as_matrix(graph.normalised(), 9), gcn_normalise(dense, torch.ones(9, dtype=torch.bool)))


def test_products_and_their_gradients_are_those_of_the_dense_matrix() -> None:
    edges, weights, dense = edges_and_matrix(weighted=True)
    graph = SparseGraph.from_edges(edges, 9, weights).normalised()
    dense = gcn_normalise(dense, torch.ones(9, dtype=torch.bool))
    h = normal(9, 4).requires_grad_()

    out = (graph @ h).tanh()
    (gradient,) = torch.autograd.grad(out.square().sum(), h)
    expected = (dense @ h).tanh()
    (expected_gradient,) = torch.autograd.grad(expected.square().sum(), h)

    assert torch.allclose(out, expected)
    assert torch.allclose(gradient, expected_gradient)
    assert torch.autograd.gradgradcheck(lambda h: graph @ h, h)


@pytest.mark.parametrize("nodes", [1, 4])
def test_nodes_without_edges_keep_their_own_state(nodes: int) -> None:
    h = normal(nodes, 3)

    graph = SparseGraph.from_edges(torch.empty(2, 0, dtype=torch.long), nodes)

    assert (graph @ h == 0).all()
    assert torch.equal(graph.normalised() @ h, h)


def test_nothing_is_said_about_beta_features() -> None:
    edges, _, _ = edges_and_matrix()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.set_warn_always(True)
        try:
            graph = SparseGraph.from_edges(edges, 9).normalised() @ normal(9, 2)
        finally:
            torch.set_warn_always(False)

    assert graph.isfinite().all()
