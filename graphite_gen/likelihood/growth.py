r"""Two-sided bounds on the NLL of a staged model.

A graph that the model grew itself comes with an exact sample of its posterior: the order its nodes came in and their
latents. Averaging the weights of proposals alone bounds the NLL from above; averaging them with that of the true order
among them bounds it from below (both in expectation; Sobolev & Vetrov, 2019).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..batch import GraphBatch
from ..checkpoint import TrainedModel
from ..graph import SimpleGraph
from ..orders import ANY_ORDER, chosen_log_prob
from ..schedule import Schedule
from ..seeding import stream
from .bounds import GraphSandwich, log_mean, lower_bound
from .diagnostics import smooth_weights
from .importance import graph_log_weights, order_log_weights
from .proposal import standard_normal

__all__ = ["growth_bounds"]


@torch.no_grad()
def growth_bounds(
    model: TrainedModel,
    index: int,
    seed: int,
    samples: int,
    schedule: Schedule,
    evidence: SimpleGraph | None = None,
) -> GraphSandwich:
    """The bounds of a graph that a staged model grows.

    Arguments:
        model: A staged model.
        index: Which graph to grow.
        seed: The run's seed.
        samples: Orders and latents proposed.
        schedule: Which pairs are decided at once.
        evidence: A graph whose node features condition the model.
    """
    rng = stream(seed, "growth bounds", index)
    grown, z = _grow(model, schedule, rng, evidence)
    true = _true_log_weight(model, schedule, grown, z, rng)
    proposed = graph_log_weights(model.network, grown, samples, seed, index, schedule=schedule, any_order=ANY_ORDER)
    # Method 'is' keeps to the orders of the rule, and is held against the bounds as it is.
    plain = smooth_weights(graph_log_weights(model.network, grown, samples, seed, index, schedule=schedule).numpy())

    return GraphSandwich(
        nodes=grown.adj.shape[-1],
        edges=int(grown.adj.sum()) // 2,
        lower=lower_bound(true, proposed[1:]),
        upper=-log_mean(proposed),
        importance=-plain.log_mean,
        khat=plain.khat,
        anneals=False,
    )


def _grow(
    model: TrainedModel, schedule: Schedule, rng: np.random.Generator, evidence: SimpleGraph | None
) -> tuple[GraphBatch, Tensor]:
    """A graph of the model in order of arrival, as a batch of one, and its latents, with shape :math:`(1, N, D)`."""
    nodes = int(model.sizes.sample(1, rng)[0]) if evidence is None else evidence.nodes
    like = next(model.network.parameters())
    features = np.zeros((nodes, 0)) if evidence is None or evidence.features is None else evidence.features
    x = torch.from_numpy(rng.permutation(features)).to(like).unsqueeze(0)
    z = standard_normal(rng, like, 1, nodes, model.config.latent)
    law = model.network.grow(z, x, torch.tensor([nodes], device=like.device), schedule)
    adj = law.sample(torch.from_numpy(rng.random((1, nodes, nodes))).to(like))

    return GraphBatch(adj, torch.ones(1, nodes, dtype=torch.bool, device=like.device), x), z


def _true_log_weight(
    model: TrainedModel, schedule: Schedule, grown: GraphBatch, z: Tensor, rng: np.random.Generator
) -> Tensor:
    """The log-weight of the order and the latents that the graph was grown with, with shape :math:`(1,)`."""
    nodes = grown.adj.shape[-1]
    order = np.arange(nodes)[None]
    log_q = chosen_log_prob(grown.adj.cpu().numpy() > 0, np.array([nodes]), model.config.order, order, rng, ANY_ORDER)

    return order_log_weights(model.network, grown, order, log_q, schedule, rng, z)
