"""Generative models of graphs: Graphite variational autoencoders with honest likelihoods.

.. code-block:: python

    import graphite_gen as gg

    model = gg.load("barabasi")
    graphs = model.sample(100, nodes=(10, 20), seed=0)
    model.nll(graphs)

Names are imported when they are first used, so ``import graphite_gen`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Every public name and the module it lives in.
_EXPORTS = {
    "Acyclic": "sampling",
    "ClassificationResult": "single_graph.node_classification",
    "Completion": "completion",
    "Connected": "sampling",
    "Constraint": "sampling",
    "Dataset": "dataset",
    "Degrees": "sampling",
    "Edges": "sampling",
    "EdgeScore": "completion",
    "Evaluation": "evaluation",
    "Family": "families",
    "GraphiteError": "errors",
    "LinkResult": "single_graph.link_prediction",
    "MaxDegree": "sampling",
    "Model": "api",
    "ModelConfig": "config",
    "NLLEstimate": "records",
    "Planar": "sampling",
    "PredictedLink": "single_graph.link_prediction",
    "Provenance": "records",
    "Regular": "sampling",
    "ScoredLink": "single_graph.link_prediction",
    "SimpleGraph": "graph",
    "SingleGraph": "single_graph.data",
    "SingleGraphModel": "single_graph.generation",
    "TrainConfig": "config",
    "TrainRecord": "records",
    "Tree": "sampling",
    "classify_nodes": "single_graph.tasks",
    "embed_nodes": "single_graph.tasks",
    "evaluate": "evaluation",
    "family": "families",
    "fit": "api",
    "fit_single": "single_graph.tasks",
    "generate": "dataset",
    "load": "api",
    "load_single": "single_graph.tasks",
    "plot_adjacency": "plotting",
    "plot_distributions": "plotting",
    "plot_gallery": "plotting",
    "plot_stages": "plotting",
    "plot_training": "plotting",
    "predict_links": "single_graph.tasks",
    "read_graphs": "formats",
    "read_single_graph": "single_graph.data",
    "save_single": "single_graph.tasks",
    "score_links": "single_graph.tasks",
    "write_graphs": "formats",
}

__all__ = ["__version__", *_EXPORTS]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'graphite_gen' has no attribute '{name}'")

    return getattr(import_module(f".{_EXPORTS[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
