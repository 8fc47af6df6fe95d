from __future__ import annotations

import pytest
import torch
from tiny import normal, small_batch

from graphite_gen.nn.one_shot import GCNRefinement, ResidualRefinement, Skip


@pytest.mark.parametrize("form", ["convex", "incremental"])
def test_a_skip_of_weight_zero_is_the_identity(form: str) -> None:
    z, refined = normal(2, 5, 3), normal(2, 5, 3, seed=1)

    assert torch.equal(Skip(form, 0.0)(z, refined), z)


def test_skips_are_the_two_of_the_appendix() -> None:
    z, refined = normal(2, 5, 3), normal(2, 5, 3, seed=1)
    norm = torch.linalg.matrix_norm(refined, keepdim=True)

    assert torch.allclose(Skip("convex", 0.3)(z, refined), 0.7 * z + 0.3 * refined)
    assert torch.allclose(Skip("incremental", 0.3)(z, refined), z + 0.3 * refined / norm)


def test_an_increment_in_no_direction_is_none_and_has_a_finite_gradient() -> None:
    refined = torch.zeros(5, 3, requires_grad=True)

    out = Skip("incremental", 0.5)(normal(5, 3), refined)
    (gradient,) = torch.autograd.grad(out.sum(), refined)

    assert torch.equal(out, normal(5, 3))
    assert gradient.isfinite().all()


def test_the_refinement_of_the_paper_is_a_dense_gcn_over_the_intermediate_graph() -> None:
    batch = small_batch(features=2)
    z = normal(3, 7, 3)
    refine = GCNRefinement(3, 6, 2)
    with torch.no_grad():
        refine.hidden.bias.normal_(generator=torch.Generator().manual_seed(0))
        refine.out.bias.normal_(generator=torch.Generator().manual_seed(1))

    out = refine(z, batch.x, batch.mask)

    for row, n in enumerate(batch.sizes.tolist()):
        real = z[row, :n]
        unit = real / real.norm(dim=-1, keepdim=True)
        dense = unit @ unit.mT + 1
        root = torch.diag(dense.sum(-1) ** -0.5)
        dense = root @ dense @ root
        hidden = (
            dense @ torch.cat([real, batch.x[row, :n]], -1) @ refine.hidden.linear.weight.T + refine.hidden.bias
        ).relu()
        assert torch.allclose(out[row, :n], dense @ hidden @ refine.out.linear.weight.T + refine.out.bias)


@pytest.mark.parametrize("kind", ["gcn", "residual"])
def test_a_refinement_is_zero_at_dummy_nodes_whatever_it_reads_there(kind: str) -> None:
    batch = small_batch(features=2)
    refine = GCNRefinement(4, 6, 2) if kind == "gcn" else ResidualRefinement(4, 2, 2)

    out = refine(normal(3, 7, 4), normal(3, 7, 2), batch.mask)

    assert (out[~batch.mask] == 0).all()
    assert (out[batch.mask] != 0).any()
