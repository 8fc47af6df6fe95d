"""Training runs that validate, keep the best weights, and can be stopped and resumed.

Random numbers are named by seed, epoch and step, so a run is resumed without the state of any generator: bit for bit,
unless its length follows a budget, which depends on the clock.
"""

from __future__ import annotations

import copy
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..config import ModelConfig, TrainConfig, current_names, preset, require
from ..data.batch import bucket, collate
from ..data.schema import AttributeSchema
from ..data.sizes import SizeDistribution
from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..errors import CheckpointError, ConfigError, DatasetError, TrainingError, UnusedSettingError
from ..graph import SimpleGraph
from ..io.locks import HIDDEN
from ..records import Provenance, Record, TrainRecord, typed
from ..rng import derive_seed, stream
from .budget import PILOT_SHARE, TIMING_SHARE, RunLength, default_batch_size, fit_epochs, fit_validation
from .checkpoint import (
    TrainedModel,
    is_checkpoint,
    load_checkpoint,
    load_weights,
    next_turn,
    read_tensors,
    save_checkpoint,
    write_atomically,
    write_tensors,
)
from .model import build_network, standardise_structure, start_at_density
from .optimiser import MOMENTS, Optimiser
from .pilot import FALLBACK, OrderingChoice, choose_ordering
from .step import BATCH_CELLS, backward, draw_step, padded_nodes
from .step_memory import check_step_memory, step_bytes
from .torchrun import launch
from .validation import measured_graphs, novelty_samples, sample_novelty, validation_activity, validation_nll

__all__ = [
    "FIRST_SAVE",
    "RUN",
    "Trainer",
    "TrainingPlan",
    "TrainingStatus",
    "adapt_config",
    "check_settings",
    "configure",
    "naming",
    "prepare",
    "read_history",
    "read_run",
    "resolve_device",
]

RUN = "optimizer.safetensors"
FIRST_SAVE = f"{HIDDEN}first-save"
"""Marks a folder while a run saves for the first time: until then it holds nothing worth keeping."""

TIMED_STEPS = 4
# Runs are saved at every validation, and where those are rare also after this time.
SAVE_SECONDS = 120.0
# The time of a step in units of that of its gradients: the optimiser and the moving average are the rest.
STEP_OVERHEAD = 1.1
# The time of scoring a graph once in units of that of training on it.
FORWARD_COST = 0.35
# With fewer training graphs than these, which are not of a family, samples are compared with them.
FEW_GRAPHS = 1000
# The peak learning rate of fine-tuning relative to that of training.
FINE_TUNING = 0.3
# The part of a run after which latents have no free bits left if the decoder gains less from them than some fraction
# of their KL divergence. Where latents can tell something, as on barabasi graphs, the decoder may come to use them only
# after a quarter of the run.
UNUSED_FROM, LEAST_GAIN = 0.35, 0.25
ATTRIBUTES = ("node_label", "edge_label", "condition", "weights", "generate_features")
"""Settings that name attributes of graphs: labels, conditions, node features, and how weights are modelled."""


def resolve_device(name: str) -> torch.device:
    """The device called ``auto``, ``cpu``, ``cuda`` or ``cuda:1``; each rank of torchrun has its own CUDA device."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise TrainingError(f"Unknown device '{name}'. Use auto, cpu or cuda.") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise TrainingError("This machine has no CUDA device.", reason="no-cuda")
    own = os.environ.get("LOCAL_RANK", "")
    if device.type != "cuda" or device.index is not None or not own.isdecimal():
        return device
    if int(own) >= (count := torch.cuda.device_count()):
        raise TrainingError(
            f"This machine has {count} CUDA devices, fewer than processes of this run.", reason="few-cuda-devices"
        )

    return torch.device("cuda", int(own))


def adapt_config(config: ModelConfig, graphs: Sequence[SimpleGraph]) -> ModelConfig:
    """The config with observation, sizes and node features of the graphs; weights that are all one are ignored."""
    if not graphs:
        raise DatasetError("There are no graphs to train on.", reason="empty-dataset")
    if min(graph.nodes for graph in graphs) < 1:
        raise DatasetError("A training graph has no nodes.")
    if len({graph.weights is not None for graph in graphs if len(graph.edges)}) > 1:
        raise DatasetError("Some graphs are weighted and some are not. Train on one kind at a time.")
    widths = {0 if graph.features is None else graph.features.shape[1] for graph in graphs}
    if len(widths) > 1:
        raise DatasetError(f"Node features have different widths: {sorted(widths)}. All graphs need the same.")

    return replace(
        config,
        observation="normal" if any(graph.is_weighted for graph in graphs) else "bernoulli",
        max_nodes=max(graph.nodes for graph in graphs),
        # Those of conditions are the last.
        node_features=widths.pop() - config.conditions,
    )


def schema_of(
    name: str, graphs: Sequence[SimpleGraph], names: Mapping[str, Any], settings: Mapping[str, Any]
) -> AttributeSchema:
    """What models of a preset generate with these graphs: labels and conditions of given names, directions, weights.

    A one-shot model has weights on all pairs, and no other attributes.
    """
    model, _ = preset(name, **_for_weights(names, settings))
    weighted = model.is_autoregressive and any(graph.is_weighted for graph in graphs)
    own = {key: value for key, value in names.items() if key != "weights"}

    return AttributeSchema.of(graphs, weighted=weighted, **own)


def _for_weights(names: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a model; weights on all pairs need a one-shot decoder."""
    return {**({"decoder": "one-shot"} if names.get("weights") == "dense" else {}), **settings}


