"""Choosing the node ordering of an autoregressive model by short pilot runs on the training graphs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from ..autoregressive.ordering import attachment_degree, permute_to_ordering
from ..config import ModelConfig, TrainConfig
from ..data.batch import collate, consecutive_batches
from ..graph import SimpleGraph
from ..records import Record
from ..rng import derive_seed, stream
from .model import GraphNetwork, build_network, start_at_density
from .objectives import autoregressive_log_weights
from .step import normal_noise

__all__ = ["FALLBACK", "OrderingChoice", "OrderingScore", "choose_ordering"]

FALLBACK = "bfs"
"""The ordering of runs that are too short to compare orderings."""

# Every candidate is trained for this many steps, and the best ones as long again; for fewer steps if the run has fewer
# than RUN_STEPS for each of them.
STEPS, LEAST_STEPS, RUN_STEPS = 60, 20, 30
FINALISTS = 3
BATCH, BATCH_CELLS, SCORED_CELLS = 32, 1 << 14, 1 << 19
# Graphs and orderings of each that a candidate is scored on.
GRAPHS, ORDERINGS = 64, 4
WARMUP = 10


@dataclass(frozen=True)
class OrderingScore(Record):
    """The held-out NLL of a pilot run with one ordering, in nats per graph, after some number of steps."""

    ordering: str
    nll: float
    steps: int


@dataclass(frozen=True)
class OrderingChoice(Record):
    """The ordering with the lowest NLL, and by how much it is lower than that of the next one, in nats per graph."""

    ordering: str
    margin: float
    margin_error: float
    scores: list[OrderingScore]


def choose_ordering(
    graphs: Sequence[SimpleGraph],
    validation: Sequence[SimpleGraph],
    config: ModelConfig,
    training: TrainConfig,
    run_steps: int,
    device: torch.device | str = "cpu",
) -> OrderingChoice | None:
    """Compare orderings by successive halving (Jamieson & Talwalkar, 2016); None if the run is too short for that.

    The pilot runs share their weights at the start, batches and held-out graphs, which are training graphs if there
    are no validation graphs. They take about a third of the steps of the run, on smaller batches.
    """
    steps = min(STEPS, run_steps // RUN_STEPS)
    if steps < LEAST_STEPS:
        return None
    runs = [_Pilot(replace(config, ordering=rule), training, graphs, device) for rule in _candidates(config, graphs)]
    pool = validation or graphs
    held_out = [pool[index] for index in stream(training.seed, "pilot graphs").permutation(len(pool))[:GRAPHS]]
    scored: list[OrderingScore] = []
    for survivors in (len(runs), FINALISTS):
        runs = runs[:survivors]
        nats = {}
        for run in runs:
            run.train(steps)
            nats[run.ordering] = run.score(held_out)
        runs.sort(key=lambda run: float(nats[run.ordering].mean()))
        scored = [score for score in scored if score.ordering not in nats]
        scored += [OrderingScore(run.ordering, float(nats[run.ordering].mean()), run.steps) for run in runs]
    best, second = (nats[run.ordering] for run in runs[:2])
    difference = second - best
    error = float(difference.std(ddof=1)) / math.sqrt(len(difference)) if len(difference) > 1 else math.inf
    scored.sort(key=lambda score: (-score.steps, score.nll))

    return OrderingChoice(runs[0].ordering, float(difference.mean()), error, scored)


def _candidates(config: ModelConfig, graphs: Sequence[SimpleGraph]) -> list[str]:
    """The orderings to compare; ``attachment`` only for graphs in which all nodes may add equally many edges."""
    names = ["bfs", "dfs", "max-cardinality", "degeneracy", "onion", "max-degree", "uniform"]
    nodes = np.array([graph.nodes for graph in graphs])
    edges = np.array([float(len(graph.edges)) for graph in graphs])
    m = attachment_degree(edges, nodes)

    return ["attachment", *names] if (m * (nodes - m) == edges).mean() > 0.9 else names


class _Pilot:
    """A short training run with one ordering."""

    def __init__(
        self, config: ModelConfig, training: TrainConfig, graphs: Sequence[SimpleGraph], device: torch.device | str
    ) -> None:
        self.ordering, self.steps = config.ordering, 0
        self._training, self._graphs, self._device = training, graphs, device
        self._network: GraphNetwork = build_network(config, derive_seed(training.seed, "weights")).to(device)
        start_at_density(self._network, graphs)
        self._optimiser = torch.optim.AdamW(
            self._network.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay
        )

    def train(self, steps: int) -> None:
        cells = np.mean([graph.nodes**2 for graph in self._graphs])
        size = int(np.clip(BATCH_CELLS / cells, 2, BATCH))
        self._network.train()
        for _ in range(steps):
            rng = stream(self._training.seed, "pilot", self.steps)
            chosen = rng.integers(len(self._graphs), size=size)
            for group in self._optimiser.param_groups:
                group["lr"] = self._training.learning_rate * min(1.0, (self.steps + 1) / WARMUP)
            self._optimiser.zero_grad()
            # Dropout has no generator of its own; the state of torch's global one is restored.
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(derive_seed(self._training.seed, "pilot dropout", self.steps))
                loss = -self._log_weights([self._graphs[index] for index in chosen], rng, self.steps).mean()
                torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(self._network.parameters(), self._training.clip)
            self._optimiser.step()
            self.steps += 1

    @torch.no_grad()
    def score(self, graphs: Sequence[SimpleGraph]) -> NDArray[np.float64]:
        """The NLL of every graph, by a few orderings, with shape :math:`(B,)`."""
        self._network.eval()
        rng, parts, start = stream(self._training.seed, "pilot score"), [], 0
        for count in consecutive_batches([graph.nodes for graph in graphs], BATCH, SCORED_CELLS):
            part, start = graphs[start : start + count], start + count
            weights = torch.stack([self._log_weights(part, rng, number) for number in range(ORDERINGS)])
            parts.append(-(weights.logsumexp(0) - math.log(ORDERINGS)))

        return torch.cat(parts).double().cpu().numpy()

    def _log_weights(self, graphs: Sequence[SimpleGraph], rng: np.random.Generator, number: int) -> torch.Tensor:
        batch = collate(graphs).to(self._device)
        generator = torch.Generator().manual_seed(derive_seed(self._training.seed, "pilot noise", number))
        ordered, log_q = permute_to_ordering(batch, self.ordering, rng)
        noise = normal_noise(generator, batch, *batch.mask.shape, self._network.noise_features)
        epsilon = normal_noise(generator, batch, *batch.mask.shape, self._network.config.latent)

        return autoregressive_log_weights(self._network, ordered, noise, epsilon, log_q)
