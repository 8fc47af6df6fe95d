"""Training: a run that validates, keeps the best weights, and can be stopped and resumed bit for bit.

Every random choice of a run is named by its seed, epoch and step, so a resumed run needs no generator state: the
weights, the optimiser's moments and the place in the epoch are the whole of it.
"""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..autoregressive.distribution import Schedule
from ..autoregressive.ordering import permute_to_ordering
from ..config import ModelConfig, TrainConfig, current_names, preset
from ..data.batch import GraphBatch, bucket, collate, consecutive_batches
from ..data.sizes import SizeDistribution
from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..errors import CheckpointError, ConfigError, DatasetError, TrainingError, UnusedSettingError
from ..families import Family
from ..graph import SimpleGraph
from ..io.locks import HIDDEN
from ..memory import check_memory
from ..records import Provenance, TrainRecord, typed
from ..rng import derive_seed, stream
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
from .model import GraphNetwork, build_network
from .objectives import autoregressive_log_weights, log_weights, reconstruction
from .step import BatchLoss, draw_step, normal_noise
from .torchrun import launch, local_rank

__all__ = [
    "FIRST_SAVE",
    "RUN",
    "Trainer",
    "adapt_config",
    "configure",
    "prepare",
    "read_history",
    "read_run",
    "resolve_device",
    "validation_nats",
]

RUN = "optimizer.safetensors"
FIRST_SAVE = f"{HIDDEN}first-save"
"""What is in a folder while a run saves for the first time: until then it holds nothing that anyone could miss."""

# What large graphs cost is bounded by cells of padded matrices: a step by memory, an epoch by time. Graphs of 20 nodes
# reach neither bound.
BATCH_CELLS = 1 << 21
EPOCH_NODES = 20
VALIDATION_BATCH = 32
# Bytes per cell of a step, as measured: a staged model keeps many matrices for its gradients, others few.
AUTOREGRESSIVE_BYTES = 900
ONE_SHOT_BYTES = 80


