"""Graphs with node labels, edge states and weights: the distribution is normalised, and samples follow it."""

from collections import Counter
from itertools import product
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import norm
from tiny import AUTOREGRESSIVE, normal, small_network
from torch import Tensor

from graphite_gen.autoregressive import structure
from graphite_gen.autoregressive.distribution import AutoregressiveGraphs
from graphite_gen.autoregressive.feature_head import FeatureHead
from graphite_gen.autoregressive.heads import (
    MOST_DEGREE,
    Arcs,
    AttributeNoise,
    Attributes,
    LabelHead,
    StateHead,
    WeightHead,
    WeightInputs,
    draw,
)
from graphite_gen.data.batch import GraphBatch, node_mask
from graphite_gen.data.edge_states import arc_codes, count_states, transposed
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


def silu(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return x / (1 + np.exp(-x))


def dense(layer: torch.nn.Module, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """A linear layer as a matrix product."""
    parameters = {name: value.detach().numpy() for name, value in layer.named_parameters()}

    return np.asarray(x @ parameters["weight"].T + parameters.get("bias", 0.0))


def random_head(head: torch.nn.Module) -> None:
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator))


def test_logits_of_labels_and_states_are_networks_of_all_they_are_given() -> None:
    labels, states = LabelHead(3, 8), StateHead(5, 8)
    for head in (labels, states):
        random_head(head)
    query, old, context = (normal(4, 8, seed=seed).numpy() for seed in (1, 2, 3))

    of_labels = dense(labels.out, silu(dense(labels.hidden, query)))
    first = silu(dense(states.query, query) + dense(states.old, old) + context)
    of_states = dense(states.out, silu(dense(states.hidden, first)))

    assert labels.logits(torch.from_numpy(query)).detach().numpy() == pytest.approx(of_labels)
    found = states.logits(*map(torch.from_numpy, (query, old, context)))
    assert found.detach().numpy() == pytest.approx(of_states)


@torch.no_grad()
def mixture(head: WeightHead, inputs: WeightInputs) -> tuple[NDArray[np.float64], ...]:
    """Probabilities, means and standard deviations of the components, one arc at a time."""
    rows = []
    for source, target, degrees, kind, statistics in zip(*(part.numpy() for part in inputs), strict=True):
        sums, counts = statistics[:3], statistics[3:]
        features = np.concatenate([sums / (1 + counts), np.log(1 + counts) / 2, np.log(1 + degrees)])
        tables = (head.source_degree, head.target_degree, head.arc)
        places = (min(degrees[0], MOST_DEGREE), min(degrees[1], MOST_DEGREE), kind)
        hidden = dense(head.source, source) + dense(head.target, target) + dense(head.statistics, features)
        hidden = hidden + sum(table.weight[at].numpy() for table, at in zip(tables, places, strict=True))
        logits, mean, log_std = np.split(dense(head.out, silu(dense(head.hidden, silu(hidden)))), 3)
        rows.append((np.exp(logits) / np.exp(logits).sum(), mean, np.exp(5 * np.tanh(log_std / 5))))

    return tuple(np.array(part) for part in zip(*rows, strict=True))


