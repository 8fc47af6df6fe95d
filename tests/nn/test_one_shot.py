from __future__ import annotations

from itertools import product

import pytest
import torch
from tiny import normal, permuted_rows, small_batch, small_network
from torch import Tensor

DECODERS = list(product(("gcn", "residual"), ("convex", "incremental"), ("inner", "signed"), (True, False)))


def small_decoder(refinement: str, skip: str, head: str, mlp: bool, **changes: object) -> torch.nn.Module:
    return small_network(
        refinement=refinement, skip=skip, head=head, mlp=mlp, skip_weight=0.7, node_features=2, latent=4, **changes
    ).decoder


@pytest.mark.parametrize("parts", DECODERS)
def test_renumbering_the_nodes_renumbers_the_logits(parts: tuple[str, str, str, bool]) -> None:
    batch, z, order = small_batch(features=2), normal(4, 3, 7, 4), [2, 0, 1]
    decoder = small_decoder(*parts)

    logits = decoder(z, batch.x, batch.mask)
    other = decoder(permuted_rows(z, order, -2), permuted_rows(batch.x, order, -2), batch.mask)

    pairs = batch.mask.unsqueeze(-1) & batch.mask.unsqueeze(-2)
    turned = permuted_rows(permuted_rows(logits, order, -1), order, -2)
    assert torch.allclose(other[:, pairs], turned[:, pairs])
    assert not torch.allclose(other[:, pairs], logits[:, pairs])
    assert torch.allclose(logits, logits.mT)


@pytest.mark.parametrize("parts", DECODERS)
def test_dummy_nodes_change_no_logit_and_get_no_gradient(parts: tuple[str, str, str, bool]) -> None:
    """Whatever stands at dummy nodes, and however many there are."""
    decoder = small_decoder(*parts)
    narrow, wide = small_batch(padding=0, features=2), small_batch(padding=3, features=2)
    z = normal(3, 8, 4).requires_grad_()
    real = wide.mask.unsqueeze(-1)

    def score(logits: Tensor, mask: Tensor) -> Tensor:
        pairs = mask.unsqueeze(-1) & mask.unsqueeze(-2)
        return logits[pairs]

    noisy = score(decoder(z, wide.x + 5 * ~real, wide.mask), wide.mask)
    plain = score(decoder((z * real)[:, :5], narrow.x, narrow.mask), narrow.mask)
    (gradient,) = torch.autograd.grad(noisy.square().sum(), z)

    assert torch.allclose(noisy, plain)
    assert (gradient[~wide.mask] == 0).all()
    assert (gradient[wide.mask] != 0).any()


def test_numbered_nodes_break_the_symmetry_of_the_decoder() -> None:
    batch, order = small_batch(), [2, 0, 1]
    z = normal(3, 7, 16)
    decoder = small_network("paper", latent=16, decoder_features=("identity",)).decoder

    logits = decoder(z, batch.x, batch.mask)
    other = decoder(permuted_rows(z, order, -2), batch.x, batch.mask)

    turned = permuted_rows(permuted_rows(logits, order, -1), order, -2)
    assert not torch.allclose(other[:, :3, :3], turned[:, :3, :3], atol=1e-3)


def test_the_residual_decoder_reads_how_many_nodes_there_are() -> None:
    decoder = small_decoder("residual", "convex", "signed", True)
    z = torch.zeros(2, 6, 4)
    mask = torch.arange(6) < torch.tensor([[3], [5]])

    logits = decoder(z, torch.zeros(2, 6, 2), mask)

    assert not torch.allclose(logits[0, 0, 1], logits[1, 0, 1])


@pytest.mark.parametrize("refinement", ["gcn", "residual"])
def test_an_inner_product_gives_dummy_nodes_the_odds_of_a_fair_coin(refinement: str) -> None:
    """So the cells of padding cost log 2 each under the convention of the paper."""
    batch = small_batch(features=2)
    decoder = small_decoder(refinement, "convex", "inner", True)

    logits = decoder(normal(3, 7, 4) * batch.mask.unsqueeze(-1), batch.x, batch.mask)

    assert (logits[~batch.mask] == 0).all()
    assert (logits[batch.mask] != 0).any()
