import pytest
import torch
from tiny import normal, path, permuted_rows, random_graph, small_batch, small_config, small_network, star

from graphite_gen.autoregressive.decoder import LEAST_SPREAD
from graphite_gen.config import KINDS
from graphite_gen.data.batch import GraphBatch, collate
from graphite_gen.graph import SimpleGraph
from graphite_gen.nn.distributions import EdgeNormal
from graphite_gen.nn.operators import LowRankGraph
from graphite_gen.nn.path_lengths import structural_features
from graphite_gen.training import model
from graphite_gen.training.model import GraphNetwork, build_network, standardise_structure, start_at_density


def logits_of(network: torch.nn.Module, z: torch.Tensor, batch: GraphBatch) -> torch.Tensor:
    return network.decode(z, batch.x, batch.mask).logits


@pytest.mark.parametrize("name", ["one-shot", "paper"])
@pytest.mark.parametrize("skip", ["convex", "incremental"])
def test_graphite_with_a_skip_of_weight_zero_is_exactly_vgae(name: str, skip: str) -> None:
    graphite = small_network(name, skip=skip, skip_weight=0.0)
    vgae = small_network(name, skip=skip, kind="vgae")
    vgae.load_state_dict({key: value for key, value in graphite.state_dict().items() if ".rounds." not in key})
    batch, z = small_batch(), normal(4, 3, 7, 2)

    assert len(graphite.decoder.rounds) == 2
    assert torch.equal(logits_of(graphite, z, batch), logits_of(vgae, z, batch))
    graphite.decoder.skip.weight = 0.5
    assert not torch.allclose(logits_of(graphite, z, batch), logits_of(vgae, z, batch))


def test_the_four_kinds_are_assemblies_of_the_same_parts() -> None:
    parts = {kind: set(dict(build_network(small_config(kind=kind)).named_parameters())) for kind in KINDS}

    assert parts["graphite-vae"] == parts["graphite-ae"]
    assert parts["vgae"] == parts["gae"]
    assert parts["vgae"] == {name for name in parts["graphite-vae"] if not name.startswith("decoder.rounds.")}
    assert parts["vgae"] < parts["graphite-vae"]


@pytest.mark.parametrize("name", ["one-shot", "paper"])
@pytest.mark.parametrize("features", [("degree",), ("constant", "random"), ("degree", "random")])
def test_posterior_and_logits_are_permutation_equivariant(name: str, features: tuple[str, ...]) -> None:
    network = small_network(name, encoder_features=features, decoder_features=(), node_features=2, latent=4)
    batch, order = small_batch(features=2), [1, 2, 0]
    noise, epsilon = normal(3, 7, network.noise_features), normal(3, 7, 4, seed=1)
    turned = GraphBatch(
        permuted_rows(permuted_rows(batch.adj, order, -1), order, -2), batch.mask, permuted_rows(batch.x, order, -2)
    )

    posterior = network.encode(batch, noise)
    other = network.encode(turned, permuted_rows(noise, order, -2))
    logits = logits_of(network, posterior.sample(epsilon), batch)
    other_logits = logits_of(network, other.sample(permuted_rows(epsilon, order, -2)), turned)

    real = batch.mask
    pairs = real.unsqueeze(-1) & real.unsqueeze(-2)
    assert network.config.is_exchangeable
    assert torch.allclose(other.mu[real], permuted_rows(posterior.mu, order, -2)[real])
    assert torch.allclose(other.sigma[real], permuted_rows(posterior.sigma, order, -2)[real])
    assert torch.allclose(other_logits[pairs], permuted_rows(permuted_rows(logits, order, -1), order, -2)[pairs])


def test_weighted_graphs_have_a_normal_distribution_with_a_learned_scale() -> None:
    network, batch = small_network(observation="normal"), small_batch(weighted=True)

    weights = network.decode(normal(3, 7, 2), batch.x, batch.mask)
    weights.log_prob(batch.adj).sum().backward()

    assert isinstance(weights, EdgeNormal)
    assert network.log_scale.grad != 0


@pytest.mark.parametrize("name", ["one-shot", "paper"])
def test_encoder_and_decoder_depend_on_node_features(name: str) -> None:
    network = small_network(name, node_features=2)
    batch = small_batch(features=2)
    other = GraphBatch(batch.adj, batch.mask, batch.x + batch.mask.unsqueeze(-1))
    noise, z = normal(3, 7, network.noise_features), normal(3, 7, 2)

    assert not torch.allclose(network.encode(batch, noise).mu, network.encode(other, noise).mu)
    assert not torch.allclose(logits_of(network, z, batch), logits_of(network, z, other))


