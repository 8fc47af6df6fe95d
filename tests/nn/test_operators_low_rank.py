from __future__ import annotations

import pytest
import torch
from tiny import as_matrix, normal, small_batch

from graphite_gen.nn.operators import LowRankGraph


@pytest.mark.parametrize("per_node", [False, True])
@pytest.mark.parametrize("batch", [(), (4,), (2, 3)])
def test_low_rank_graph_is_the_matrix_of_the_paper_on_real_nodes(batch: tuple[int, ...], per_node: bool) -> None:
    z, h = normal(*batch, 7, 3), normal(*batch, 7, 5, seed=1)
    mask = torch.arange(7).expand(*batch, 7) < 5
    real = z[..., :5, :]
    norms = real.norm(dim=-1, keepdim=True) if per_node else torch.linalg.matrix_norm(real, keepdim=True)
    dense = (real / norms) @ (real / norms).mT + 1

    graph = LowRankGraph.from_latents(z, mask, per_node=per_node)
    out = graph @ h

    assert torch.allclose(as_matrix(graph, 7)[..., :5, :5], dense)
    assert torch.allclose(out[..., :5, :], dense @ h[..., :5, :])
    assert (out[..., 5:, :] == 0).all()
    assert (as_matrix(graph, 7)[..., 5:] == 0).all()


def test_normalised_divides_by_the_roots_of_both_degrees() -> None:
    batch = small_batch()
    z = normal(3, 7, 2)

    out = as_matrix(LowRankGraph.from_latents(z, batch.mask).normalised(), 7)

    for row, n in enumerate(batch.sizes.tolist()):
        real = z[row, :n]
        dense = real @ real.mT / real.square().sum() + 1
        root = torch.diag(dense.sum(-1) ** -0.5)
        assert (dense >= 0).all()
        assert torch.allclose(out[row, :n, :n], root @ dense @ root)
        assert (out[row, n:] == 0).all()
        assert (out[row, :, n:] == 0).all()


def test_one_mask_serves_latents_of_many_samples() -> None:
    batch = small_batch()
    z = normal(6, 3, 7, 2)

    together = as_matrix(LowRankGraph.from_latents(z, batch.mask).normalised(), 7)

    for sample in range(6):
        alone = as_matrix(LowRankGraph.from_latents(z[sample], batch.mask).normalised(), 7)
        assert torch.allclose(together[sample], alone)


@pytest.mark.parametrize("per_node", [False, True])
def test_latents_of_zero_give_the_complete_graph_and_a_finite_gradient(per_node: bool) -> None:
    z = torch.zeros(4, 2, requires_grad=True)
    mask = torch.tensor([True, True, True, False])

    graph = LowRankGraph.from_latents(z, mask, per_node=per_node)
    out = graph.normalised() @ normal(4, 1)
    (gradient,) = torch.autograd.grad(out.sum(), z)

    assert torch.equal(as_matrix(graph, 4), torch.outer(mask.double(), mask.double()))
    assert gradient.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_latents_of_any_scale_stay_finite(dtype: torch.dtype) -> None:
    mask = torch.tensor([True, True, True, False])

    for scale in (1e-30, 1e-15, 1e15):
        graph = LowRankGraph.from_latents(scale * normal(4, 2).to(dtype), mask)
        out = as_matrix(graph.normalised(), 4, dtype)
        assert out.isfinite().all()
        assert out.dtype == dtype