def resolve_device(name: str) -> torch.device:
    """The device called ``auto``, ``cpu``, ``cuda`` or ``cuda:1``; of several, each process of torchrun has its own.

    Raises:
        TrainingError: It is not there.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise TrainingError(f"Unknown device '{name}'. Use auto, cpu or cuda.") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise TrainingError("This machine has no CUDA device. Use '--device cpu'.")
    own = local_rank()
    if device.type != "cuda" or device.index is not None or own is None:
        return device
    if own >= torch.cuda.device_count():
        raise TrainingError(
            f"This machine has {torch.cuda.device_count()} CUDA devices, fewer than torchrun has started processes. "
            f"Lower '--nproc-per-node', or use '--device cpu'."
        )

    return torch.device("cuda", own)


def adapt_config(config: ModelConfig, graphs: Sequence[SimpleGraph]) -> ModelConfig:
    """The config fitted to the graphs: weighted or not (weights that are all one say nothing), sizes, features.

    Raises:
        DatasetError: There are no graphs, or they are of mixed kinds.
    """
    if not graphs:
        raise DatasetError("There are no graphs to train on. Check the file with 'graphite-gen inspect'.")
    if min(graph.nodes for graph in graphs) < 1:
        raise DatasetError("A graph has no nodes; remove it from the training graphs.")
    weighted = {graph.weights is not None for graph in graphs if len(graph.edges)}
    if len(weighted) > 1:
        raise DatasetError("Some graphs are weighted and some are not. Train on one kind at a time.")
    widths = {0 if graph.features is None else graph.features.shape[1] for graph in graphs}
    if len(widths) > 1:
        raise DatasetError(f"Node features have different widths: {sorted(widths)}. Give every graph the same.")

    return replace(
        config,
        observation="normal" if any(graph.is_weighted for graph in graphs) else "bernoulli",
        max_nodes=max(graph.nodes for graph in graphs),
        node_features=widths.pop(),
    )


def configure(
    name: str, graphs: Sequence[SimpleGraph], law: Family | None = None, /, **changes: Any
) -> tuple[ModelConfig, TrainConfig]:
    """The settings of a preset with some changed, fitted to the graphs.

    Weighted graphs are decided in one stage. The nodes of a family arrive in the order that serves it best; nodes with
    features of their own in any order.

    Arguments:
        name: The preset.
        graphs: What will be trained and validated on.
        law: The family they come from.
        changes: The settings that differ from the preset's.

    Raises:
        ConfigError: The preset or a setting is unknown, a value does not fit, or a setting would change nothing.
        DatasetError: There are no graphs, or they are of mixed kinds.
    """
    changes = current_names(changes)
    given = tuple(changes)
    weighted = any(graph.is_weighted for graph in graphs)
    if weighted and "decoding_steps" not in changes:
        changes["decoding_steps"] = 1
    model, training = preset(name, **changes)
    if model.is_autoregressive and "ordering" not in changes:
        featured = any(graph.features is not None for graph in graphs)
        model = replace(model, ordering="uniform" if featured else law.ordering if law is not None else model.ordering)

    for setting in given:
        if setting in model.unused:
            raise UnusedSettingError(setting, model.unused[setting])

    return adapt_config(model, graphs), training


@dataclass
class _Progress:
    """Where a run is: what resuming needs besides tensors."""

    epoch: int = 0
    batch: int = 0
    step: int = 0
    loss_sum: float = 0.0
    kl_sum: float = 0.0
    graphs_seen: int = 0
    best: float | None = None
    best_epoch: int = 0
    stale: int = 0
    learning_rate: float = 0.0
    seconds: float = 0.0
    finished: bool = False


class Trainer:
    """One training run in one folder.

    Iterating trains and gives a :class:`TrainRecord` per epoch; ``model`` is then the best model found, and
    ``has_saved`` says whether there is anything in the folder to resume.
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
        group: ProcessGroup = SINGLE_PROCESS,
    ) -> None:
        """Prepare a run, or pick one up.

        Arguments:
            name: What to call the model.
            config: The architecture, as :func:`adapt_config` fitted it.
            training: The settings of the run.
            graphs: Training graphs.
            validation: Validation graphs; empty to train without, keeping the last weights.
            folder: Where checkpoints go; None to keep the model in memory only.
            provenance: Where the graphs come from.
            data: What makes the graphs again, as JSON; kept with the run for whoever resumes it.
            device: Where to train.
            resume: Whether to continue the run in the folder.
            group: The processes that train it; rank 0 writes.

        Raises:
            CheckpointError: There is no run to resume, or it was another one.
            DistributedError: A worker died.
            DatasetError: The validation graphs do not suit the training graphs.
            TrainingError: A step does not fit in memory.
        """
        if validation:
            fitted = adapt_config(config, [*graphs, *validation])
            # Numbered nodes must be known for validation graphs too; nothing else may differ.
            config = replace(config, max_nodes=fitted.max_nodes)
        if training.convention == "paper" and config.observation == "normal":
            raise ConfigError("Convention 'paper' is for unweighted graphs. Train with convention 'pairs'.")
        self.config = config
        self.training = training
        # Another process may find another figure, but all train or none does.
        if group.is_rank_zero and torch.device(device).type == "cpu":
            _check_memory(config, training)
        self.graphs = graphs
        self.validation = validation
        self.folder = folder
        self.device = torch.device(device)
        self.history: list[TrainRecord] = []
        self._data = dict(data or {})
        self._progress = _Progress()
        self._turn: int | None = None
        self.has_saved = resume
        # False while weights, moments and progress are changing together: saved then, they would disagree.
        self._is_whole = True
        self._is_stopping = False

        self.network = build_network(config, derive_seed(training.seed, "weights")).to(self.device)
        self._start_at_the_density()
        self._optimiser = torch.optim.AdamW(
            self.network.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay
        )
        # What is validated and kept: the weights, or their running mean.
        self._judged = copy.deepcopy(self.network) if training.average else self.network
        self._best = _copy(self._judged.state_dict())
        self._sketch = TrainedModel(
            name, self.network, SizeDistribution.of(graphs), training, provenance or Provenance()
        )
        if resume:
            self._restore()
        if not group.is_rank_zero:
            self.folder = None
        self._group = group
        # An error of a rank that gets no further is raised here.
        group.barrier()
        self._loss = BatchLoss(self.network, training.convention, group)

    def stop(self) -> None:
        """Ask the run to save and raise ``KeyboardInterrupt`` after the step it is in; for signal handlers."""
        self._is_stopping = True

    @property
    def epoch(self) -> int:
        """The number of epochs done."""
        return self._progress.epoch

    @property
    def is_finished(self) -> bool:
        """Whether the run has come to its end."""
        return self._progress.finished

    @property
    def model(self) -> TrainedModel:
        """The best model so far, in evaluation mode."""
        network = build_network(self.config)
        network.load_state_dict(self._best)
        network.to(self.device).eval()

        return replace(self._sketch, network=network, results=self._results())

    def __iter__(self) -> Iterator[TrainRecord]:
        try:
            while self._progress.epoch < self.training.epochs and not self._progress.finished:
                yield self._epoch()
        except (KeyboardInterrupt, GeneratorExit):
            # Half a step is not kept: the run is then resumed from the save before it, to the same end.
            if self._is_whole:
                self._save()
            raise
        self._progress.finished = True
        self._save()

    def _start_at_the_density(self) -> None:
        if self.config.observation != "bernoulli":
            return
        pairs = sum(math.comb(graph.nodes, 2) for graph in self.graphs)
        density = (sum(len(graph.edges) for graph in self.graphs) + 0.5) / (pairs + 1)
        self.network.decoder.start_at(math.log(density / (1 - density)))

    # One epoch ------------------------------------------------------------------------------------------------

    def _epoch(self) -> TrainRecord:
        progress = self._progress
        batches = self._batches(progress.epoch)
        self.network.train()
        for indices in batches[progress.batch :]:
            # All stop at the same step, whichever was asked: none waits for another that has gone.
            if self._group.any(self._is_stopping):
                raise KeyboardInterrupt
            started = time.monotonic()
            self._step(indices, (progress.epoch + progress.batch / len(batches)) / self.training.epochs)
            progress.seconds += time.monotonic() - started

        record = TrainRecord(
            epoch=progress.epoch + 1,
            step=progress.step,
            loss=progress.loss_sum / max(progress.graphs_seen, 1),
            kl=progress.kl_sum / max(progress.graphs_seen, 1),
            validation=None,
            best=progress.best,
            learning_rate=progress.learning_rate,
            seconds=progress.seconds,
        )
        validates = record.epoch == self.training.epochs or record.epoch % self.training.validate_every == 0
        figure = self._validate(record.epoch) if validates and self.validation else None

        self._is_whole = False
        if validates:
            record = self._judge(record, figure)
        self.history.append(record)
        progress.epoch += 1
        progress.batch = progress.graphs_seen = 0
        progress.loss_sum = progress.kl_sum = 0.0
        self._is_whole = True
        if validates:
            self._save()

        return record

    def _batches(self, epoch: int) -> list[list[int]]:
        """The batches of an epoch: the next ``epoch_graphs`` of one endless series of shuffled passes."""
        sizes = np.array([graph.nodes for graph in self.graphs])
        wanted = self.training.epoch_graphs or len(sizes)
        if self.training.epoch_graphs:
            cells = wanted * EPOCH_NODES**2
            wanted = max(1, min(wanted, int(cells / np.square(sizes, dtype=np.float64).mean())))
        first, last = epoch * wanted // len(sizes), ((epoch + 1) * wanted - 1) // len(sizes)
        passes = [
            stream(self.training.seed, "pass", number).permutation(len(sizes)) for number in range(first, last + 1)
        ]
        start = epoch * wanted - first * len(sizes)
        chosen = np.concatenate(passes)[start : start + wanted]
        rng = stream(self.training.seed, "epoch", epoch)
        places = bucket(
            sizes[chosen].tolist(), self.training.batch_size, rng, cells=BATCH_CELLS // self.training.samples
        )

        return [chosen[batch].tolist() for batch in places]

    # An interrupt while torch turns gradients off and on may leave them off, in a notebook for good.
    @torch.enable_grad()
    def _step(self, indices: list[int], fraction: float) -> None:
        """One optimiser step."""
        training, progress = self.training, self._progress
        batch = collate([self.graphs[index] for index in indices], _width(self.config, training)).to(self.device)
        step = draw_step(self.network, batch, training, progress.step, fraction)
        # Batches of large graphs hold fewer of them: dividing by the nominal size weighs every graph alike.
        loss, kl = self._loss.backward(step, training.batch_size)
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), training.clip)
        if not (math.isfinite(loss) and norm.isfinite()):
            raise TrainingError(
                f"The loss became {loss / training.batch_size:g} and its gradient {float(norm):g} at step "
                f"{progress.step}. "
                f"Start again with a lower '--learning-rate' (now {training.learning_rate:g})."
            )
        rate = training.learning_rate * _schedule(fraction, progress.step, training.warmup_steps)
        for group in self._optimiser.param_groups:
            group["lr"] = rate

        self._is_whole = False
        self._optimiser.step()
        self._follow()
        progress.step += 1
        progress.batch += 1
        progress.loss_sum += loss
        progress.kl_sum += kl
        progress.graphs_seen += len(indices)
        progress.learning_rate = rate
        self._is_whole = True

    def _follow(self) -> None:
        """Move the running mean of the weights towards them; its memory grows with the run to begin with."""
        if self._judged is self.network:
            return
        memory = min(self.training.average, (1 + self._progress.step) / (10 + self._progress.step))
        with torch.no_grad():
            for mean, weight in zip(self._judged.parameters(), self.network.parameters(), strict=True):
                mean.lerp_(weight, 1 - memory)

    # Validation -----------------------------------------------------------------------------------------------

    def _validate(self, epoch: int) -> float:
        """Score the validation graphs."""
        figure = validation_figure(self._judged, self.validation, self.training, self._group)
        if not math.isfinite(figure):
            raise TrainingError(
                f"The validation figure became {figure} after epoch {epoch}. "
                f"Start again with a lower '--learning-rate' (now {self.training.learning_rate:g})."
            )

        return figure

    def _judge(self, record: TrainRecord, figure: float | None) -> TrainRecord:
        """Keep the weights if their validation figure is the best, and decide whether to stop."""
        progress = self._progress
        if figure is None or progress.best is None or figure < progress.best:
            progress.best, progress.best_epoch, progress.stale = figure, record.epoch, 0
            self._best = _copy(self._judged.state_dict())
        else:
            progress.stale += 1
        if self.training.patience and progress.stale >= self.training.patience:
            progress.finished = True

        return replace(record, validation=figure, best=progress.best)

    # The folder -----------------------------------------------------------------------------------------------

    def _results(self) -> dict[str, Any]:
        progress = self._progress

        return {
            "validation": progress.best,
            "best_epoch": progress.best_epoch,
            "epochs": progress.epoch,
            "steps": progress.step,
            "seconds": round(progress.seconds, 1),
            "training_graphs": len(self.graphs),
            "validation_graphs": len(self.validation),
        }

    def _save(self) -> None:
        """Write the run: best weights first, the one file that resuming reads last."""
        if self.folder is None:
            return
        if not self.has_saved and not is_checkpoint(self.folder):
            write_atomically(self.folder / FIRST_SAVE, b"")
        if not self.has_saved:
            # A run that is replaced must not be resumed with the weights of the one that replaces it.
            for name in (RUN, "state.json"):
                (self.folder / name).unlink(missing_ok=True)
        # Before the first validation the latest weights are the best there are.
        best = self._best if self._progress.best_epoch else self._judged.state_dict()
        save_checkpoint(replace(self._sketch, results=self._results()), self.folder, best)
        lines = "".join(json.dumps(record.to_json()) + "\n" for record in self.history)
        write_atomically(self.folder / "history.jsonl", lines.encode())
        tensors = {f"weights/{name}": tensor for name, tensor in self.network.state_dict().items()}
        if self._judged is not self.network:
            tensors |= {f"mean/{name}": tensor for name, tensor in self._judged.state_dict().items()}
        for (name, _), moments in zip(self.network.named_parameters(), self._moments(), strict=True):
            tensors |= {f"{moment}/{name}": tensor for moment, tensor in moments.items()}
        self._turn = next_turn(self.folder) if self._turn is None else self._turn
        state = {
            "progress": asdict(self._progress),
            "data": self._data,
            "threads": torch.get_num_threads(),
            "turn": self._turn,
            "launch": launch(),
        }
        # The place in the run travels inside the tensors' file, so that the two can never disagree.
        write_tensors(self.folder / RUN, tensors, {"state": json.dumps(state)})
        (self.folder / FIRST_SAVE).unlink(missing_ok=True)
        write_atomically(self.folder / "state.json", (json.dumps(state, indent=2) + "\n").encode())
        self.has_saved = True

    def _moments(self) -> list[Mapping[str, Tensor]]:
        state = self._optimiser.state

        return [
            {key: torch.as_tensor(value) for key, value in state.get(parameter, {}).items()}
            for parameter in self.network.parameters()
        ]

    def _restore(self) -> None:
        """Take up the run in the folder."""
        assert self.folder is not None, "only a run with a folder can be resumed"
        path = self.folder / RUN
        state = read_run(self.folder)
        saved = load_checkpoint(self.folder, self.device)
        self._check_same_run(saved)
        tensors, _ = read_tensors(path)
        self._data = state["data"]
        try:
            self._progress = typed(_Progress, state["progress"])
        except TypeError as error:
            raise CheckpointError(f"'{path}' does not say where its run was. Train anew with '--force'.") from error
        load_weights(self.network, _under("weights/", tensors), path)
        if self._judged is not self.network:
            load_weights(self._judged, _under("mean/", tensors), path)
        for name, parameter in self.network.named_parameters():
            moments = {key: tensors[f"{key}/{name}"] for key in _MOMENTS if f"{key}/{name}" in tensors}
            if not all(value.shape in (parameter.shape, ()) for value in moments.values()):
                raise CheckpointError(f"'{path}' does not fit its run. Train anew with '--force'.")
            if moments:
                # Adam counts its steps on the CPU whatever the device.
                self._optimiser.state[parameter] = {
                    key: value if key == "step" else value.to(parameter) for key, value in moments.items()
                }
        self._best = _copy(saved.network.state_dict())
        self.history = read_history(self.folder, self._progress.epoch)

    def _check_same_run(self, saved: TrainedModel) -> None:
        """Refuse to go on with other settings or other graphs: the end would be neither run's."""
        then = saved.config.to_json() | saved.training.to_json()
        now = self.config.to_json() | self.training.to_json()
        other = next((name for name in now if now[name] != then[name]), None)
        if other is not None:
            raise CheckpointError(
                f"The run in '{self.folder}' has '{other}' {then[other]}, not {now[other]}. "
                f"Resume it with its own settings, or train anew with '--force'."
            )
        if saved.sizes != self._sketch.sizes:
            raise CheckpointError(
                f"The run in '{self.folder}' was started on other graphs. Resume it with those, or train anew with "
                f"'--force'."
            )


