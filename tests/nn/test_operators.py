import networkx as nx
import numpy as np
import pytest
import torch
from tiny import as_matrix, normal, random_graph, small_batch
from torch import Tensor

from graphite_gen.nn.operators import LowRankGraph, PageRankGraph, SparseGraph, gcn_normalise


@pytest.mark.parametrize("weighted", [False, True])
def test_gcn_normalise_agrees_with_the_formula_and_is_zero_at_padding(weighted: bool) -> None:
    batch = small_batch(weighted=weighted)

    out = gcn_normalise(batch.adj, batch.mask)

    assert (batch.adj.min() < 0) == weighted
    for row, n in enumerate(batch.sizes.tolist()):
        loops, expected = batch.adj[row, :n, :n] + torch.eye(n), torch.zeros(7, 7)
        root = torch.diag(loops.abs().sum(-1) ** -0.5)
        expected[:n, :n] = root @ loops @ root
        assert torch.allclose(out[row], expected)
    assert (out[~batch.mask] == 0).all()
    assert torch.linalg.eigvalsh(out).abs().max() <= 1 + 1e-12


@pytest.mark.parametrize("per_node", [False, True])
@pytest.mark.parametrize("batch", [(), (4,), (2, 3)])
def test_low_rank_graph_is_the_matrix_of_the_paper_on_real_nodes(batch: tuple[int, ...], per_node: bool) -> None:
    z, h = normal(*batch, 7, 3), normal(*batch, 7, 5, seed=1)
    mask = torch.arange(7).expand(*batch, 7) < 5
    real = z[..., :5, :]
    norms = real.norm(dim=-1, keepdim=True) if per_node else torch.linalg.matrix_norm(real, keepdim=True)
    dense = (real / norms) @ (real / norms).mT + 1

    graph = LowRankGraph.from_latents(z, mask, per_node=per_node)

    whole = torch.nn.functional.pad(dense, (0, 2, 0, 2))
    assert torch.allclose(as_matrix(graph, 7), whole)
    assert torch.allclose(graph @ h, whole @ h)


def test_normalised_low_rank_graphs_agree_with_the_dense_formula() -> None:
    batch = small_batch()
    # The mask broadcasts over samples.
    z = normal(6, 3, 7, 2)

    out = as_matrix(LowRankGraph.from_latents(z, batch.mask).normalised(), 7)

    for row, n in enumerate(batch.sizes.tolist()):
        real = z[:, row, :n]
        dense = real @ real.mT / real.square().sum((-2, -1), keepdim=True) + 1
        scale = dense.sum(-1) ** -0.5
        assert (dense >= 0).all()
        assert torch.allclose(out[:, row, :n, :n], scale.unsqueeze(-1) * dense * scale.unsqueeze(-2))
        assert (out[:, row, n:] == 0).all()
        assert (out[:, row, :, n:] == 0).all()


MASK = torch.tensor([True, True, True, False])


@pytest.mark.parametrize("per_node", [False, True])
def test_latents_of_zero_give_the_complete_graph_and_a_finite_gradient(per_node: bool) -> None:
    z = torch.zeros(4, 2, requires_grad=True)

    graph = LowRankGraph.from_latents(z, MASK, per_node=per_node)
    out = graph.normalised() @ normal(4, 1)
    (gradient,) = torch.autograd.grad(out.sum(), z)

    assert torch.equal(as_matrix(graph, 4), torch.outer(MASK.double(), MASK.double()))
    assert gradient.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1e-30, 1e-15, 1e15])
def test_latents_of_any_scale_stay_finite(scale: float, dtype: torch.dtype) -> None:
    out = as_matrix(LowRankGraph.from_latents(scale * normal(4, 2).to(dtype), MASK).normalised(), 4, dtype)

    assert out.isfinite().all()
    assert out.dtype == dtype


