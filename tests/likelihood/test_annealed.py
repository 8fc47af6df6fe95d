import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tiny import exact_nll, mild_model, normal, path, poor_model, random_graph, star
from torch import Tensor

from graphite_gen.data.batch import collate
from graphite_gen.graph import SimpleGraph
from graphite_gen.likelihood import annealed, annealed_log_weights
from graphite_gen.likelihood.annealed import AnnealedPath
from graphite_gen.likelihood.bdmc import lower_bound
from graphite_gen.likelihood.proposal import Joint, Mixture, fit_mixture


class Gaussian:
    """A joint density whose posterior is normal and whose evidence is given."""

    def __init__(self, mean: Tensor, sigma: Tensor, evidence: float) -> None:
        self.mean, self.sigma, self.evidence = mean, sigma, evidence
        self.batch = SimpleNamespace(mask=torch.ones(1, len(mean), dtype=torch.bool))

    def __call__(self, z: Tensor) -> tuple[Tensor, Tensor]:
        scaled = (z - self.mean) / self.sigma
        terms = -0.5 * scaled.square() - self.sigma.log() - 0.5 * math.log(2 * math.pi)

        return self.evidence + terms.sum((1, 2)), -scaled / self.sigma


def gaussian_path(steps: int = 10, size: float = 0.6) -> tuple[AnnealedPath, Gaussian]:
    joint: Any = Gaussian(normal(3, 2), 0.5 + normal(3, 2, seed=1).abs(), -7.5)
    mixture = Mixture(torch.zeros(1, 3, 2), torch.zeros(1, 3, 2))

    return AnnealedPath(joint, mixture, annealed._betas(steps), (size,) * steps), joint


def log_mean_with_error(log_weights: Tensor) -> tuple[float, float]:
    weights = (log_weights - log_weights.max()).exp()
    mean = float(weights.mean())

    return float(log_weights.max()) + math.log(mean), float(weights.std()) / mean / math.sqrt(len(weights))


def test_temperatures_rise_from_zero_to_one_and_are_densest_at_the_ends() -> None:
    betas = annealed._betas(12)
    widths = np.diff(betas)

    assert (betas[0], betas[-1], len(betas)) == (0, 1, 13)
    assert (widths > 0).all()
    assert widths[0] == pytest.approx(widths[-1])
    assert widths.argmax() in (5, 6)
    assert annealed._betas(1) == (0, 1)


@pytest.mark.parametrize("components", [1, 3])
def test_the_density_of_a_mixture_and_its_gradient_are_those_of_torch(components: int) -> None:
    mixture = Mixture(normal(components, 3, 2), 0.3 * normal(components, 3, 2, seed=1))
    z = normal(5, 3, 2, seed=2).requires_grad_(True)
    normals = torch.distributions.Normal(mixture.mu, mixture.log_sigma.exp())
    expected = normals.log_prob(z.unsqueeze(1)).sum((2, 3)).logsumexp(1) - math.log(components)

    log_q, gradient = mixture.log_prob(z.detach())

    assert torch.allclose(log_q, expected)
    assert torch.allclose(gradient, torch.autograd.grad(expected.sum(), z)[0])


def test_the_joint_density_and_its_gradient_ignore_padding() -> None:
    model, graph = mild_model(), random_graph(4, 0)
    padded, plain = (Joint.of(model.network, collate([graph], nodes)) for nodes in (7, 4))
    z = normal(3, 4, 2)

    values, gradient = padded(z)
    step = 1e-6 * normal(3, 4, 2, seed=1)

    assert torch.equal(values, plain(z)[0])
    assert torch.allclose(padded(z + step)[0] - padded(z - step)[0], 2 * (gradient * step).sum((1, 2)), rtol=1e-4)


@pytest.mark.parametrize("beta", [0.3, 1.0])
@pytest.mark.parametrize("size", [0.6, 1.1])
def test_a_transition_leaves_its_distribution_invariant(beta: float, size: float) -> None:
    path, joint = gaussian_path()
    precision = 1 - beta + beta / joint.sigma**2
    mean, sigma = beta * joint.mean / joint.sigma**2 / precision, precision**-0.5
    count = 40_000
    z = mean + sigma * normal(count, 3, 2, seed=3)

    state, rng = path._at(z), np.random.default_rng(0)
    for _ in range(3):
        state, acceptance = path.transition(state, beta, size, rng)

    assert 0.1 < acceptance < 0.999
    moved = (state.z != z).all((1, 2)).double().mean()
    assert moved > 0.4
    assert torch.allclose(state.z.mean(0), mean, atol=5 * float(sigma.max()) / math.sqrt(count))
    assert torch.allclose(state.z.var(0) / sigma**2, torch.ones(3, 2), atol=5 * math.sqrt(2 / count))
    # Cached densities and gradients are those of the new state.
    assert torch.allclose(state.log_joint, joint(state.z)[0])
    assert torch.allclose(state.joint_gradient, joint(state.z)[1])
    assert torch.allclose(state.log_q, path.proposal.log_prob(state.z)[0])
    assert torch.allclose(state.q_gradient, path.proposal.log_prob(state.z)[1])