@pytest.mark.parametrize("kind", ["positive", "real", "count"])
@torch.no_grad()
def test_weights_have_the_mixture_of_the_formula(kind: str) -> None:
    def uncoded(weights: Tensor) -> NDArray[np.float64]:
        return weights.numpy() if kind == "real" else np.log(weights.numpy() + 0.5 * (kind == "count"))

    head = WeightHead(Attributes(edge_labels=2, directed=True, weights=kind), 8)
    random_head(head)
    training, count = torch.tensor([2.0, 3.0, 3.0, 5.0, 9.0]), 40
    head.standardise_like(training)
    location, scale = (float(f(uncoded(training))) for f in (np.mean, lambda values: np.std(values, ddof=1)))
    generator = torch.Generator().manual_seed(1)
    inputs = WeightInputs(
        normal(count, 8, seed=2),
        normal(count, 8, seed=3),
        torch.randint(0, 60, (count, 2), generator=generator),
        torch.randint(0, 4, (count,), generator=generator),
        torch.cat([3 * normal(count, 3, seed=4), torch.randint(0, 9, (count, 3), generator=generator).double()], -1),
    )
    values = torch.randint(0, 12, (count,), generator=generator).double() + (0 if kind == "count" else 0.3)

    def density(value: NDArray[np.float64], mean: Any, std: Any) -> NDArray[np.float64]:
        mean, std = location + scale * mean, scale * std
        if kind == "count":
            with np.errstate(divide="ignore"):
                return norm.cdf(np.log(value + 1), mean, std) - norm.cdf(np.log(value), mean, std)
        return norm.pdf(value if kind == "real" else np.log(value), mean, std) / (1 if kind == "real" else value)

    chances, means, deviations = mixture(head, inputs)
    column = values.numpy()[:, None]
    expected = np.log((chances * density(column, means, deviations)).sum(1))

    assert head.log_prob(inputs, values).numpy() == pytest.approx(expected, rel=1e-6)
    assert head.baseline(values).numpy() == pytest.approx(np.log(density(values.numpy(), 0, 1)))
    assert head.standardised(values).numpy() == pytest.approx((uncoded(values) - location) / scale)

    uniform, noise = torch.rand(count, generator=generator), normal(count, seed=6)
    chosen = (chances.cumsum(1) < uniform.numpy()[:, None]).sum(1)
    rows = np.arange(count)
    drawn = location + scale * (means[rows, chosen] + deviations[rows, chosen] * noise.numpy())
    drawn = {"real": drawn, "positive": np.exp(drawn), "count": np.floor(np.exp(np.minimum(drawn, 30)))}[kind]
    assert head.sample(inputs, uniform, noise).numpy() == pytest.approx(drawn)


@pytest.mark.parametrize("unit", [1e-60, 1e-9, 1e60])
@pytest.mark.parametrize("on", ["edges", "nodes"])
def test_real_numbers_are_standardised_in_any_unit(unit: float, on: str) -> None:
    values = torch.tensor([-2.0, 0.5, 0.25, 3.0], dtype=torch.float64)
    head = WeightHead(Attributes(weights="real"), 8) if on == "edges" else FeatureHead(("real",), 8)
    values = values if on == "edges" else values.unsqueeze(-1)

    head.standardise_like(values)
    expected, densities = head.standardised(values), head.baseline(values)
    head.standardise_like(values * unit)

    assert head.standardised(values * unit).numpy() == pytest.approx(expected.numpy())
    assert (head.baseline(values * unit) + np.log(unit)).numpy() == pytest.approx(densities.numpy())


def test_constant_and_single_weights_have_a_scale() -> None:
    head = WeightHead(Attributes(weights="real"), 8)
    for values in ([4.0, 4.0, 4.0], [4.0]):
        head.standardise_like(torch.tensor(values))
        assert (head.location.item(), head.scale.item()) == (4, 1e-3)


@torch.no_grad()
def test_extreme_weights_have_finite_probabilities_and_gradients() -> None:
    head = WeightHead(Attributes(weights="count"), 8)
    head.standardise_like(torch.tensor([1.0, 2.0, 4.0]))
    for value in (0.0, 1.0, 1e6, 2.0**31):
        low, high = (
            (np.log(end) - head.location.item()) / head.scale.item() for end in (max(value, 1e-300), value + 1)
        )
        inside = norm.logsf(low) + np.log1p(-np.exp(norm.logsf(high) - norm.logsf(low)))
        exact = inside if value else norm.logcdf(high)
        assert head.baseline(torch.tensor([value])).item() == pytest.approx(exact, rel=1e-6)
    one = WeightInputs(
        torch.zeros(1, 8), torch.zeros(1, 8), torch.zeros(1, 2, dtype=torch.int64), torch.tensor([0]), torch.zeros(1, 6)
    )
    noise = torch.tensor([0.5]), torch.tensor([1e4])
    assert head.sample(one, *noise).item() == np.floor(np.exp(30))
    with torch.enable_grad():
        head.log_prob(one, torch.tensor([0.0])).sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in head.parameters() if p.grad is not None)
    for kind in ("positive", "real"):
        other = WeightHead(Attributes(weights=kind), 8)
        value = other.sample(one, *noise)
        assert torch.isfinite(value).all()
        assert value.item() > 1e3