def prepare(
    name: str,
    graphs: Sequence[SimpleGraph],
    validation: Sequence[SimpleGraph],
    settings: Mapping[str, Any],
    *,
    preset_name: str = "default",
    seed: int = 0,
    law: Family | None = None,
    folder: Path | None = None,
    provenance: Provenance | None = None,
    data: Mapping[str, Any] | None = None,
    device: str = "cpu",
    group: ProcessGroup = SINGLE_PROCESS,
) -> Trainer:
    """A new run by a preset.

    Arguments:
        name: What to call the model.
        graphs: Training graphs.
        validation: Validation graphs; may be empty.
        settings: The settings that differ from the preset's.
        preset_name: The preset.
        seed: The run's one seed.
        law: The family that the graphs come from.
        folder: Where checkpoints go; None to keep the model in memory only.
        provenance: Where the graphs come from.
        data: What makes the graphs again, as JSON.
        device: ``auto``, ``cpu`` or ``cuda``.
        group: The processes that train it.

    Raises:
        ConfigError: The preset or a setting is unknown, a value does not fit, or a setting would change nothing.
        DistributedError: A worker died.
        DatasetError: There are no graphs, or they are of mixed kinds.
        TrainingError: The device is not there.
    """
    config, training = configure(preset_name, [*graphs, *validation], law, seed=seed, **settings)

    return Trainer(
        name,
        config,
        training,
        graphs,
        validation,
        folder=folder,
        provenance=provenance,
        data=data,
        device=resolve_device(device),
        group=group,
    )


