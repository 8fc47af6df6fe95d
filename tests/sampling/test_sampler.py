import math
from collections import Counter
from itertools import islice

import numpy as np
import pytest
import torch
from tiny import AUTOREGRESSIVE, all_graphs, autoregressive_model, path, random_graph, small_model

from graphite_gen.data.batch import collate, pair_mask
from graphite_gen.data.encoded import EncodedGraph
from graphite_gen.data.properties import largest_component
from graphite_gen.errors import SamplingError
from graphite_gen.graph import SimpleGraph
from graphite_gen.sampling import Edges, Sampler, sampler
from graphite_gen.training.checkpoint import TrainedModel


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "BLOCK", 16)
    monkeypatch.setattr(sampler, "AUTOREGRESSIVE_BLOCK", 16)
    monkeypatch.setattr(sampler, "TOGETHER", 16)


def biased(log_odds: float, **changes: object) -> TrainedModel:
    """A model with edges of about given log-odds."""
    model = small_model(**changes)
    head = model.network.decoder.head
    with torch.no_grad():
        head.project.bias.zero_()
        head.project.weight.mul_(0.3)
        head.size[-1].weight.zero_()
        head.size[-1].bias.fill_(log_odds)

    return model


def same(first: SimpleGraph, second: SimpleGraph) -> bool:
    return (
        first.nodes == second.nodes
        and np.array_equal(first.edges, second.edges)
        and (first.weights is None) == (second.weights is None)
        and (first.weights is None or np.allclose(first.weights, second.weights))
        and first.node_attributes == second.node_attributes
    )


@pytest.mark.parametrize("options", [{}, {"nodes": (2, 7)}, {"connected": True}, {"largest": True}, {"latents": True}])
@pytest.mark.parametrize("observation", ["bernoulli", "normal"])
def test_graph_i_is_the_same_for_any_count(options: dict, observation: str) -> None:
    model = biased(0.0, observation=observation)
    many = list(Sampler(model, 40, seed=3, **options))

    assert len(many) == 40
    for count in (0, 1, 15, 16, 17, 33):
        few = list(Sampler(model, count, seed=3, **options))
        assert len(few) == count
        assert all(map(same, few, many))


@pytest.mark.parametrize("options", [{}, {"nodes": (2, 7)}, {"connected": True}, {"latents": True}])
def test_threads_change_no_graph_and_are_restored(options: dict) -> None:
    model = small_model(**AUTOREGRESSIVE)
    alone, together = (Sampler(model, 40, seed=3, **options) for _ in range(2))
    graphs = list(alone)

    torch.set_num_threads(3)
    try:
        # Restored before the first graph, in case the caller stops there.
        found, threads = zip(*((graph, torch.get_num_threads()) for graph in together), strict=True)
    finally:
        torch.set_num_threads(1)

    assert set(threads) == {3}
    assert len(found) == 40
    assert all(map(same, found, graphs))
    assert (together.drawn, together.accepted, together.masked) == (alone.drawn, alone.accepted, alone.masked)


def test_errors_in_a_thread_are_raised_and_threads_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sampler, "_draw", None)
    torch.set_num_threads(3)
    try:
        with pytest.raises(TypeError, match="NoneType"):
            list(Sampler(small_model(**AUTOREGRESSIVE), 40))
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(1)


def test_a_redrawn_graph_does_not_depend_on_the_others() -> None:
    draws = Sampler(small_model(), 16, nodes=(2, 6), latents=True)
    sizes = draws._sizes(0)

    whole = draws._draw(np.arange(16), 1, sizes)
    rows = np.array([2, 5, 11])
    some = draws._draw(rows, 1, sizes[rows])

    assert all(map(same, some, [whole[2], whole[5], whole[11]]))


