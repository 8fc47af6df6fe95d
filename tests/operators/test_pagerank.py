from __future__ import annotations

import networkx as nx
import numpy as np
import torch

from graphite_gen.operators import LowRankGraph
from graphite_gen.operators.pagerank import PageRankGraph


def test_many_steps_are_the_pagerank_of_networkx() -> None:
    graph = nx.gnm_random_graph(9, 16, seed=2)
    transition = torch.tensor(nx.to_numpy_array(graph))
    transition = transition / transition.sum(0)
    wanted = nx.pagerank(graph, alpha=0.8, personalization={3: 1}, tol=1e-14, max_iter=1000)
    start = torch.zeros(9, 1)
    start[3] = 1

    found = PageRankGraph(transition, 0.2, 200) @ start

    assert np.allclose(found[:, 0], [wanted[node] for node in range(9)])


def test_no_steps_are_the_identity_and_one_is_a_mixture() -> None:
    graph, h = LowRankGraph(torch.randn(5, 2)), torch.randn(5, 3)

    assert (PageRankGraph(graph, 0.3, 0) @ h == h).all()
    assert torch.allclose(PageRankGraph(graph, 0.3, 1) @ h, 0.7 * (graph @ h) + 0.3 * h)
