from collections import Counter

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import path, random_graph

from graphite_gen.data.batch import bucket, collate, node_mask, pair_mask
from graphite_gen.errors import DatasetError


def test_collate_pads_matrices_weighted_or_not_and_features_with_zeros() -> None:
    graphs = [random_graph(nodes, 3, features=2, weighted=nodes == 5) for nodes in (3, 5, 1)]

    batch = collate(graphs, 7)

    assert batch.sizes.tolist() == [3, 5, 1]
    for row, graph in enumerate(graphs):
        padding = (0, 7 - graph.nodes)
        assert np.array_equal(batch.adj[row], np.pad(nx.to_numpy_array(graph.to_networkx()), padding))
        assert np.array_equal(batch.x[row], np.pad(graph.features, (padding, (0, 0))))
        assert batch.mask[row].tolist() == [node < graph.nodes for node in range(7)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tensors_have_the_default_precision_and_move_together(dtype: torch.dtype) -> None:
    torch.set_default_dtype(dtype)

    batch = collate([random_graph(4, 0, weighted=True, features=1)], 5)
    moved = batch.to("meta")

    assert batch.adj.dtype == batch.x.dtype == dtype
    assert {moved.adj.device.type, moved.mask.device.type, moved.x.device.type} == {"meta"}


def test_collate_pads_to_the_largest_graph_and_refuses_features_of_different_widths() -> None:
    assert collate([path(2), path(4)]).adj.shape == (2, 4, 4)
    assert collate([]).adj.shape == (0, 1, 1)
    with pytest.raises(DatasetError, match=r"\[0, 2\]"):
        collate([random_graph(3, 0), random_graph(3, 0, features=2)])


def test_masks_count_real_nodes_and_unordered_pairs() -> None:
    sizes = torch.tensor([0, 1, 2, 5])

    mask = node_mask(sizes, 6)

    assert mask.sum(-1).tolist() == [0, 1, 2, 5]
    assert pair_mask(mask).sum((-2, -1)).tolist() == [0, 0, 1, 10]
    assert not pair_mask(mask).tril().any()


@settings(deadline=None)
@given(sizes=st.lists(st.integers(1, 60), max_size=50), batch_size=st.integers(1, 20), seed=st.integers(0, 1000))
def test_an_epoch_has_every_graph_once_in_batches_of_bounded_size(sizes: list[int], batch_size: int, seed: int) -> None:
    batches = list(bucket(sizes, batch_size, np.random.default_rng(seed)))

    assert Counter(index for batch in batches for index in batch) == Counter(range(len(sizes)))
    assert all(1 <= len(batch) <= batch_size for batch in batches)


def test_one_large_graph_does_not_pad_many_small_ones() -> None:
    sizes = [10] * 200 + [300]

    for seed in range(5):
        batches = list(bucket(sizes, 64, np.random.default_rng(seed)))

        assert [200] in batches
        assert sum(len(batch) * max(sizes[index] for index in batch) ** 2 for batch in batches) == 300**2 + 200 * 10**2


def test_a_batch_of_large_graphs_holds_fewer_of_them() -> None:
    sizes = [10] * 300 + [30] * 100

    batches = list(bucket(sizes, 32, np.random.default_rng(0)))

    assert all(len(batch) * max(sizes[index] for index in batch) ** 2 <= 1.5 * 32 * 10**2 for batch in batches)
    assert max(map(len, batches)) == 32


def test_epochs_differ_and_a_seed_repeats_them() -> None:
    sizes = list(range(1, 41))
    first, again, other = (list(bucket(sizes, 8, np.random.default_rng(seed))) for seed in (1, 1, 2))

    assert first == again
    assert {frozenset(batch) for batch in first} != {frozenset(batch) for batch in other}