def edges_and_matrix(nodes: int = 9, density: float = 0.3, weighted: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """The edges of a random graph in mixed order, their weights, and the dense matrix of both."""
    graph = random_graph(nodes, 3, density, weighted=weighted)
    edges = torch.as_tensor(graph.edges.T.copy(), dtype=torch.long)
    weights = torch.ones(edges.shape[1]) if graph.weights is None else torch.as_tensor(graph.weights)
    dense = torch.zeros(nodes, nodes)
    dense[edges[0], edges[1]] = weights
    order = torch.randperm(edges.shape[1], generator=torch.Generator().manual_seed(0))
    edges, weights = edges[:, order], weights[order]
    edges[:, ::2] = edges[:, ::2].flip(0)

    return edges, weights, dense + dense.mT


@pytest.mark.parametrize(
    ("nodes", "density", "weighted"), [(9, 0.3, False), (9, 0.3, True), (4, 0, False), (1, 0, False)]
)
def test_sparse_graphs_agree_with_the_dense_matrix(nodes: int, density: float, weighted: bool) -> None:
    edges, weights, dense = edges_and_matrix(nodes, density, weighted=weighted)
    graph = SparseGraph.from_edges(edges, nodes, weights if weighted else None)
    assert torch.equal(as_matrix(graph, nodes), dense)

    graph, dense = graph.normalised(), gcn_normalise(dense, torch.ones(nodes, dtype=torch.bool))
    h = normal(nodes, 4).requires_grad_()
    out, expected = (graph @ h).tanh(), (dense @ h).tanh()

    assert torch.allclose(out, expected)
    gradients = (torch.autograd.grad(each.square().sum(), h)[0] for each in (out, expected))
    assert torch.allclose(*gradients)
    assert torch.autograd.gradgradcheck(lambda h: graph @ h, h)


def test_sparse_graphs_raise_no_beta_warning(recwarn: pytest.WarningsRecorder) -> None:
    torch.set_warn_always(True)
    try:
        SparseGraph.from_edges(edges_and_matrix()[0], 9).normalised() @ normal(9, 2)
    finally:
        torch.set_warn_always(False)

    assert not recwarn.list


GRAPH = nx.gnm_random_graph(9, 16, seed=2)


def halfway() -> tuple[SparseGraph, Tensor]:
    """The symmetrically normalised adjacency matrix, and the roots of the degrees."""
    edges = torch.tensor(list(GRAPH.edges)).mT
    roots = torch.tensor([degree for _, degree in GRAPH.degree]).to(torch.get_default_dtype()).sqrt().unsqueeze(-1)

    return SparseGraph.from_edges(edges, 9, 1 / (roots[edges[0]] * roots[edges[1]]).squeeze(-1)), roots


def test_many_steps_agree_with_pagerank_of_networkx() -> None:
    wanted = nx.pagerank(GRAPH, alpha=0.8, personalization={3: 1}, tol=1e-14, max_iter=1000)
    graph, roots = halfway()
    start = torch.zeros(9, 1)
    start[3] = 1

    found = roots * (PageRankGraph(graph, 0.2, 200) @ (start / roots))

    assert np.allclose(found[:, 0], [wanted[node] for node in range(9)])


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_a_few_steps_and_their_gradient_agree_with_autograd(steps: int) -> None:
    graph, _ = halfway()
    dense = graph.matrix.to_dense()
    h, weights = normal(9, 3).requires_grad_(), normal(9, 3, seed=1)
    states = h
    for _ in range(steps):
        states = 0.7 * dense @ states + 0.3 * h

    found = PageRankGraph(graph, 0.3, steps) @ h

    assert torch.allclose(found, states)
    ours, theirs = (torch.autograd.grad((each * weights).sum(), h)[0] for each in (found, states))
    assert torch.allclose(ours, theirs)


@pytest.mark.parametrize("per_node", [False, True])
def test_a_low_rank_graph_without_a_mask_is_that_of_real_nodes(per_node: bool) -> None:
    z = normal(2, 5, 3)
    everyone = torch.ones(2, 5, dtype=torch.bool)
    plain, masked = (LowRankGraph.from_latents(z, mask, per_node=per_node) for mask in (None, everyone))

    assert torch.equal(plain.factor, masked.factor)
    assert (plain.factor[..., -1] == 1).all()
