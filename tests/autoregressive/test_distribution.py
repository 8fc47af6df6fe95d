"""The autoregressive distribution is normalised, and samples follow it, whatever the batch, padding and chunks."""

from collections import Counter

import networkx as nx
import numpy as np
import pytest
import torch
from tiny import AUTOREGRESSIVE, all_graphs, normal, random_graph, small_network
from torch import Tensor
from torch.nn import functional as F

from graphite_gen.autoregressive import distribution, row_sampling, structure
from graphite_gen.autoregressive.decoder import AutoregressiveDecoder
from graphite_gen.autoregressive.decoding import Decoding
from graphite_gen.autoregressive.distribution import AutoregressiveGraphs
from graphite_gen.data.batch import collate
from graphite_gen.graph import SimpleGraph
from graphite_gen.sampling import Planar
from graphite_gen.sampling.feasibility import FeasibleEdges, PlanarRow


@pytest.fixture(params=["short rows", "long rows"], autouse=True)
def long_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Decode rows of more than two candidates by blocks, in half of the tests."""
    if request.param == "long rows":
        monkeypatch.setattr(structure, "LONG_ROW", 2)
        monkeypatch.setattr(structure, "BLOCK", 2)

    return request.param == "long rows"


@pytest.fixture
def decoder() -> AutoregressiveDecoder:
    return small_network(**AUTOREGRESSIVE, node_features=1, scale=0.5).decoder


def graphs_on(nodes: int, padded: int) -> Tensor:
    """Every labelled graph, with shape (2^C(n,2), N, N)."""
    return collate(all_graphs(nodes), padded).adj


def conditional(decoder: AutoregressiveDecoder, sizes: list[int], padded: int) -> AutoregressiveGraphs:
    """The distribution of graphs of these sizes, all with the same latents and features."""
    z, x = (normal(1, padded, width, seed=1).expand(len(sizes), -1, -1) for width in (2, 1))

    return AutoregressiveGraphs(decoder, z, x, torch.tensor(sizes))


@pytest.mark.parametrize(("nodes", "padded"), [(1, 3), (2, 2), (4, 6), (5, 5)])
def test_probabilities_of_all_graphs_sum_to_one(decoder: AutoregressiveDecoder, nodes: int, padded: int) -> None:
    graphs = graphs_on(nodes, padded)

    log_prob = conditional(decoder, [nodes] * len(graphs), padded).log_prob(graphs)

    assert log_prob.exp().sum().item() == pytest.approx(1, abs=1e-10)
    assert nodes < 4 or log_prob.std() > 0.3


def test_samples_follow_the_distribution(decoder: AutoregressiveDecoder) -> None:
    draws = 4_000
    model = conditional(decoder, [4] * draws, 5)
    uniform = torch.rand(draws, 5, 5, generator=torch.Generator().manual_seed(3))
    graphs = graphs_on(4, padded=5)
    expected = draws * conditional(decoder, [4] * 64, 5).log_prob(graphs).exp().detach().numpy()

    with torch.no_grad():
        counts = Counter(tuple(sample.flatten().tolist()) for sample in model.sample(uniform))
    observed = np.array([counts[tuple(graph.flatten().tolist())] for graph in graphs])

    assert observed.sum() == draws
    large = expected > 5
    # Mean 1 and variance 2 per degree of freedom.
    statistic = ((observed - expected)[large] ** 2 / expected[large]).sum()
    assert statistic < large.sum() + 5 * np.sqrt(2 * large.sum())


def decode(model: AutoregressiveGraphs, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Samples node by node, and the sums of their log-probabilities from the logits of the sampler."""
    decoding, total = Decoding(model.decoder, model.z, model.x, model.sizes), torch.zeros(len(uniform))
    for t in range(uniform.shape[-1]):
        live = decoding.start_row()
        edges, logits = decoding.sample_row(uniform[:live, t, :t])
        total[:live] += (torch.where(edges, logits, 0) - F.softplus(logits)).sum(-1)
        decoding.add_node(edges)

    return decoding.adj.to(uniform), total