_MOMENTS = ("step", "exp_avg", "exp_avg_sq")


def read_run(folder: Path) -> dict[str, Any]:
    """What a run keeps beside its tensors.

    Its ``progress``, the ``data`` it was given, the ``threads`` it ran on, and which ``launch`` of torchrun wrote it.

    Raises:
        CheckpointError: There is no run to resume, or it is damaged.
    """
    path = folder / RUN
    if not path.exists():
        raise CheckpointError(
            f"'{folder}' has no run to resume: '{RUN}' not found. Start one without '--resume'"
            f"{', with ' + repr('--force') if is_checkpoint(folder) else ''}."
        )
    _, metadata = read_tensors(path)
    try:
        state = json.loads(metadata["state"])
        if not all(isinstance(state[key], dict) for key in ("progress", "data")):
            raise ValueError("a part is missing")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"'{path}' does not say where its run was. Train anew with '--force'.") from error

    return dict(state)


def validation_figure(
    network: GraphNetwork, graphs: Sequence[SimpleGraph], training: TrainConfig, group: ProcessGroup = SINGLE_PROCESS
) -> float:
    """The mean NLL of graphs by a few importance samples, or the reconstruction error, in nats per graph.

    The noise is the same at every validation, so that figures differ by their weights alone. Several processes share
    the work, and all get the figure that one alone would.
    """
    network.eval()
    parts = _validation_parts(graphs, training)
    sums = [0.0] * len(parts)
    for number in range(group.rank, len(parts), group.world_size):
        sums[number] = float(_validation_nats(network, graphs, training, *parts[number]).sum())
    network.train()

    return sum(group.all_reduce_sum(sums)) / len(graphs)


