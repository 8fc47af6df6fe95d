import pytest
import torch
from tiny import normal

from graphite_gen.network import pair_logits as pairs_module
from graphite_gen.network.pair_logits import PairLogits
from graphite_gen.nn.one_shot import InnerProduct

from .graphs import dense, pair_logits


def test_pairs_tiles_and_factors_agree_with_the_dense_matrix() -> None:
    logits = pair_logits(7)
    products = logits.factor @ torch.diag(logits.sign) @ logits.factor.mT
    wanted = products + logits.bias[:, None] + logits.bias[None] + logits.shift
    pairs = torch.combinations(torch.arange(7)).mT

    left, right = logits.two_sided()

    assert torch.allclose(logits.of(pairs), wanted[pairs[0], pairs[1]])
    assert torch.allclose(logits.tile(slice(2, 5), slice(0, 7)), wanted[2:5])
    assert torch.allclose(left @ right.mT, wanted)


def test_inner_product_is_the_head_of_the_paper() -> None:
    z = normal(6, 4)

    assert torch.allclose(dense(PairLogits.inner_product(z)), InnerProduct()(z, torch.tensor(6)))


def test_gradients_of_pairs_are_those_of_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two pairs at a time, so that chunks share rows.
    monkeypatch.setattr(pairs_module, "_NUMBERS", 6)
    logits = pair_logits(7)
    leaves = (logits.factor, logits.bias, logits.shift)
    for leaf in leaves:
        leaf.requires_grad_()
    pairs = torch.tensor([[0, 2, 2, 1, 5], [3, 4, 6, 2, 6]])
    weights = normal(5, seed=4)

    ours = torch.autograd.grad((logits.of(pairs) * weights).sum(), leaves)
    theirs = torch.autograd.grad((dense(logits)[pairs[0], pairs[1]] * weights).sum(), leaves)

    assert all(torch.allclose(a, b) for a, b in zip(ours, theirs, strict=True))


def test_nodes_in_no_pair_have_no_gradient() -> None:
    logits = pair_logits(7)
    logits.factor.requires_grad_()
    # Neither the first node nor the last two.
    pairs, weights = torch.tensor([[1, 2], [3, 4]]), normal(2, seed=4)
    ours, theirs = (
        torch.autograd.grad((products * weights).sum(), logits.factor)[0]
        for products in (logits.of(pairs), dense(logits)[pairs[0], pairs[1]])
    )

    assert torch.allclose(ours, theirs)
    assert not ours[[0, 5, 6]].any()
