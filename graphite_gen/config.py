"""Settings of models and training runs as frozen dataclasses that convert to and from JSON, and the presets.

A config object stops at :func:`graphite_gen.training.model.build_network`: layers get plain numbers.
"""

from __future__ import annotations

import reprlib
from collections.abc import Container, Mapping
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any, TypeVar

from .errors import ConfigError, did_you_mean

__all__ = [
    "ENCODER_FEATURES",
    "KINDS",
    "ORDERINGS",
    "PRESETS",
    "Autoencoder",
    "ModelConfig",
    "Settings",
    "TrainConfig",
    "current_names",
    "preset",
    "require",
    "require_count",
    "require_range",
]

KINDS = ("graphite-vae", "graphite-ae", "vgae", "gae")
# Node orderings of an autoregressive model: which node comes next; ties are broken uniformly.
ORDERINGS = {
    "uniform": "any node",
    "max-degree": "a node of the highest degree first, then any node",
    "frontier": "any neighbour of the nodes so far",
    "bfs": "a neighbour of the earliest node that has one left (breadth-first search)",
    "dfs": "a neighbour of the latest node that has one left (depth-first search)",
    "max-cardinality": "a node with the most neighbours among the nodes so far",
    "degeneracy": "the reverse of repeatedly removing a node of the lowest remaining degree",
    "onion": "the reverse of repeatedly removing all nodes of the lowest remaining degree (onion layers)",
    "topological": "a node with the fewest predecessors left (directed graphs)",
    "attachment": "the reverse of removing nodes that have as many edges as every node adds if all add equally many",
}
ENCODER_FEATURES = ("identity", "constant", "degree", "random", "spectral", "structure")

# Settings that only some models read.
_ATTRIBUTES = ("node_labels", "edge_labels", "directed", "weights", "conditions", "feature_kinds")
_AUTOREGRESSIVE_ONLY = ("ordering", "dropout", *_ATTRIBUTES)
_REFINEMENT_ONLY = ("rounds", "skip", "skip_weight", "outer_skip")
_ONE_SHOT_ONLY = ("mlp", "refinement", "skip", "outer_skip", "head", "head_rank", "samples", "samples_from")
_ENCODER_ONLY = (
    "encoder_features",
    "random_features",
    "encoder_layers",
    "kl_warmup",
    "free_bits",
    "reconstruction",
    "latent",
)
# Settings without effect that still determine the shapes of weights.
_SHAPES = ("latent",)

# Earlier names of settings and values, which checkpoints and scripts may still have.
_EARLIER_NAMES = {"order": "ordering"}
_EARLIER_VALUES = {
    "ordering": {
        "breadth": "bfs",
        "cardinality": "max-cardinality",
        "depth": "dfs",
        "even": "attachment",
        "hub": "max-degree",
        "peel": "degeneracy",
    }
}

C = TypeVar("C", bound="Settings")


