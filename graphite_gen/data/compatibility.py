"""Whether a graph is of the kind that a model was trained on."""

from __future__ import annotations

from ..config import ModelConfig
from ..errors import DatasetError
from ..graph import SimpleGraph, require_undirected

__all__ = ["check_graph"]


def check_graph(config: ModelConfig, name: str, graph: SimpleGraph, index: int) -> None:
    """Refuse graph ``index`` of some graphs if the model of this name and config cannot read it."""
    if not config.directed:
        require_undirected(graph, f"Graph {index}")
    is_weighted_model = config.observation == "normal" or bool(config.weights)
    weighted = graph.weights is not None if is_weighted_model else graph.is_weighted
    features = 0 if graph.features is None else graph.features.shape[1]
    if graph.nodes < 1:
        raise DatasetError(f"Graph {index} has no nodes; a model needs at least one.")
    # A graph without edges is both weighted and unweighted.
    if len(graph.edges) and weighted != is_weighted_model:
        kinds = ("unweighted", "weighted")
        raise DatasetError(
            f"Graph {index} is {kinds[weighted]}, but '{name}' was trained on {kinds[not weighted]} graphs.",
            reason="weighted-unlike-model",
        )
    if features != config.node_features:
        raise DatasetError(
            f"Graph {index} has {features} node features, but '{name}' was trained with {config.node_features}."
        )
    identity = "identity" in config.encoder_features + config.decoder_features
    if identity and graph.nodes > config.max_nodes:
        raise DatasetError(
            f"Graph {index} has {graph.nodes} nodes, but '{name}' identifies nodes by number, up to "
            f"{config.max_nodes}.",
            reason="identity-too-small",
        )