def configure(
    name: str,
    graphs: Sequence[SimpleGraph],
    /,
    initial: TrainedModel | None = None,
    schema: AttributeSchema | None = None,
    **changes: Any,
) -> tuple[ModelConfig, TrainConfig]:
    """The settings of a preset with some changed, adapted to the graphs, which have been encoded by a schema.

    Graphs with node features get the node ordering ``uniform``. Settings without effect are refused. To fine-tune an
    ``initial`` model, its architecture is kept.
    """
    changes = current_names(changes)
    given = tuple(changes)
    if initial is not None:
        return _fine_tuning(name, graphs, initial, changes)
    model, training = preset(name, **changes)
    model = adapt_config(replace(model, **(schema or AttributeSchema()).settings()), graphs)
    if model.ordering == "topological" and not model.directed:
        raise ConfigError("The ordering 'topological' is one of directed graphs.")
    if model.ordering == "auto" and model.node_features:
        model = replace(model, ordering="uniform")
    for setting in given:
        if setting in model.unused:
            raise UnusedSettingError(setting, model.unused[setting])

    return model, training


def check_settings(name: str, settings: Mapping[str, Any], initial: TrainedModel | None = None) -> None:
    """Refuse settings of :func:`configure` that do not fit the graphs of a family, before those are drawn."""
    if initial is not None and not initial.schema.is_plain:
        return
    names, others = _split_settings(settings)
    configure(name, [SimpleGraph.from_pairs(1, [])], initial=initial, **_for_weights(names, others))