def test_graphs_are_simple_and_vary_and_depend_on_the_seed() -> None:
    model = small_model()
    draws = Sampler(model, 40, nodes=6)
    first, again, second = list(draws), list(draws), list(Sampler(model, 40, nodes=6, seed=1))

    # Counts restart with each iteration.
    assert (draws.drawn, draws.accepted) == (40, 40)
    assert all(map(same, first, again))
    assert len({graph.edges.tobytes() for graph in first}) > 20
    assert not all(map(same, first, second))
    for graph in first:
        assert graph.edges.dtype == np.int32
        assert (graph.edges[:, 0] < graph.edges[:, 1]).all()
        assert (graph.edges < graph.nodes).all()
        assert graph.edges.tolist() == sorted(graph.edges.tolist())


def test_sizes_follow_the_training_histogram_or_the_given_range() -> None:
    model = small_model()
    count = 1600

    counts = Counter(graph.nodes for graph in Sampler(model, count))
    assert {n: counts[n] / count for n in counts} == pytest.approx({3: 0.25, 4: 0.5, 5: 0.25}, abs=5 * 0.5 / 40)
    assert {graph.nodes for graph in Sampler(model, 40, nodes=np.int64(7))} == {7}
    ranged = Counter(graph.nodes for graph in Sampler(model, count, nodes=(np.int64(2), np.int32(6))))
    assert {n: ranged[n] / count for n in ranged} == pytest.approx(dict.fromkeys(range(2, 7), 0.2), abs=5 * 0.4 / 40)


def test_a_number_of_edges_conditions_the_sizes() -> None:
    # Nearly complete graphs: 15 edges are likely on 6 nodes only.
    dense, even = biased(9.0), biased(0.0)
    assert {graph.nodes for graph in Sampler(dense, 40, nodes=(4, 9), constraints=[Edges(15)])} == {6}
    # Where no size is likely, the least unlikely ones are used.
    assert {graph.nodes for graph in Sampler(dense, 20, nodes=(8, 12), constraints=[Edges(9)])} == {8}

    few, more = (list(Sampler(even, count, nodes=(4, 9), constraints=[Edges(9)])) for count in (5, 30))
    assert all(map(same, few, more))
    assert {len(graph.edges) for graph in more} == {9}
    assert len({graph.nodes for graph in more}) > 1


def test_edges_are_as_frequent_as_their_probability_over_the_prior() -> None:
    model, count = small_model(), 3200

    found = np.mean([graph.adjacency() for graph in Sampler(model, count, nodes=4)], axis=0)

    batch = collate([path(4)], 5)
    z = torch.randn(20000, 1, 5, 2, generator=torch.Generator().manual_seed(0)) * batch.mask.unsqueeze(-1)
    with torch.no_grad():
        edges = model.network.decode(z, batch.x, batch.mask)
    expected = float(torch.sigmoid(edges.logits[:, pair_mask(batch.mask)]).mean())
    # The prior is exchangeable: every pair has the same probability.
    assert np.abs(found[np.triu_indices(4, 1)] - expected).max() < 5 * 0.5 / math.sqrt(count) + 0.01


def test_the_largest_component_is_cut_from_the_same_graphs() -> None:
    model = biased(-1.0)

    cut = list(Sampler(model, 20, nodes=6, largest=True, latents=True))
    whole = list(Sampler(model, 20, nodes=6, latents=True))

    assert all(map(same, cut, map(largest_component, whole)))
    assert any(graph.nodes < 6 for graph in cut)


def test_latents_reproduce_the_distribution_of_their_graph() -> None:
    """Under extreme odds the graph is a function of its latents."""
    model = small_model(latent=3)
    with torch.no_grad():
        for parameter in [*model.network.decoder.head.project.parameters()]:
            parameter.mul_(1000)

    for graph in Sampler(model, 20, nodes=(2, 6), latents=True):
        columns = graph.node_attributes
        z = torch.tensor([columns["z0"], columns["z1"], columns["z2"]]).T.to(torch.get_default_dtype())
        batch = collate([graph])
        with torch.no_grad():
            logits = model.network.decode(z[None], batch.x, batch.mask).logits[0]
        sure = logits.abs() > 20
        sure.fill_diagonal_(False)
        assert torch.equal((logits > 0)[sure], (batch.adj[0] > 0)[sure])
        assert sure.sum() > 0.8 * graph.nodes * (graph.nodes - 1)


