from __future__ import annotations

import torch
from tiny import normal

from graphite_gen.nn.one_shot import InnerProduct, SignedInnerProduct
from graphite_gen.nn.one_shot import size_features


def test_the_inner_product_is_that_of_every_pair() -> None:
    h = normal(2, 4, 3)

    out = InnerProduct()(h, torch.tensor([3, 4]))

    for i in range(4):
        for j in range(4):
            assert torch.allclose(out[:, i, j], (h[:, i] * h[:, j]).sum(-1))


def test_the_signed_inner_product_adds_both_nodes_biases_and_one_of_the_size() -> None:
    h, sizes = normal(2, 4, 6), torch.tensor([3, 4])
    head = SignedInnerProduct(6, 5)
    u, bias = head.project(torch.nn.functional.layer_norm(h, (6,))).split([5, 1], dim=-1)
    sign = torch.tensor([1.0, 1.0, -1.0, -1.0, -1.0])

    out = head(h, sizes)

    for i in range(4):
        for j in range(4):
            size = head.size(size_features(sizes, h))[:, 0]
            expected = (sign * u[:, i] * u[:, j]).sum(-1) + bias[:, i, 0] + bias[:, j, 0] + size
            assert torch.allclose(out[:, i, j], expected)
    assert torch.allclose(out, out.mT)


def test_features_of_a_size_are_finite_even_for_no_nodes() -> None:
    out = size_features(torch.tensor([0, 1, 20, 10**6]), torch.zeros(()))

    assert out.isfinite().all()
    assert torch.allclose(out[2], torch.tensor([20.0, 0.5]).log().new_tensor([2.995732273553991, 0.5]))


def test_a_head_starts_at_the_density_it_is_told_wherever_it_can() -> None:
    head = SignedInnerProduct(4, 6)
    with torch.no_grad():
        head.project.weight.zero_()
        head.project.bias.zero_()
        head.size[-1].weight.zero_()
    head.start_at(-1.5)
    h = torch.randn(2, 3, 4)

    assert torch.allclose(head(h, torch.tensor([3, 3])), torch.tensor(-1.5))
    InnerProduct().start_at(-1.5)
