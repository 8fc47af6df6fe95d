"""Link prediction: scores on held-out edges, and rankings of missing edges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..config import require
from ..errors import DatasetError
from ..evaluation.ranking import area_under_curve, average_precision, hits, mean_reciprocal_rank, ranks_among
from ..records import Record, mean_with_error
from ..rng import derive_seed, stream
from .baselines import baseline_scores
from .fitting import TrainedAutoencoder, train_autoencoder
from .hard_negatives import check_non_neighbours, hard_negatives
from .hyperparameters import LinkSettings
from .network import Network
from .node_inputs import inputs_of
from .pair_scores import PairScores
from .splits import EdgeSplit, split_edges
from .stacking import TrainedScores, pair_tensor, train_scores

__all__ = [
    "HITS",
    "NEGATIVES",
    "LinkResult",
    "LinkScore",
    "Negatives",
    "PredictedLink",
    "Ranking",
    "ScoredLink",
    "best_ranking",
    "check_misses_links",
    "rank_by_baseline",
    "rank_missing_links",
    "run_baseline",
    "run_link",
    "run_split",
    "score_split",
    "summarise_links",
    "train_on_all",
    "train_ranking",
]

# Scores in memory at once when all pairs are ranked.
TILE = 1 << 22
# Pairs scored at once.
PAIRS = 1 << 20
HITS = (20, 50, 100)
NEGATIVES = ("random", "hard")


@dataclass(frozen=True)
class Negatives:
    """The non-edges among which test edges are ranked.

    Attributes:
        form: ``random`` for uniform ones, as many as test edges and shared by all; ``hard`` for some of each test edge
            that heuristics rank high, as in HeaRT.
        each: The number of hard ones per test edge.
    """

    form: str = "random"
    each: int = 500

    def __post_init__(self) -> None:
        require("negatives", self.form, NEGATIVES)


RANDOM = Negatives()


@dataclass(frozen=True)
class LinkScore(Record):
    """Scores of one run on test edges among non-edges.

    Area under the ROC curve, average precision, Hits@K by K (None if there are not more than K non-edges to rank
    among), and the mean reciprocal rank. ``validation_auc`` is the AUC of the validation edges; baselines have no
    epoch.
    """

    run: int
    auc: float
    ap: float
    hits: Mapping[int, float | None]
    mrr: float
    test_edges: int
    validation_auc: float
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
    hits: Mapping[int, float | None]
    hits_se: Mapping[int, float | None]
    mrr: float
    mrr_se: float | None
    negatives: str
    validation_auc: float


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
    negatives: Negatives = RANDOM,
) -> LinkScore:
    """Train a model on the split of a run, select the epoch by validation AUC + AP, and score it on the test edges."""
    parts = run_split(graph, split, seed, run)
    if negatives.form == "hard":
        # Before a long training.
        check_non_neighbours(graph.nodes, graph.edges.astype(np.int64), parts.test, negatives.each)
    trained = _train_on(graph, settings, parts, run, seed, features, split)

    return score_split(graph, parts, trained.scores, run, seed, negatives, trained.epoch)


def run_baseline(
    graph: Network, name: str, run: int, seed: int, *, split: str = "connected", negatives: Negatives = RANDOM
) -> LinkScore:
    """Score a baseline on the split of a run; it uses no features."""
    parts = run_split(graph, split, seed, run)
    scores = baseline_scores(name, graph.nodes, parts.train, derive_seed(seed, "run", run))

    return score_split(graph, parts, scores, run, seed, negatives)


def summarise_links(
    model: str, features: bool, split: str, scores: Sequence[LinkScore], negatives: Negatives = RANDOM
) -> LinkResult:
    """Mean scores and their standard errors."""

    def mean(values: Sequence[float | None]) -> tuple[float | None, float | None]:
        known = [value for value in values if value is not None]
        return mean_with_error(known) if len(known) == len(values) else (None, None)

    (auc, auc_se), (ap, ap_se), (mrr, mrr_se), (validation, _) = (
        mean_with_error([getattr(score, name) for score in scores]) for name in ("auc", "ap", "mrr", "validation_auc")
    )
    by_count = {count: mean([score.hits[count] for score in scores]) for count in HITS}

    return LinkResult(
        model=model,
        features=features,
        split=split,
        runs=len(scores),
        auc=auc,
        auc_se=auc_se,
        ap=ap,
        ap_se=ap_se,
        test_edges=scores[0].test_edges,
        hits={count: value for count, (value, _) in by_count.items()},
        hits_se={count: error for count, (_, error) in by_count.items()},
        mrr=mrr,
        mrr_se=mrr_se,
        negatives=negatives.form,
        validation_auc=validation,
    )


def _train_on(
    graph: Network, settings: LinkSettings, parts: EdgeSplit, run: int, seed: int, features: bool | None, split: str
) -> TrainedScores:
    held = pair_tensor(parts.validation), pair_tensor(parts.validation_negatives)

    return train_scores(
        graph,
        settings,
        parts.train,
        derive_seed(seed, "run", run),
        form=split,
        features=features,
        validate=lambda logits: sum(_areas(logits, *held)),
    )


def score_split(
    graph: Network,
    parts: EdgeSplit,
    scores: PairScores,
    run: int,
    seed: int,
    negatives: Negatives,
    epoch: int | None = None,
) -> LinkScore:
    """Score a trained model or a baseline on the test edges of a run, and by AUC on its validation edges."""
    validation = _areas(scores, pair_tensor(parts.validation), pair_tensor(parts.validation_negatives))[0]
    if negatives.form == "hard":
        others = hard_negatives(
            graph.nodes,
            graph.edges.astype(np.int64),
            parts.train,
            parts.test,
            negatives.each,
            stream(seed, "negatives", run),
            graph.features,
        )
    else:
        others = parts.test_negatives
    high = _scores_of(scores, parts.test)
    low: NDArray[np.float64] = _scores_of(scores, others.reshape(-1, 2)).reshape(others.shape[:-1])
    ranks, most = ranks_among(high, low), low.shape[-1]

    return LinkScore(
        run,
        # Each edge among its own non-edges; if all share theirs, it is the usual AUC.
        float(1 - (ranks.mean() - 1) / most),
        average_precision(high, low.ravel()),
        {count: hits(ranks, count) if count < most else None for count in HITS},
        mean_reciprocal_rank(ranks),
        len(parts.test),
        validation,
        epoch,
    )


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
        pair_tensor(graph.edges),
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


@dataclass(frozen=True)
class Ranking(Record):
    """How well a ranking of all pairs finds edges that were hidden: the test edges of a split.

    ``precision`` is the fraction of hidden edges among the first ``count`` pairs without a known edge; ``hidden`` is
    their number. ``validation_auc`` has the AUC on validation edges of every ranking that was compared.
    """

    model: str
    count: int
    precision: float
    hidden: int
    validation_auc: Mapping[str, float]


def best_ranking(
    graph: Network,
    kinds: Sequence[str | LinkSettings],
    count: int,
    seed: int,
    *,
    features: bool | None = None,
    split: str = "connected",
) -> Ranking:
    """Compare models and baselines (by name) on the split of run 0, and give the precision of the one to use.

    That is the first one, unless another has a higher AUC on the validation edges by more than the standard error of
    the difference; then it is the one with the highest.
    """
    parts = run_split(graph, split, seed, 0)
    found: dict[str, tuple[PairScores, NDArray[np.float64]]] = {}
    for kind in kinds:
        scores: PairScores
        if isinstance(kind, str):
            scores = baseline_scores(kind, graph.nodes, parts.train, derive_seed(seed, "run", 0))
        else:
            scores = _train_on(graph, kind, parts, 0, seed, features, split).scores
        ranks = ranks_among(_scores_of(scores, parts.validation), _scores_of(scores, parts.validation_negatives))
        found[kind if isinstance(kind, str) else kind.kind] = scores, 1 - (ranks - 1) / len(parts.validation_negatives)
    first = next(iter(found))
    chosen = max(found, key=lambda name: float(found[name][1].mean()))
    gain, error = mean_with_error(found[chosen][1] - found[first][1])
    if error is None or gain <= error:
        chosen = first
    # Validation edges have selected the epoch, so they are neither right nor wrong.
    known = np.concatenate([parts.train, parts.validation])
    keys, _ = _rank(graph.nodes, known, found[chosen][0], count)
    is_hidden = np.isin(keys.numpy(), parts.test[:, 0] * graph.nodes + parts.test[:, 1])
    areas = {name: float(each.mean()) for name, (_, each) in found.items()}

    return Ranking(chosen, len(keys), float(is_hidden.mean()) if len(keys) else 0.0, len(parts.test), areas)


def train_ranking(
    graph: Network,
    settings: LinkSettings,
    seed: int,
    *,
    features: bool | None = None,
    split: str = "connected",
    progress: Callable[[int, int], None] | None = None,
) -> PairScores:
    """Logits of all pairs by a model trained on all edges, to the last epoch."""
    _check_has_edges(graph)
    edges, own = graph.edges.astype(np.int64), derive_seed(seed, "all")

    return train_scores(graph, settings, edges, own, form=split, features=features, progress=progress).scores


def rank_missing_links(
    graph: Network, scores: PairScores, count: int, *, progress: Callable[[int, int], None] | None = None
) -> list[PredictedLink]:
    """The ``count`` most likely missing edges by logits, best first; all pairs are ranked, tile by tile."""
    keys, best = _rank(graph.nodes, graph.edges, scores, count, progress)

    return [PredictedLink(*pair, p) for pair, p in zip(_names(graph, keys), torch.sigmoid(best).tolist(), strict=True)]


def rank_by_baseline(
    graph: Network, name: str, count: int, seed: int, *, progress: Callable[[int, int], None] | None = None
) -> list[ScoredLink]:
    """The ``count`` missing edges with the highest scores of a baseline, best first, without those of score zero."""
    check_misses_links(graph)
    scores = baseline_scores(name, graph.nodes, graph.edges.astype(np.int64), derive_seed(seed, "all"))
    keys, best = _rank(graph.nodes, graph.edges, scores, count, progress)

    return [
        ScoredLink(*pair, score) for pair, score in zip(_names(graph, keys), best.tolist(), strict=True) if score > 0
    ]


def _names(graph: Network, keys: Tensor) -> list[tuple[Any, Any]]:
    return [(graph.name(key // graph.nodes), graph.name(key % graph.nodes)) for key in keys.tolist()]


@torch.no_grad()
def _rank(
    nodes: int,
    known: NDArray[np.integer],
    scores: PairScores,
    count: int,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Tensor, Tensor]:
    """Keys ``i * n + j`` and scores of the pairs other than the known edges that have the highest scores."""
    known = known[np.lexsort(known.T[::-1])]
    edges = torch.from_numpy(known.astype(np.int64))
    best_keys = torch.empty(0, dtype=torch.int64)
    best = torch.empty(0)
    bounds = [*range(0, nodes, max(1, TILE // max(nodes, 1))), nodes]
    # Edges are sorted by their first node: those of a tile are consecutive.
    places = np.searchsorted(known[:, 0], bounds)
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

    return best_keys, best


@torch.no_grad()
def _scores_of(scores: PairScores, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    parts = [scores.of(pair_tensor(pairs[start : start + PAIRS])) for start in range(0, len(pairs), PAIRS)]

    return np.asarray(torch.cat(parts).double().numpy())


@torch.no_grad()
def _areas(scores: PairScores, positives: Tensor, negatives: Tensor) -> tuple[float, float]:
    high, low = scores.of(positives).numpy(), scores.of(negatives).numpy()

    return area_under_curve(high, low), average_precision(high, low)
