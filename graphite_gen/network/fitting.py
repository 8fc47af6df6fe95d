"""Training an autoencoder on one graph, and keeping its best epoch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import TrainingError
from ..memory import check_memory
from ..nn.distributions import NodeNormal
from ..nn.operators import SparseGraph
from ..records import count_of
from ..rng import derive_seed
from .autoencoder import LinkNetwork, build_link_network
from .losses import exact_loss, pair_count, sampled_loss
from .node_inputs import NodeInputs
from .pair_logits import PairLogits
from .settings import LinkSettings

__all__ = ["TrainedAutoencoder", "check_step_memory", "hide_edges", "link_loss", "train_autoencoder"]

# Bytes of a step for each latent dimension, as measured: of an edge, a drawn pair and a node.
EDGE_BYTES = 14
DRAW_BYTES = 17
NODE_BYTES = 100


@dataclass(frozen=True)
class TrainedAutoencoder:
    """A network with the graph and the inputs it was trained on.

    Attributes:
        network: The network, as it was at its best epoch.
        graph: The normalised graph it reads.
        inputs: What the nodes bring along.
        epoch: The best epoch by validation, or the last one without.
        loss: The objective of the last step.
    """

    network: LinkNetwork
    graph: SparseGraph
    inputs: NodeInputs
    epoch: int
    loss: float

    @torch.no_grad()
    def latents(self) -> Tensor:
        """The mean of the latents, with shape :math:`(N, D)`."""
        return self.network.encode(self.graph, self.inputs).mu

    @torch.no_grad()
    def logits(self) -> PairLogits:
        """The log-odds of all pairs."""
        return self.network.reconstruct(self.graph, self.inputs)


@torch.enable_grad()
def train_autoencoder(
    settings: LinkSettings,
    edges: Tensor,
    nodes: int,
    inputs: NodeInputs,
    seed: int,
    *,
    validate: Callable[[PairLogits], float] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TrainedAutoencoder:
    """Train an autoencoder of the given edges.

    Arguments:
        settings: The model and its training.
        edges: The edges with i < j, with shape :math:`(2, E)`.
        nodes: The number of nodes :math:`N`.
        inputs: What the nodes bring along.
        seed: The run's one seed.
        validate: A figure to choose the epoch by, the higher the better; without it, the last epoch is kept.
        progress: Called with how many epochs are done, and how many there are.

    Raises:
        TrainingError: A step does not fit in memory, or the objective is no number any more.
    """
    check_step_memory(settings, edges.shape[1], nodes)
    network = build_link_network(settings, inputs.width, derive_seed(seed, "weights"))
    generator = torch.Generator().manual_seed(derive_seed(seed, "training"))
    optimiser = torch.optim.Adam(network.parameters(), lr=settings.learning_rate, fused=True)
    whole = SparseGraph.from_edges(edges, nodes).normalised()
    best, best_epoch, kept = -math.inf, settings.epochs, {}
    loss = torch.zeros(())
    for epoch in range(1, settings.epochs + 1):
        seen, hidden = hide_edges(edges, whole, settings.edge_dropout, generator)
        posterior = network.encode(seen, inputs)
        loss = link_loss(network, settings, posterior, inputs, edges, hidden, generator)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if validate is not None and (epoch % settings.validate_every == 0 or epoch == settings.epochs):
            with torch.no_grad():
                figure = validate(network.reconstruct(whole, inputs))
            if figure > best:
                best, best_epoch = figure, epoch
                kept = {name: value.detach().clone() for name, value in network.state_dict().items()}
        if progress is not None:
            progress(epoch, settings.epochs)
    if not torch.isfinite(loss):
        raise TrainingError(
            "The objective is no number any more: train with a lower learning rate, "
            "'--learning-rate' (in Python, 'learning_rate')."
        )
    if kept:
        network.load_state_dict(kept)

    return TrainedAutoencoder(network, whole, inputs, best_epoch, float(loss.detach()))


def hide_edges(
    edges: Tensor, whole: SparseGraph, rate: float, generator: torch.Generator
) -> tuple[SparseGraph, Tensor]:
    """What the encoder sees in a step, and which edges are hidden from it, with shape :math:`(E,)`.

    Arguments:
        edges: The edges with i < j, with shape :math:`(2, E)`.
        whole: The normalised graph of all of them.
        rate: The part that is hidden.
        generator: The randomness.
    """
    hidden = torch.rand(edges.shape[1], generator=generator) < rate

    return (SparseGraph.from_edges(edges[:, ~hidden], whole.matrix.shape[0]).normalised() if rate else whole), hidden


def check_step_memory(settings: LinkSettings, edges: int, nodes: int) -> None:
    """Refuse a graph whose step cannot fit: all pairs are scored tile by tile, but edges and drawn pairs at once.

    Raises:
        TrainingError: It does not fit.
    """
    rows = EDGE_BYTES * edges + DRAW_BYTES * settings.subsample * edges + NODE_BYTES * nodes
    what = (
        f"A step on {count_of(nodes, 'node')} and {count_of(edges, 'edge')} with {count_of(settings.latent, 'latent')}"
    )
    check_memory(rows * settings.latent, what, "Pass a smaller '--latent' (in Python, 'latent').", TrainingError)


def link_loss(
    network: LinkNetwork,
    settings: LinkSettings,
    posterior: NodeNormal,
    inputs: NodeInputs,
    edges: Tensor,
    hidden: Tensor,
    generator: torch.Generator,
) -> Tensor:
    r"""The objective of a step, a scalar: nats per pair without an edge.

    .. math:: -E_q[\log p(A | Z)] + \beta KL(q \| p), \quad \text{edges weighted if balanced}

    With all edges as targets, no weights and :math:`\beta = 1` that is the negative ELBO (eq. 5) in another unit. Where
    the edges to predict are hidden ones, those that the encoder saw are left out: to repeat them is no prediction.

    Arguments:
        network: The network.
        settings: What is scored and how.
        posterior: What the encoder makes of the graph it sees.
        inputs: What the nodes bring along.
        edges: All edges with i < j, with shape :math:`(2, E)`.
        hidden: Which of them the encoder does not see, with shape :math:`(E,)`.
        generator: The randomness of the latents and of the Monte Carlo loss.
    """
    z = posterior.mu
    if settings.is_variational:
        z = posterior.sample(torch.randn(z.shape, generator=generator, dtype=z.dtype))
    logits = network.decode(z, inputs)

    count = edges.shape[1]
    absent = max(pair_count(logits.nodes) - count, 1)
    scored = hidden if settings.targets == "hidden" else None
    targets = count if scored is None else int(scored.sum())
    weight = absent / max(targets, 1) if settings.balanced else 1.0
    if settings.subsample:
        draws = max(1, round(settings.subsample * count))
        nats = sampled_loss(logits, edges, draws, generator, positive_weight=weight, scored=scored)
    else:
        nats = exact_loss(logits, edges, positive_weight=weight, scored=scored)
    if settings.is_variational:
        nats = nats + settings.kl_weight * posterior.kl_to_standard()

    return nats / absent
