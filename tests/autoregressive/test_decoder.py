"""The decoder reads latents, node features, the low-rank graph and the structure of the graph so far."""

from dataclasses import replace

import networkx as nx
import pytest
import torch
from tiny import AUTOREGRESSIVE, normal, small_network
from torch import Tensor

from graphite_gen.autoregressive import structure
from graphite_gen.autoregressive.decoder import AutoregressiveDecoder, Draft
from graphite_gen.autoregressive.distribution import AutoregressiveGraphs
from graphite_gen.training.model import build_network

# What is switched off, by setting weights to zero.
PARTS = {
    "latents": ["factor"],
    "entries of the low-rank graph": ["products"],
    "log-odds of the low-rank graph": ["draft_weight"],
    "attention": ["attention_chosen", "attention_earlier"],
    "proximity": ["proximity"],
    "node features": ["features"],
    "path features": ["relation", "nearest"],
    "chosen neighbours of a candidate": ["adjacent"],
    "degree features": ["degree"],
    "degrees in updates": ["new_degree", "update_degree"],
    "triangle features": ["corners"],
    "positions": ["age", "place", "position"],
    "scores": ["scores", "direct"],
    "row so far": ["chosen", "count", "gap"],
    "kinds of candidates": ["kind"],
    "counts": ["graph", "left"],
    "messages": ["others"],
}


@pytest.fixture
def decoder() -> AutoregressiveDecoder:
    """An untrained decoder, none of whose weights are zero."""
    return small_network(**AUTOREGRESSIVE, node_features=2, scale=0.5).decoder


def score(decoder: AutoregressiveDecoder, seed: int = 0) -> Tensor:
    """The log-probabilities of graphs with triangles and long paths, in an ordering, and with padding."""
    graphs = [nx.lollipop_graph(4, 5), nx.gnp_random_graph(8, 0.4, seed=2)]
    adj = torch.zeros(2, 10, 10)
    for row, graph in zip(adj, graphs, strict=True):
        row[: len(graph), : len(graph)] = torch.from_numpy(nx.to_numpy_array(graph))
    z, x = normal(2, 10, 2, seed=seed), normal(2, 10, 2, seed=1)
    with torch.no_grad():
        return AutoregressiveGraphs(decoder, z, x, torch.tensor([9, 8])).log_prob(adj)


@pytest.mark.parametrize("part", PARTS)
def test_log_probabilities_depend_on_every_part(decoder: AutoregressiveDecoder, part: str) -> None:
    before = score(decoder)

    with torch.no_grad():
        for name in PARTS[part]:
            found = getattr(decoder, name)
            for parameter in found.parameters() if isinstance(found, torch.nn.Module) else [found]:
                assert parameter.any()
                parameter.zero_()

    assert ((score(decoder) - before).abs() > 1e-4).all()


def test_log_probabilities_depend_on_the_low_rank_graph(
    decoder: AutoregressiveDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, draft = score(decoder), decoder.draft

    def without_cosines(z: Tensor, x: Tensor, sizes: Tensor) -> Draft:
        found = draft(z, x, sizes)
        return replace(found, factor=found.factor * (torch.arange(found.factor.shape[-1]) == z.shape[-1]))

    monkeypatch.setattr(decoder, "draft", without_cosines)

    assert ((score(decoder) - before).abs() > 1e-4).all()


def test_latents_reach_edges_through_the_low_rank_graph_alone(
    decoder: AutoregressiveDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, fixed = (
        score(decoder),
        decoder.draft(normal(2, 10, 2)[:, :9], normal(2, 10, 2, seed=1)[:, :9], torch.tensor([9, 8])),
    )
    assert ((score(decoder, seed=7) - before).abs() > 1e-4).all()

    monkeypatch.setattr(decoder, "draft", lambda *_: fixed)

    assert torch.allclose(score(decoder, seed=7), before)


@pytest.mark.parametrize("name", ["products", "draft_weight"])
def test_every_column_of_the_low_rank_graph_is_read(decoder: AutoregressiveDecoder, name: str) -> None:
    before, found = score(decoder), getattr(decoder, name)
    weight = found.weight if name == "products" else found
    for column in range(weight.shape[-1]):
        kept = weight[..., column].clone()
        with torch.no_grad():
            weight[..., column] = 0.0
            assert ((score(decoder) - before).abs() > 1e-5).all()
            weight[..., column] = kept


def test_log_probabilities_depend_on_the_refinement_of_latents(decoder: AutoregressiveDecoder) -> None:
    before = score(decoder)
    decoder.skip.weight = 0.0

    assert ((score(decoder) - before).abs() > 1e-4).all()


def test_training_starts_near_the_density() -> None:
    network = build_network(small_network(**AUTOREGRESSIVE).config)
    network.decoder.start_at(-1.5)
    adj = torch.from_numpy(nx.to_numpy_array(nx.path_graph(6))).unsqueeze(0)

    found = network.decode_autoregressive(normal(1, 6, 2), torch.zeros(1, 6, 0), torch.tensor([6])).log_prob(adj)

    edges = torch.distributions.Bernoulli(logits=torch.tensor(-1.5))
    expected = 5 * edges.log_prob(torch.ones(())) + 10 * edges.log_prob(torch.zeros(()))
    assert (found - expected).abs() < 1


def test_dropout_changes_training_alone() -> None:
    network = small_network(**AUTOREGRESSIVE, dropout=0.5, node_features=2)
    before = score(network.decoder)

    assert torch.equal(score(network.decoder), before)
    network.train()
    assert not torch.allclose(score(network.decoder), before)


def test_factors_of_blocks_are_means_over_their_nodes(
    decoder: AutoregressiveDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(structure, "LONG_ROW", 2)
    monkeypatch.setattr(structure, "BLOCK", 3)
    draft = decoder.draft(normal(1, 8, 2), normal(1, 8, 2, seed=1), torch.tensor([7]))

    expected = torch.stack([draft.factor[0, part].mean(0) for part in (slice(0, 3), slice(3, 6), slice(6, 7))])
    assert torch.allclose(draft.of_blocks()[0], expected)
    assert expected.abs().min() > 0


def test_the_first_term_of_the_low_rank_graph_does_not_vanish_in_large_graphs(decoder: AutoregressiveDecoder) -> None:
    z = normal(1, 500, 2)
    draft = decoder.draft(z, torch.zeros(1, 500, 2), torch.tensor([500]))

    first = draft.factor[..., :-1]
    assert torch.isclose(first.square().sum(-1).mean(), torch.ones(()), atol=1e-4)
    assert torch.equal(draft.factor[..., -1], torch.ones(1, 500))
