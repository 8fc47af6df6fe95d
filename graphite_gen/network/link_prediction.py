"""Link prediction: how well held-out edges are told from non-edges, and which edges a graph seems to miss."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..config import require_count
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
    "LinkScore",
    "PairScores",
    "PredictedLink",
    "ScoredLink",
    "check_misses_links",
    "iterate_baseline",
    "iterate_links",
    "rank_by_pagerank",
    "rank_missing_links",
    "run_baseline",
    "run_link",
    "run_split",
    "summarise_links",
    "train_on_all",
]

# So many logits are held at once when all pairs are ranked.
TILE = 1 << 23


@dataclass(frozen=True)
class LinkScore(Record):
    """One run: areas under the curves of the held-out test edges.

    Attributes:
        run: The number of the run, which makes its split and its seed.
        auc: The area under the ROC curve.
        ap: The average precision.
        test_edges: How many test edges there are, beside as many non-edges.
        validation_auc: The former for the validation edges; None for baselines, which have nothing to choose.
        epoch: The epoch that was chosen; None for baselines.
    """

    run: int
    auc: float
    ap: float
    test_edges: int
    validation_auc: float | None = None
    epoch: int | None = None


@dataclass(frozen=True)
class LinkResult(Record):
    """The mean over runs, with standard errors (None for a single run); each run scores so many test edges."""

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
    """Two nodes without an edge, as the graph's file calls them, and how likely an edge between them seems.

    The scale of the probability is that of the objective: where edges count as much as all other pairs, it is the
    probability that a pair is an edge if half of those asked about are.
    """

    source: Any
    target: Any
    probability: float


@dataclass(frozen=True)
class ScoredLink(Record):
    """Two nodes without an edge, as the graph's file calls them, and a score that is higher the likelier an edge is."""

    source: Any
    target: Any
    score: float


class PairScores(Protocol):
    """Scores of all pairs, known by the blocks of their symmetric matrix."""

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        ...

    def tile(self, rows: slice, columns: slice) -> Tensor:
        """A block of the matrix, with the shape of the two slices."""
        ...


def run_split(graph: Network, form: str, seed: int, run: int) -> EdgeSplit:
    """The split of a run: the same for every model."""
    return split_edges(graph.nodes, graph.edges, stream(seed, "split", run), form=form)


def iterate_links(
    graph: Network,
    settings: LinkSettings,
    runs: int,
    seed: int,
    *,
    features: bool | None = None,
    split: str = "connected",
) -> Iterator[LinkScore]:
    """Train and score a model on one split after the other; see :func:`run_link`."""
    require_count("runs", runs)

    return (run_link(graph, settings, run, seed, features=features, split=split) for run in range(runs))


def run_link(
    graph: Network,
    settings: LinkSettings,
    run: int,
    seed: int,
    *,
    features: bool | None = None,
    split: str = "connected",
) -> LinkScore:
    """Train a model on a split and score it.

    The epoch is chosen by the sum of AUC and AP on the validation edges.

    Arguments:
        graph: The graph.
        settings: The model and its training.
        run: The number of the run; it is the same however many there are.
        seed: The one seed of all runs.
        features: Whether node features are used; None does where there are any.
        split: ``connected`` or ``random``.

    Raises:
        ConfigError: There is no such split.
        DatasetError: The graph has too few edges, or no features to use.
    """
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


def iterate_baseline(
    graph: Network, name: str, runs: int, seed: int, *, split: str = "connected"
) -> Iterator[LinkScore]:
    """Score a baseline on one split after the other; see :func:`run_baseline`."""
    require_count("runs", runs)

    return (run_baseline(graph, name, run, seed, split=split) for run in range(runs))


def run_baseline(graph: Network, name: str, run: int, seed: int, *, split: str = "connected") -> LinkScore:
    """Score a method that is not trained on validation edges, on the same split; it reads no features.

    Raises:
        DatasetError: The graph has too few edges.
        ConfigError: There is no such split, or the method needs a package that is not installed.
    """
    parts = run_split(graph, split, seed, run)
    pairs = np.concatenate([parts.test, parts.test_negatives])
    scores = score_pairs(name, graph.nodes, parts.train, pairs, derive_seed(seed, "run", run))
    high, low = scores[: len(parts.test)], scores[len(parts.test) :]

    return LinkScore(run, area_under_curve(high, low), average_precision(high, low), len(parts.test))


