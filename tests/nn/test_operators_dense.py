from __future__ import annotations

import torch
from tiny import small_batch

from graphite_gen.nn.operators import gcn_normalise


def test_the_propagation_matrix_is_that_of_kipf_and_welling_on_real_nodes_and_zero_elsewhere() -> None:
    batch = small_batch()

    out = gcn_normalise(batch.adj, batch.mask)

    for row, n in enumerate(batch.sizes.tolist()):
        loops = batch.adj[row, :n, :n] + torch.eye(n)
        root = torch.diag(loops.sum(-1) ** -0.5)
        assert torch.allclose(out[row, :n, :n], root @ loops @ root)
        assert (out[row, n:] == 0).all()
        assert (out[row, :, n:] == 0).all()


def test_negative_weights_have_a_real_root_and_a_spectral_radius_of_at_most_one() -> None:
    batch = small_batch(weighted=True)

    out = gcn_normalise(batch.adj, batch.mask)

    assert batch.adj.min() < 0
    assert out.isfinite().all()
    assert torch.linalg.eigvalsh(out).abs().max() <= 1 + 1e-12
