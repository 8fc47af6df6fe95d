from __future__ import annotations

import pytest
import torch
from scipy import sparse

from graphite_gen.errors import DatasetError
from graphite_gen.graph import SimpleGraph
from graphite_gen.single_graph.data import SingleGraph
from graphite_gen.single_graph.inputs import IdentityInputs, SparseInputs, dropout, inputs_of


def features() -> sparse.csr_array:
    return sparse.random_array((7, 5), density=0.4, rng=1, format="csr")


def dense(x: sparse.csr_array) -> torch.Tensor:
    matrix = torch.tensor(x.toarray())

    return matrix / torch.linalg.vector_norm(matrix, dim=1, keepdim=True).clamp_min(1e-30)


def test_sparse_products_and_gradients_are_those_of_rows_of_length_one() -> None:
    x = features()
    weight = torch.randn(5, 3, requires_grad=True)
    inputs = SparseInputs.from_features(x)

    assert inputs.width == 5
    assert torch.allclose(inputs @ weight, dense(x) @ weight)
    assert torch.autograd.gradcheck(lambda w: inputs @ w, weight)


def test_identity_inputs_are_the_weights() -> None:
    weight = torch.randn(4, 2)

    assert IdentityInputs(4).width == 4
    assert torch.equal(IdentityInputs(4) @ weight, torch.eye(4) @ weight)


def test_dropped_inputs_keep_their_mean_and_their_gradient() -> None:
    x, generator = features(), torch.Generator().manual_seed(0)
    inputs = SparseInputs.from_features(x)
    eye = torch.eye(5)
    draws = torch.stack([inputs.dropped(0.4, generator) @ eye for _ in range(4000)])

    assert torch.allclose(draws.mean(0), dense(x), atol=0.05)
    assert ((draws == 0) | torch.isclose(draws, dense(x) / 0.6)).all()
    once = inputs.dropped(0.4, generator)
    assert torch.autograd.gradcheck(lambda w: once @ w, torch.randn(5, 2, requires_grad=True))
    assert inputs.dropped(0.0, generator) is inputs
    assert dropout(eye, 0.0, generator) is eye


def test_features_that_are_not_there_are_told() -> None:
    graph = SingleGraph(SimpleGraph.from_pairs(3, [(0, 1)]))

    assert isinstance(inputs_of(graph), IdentityInputs)
    with pytest.raises(DatasetError, match="no features"):
        inputs_of(graph, True)
    empty = SingleGraph(graph.graph, sparse.csr_array((3, 0)))
    assert isinstance(inputs_of(empty), IdentityInputs)
    full = SingleGraph(graph.graph, sparse.csr_array([[1.0], [2.0], [0.0]]))
    assert isinstance(inputs_of(full), SparseInputs)
    assert isinstance(inputs_of(full, False), IdentityInputs)
