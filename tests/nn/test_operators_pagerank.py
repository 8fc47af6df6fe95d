from __future__ import annotations

import networkx as nx
import numpy as np
import torch

from graphite_gen.nn.operators import PageRankGraph, SparseGraph

GRAPH = nx.gnm_random_graph(9, 16, seed=2)


def halfway() -> tuple[SparseGraph, torch.Tensor]:
    """The matrix of a walk, made symmetric by the roots of the degrees, and those."""
    edges = torch.tensor(list(GRAPH.edges)).mT
    roots = torch.tensor([degree for _, degree in GRAPH.degree]).to(torch.get_default_dtype()).sqrt().unsqueeze(-1)

    return SparseGraph.from_edges(edges, 9, 1 / (roots[edges[0]] * roots[edges[1]]).squeeze(-1)), roots


def test_many_steps_are_the_pagerank_of_networkx() -> None:
    wanted = nx.pagerank(GRAPH, alpha=0.8, personalization={3: 1}, tol=1e-14, max_iter=1000)
    graph, roots = halfway()
    start = torch.zeros(9, 1)
    start[3] = 1

    found = roots * (PageRankGraph(graph, 0.2, 200) @ (start / roots))

    assert np.allclose(found[:, 0], [wanted[node] for node in range(9)])


def test_no_steps_are_the_identity_and_one_is_a_mixture() -> None:
    (graph, _), h = halfway(), torch.randn(9, 3)

    assert (PageRankGraph(graph, 0.3, 0) @ h == h).all()
    assert torch.allclose(PageRankGraph(graph, 0.3, 1) @ h, 0.7 * (graph @ h) + 0.3 * h)


def test_the_gradient_is_that_of_the_product_step_by_step() -> None:
    graph, _ = halfway()
    dense = graph.matrix.to_dense()
    h = torch.randn(9, 3, requires_grad=True)
    weights = torch.randn(9, 3)
    states = h
    for _ in range(4):
        states = 0.7 * dense @ states + 0.3 * h

    ours = torch.autograd.grad((PageRankGraph(graph, 0.3, 4) @ h * weights).sum(), h)
    theirs = torch.autograd.grad((states * weights).sum(), h)

    assert torch.allclose(ours[0], theirs[0])
