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
    "MaxDegree": "sampling",
    "Model": "api",
    "ModelConfig": "config",
    "NLLEstimate": "records",
    "Planar": "sampling",
    "Provenance": "records",
    "Regular": "sampling",
    "SimpleGraph": "graph",
    "TrainConfig": "config",
    "TrainRecord": "records",
    "Tree": "sampling",
    "evaluate": "evaluation",
    "family": "families",
    "fit": "api",
    "generate": "dataset",
    "load": "api",
    "plot_adjacency": "plotting",
    "plot_distributions": "plotting",
    "plot_gallery": "plotting",
    "plot_stages": "plotting",
    "plot_training": "plotting",
    "read_graphs": "formats",
    "write_graphs": "formats",
}

__all__ = ["__version__", *_EXPORTS]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'graphite_gen' has no attribute '{name}'")

    return getattr(import_module(f".{_EXPORTS[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