def current_names(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings under their current names and values."""
    return dict(_current(name, value) for name, value in settings.items())


def _current(name: str, value: Any) -> tuple[str, Any]:
    if name in ("decoding_steps", "stages"):
        # Once a number, 0 for one pair at a time; other values are refused as those of 'decoder'.
        is_number = isinstance(value, Integral) and not isinstance(value, bool)
        return "decoder", ("one-shot" if value == 1 else "autoregressive") if is_number else value
    name = _EARLIER_NAMES.get(name, name)

    return name, _EARLIER_VALUES.get(name, {}).get(value, value) if isinstance(value, str) else value


class Settings:
    """A frozen dataclass that converts to and from JSON; unknown names and values of a wrong type are refused."""

    def to_json(self, unused: Container[str] = ()) -> dict[str, Any]:
        """The settings as a JSON object, without unused ones."""
        return {
            field.name: list(value) if isinstance(value := getattr(self, field.name), tuple) else value
            for field in fields(self)  # type: ignore[arg-type]
            if field.name not in unused
        }

    @classmethod
    def from_json(cls: type[C], values: Mapping[str, Any]) -> C:
        """Read settings from a JSON object; missing ones take their defaults."""
        if not isinstance(values, Mapping):
            raise ConfigError(f"{cls.__name__} should be a JSON object, not {type(values).__name__}.")

        return cls().changed(**values)

    def changed(self: C, /, **changes: Any) -> C:
        """A copy with some settings changed.

        Raises:
            ConfigError: A name is unknown, or a value has the wrong type or is out of range.
        """
        changes = current_names(changes)
        known = {field.name: field for field in fields(self)}  # type: ignore[arg-type]
        unknown = sorted(set(changes) - set(known))
        if unknown:
            name = unknown[0][:80]
            raise ConfigError(f"Unknown setting '{name}'{did_you_mean(name, known)}. Known: {', '.join(known)}.")
        checked = {name: _checked(name, value, known[name].default) for name, value in changes.items()}

        return replace(self, **checked)  # type: ignore[type-var]


def _checked(name: str, value: Any, default: Any) -> Any:
    """The value, which must have the type of the setting's default; NumPy scalars are converted."""
    if default is None:
        # An optional number.
        return None if value is None else _checked(name, value, 0.0)
    if type(value).__module__ == "numpy":
        value = value.item() if value.ndim == 0 else value.tolist()
    if isinstance(default, tuple) and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if isinstance(default, float) and type(value) is int and abs(value) < 2**63:
        return float(value)
    if type(value) is not type(default):
        raise ConfigError(f"'{name}' should be {type(default).__name__}, not {reprlib.repr(value)}.")

    return value


def require(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise a :class:`ConfigError` unless a value is one of the choices of a setting."""
    if value not in choices:
        found = str(value)[:80]
        raise ConfigError(f"'{name}' is '{found}'{did_you_mean(found, choices)}; choose one of {', '.join(choices)}.")


def require_range(name: str, value: float, low: float, high: float) -> None:
    """Raise a :class:`ConfigError` unless a number is in a closed interval."""
    if not low <= value <= high:
        raise ConfigError(f"'{name}' is {value}; it should be between {low:g} and {high:g}.")


def require_count(name: str, value: Any, low: int = 1) -> None:
    """Raise a :class:`ConfigError` unless a value is an integer of at least ``low``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < low:
        raise ConfigError(f"'{name}' is {reprlib.repr(value)}; it should be an integer of at least {low}.")


class Autoencoder:
    """Properties that follow from the kind of a model."""

    kind: str
    rounds: int

    @property
    def is_variational(self) -> bool:
        """Whether the encoder gives a distribution over latents instead of a point."""
        return self.kind in ("graphite-vae", "vgae")

    @property
    def refinement_rounds(self) -> int:
        """The number of refinement rounds (eqs. 8-9): none for VGAE and GAE."""
        return self.rounds if self.kind.startswith("graphite") else 0


@dataclass(frozen=True)
class ModelConfig(Autoencoder, Settings):
    r"""The architecture of a model.

    Attributes:
        kind: ``graphite-vae``, ``graphite-ae``, ``vgae`` or ``gae``.
        observation: ``bernoulli`` for unweighted graphs, ``normal`` for weighted ones (eq. 10).
        max_nodes: The number of nodes that ``identity`` features can represent.
        node_features: The width :math:`F` of the node features :math:`X`; 0 for none.
        encoder: ``gcn`` (eq. 3) or ``residual`` message passing; ``none`` for an autoregressive model whose latents are
            noise.
        encoder_features: The encoder's input besides :math:`X`.
        random_features: The number of columns of ``random`` and of ``spectral`` features.
        encoder_layers: The number of hidden message-passing layers of the encoder.
        decoder_features: The decoder's input besides :math:`Z` and :math:`X`; only ``identity``, as in the paper.
        width: The width of every hidden layer.
        latent: The latent dimension :math:`D`.
        mlp: Whether a two-layer MLP is applied to :math:`Z` before decoding.
        refinement: The GNN of eq. 9: ``gcn`` or ``residual``.
        rounds: How often eqs. 8-9 are iterated (Graphite only); in an autoregressive model, before the first node.
        skip: How a round is combined with its input: ``convex`` or ``incremental``.
        skip_weight: The weight :math:`\lambda` of the skip; 0 is exactly VGAE.
        outer_skip: Whether one skip combines the latents with the last round, instead of one skip per round.
        head: How node states become logits: ``inner`` product or ``signed`` inner product with biases.
        head_rank: The rank of the signed inner product.
        decoder: ``one-shot`` for the paper's factorised distribution (eq. 10), or ``autoregressive``.
        ordering: The node ordering of an autoregressive model, one of ``ORDERINGS``, or ``auto`` to choose it by pilot
            runs on the training graphs.
        dropout: The probability of dropping a hidden unit in training (autoregressive only).
        node_labels: The number of node labels; 0 for graphs without (autoregressive only, as are the following).
        edge_labels: The number of edge labels; 0 for graphs without.
        directed: Whether edges have a direction.
        weights: The kind of edge weights, ``positive``, ``real`` or ``count``; empty for graphs without. Those of a
            one-shot model are an ``observation``.
        conditions: The number of features of the whole graph that the model is conditioned on.
        feature_kinds: The kind of every column of node features that is generated, ``positive``, ``real``, ``count`` or
            ``integer``.
    """

    kind: str = "graphite-vae"
    observation: str = "bernoulli"
    max_nodes: int = 20
    node_features: int = 0
    encoder: str = "residual"
    encoder_features: tuple[str, ...] = ("degree", "random")
    random_features: int = 8
    encoder_layers: int = 4
    decoder_features: tuple[str, ...] = ()
    width: int = 64
    latent: int = 8
    mlp: bool = True
    refinement: str = "residual"
    rounds: int = 3
    skip: str = "convex"
    skip_weight: float = 1.0
    outer_skip: bool = False
    head: str = "signed"
    head_rank: int = 32
    decoder: str = "one-shot"
    ordering: str = "bfs"
    dropout: float = 0.0
    node_labels: int = 0
    edge_labels: int = 0
    directed: bool = False
    weights: str = ""
    conditions: int = 0
    feature_kinds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require("kind", self.kind, KINDS)
        require("observation", self.observation, ("bernoulli", "normal"))
        require("decoder", self.decoder, ("one-shot", "autoregressive"))
        require("encoder", self.encoder, ("gcn", "residual", "none") if self.is_autoregressive else ("gcn", "residual"))
        require("refinement", self.refinement, ("gcn", "residual"))
        require("skip", self.skip, ("convex", "incremental"))
        require("head", self.head, ("inner", "signed"))
        for name in self.encoder_features:
            require("encoder_features", name, ENCODER_FEATURES)
        for name in self.decoder_features:
            require("decoder_features", name, ("identity",))
        require("ordering", self.ordering, ("auto", *ORDERINGS))
        if self.is_autoregressive:
            self._check_autoregressive()
        empty = set() if self.random_features else {"random", "spectral"}
        if self.encoder != "none" and not set(self.encoder_features) - empty and not self.node_features:
            raise ConfigError(f"The encoder has no input: name one of {', '.join(ENCODER_FEATURES)}.")
        for name, high in (("width", 4096), ("latent", 1024), ("head_rank", 1024), ("max_nodes", 10**6)):
            require_range(name, getattr(self, name), 1, high)
        for name in ("rounds", "encoder_layers"):
            require_range(name, getattr(self, name), 0, 100)
        for name, high in (("random_features", 1024), ("node_features", 10**6)):
            require_range(name, getattr(self, name), 0, high)
        for name in ("node_labels", "edge_labels", "conditions"):
            require_range(name, getattr(self, name), 0, 10**4)
        require("weights", self.weights, ("", "positive", "real", "count"))
        for kind in self.feature_kinds:
            require("feature_kinds", kind, ("positive", "real", "count", "integer"))
        if not self.is_autoregressive and any(getattr(self, name) for name in _ATTRIBUTES):
            raise ConfigError(
                "Labels, directions, conditions and generated node features need an autoregressive decoder.",
                reason="attributes-one-shot",
            )
        require_range("skip_weight", self.skip_weight, 0, 10)
        require_range("dropout", self.dropout, 0, 0.9)

    def _check_autoregressive(self) -> None:
        """An autoregressive model is a distribution over unweighted graphs with exchangeable nodes."""
        if self.kind != "graphite-vae":
            raise ConfigError(f"A '{self.kind}' has a one-shot decoder.", reason="kind-is-one-shot")
        if self.observation != "bernoulli":
            raise ConfigError("Weights on all pairs need a one-shot decoder.", reason="weighted-is-one-shot")
        if self.decoder_features:
            raise ConfigError(
                "The decoder of an autoregressive model has no 'identity' features, unlike that of the preset 'paper'.",
                reason="identity-is-one-shot",
            )

    @property
    def is_autoregressive(self) -> bool:
        """Whether nodes are added one at a time instead of all edges being sampled at once."""
        return self.decoder == "autoregressive"

    def to_json(self, unused: Container[str] = ()) -> dict[str, Any]:
        """The settings that this model reads as a JSON object."""
        return super().to_json({*self.unused} - {*_SHAPES})

    @property
    def unused(self) -> Mapping[str, str]:
        """The settings of model and training that have no effect on this kind of model, each with the kind."""
        reasons: dict[str, str] = {}
        if self.is_autoregressive:
            reasons |= dict.fromkeys(_ONE_SHOT_ONLY, "an autoregressive model")
            without = "a model without encoder, whose latents are noise"
            reasons |= dict.fromkeys(_ENCODER_ONLY if self.encoder == "none" else (), without)
        else:
            reasons |= dict.fromkeys((*_AUTOREGRESSIVE_ONLY, "reconstruction"), "a one-shot model")
        if not self.is_variational:
            reasons |= dict.fromkeys(("kl_warmup", "free_bits"), "an autoencoder")
        if not self.kind.startswith("graphite"):
            reasons |= dict.fromkeys(_REFINEMENT_ONLY, f"a '{self.kind}'")

        return reasons

    @property
    def is_exchangeable(self) -> bool:
        """Whether p(A) is invariant to the numbering of the nodes."""
        return "identity" not in self.decoder_features


@dataclass(frozen=True)
class TrainConfig(Settings):
    """The settings of a training run.

    Attributes:
        epochs: The number of epochs; see ``epoch_graphs``.
        epoch_graphs: The number of graphs in an epoch, however many training graphs there are; 0 for one pass over the
            training graphs.
        budget: The time of the whole run in seconds, 0 for no budget. It replaces ``epoch_graphs``, which follows the
            speed of the machine in every epoch, and may make validation rarer and epochs fewer.
        batch_size: Graphs per step; 0 to choose it by the mean number of nodes of the training graphs.
        learning_rate: The peak of the schedule.
        warmup_steps: Steps of linear warm-up, before a cosine decay to zero.
        kl_warmup: The fraction of the run over which the weight of the KL term rises to one.
        free_bits: Nats of KL divergence per node that cost nothing in training; in a one-shot model they fall to zero,
            in an autoregressive one every latent dimension has to carry a part of them.
        reconstruction: The weight of reconstructing a graph from its posterior means, per node (autoregressive only).
        clip: The maximum norm of a gradient.
        weight_decay: Decoupled weight decay.
        patience: Validations without improvement before stopping; 0 never stops early.
        validate_every: Epochs between validations.
        validation_samples: Importance samples per validation graph.
        samples: Importance samples per training graph of the multi-sample bound (IWAE); 1 for the ELBO.
        samples_from: The fraction of the run trained by the ELBO before the multi-sample bound.
        average: The decay of the moving average of the weights that is validated and kept; 0 keeps the weights.
        convention: ``pairs`` to score pairs of real nodes, or ``paper`` to score all cells of the padded matrix, which
            is not a distribution over graphs.
    """

    epochs: int = 80
    epoch_graphs: int = 6000
    budget: float = 0.0
    batch_size: int = 128
    learning_rate: float = 2e-3
    warmup_steps: int = 100
    kl_warmup: float = 0.2
    free_bits: float = 0.0
    reconstruction: float = 0.0
    clip: float = 5.0
    weight_decay: float = 1e-4
    patience: int = 10
    validate_every: int = 4
    validation_samples: int = 16
    samples: int = 4
    samples_from: float = 0.7
    average: float = 0.0
    convention: str = "pairs"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "validate_every", "validation_samples", "samples"):
            require_range(name, getattr(self, name), 1, 10**9)
        for name in ("epoch_graphs", "batch_size", "warmup_steps", "patience", "seed"):
            require_range(name, getattr(self, name), 0, 2**63 - 1)
        require("convention", self.convention, ("pairs", "paper"))
        require_range("learning_rate", self.learning_rate, 1e-9, 10)
        for name in ("kl_warmup", "samples_from", "weight_decay"):
            require_range(name, getattr(self, name), 0, 1)
        require_range("average", self.average, 0, 0.9999999)
        require_range("clip", self.clip, 1e-6, 1e6)
        require_range("free_bits", self.free_bits, 0, 100)
        require_range("reconstruction", self.reconstruction, 0, 100)
        require_range("budget", self.budget, 0, 1e9)


# The architecture of the paper's appendix: 32-32 encoder on H⁰ = I, a two-layer MLP on Z, three convex 16-32-16
# refinements over [Z|X] with X = I, plain inner product. The appendix does not give λ: 1/4 learns sooner than 1/2.
_PAPER_MODEL = ModelConfig(
    encoder="gcn",
    encoder_features=("identity",),
    encoder_layers=1,
    decoder_features=("identity",),
    width=32,
    latent=16,
    refinement="gcn",
    rounds=3,
    skip_weight=0.25,
    head="inner",
)
# The paper does not give the training schedule. In two runs on 'geometric' Graphite-VAE equalled VGAE without a warm-up
# of the KL term, and was 17 and 3 nats better with it.
_PAPER_TRAINING = TrainConfig(
    epochs=500,
    epoch_graphs=0,
    learning_rate=0.01,
    warmup_steps=0,
    kl_warmup=0.6,
    weight_decay=0.0,
    patience=0,
    validate_every=10,
    samples=1,
)

_AUTOREGRESSIVE_MODEL = ModelConfig(
    encoder_features=("degree", "spectral", "random", "structure"),
    encoder_layers=3,
    latent=4,
    rounds=1,
    skip_weight=0.5,
    decoder="autoregressive",
    ordering="auto",
)
_AUTOREGRESSIVE_TRAINING = TrainConfig(
    epochs=30,
    epoch_graphs=4000,
    budget=300.0,
    batch_size=0,
    learning_rate=6e-3,
    warmup_steps=10,
    kl_warmup=0.02,
    free_bits=0.1,
    reconstruction=0.5,
    clip=20.0,
    # Sets of some hundred graphs are memorised with less; where graphs are plenty it costs nothing.
    weight_decay=0.1,
    average=0.99,
    validate_every=2,
    validation_samples=2,
    patience=6,
)

# With batches of 128 graphs, or without free bits in short runs, the posterior collapsed on graphs of 100 nodes.
_ONE_SHOT_MODEL = ModelConfig(
    encoder_features=("degree", "spectral", "random"),
    refinement="gcn",
    skip_weight=0.5,
)
_ONE_SHOT_TRAINING = TrainConfig(budget=600.0, batch_size=0, warmup_steps=10, free_bits=1.0)

PRESETS: Mapping[str, tuple[ModelConfig, TrainConfig]] = {
    "default": (_AUTOREGRESSIVE_MODEL, _AUTOREGRESSIVE_TRAINING),
    "one-shot": (_ONE_SHOT_MODEL, _ONE_SHOT_TRAINING),
    "paper": (_PAPER_MODEL, _PAPER_TRAINING),
}


def preset(name: str, **changes: Any) -> tuple[ModelConfig, TrainConfig]:
    """The settings of a preset, with some of them changed.

    ``default`` is autoregressive; it becomes ``one-shot`` with ``decoder="one-shot"``, a kind other than
    ``graphite-vae``, or convention ``paper``. A given number of epochs or of graphs per epoch replaces the budget, and
    patience is at most half of the validations unless it is given.

    Raises:
        ConfigError: The preset or a setting is unknown, or a value does not fit.
    """
    require("preset", name, tuple(PRESETS))
    changes = current_names(changes)
    one_shot = {"decoder": "one-shot", "convention": "paper"}
    if name == "default" and (
        changes.get("kind", "graphite-vae") != "graphite-vae"
        or any(changes.get(key) == value for key, value in one_shot.items())
    ):
        name = "one-shot"
    model, training = PRESETS[name]
    names = [field.name for config in (model, training) for field in fields(config)]
    for key in changes:
        if key not in names:
            raise ConfigError(f"Unknown setting '{key}'{did_you_mean(key, names)}. Known: {', '.join(names)}.")
    model = model.changed(**{key: value for key, value in changes.items() if hasattr(model, key)})
    training = training.changed(**{key: value for key, value in changes.items() if hasattr(training, key)})
    if "budget" not in changes and {"epochs", "epoch_graphs"} & {*changes}:
        # The length of the run is given.
        training = replace(training, budget=0.0)
    if "patience" not in changes and training.patience:
        # Patience that is longer than the run would never end it.
        validations = training.epochs // training.validate_every
        training = replace(training, patience=max(2, min(training.patience, validations // 2)))
    if model.is_autoregressive and training.convention == "paper":
        raise ConfigError("An autoregressive model has no convention 'paper'. Use decoder='one-shot', or 'pairs'.")

    return model, training
