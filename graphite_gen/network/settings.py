"""The settings of autoencoders and classifiers of one large graph."""

from __future__ import annotations

from dataclasses import dataclass

from ..config import KINDS, Autoencoder, Settings, require, require_range
from ..errors import ConfigError

__all__ = ["CLASSIFIERS", "GENERATION", "HEADS", "SKIPS", "TARGETS", "ClassifierSettings", "LinkSettings"]

SKIPS = ("convex", "incremental")
HEADS = ("inner", "biased", "signed")
TARGETS = ("hidden", "all")
CLASSIFIERS = ("gcn", "graphite")


@dataclass(frozen=True)
class LinkSettings(Autoencoder, Settings):
    r"""An autoencoder of one graph and how it is trained.

    Attributes:
        kind: ``graphite-vae``, ``graphite-ae``, ``vgae`` or ``gae``.
        width: Units of the encoder's hidden layer; 0 has none.
        latent: The latent dimension :math:`D`.
        decoder_width: Units of the decoder's hidden layers (Graphite only).
        hops: How far the last layer of the encoder listens, by personalised PageRank; 1 is near to a GCN.
        teleport: How soon it stops listening: the probability of starting again.
        rounds: How often eqs. 8-9 are iterated (Graphite only).
        skip: How a round joins its input: ``convex`` or ``incremental``.
        skip_weight: The weight :math:`\lambda` of the skip; 0 is exactly VGAE.
        head: How node states become logits: the paper's ``inner`` product, or a ``biased`` one that also knows how
            sought-after a node is; ``signed`` can also tie nodes to others than their like.
        edge_dropout: The part of the edges that the encoder does not see in an epoch.
        targets: Which edges are scored: those that were ``hidden`` from the encoder, as those to be predicted are, or
            ``all``, as in the paper.
        balanced: Whether edges count as much as all the pairs without one, as in the authors' code; else every pair
            counts once, and the objective is the ELBO.
        kl_weight: The weight of the KL term; 1 for the ELBO.
        subsample: How many pairs without an edge are scored in a step, per edge; 0 scores them all.
        epochs: Steps of training.
        learning_rate: The step size of Adam.
        validate_every: Epochs between validations.
    """

    kind: str = "graphite-vae"
    width: int = 0
    latent: int = 64
    decoder_width: int = 32
    hops: int = 8
    teleport: float = 0.1
    rounds: int = 1
    skip: str = "convex"
    skip_weight: float = 0.2
    head: str = "biased"
    edge_dropout: float = 0.5
    targets: str = "hidden"
    balanced: bool = True
    kl_weight: float = 1.0
    subsample: float = 1.0
    epochs: int = 300
    learning_rate: float = 0.01
    validate_every: int = 5

    def __post_init__(self) -> None:
        require("kind", self.kind, KINDS)
        require("skip", self.skip, SKIPS)
        require("head", self.head, HEADS)
        require("targets", self.targets, TARGETS)
        for name, high in (("latent", 1024), ("decoder_width", 4096), ("epochs", 10**9), ("validate_every", 10**9)):
            require_range(name, getattr(self, name), 1, high)
        for name, high in (("width", 4096), ("hops", 100), ("rounds", 100), ("skip_weight", 10), ("teleport", 1)):
            require_range(name, getattr(self, name), 0, high)
        for name in ("kl_weight", "subsample", "learning_rate"):
            require_range(name, getattr(self, name), 0, 10**9)
        if not 0 <= self.edge_dropout < 1:
            raise ConfigError(f"'edge_dropout' is {self.edge_dropout}; it should be at least 0 and less than 1.")
        if self.targets == "hidden" and self.edge_dropout == 0:
            raise ConfigError("No edge is hidden without edge dropout: choose targets 'all', or drop some edges.")


GENERATION = LinkSettings(latent=24, hops=1, head="signed", targets="all", edge_dropout=0.0, kl_weight=0.1)
"""Settings for new graphs like the one given: an encoder that listens near by, and all edges to learn, as the graph
itself is wanted and not what it may have missed."""


@dataclass(frozen=True)
class ClassifierSettings(Settings):
    r"""A classifier of nodes and how it is trained.

    Attributes:
        kind: ``gcn``, or ``graphite`` for the hybrid of a GCN and an autoencoder.
        width: Units of the hidden layer.
        latent: The latent dimension :math:`D` of the hybrid.
        dropout: The part of inputs and hidden units that are dropped in a step.
        weight_decay: The penalty on the weights of the first layer; None for what suits the kind.
        reconstruction: The weight of the autoencoder's objective beside the classifier's; 0 goes without.
        epochs: Steps of training.
        learning_rate: The step size of Adam.
        patience: Epochs without a better validation before stopping; 0 never stops early.
    """

    kind: str = "graphite"
    width: int = 32
    latent: int = 16
    dropout: float = 0.5
    weight_decay: float | None = None
    reconstruction: float = 0.1
    epochs: int = 200
    learning_rate: float = 0.01
    patience: int = 0

    def __post_init__(self) -> None:
        require("kind", self.kind, CLASSIFIERS)
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"'dropout' is {self.dropout}; it should be at least 0 and less than 1.")
        for name, high in (("width", 4096), ("latent", 1024), ("epochs", 10**9)):
            require_range(name, getattr(self, name), 1, high)
        for name in ("reconstruction", "learning_rate", "patience"):
            require_range(name, getattr(self, name), 0, 10**9)
        if self.weight_decay is not None:
            require_range("weight_decay", self.weight_decay, 0, 1)
