"""Link prediction: scores on held-out edges, and rankings of missing edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import DatasetError
from ..evaluation.ranking import area_under_curve, average_precision
from ..records import Record, mean_with_error
from ..rng import derive_seed, stream
from .baselines import PageRank, score_pairs
from .fitting import TrainedAutoencoder, train_autoencoder
from .hyperparameters import LinkSettings
from .network import Network
from .node_inputs import inputs_of
from .pair_logits import PairLogits
from .splits import EdgeSplit, split_edges

__all__ = [
    "LinkResult",
    "PredictedLink",
    "ScoredLink",
    "check_misses_links",
    "rank_by_pagerank",
    "rank_missing_links",
    "run_baseline",
    "run_link",
    "run_split",
    "summarise_links",
    "train_on_all",
]

# Scores in memory at once when all pairs are ranked.
TILE = 1 << 23


@dataclass(frozen=True)
class LinkScore(Record):
    """Area under the ROC curve and average precision of one run on test edges and as many non-edges.

    Baselines have neither a validation AUC nor a selected epoch.
    """

    run: int
    auc: float
    ap: float
    test_edges: int
    validation_auc: float | None = None
    epoch: int | None = None


@dataclass(frozen=True)
class LinkResult(Record):
    """Mean scores over runs, with standard errors (None for one run); ``test_edges`` is per run."""

    model: str
    features: bool
    split: str
    runs: int
    auc: float
    auc_se: float | None
    ap: float
    ap_se: float | None
    test_edges: int


@dataclass(frozen=True)
class PredictedLink(Record):
    """A pair without an edge, by node names, and the predicted probability of an edge.

    With the balanced loss it is the probability of an edge among as many edges as non-edges.
    """

    source: Any
    target: Any
    probability: float


@dataclass(frozen=True)
class ScoredLink(Record):
    """A pair without an edge, by node names, and its score, higher for likelier edges."""

    source: Any
    target: Any
    score: float


def run_split(graph: Network, form: str, seed: int, run: int) -> EdgeSplit:
    """The split of a run, the same for every model."""
    return split_edges(graph.nodes, graph.edges, stream(seed, "split", run), form=form)


def run_link(
    graph: Network,
    settings: LinkSettings,
    run: int,
    seed: int,
    *,
    features: bool | None = None,
    split: str = "connected",
) -> LinkScore:
    """Train a model on the split of a run, select the epoch by validation AUC + AP, and score it on the test edges."""
    parts = run_split(graph, split, seed, run)
    held = _tensor(parts.validation), _tensor(parts.validation_negatives)
    trained = train_autoencoder(
        settings,
        _tensor(parts.train),
        graph.nodes,
        inputs_of(graph, features, parts.train),
        derive_seed(seed, "run", run),
        validate=lambda logits: sum(_areas(logits, *held)),
    )
    logits = trained.logits()
    auc, ap = _areas(logits, _tensor(parts.test), _tensor(parts.test_negatives))

    return LinkScore(run, auc, ap, len(parts.test), _areas(logits, *held)[0], trained.epoch)


def run_baseline(graph: Network, name: str, run: int, seed: int, *, split: str = "connected") -> LinkScore:
    """Score a baseline on the split of a run; it uses neither validation edges nor features."""
    parts = run_split(graph, split, seed, run)
    pairs = np.concatenate([parts.test, parts.test_negatives])
    scores = score_pairs(name, graph.nodes, parts.train, pairs, derive_seed(seed, "run", run))
    high, low = scores[: len(parts.test)], scores[len(parts.test) :]

    return LinkScore(run, area_under_curve(high, low), average_precision(high, low), len(parts.test))


def summarise_links(model: str, features: bool, split: str, scores: Sequence[LinkScore]) -> LinkResult:
    """Mean scores and their standard errors."""
    auc, ap = (mean_with_error([getattr(score, name) for score in scores]) for name in ("auc", "ap"))

    return LinkResult(model, features, split, len(scores), *auc, *ap, scores[0].test_edges)


def train_on_all(
    graph: Network,
    settings: LinkSettings,
    seed: int,
    *,
    features: bool | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TrainedAutoencoder:
    """Train a model on all edges of a network, to the last epoch."""
    _check_has_edges(graph)

    return train_autoencoder(
        settings,
        _tensor(graph.edges.astype(np.int64)),
        graph.nodes,
        inputs_of(graph, features),
        derive_seed(seed, "all"),
        progress=progress,
    )


def check_misses_links(graph: Network) -> None:
    """Raise DatasetError if a graph has no edges, or no pairs without one."""
    _check_has_edges(graph)
    if 2 * len(graph.edges) == graph.nodes * (graph.nodes - 1):
        raise DatasetError("The graph is complete: no edge is missing.")


def _check_has_edges(graph: Network) -> None:
    if not len(graph.edges):
        raise DatasetError("The graph has no edges to learn from.")


def rank_missing_links(graph: Network, logits: PairLogits, count: int) -> list[PredictedLink]:
    """The ``count`` most likely missing edges, best first; all pairs are ranked, tile by tile."""
    pairs, best = _rank(graph, logits, count)

    return [PredictedLink(*pair, p) for pair, p in zip(pairs, torch.sigmoid(best).tolist(), strict=True)]


def rank_by_pagerank(
    graph: Network, count: int, *, progress: Callable[[int, int], None] | None = None
) -> list[ScoredLink]:
    """The ``count`` missing edges with the highest personalised PageRank, best first, without those of score zero."""
    check_misses_links(graph)
    ranks = PageRank.from_edges(graph.nodes, graph.edges.astype(np.int64))
    pairs, best = _rank(graph, ranks, count, progress)

    return [ScoredLink(*pair, score) for pair, score in zip(pairs, best.tolist(), strict=True) if score > 0]


@torch.no_grad()
def _rank(
    graph: Network, scores: PairLogits | PageRank, count: int, progress: Callable[[int, int], None] | None = None
) -> tuple[list[tuple[Any, Any]], Tensor]:
    """Names and scores of the pairs without an edge that have the highest scores."""
    nodes = graph.nodes
    edges = torch.from_numpy(graph.edges.astype(np.int64))
    best_keys = torch.empty(0, dtype=torch.int64)
    best = torch.empty(0)
    bounds = [*range(0, nodes, max(1, TILE // max(nodes, 1))), nodes]
    # Edges are sorted by their first node: those of a tile are consecutive.
    places = np.searchsorted(graph.edges[:, 0], bounds)
    for (start, stop), place in zip(pairwise(bounds), pairwise(places), strict=True):
        tile = scores.tile(slice(start, stop), slice(start, nodes))
        # Each pair once, above the diagonal, without the edges.
        below = torch.arange(start, stop)[:, None] >= torch.arange(start, nodes)
        tile = tile.masked_fill(below, -torch.inf)
        inside = edges[slice(*place)]
        tile[inside[:, 0] - start, inside[:, 1] - start] = -torch.inf

        flat, cell = tile.flatten().topk(min(count, tile.numel()))
        row, column = cell // (nodes - start), cell % (nodes - start)
        best, order = torch.cat([best.to(flat), flat]).sort(descending=True, stable=True)
        best_keys = torch.cat([best_keys, (row + start) * nodes + column + start])[order]
        found = int(torch.isfinite(best[:count]).sum())
        best, best_keys = best[:found], best_keys[:found]
        if progress is not None:
            progress(stop, nodes)

    return [(graph.name(key // nodes), graph.name(key % nodes)) for key in best_keys.tolist()], best


def _tensor(pairs: NDArray[np.int64]) -> Tensor:
    """Pairs :math:`(M, 2)` as a tensor with shape :math:`(2, M)`."""
    return torch.from_numpy(np.ascontiguousarray(pairs.T))


@torch.no_grad()
def _areas(logits: PairLogits, positives: Tensor, negatives: Tensor) -> tuple[float, float]:
    high, low = logits.of(positives).numpy(), logits.of(negatives).numpy()

    return area_under_curve(high, low), average_precision(high, low)
