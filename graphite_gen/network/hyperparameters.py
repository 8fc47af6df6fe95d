"""Settings of the autoencoders and classifiers of one large network."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..config import KINDS, Autoencoder, Settings, require, require_range
from ..errors import ConfigError

__all__ = [
    "CLASSIFIERS",
    "GENERATION",
    "HEADS",
    "LARGE_GENERATION",
    "PAIR_FEATURES",
    "SKIPS",
    "TARGETS",
    "ClassifierSettings",
    "LinkSettings",
]

SKIPS = ("convex", "incremental")
HEADS = ("inner", "biased", "signed")
TARGETS = ("hidden", "all")
PAIR_FEATURES = ("heuristics", "none")
CLASSIFIERS = ("gcn", "graphite", "graphite-paper")


@dataclass(frozen=True)
class LinkSettings(Autoencoder, Settings):
    r"""An autoencoder of one network and its training.

    Attributes:
        kind: ``graphite-vae``, ``graphite-ae``, ``vgae`` or ``gae``.
        width: Units of the encoder's hidden layer; 0 for none.
        latent: The latent dimension :math:`D`.
        decoder_width: Units of the decoder's hidden layers (Graphite only).
        hops: Propagation steps of the encoder's last layer (APPNP).
        teleport: Teleport probability :math:`\alpha` of the propagation; 0 with one hop is a GCN.
        rounds: Refinement rounds, eqs. 8-9 (Graphite only).
        skip: The skip connection of a round: ``convex`` or ``incremental``.
        skip_weight: The weight :math:`\lambda` of the skip connection; 0 is exactly VGAE.
        head: The logits of pairs: the paper's ``inner`` product; ``biased`` adds a bias per node; ``signed`` also has
            negative dimensions, for disassortative networks.
        edge_dropout: The fraction of edges hidden from the encoder in each epoch.
        targets: The edges in the loss: those ``hidden`` from the encoder, or ``all``, as in the paper.
        balanced: Whether edges and non-edges have the same total weight, as in the authors' code; otherwise every pair
            has weight one, and the objective is the ELBO.
        kl_weight: The weight of the KL term; 1 for the ELBO.
        subsample: Non-edges scored per edge in each step; 0 scores all pairs.
        pair_features: ``heuristics`` to combine the logits with features of pairs such as personalised PageRank and
            common neighbours, for link prediction only; ``none`` for the logits alone, as in the paper.
        epochs: Training steps.
        learning_rate: The learning rate of Adam.
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
    pair_features: str = "heuristics"
    epochs: int = 300
    learning_rate: float = 0.01
    validate_every: int = 5

    def __post_init__(self) -> None:
        require("kind", self.kind, KINDS)
        require("skip", self.skip, SKIPS)
        require("head", self.head, HEADS)
        require("targets", self.targets, TARGETS)
        require("pair_features", self.pair_features, PAIR_FEATURES)
        for name, high in (("latent", 1024), ("decoder_width", 4096), ("epochs", 10**9), ("validate_every", 10**9)):
            require_range(name, getattr(self, name), 1, high)
        for name, high in (("width", 4096), ("hops", 100), ("rounds", 100), ("skip_weight", 10), ("teleport", 1)):
            require_range(name, getattr(self, name), 0, high)
        for name in ("kl_weight", "subsample", "learning_rate"):
            require_range(name, getattr(self, name), 0, 10**9)
        _require_fraction("edge_dropout", self.edge_dropout)
        if self.targets == "hidden" and self.edge_dropout == 0:
            raise ConfigError(
                "'targets' is 'hidden' and 'edge_dropout' is 0, so no edge is a target.", reason="no-hidden-edges"
            )

    @property
    def projection_width(self) -> int:
        """The width of the node features of the decoder; 0 without refinement rounds."""
        return self.decoder_width if self.refinement_rounds else 0


def _require_fraction(name: str, value: float) -> None:
    if not 0 <= value < 1:
        raise ConfigError(f"'{name}' is {value}; it should be at least 0 and less than 1.")


GENERATION = LinkSettings(hops=3, head="signed", targets="all", edge_dropout=0.0, kl_weight=0.1, pair_features="none")
"""Settings for new graphs like the observed network: its own edges are learned, not those it may be missing."""

LARGE_GENERATION = replace(GENERATION, latent=24, hops=1)
"""The same for large networks: time and memory are proportional to the latent dimension."""


@dataclass(frozen=True)
class ClassifierSettings(Settings):
    r"""A node classifier and its training.

    Attributes:
        kind: ``gcn``; ``graphite`` for the hybrid of a GCN and an autoencoder; or ``graphite-paper`` for that of the
            paper, which predicts from posterior parameters and node features.
        width: Units of the hidden layer.
        latent: The latent dimension :math:`D` of the hybrids.
        dropout: The dropout rate of inputs and hidden units.
        weight_decay: Weight decay of the first layer; None for the default of the kind.
        reconstruction: The weight of the autoencoder's loss (hybrids only); 0 for none.
        epochs: Training steps.
        learning_rate: The learning rate of Adam.
        patience: Epochs without improvement before early stopping; 0 never stops early.
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
        _require_fraction("dropout", self.dropout)
        for name, high in (("width", 4096), ("latent", 1024), ("epochs", 10**9)):
            require_range(name, getattr(self, name), 1, high)
        for name in ("reconstruction", "learning_rate", "patience"):
            require_range(name, getattr(self, name), 0, 10**9)
        if self.weight_decay is not None:
            require_range("weight_decay", self.weight_decay, 0, 1)