def naming(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The names of labels, conditions and generated node features among settings."""
    return {key: value for key, value in _split_settings(settings)[0].items() if key != "weights"}


def _split_settings(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings that name attributes of graphs, and those of models and runs."""
    names = {key: settings[key] for key in ATTRIBUTES if settings.get(key)}
    require("weights", names.get("weights", "sparse"), ("sparse", "dense"))
    for key in ("condition", "generate_features"):
        if isinstance(names.get(key), str):
            names[key] = (names[key],)

    return names, {key: value for key, value in settings.items() if key not in ATTRIBUTES}


def _fine_tuning(
    name: str, graphs: Sequence[SimpleGraph], initial: TrainedModel, changes: dict[str, Any]
) -> tuple[ModelConfig, TrainConfig]:
    """The architecture of a model, and the training settings of its preset without those for the start of a run."""
    config = initial.config
    for key, value in changes.items():
        if key in config.unused:
            raise UnusedSettingError(key, config.unused[key])
        value = tuple(value) if isinstance(value, list) else value
        if value != getattr(config, key, value) and (key, value) != ("ordering", "auto"):
            raise ConfigError(
                f"'{initial.name}' has {key}={getattr(config, key)}, not {value}.", reason="initial-model"
            )
    kept = {"kind": config.kind, "decoder": config.decoder, "convention": initial.training.convention}
    own = {key: value for key, value in changes.items() if not hasattr(config, key)}
    training = preset(name, **{**kept, **own})[1]
    # The weights are no longer at their start: a high learning rate, or a KL term switched off, would undo them.
    gentle = {"learning_rate": FINE_TUNING * training.learning_rate, "kl_warmup": 0.0, "free_bits": 0.0}
    training = training.changed(**{**gentle, **own})
    fitted = adapt_config(config, graphs)
    if (fitted.observation, fitted.node_features) != (config.observation, config.node_features):
        kinds = [f"{one.observation} edges and {one.node_features} node features" for one in (config, fitted)]
        raise DatasetError(f"'{initial.name}' is a model of graphs with {kinds[0]}, and these have {kinds[1]}.")
    if "identity" in (*config.encoder_features, *config.decoder_features):
        if fitted.max_nodes > config.max_nodes:
            raise DatasetError(
                f"The identity features of '{initial.name}' distinguish {config.max_nodes} nodes, and a graph has "
                f"{fitted.max_nodes}."
            )
        return config, training

    return fitted, training


@dataclass(frozen=True)
class TrainingPlan(Record):
    """What a run is about to do.

    Attributes:
        nodes: The smallest and the largest number of nodes of a training graph.
        epochs: The number of epochs left.
        batch_size: The number of graphs in a batch, unless they are large.
        steps: About how many optimiser steps are left.
        seconds: The estimated time left.
        memory: The estimated memory of a step, in bytes.
        ordering: How the node ordering was chosen; None if it was given or nothing was compared.
    """

    graphs: int
    nodes: tuple[int, int]
    validation_graphs: int
    parameters: int
    epochs: int
    epoch_graphs: int
    batch_size: int
    steps: int
    seconds: float
    memory: int
    ordering: OrderingChoice | None = None


@dataclass(frozen=True)
class TrainingStatus(Record):
    """The position of a run within an epoch.

    Attributes:
        epoch: The current epoch, counted from 1.
        steps: About how many optimiser steps the run takes in all.
        loss: The mean training objective of the epoch so far, in nats per graph; None before its first step.
        seconds_left: The estimated time left; None before the first step.
        pilot: The node ordering of the current pilot run; None when the run itself is trained.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float | None
    seconds_left: float | None
    pilot: str | None = None


@dataclass
class _Progress:
    """The position of a run: what resuming needs besides tensors and its length.

    ``first_graph`` counts the graphs of earlier epochs. ``seconds`` is all time that the run took, ``epoch_seconds``
    that of the steps of this epoch, ``graph_seconds`` the time of a step per graph and ``validation_cost`` that of a
    validation in units of ``graph_seconds``.
    """

    epoch: int = 0
    batch: int = 0
    step: int = 0
    first_graph: int = 0
    loss_sum: float = 0.0
    kl_sum: float = 0.0
    graphs_seen: int = 0
    best: float | None = None
    best_epoch: int = 0
    novelty: float | None = None
    latents: dict[str, float] = field(default_factory=dict)
    stale: int = 0
    has_unused_latents: bool = False
    learning_rate: float = 0.0
    seconds: float = 0.0
    epoch_seconds: float = 0.0
    graph_seconds: float = 0.0
    validation_cost: float = 0.0
    finished: bool = False


class Trainer:
    """A training run in a folder.

    Iterating trains and yields a :class:`TrainRecord` per epoch. ``has_saved`` is true if there is a run to resume, and
    ``length`` is what is planned. ``watch`` is called before each step and each batch of a validation, also in pilot
    runs.
    """

    def __init__(
        self,
        name: str,
        config: ModelConfig,
        training: TrainConfig,
        graphs: Sequence[SimpleGraph],
        validation: Sequence[SimpleGraph],
        *,
        folder: Path | None = None,
        provenance: Provenance | None = None,
        data: Mapping[str, Any] | None = None,
        device: torch.device | str = "cpu",
        resume: bool = False,
        initial: TrainedModel | None = None,
        schema: AttributeSchema | None = None,
        group: ProcessGroup = SINGLE_PROCESS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare a run, or resume one.

        The config is that of :func:`adapt_config`, and graphs have been encoded by the schema. Without validation
        graphs the last weights are kept, and without a folder, to which rank 0 saves, nothing is saved. ``data`` tells
        how to read or sample the graphs again, as JSON. A new run starts with the weights of an ``initial`` model of
        the same architecture, if there is one. ``clock`` gives the seconds that a budget is measured in.
        """
        if validation and initial is None:
            fitted = adapt_config(config, [*graphs, *validation])
            # Identity features must cover the validation graphs too; nothing else may differ.
            config = replace(config, max_nodes=fitted.max_nodes)
        if training.convention == "paper" and config.observation == "normal":
            raise ConfigError("Convention 'paper' is for unweighted graphs. Train with convention 'pairs'.")
        if not training.batch_size:
            training = replace(training, batch_size=default_batch_size(graphs))
        self.config, self.training = config, training
        self.graphs, self.validation = graphs, validation
        self.length = RunLength.of(training, len(graphs), len(validation))
        self.device = torch.device(device)
        # Available memory may differ between processes, but either all of them train or none.
        if group.is_rank_zero and self.device.type == "cpu":
            check_step_memory(config, training)
        self.folder = folder
        self.history: list[TrainRecord] = []
        self._data = dict(data or {})
        self._all_validation = validation
        self._progress = _Progress()
        self._clock, self._mark = clock, clock()
        self._saved_at = 0.0
        self._turn: int | None = None
        self.has_saved = resume
        # False while weights, moments and progress change together and must not be saved.
        self._is_consistent = True
        self._is_stopping = False
        self.watch: Callable[[], None] = lambda: None
        # The steps of this epoch, and the time and the steps of the run before it was resumed.
        self._epoch_steps, self._before = 1, (0.0, 0)
        self._is_settled = resume
        self._ordering_choice: OrderingChoice | None = None
        self._pilot: str | None = None

        self.network = build_network(config, derive_seed(training.seed, "weights")).to(self.device)
        if initial is None:
            start_at_density(self.network, self.graphs)
        else:
            self.network.load_state_dict(initial.network.state_dict())
            standardise_structure(self.network, self.graphs)
        self._optimiser = Optimiser(self.network, training)
        # The network that is validated and kept: the weights or their moving average.
        self._validated = copy.deepcopy(self.network) if training.average else self.network
        self._best = copy.deepcopy(self._validated.state_dict())
        self._sketch = TrainedModel(
            name,
            self.network,
            SizeDistribution.of(graphs),
            training,
            provenance or Provenance(),
            schema=schema or AttributeSchema(),
        )
        if resume:
            self._restore()
        if not group.is_rank_zero:
            self.folder = None
        self._group = group
        # An error of one rank is raised here, before the others wait for it.
        group.barrier()

    def stop(self) -> None:
        """Save and raise ``KeyboardInterrupt`` after the current step or batch of validation; for signal handlers."""
        self._is_stopping = True

    def extend(self, *, epochs: int | None = None, budget: float | None = None) -> None:
        """Change the length of a resumed run, finished or not, to more epochs in all or a larger budget.

        The run continues as one of that length would: weights and optimiser state stay, and the learning rate returns
        to its value at that part of the longer schedule, to decay to zero again. Without a new budget, the epochs that
        are left have the mean length of those before.
        """
        progress, training, length = self._progress, self.training, self.length
        # With a budget, the epochs given are the most, of which it may allow fewer.
        planned = length.epochs if budget is None else training.epochs
        if budget in (None, training.budget) and epochs in (None, planned):
            return
        if budget is None:
            most, budget = epochs or 0, 0.0
        else:
            most = epochs or max(training.epochs, math.ceil(training.epochs * budget / training.budget))
        if most <= progress.epoch or 0 < budget <= progress.seconds:
            done = f"{progress.epoch} epochs and {progress.seconds:.0f} s"
            raise CheckpointError(f"The run in '{self.folder}' has already taken {done}.", reason="extension-too-short")
        self.training = replace(training, epochs=most, budget=budget)
        self._sketch = replace(self._sketch, training=self.training)
        self.length = replace(length, epochs=most)
        # The epoch in which a run was stopped keeps its batches; a budget is fitted again after it.
        if budget and not progress.batch:
            self._use_length(self._fitted_length(self.length, progress.epoch))
        elif training.budget and progress.epoch and not progress.batch:
            batches = round(progress.first_graph / progress.epoch / training.batch_size)
            self.length = replace(self.length, epoch_graphs=training.batch_size * max(1, batches))
        progress.finished, progress.stale = False, 0

    def count_seconds(self, seconds: float) -> None:
        """Count time before the run, such as that of reading graphs, towards its budget."""
        self._progress.seconds += seconds

    @property
    def epoch(self) -> int:
        """The number of epochs done."""
        return self._progress.epoch

    @property
    def status(self) -> TrainingStatus:
        progress, epochs, (seconds, steps) = self._progress, self.length.epochs, self._before
        left = (epochs - progress.epoch) * self._epoch_steps - progress.batch
        rest = max(self.training.budget - progress.seconds, 0.0) if self.training.budget else None
        if rest is None and progress.step > steps:
            rest = (progress.seconds - seconds) / (progress.step - steps) * left
        loss = progress.loss_sum / progress.graphs_seen if progress.graphs_seen else None

        return TrainingStatus(
            min(progress.epoch + 1, epochs), epochs, progress.step, progress.step + left, loss, rest, self._pilot
        )

    @property
    def is_finished(self) -> bool:
        return self._progress.finished

    @property
    def model(self) -> TrainedModel:
        """The best model so far, in evaluation mode."""
        network = build_network(self.config)
        network.load_state_dict(self._best)
        network.to(self.device).eval()

        return replace(self._sketch, network=network, results=self._results())

    @property
    def stopped_early(self) -> bool:
        """Whether the run has ended because validation had stopped to improve."""
        return self._progress.finished and self._progress.epoch < self.length.epochs

    def settle(self) -> None:
        """Choose the node ordering and the length of a new run, if that is left to the trainer.

        Both depend on the time that a few steps take, and are saved with the run.
        """
        if self._is_settled:
            return
        self._mark = self._clock()
        budget, chooses = self.training.budget, self.config.ordering == "auto"
        if chooses:
            self._use_ordering(FALLBACK)
        if budget:
            self._progress.graph_seconds = self._graph_seconds()[0]
        if chooses:
            data = (self.graphs, self._all_validation, self.config, self.training, self.device)
            limit: dict[str, Any] = {"seconds": PILOT_SHARE * budget, "clock": self._clock}
            if not budget:
                limit = {"run_steps": self.length.epochs * len(self._batches())}
            choice = choose_ordering(*data, **limit, watch=self._watch_pilot) if self._group.is_rank_zero else None
            self._ordering_choice, self._pilot = self._group.broadcast(choice), None
            if self._ordering_choice is not None:
                self._use_ordering(self._ordering_choice.ordering)
        if budget:
            length = fit_validation(self.length, budget / self._progress.graph_seconds, *self._validation_cost)
            self._progress.validation_cost = length.validation_cost(*self._validation_cost)
            self._use_length(self._fitted_length(length, 0))
        self._tick()
        self._is_settled = True

    def _watch_pilot(self, ordering: str) -> None:
        self._pilot = ordering
        self.watch()

    def _use_ordering(self, ordering: str) -> None:
        self.config = replace(self.config, ordering=ordering)
        for network in (self.network, self._validated):
            network.config = self.config

    def _fitted_length(self, length: RunLength, done: int) -> RunLength:
        """The length whose epochs after the first ``done`` ones fill what is left of the budget."""
        self._tick()
        progress, training = self._progress, self.training
        left = (training.budget - progress.seconds) / progress.graph_seconds
        fitted = fit_epochs(length, done, training.epochs, left, training.batch_size, progress.validation_cost)

        return self._group.broadcast(fitted)

    @property
    def _validation_cost(self) -> tuple[float, float]:
        """The estimated time of a validation per graph, and besides, in units of that of training on a graph."""
        if not self.validation:
            return 0.0, 0.0
        fixed = float(novelty_samples(self.graphs) if self._checks_novelty else 0)
        if self.network.encoder is not None:
            # Their latents are decoded twice.
            fixed += 2 * FORWARD_COST * measured_graphs(self.validation)

        return FORWARD_COST * self.training.validation_samples, fixed

    def _use_length(self, length: RunLength) -> None:
        self.length, pool = length, self._all_validation
        if len(self.validation) != length.validation_graphs:
            chosen = stream(self.training.seed, "validated").permutation(len(pool))[: length.validation_graphs]
            self.validation = [pool[index] for index in sorted(chosen)]

    def _tick(self) -> float:
        """Add the time since the last call to that of the run, and return it."""
        now = self._clock()
        elapsed, self._mark = now - self._mark, now
        self._progress.seconds += elapsed

        return elapsed

    def _graph_seconds(self) -> tuple[float, float]:
        """The seconds of an early and of a late step for each of its graphs, from steps that leave weights unchanged.

        The multi-sample bound of late steps takes longer than the ELBO.
        """
        batches, budget = self._batches(), self.training.budget
        # Batches differ in cost.
        several = [batches[place] for place in np.linspace(0, len(batches) - 1, TIMED_STEPS).astype(int)]
        found = []
        for fraction in (0.0, 1.0) if self._samples > 1 else (0.0,):
            taken, graphs, begin = 0.0, 0, self._clock()
            for number, batch in enumerate([several[0], *several]):
                started = self._clock()
                self._gradients(batch, fraction)
                now = self._clock()
                # All ranks stop after the same step. The first one warms up, but where steps are long it has to do.
                is_over = self._group.any(budget > 0 and now - begin > TIMING_SHARE * budget)
                if number or is_over:
                    taken, graphs = taken + now - started, graphs + len(batch)
                if is_over:
                    break
            found.append(max(STEP_OVERHEAD * taken / graphs, 1e-9))
        found = self._group.broadcast(found)

        return found[0], found[-1]

    def plan(self) -> TrainingPlan:
        """What is left to do, with its time estimated by a few steps that leave the weights unchanged.

        All processes of a group have to call it together.
        """
        self.settle()
        self._mark = self._clock()
        progress, training, length = self._progress, self.training, self.length
        batches, epochs = self._batches(), length.epochs - progress.epoch
        steps = epochs * len(batches) - progress.batch
        seconds = training.budget - progress.seconds
        if not training.budget:
            early, late = self._graph_seconds()
            each = training.samples_from * early + (1 - training.samples_from) * late
            validation = early * length.validation_cost(*self._validation_cost)
            seconds = steps * sum(map(len, batches)) / len(batches) * each
            seconds += validation * length.validations(progress.epoch + 1)
        self._tick()

        return TrainingPlan(
            graphs=len(self.graphs),
            nodes=(min(self._sketch.sizes.graphs), self._sketch.sizes.largest),
            validation_graphs=length.validation_graphs,
            parameters=sum(parameter.numel() for parameter in self.network.parameters()),
            epochs=epochs,
            epoch_graphs=length.epoch_graphs,
            batch_size=training.batch_size,
            steps=steps,
            seconds=max(seconds, 0.0),
            memory=step_bytes(self.config, training),
            ordering=self._ordering_choice,
        )

    def __iter__(self) -> Iterator[TrainRecord]:
        self.settle()
        self._mark = self._clock()
        self._before = self._progress.seconds, self._progress.step
        try:
            while self._progress.epoch < self.length.epochs and not self._progress.finished:
                yield self._epoch()
        except (KeyboardInterrupt, GeneratorExit):
            # After an interrupted step the run resumes from its last save, with the same result.
            if self._is_consistent:
                self._save()
            raise
        self._progress.finished = True
        self._save()

    @property
    def _samples(self) -> int:
        """Importance samples of a training graph; an autoregressive model has one whatever the setting."""
        return 1 if self.config.is_autoregressive else self.training.samples

    # One epoch ------------------------------------------------------------------------------------------------

    def _epoch(self) -> TrainRecord:
        progress = self._progress
        batches = self._batches()
        self._epoch_steps = len(batches)
        self.network.train()
        for indices in batches[progress.batch :]:
            self._pause()
            self._tick()
            self._step(indices, (progress.epoch + progress.batch / len(batches)) / self.length.epochs)
            progress.epoch_seconds += self._tick()

        done, planned, length = progress.epoch + 1, self.length.epoch_graphs, self.length
        if self.training.budget:
            # An epoch may be one batch: the speed is a moving average over the last epochs.
            progress.graph_seconds += (progress.epoch_seconds / planned - progress.graph_seconds) / min(done, 2)
            length = self._fitted_length(length, done)
        validates = length.validates(done)
        nll, novelty, latents, is_unused = None, None, dict[str, float](), False
        if validates and self.validation:
            nll = validation_nll(self._validated, self.validation, self.training, self._group, self._pause)
            if not math.isfinite(nll):
                raise self._diverged(f"The validation NLL became {nll} after epoch {done}")
            # Ranks have to agree on free bits.
            is_first = self._group.is_rank_zero
            latents = validation_activity(self._validated, self.validation, self.training) if is_first else {}
            latents = self._group.broadcast(latents)
            is_unused = bool(latents) and latents["gain"] + 2 * latents["gain_error"] < LEAST_GAIN * latents["kl"]
            if self._checks_novelty:
                novelty = sample_novelty(self._validated, self.graphs, self._sketch.sizes, self.training.seed)

        self._is_consistent = False
        # Without free bits the KL divergence vanishes, so later validations do not count.
        progress.has_unused_latents |= is_unused and 0 < self._free_bits_until <= done
        self._use_length(length)
        if validates:
            self._keep_best(done, nll, novelty, latents)
        record = TrainRecord(
            epoch=done,
            step=progress.step,
            loss=progress.loss_sum / max(progress.graphs_seen, 1),
            kl=progress.kl_sum / max(progress.graphs_seen, 1),
            validation=nll,
            best=progress.best,
            learning_rate=progress.learning_rate,
            seconds=progress.seconds,
            novelty=novelty,
            latents=latents,
        )
        self.history.append(record)
        progress.epoch += 1
        progress.first_graph += planned
        progress.batch = progress.graphs_seen = 0
        progress.loss_sum = progress.kl_sum = progress.epoch_seconds = 0.0
        self._is_consistent = True
        elapsed = self._tick()
        if validates:
            # A moving average, so that one slow validation does not change the plan much.
            progress.validation_cost += (elapsed / max(progress.graph_seconds, 1e-9) - progress.validation_cost) / 2
        if validates or progress.seconds - self._saved_at > SAVE_SECONDS:
            self._save()

        return record

    def _pause(self) -> None:
        """Show the progress, and stop if that was requested."""
        self.watch()
        # All processes stop at the same step, so that none waits for another that has stopped.
        if self._group.any(self._is_stopping):
            raise KeyboardInterrupt

    @property
    def _checks_novelty(self) -> bool:
        """Whether a model may have memorised its few graphs; only autoregressive ones without features are sampled."""
        config = self.config
        is_few = len(self.graphs) < FEW_GRAPHS and self._data.get("family") is None

        return is_few and config.is_autoregressive and not config.node_features and self._sketch.schema.is_plain

    def _batches(self) -> list[list[int]]:
        """The batches of this epoch: the next graphs of an endless series of shuffled passes."""
        sizes = np.array([graph.nodes for graph in self.graphs])
        start, wanted = self._progress.first_graph, self.length.epoch_graphs
        first, last = start // len(sizes), (start + wanted - 1) // len(sizes)
        passes = [
            stream(self.training.seed, "pass", number).permutation(len(sizes)) for number in range(first, last + 1)
        ]
        chosen = np.concatenate(passes)[start - first * len(sizes) :][:wanted]
        rng = stream(self.training.seed, "epoch", self._progress.epoch)
        places = bucket(sizes[chosen].tolist(), self.training.batch_size, rng, cells=BATCH_CELLS // self._samples)

        return [chosen[batch].tolist() for batch in places]

    @property
    def _free_bits_until(self) -> float:
        """The epoch until which unused latents have free bits, which may raise the NLL; zero if they have none."""
        has_any = self.config.is_autoregressive and self.network.encoder is not None and self.training.free_bits > 0

        return UNUSED_FROM * self.length.epochs if has_any else 0.0

    # An interrupt while torch switches gradients off and on may leave them off, for good in a notebook.
    @torch.enable_grad()
    def _gradients(self, indices: list[int], fraction: float) -> tuple[float, float]:
        """Set the gradients of a batch; returns the sums of loss and KL divergence over its graphs."""
        nodes = padded_nodes(self.config, self.training)
        batch = collate([self.graphs[index] for index in indices], nodes).to(self.device)
        # Free bits of latents that the decoder does not use would be spent on noise, which it then learns.
        training = replace(self.training, free_bits=0.0) if self._progress.has_unused_latents else self.training
        step = draw_step(self.network, batch, training, self._progress.step, fraction)

        # Batches of large graphs are smaller: dividing by the nominal size gives every graph the same weight.
        return backward(self.network, step, self.training.convention, self.training.batch_size, self._group)

    def _step(self, indices: list[int], fraction: float) -> None:
        """One optimiser step."""
        training, progress = self.training, self._progress
        loss, kl = self._gradients(indices, fraction)
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), training.clip)
        if not (math.isfinite(loss) and norm.isfinite()):
            raise self._diverged(
                f"The loss became {loss / training.batch_size:g} and its gradient {norm:g} at step {progress.step}"
            )
        rate = training.learning_rate * _schedule(fraction, progress.step, training.warmup_steps)

        self._is_consistent = False
        self._optimiser.step(rate)
        # The decay of the moving average increases at the start of the run.
        decay = min(training.average, (1 + progress.step) / (10 + progress.step))
        if self._validated is not self.network:
            with torch.no_grad():
                for mean, weight in zip(self._validated.parameters(), self.network.parameters(), strict=True):
                    mean.lerp_(weight, 1 - decay)
        progress.step += 1
        progress.batch += 1
        progress.loss_sum += loss
        progress.kl_sum += kl
        progress.graphs_seen += len(indices)
        progress.learning_rate = rate
        self._is_consistent = True

    def _diverged(self, what: str) -> TrainingError:
        rate = self.training.learning_rate
        return TrainingError(f"{what}, at a learning rate of {rate:g}.", reason="training-diverged", learning_rate=rate)

    def _keep_best(self, epoch: int, nll: float | None, novelty: float | None, latents: dict[str, float]) -> None:
        """Keep the weights with the best validation NLL, and stop when patience ends."""
        progress = self._progress
        if nll is None or progress.best is None or nll < progress.best:
            progress.best, progress.best_epoch, progress.stale = nll, epoch, 0
            progress.novelty, progress.latents = novelty, latents
            self._best = copy.deepcopy(self._validated.state_dict())
        elif epoch > self._free_bits_until:
            progress.stale += 1
        if self.length.patience and progress.stale >= self.length.patience:
            progress.finished = True

    # The folder -----------------------------------------------------------------------------------------------

    @property
    def _ordering_margin(self) -> dict[str, float]:
        """By how much the ordering was better than the next one in pilot runs, in nats per graph, with its error."""
        choice = self._ordering_choice
        if choice is None:
            return {key: value for key, value in self._sketch.results.items() if key.startswith("ordering_margin")}

        return {"ordering_margin": round(choice.margin, 3), "ordering_margin_error": round(choice.margin_error, 3)}

    def _results(self) -> dict[str, Any]:
        progress = self._progress

        return {
            "validation": progress.best,
            "best_epoch": progress.best_epoch,
            "epochs": progress.epoch,
            "steps": progress.step,
            "seconds": round(progress.seconds, 1),
            **self._ordering_margin,
            **({} if progress.novelty is None else {"novelty": progress.novelty}),
            **progress.latents,
            "training_graphs": len(self.graphs),
            "validation_graphs": len(self._all_validation),
        }

    def _save(self) -> None:
        """Write the run: the best weights first, the file that resuming reads last."""
        self._saved_at = self._progress.seconds
        if self.folder is None:
            return
        if not self.has_saved and not is_checkpoint(self.folder):
            write_atomically(self.folder / FIRST_SAVE, b"")
        if not self.has_saved:
            # A run that is replaced must not be resumed with the weights of the one that replaces it.
            for name in (RUN, "state.json"):
                (self.folder / name).unlink(missing_ok=True)
        # Before the first validation the latest weights are the best ones.
        best = self._best if self._progress.best_epoch else self._validated.state_dict()
        save_checkpoint(replace(self._sketch, results=self._results()), self.folder, best)
        lines = "".join(json.dumps(record.to_json()) + "\n" for record in self.history)
        write_atomically(self.folder / "history.jsonl", lines.encode())
        tensors = {f"weights/{name}": tensor for name, tensor in self.network.state_dict().items()}
        if self._validated is not self.network:
            tensors |= {f"mean/{name}": tensor for name, tensor in self._validated.state_dict().items()}
        for name, parameter in self.network.named_parameters():
            tensors |= {f"{key}/{name}": value for key, value in self._optimiser.moments(parameter).items()}
        self._turn = next_turn(self.folder) if self._turn is None else self._turn
        state = {
            "progress": asdict(self._progress),
            "length": self.length.to_json(),
            "data": self._data,
            "threads": torch.get_num_threads(),
            "turn": self._turn,
            "launch": launch(),
        }
        # The position is stored in the file of the tensors, so that the two always agree.
        write_tensors(self.folder / RUN, tensors, {"state": json.dumps(state)})
        (self.folder / FIRST_SAVE).unlink(missing_ok=True)
        write_atomically(self.folder / "state.json", (json.dumps(state, indent=2) + "\n").encode())
        self.has_saved = True

    def _restore(self) -> None:
        """Load the run in the folder."""
        assert self.folder is not None, "only a run with a folder can be resumed"
        path = self.folder / RUN
        state = read_run(self.folder)
        saved = load_checkpoint(self.folder, self.device)
        unused = self.config.unused
        then = saved.config.to_json() | saved.training.to_json(unused)
        now = self.config.to_json() | self.training.to_json(unused)
        other = next((name for name in now if now[name] != then.get(name)), None)
        if other is not None:
            raise CheckpointError(
                f"The run in '{self.folder}' has '{other}' {then.get(other)}, not {now[other]}.", reason="other-run"
            )
        if saved.sizes != self._sketch.sizes:
            raise CheckpointError(f"The run in '{self.folder}' was started on other graphs.", reason="other-run")
        tensors, _ = read_tensors(path)
        self._data = state["data"]
        try:
            self._progress = typed(_Progress, state["progress"])
            self._use_length(typed(RunLength, state.get("length", self.length.to_json())))
        except TypeError as error:
            raise _damaged(f"'{path}' has no valid position of its run.") from error
        load_weights(self.network, _under("weights/", tensors), path)
        if self._validated is not self.network:
            load_weights(self._validated, _under("mean/", tensors), path)
        for name, parameter in self.network.named_parameters():
            moments = {key: tensors[f"{key}/{name}"] for key in MOMENTS if f"{key}/{name}" in tensors}
            if not all(value.shape in (parameter.shape, ()) for value in moments.values()):
                raise _damaged(f"'{path}' does not fit its model.")
            if moments:
                self._optimiser.restore(parameter, moments)
        self._best = saved.network.state_dict()
        self._sketch = replace(self._sketch, results=saved.results)
        self.history = read_history(self.folder, self._progress.epoch)


