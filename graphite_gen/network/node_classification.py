"""Semi-supervised node classification: a GCN, and its hybrids with Graphite."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ..config import require
from ..errors import DatasetError
from ..nn.conv import GraphConv
from ..nn.operators import SparseGraph
from ..records import Record, count_of, mean_with_error
from ..rng import derive_seed, stream
from .autoencoder import InputConv, LinkNetwork, build_link_network
from .fitting import check_finite, check_step_memory, hide_edges, link_loss
from .hyperparameters import ClassifierSettings, LinkSettings
from .network import Network, NodeSplit
from .node_inputs import IdentityInputs, NodeInputs, dropout, inputs_of

__all__ = ["ClassificationResult", "ClassificationScore", "run_classification", "run_nodes", "summarise_classification"]

# Weight decay of the first layer: as published for the GCN; chosen by validation accuracy for our hybrid. The paper
# states none for its own, which has that of the GCN.
WEIGHT_DECAY = {"gcn": 5e-4, "graphite": 0.02, "graphite-paper": 5e-4}
NODE_SPLITS = ("own", "fresh")
# The sizes of Planetoid's public split.
TRAIN_PER_CLASS, VALIDATION, TEST = 20, 500, 1000
# With as many labels per class or fewer, none is held out.
HANDFUL = 5


@dataclass(frozen=True)
class ClassificationScore(Record):
    """Accuracy of one run on test and validation nodes at its best epoch by the latter; None without such nodes.

    Predicted classes of all nodes and their probabilities have shape :math:`(n,)`.
    """

    run: int
    accuracy: float | None
    validation: float | None
    epoch: int
    predictions: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    test_nodes: int


@dataclass(frozen=True)
class ClassificationResult(Record):
    """Mean accuracy over runs, with its standard error (None for one run); ``test_nodes`` is per run.

    Without test nodes the accuracy is None.
    """

    model: str
    features: bool
    runs: int
    accuracy: float | None
    accuracy_se: float | None
    test_nodes: int


class GCNClassifier(nn.Module):
    """The GCN of Kipf & Welling (2017): two graph convolutions, with dropout before each."""

    def __init__(self, in_features: int, width: int, classes: int, rate: float) -> None:
        super().__init__()

        self.hidden = InputConv(in_features, width)
        self.out = GraphConv(width, classes)
        self.rate = rate

    def forward(self, graph: SparseGraph, inputs: NodeInputs, generator: torch.Generator | None) -> Tensor:
        """Class logits, with shape :math:`(N, C)`; without a generator there is no dropout."""
        return self.class_logits(graph, self.hidden_states(graph, inputs, generator), inputs, generator)

    def hidden_states(self, graph: SparseGraph, inputs: NodeInputs, generator: torch.Generator | None) -> Tensor:
        """Hidden states, with shape :math:`(N, W)`."""
        if generator is None:
            return torch.relu(self.hidden(graph, inputs))
        h = torch.relu(self.hidden(graph, inputs.dropped(self.rate, generator)))

        return dropout(h, self.rate, generator)

    def class_logits(
        self, graph: SparseGraph, h: Tensor, inputs: NodeInputs, generator: torch.Generator | None
    ) -> Tensor:
        """Class logits given the hidden states, with shape :math:`(N, C)`."""
        return self.out(graph, h)


class GraphiteClassifier(GCNClassifier):
    """A GCN that shares its hidden layer and its propagation (APPNP) with the encoder of an autoencoder."""

    def __init__(self, autoencoder: LinkNetwork, in_features: int, width: int, classes: int, rate: float) -> None:
        super().__init__(in_features, width, classes, rate)

        self.autoencoder = autoencoder
        self.autoencoder.encoder.hidden = self.hidden

    def class_logits(
        self, graph: SparseGraph, h: Tensor, inputs: NodeInputs, generator: torch.Generator | None
    ) -> Tensor:
        return self.out(self.autoencoder.encoder.propagation(graph), h)


class PosteriorClassifier(GraphiteClassifier):
    r"""A classifier with the inputs of the paper's: a graph convolution of posterior parameters and node features.

    .. math:: \tilde{A} [\mu | \log \sigma | X] W + b

    The encoder is that of the autoencoder. Dropout of the node features, as in a GCN, is ours.
    """

    def __init__(self, autoencoder: LinkNetwork, in_features: int, width: int, classes: int, rate: float) -> None:
        super().__init__(autoencoder, in_features, width, classes, rate)

        mu = autoencoder.encoder.mu
        assert isinstance(mu, GraphConv), "the encoder has a hidden layer"
        # The product with [mu | log sigma | X] is the sum of two, as X is sparse.
        self.out = GraphConv(2 * mu.linear.out_features, classes)
        self.out_inputs = InputConv(in_features, classes)

    def class_logits(
        self, graph: SparseGraph, h: Tensor, inputs: NodeInputs, generator: torch.Generator | None
    ) -> Tensor:
        posterior = self.autoencoder.encoder.posterior(graph, h)
        x = inputs if generator is None else inputs.dropped(self.rate, generator)

        return self.out(graph, torch.cat([posterior.mu, posterior.log_sigma], -1)) + self.out_inputs(graph, x)


def run_nodes(graph: Network, split: str, seed: int, run: int) -> NodeSplit:
    """The split of a run, the same for every model: that of the network (``own``), or a random one like Planetoid's.

    A random split has 20 nodes of each class to train, then 500 and 1000. With fewer labels, validation and test share
    the rest in the same proportion, and with up to five per class all are used to train. Without a split of the
    network, ``own`` is the same random one in all runs.
    """
    require("split", split, NODE_SPLITS)
    if graph.labels is None or len(graph.classes) < 2:
        raise DatasetError(
            f"The graph has labels of {count_of(len(graph.classes), 'class')}: classification needs 2 or more.",
            reason="no-labels",
        )
    if split == "own" and graph.split is not None:
        # Some test nodes of Citeseer are unlabelled.
        own = (graph.split.train, graph.split.validation, graph.split.test)
        parts = NodeSplit(*(part[graph.labels[part] >= 0] for part in own))
    else:
        seed = seed if split == "own" else derive_seed(seed, "nodes", run)
        parts = _fresh_split(graph.labels, len(graph.classes), stream(seed, "nodes"))
    if not len(parts.train):
        raise DatasetError("The split has no labelled nodes for train.")

    return parts


def _fresh_split(labels: NDArray[np.int64], classes: int, generator: np.random.Generator) -> NodeSplit:
    order = generator.permutation(np.flatnonzero(labels >= 0))
    if len(order) <= HANDFUL * classes:
        return NodeSplit(np.sort(order), order[:0], order[:0])
    # At most half of a class, so that some nodes are left to test it.
    train = np.concatenate(
        [
            members[: min(TRAIN_PER_CLASS, (len(members) + 1) // 2)]
            for members in (order[labels[order] == label] for label in range(classes))
        ]
    )
    rest = order[~np.isin(order, train)]
    validation = min(VALIDATION, len(rest) * VALIDATION // (VALIDATION + TEST))

    return NodeSplit(train, rest[:validation], rest[validation : validation + TEST])


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
    """Train a classifier and score it at its best epoch by validation; without validation nodes, at the last one."""
    parts = run_nodes(graph, split, seed, run)
    inputs = inputs_of(graph, features)
    if not len(graph.edges) and isinstance(inputs, IdentityInputs):
        raise DatasetError("The graph has no edges and no features are used: labels cannot be predicted.")
    edges = torch.from_numpy(np.ascontiguousarray(graph.edges.T, dtype=np.int64))
    seed = derive_seed(seed, "classifier", run)
    assert graph.labels is not None
    labels = torch.from_numpy(graph.labels)
    train, validation, test = (torch.from_numpy(part) for part in (parts.train, parts.validation, parts.test))
    # The autoencoder of link prediction, trained on the edges that are hidden from it; in the paper, none are.
    own = LinkSettings(width=settings.width, latent=settings.latent)
    if settings.kind == "graphite-paper":
        own = own.changed(hops=1, teleport=0.0, edge_dropout=0.0, targets="all")
    check_step_memory(own, edges.shape[1], graph.nodes)
    network = _build(settings, own, inputs.width, len(graph.classes), derive_seed(seed, "weights"))
    generator = torch.Generator().manual_seed(derive_seed(seed, "training"))
    optimiser = _optimiser(network, settings)
    whole = SparseGraph.from_edges(edges, graph.nodes).normalised()

    best, best_epoch = (-1.0, -math.inf), 0
    # Without validation nodes every epoch is better than the one before.
    held_out = validation if len(validation) else train
    best_logits: Tensor | None = None
    for epoch in range(1, settings.epochs + 1):
        seen, hidden = whole, torch.zeros(edges.shape[1], dtype=torch.bool)
        if isinstance(network, GraphiteClassifier):
            seen, hidden = hide_edges(edges, whole, own.edge_dropout, generator)
        h = network.hidden_states(seen, inputs, generator)
        loss = F.cross_entropy(network.class_logits(seen, h, inputs, generator)[train], labels[train])
        if isinstance(network, GraphiteClassifier) and settings.reconstruction:
            posterior = network.autoencoder.encoder.posterior(seen, h)
            loss = loss + settings.reconstruction * link_loss(
                network.autoencoder, own, posterior, inputs, edges, hidden, generator
            )
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()

        with torch.no_grad():
            logits = network(whole, inputs, None)
        # Ties in accuracy are broken by cross-entropy.
        nats = float(F.cross_entropy(logits[held_out], labels[held_out]))
        check_finite(nats)
        score = (_accuracy(logits, labels, held_out), -nats)
        if score > best or not len(validation):
            best, best_epoch, best_logits = score, epoch, logits
        elif settings.patience and epoch - best_epoch >= settings.patience:
            break
    assert best_logits is not None
    accuracy = _accuracy(best_logits, labels, test) if len(test) else None
    best_accuracy = best[0] if len(validation) else None
    predictions, probabilities = best_logits.argmax(-1), best_logits.double().softmax(-1).amax(-1)

    return ClassificationScore(
        run, accuracy, best_accuracy, best_epoch, predictions.numpy(), probabilities.numpy(), len(parts.test)
    )


def _optimiser(network: GCNClassifier, settings: ClassifierSettings) -> torch.optim.Optimizer:
    """Adam with weight decay of the first layer only, as in Kipf & Welling (2017)."""
    first = list(network.hidden.parameters())
    rest = [parameter for parameter in network.parameters() if all(parameter is not each for each in first)]
    decay = WEIGHT_DECAY[settings.kind] if settings.weight_decay is None else settings.weight_decay

    groups: list[dict[str, Any]] = [{"params": first, "weight_decay": decay}, {"params": rest}]

    return torch.optim.Adam(groups, lr=settings.learning_rate)


def _accuracy(logits: Tensor, labels: Tensor, nodes: Tensor) -> float:
    return float((logits[nodes].argmax(-1) == labels[nodes]).double().mean())


def _build(settings: ClassifierSettings, own: LinkSettings, in_features: int, classes: int, seed: int) -> GCNClassifier:
    # Layers draw from torch's global generator, whose state is restored for the caller.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if settings.kind == "gcn":
            return GCNClassifier(in_features, settings.width, classes, settings.dropout)
        autoencoder = build_link_network(own, in_features, derive_seed(seed, "autoencoder"))
        hybrid = PosteriorClassifier if settings.kind == "graphite-paper" else GraphiteClassifier

        return hybrid(autoencoder, in_features, settings.width, classes, settings.dropout)


def summarise_classification(model: str, features: bool, scores: Sequence[ClassificationScore]) -> ClassificationResult:
    """Mean accuracy and its standard error."""
    found = [score.accuracy for score in scores if score.accuracy is not None]
    accuracy, error = mean_with_error(found) if found else (None, None)

    return ClassificationResult(model, features, len(scores), accuracy, error, scores[0].test_nodes)
