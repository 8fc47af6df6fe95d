"""Batches with their nodes in the order of arrival that a staged model expects."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .batch import GraphBatch
from .orders import draw_orders

__all__ = ["arrange", "in_order"]


def arrange(batch: GraphBatch, rule: str, rng: np.random.Generator) -> tuple[GraphBatch, Tensor]:
    r"""Draw an order of arrival for every graph.

    Arguments:
        batch: The graphs.
        rule: One of :data:`graphite_gen.config.ORDERS`.
        rng: The randomness.

    Returns:
        The graphs with their nodes in that order, and :math:`\log q(\sigma | A)` with shape :math:`(B,)`, in double
        precision.
    """
    orders, log_q = draw_orders(batch.adj.cpu().numpy() > 0, batch.sizes.cpu().numpy(), rule, rng)

    return in_order(batch, torch.from_numpy(orders).to(batch.adj.device)), torch.from_numpy(log_q).to(batch.adj.device)


def in_order(batch: GraphBatch, orders: Tensor) -> GraphBatch:
    """The graphs with their nodes in given orders, dummy nodes last, with shape :math:`(B, N)`."""
    rows = torch.arange(len(orders), device=orders.device).unsqueeze(-1)
    adj = batch.adj[rows.unsqueeze(-1), orders.unsqueeze(-1), orders.unsqueeze(-2)]

    return GraphBatch(adj, batch.mask, batch.x[rows, orders])