@pytest.mark.parametrize("window", [1, 3, 32])
@torch.no_grad()
def test_training_pass_and_sampler_agree(
    decoder: AutoregressiveDecoder, window: int, long_rows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = [12, 12, 9, 5, 1]
    model = conditional(decoder, sizes, 12)
    uniform = torch.rand(5, 12, 12, generator=torch.Generator().manual_seed(4))
    whole = model.sample(uniform)
    monkeypatch.setattr(row_sampling, "WINDOW", window)

    adj, log_prob = decode(model, uniform)

    assert torch.equal(model.sample(uniform), whole)
    # Blocks have noise of their own.
    assert torch.equal(adj, whole) or long_rows
    assert adj.sum() > 20
    assert torch.allclose(log_prob, model.log_prob(adj))


@pytest.mark.usefixtures("single_precision")
@torch.no_grad()
def test_training_pass_and_sampler_agree_in_single_precision() -> None:
    decoder = small_network(**AUTOREGRESSIVE, node_features=1, scale=0.3, width=64).decoder
    model = conditional(decoder, [50, 50, 20], 50)

    adj, log_prob = decode(model, torch.rand(3, 50, 50, generator=torch.Generator().manual_seed(4)))

    assert torch.allclose(log_prob.double(), model.log_prob(adj), rtol=1e-5)


def test_log_probability_depends_on_neither_batch_nor_padding(decoder: AutoregressiveDecoder) -> None:
    graphs = [random_graph(nodes, 1) for nodes in (3, 8, 5)]
    both = conditional(decoder, [3, 8, 5], 9).log_prob(collate(graphs, 9).adj)

    for row, graph in enumerate(graphs):
        alone = conditional(decoder, [graph.nodes], 9).log_prob(collate([graph], 9).adj)
        z, x = (normal(1, 9, width, seed=1)[:, : graph.nodes] for width in (2, 1))
        narrow = AutoregressiveGraphs(decoder, z, x, torch.tensor([graph.nodes])).log_prob(collate([graph]).adj)
        assert torch.allclose(both[row], alone)
        assert torch.allclose(both[row], narrow)


@pytest.mark.parametrize("pairs", [1, 7, 40])
def test_chunks_change_neither_log_probabilities_nor_gradients(
    decoder: AutoregressiveDecoder, pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    adj, sizes = collate([random_graph(nodes, 1) for nodes in (9, 4, 7)]).adj, [9, 4, 7]

    def both() -> tuple[Tensor, list[Tensor]]:
        found = conditional(decoder, sizes, 9).log_prob(adj)
        # The head of the draft has no part in the likelihood.
        used = [parameter for name, parameter in decoder.named_parameters() if "draft_head" not in name]
        return found, list(torch.autograd.grad(found.sum(), used))

    whole, gradients = both()
    monkeypatch.setattr(distribution, "CHUNK_PAIRS", pairs)
    parts, others = both()

    assert torch.allclose(whole, parts)
    assert all(map(torch.allclose, gradients, others))


@torch.no_grad()
def test_selected_graphs_are_continued(decoder: AutoregressiveDecoder) -> None:
    model = conditional(decoder, [7] * 3, 7)
    uniform = torch.rand(3, 7, 7, generator=torch.Generator().manual_seed(0))
    chosen = torch.tensor([2, 0, 0])
    whole, _ = decode(model, uniform[chosen])

    decoding = Decoding(decoder, model.z, model.x, model.sizes)
    for t in range(7):
        if t == 4:
            decoding.select(chosen.numpy())
        decoding.start_row()
        edges, _ = decoding.sample_row((uniform if t < 4 else uniform[chosen])[:, t, :t])
        decoding.add_node(edges)

    assert torch.equal(decoding.adj.to(whole), whole)


@torch.no_grad()
def test_rows_that_are_sampled_again_are_those_of_edge_by_edge_tests(
    decoder: AutoregressiveDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, count = conditional(decoder, [11] * 12, 11), 12
    uniform = torch.rand(count, 11, 11, generator=torch.Generator().manual_seed(0)) * 0.7
    requirements = [Planar().requirements(11)] * count
    made = PlanarRow.__init__

    def strict(self: PlanarRow, adjacency: np.ndarray) -> None:
        made(self, adjacency)
        self.is_strict = True

    found = model.sample(uniform, FeasibleEdges(requirements))
    monkeypatch.setattr(PlanarRow, "__init__", strict)

    assert torch.equal(found, model.sample(uniform, FeasibleEdges(requirements)))
    assert not torch.equal(found, model.sample(uniform))
    assert all(nx.check_planarity(SimpleGraph.from_adjacency(graph.numpy()).to_networkx())[0] for graph in found)


@torch.no_grad()
def test_small_terms_of_large_graphs_are_not_lost(
    decoder: AutoregressiveDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sum in single precision would drop terms below its rounding."""
    model = conditional(decoder, [120], 120)
    adj = torch.zeros(1, 120, 120)
    monkeypatch.setattr(
        AutoregressiveGraphs,
        "_score",
        lambda self, candidates, tables, part: torch.where(torch.arange(len(candidates.row)) > 0, -1e-6, -1e3).float(),
    )

    assert model.log_prob(adj).item() < -1e3 - 3e-3
