"""Choosing the node ordering of an autoregressive model by short pilot runs on the training graphs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from ..autoregressive.ordering import attachment_degree, permute_to_ordering
from ..config import ModelConfig, TrainConfig
from ..data.batch import collate, consecutive_batches
from ..data.edge_states import arc_codes
from ..data.properties import is_dag
from ..data.schema import CodedGraph
from ..graph import SimpleGraph
from ..records import Record
from ..rng import derive_seed, stream
from .model import GraphNetwork, build_network, start_at_density
from .objectives import autoregressive_log_weights
from .optimiser import Optimiser
from .step import normal_noise

__all__ = ["FALLBACK", "OrderingChoice", "OrderingScore", "choose_ordering"]

FALLBACK = "bfs"
"""The ordering of runs that are too short to compare orderings."""

# Training graphs that tell whether directed graphs have cycles.
DAGS = 1000

# Every candidate is trained for this many steps, and the best ones as long again; for fewer steps if the run has fewer
# than RUN_STEPS for each of them. At least LEAST_STEPS, or one step per node: the bound of an ordering other than
# 'uniform' first has to make up for what the ordering itself tells, which takes longer in larger graphs. After 20 steps
# on planar graphs of 64 nodes 'uniform' was 40 nats ahead of 'max-cardinality', after 60 steps 28 nats behind.
STEPS, LEAST_STEPS, RUN_STEPS = 60, 20, 30
FINALISTS = 3
BATCH, BATCH_CELLS, SCORED_CELLS = 32, 1 << 14, 1 << 19
# Graphs that a candidate is scored on, fewer if they are large, and orderings of each.
GRAPHS, LEAST_GRAPHS, GRAPH_CELLS, ORDERINGS = 64, 8, 1 << 18, 4
WARMUP = 10
# Steps that are timed to find out how many there is time for, after one that warms up.
TIMED_STEPS = 2


@dataclass(frozen=True)
class OrderingScore(Record):
    """The held-out NLL of a pilot run with one ordering, in nats per graph, after some number of steps."""

    ordering: str
    nll: float
    steps: int


@dataclass(frozen=True)
class OrderingChoice(Record):
    """The ordering with the lowest NLL, and by how much it is lower than that of the next one, in nats per graph.

    ``left_out`` is the number of orderings that there was no time to compare.
    """

    ordering: str
    margin: float
    margin_error: float
    scores: list[OrderingScore]
    left_out: int = 0


def choose_ordering(
    graphs: Sequence[SimpleGraph],
    validation: Sequence[SimpleGraph],
    config: ModelConfig,
    training: TrainConfig,
    device: torch.device | str = "cpu",
    *,
    run_steps: int = 0,
    seconds: float = 0.0,
    clock: Callable[[], float] = time.monotonic,
    watch: Callable[[str], None] = lambda ordering: None,
) -> OrderingChoice | None:
    """Compare orderings by successive halving (Jamieson & Talwalkar, 2016); None if the run is too short for that.

    The pilot runs share their weights at the start, batches and held-out graphs, which are training graphs if there
    are no validation graphs. They take about a third of the steps of a run of ``run_steps``, on smaller batches; or,
    given ``seconds``, at most about that time, with fewer steps or orderings if it is short.
    ``watch`` is called with the ordering before each batch of a pilot run.
    """
    rules, pool = _candidates(graphs, config), validation or graphs
    count = int(np.clip(GRAPH_CELLS / np.mean([graph.nodes**2 for graph in pool]), LEAST_GRAPHS, GRAPHS))
    held_out = [pool[index] for index in stream(training.seed, "pilot graphs").permutation(len(pool))[:count]]
    configs = [replace(config, ordering=rule, encoder="none") for rule in rules]
    runs = [_Pilot(each, training, graphs, device, watch) for each in configs]
    end = clock() + seconds
    steps, tried = min(STEPS, run_steps // RUN_STEPS), len(runs)
    least = int(np.clip(np.mean([graph.nodes for graph in pool]), LEAST_STEPS, STEPS))
    if seconds:
        steps, tried = _affordable(runs[0], held_out, len(runs), least, end, clock)
    if steps < least:
        return None
    runs = runs[:tried]
    nats: dict[str, NDArray[np.float64]] = {}
    scored: list[OrderingScore] = []
    # With few orderings there is nothing to halve.
    for target, survivors in ((steps, tried), (2 * steps, FINALISTS))[: 2 if tried > FINALISTS else 1]:
        found = {}
        for run in runs[:survivors]:
            # Others may take longer than the first one; the most promising come first.
            if seconds and clock() > end:
                break
            run.train(target - run.steps)
            found[run.ordering] = run.score(held_out)
        if len(found) < (2 if target == steps else survivors):
            break
        nats = found
        runs = sorted(runs[: len(nats)], key=lambda run: float(nats[run.ordering].mean()))
        scored = [score for score in scored if score.ordering not in nats]
        scored += [OrderingScore(run.ordering, float(nats[run.ordering].mean()), target) for run in runs]
    if not nats:
        return None
    best, second = (nats[score.ordering] for score in scored[-len(nats) :][:2])
    difference = second - best
    error = float(difference.std(ddof=1)) / math.sqrt(len(difference)) if len(difference) > 1 else math.inf
    scored.sort(key=lambda score: (-score.steps, score.nll))

    return OrderingChoice(scored[0].ordering, float(difference.mean()), error, scored, len(rules) - len(scored))


def _affordable(
    run: _Pilot, held_out: Sequence[SimpleGraph], most: int, least: int, end: float, clock: Callable[[], float]
) -> tuple[int, int]:
    """The numbers of steps and of orderings to compare until some time; no steps if that is too soon for the least."""
    run.train(1)
    started = clock()
    run.train(TIMED_STEPS)
    step = (clock() - started) / TIMED_STEPS
    started = clock()
    part = held_out[:LEAST_GRAPHS]
    run.score(part)
    score = (clock() - started) / len(part) * len(held_out)
    for tried in (most, 5, FINALISTS, 2):
        trainings = tried + (FINALISTS if tried > FINALISTS else 0)
        steps = int(((end - clock()) / trainings - score) / max(step, 1e-9))
        if steps >= least:
            return min(STEPS, steps), tried

    return 0, 0


def _candidates(graphs: Sequence[SimpleGraph], config: ModelConfig) -> list[str]:
    """The orderings to compare, those that are best for most graphs first.

    ``topological`` is one of them if directed graphs have no cycle, ``attachment`` only if all nodes may add equally
    many edges, and more than one. ``frontier`` and ``degeneracy`` are not compared: pilot runs are too short for
    ``bfs`` and ``onion``, special cases of them that take longer to learn, and samples of lobsters were more often
    valid with ``onion``.
    """
    names = ["bfs", "onion", "uniform", "max-cardinality", "dfs", "max-degree"]
    if config.directed and all(_is_dag(graph, config) for graph in graphs[:DAGS]):
        return ["topological", *names]
    nodes = np.array([graph.nodes for graph in graphs])
    edges = np.array([float(len(graph.edges)) for graph in graphs])
    m = attachment_degree(edges, nodes)

    return ["attachment", *names] if ((m > 1) & (m * (nodes - m) == edges)).mean() > 0.9 else names


def _is_dag(graph: SimpleGraph, config: ModelConfig) -> bool:
    """Whether a graph, whose directions are states of its edges, has no directed cycle."""
    assert isinstance(graph, CodedGraph)
    assert graph.states is not None
    forward, backward = arc_codes(graph.states, config.edge_labels)
    arcs = np.concatenate([graph.edges[forward > 0], graph.edges[backward > 0][:, ::-1]])

    return is_dag(graph.nodes, arcs)


class _Pilot:
    """A short training run with one ordering."""

    def __init__(
        self,
        config: ModelConfig,
        training: TrainConfig,
        graphs: Sequence[SimpleGraph],
        device: torch.device | str,
        watch: Callable[[str], None],
    ) -> None:
        self.ordering, self.steps, self._watch = config.ordering, 0, watch
        self._training, self._graphs, self._device = training, graphs, device
        self._network: GraphNetwork = build_network(config, derive_seed(training.seed, "weights")).to(device)
        start_at_density(self._network, graphs)
        self._optimiser = Optimiser(self._network, training)

    def train(self, steps: int) -> None:
        cells = np.mean([graph.nodes**2 for graph in self._graphs])
        size = int(np.clip(BATCH_CELLS / cells, 2, BATCH))
        self._network.train()
        for _ in range(steps):
            rng = stream(self._training.seed, "pilot", self.steps)
            chosen = rng.integers(len(self._graphs), size=size)
            self._network.zero_grad()
            # Dropout has no generator of its own; the state of torch's global one is restored.
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(derive_seed(self._training.seed, "pilot dropout", self.steps))
                loss = -self._log_weights([self._graphs[index] for index in chosen], rng, self.steps).mean()
                torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(self._network.parameters(), self._training.clip)
            self._optimiser.step(self._training.learning_rate * min(1.0, (self.steps + 1) / WARMUP))
            self.steps += 1

    @torch.no_grad()
    def score(self, graphs: Sequence[SimpleGraph]) -> NDArray[np.float64]:
        """The NLL of every graph, by a few orderings, with shape :math:`(B,)`."""
        self._network.eval()
        rng, parts, start = stream(self._training.seed, "pilot score"), [], 0
        for count in consecutive_batches([graph.nodes for graph in graphs], BATCH, SCORED_CELLS):
            part, start = graphs[start : start + count], start + count
            weights = torch.stack([self._log_weights(part, rng, number, True) for number in range(ORDERINGS)])
            parts.append(-(weights.logsumexp(0) - math.log(ORDERINGS)))

        return torch.cat(parts).double().cpu().numpy()

    def _log_weights(
        self, graphs: Sequence[SimpleGraph], rng: np.random.Generator, number: int, is_unbiased: bool = False
    ) -> torch.Tensor:
        self._watch(self.ordering)
        batch = collate(graphs).to(self._device)
        generator = torch.Generator().manual_seed(derive_seed(self._training.seed, "pilot noise", number))
        ordered, log_q = permute_to_ordering(batch, self._network.config, rng, is_unbiased)
        noise = normal_noise(generator, batch, *batch.mask.shape, self._network.noise_features)
        epsilon = normal_noise(generator, batch, *batch.mask.shape, self._network.config.latent)

        return autoregressive_log_weights(self._network, ordered, noise, epsilon, log_q)