def effect_of_cosines(network: GraphNetwork, nodes: int) -> float:
    """The change of the logits if the intermediate graph of eq. 8 is the matrix of ones, relative to their spread."""
    z, mask = normal(1, nodes, network.config.latent), torch.ones(1, nodes, dtype=torch.bool)
    batch, from_latents = GraphBatch(torch.zeros(1, nodes, nodes), mask, z[..., :0]), LowRankGraph.from_latents

    def ones(z: torch.Tensor, mask: torch.Tensor, *, per_node: bool = False) -> LowRankGraph:
        return LowRankGraph(from_latents(z, mask, per_node=per_node).factor[..., -1:])

    before = logits_of(network, z, batch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LowRankGraph, "from_latents", ones)
        change = logits_of(network, z, batch) - before

    return float((change.std() / before.std()).detach())


@pytest.mark.parametrize(("name", "refinement"), [("one-shot", "gcn"), ("one-shot", "residual"), ("paper", "gcn")])
def test_logits_depend_on_the_intermediate_graph(name: str, refinement: str) -> None:
    network = build_network(small_config(name, refinement=refinement, decoder_features=(), latent=4))

    assert effect_of_cosines(network, 10) > 5e-3


@pytest.mark.parametrize("name", ["one-shot", "paper"])
def test_the_effect_of_the_intermediate_graph_does_not_vanish_in_large_graphs(name: str) -> None:
    """With the norm of the whole matrix in eq. 8, the effect falls as the inverse of the number of nodes."""
    network = build_network(small_config(name, decoder_features=(), latent=4))

    assert effect_of_cosines(network, 200) > 0.3 * effect_of_cosines(network, 10)


@pytest.mark.parametrize("kind", ["graphite-vae", "vgae"])
@pytest.mark.parametrize("latent", [1, 2])
@pytest.mark.parametrize("changes", [{}, {"refinement": "residual"}, {"refinement": "gcn", "head": "inner"}])
def test_the_probability_of_every_graph_depends_on_its_latents(kind: str, latent: int, changes: dict[str, str]) -> None:
    network, batch = small_network(kind=kind, latent=latent, **changes), small_batch()
    z = normal(3, 7, latent)
    found, without = (network.decode(each, batch.x, batch.mask).log_prob(batch.adj) for each in (z, 0 * z))

    assert ((found - without).abs() > 1e-3).all()


def test_initial_weights_depend_on_the_seed_and_leave_the_global_generator_unchanged() -> None:
    before = torch.random.get_rng_state()

    first, again, other = (build_network(small_config(), seed).state_dict() for seed in (1, 1, 2))

    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_prior_is_standard_normal_in_the_precision_of_the_weights(dtype: torch.dtype) -> None:
    prior = build_network(small_config()).to(dtype).prior(small_batch().mask)

    assert prior.mu.dtype == dtype
    assert (prior.mu == 0).all()
    assert (prior.sigma == 1).all()


@pytest.mark.parametrize("encoder", ["residual", "none"])
def test_the_decoder_reads_encoded_latents_from_the_start_and_ignores_noise(encoder: str) -> None:
    decoder = build_network(small_config("default", encoder=encoder)).decoder

    assert bool(decoder.factor.weight.any()) == bool(decoder.products.weight.any()) == (encoder == "residual")


def test_structural_features_are_standardised_over_the_nodes_of_training_graphs() -> None:
    network = build_network(small_config("default", encoder="residual"))
    graphs = [path(3), random_graph(8, 0), star(5), random_graph(6, 1)]
    start_at_density(network, graphs)
    features = torch.cat([structural_features(collate([graph]))[0] for graph in graphs])
    head = network.decoder.draft_head

    assert torch.allclose(head.mean, features.mean(0).to(head.mean))
    assert torch.allclose(head.scale, features.std(0, correction=0).to(head.scale))

    # In graphs of this kind every node has the same features.
    cycle = SimpleGraph.from_pairs(5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)])
    standardise_structure(network, [cycle])
    assert (head.scale == LEAST_SPREAD).all()


def test_structural_features_of_many_graphs_are_those_of_some_over_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model, "DESCRIBED", 2)
    network = build_network(small_config("default", encoder="residual"))
    standardise_structure(network, [star(6), path(4), path(7), path(5)])
    features = torch.cat([structural_features(collate([graph]))[0] for graph in (star(6), path(7))])

    assert torch.allclose(network.decoder.draft_head.mean, features.mean(0).to(network.decoder.draft_head.mean))