def prepare(
    name: str,
    graphs: Sequence[SimpleGraph],
    validation: Sequence[SimpleGraph],
    settings: Mapping[str, Any],
    *,
    preset_name: str = "default",
    seed: int = 0,
    device: str = "cpu",
    initial: TrainedModel | None = None,
    **others: Any,
) -> Trainer:
    """A new run with the settings of :func:`configure`; the others are arguments of :class:`Trainer`."""
    names, own = _split_settings(settings)
    if initial is None:
        schema = schema_of(preset_name, [*graphs, *validation], names, own)
    elif names:
        raise ConfigError(f"'{initial.name}' has its own attributes and conditions, which fine-tuning keeps.")
    else:
        schema = initial.schema
    graphs, validation = ([schema.encode(graph, i) for i, graph in enumerate(part)] for part in (graphs, validation))
    own = _for_weights(names, own)
    config, training = configure(preset_name, [*graphs, *validation], initial=initial, schema=schema, seed=seed, **own)
    others |= {"device": resolve_device(device), "initial": initial, "schema": schema}

    return Trainer(name, config, training, graphs, validation, **others)


def _damaged(message: str) -> CheckpointError:
    return CheckpointError(message, reason="run-damaged")


def read_run(folder: Path) -> dict[str, Any]:
    """The state of a run: its ``progress``, ``data`` and ``threads``, and the ``launch`` of torchrun it is from."""
    path = folder / RUN
    if not path.exists():
        reason = "no-run-but-model" if is_checkpoint(folder) else "no-run"
        raise CheckpointError(f"'{folder}' has no run to resume: '{RUN}' not found.", reason=reason)
    _, metadata = read_tensors(path)
    try:
        state = json.loads(metadata["state"])
        if not all(isinstance(state[key], dict) for key in ("progress", "data")):
            raise ValueError("a part is missing")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise _damaged(f"'{path}' has no valid position of its run.") from error

    return dict(state)


def _schedule(fraction: float, step: int, warmup_steps: int) -> float:
    """Linear warm-up, then cosine decay to zero at the end of the run."""
    return min(1.0, (step + 1) / (warmup_steps + 1)) * 0.5 * (1 + math.cos(math.pi * fraction))


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def read_history(folder: Path, epochs: int | None = None) -> list[TrainRecord]:
    """The records of a run's epochs, up to a last one."""
    path = folder / "history.jsonl"
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        records = [typed(TrainRecord, row) for row in rows]
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise _damaged(f"'{path}' cannot be read: {str(error)[:200]}.") from error

    return [record for record in records if epochs is None or record.epoch <= epochs]
