"""Generative models of graphs: Graphite variational autoencoders with calibrated likelihood estimates.

.. code-block:: python

    import graphite_gen as gg

    model = gg.load("barabasi")
    graphs = model.sample(100, nodes=(10, 20), seed=0)
    model.nll(graphs)

Names are imported on first use, so ``import graphite_gen`` is fast.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

# OpenMP threads that spin while they wait slow a run down many times beside other work. Read when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = "0.1.0"

# Public names and their modules.
_EXPORTS = {
    "Acyclic": "sampling",
    "ClassificationResult": "network.node_classification",
    "Completion": "completion",
    "Connected": "sampling",
    "Constraint": "sampling",
    "Dag": "sampling",
    "Dataset": "data.dataset",
    "Degrees": "sampling",
    "Edges": "sampling",
    "EdgeRecovery": "sampling.reconstruction",
    "EdgeScore": "completion",
    "EncodedGraph": "data.encoded",
    "Evaluation": "evaluation",
    "Family": "families",
    "GraphGenerator": "api",
    "GraphiteError": "errors",
    "LinkResult": "network.link_prediction",
    "MaxDegree": "sampling",
    "Model": "api",
    "ModelConfig": "config",
    "NLLEstimate": "records",
    "Planar": "sampling",
    "PredictedLink": "network.link_prediction",
    "Provenance": "records",
    "Reconstruction": "sampling.reconstruction",
    "Regular": "sampling",
    "ScoredLink": "network.link_prediction",
    "SimpleGraph": "graph",
    "Network": "network.network",
    "NetworkComparison": "evaluation",
    "NetworkModel": "network.generation",
    "TrainConfig": "config",
    "TrainRecord": "records",
    "Tree": "sampling",
    "classify_nodes": "network.tasks",
    "compare_networks": "evaluation",
    "embed_nodes": "network.tasks",
    "evaluate": "evaluation",
    "family": "families",
    "fit": "api",
    "fit_network": "network.tasks",
    "from_pandas": "io.frames",
    "generate": "families.simulate",
    "load": "api",
    "load_network": "network.storage",
    "plot_adjacency": "viz.figures",
    "plot_distributions": "viz.figures",
    "plot_gallery": "viz.figures",
    "plot_latents": "viz.figures",
    "plot_training": "viz.figures",
    "predict_links": "network.tasks",
    "read_graphs": "io",
    "read_latents": "io.latents",
    "read_network": "network.network",
    "save_network": "network.storage",
    "score_links": "network.tasks",
    "to_pandas": "io.frames",
    "write_graphs": "io",
    "write_latents": "io.latents",
}

__all__ = ["__version__", *_EXPORTS]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'graphite_gen' has no attribute '{name}'")

    return getattr(import_module(f".{_EXPORTS[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
