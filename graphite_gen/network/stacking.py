"""Training of an autoencoder whose logits are combined with pair features, fitted on edges hidden from both."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..rng import derive_seed, stream
from .fitting import train_autoencoder
from .hyperparameters import LinkSettings
from .network import Network
from .node_inputs import inputs_of
from .pair_features import CombinedLogits, PairFeatures, combination_terms, fit_combination
from .pair_logits import PairLogits
from .pair_scores import PairScores
from .splits import Pairs, hold_out, sample_non_edges

__all__ = ["TrainedScores", "pair_tensor", "train_scores"]

# A fold of held-out training edges; there are more folds until they have FEW edges together, up to MOST_FOLDS.
FOLD = 0.1
FEW, MOST_FOLDS = 200, 5
# Edges of a fold that are scored. The combination has few weights, and this bounds the cost in large networks.
MOST_EDGES = 2000

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class TrainedScores:
    """Logits of all pairs by a trained model, and its selected epoch."""

    scores: PairScores
    epoch: int


@torch.no_grad()
def train_scores(
    graph: Network,
    settings: LinkSettings,
    edges: Pairs,
    seed: int,
    *,
    form: str = "connected",
    features: bool | None = None,
    validate: Callable[[PairLogits], float] | None = None,
    progress: Progress | None = None,
) -> TrainedScores:
    r"""Train a model on edges of shape :math:`(E, 2)`; with pair features, combine its logits with them by stacking.

    The combination is fitted on folds of the edges that are hidden from both: another autoencoder is trained on the
    other edges, for as many epochs, and the features are those of the graph of the other edges. The edges of a fold are
    held out like those of a split of the given form.
    """
    folds = list(_folds(graph.nodes, edges, form, seed)) if settings.pair_features == "heuristics" else []
    parts = 1 + len(folds)

    def train(part: int, kept: Pairs, own: LinkSettings, named: int) -> tuple[PairLogits, int]:
        def count(epoch: int, epochs: int) -> None:
            if progress is not None:
                progress(part * epochs + epoch, parts * epochs)

        trained = train_autoencoder(
            own,
            pair_tensor(kept),
            graph.nodes,
            inputs_of(graph, features, kept),
            named,
            validate=None if part else validate,
            progress=count,
        )
        return trained.logits(), trained.epoch

    logits, epoch = train(0, edges, settings, seed)
    if not folds:
        return TrainedScores(logits, epoch)

    terms, is_edge = [], []
    for part, (kept, present, absent) in enumerate(folds, 1):
        pairs = pair_tensor(np.concatenate([present, absent]))
        thinner, _ = train(part, kept, replace(settings, epochs=epoch), derive_seed(seed, "fold", part))
        heuristics = PairFeatures.from_edges(graph.nodes, kept)
        terms.append(torch.stack([*combination_terms(thinner.of(pairs), heuristics.of(pairs))]))
        is_edge.append(torch.arange(pairs.shape[1]) < len(present))
    weights, bias = fit_combination(torch.cat(terms, dim=1), torch.cat(is_edge))

    return TrainedScores(CombinedLogits(logits, PairFeatures.from_edges(graph.nodes, edges), weights, bias), epoch)


def _folds(nodes: int, edges: Pairs, form: str, seed: int) -> Iterator[tuple[Pairs, Pairs, Pairs]]:
    """The kept edges, the scored ones and as many non-edges of each fold; none if there are too few pairs."""
    size = int(FOLD * len(edges))
    absent = math.comb(nodes, 2) - len(edges)
    for part in range(min(MOST_FOLDS, math.ceil(FEW / max(size, 1)))):
        draw = stream(seed, "fold", part)
        held = hold_out(nodes, edges, size, draw, form=form)
        scored = edges[held[: min(len(held), absent, MOST_EDGES)]]
        if not len(scored):
            return
        kept = np.ones(len(edges), dtype=np.bool_)
        kept[held] = False
        yield edges[kept], scored, sample_non_edges(nodes, edges, len(scored), draw)


def pair_tensor(pairs: NDArray[np.integer]) -> Tensor:
    """Pairs :math:`(M, 2)` as a tensor with shape :math:`(2, M)`."""
    return torch.from_numpy(np.ascontiguousarray(pairs.T, dtype=np.int64))
