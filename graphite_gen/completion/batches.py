"""A graph as the network of a model takes it."""

from __future__ import annotations

from ..batch import GraphBatch, collate
from ..checkpoint import TrainedModel
from ..graph import SimpleGraph

__all__ = ["batch_for"]


def batch_for(model: TrainedModel, graph: SimpleGraph) -> GraphBatch:
    """A batch of one graph, in the model's precision and on its device; without features that the model does not read.

    Arguments:
        model: The model.
        graph: The graph.
    """
    like, batch = next(model.network.parameters()), collate([graph])
    x = batch.x if model.config.node_features else batch.x[..., :0]

    return GraphBatch(batch.adj.to(like), batch.mask.to(like.device), x.to(like))
