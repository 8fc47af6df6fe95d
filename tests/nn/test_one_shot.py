from itertools import product

import pytest
import torch
from tiny import normal, permuted_rows, small_batch, small_network
from torch import Tensor

from graphite_gen.data.batch import GraphBatch
from graphite_gen.nn.one_shot import (
    GCNRefinement,
    InnerProduct,
    SignedInnerProduct,
    Skip,
    refine_iteratively,
    size_features,
)

DECODERS = list(product(("gcn", "residual"), ("convex", "incremental"), ("inner", "signed"), (True, False)))


def small_decoder(refinement: str, skip: str, head: str, mlp: bool, **changes: object) -> torch.nn.Module:
    return small_network(
        refinement=refinement, skip=skip, head=head, mlp=mlp, skip_weight=0.7, node_features=2, latent=4, **changes
    ).decoder


def real_pairs(mask: Tensor) -> Tensor:
    return mask.unsqueeze(-1) & mask.unsqueeze(-2)


def permuted_logits(decoder: torch.nn.Module, z: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor, Tensor]:
    """Logits of real pairs, those of permuted nodes, and permuted logits; the first three nodes are always real."""
    order, pairs = [2, 0, 1], real_pairs(batch.mask)
    logits = decoder(z, batch.x, batch.mask)
    other = decoder(permuted_rows(z, order, -2), permuted_rows(batch.x, order, -2), batch.mask)
    expected = permuted_rows(permuted_rows(logits, order, -1), order, -2)

    return logits[:, pairs], other[:, pairs], expected[:, pairs]


@pytest.mark.parametrize("parts", DECODERS)
def test_logits_are_symmetric_and_permutation_equivariant(parts: tuple[str, str, str, bool]) -> None:
    batch, z = small_batch(features=2), normal(4, 3, 7, 4)

    whole = small_decoder(*parts)(z, batch.x, batch.mask)
    logits, other, expected = permuted_logits(small_decoder(*parts), z, batch)

    assert torch.allclose(whole, whole.mT)
    assert torch.allclose(other, expected)
    assert not torch.allclose(other, logits)


@pytest.mark.parametrize("parts", DECODERS)
def test_padding_changes_no_logit_and_gets_no_gradient(parts: tuple[str, str, str, bool]) -> None:
    decoder = small_decoder(*parts)
    narrow, wide = small_batch(padding=0, features=2), small_batch(padding=3, features=2)
    z = normal(3, 8, 4).requires_grad_()
    real = wide.mask.unsqueeze(-1)

    noisy = decoder(z, wide.x + 5 * ~real, wide.mask)[real_pairs(wide.mask)]
    plain = decoder((z * real)[:, :5], narrow.x, narrow.mask)[real_pairs(narrow.mask)]
    (gradient,) = torch.autograd.grad(noisy.square().sum(), z)

    assert torch.allclose(noisy, plain)
    assert (gradient[~wide.mask] == 0).all()
    assert (gradient[wide.mask] != 0).any()


def test_identity_features_break_permutation_equivariance() -> None:
    decoder = small_network("paper", latent=16, decoder_features=("identity",)).decoder

    _, other, expected = permuted_logits(decoder, normal(1, 3, 7, 16), small_batch())

    assert not torch.allclose(other, expected, atol=1e-3)


def test_the_residual_decoder_depends_on_the_graph_size() -> None:
    decoder = small_decoder("residual", "convex", "signed", True)
    z = torch.zeros(2, 6, 4)
    mask = torch.arange(6) < torch.tensor([[3], [5]])

    logits = decoder(z, torch.zeros(2, 6, 2), mask)

    assert not torch.allclose(logits[0, 0, 1], logits[1, 0, 1])


@pytest.mark.parametrize("refinement", ["gcn", "residual"])
def test_inner_products_give_padding_logits_of_zero(refinement: str) -> None:
    """Padding cells then cost log 2 each under the convention of the paper."""
    batch = small_batch(features=2)
    decoder = small_decoder(refinement, "convex", "inner", True)

    logits = decoder(normal(3, 7, 4) * batch.mask.unsqueeze(-1), normal(3, 7, 2), batch.mask)

    assert (logits[~batch.mask] == 0).all()
    assert (logits[batch.mask] != 0).any()