def validation_nats(model: TrainedModel, graphs: Sequence[SimpleGraph]) -> list[float]:
    """What :func:`validation_figure` is the mean of, graph by graph."""
    nats = np.zeros(len(graphs))
    for start, indices in _validation_parts(graphs, model.training):
        nats[indices] = _validation_nats(model.network, graphs, model.training, start, indices).cpu().numpy()

    return [float(value) for value in nats]


def _validation_parts(graphs: Sequence[SimpleGraph], training: TrainConfig) -> list[tuple[int, list[int]]]:
    """Which graphs are scored together, and the number of the first in order of size, which names their noise."""
    order = sorted(range(len(graphs)), key=lambda index: graphs[index].nodes)
    sizes = [graphs[index].nodes for index in order]
    parts, start = [], 0
    for count in consecutive_batches(sizes, VALIDATION_BATCH, BATCH_CELLS // training.validation_samples):
        parts.append((start, order[start : start + count]))
        start += count

    return parts


@torch.no_grad()
def _validation_nats(
    network: GraphNetwork, graphs: Sequence[SimpleGraph], training: TrainConfig, start: int, indices: list[int]
) -> Tensor:
    """The figures of graphs that are scored together, in double precision, with shape :math:`(B,)`."""
    device = next(network.parameters()).device
    batch = collate([graphs[index] for index in indices], _width(network.config, training)).to(device)
    generator = torch.Generator().manual_seed(derive_seed(training.seed, "validation", start))
    count, nodes = batch.mask.shape
    if network.config.is_autoregressive:
        values = _autoregressive_values(network, batch, training, start)
    elif network.config.is_variational:
        samples = training.validation_samples
        noise = normal_noise(generator, batch, samples, count, nodes, network.noise_features)
        epsilon = normal_noise(generator, batch, samples, 1, count, nodes, network.config.latent)
        weights = log_weights(network, batch, noise, epsilon, training.convention)
        values = weights.logsumexp(0) - math.log(samples)
    else:
        noise = normal_noise(generator, batch, count, nodes, network.noise_features)
        values = reconstruction(network, batch, noise, training.convention)

    return -values.double()


def _autoregressive_values(network: GraphNetwork, batch: GraphBatch, training: TrainConfig, start: int) -> Tensor:
    """The log-likelihood of graphs under a staged model by a few orders, with shape :math:`(B,)`."""
    rng = stream(training.seed, "validation orders", start)
    generator = torch.Generator().manual_seed(derive_seed(training.seed, "validation", start))
    weights = []
    for _ in range(training.validation_samples):
        ordered, log_q = permute_to_ordering(batch, network.config.ordering, rng)
        noise = normal_noise(generator, batch, *batch.mask.shape, network.noise_features)
        epsilon = normal_noise(generator, batch, *batch.mask.shape, network.config.latent)
        schedule = Schedule(network.config.decoding_steps)
        weights.append(autoregressive_log_weights(network, ordered, noise, epsilon, log_q.to(noise), schedule))

    return torch.stack(weights).logsumexp(0) - math.log(len(weights))


def _check_memory(config: ModelConfig, training: TrainConfig) -> None:
    """Refuse batches whose padded matrices cannot fit."""
    one = config.max_nodes**2 * training.samples
    all_cells = one * training.batch_size
    # Where every cell counts batches are cut before they are padded.
    cells = all_cells if training.convention == "paper" else max(one, min(all_cells, BATCH_CELLS))
    bytes_per_cell = AUTOREGRESSIVE_BYTES if config.is_autoregressive else ONE_SHOT_BYTES

    def remedy(available: int) -> str:
        fitting = available // (one * bytes_per_cell)
        return f"Pass '--batch-size {fitting}'." if fitting else "Train on graphs with fewer nodes."

    what = f"A step on {max(1, cells // one)} graphs of {config.max_nodes} nodes"
    check_memory(cells * bytes_per_cell, what, remedy, TrainingError)


def _width(config: ModelConfig, training: TrainConfig) -> int | None:
    """How wide batches are padded: to the largest graph of all where every cell counts, else to their own."""
    return config.max_nodes if training.convention == "paper" else None


def _schedule(fraction: float, step: int, warmup_steps: int) -> float:
    """Linear warm-up, then a cosine to zero at the end of the run."""
    return min(1.0, (step + 1) / (warmup_steps + 1)) * 0.5 * (1 + math.cos(math.pi * fraction))


def _copy(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in weights.items()}


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def read_history(folder: Path, epochs: int | None = None) -> list[TrainRecord]:
    """The records of the epochs a run has done.

    Arguments:
        folder: Its checkpoint.
        epochs: How many it has done; a save may have been cut off after a later one.

    Raises:
        CheckpointError: They are missing or damaged.
    """
    path = folder / "history.jsonl"
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        records = [typed(TrainRecord, row) for row in rows]
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise CheckpointError(
            f"'{path}' cannot be read: {str(error)[:200]}. Restore it, or train anew with '--force'."
        ) from error

    return [record for record in records if epochs is None or record.epoch <= epochs]