def test_weighted_graphs_have_a_weight_on_every_pair() -> None:
    model = small_model(observation="normal")

    for graph in Sampler(model, 20, nodes=(1, 5)):
        assert graph.weights is not None
        assert len(graph.weights) == len(graph.edges) == math.comb(graph.nodes, 2)
        assert np.isfinite(graph.weights).all()


def test_features_are_used_in_turn_and_condition_the_edges() -> None:
    model = small_model(node_features=2)
    conditions = [random_graph(nodes, 0, features=2) for nodes in (3, 6, 4)]

    graphs = list(Sampler(model, 20, features=conditions))

    assert [graph.nodes for graph in graphs] == [3, 6, 4] * 6 + [3, 6]
    for index, graph in enumerate(graphs):
        assert np.array_equal(graph.features, conditions[index % 3].features)
    shifted = [SimpleGraph(graph.nodes, graph.edges, features=graph.features + 3) for graph in conditions]
    assert not all(map(same, Sampler(model, 20, features=shifted), graphs))


def test_large_graphs_are_sampled_in_smaller_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "BLOCK_CELLS", 100)

    graphs = list(islice(Sampler(small_model(), 10**9, nodes=8), 3))

    assert [graph.nodes for graph in graphs] == [8, 8, 8]


@pytest.mark.parametrize(
    "options", [{}, {"nodes": (2, 7)}, {"largest": True}, {"latents": True}, {"features": [path(3), path(6), path(4)]}]
)
def test_blocks_that_are_decoded_together_have_the_same_graphs(options: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    model = autoregressive_model(latent=2)
    model.network.decoder.start_at(0.0)
    monkeypatch.setattr(sampler, "AUTOREGRESSIVE_BLOCK", 4)
    monkeypatch.setattr(sampler, "TOGETHER", 12)
    together = Sampler(model, 30, seed=3, **options)
    graphs = list(together)
    monkeypatch.setattr(sampler, "TOGETHER", 1)
    alone = Sampler(model, 30, seed=3, **options)

    assert (together.at_once, alone.at_once) == (12, 4)
    assert len({graph.edges.tobytes() for graph in graphs}) > 10
    assert all(map(same, graphs, alone))
    assert (together.drawn, together.accepted, together.masked) == (30, 30, 0)


def test_blocks_are_decoded_together_as_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model(**AUTOREGRESSIVE)
    monkeypatch.setattr(sampler, "AUTOREGRESSIVE_BLOCK", 4)
    found = []
    for memory in (None, 10**9, 10**6, 10**5):
        monkeypatch.setattr(sampler, "available_memory", lambda memory=memory: memory)
        found.append(Sampler(model, 100, nodes=8).at_once)

    assert found[0] == found[1] == 16
    assert found[1] > found[2] > found[3] == 4
    assert Sampler(model, 100, nodes=8, connected=True).at_once == 4


def test_attributes_of_blocks_that_are_decoded_together_have_their_own_noise() -> None:
    model = small_model(**AUTOREGRESSIVE, node_labels=3, edge_labels=2, weights="positive")
    draws, indices = Sampler(small_model(**AUTOREGRESSIVE), 40, nodes=5), np.array([3, 9, 15, 16, 30, 37])
    draws.model = model

    whole = draws._attribute_noise(indices, 0)
    parts = [draws._attribute_noise(indices[k : k + 1], 0) for k in range(6)]

    for name in ("labels", "states", "values", "components"):
        noise = getattr(whole, name)
        assert torch.equal(noise, torch.cat([getattr(part, name) for part in parts]))
        assert len(noise.flatten(1).unique(dim=0)) == 6


@pytest.mark.parametrize(
    ("changes", "options", "found"),
    [
        ({"kind": "gae"}, {}, "no-prior"),
        ({"node_features": 2}, {}, "features-required"),
        ({}, {"features": [random_graph(3, 0, features=2)]}, "trained with 0"),
        ({}, {"count": -1}, "at least 0"),
        ({}, {"nodes": 0}, "from 0 to 0"),
        ({}, {"nodes": (7, 3)}, "from 7 to 3"),
        ({}, {"nodes": 10**9}, "sampling-memory"),
        (AUTOREGRESSIVE, {"nodes": (3, 10**6)}, "sampling-memory"),
        ({"name": "paper"}, {"nodes": 9}, "identity-features"),
    ],
)
def test_impossible_samples_are_refused_at_once(changes: dict, options: dict, found: str) -> None:
    with pytest.raises(SamplingError) as error:
        Sampler(small_model(**changes), **({"count": 1} | options))

    assert error.value.reason == found or found in str(error.value)


@pytest.mark.usefixtures("single_precision")
def test_sampling_in_single_precision_agrees_with_double() -> None:
    model = small_model()

    single = list(Sampler(model, 20, nodes=5))
    model.network.double()

    assert all(map(same, single, Sampler(model, 20, nodes=5)))


@pytest.mark.parametrize("changes", [{}, AUTOREGRESSIVE])
@pytest.mark.parametrize(("count", "drawn"), [(1, [1]), (3, [3]), (18, [16, 2])])
def test_no_more_graphs_are_sampled_than_requested(
    changes: dict, count: int, drawn: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small_model(**changes)
    prior, found = model.network.prior, []
    monkeypatch.setattr(model.network, "prior", lambda mask: found.append(len(mask)) or prior(mask))

    assert len(list(Sampler(model, count))) == count
    assert found == drawn


def test_encoded_graphs_are_decoded_in_turn_with_the_probability_of_their_latents_and_ordering() -> None:
    model = small_model(**{**AUTOREGRESSIVE, "encoder": "residual", "ordering": "bfs"})
    rng, count = np.random.default_rng(0), 4000
    z = rng.normal(size=(3, 2)).astype(np.float32)
    position = np.array([2, 0, 1], dtype=np.int32)
    other = EncodedGraph.exact(rng.normal(size=(5, 2)))

    graphs = list(Sampler(model, count, encoded=[EncodedGraph.exact(z, position=position), other]))

    assert {graph.nodes for graph in graphs[1::2]} == {5}
    found = Counter(graph.edges.tobytes() for graph in graphs[::2])
    order = np.argsort(position)
    for graph in all_graphs(3):
        decoded = model.network.decode_autoregressive(
            torch.from_numpy(z[order])[None].double(), torch.zeros(1, 3, 0), torch.tensor([3])
        )
        adj = torch.from_numpy(graph.adjacency()[np.ix_(order, order)])[None].double()
        with torch.no_grad():
            expected = float(decoded.log_prob(adj).exp())
        assert abs(found[graph.edges.tobytes()] / (count / 2) - expected) < 5 * 0.5 / math.sqrt(count / 2)


@pytest.mark.parametrize("changes", [{}, {**AUTOREGRESSIVE, "encoder": "residual", "ordering": "bfs"}])
def test_the_posterior_of_nothing_is_the_prior(changes: dict) -> None:
    model = small_model(**changes)
    nothing = EncodedGraph(np.zeros((6, 2), dtype=np.float32), np.ones((6, 2), dtype=np.float32))

    assert all(map(same, Sampler(model, 20, nodes=6), Sampler(model, 20, encoded=[nothing])))


def test_latents_of_another_width_are_refused_and_those_of_an_autoencoder_decoded() -> None:
    with pytest.raises(SamplingError, match="width 3"):
        Sampler(small_model(), 1, encoded=[EncodedGraph.exact(np.zeros((4, 3)))])

    assert len(list(Sampler(small_model(kind="gae"), 3, encoded=[EncodedGraph.exact(np.zeros((4, 2)))]))) == 3