def test_skips_are_the_two_of_the_appendix() -> None:
    z, refined = normal(2, 5, 3), normal(2, 5, 3, seed=1)
    norm = torch.linalg.matrix_norm(refined, keepdim=True)

    assert torch.allclose(Skip("convex", 0.3)(z, refined), 0.7 * z + 0.3 * refined)
    assert torch.allclose(Skip("incremental", 0.3)(z, refined), z + 0.3 * refined / norm)


def test_an_increment_of_zero_has_a_finite_gradient() -> None:
    refined = torch.zeros(5, 3, requires_grad=True)

    out = Skip("incremental", 0.5)(normal(5, 3), refined)
    (gradient,) = torch.autograd.grad(out.sum(), refined)

    assert torch.equal(out, normal(5, 3))
    assert gradient.isfinite().all()


def test_the_refinement_of_the_paper_agrees_with_a_dense_gcn() -> None:
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


def test_inner_products_are_those_of_every_pair_with_signs_and_biases() -> None:
    h, sizes = normal(2, 4, 6), torch.tensor([3, 4])
    head = SignedInnerProduct(6, 5)
    u, bias = head.project(torch.nn.functional.layer_norm(h, (6,))).split([5, 1], dim=-1)
    sign = torch.tensor([1.0, 1.0, -1.0, -1.0, -1.0])
    size = head.size(size_features(sizes, h))[:, 0]

    plain, signed = InnerProduct()(h, sizes), head(h, sizes)

    for i, j in product(range(4), repeat=2):
        assert torch.allclose(plain[:, i, j], (h[:, i] * h[:, j]).sum(-1))
        expected = (sign * u[:, i] * u[:, j]).sum(-1) + bias[:, i, 0] + bias[:, j, 0] + size
        assert torch.allclose(signed[:, i, j], expected)


def test_size_features_are_finite_for_empty_graphs() -> None:
    out = size_features(torch.tensor([0, 1, 20, 10**6]), torch.zeros(()))

    assert out.isfinite().all()
    assert torch.allclose(out[2], torch.tensor([2.995732273553991, 0.5]))


def test_heads_with_a_bias_start_at_the_given_density() -> None:
    head = SignedInnerProduct(4, 6)
    with torch.no_grad():
        head.project.weight.zero_()
        head.project.bias.zero_()
        head.size[-1].weight.zero_()
    head.start_at(-1.5)
    h = torch.randn(2, 3, 4)

    assert torch.allclose(head(h, torch.tensor([3, 3])), torch.tensor(-1.5))
    InnerProduct().start_at(-1.5)  # has no bias


def test_each_round_refines_the_result_of_the_one_before() -> None:
    z, mask = torch.ones(1, 2, 1), torch.ones(1, 2, dtype=torch.bool)
    rounds = [lambda z, x, mask: z + x, lambda z, x, mask: 3 * z]
    # Halfway to 1 + 2, then halfway to three times that.
    found = refine_iteratively(rounds, Skip("convex", 0.5), z, 2 * torch.ones(1, 2, 1), mask)
    assert torch.allclose(found, torch.full_like(z, 4.0))


def test_an_outer_skip_combines_the_first_input_with_the_last_round() -> None:
    z, mask = torch.ones(1, 2, 1), torch.ones(1, 2, dtype=torch.bool)
    rounds = [lambda z, x, mask: z + x, lambda z, x, mask: 3 * z]
    for form, expected in (("convex", 5.0), ("incremental", 1 + 0.5 / 2**0.5)):
        skip = Skip(form, 0.5, outer=True)

        assert torch.allclose(refine_iteratively(rounds, skip, z, 2 * z, mask), torch.full_like(z, expected))
        assert torch.equal(refine_iteratively([], skip, z, z, mask), z)
