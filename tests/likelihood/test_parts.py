"""Parts of the NLL of graphs with attributes, compared with sums over all orderings and with counts."""

import math
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import norm
from tiny import autoregressive_model

from graphite_gen.data.batch import collate
from graphite_gen.data.schema import AttributeSchema
from graphite_gen.graph import SimpleGraph
from graphite_gen.likelihood import parts
from graphite_gen.likelihood.parts import attribute_nats, baseline_nats
from graphite_gen.training.checkpoint import TrainedModel

UNDIRECTED = SimpleGraph(
    4,
    np.array([[0, 1], [0, 2], [1, 2], [2, 3]], dtype=np.int32),
    np.array([0.5, 2.0, 1.5, 4.0]),
    node_attributes={"kind": list("aaba")},
    edge_attributes={"bond": [1, 2, 1, 1]},
)
ARCS = np.array([[0, 1], [1, 0], [1, 2], [3, 2]], dtype=np.int32)
DIRECTED = replace(UNDIRECTED, edges=ARCS, directed=True)


def model_of(graph: SimpleGraph, **names: Any) -> TrainedModel:
    """A model of the attributes of a graph, all of whose weights matter but those of latents."""
    schema = AttributeSchema.of([graph], **names)
    model = autoregressive_model("uniform", 1.0, graphs=[graph.skeleton()], **schema.settings())
    head = model.network.decoder.edge_weight
    if head is not None:
        head.standardise_like(torch.from_numpy(graph.weights))

    return replace(model, schema=schema)


ALL: dict[str, Any] = {"node_label": "kind", "edge_label": "bond", "weighted": True}


@pytest.mark.parametrize("graph", [UNDIRECTED, DIRECTED])
@torch.no_grad()
def test_parts_are_means_over_orderings_by_their_probability(
    graph: SimpleGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "SAMPLES", 6000)
    model = model_of(graph, **ALL)
    batch = collate([model.read(graph)])
    orders = torch.tensor(list(permutations(range(4))))
    every = batch.each(lambda part: part.expand(len(orders), *part.shape[1:])).reordered(orders)
    z = torch.zeros(len(orders), 4, 1)
    terms = model.network.decode_autoregressive(z, every.x, every.sizes).log_probs(every)
    posterior = sum(terms.values()).softmax(0)
    expected = {name: -float(posterior @ part) for name, part in terms.items() if name != "structure"}

    found = attribute_nats(model, batch, 0, 0)

    assert [*found] == ["labels", "types", "weights"]
    assert found == pytest.approx(expected, rel=0.01)
    # A plain mean over orderings is another number.
    assert any(abs(-float(part.mean()) / expected[name] - 1) > 0.03 for name, part in terms.items() if name in expected)


def test_the_parts_of_an_encoder_are_weighted_by_its_latents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Latents from any proposal give the same means, if they are weighted."""
    names: dict[str, Any] = {"node_label": "kind"}
    graph = replace(SimpleGraph.from_pairs(2, [(0, 1)]), node_attributes={"kind": ["a", "b"]})
    schema = AttributeSchema.of([graph], **names)
    model = autoregressive_model("uniform", 1.0, graphs=[graph], encoder="residual", **schema.settings())
    model = replace(model, schema=schema)
    with torch.no_grad():
        model.network.decoder.products.weight.fill_(1.5)
        model.network.decoder.others.weight.fill_(0.3)
        for parameter in model.network.encoder.stack.out.parameters():  # type: ignore[union-attr]
            parameter.mul_(0.3)
        # Labels follow the latents.
        model.network.decoder.node_label.hidden.weight.mul_(1.5)
        model.network.decoder.node_label.out.weight.mul_(1.5)
    batch = collate([model.read(graph)])
    monkeypatch.setattr(parts, "SAMPLES", 20_000)

    found = attribute_nats(model, batch, 0, 0)["labels"]

    at, mass = np.polynomial.hermite_e.hermegauss(24)
    grid = torch.from_numpy(np.stack(np.meshgrid(at, at, indexing="ij"), -1).reshape(-1, 2, 1))
    log_mass = torch.from_numpy(np.log(np.outer(mass, mass) / mass.sum() ** 2).ravel())
    values, weights = [], []
    with torch.no_grad():
        for order in ([0, 1], [1, 0]):
            many = batch.each(lambda part: part.expand(len(grid), *part.shape[1:]))
            many = many.reordered(torch.tensor([order] * len(grid)))
            terms = model.network.decode_autoregressive(grid, many.x, many.sizes).log_probs(many)
            values.append(terms["labels"])
            weights.append(sum(terms.values()) + log_mass)
    plain = torch.cat([part + log_mass for part in torch.zeros(2, len(grid))]).softmax(0)
    exact = -float(torch.cat(weights).softmax(0) @ torch.cat(values))
    assert found == pytest.approx(exact, rel=0.02)
    assert abs(-float(plain @ torch.cat(values)) / exact - 1) > 0.05


def test_baselines_are_those_of_independent_values() -> None:
    graph = UNDIRECTED
    model = model_of(graph, **ALL)

    found = baseline_nats(model, model.read(graph))

    assert [*found] == ["structure", "labels", "types", "weights"]
    assert found["structure"] == pytest.approx(model.sizes.baseline(graph))
    # Three of four nodes and edges have the first value; each count is raised by a half.
    nats = -3 * math.log(3.5 / 5) - math.log(1.5 / 5)
    assert (found["labels"], found["types"]) == pytest.approx((nats, nats))
    logs = np.log(graph.weights)
    density = norm.logpdf(logs, logs.mean(), logs.std(ddof=1)) - logs
    assert found["weights"] == pytest.approx(-density.sum())


def test_directions_have_a_baseline_within_the_structure() -> None:
    model = model_of(DIRECTED, **ALL)

    found = baseline_nats(model, model.read(DIRECTED))

    skeleton = model.sizes.baseline(DIRECTED.skeleton())
    # One of three edges goes both ways, and the others one of two ways.
    ways = -2 * math.log(2.5 / 4) - math.log(1.5 / 4) + 2 * math.log(2)
    assert found["structure"] == pytest.approx(skeleton + ways)
    # Every arc has a type and a weight.
    assert found["types"] == pytest.approx(-3 * math.log(3.5 / 5) - math.log(1.5 / 5))
    logs = np.log(DIRECTED.weights)
    assert found["weights"] == pytest.approx(-(norm.logpdf(logs, logs.mean(), logs.std(ddof=1)) - logs).sum())


def test_graphs_without_attributes_have_a_structure_only() -> None:
    graph = SimpleGraph.from_pairs(3, [(0, 1)])
    model = autoregressive_model(graphs=[graph])

    assert baseline_nats(model, graph) == {"structure": model.sizes.baseline(graph)}
