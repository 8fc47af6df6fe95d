"""Semi-supervised classification of nodes: a GCN, and its hybrid with Graphite."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ..config import require, require_count
from ..errors import DatasetError, TrainingError
from ..nn import GraphConv
from ..nn.operators import SparseGraph
from ..records import Record, count_of, mean_with_error
from ..rng import derive_seed, stream
from .autoencoder import InputConv, LinkNetwork, build_link_network
from .fitting import check_step_memory, hide_edges, link_loss
from .network import Network, NodeSplit
from .node_inputs import IdentityInputs, NodeInputs, dropout, inputs_of
from .settings import ClassifierSettings, LinkSettings

__all__ = [
    "NODE_SPLITS",
    "ClassificationResult",
    "ClassificationScore",
    "GCNClassifier",
    "GraphiteClassifier",
    "iterate_classification",
    "node_split",
    "run_classification",
    "run_nodes",
    "summarise_classification",
]

# What weights of the first layer cost: as published for the GCN; for the hybrid, chosen by validation accuracy.
WEIGHT_DECAY = {"gcn": 5e-4, "graphite": 0.02}
NODE_SPLITS = ("own", "fresh")
"""The graph's own split, or one like Planetoid's; and a fresh one like it in every run."""
# What Planetoid's public split has, for graphs that come without one.
TRAIN_PER_CLASS, VALIDATION, TEST = 20, 500, 1000


@dataclass(frozen=True)
class ClassificationScore(Record):
    """One run.

    Attributes:
        run: The number of the run, which makes its seed.
        accuracy: The part of the test nodes that are given their class.
        validation: The same for the validation nodes, which the epoch is chosen by.
        epoch: The epoch that was chosen.
        predictions: The class that each node is given, with shape :math:`(n,)`.
        probabilities: How likely that class is by the model, with shape :math:`(n,)`.
        test_nodes: How many test nodes there are.
    """

    run: int
    accuracy: float
    validation: float
    epoch: int
    predictions: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    test_nodes: int


@dataclass(frozen=True)
class ClassificationResult(Record):
    """The mean over runs, with its standard error (None for a single run); each run scores so many test nodes."""

    model: str
    features: bool
    runs: int
    accuracy: float
    accuracy_se: float | None
    test_nodes: int


class GCNClassifier(nn.Module):
    """The GCN of Kipf & Welling (2017): two graph convolutions, with dropout before both."""

    def __init__(self, in_features: int, width: int, classes: int, rate: float) -> None:
        super().__init__()

        self.hidden = InputConv(in_features, width)
        self.out = GraphConv(width, classes)
        self.rate = rate

    def forward(self, graph: SparseGraph, inputs: NodeInputs, generator: torch.Generator | None) -> Tensor:
        """Log-odds of the classes, with shape :math:`(N, C)`; without a generator nothing is dropped."""
        return self.odds(graph, self.hidden_states(graph, inputs, generator))

    def hidden_states(self, graph: SparseGraph, inputs: NodeInputs, generator: torch.Generator | None) -> Tensor:
        """The units of the hidden layer, with shape :math:`(N, W)`."""
        if generator is None:
            return torch.relu(self.hidden(graph, inputs))
        h = torch.relu(self.hidden(graph, inputs.dropped(self.rate, generator)))

        return dropout(h, self.rate, generator)

    def odds(self, graph: SparseGraph, h: Tensor) -> Tensor:
        """Log-odds of the classes given the hidden units, with shape :math:`(N, C)`."""
        odds: Tensor = self.out(graph, h)

        return odds


class GraphiteClassifier(GCNClassifier):
    """A GCN that shares its hidden layer with the encoder of an autoencoder.

    The layer that gives the classes listens as far as those that give the latents.
    """

    def __init__(self, autoencoder: LinkNetwork, in_features: int, width: int, classes: int, rate: float) -> None:
        super().__init__(in_features, width, classes, rate)

        self.autoencoder = autoencoder
        self.autoencoder.encoder.hidden = self.hidden

    def odds(self, graph: SparseGraph, h: Tensor) -> Tensor:
        """Log-odds of the classes given the hidden units, with shape :math:`(N, C)`."""
        odds: Tensor = self.out(self.autoencoder.encoder.far(graph), h)

        return odds


def node_split(graph: Network, seed: int) -> NodeSplit:
    """The graph's own split, or one like Planetoid's: some nodes of each class to learn from, then 500 and 1000.

    Where there are fewer labels, validation and test share what is left in the same proportion.

    Raises:
        DatasetError: The graph has no labels, of one class only, or too few of them.
    """
    if graph.labels is None or len(graph.classes) < 2:
        raise DatasetError(
            f"The graph has labels of {count_of(len(graph.classes), 'class')}, and at least 2 are wanted: give its "
            f"nodes a 'label', or pass a file with '--node-labels'."
        )
    if graph.split is not None:
        # Citeseer tests papers of which nothing is known: they have no class to be given.
        parts = (graph.split.train, graph.split.validation, graph.split.test)
        split = NodeSplit(*(part[graph.labels[part] >= 0] for part in parts))
    else:
        split = _fresh_split(graph.labels, len(graph.classes), stream(seed, "nodes"))
    for name in ("train", "validation", "test"):
        if not len(getattr(split, name)):
            raise DatasetError(f"No labelled node is for {name}: label more nodes, or name some in the split.")

    return split


def _fresh_split(labels: NDArray[np.int64], classes: int, generator: np.random.Generator) -> NodeSplit:
    order = generator.permutation(np.flatnonzero(labels >= 0))
    # Never more than half of a class, so that there is something to test it on.
    train = np.concatenate(
        [
            members[: min(TRAIN_PER_CLASS, (len(members) + 1) // 2)]
            for members in (order[labels[order] == label] for label in range(classes))
        ]
    )
    rest = order[~np.isin(order, train)]
    validation = min(VALIDATION, len(rest) * VALIDATION // (VALIDATION + TEST))

    return NodeSplit(train, rest[:validation], rest[validation : validation + TEST])


def run_nodes(graph: Network, split: str, seed: int, run: int) -> NodeSplit:
    """The nodes of a run: the same for every model, and as many in every run.

    Raises:
        ConfigError: There is no such split.
        DatasetError: The graph has too few labels.
    """
    require("split", split, NODE_SPLITS)
    if split == "own":
        return node_split(graph, seed)

    return node_split(replace(graph, split=None), derive_seed(seed, "nodes", run))


def iterate_classification(
    graph: Network,
    settings: ClassifierSettings,
    runs: int,
    seed: int,
    *,
    features: bool | None = None,
    split: str = "own",
) -> Iterator[ClassificationScore]:
    """Train and score a classifier from one fresh start after the other; see :func:`run_classification`."""
    require_count("runs", runs)

    return (run_classification(graph, settings, run, seed, features=features, split=split) for run in range(runs))


@torch.enable_grad()
def run_classification(
    graph: Network,
    settings: ClassifierSettings,
    run: int,
    seed: int,
    *,
    features: bool | None = None,
    split: str = "own",
) -> ClassificationScore:
    """Train a classifier from a fresh start, and score it at its best epoch by validation.

    Arguments:
        graph: The graph.
        settings: The classifier and its training.
        run: The number of the run; it is the same however many there are.
        seed: The one seed of all runs.
        features: Whether node features are used; None does where there are any.
        split: One of ``NODE_SPLITS``: the same nodes to learn from in all runs, or others in each.

    Raises:
        ConfigError: There is no such split.
        DatasetError: The graph has too few labels, no features to use, or neither edges nor features.
        TrainingError: A step does not fit in memory, or the objective is no number any more.
    """
    parts = run_nodes(graph, split, seed, run)
    inputs = inputs_of(graph, features)
    if not len(graph.edges) and isinstance(inputs, IdentityInputs):
        raise DatasetError(
            "The graph has no edges and no features are used, so a label says nothing about other nodes: pass a graph "
            "that has some."
        )
    edges = torch.from_numpy(np.ascontiguousarray(graph.edges.T, dtype=np.int64))
    seed = derive_seed(seed, "classifier", run)
    assert graph.labels is not None
    labels = torch.from_numpy(graph.labels)
    train, validation, test = (torch.from_numpy(part) for part in (parts.train, parts.validation, parts.test))
    # The autoencoder is that of link prediction: it learns the edges that are hidden from it.
    own = LinkSettings(width=settings.width, latent=settings.latent)
    check_step_memory(own, edges.shape[1], graph.nodes)
    network = _build(settings, own, inputs.width, len(graph.classes), derive_seed(seed, "weights"))
    generator = torch.Generator().manual_seed(derive_seed(seed, "training"))
    optimiser = _optimiser(network, settings)
    whole = SparseGraph.from_edges(edges, graph.nodes).normalised()

    best, best_epoch = (-1.0, -math.inf), 0
    best_odds: Tensor | None = None
    for epoch in range(1, settings.epochs + 1):
        seen, hidden = whole, torch.zeros(edges.shape[1], dtype=torch.bool)
        if isinstance(network, GraphiteClassifier):
            seen, hidden = hide_edges(edges, whole, own.edge_dropout, generator)
        h = network.hidden_states(seen, inputs, generator)
        loss = F.cross_entropy(network.odds(seen, h)[train], labels[train])
        if isinstance(network, GraphiteClassifier) and settings.reconstruction:
            posterior = network.autoencoder.encoder.posterior(seen, h)
            loss = loss + settings.reconstruction * link_loss(
                network.autoencoder, own, posterior, inputs, edges, hidden, generator
            )
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()

        with torch.no_grad():
            odds = network(whole, inputs, None)
        # Of epochs that are right as often, the surest.
        nats = float(F.cross_entropy(odds[validation], labels[validation]))
        figure = (_accuracy(odds, labels, validation), -nats)
        if not math.isfinite(nats):
            raise TrainingError(
                "The objective is no number any more: train with a lower learning rate, "
                "'--learning-rate' (in Python, 'learning_rate')."
            )
        if figure > best:
            best, best_epoch, best_odds = figure, epoch, odds
        elif settings.patience and epoch - best_epoch >= settings.patience:
            break
    assert best_odds is not None
    predictions, probabilities = best_odds.argmax(-1), best_odds.double().softmax(-1).amax(-1)
    right = float((predictions[test] == labels[test]).double().mean())

    return ClassificationScore(
        run, right, best[0], best_epoch, predictions.numpy(), probabilities.numpy(), len(parts.test)
    )


def _optimiser(network: GCNClassifier, settings: ClassifierSettings) -> torch.optim.Optimizer:
    """Adam, with a penalty on the weights of the first layer, as in Kipf & Welling (2017)."""
    first = list(network.hidden.parameters())
    known = {id(parameter) for parameter in first}
    rest = [parameter for parameter in network.parameters() if id(parameter) not in known]
    decay = WEIGHT_DECAY[settings.kind] if settings.weight_decay is None else settings.weight_decay

    groups: list[dict[str, Any]] = [{"params": first, "weight_decay": decay}, {"params": rest}]

    return torch.optim.Adam(groups, lr=settings.learning_rate)


def _accuracy(odds: Tensor, labels: Tensor, nodes: Tensor) -> float:
    return float((odds[nodes].argmax(-1) == labels[nodes]).double().mean())


def _build(settings: ClassifierSettings, own: LinkSettings, in_features: int, classes: int, seed: int) -> GCNClassifier:
    # Layers draw their weights from torch's own generator: the user's must come out as it was.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if settings.kind == "gcn":
            return GCNClassifier(in_features, settings.width, classes, settings.dropout)
        autoencoder = build_link_network(own, in_features, derive_seed(seed, "autoencoder"))

        return GraphiteClassifier(autoencoder, in_features, settings.width, classes, settings.dropout)


def summarise_classification(model: str, features: bool, scores: Sequence[ClassificationScore]) -> ClassificationResult:
    """The mean of some runs and its standard error."""
    accuracy = mean_with_error([score.accuracy for score in scores])

    return ClassificationResult(model, features, len(scores), *accuracy, scores[0].test_nodes)
