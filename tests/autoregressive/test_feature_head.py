"""Generated node features: densities are normalised, samples follow them, and every input of a feature is read."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import kstest
from tiny import AUTOREGRESSIVE, normal, small_network
from torch import Tensor

from graphite_gen.autoregressive.distribution import AutoregressiveGraphs
from graphite_gen.autoregressive.feature_head import FeatureHead, FeatureInputs, feature_statistics
from graphite_gen.autoregressive.heads import AttributeNoise
from graphite_gen.data.batch import GraphBatch, node_mask
from graphite_gen.training.model import GraphNetwork

PATH = torch.tensor([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])


def network(*kinds: str, **settings: Any) -> GraphNetwork:
    model = small_network(**AUTOREGRESSIVE, scale=0.7, feature_kinds=kinds, **settings)
    head = model.decoder.node_feature
    assert head is not None
    # Scales differ, and linear effects, which start at zero, are trained.
    head.standardise_like(torch.tensor([[2.0], [3.0], [5.0]]) * torch.arange(1, len(kinds) + 1))
    with torch.no_grad():
        head.direct.copy_(0.3 * normal(*head.direct.shape, seed=5))

    return model


def conditional(model: GraphNetwork, graphs: int, sizes: list[int]) -> AutoregressiveGraphs:
    z = normal(1, max(sizes), 2, seed=1).expand(graphs, -1, -1)

    return AutoregressiveGraphs(model.decoder, z, z[..., :0], torch.tensor(sizes).expand(graphs))


def featured(adj: Tensor, values: Tensor) -> GraphBatch:
    graphs, nodes = len(values), len(adj)

    return GraphBatch(
        adj.expand(graphs, -1, -1),
        torch.ones(graphs, nodes, dtype=torch.bool),
        torch.zeros(graphs, nodes, 0),
        features=values,
    )


@pytest.mark.parametrize("kind", ["positive", "real", "count", "integer"])
@torch.no_grad()
def test_one_column_of_two_nodes_has_a_density(kind: str) -> None:
    model, adj = network(kind), PATH[:2, :2]

    assert model.decoder.node_feature is not None
    if kind == "count":
        # Without large counts, of which there are too many pairs.
        model.decoder.node_feature.scale.mul_(0.3)
    # Whole numbers are summed over, and others integrated, positive ones over their logarithms.
    if kind in ("count", "integer"):
        grid = values = torch.arange(0 if kind == "count" else -40, 120 if kind == "count" else 60).double()
    else:
        grid = torch.linspace(-8, 10, 361) if kind == "positive" else torch.linspace(-40, 50, 451)
        values = grid.exp() if kind == "positive" else grid
    slope = (values if kind == "positive" else torch.ones_like(values)) * (grid[1] - grid[0])
    every = torch.cartesian_prod(values, values).unsqueeze(-1)

    found = conditional(model, len(every), [2]).log_probs(featured(adj, every))["features"]

    total = (found.exp() * torch.cartesian_prod(slope, slope).prod(-1)).sum()
    assert total.item() == pytest.approx(1, abs=5e-3)


@torch.no_grad()
def test_two_columns_of_one_node_have_a_density() -> None:
    model, one = network("real", "positive"), torch.zeros(1, 1)
    first, logs = torch.linspace(-30, 40, 161), torch.linspace(-6, 9, 161)
    every = torch.cartesian_prod(first, logs.exp()).unsqueeze(1)

    found = conditional(model, len(every), [1]).log_probs(featured(one, every))["features"]

    slope = torch.cartesian_prod(torch.full_like(first, 70 / 160), logs.exp() * 15 / 160).prod(-1)
    assert (found.exp() * slope).sum().item() == pytest.approx(1, abs=5e-3)


@torch.no_grad()
def test_samples_follow_the_density() -> None:
    model, draws = network("real", "positive"), 4000
    head = model.decoder.node_feature
    assert head is not None
    state, degree = normal(1, 8, seed=2), torch.tensor([3])
    statistics = 0.5 * normal(1, 10, seed=3)
    generator = torch.Generator().manual_seed(0)
    uniform, noise = torch.rand(draws, 2, generator=generator), torch.randn(draws, 2, generator=generator)

    values, own = head.sample(
        state.expand(draws, -1), degree.expand(draws), statistics.expand(draws, -1), uniform, noise
    )

    assert torch.allclose(own, head.standardised(values))

    # Probability integral transforms, over a fine grid, are uniform: of the first column, and of the second given it.
    for column, grid in ((0, torch.linspace(-40, 50, 3001)), (1, torch.linspace(-8, 12, 3001).exp())):
        widths, found = grid.diff(), []
        for row in values[:100]:
            x = row.repeat(len(grid) - 1, 1)
            x[:, column] = (grid[1:] + grid[:-1]) / 2
            inputs = FeatureInputs(*(part.expand(len(x), *part.shape[1:]) for part in (state, degree, statistics)), x)
            inputs = inputs._replace(own=head.standardised(x))
            mass = head.log_prob(inputs, x)[:, column].exp() * widths
            found.append(float(mass[x[:, column] <= row[column]].sum()))
            assert mass.sum().item() == pytest.approx(1, abs=5e-3)
        assert kstest(found, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("settings", [{}, {"node_labels": 2, "weights": "positive"}, {"directed": True}])
@torch.no_grad()
def test_features_are_given_the_same_in_the_training_pass_and_by_the_sampler(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = ("real", "count", "positive")
    model, graphs, nodes = network(*kinds, **settings), 40, 6
    generator = torch.Generator().manual_seed(0)
    rand = [torch.rand(graphs, nodes, nodes, generator=generator) for _ in range(3)]
    noise = AttributeNoise(
        torch.rand(graphs, nodes, generator=generator),
        rand[1],
        rand[2],
        torch.randn(graphs, nodes, nodes, generator=generator),
        torch.rand(graphs, nodes, 3, generator=generator),
        torch.randn(graphs, nodes, 3, generator=generator),
    )
    drawn: list[Tensor] = []
    original = FeatureHead.sample

    def recorded(self: FeatureHead, state: Tensor, degree: Tensor, statistics: Tensor, *rest: Tensor) -> Any:
        values, own = original(self, state, degree, statistics, *rest)
        drawn.append(self.log_prob(FeatureInputs(state, degree, statistics, own), values).sum())
        return values, own

    monkeypatch.setattr(FeatureHead, "sample", recorded)
    sizes = [nodes - index % 3 for index in range(graphs)]
    z = normal(graphs, nodes, 2, seed=1)
    distribution = AutoregressiveGraphs(model.decoder, z, z[..., :0], torch.tensor(sizes))

    sampled = distribution.sample_graphs(rand[0], noise=noise)
    found = distribution.log_probs(sampled)["features"]

    assert sampled.features is not None
    assert sampled.adj.sum() > 50
    assert found.sum().item() == pytest.approx(torch.stack(drawn).sum().item(), abs=1e-8)
    assert (sampled.features[~node_mask(torch.tensor(sizes), nodes)] == 0).all()


def parts_read(model: GraphNetwork, values: Tensor, adj: Tensor = PATH) -> Tensor:
    """The log-densities of every feature of the last node of a graph, with shape (C,)."""
    head = model.decoder.node_feature
    assert head is not None
    distribution, seen = conditional(model, 1, [3]), []
    original = head.log_prob
    head.log_prob = lambda *inputs: seen.append(original(*inputs)) or seen[0]  # type: ignore[method-assign]
    distribution.log_probs(featured(adj, values.unsqueeze(0)))
    del head.log_prob

    return seen[0][-1]


@pytest.mark.parametrize("way", ["network", "linear"])
@torch.no_grad()
def test_a_feature_reads_columns_before_it_and_earlier_nodes_and_no_others(way: str) -> None:
    model = network("real", "real")
    head = model.decoder.node_feature
    assert head is not None
    # Each of the two ways to read suffices.
    if way == "network":
        head.direct.zero_()
    else:
        head.statistics.weight.zero_()
        head.previous.weight.zero_()
    values = normal(3, 2, seed=7)
    before = parts_read(model, values)

    def changed(node: int, column: int) -> Tensor:
        other = values.clone()
        other[node, column] += 1.0
        return (parts_read(model, other) - before).abs() > 1e-6

    assert changed(2, 0).tolist() == [True, True]
    assert changed(2, 1).tolist() == [False, True]
    # Node 1 is a neighbour of node 2, node 0 is an earlier node.
    assert changed(1, 0).all()
    assert changed(0, 1).all()


@torch.no_grad()
def test_neighbours_differ_from_other_earlier_nodes() -> None:
    values = torch.tensor([[[1.0], [3.0], [0.0]]])
    near = torch.tensor([[[False, False, False], [False] * 3, [False, True, False]]])

    mean, square, count = feature_statistics(values, near)[0, 2].tolist()

    assert (mean, square, count) == pytest.approx((3.0, 9.0, np.log(2)))
    assert feature_statistics(values, near)[0, 0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("part", ["state", "degree", "log_degree", "statistics", "previous", "column"])
@torch.no_grad()
def test_every_part_of_the_head_changes_its_densities(part: str) -> None:
    model = network("real", "real")
    head = model.decoder.node_feature
    assert head is not None
    values = normal(3, 2, seed=7)
    before = parts_read(model, values)

    getattr(head, part).weight.zero_()

    assert (parts_read(model, values) - before).abs().max() > 1e-4


@torch.no_grad()
def test_states_and_degrees_reach_the_head() -> None:
    model = network("real", "real")
    head = model.decoder.node_feature
    assert head is not None
    inputs = FeatureInputs(normal(1, 8, seed=2), torch.tensor([2]), torch.zeros(1, 10), torch.zeros(1, 2))
    values = torch.zeros(1, 2)
    before = head.log_prob(inputs, values)

    for other in (inputs._replace(state=inputs.state + 0.5), inputs._replace(degree=torch.tensor([40]))):
        assert (head.log_prob(other, values) - before).abs().min() > 1e-4


@torch.no_grad()
def test_weights_are_given_the_features_of_both_ends() -> None:
    model = network("real", weights="real")
    values = normal(1, 3, 1, seed=7)
    weights = (PATH * 0.5).unsqueeze(0)

    def part(features: Tensor) -> float:
        graphs = replace(featured(PATH, features), weights=weights)
        return float(conditional(model, 1, [3]).log_probs(graphs)["weights"])

    for node in range(3):
        other = values.clone()
        other[0, node] += 1.0
        assert abs(part(other) - part(values)) > 1e-6


@torch.no_grad()
def test_the_baseline_is_one_normal_distribution_per_column() -> None:
    head = network("real", "positive").decoder.node_feature
    assert head is not None
    values = torch.tensor([[1.0, 2.0], [0.5, 9.0]])
    m, s = head.location, head.scale

    found = head.baseline(values)

    first = torch.distributions.Normal(m[0], s[0]).log_prob(values[:, 0])
    second = torch.distributions.LogNormal(m[1], s[1]).log_prob(values[:, 1])
    assert torch.allclose(found, torch.stack([first, second], -1))
