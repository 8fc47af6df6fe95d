"""Graphs with node labels, edge states and weights: the distribution is normalised, and samples follow it."""

from collections import Counter
from itertools import product
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.integrate import quad
from tiny import AUTOREGRESSIVE, normal, small_network
from torch import Tensor

from graphite_gen.autoregressive import structure
from graphite_gen.autoregressive.distribution import AutoregressiveGraphs
from graphite_gen.autoregressive.heads import AttributeNoise, WeightHead, WeightInputs
from graphite_gen.data.batch import GraphBatch, node_mask
from graphite_gen.data.edge_states import arc_codes, transposed
from graphite_gen.training.model import GraphNetwork

KINDS: dict[str, dict[str, Any]] = {
    "node labels": {"node_labels": 2},
    "edge labels": {"edge_labels": 2},
    "directed": {"directed": True},
    "directed with labels": {"directed": True, "edge_labels": 2},
    "all": {"node_labels": 2, "edge_labels": 2, "directed": False},
}


@pytest.fixture(params=["short rows", "long rows"], autouse=True)
def long_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decode rows of more than one candidate by blocks, in half of the tests."""
    if request.param == "long rows":
        monkeypatch.setattr(structure, "LONG_ROW", 1)
        monkeypatch.setattr(structure, "BLOCK", 2)


def network(**settings: Any) -> GraphNetwork:
    return small_network(**AUTOREGRESSIVE, scale=0.7, **settings)


def conditional(model: GraphNetwork, graphs: int, nodes: int) -> AutoregressiveGraphs:
    """The distribution of graphs of a size, all with the same latents."""
    z = normal(1, nodes, 2, seed=1).expand(graphs, -1, -1)

    return AutoregressiveGraphs(model.decoder, z, z[..., :0], torch.full((graphs,), nodes))


def every_graph(model: GraphNetwork, nodes: int) -> GraphBatch:
    """Every graph on some nodes with every combination of labels and states."""
    config, attributes = model.config, model.decoder.attributes
    pairs = [(j, i) for j in range(nodes) for i in range(j)]
    back = transposed(config.edge_labels, config.directed)
    adjs, states, labels = [], [], []
    for own in product(range(max(config.node_labels, 1)), repeat=nodes):
        for codes in product(range(max(attributes.states, 1) + 1), repeat=len(pairs)):
            adj, state = np.zeros((nodes, nodes)), np.zeros((nodes, nodes), dtype=np.int64)
            for (j, i), code in zip(pairs, codes, strict=True):
                if code:
                    adj[i, j] = adj[j, i] = 1
                    state[j, i] = code - 1
                    state[i, j] = back[code - 1] if len(back) else 0
            adjs.append(adj)
            states.append(state)
            labels.append(own)

    return GraphBatch(
        torch.tensor(np.array(adjs)),
        torch.ones(len(adjs), nodes, dtype=torch.bool),
        torch.zeros(len(adjs), nodes, 0),
        torch.tensor(labels) if config.node_labels else None,
        torch.tensor(np.array(states)) if attributes.states else None,
    )


def noise_of(model: GraphNetwork, graphs: int, nodes: int, seed: int = 0) -> tuple[Tensor, AttributeNoise]:
    generator = torch.Generator().manual_seed(seed)
    uniform, states, components = (torch.rand(graphs, nodes, nodes, generator=generator) for _ in range(3))
    labels = torch.rand(graphs, nodes, generator=generator)

    return uniform, AttributeNoise(labels, states, components, torch.randn(graphs, nodes, nodes, generator=generator))


def key(graphs: GraphBatch, index: int) -> tuple[Any, ...]:
    parts = (graphs.adj, graphs.labels, graphs.states)

    return tuple(tuple(part[index].flatten().tolist()) for part in parts if part is not None)


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_probabilities_of_all_attributed_graphs_sum_to_one(kind: str) -> None:
    model = network(**KINDS[kind])
    graphs = every_graph(model, 3)

    parts = conditional(model, len(graphs.adj), 3).log_probs(graphs)

    assert sum(parts.values()).exp().sum().item() == pytest.approx(1, abs=1e-10)
    optional = {"labels": "node_labels", "types": "edge_labels"}
    assert {*parts} == {"structure", *(name for name, setting in optional.items() if setting in KINDS[kind])}
    for name, part in parts.items():
        assert part.std() > 0.1, name


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_samples_follow_the_distribution(kind: str) -> None:
    model, draws = network(**KINDS[kind]), 6_000
    graphs = every_graph(model, 3)
    expected = draws * conditional(model, len(graphs.adj), 3).log_prob_of(graphs).exp().numpy()
    uniform, noise = noise_of(model, draws, 3)

    sampled = conditional(model, draws, 3).sample_graphs(uniform, noise=noise)

    counts = Counter(key(sampled, index) for index in range(draws))
    observed = np.array([counts[key(graphs, index)] for index in range(len(expected))])
    assert observed.sum() == draws
    large = expected > 5
    statistic = ((observed - expected)[large] ** 2 / expected[large]).sum()
    assert statistic < large.sum() + 5 * np.sqrt(2 * large.sum())


@pytest.mark.parametrize("kind", ["positive", "real", "count"])
@torch.no_grad()
def test_weights_have_a_density(kind: str) -> None:
    head = network(weights=kind, edge_labels=2).decoder.edge_weight
    assert head is not None
    head.standardise_like(torch.tensor([2.0, 3.0, 3.0, 5.0, 9.0]))
    one = WeightInputs(
        normal(1, 8, seed=2), normal(1, 8, seed=3), torch.tensor([[2, 30]]), torch.tensor([1]), torch.ones(1, 6)
    )

    def density(weight: float) -> float:
        return float(head.log_prob(one, torch.tensor([weight])).exp())

    if kind == "count":
        total = sum(density(weight) for weight in range(4000))
    else:
        total = quad(density, 0 if kind == "positive" else -200, 2000 if kind == "positive" else 200, limit=2000)[0]
    assert total == pytest.approx(1, abs=2e-3)

    draws = 20_000
    many = WeightInputs(*(part.expand(draws, *part.shape[1:]) for part in one))
    generator = torch.Generator().manual_seed(0)
    sampled = head.sample(many, torch.rand(draws, generator=generator), torch.randn(draws, generator=generator))
    for low, high in ((2, 4), (4, 8)):
        if kind == "count":
            mass = sum(density(weight) for weight in range(low, high))
        else:
            mass = quad(density, low, high, limit=500)[0]
        inside = ((sampled >= low) & (sampled < high)).double().mean().item()
        assert inside == pytest.approx(mass, abs=5 * np.sqrt(mass / draws) + 1e-3)
        assert mass > 0.02


@pytest.mark.parametrize("settings", [{}, {"edge_labels": 2}, {"directed": True, "edge_labels": 2}])
@torch.no_grad()
def test_weights_are_given_the_same_in_the_training_pass_and_by_the_sampler(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, graphs, nodes = network(weights="positive", **settings), 200, 6
    uniform, noise = noise_of(model, graphs, nodes)
    seen: dict[str, list[Tensor]] = {"sample": [], "log_prob": []}
    for name, calls in seen.items():
        original = getattr(WeightHead, name)

        def recorded(
            self: WeightHead, inputs: WeightInputs, *rest: Tensor, own: Any = original, to: Any = calls
        ) -> Any:
            to.append(torch.cat([part.reshape(len(part), -1).double() for part in inputs], -1))
            return own(self, inputs, *rest)

        monkeypatch.setattr(WeightHead, name, recorded)

    sampled = conditional(model, graphs, nodes).sample_graphs(uniform, noise=noise)
    conditional(model, graphs, nodes).log_probs(sampled)

    first, second = (torch.cat(calls) for calls in seen.values())
    assert len(first) == len(second) > 20
    assert np.allclose(*(np.array(sorted(rows.tolist())) for rows in (first, second)), atol=1e-6)
    assert sampled.weights is not None
    assert ((sampled.weights > 0).any(0)).any()
    if not settings.get("directed"):
        assert torch.equal(sampled.weights, sampled.weights.mT)


@torch.no_grad()
def test_directed_samples_can_be_acyclic() -> None:
    model, draws, nodes = network(directed=True, edge_labels=2), 200, 7
    uniform, noise = noise_of(model, draws, nodes)

    free, acyclic = (
        conditional(model, draws, nodes).sample_graphs(uniform, noise=noise, acyclic=acyclic)
        for acyclic in (False, True)
    )

    def is_dag(graphs: GraphBatch, index: int) -> bool:
        assert graphs.states is not None
        forward, _ = arc_codes(graphs.states[index].numpy(), 2)
        arcs = np.argwhere((graphs.adj[index].numpy() > 0) & (forward > 0))
        return nx.is_directed_acyclic_graph(nx.DiGraph(arcs.tolist()))

    assert all(is_dag(acyclic, index) for index in range(draws))
    assert not all(is_dag(free, index) for index in range(draws))
    assert acyclic.adj.sum() > 100


@pytest.mark.parametrize("kind", KINDS)
def test_every_attribute_is_read_by_what_follows_it(kind: str) -> None:
    model = network(**KINDS[kind])
    graphs = every_graph(model, 3)
    found = conditional(model, len(graphs.adj), 3).log_probs(graphs)["structure"]

    for name, part in model.decoder.named_parameters():
        if name.endswith(("embedding.weight", "message.weight", "update.weight")):
            with torch.no_grad():
                before = part.clone()
                part.zero_()
                changed = conditional(model, len(graphs.adj), 3).log_probs(graphs)["structure"]
                part.copy_(before)
            assert (changed - found).abs().max() > 1e-3, name


def test_labels_reach_the_encoder() -> None:
    model = small_network(decoder="autoregressive", encoder="residual", node_labels=2, scale=0.7)
    mask = node_mask(torch.tensor([4]), 4)
    adj = torch.ones(1, 4, 4) - torch.eye(4)
    noise = normal(1, 4, model.noise_features)

    first, second = (
        model.encode(GraphBatch(adj, mask, adj[..., :0], torch.tensor([labels])), noise).mu
        for labels in ([0, 1, 0, 1], [1, 1, 0, 1])
    )

    assert (first - second).abs().max() > 1e-3
