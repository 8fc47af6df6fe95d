from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.stats import zscore

from graphite_gen.errors import DatasetError
from graphite_gen.graph import SimpleGraph
from graphite_gen.network.network import Network
from graphite_gen.network.node_inputs import IdentityInputs, SparseInputs, dropout, inputs_of


def features() -> sparse.csr_array:
    """Words, none of which is everywhere."""
    return sparse.random_array((7, 5), density=0.4, rng=7, format="csr")


def unit_rows(x: sparse.csr_array) -> torch.Tensor:
    return torch.nn.functional.normalize(torch.tensor(x.toarray()))


def scaled(x: Any) -> np.ndarray:
    """Dense features as they are scaled for a model."""
    return SparseInputs.from_features(sparse.csr_array(x)).matrix.to_dense().numpy()


def test_words_are_divided_by_the_lengths_of_rows_to_the_last_bit() -> None:
    x = sparse.random_array((200, 40), density=0.3, rng=2, format="csr")
    norms = np.sqrt(x.multiply(x).sum(axis=1))
    wanted = x.data / np.repeat(np.where(norms > 0, norms, 1), np.diff(x.indptr))

    assert (SparseInputs.from_features(x).matrix.values().numpy() == wanted).all()


def test_measurements_are_standardised_and_other_columns_keep_their_zeros() -> None:
    rng = np.random.default_rng(0)
    age, income = rng.uniform(20, 80, 300), rng.lognormal(10, 1, 300)
    town, gains = np.eye(3)[rng.integers(3, size=300)], np.where(rng.random(300) < 0.2, rng.uniform(0, 1e6, 300), 0)
    x = np.column_stack([age, town, gains, income])

    wanted = np.column_stack([zscore(age), town, gains / gains.max(), zscore(income)])
    wanted /= np.sqrt((wanted**2).sum(1).mean())
    assert np.allclose(scaled(x), wanted)
    stored = SparseInputs.from_features(sparse.csr_array(x)).matrix.values()
    assert len(stored) == 300 + 300 + (gains > 0).sum() + 300


def test_a_column_is_a_measurement_if_more_than_two_thirds_of_the_nodes_have_it() -> None:
    few, many = (np.arange(1.0, 10)[:, None] * (np.arange(9)[:, None] < count) for count in (6, 7))

    assert set(scaled(few).ravel()) == {0, 1}
    assert np.allclose(scaled(many), zscore(many))


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-30, 1e30, 1e300, 8e307])
def test_features_of_any_size_stay_finite(size: float) -> None:
    numbers, words = np.arange(-2.0, 3)[:, None], np.eye(5)

    for x in (numbers, words, np.hstack([numbers, words])):
        assert np.allclose(scaled(x * size), scaled(x))


def test_what_is_the_same_for_all_nodes_is_zero() -> None:
    for x in (np.full((7, 2), 0.1), [[3.0, 0.0, -2.0]], np.zeros((1, 2))):
        assert (scaled(x) == 0).all()


def test_identity_inputs_are_the_weights() -> None:
    weight = torch.randn(4, 2)

    assert IdentityInputs(4).width == 4
    assert torch.equal(IdentityInputs(4) @ weight, torch.eye(4) @ weight)


def test_dropped_inputs_keep_their_mean_and_their_gradient() -> None:
    x, generator = features(), torch.Generator().manual_seed(0)
    inputs = SparseInputs.from_features(x)
    eye = torch.eye(5)
    draws = torch.stack([inputs.dropped(0.4, generator) @ eye for _ in range(4000)])

    assert torch.allclose(draws.mean(0), unit_rows(x), atol=0.05)
    assert ((draws == 0) | torch.isclose(draws, unit_rows(x) / 0.6)).all()
    for each in (inputs, inputs.dropped(0.4, generator)):
        assert torch.autograd.gradcheck(each.__matmul__, torch.randn(5, 2, requires_grad=True))
    assert inputs.dropped(0.0, generator) is inputs
    assert dropout(eye, 0.0, generator) is eye


@pytest.mark.parametrize(
    ("x", "uses"),
    [
        (None, IdentityInputs),
        (sparse.csr_array((4, 0)), IdentityInputs),
        (sparse.csr_array([[1.0], [2.0], [0.0], [0.0]]), SparseInputs),
        (sparse.csr_array(np.full((4, 2), 7.0)), "uninformative-features"),
    ],
)
def test_features_are_used_if_there_are_any(x: sparse.csr_array | None, uses: type | str) -> None:
    graph = Network(SimpleGraph.from_pairs(4, [(0, 1), (2, 3)]), x)

    assert isinstance(inputs_of(graph, False), IdentityInputs)
    if isinstance(uses, type):
        assert isinstance(inputs_of(graph), uses)
    if uses is not SparseInputs:
        with pytest.raises(DatasetError) as error:
            inputs_of(graph, True)
        assert error.value.reason == ("no-features" if uses is IdentityInputs else uses)


def test_nodes_without_a_known_edge_share_their_inputs() -> None:
    graph = Network(SimpleGraph.from_pairs(5, [(0, 1), (1, 2), (2, 3)]))
    weight = torch.randn(5, 3, requires_grad=True)
    for edges, known in ((None, 4), (np.array([[0, 1]]), 2)):
        matrix = torch.diag((torch.arange(5) < known).double())
        found = inputs_of(graph, edges=edges) @ weight
        (gradient,) = torch.autograd.grad(found.sum(), weight)

        assert torch.equal(found, matrix @ weight)
        assert torch.equal(gradient, matrix @ torch.ones(5, 3))
