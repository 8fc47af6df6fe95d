"""Training of an autoencoder of one network, with selection of the best epoch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from ..errors import TrainingError
from ..memory import check_memory
from ..nn.distributions import NodeNormal
from ..nn.operators import SparseGraph
from ..records import count_of
from ..rng import derive_seed
from .autoencoder import LinkNetwork, build_link_network
from .hyperparameters import LinkSettings
from .losses import exact_loss, sampled_loss
from .node_inputs import NodeInputs
from .pair_logits import PairLogits

__all__ = ["TrainedAutoencoder", "check_finite", "check_step_memory", "hide_edges", "link_loss", "train_autoencoder"]

# Measured bytes of a step per latent dimension, for each edge, sampled pair and node.
EDGE_BYTES = 14
DRAW_BYTES = 17
NODE_BYTES = 100


@dataclass(frozen=True)
class TrainedAutoencoder:
    """An autoencoder with the weights of its best epoch, and the normalised graph and inputs it was trained on."""

    network: LinkNetwork
    graph: SparseGraph
    inputs: NodeInputs
    epoch: int

    @torch.no_grad()
    def latents(self) -> Tensor:
        """Posterior mean of the latents, with shape :math:`(N, D)`."""
        return self.network.encode(self.graph, self.inputs).mu

    @torch.no_grad()
    def logits(self) -> PairLogits:
        """Log-odds of all pairs."""
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
    """Train an autoencoder on the given edges, i < j, with shape :math:`(2, E)`.

    The epoch with the highest validation score is kept, or the last one without validation. ``progress`` is called with
    the number of finished epochs and of all epochs.
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
                score = validate(network.reconstruct(whole, inputs))
            if score > best:
                best, best_epoch = score, epoch
                kept = {name: value.detach().clone() for name, value in network.state_dict().items()}
        if progress is not None:
            progress(epoch, settings.epochs)
    check_finite(float(loss.detach()))
    if kept:
        network.load_state_dict(kept)

    return TrainedAutoencoder(network, whole, inputs, best_epoch)


def check_finite(loss: float) -> None:
    """Raise TrainingError if training has diverged."""
    if not math.isfinite(loss):
        raise TrainingError(f"The loss is {loss}: training diverged. Use a lower learning rate.", reason="diverged")


def hide_edges(
    edges: Tensor, whole: SparseGraph, rate: float, generator: torch.Generator
) -> tuple[SparseGraph, Tensor]:
    """Edge dropout: the normalised graph of the visible edges, and the mask of the hidden ones, :math:`(E,)`."""
    hidden = torch.rand(edges.shape[1], generator=generator) < rate

    return (SparseGraph.from_edges(edges[:, ~hidden], whole.matrix.shape[0]).normalised() if rate else whole), hidden


def check_step_memory(settings: LinkSettings, edges: int, nodes: int) -> None:
    """Raise TrainingError if a step does not fit in memory: edges and sampled pairs are scored at once."""
    rows = EDGE_BYTES * edges + DRAW_BYTES * settings.subsample * edges + NODE_BYTES * nodes
    sizes = f"{count_of(nodes, 'node')} and {count_of(edges, 'edge')} with {count_of(settings.latent, 'latent')}"
    check_memory(rows * settings.latent, f"A step on {sizes}", "", partial(TrainingError, reason="step-memory"))


def link_loss(
    network: LinkNetwork,
    settings: LinkSettings,
    posterior: NodeNormal,
    inputs: NodeInputs,
    edges: Tensor,
    hidden: Tensor,
    generator: torch.Generator,
) -> Tensor:
    r"""The loss of a step, a scalar in nats per non-edge.

    .. math:: -E_q[\log p(A | Z)] + \beta KL(q \| p), \quad \text{edges weighted if balanced}

    With all edges as targets, no weights and :math:`\beta = 1` it is the negative ELBO (eq. 5) up to the unit. With
    hidden edges as targets, the edges visible to the encoder are excluded. Edges have i < j and shape :math:`(2, E)`;
    ``hidden`` is the mask of those hidden from the encoder, with shape :math:`(E,)`.
    """
    z = posterior.mu
    if settings.is_variational:
        z = posterior.sample(torch.randn(z.shape, generator=generator, dtype=z.dtype))
    logits = network.decode(z, inputs)

    count = edges.shape[1]
    absent = max(math.comb(logits.nodes, 2) - count, 1)
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