def test_components_start_apart_around_the_mean() -> None:
    head = WeightHead(Attributes(weights="real"), 8)
    zero = [torch.zeros(1, 8), torch.zeros(1, 8), torch.zeros(1, 2, dtype=torch.int64), torch.tensor([0])]
    _, means, deviations = mixture(head, WeightInputs(*zero, torch.zeros(1, 6)))  # type: ignore[arg-type]

    assert means[0].mean() == pytest.approx(0, abs=0.3)
    assert (np.diff(means[0]) > 0.1).all()
    assert deviations == pytest.approx(1, abs=0.3)


@pytest.mark.parametrize("labels", [0, 2])
@pytest.mark.parametrize("directed", [False, True])
def test_arcs_are_listed_edge_after_edge_with_their_kinds_and_earlier_values(labels: int, directed: bool) -> None:
    rng, kinds = np.random.default_rng(3), max(labels, 1)
    edges = [(g, j, i) for j in range(5) for g in range(3) for i in range(j) if rng.random() < 0.7]
    graph, new, old = np.array(edges).T
    states = rng.integers(0, max(count_states(labels, directed), 1), len(edges))

    arcs = Arcs.of(graph, new, old, states, Attributes(edge_labels=labels, directed=directed))
    values = rng.normal(size=len(arcs.graph))
    statistics = arcs.statistics(values)

    expected = []
    for (g, j, i), state in zip(edges, states.tolist(), strict=True):
        forward, backward = divmod(state + 1, kinds + 1)
        if not directed:
            expected.append((g, j, i, state))
            continue
        expected += [(g, j, i, forward - 1)] * (forward > 0) + [(g, i, j, kinds + backward - 1)] * (backward > 0)
    assert list(zip(*(part.tolist() for part in arcs), strict=True)) == expected
    for place, (g, i, j, _) in enumerate(expected):
        before = [(*arc[1:3], value) for arc, value in zip(expected[:place], values, strict=False) if arc[0] == g]
        groups = [[v for _, _, v in before], *([v for *ends, v in before if node in ends] for node in (i, j))]
        assert statistics[place] == pytest.approx([*map(sum, groups), *map(len, groups)])


def test_classes_are_drawn_by_inversion() -> None:
    chances = torch.tensor([0.0, 0.2, 0.0, 0.5, 0.3])
    uniform = torch.tensor([0.0, 0.19, 0.21, 0.45, 0.69, 0.71, 1.0])

    drawn = draw((chances.log() + 3).expand(len(uniform), -1), uniform)

    assert drawn.tolist() == [1, 1, 3, 3, 3, 4, 4]


@torch.no_grad()
def test_a_new_label_changes_its_query_and_a_state_messages_and_updates() -> None:
    """Independent of the rest of the decoder: what heads add is one row of a table for each value."""
    decoder = network(node_labels=2, edge_labels=3).decoder
    old, states = normal(4, 8), torch.tensor([2, 0, 1, 2])
    assert decoder.edge_state is not None
    expected = old + decoder.edge_state.message.weight[states]

    assert torch.equal(decoder.message(old, states), expected)
    owner, terms = torch.zeros(4, dtype=torch.int64), decoder.degree_terms(torch.tensor([4]), torch.ones(4).long())
    _, with_states = decoder.advance(normal(1, 8, seed=1), old, owner, terms, states)
    decoder.edge_state.update.weight.zero_()
    _, without = decoder.advance(normal(1, 8, seed=1), old, owner, terms, states)
    assert (with_states - without).abs().max() > 1e-2
