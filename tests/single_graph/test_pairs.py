from __future__ import annotations

import torch
from tiny import normal

from graphite_gen.nn.heads import InnerProduct
from graphite_gen.single_graph.pairs import PairLogits


def pair_logits(nodes: int, rank: int = 3, seed: int = 0) -> PairLogits:
    sign = torch.ones(rank)
    sign[rank // 2 :] = -1

    return PairLogits(normal(nodes, rank, seed=seed), sign, normal(nodes, seed=seed + 1), torch.tensor(-1.5))


def test_pairs_tiles_and_both_sides_give_the_cells_of_one_matrix() -> None:
    logits = pair_logits(7)
    dense = logits.factor @ torch.diag(logits.sign) @ logits.factor.mT
    dense = dense + logits.bias[:, None] + logits.bias[None] + logits.shift
    pairs = torch.combinations(torch.arange(7)).mT

    left, right = logits.two_sided()

    assert torch.allclose(logits.of(pairs), dense[pairs[0], pairs[1]])
    assert torch.allclose(logits.tile(slice(2, 5), slice(0, 7)), dense[2:5])
    assert torch.allclose(left @ right.mT, dense)


def test_a_plain_inner_product_is_the_head_of_the_paper() -> None:
    z = normal(6, 4)

    logits = PairLogits.inner_product(z)

    assert torch.allclose(logits.tile(slice(6), slice(6)), InnerProduct()(z, torch.tensor(6)))