@pytest.mark.parametrize("steps", [1, 10])
def test_both_directions_have_the_evidence_as_their_mean_weight(steps: int) -> None:
    path, joint = gaussian_path(steps)
    forward, error = log_mean_with_error(path.forward(20_000, np.random.default_rng(0)))
    starts = joint.mean + joint.sigma * normal(50, 3, 2, seed=5)
    reverse, other = log_mean_with_error(
        torch.cat([-path.reverse(z, 100, np.random.default_rng(index))[0] for index, z in enumerate(starts)])
    )

    assert error < 0.3
    assert abs(forward + 7.5) < 5 * error
    if steps > 1:
        # Chains from the same start are one sample, not a hundred.
        assert abs(reverse - 7.5) < 5 * 10 * other


@pytest.mark.parametrize("chains", [3, 5, 9])
def test_the_lower_bound_is_unbiased_for_the_inverse_evidence(chains: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Complete and incomplete strata of three unequal components, in blocks of six.
    monkeypatch.setattr(annealed, "BLOCK", 6)
    monkeypatch.setattr(annealed, "LEAPFROGS", 1)
    _, joint = gaussian_path()
    apart = torch.stack([joint.mean, joint.mean + 1, torch.zeros(3, 2)])
    path = AnnealedPath(joint, Mixture(apart, torch.zeros(3, 3, 2)), annealed._betas(2), (0.6, 0.6))  # type: ignore[arg-type]
    rng, inverse = np.random.default_rng(0), []
    for z in joint.mean + joint.sigma * normal(1500, 3, 2, seed=6):
        forward = path.forward(chains, rng)
        true, ends = path.reverse(z, 1, rng)
        inverse.append(lower_bound(true, path.beside(forward, ends, rng)) - 7.5)

    # E[1 / mean weight] = 1 / p(A).
    mean, error = log_mean_with_error(torch.tensor(inverse))
    assert error < 0.05
    assert abs(mean) < 4 * error


def test_samples_of_a_mixture_are_stratified_over_components() -> None:
    mixture = Mixture(100 * torch.arange(3.0).view(3, 1, 1), torch.zeros(3, 1, 1))
    rng = np.random.default_rng(0)
    drawn = [mixture.draw_components(mixture.sample(8, rng), rng) for _ in range(300)]

    assert all(row[:6] == [0, 1, 2, 0, 1, 2] for row in drawn)
    assert np.mean([row[6:] for row in drawn]) == pytest.approx(1, abs=0.2)
    assert [mixture.seat(slot, 8, 1) for slot in range(8)] == [1, 1, 1, 4, 4, 4, 6, 7]


@pytest.mark.parametrize(
    ("make", "changes", "graph"),
    [
        *[
            (make, {}, graph)
            for make in (mild_model, poor_model)
            for graph in (path(3), star(2), random_graph(3, 0, 0.0))
        ],
        (mild_model, {"observation": "normal"}, random_graph(3, 2, 0.7, weighted=True)),
        (mild_model, {"node_features": 2}, random_graph(3, 2, 0.7, features=2)),
        (mild_model, {"name": "paper"}, random_graph(3, 2, 0.7)),
    ],
)
def test_annealing_agrees_with_quadrature(make: Any, changes: dict[str, Any], graph: SimpleGraph) -> None:
    model = make(latent=1, **changes)

    # Padding changes nothing.
    mean, error = log_mean_with_error(annealed_log_weights(model.network, collate([graph], 4), 200, 15, 0, 0))

    assert error < 0.1
    assert abs(mean + exact_nll(model, graph)) < 5 * error + 2e-3


def test_chains_are_run_in_blocks_of_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annealed, "BLOCK", 16)
    path, _ = gaussian_path(2)

    assert path._blocks(40) == [16, 16, 8]
    assert path.forward(40, np.random.default_rng(0)).shape == (40,)
    monkeypatch.setattr(annealed, "BLOCK_CELLS", 20)
    assert path._blocks(5) == [2, 2, 1]


def test_fitting_a_poor_proposal_improves_its_elbo() -> None:
    model, graph = poor_model(latent=2), random_graph(4, 1)
    joint = Joint.of(model.network, collate([graph]))
    rng = np.random.default_rng(0)
    before = model.network.encode(joint.batch, normal(32, 1, 4, 3))
    start = Mixture(before.mu[:, 0].detach(), before.log_sigma[:, 0].detach())

    def bound(mixture: Mixture) -> float:
        z = mixture.sample(500, np.random.default_rng(1))
        return float((joint(z)[0] - mixture.log_prob(z)[0]).mean())

    fitted = fit_mixture(joint, rng, 1 << 20)

    assert fitted.mu.shape == (33, 4, 2)
    assert (fitted.mu[-1] == 0).all()
    assert (fitted.log_sigma[-1] == 0).all()
    assert bound(fitted) > bound(start) + 1
