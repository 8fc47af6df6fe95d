"""What can be asked of one large graph, in a call each; the commands are built of the same parts.

A graph is one of networkx, a file, or what :func:`read_single_graph` gives. Nodes of a networkx graph may carry
``features``, a ``label`` and their part of the ``split``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..config import require_count
from ..errors import ConfigError, DatasetError, UnusedSettingError
from ..graph import SimpleGraph, as_simple_graph
from ..records import Provenance
from .baselines import BASELINES
from .generation import NetworkModel, fit_network_model
from .hyperparameters import GENERATION, ClassifierSettings, LinkSettings
from .link_prediction import (
    LinkResult,
    PredictedLink,
    ScoredLink,
    check_misses_links,
    iterate_baseline,
    iterate_links,
    rank_by_pagerank,
    rank_missing_links,
    summarise_links,
    train_on_all,
)
from .network import Network, from_simple_graph, read_network
from .node_classification import ClassificationResult, iterate_classification, summarise_classification
from .storage import load_network_model, save_network_model

if TYPE_CHECKING:
    import networkx as nx

__all__ = [
    "classify_nodes",
    "embed_nodes",
    "fit_network",
    "load_network",
    "predict_links",
    "save_network",
    "score_links",
]

RANKER = "pagerank"
"""The baseline that missing links can be ranked by."""


def score_links(
    graph: nx.Graph | SimpleGraph | Network | str | Path,
    kind: str = "graphite-vae",
    *,
    runs: int = 3,
    seed: int = 0,
    features: bool | None = None,
    split: str = "connected",
    **settings: Any,
) -> LinkResult:
    """How well held-out edges are told from other pairs: AUC and average precision, mean and error over splits.

    Arguments:
        graph: The graph.
        kind: A model, such as ``graphite-vae``, or a baseline, such as ``adamic-adar``, which takes no settings.
        runs: The number of splits.
        seed: The one seed of all runs.
        features: Whether node features are used; None does where there are any.
        split: ``connected`` or ``random``.
        settings: Any other setting of :class:`LinkSettings`, such as ``epochs=100``.

    Raises:
        GraphiteError: The graph is not one to hold edges out of, or a setting is wrong.
    """
    one = _one(graph, features)
    if kind in BASELINES:
        _refuse_settings(kind, settings)
        return summarise_links(kind, False, split, list(iterate_baseline(one, kind, runs, seed, split=split)))
    chosen = LinkSettings().changed(kind=kind, **settings)
    scores = iterate_links(one, chosen, runs, seed, features=features, split=split)

    return summarise_links(kind, _uses_features(one, features), split, list(scores))


def predict_links(
    graph: nx.Graph | SimpleGraph | Network | str | Path,
    count: int = 100,
    kind: str = "graphite-vae",
    *,
    seed: int = 0,
    features: bool | None = None,
    **settings: Any,
) -> list[PredictedLink] | list[ScoredLink]:
    """The pairs without an edge that most look like one, best first, by a model of all edges.

    Arguments:
        graph: The graph.
        count: How many.
        kind: The model; or ``pagerank``, which learns nothing, takes no settings and gives scores for probabilities.
        seed: The run's one seed.
        features: Whether node features are used; None does where there are any.
        settings: Any other setting of :class:`LinkSettings`.

    Raises:
        GraphiteError: The graph has no edges or misses none, or a setting is wrong.
    """
    require_count("count", count, 1)
    one = _one(graph, features)
    if kind == RANKER:
        _refuse_settings(kind, settings)
        return rank_by_pagerank(one, count)
    chosen = LinkSettings().changed(kind=kind, **settings)
    check_misses_links(one)

    return rank_missing_links(one, train_on_all(one, chosen, seed, features=features).logits(), count)


def classify_nodes(
    graph: nx.Graph | SimpleGraph | Network | str | Path,
    kind: str = "graphite",
    *,
    runs: int = 1,
    seed: int = 0,
    features: bool | None = None,
    split: str = "own",
    **settings: Any,
) -> tuple[list[Any], ClassificationResult]:
    """The class that each node is given, by the best run as validation has it, and how often test nodes get theirs.

    Nodes whose label is known are given one, too, which may be another: 'classify -o' writes the known ones.

    Arguments:
        graph: The graph, some of whose nodes have labels.
        kind: ``graphite`` or ``gcn``.
        runs: The number of starts.
        seed: The one seed of all runs.
        features: Whether node features are used; None does where there are any.
        split: ``own`` for the same nodes to learn from in all runs, the graph's own where it has a split, or ``fresh``.
        settings: Any other setting of :class:`ClassifierSettings`.

    Raises:
        GraphiteError: There are too few labels, or a setting is wrong.
    """
    one = _one(graph, features)
    chosen = ClassifierSettings().changed(kind=kind, **settings)
    scores = list(iterate_classification(one, chosen, runs, seed, features=features, split=split))
    best = max(scores, key=lambda score: score.validation)
    result = summarise_classification(kind, _uses_features(one, features), scores)

    return [one.classes[code] for code in best.predictions.tolist()], result


def embed_nodes(
    graph: nx.Graph | SimpleGraph | Network | str | Path,
    kind: str = "graphite-vae",
    *,
    seed: int = 0,
    features: bool | None = None,
    **settings: Any,
) -> NDArray[np.float32]:
    """The mean of each node's latents, in the order of the nodes, with shape :math:`(n, D)`.

    Arguments:
        graph: The graph.
        kind: The model.
        seed: The run's one seed.
        features: Whether node features are used; None does where there are any.
        settings: Any other setting of :class:`LinkSettings`, such as ``latent=8``.

    Raises:
        GraphiteError: The graph has no edges, or a setting is wrong.
    """
    chosen = LinkSettings().changed(kind=kind, **settings)
    trained = train_on_all(_one(graph, features), chosen, seed, features=features)

    return np.asarray(trained.latents().numpy())


def fit_network(
    graph: nx.Graph | SimpleGraph | Network | str | Path, *, name: str = "model", seed: int = 0, **settings: Any
) -> NetworkModel:
    """Learn to make graphs like one large graph, from its edges alone.

    Arguments:
        graph: The graph.
        name: What to call the model.
        seed: The run's one seed.
        settings: Any setting of :class:`LinkSettings`, such as ``epochs=100``.

    Raises:
        GraphiteError: The graph has no edges, or a setting is wrong.
    """
    source = Path(graph).name if isinstance(graph, str | Path) else None

    return fit_network_model(
        _one(graph), GENERATION.changed(**settings), name=name, seed=seed, provenance=Provenance(source=source)
    )


def save_network(model: NetworkModel, folder: str | Path) -> None:
    """Write a model as a checkpoint folder that ``load_single``, 'sample' and 'inspect' read."""
    save_network_model(model, Path(folder))


def load_network(folder: str | Path) -> NetworkModel:
    """A model of one large graph by its folder.

    Raises:
        CheckpointError: There is none, or it is damaged.
    """
    return load_network_model(Path(folder))


def _one(graph: nx.Graph | SimpleGraph | Network | str | Path, features: bool | None = None) -> Network:
    if not isinstance(features, bool | None):
        raise ConfigError(
            f"'features' is of type {type(features).__name__}; it should be True, False or None. Features themselves "
            f"belong to the graph: give each node its own as the attribute 'features'."
        )
    if isinstance(graph, Network):
        return graph
    if isinstance(graph, str | Path):
        return read_network(graph)
    if not isinstance(graph, SimpleGraph) and not hasattr(graph, "is_multigraph"):
        raise DatasetError(
            f"Found {type(graph).__name__} where one graph was wanted: pass a graph of networkx, which makes one of a "
            f"matrix by 'from_numpy_array', or the path of a file."
        )

    return from_simple_graph(as_simple_graph(graph))


def _refuse_settings(baseline: str, settings: Mapping[str, Any]) -> None:
    for name in settings:
        raise UnusedSettingError(name, f"the baseline '{baseline}'")


def _uses_features(graph: Network, features: bool | None) -> bool:
    return features is not False and graph.features is not None and graph.features.shape[1] > 0