def summarise_links(model: str, features: bool, split: str, scores: Sequence[LinkScore]) -> LinkResult:
    """The mean of some runs and its standard error."""
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
    """Train a model on all edges of a graph; there is nothing to choose the epoch by, so it is the last.

    Arguments:
        graph: The graph.
        settings: The model and its training.
        seed: The run's one seed.
        features: Whether node features are used; None does where there are any.
        progress: Called with how many epochs are done, and how many there are.

    Raises:
        DatasetError: The graph has no edges, or no features to use.
    """
    if not len(graph.edges):
        raise DatasetError("The graph has no edges, so there is nothing to learn from: pass one that has some.")

    return train_autoencoder(
        settings,
        _tensor(graph.edges.astype(np.int64)),
        graph.nodes,
        inputs_of(graph, features),
        derive_seed(seed, "all"),
        progress=progress,
    )


def check_misses_links(graph: Network) -> None:
    """Refuse a graph without a pair to rank, or without edges to rank it by, before anything is learned.

    Raises:
        DatasetError: There is none.
    """
    if not len(graph.edges):
        raise DatasetError("The graph has no edges, so there is nothing to learn from: pass one that has some.")
    if 2 * len(graph.edges) == graph.nodes * (graph.nodes - 1):
        raise DatasetError("All pairs of the graph's nodes are edges, so none is missing: pass one that has others.")


def rank_missing_links(graph: Network, logits: PairLogits, count: int) -> list[PredictedLink]:
    """The most likely missing edges of a graph, best first; all pairs are ranked, tile by tile.

    Arguments:
        graph: The graph.
        logits: The log-odds of all pairs.
        count: How many to give.
    """
    pairs, best = _rank(graph, logits, count)

    return [PredictedLink(*pair, chance) for pair, chance in zip(pairs, torch.sigmoid(best).tolist(), strict=True)]


def rank_by_pagerank(
    graph: Network, count: int, *, progress: Callable[[int, int], None] | None = None
) -> list[ScoredLink]:
    """The pairs without an edge that a walk with restarts most often goes between, best first; nothing is trained.

    Pairs that no such walk goes between, as those of two components, are left out.

    Arguments:
        graph: The graph.
        count: How many to give.
        progress: Called with how many nodes are done, and how many there are.

    Raises:
        DatasetError: The graph has no edges, or misses none.
    """
    check_misses_links(graph)
    ranks = PageRank.from_edges(graph.nodes, graph.edges.astype(np.int64))
    pairs, best = _rank(graph, ranks, count, progress)

    return [ScoredLink(*pair, score) for pair, score in zip(pairs, best.tolist(), strict=True) if score > 0]


@torch.no_grad()
def _rank(
    graph: Network, scores: PairScores, count: int, progress: Callable[[int, int], None] | None = None
) -> tuple[list[tuple[Any, Any]], Tensor]:
    """The pairs without an edge that have the highest scores, by name, and these scores."""
    nodes = graph.nodes
    edges = torch.from_numpy(graph.edges.astype(np.int64))
    best_keys = torch.empty(0, dtype=torch.int64)
    best = torch.empty(0)
    bounds = [*range(0, nodes, max(1, TILE // max(nodes, 1))), nodes]
    # Edges are in the order of their first nodes: those of a tile stand side by side.
    places = np.searchsorted(graph.edges[:, 0], bounds)
    for (start, stop), place in zip(pairwise(bounds), pairwise(places), strict=True):
        tile = scores.tile(slice(start, stop), slice(start, nodes))
        # Each pair stands once, above the diagonal, and edges are no news.
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
    """Pairs as a tensor, with shape :math:`(2, M)`."""
    return torch.from_numpy(np.ascontiguousarray(pairs.T))


@torch.no_grad()
def _areas(logits: PairLogits, positives: Tensor, negatives: Tensor) -> tuple[float, float]:
    high, low = logits.of(positives).numpy(), logits.of(negatives).numpy()

    return area_under_curve(high, low), average_precision(high, low)
