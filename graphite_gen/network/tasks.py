"""The Python API of networks: one function per task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..config import require_count
from ..errors import ConfigError, DatasetError, UnusedSettingError
from ..graph import SimpleGraph, as_simple_graph, is_igraph
from ..records import Provenance
from ..rng import seed_or_new
from .baselines import BASELINES, CHEAP
from .generation import NetworkModel, fit_network_model, generation_settings
from .hyperparameters import ClassifierSettings, LinkSettings
from .link_prediction import (
    LinkResult,
    Negatives,
    PredictedLink,
    Ranking,
    ScoredLink,
    best_ranking,
    check_misses_links,
    rank_by_baseline,
    rank_missing_links,
    run_baseline,
    run_link,
    summarise_links,
    train_on_all,
    train_ranking,
)
from .network import Network, from_simple_graph, read_network
from .node_classification import ClassificationResult, run_classification, summarise_classification

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["choose_ranking", "classify_nodes", "embed_nodes", "fit_network", "predict_links", "score_links"]

T = TypeVar("T")
Progress = Callable[[int, int], None]
NetworkLike: TypeAlias = "nx.Graph | SimpleGraph | Network | str | Path"
"""A file, the result of :func:`read_network`, or a graph; its nodes may have ``features``, ``label`` and ``split``."""


def score_links(
    graph: NetworkLike,
    kind: str = "graphite-vae",
    *,
    runs: int = 3,
    seed: int | None = None,
    features: bool | None = None,
    split: str = "connected",
    negatives: str = "random",
    hard: int = 500,
    progress: Progress | None = None,
    **settings: Any,
) -> LinkResult:
    """Link prediction: mean AUC, AP, Hits@K and MRR on held-out edges over splits, with standard errors.

    Arguments:
        graph: The network.
        kind: A model, such as ``graphite-vae``, or a baseline, such as ``adamic-adar``, which takes no settings.
        runs: The number of splits.
        seed: The seed of all runs; None for a new one.
        features: Whether to use node features; None to use them if there are any.
        split: ``connected`` to keep components connected, or ``random``.
        negatives: ``random`` non-edges, or ``hard`` ones of each edge, which heuristics rank high.
        hard: The number of hard negatives per edge.
        progress: Called with the number of finished runs and of all runs.
        settings: Settings of :class:`LinkSettings`, such as ``epochs=100``.

    Raises:
        GraphiteError: The network has too few edges, or a setting is wrong.
    """
    require_count("hard", hard, 2)
    network, seed, among = _as_network(graph, features), seed_or_new(seed), Negatives(negatives, hard)
    if kind in BASELINES:
        _refuse_settings(kind, settings)
        scores = _score_runs(
            runs, progress, lambda run: run_baseline(network, kind, run, seed, split=split, negatives=among)
        )
        return summarise_links(kind, False, split, scores, among)
    own = LinkSettings().changed(kind=kind, **settings)
    scores = _score_runs(
        runs,
        progress,
        lambda run: run_link(network, own, run, seed, features=features, split=split, negatives=among),
    )

    return summarise_links(kind, _uses_features(network, features), split, scores, among)


def predict_links(
    graph: NetworkLike,
    count: int = 100,
    kind: str = "graphite-vae",
    *,
    seed: int | None = None,
    features: bool | None = None,
    split: str = "connected",
    progress: Progress | None = None,
    **settings: Any,
) -> list[PredictedLink] | list[ScoredLink]:
    """The ``count`` most likely missing edges, best first, by a model trained on all edges.

    The arguments are those of :func:`score_links`: ``split`` is how edges are hidden to weigh the features of pairs,
    and ``progress`` counts epochs. With a baseline, which takes no settings, there are scores instead of
    probabilities, and ``progress`` counts nodes.

    Raises:
        GraphiteError: The network has no edges or is complete, or a setting is wrong.
    """
    require_count("count", count, 1)
    network = _as_network(graph, features)
    if kind in BASELINES:
        _refuse_settings(kind, settings)
        return rank_by_baseline(network, kind, count, seed_or_new(seed), progress=progress)
    own = LinkSettings().changed(kind=kind, **settings)
    check_misses_links(network)
    scores = train_ranking(network, own, seed_or_new(seed), features=features, split=split, progress=progress)

    return rank_missing_links(network, scores, count)


def choose_ranking(
    graph: NetworkLike,
    count: int = 100,
    kind: str = "graphite-vae",
    *,
    compare: bool = True,
    seed: int | None = None,
    features: bool | None = None,
    split: str = "connected",
    **settings: Any,
) -> Ranking:
    """Which ranking :func:`predict_links` should use: the model, or a baseline if that is better on validation edges.

    With the result comes the precision of its first ``count`` pairs on edges that were hidden from it. The arguments
    are those of :func:`predict_links`; without ``compare`` the choice is ``kind``.

    Raises:
        GraphiteError: The network has too few edges, or a setting is wrong.
    """
    require_count("count", count, 1)
    network = _as_network(graph, features)
    kinds: list[str | LinkSettings] = [kind] if kind in BASELINES else [LinkSettings().changed(kind=kind, **settings)]
    if compare:
        kinds += [name for name in CHEAP if name != kind]

    return best_ranking(network, kinds, count, seed_or_new(seed), features=features, split=split)


def classify_nodes(
    graph: NetworkLike,
    kind: str = "graphite",
    *,
    runs: int = 1,
    seed: int | None = None,
    features: bool | None = None,
    split: str = "own",
    label: str | None = None,
    **settings: Any,
) -> tuple[list[Any], ClassificationResult]:
    """Predicted class of every node, labelled or not, by the best run on validation nodes; and the mean test accuracy.

    The arguments are those of :func:`score_links`, except for:

    Arguments:
        kind: ``graphite``, ``graphite-paper`` or ``gcn``.
        split: ``own`` for the split of the network (or one like Planetoid's) in all runs, ``fresh`` for one per run.
            With up to five labels per class, all are used to train, and the accuracy is None.
        label: The node attribute with the labels, by default ``label``.
        settings: Settings of :class:`ClassifierSettings`.

    Raises:
        GraphiteError: There are too few labels, or a setting is wrong.
    """
    network, seed = _as_network(graph, features), seed_or_new(seed)
    network = network if label is None else network.labelled_by(label)
    own = ClassifierSettings().changed(kind=kind, **settings)
    scores = _score_runs(
        runs, None, lambda run: run_classification(network, own, run, seed, features=features, split=split)
    )
    best = max(scores, key=lambda score: score.validation or 0.0)
    result = summarise_classification(kind, _uses_features(network, features), scores)

    return [network.classes[code] for code in best.predictions.tolist()], result


def embed_nodes(
    graph: NetworkLike,
    kind: str = "graphite-vae",
    *,
    seed: int | None = None,
    features: bool | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> NDArray[np.float32]:
    """Posterior mean of the latents by a model trained on all edges, in node order, with shape :math:`(n, D)`.

    The arguments are those of :func:`score_links`; ``progress`` counts epochs.

    Raises:
        GraphiteError: The network has no edges, or a setting is wrong.
    """
    own = LinkSettings().changed(kind=kind, **settings)
    trained = train_on_all(_as_network(graph, features), own, seed_or_new(seed), features=features, progress=progress)

    return np.asarray(trained.latents().numpy())


def fit_network(graph: NetworkLike, *, name: str = "model", seed: int | None = None, **settings: Any) -> NetworkModel:
    """Train a generative model of a network from its edges; settings are those of :class:`LinkSettings`.

    Raises:
        GraphiteError: The network has no edges, or a setting is wrong.
    """
    source = Path(graph).name if isinstance(graph, str | Path) else None

    network = _as_network(graph)
    own, origin = generation_settings(network.nodes).changed(**settings), Provenance(source=source)

    return fit_network_model(network, own, name=name, seed=seed_or_new(seed), provenance=origin)


def _as_network(graph: NetworkLike, features: bool | None = None) -> Network:
    if not isinstance(features, bool | None):
        raise ConfigError(
            f"'features' has the type {type(features).__name__}; it should be True, False or None. The features "
            f"themselves are the node attribute 'features'."
        )
    if isinstance(graph, Network):
        return graph
    if isinstance(graph, str | Path):
        return read_network(graph)
    if not (isinstance(graph, SimpleGraph) or hasattr(graph, "is_multigraph") or is_igraph(graph)):
        raise DatasetError(
            f"The network has the type {type(graph).__name__}: expected a networkx graph (see "
            f"'networkx.from_numpy_array' for matrices) or the path of a file."
        )

    return from_simple_graph(as_simple_graph(graph))


def _score_runs(runs: int, progress: Progress | None, score: Callable[[int], T]) -> list[T]:
    require_count("runs", runs)
    scores = []
    for run in range(runs):
        scores.append(score(run))
        if progress is not None:
            progress(run + 1, runs)

    return scores


def _refuse_settings(baseline: str, settings: Mapping[str, Any]) -> None:
    for name in settings:
        raise UnusedSettingError(name, f"the baseline '{baseline}'")


def _uses_features(graph: Network, features: bool | None) -> bool:
    return features is not False and graph.features is not None and graph.features.shape[1] > 0
