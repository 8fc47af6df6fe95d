"""Training runs in folders: start, find and resume them with the same graphs, which are read or sampled again."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..data.dataset import split_graphs
from ..data.feature_columns import numeric_features
from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..errors import CheckpointError, ConfigError, DatasetError, GraphiteError, UnusedSettingError, did_you_mean
from ..families import family as family_of
from ..families.simulate import generate, training_set
from ..graph import SimpleGraph
from ..io import format_of, read_graphs
from ..io.locks import HIDDEN, is_locked
from ..memory import check_memory
from ..records import Provenance, Record, typed
from .checkpoint import TrainedModel, check_writable, is_checkpoint, last_started, load_checkpoint, recover_save
from .torchrun import launch
from .trainer import FIRST_SAVE, RUN, Trainer, check_settings, naming, prepare, read_run, resolve_device

__all__ = [
    "TrainingData",
    "TrainingGraphs",
    "check_resumed",
    "claim_folder",
    "find_run",
    "find_training_graphs",
    "fingerprint",
    "free_folder",
    "is_finished",
    "lost_run",
    "resume_run",
    "start_run",
]


@dataclass(frozen=True)
class TrainingData(Record):
    """The source of training graphs: a family or a file.

    Attributes:
        graphs: The number of training graphs of a family; None for the preset's.
        nodes: The minimum and maximum number of nodes of a family's graphs.
        format: The format of the file; None to infer it from the suffix.
        simplify: Whether to drop directions, self-loops and repeated edges of the file.
        directed: Whether to read a file that does not say so as directed graphs.
        initial: The model that is fine-tuned; None for a model that is trained from the start.
    """

    family: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    graphs: int | None = None
    nodes: tuple[int, int] = (10, 20)
    file: str | None = None
    format: str | None = None
    simplify: bool = False
    ignore_weights: bool = False
    directed: bool = False
    preset: str = "default"
    seed: int = 0
    initial: str | None = None

    def load(self) -> tuple[list[SimpleGraph], list[SimpleGraph], Provenance]:
        """The training graphs, the validation graphs and their provenance."""
        if self.file is None:
            assert self.family is not None, "a run has a family or a file"
            family = family_of(self.family, **self.parameters)
            data = training_set(family, preset_name=self.preset, count=self.graphs, nodes=self.nodes, seed=self.seed)
            graphs, provenance = data.graphs, data.provenance
        else:
            if Path(self.file).is_file():
                # Arrays take at least as much memory as in HDF5; an edge takes about twenty times as much in text.
                needed = Path(self.file).stat().st_size * (1 if format_of(self.file, self.format) == "h5" else 0.05)
                check_memory(needed, f"Reading '{self.file}'", "Use a file with fewer graphs.", DatasetError)
            reader = read_graphs(self.file, format=self.format, simplify=self.simplify, directed=self.directed or None)
            provenance = replace(reader.provenance, source=reader.provenance.source or Path(self.file).name)
            graphs = [graph.unweighted() if self.ignore_weights else graph for graph in reader]

        return *split_graphs(graphs, self.seed), provenance

    def share(self, group: ProcessGroup) -> tuple[list[SimpleGraph], list[SimpleGraph], Provenance]:
        """The same on every rank: rank 0 reads or draws the graphs and broadcasts them."""
        return group.broadcast(self.load() if group.is_rank_zero else ([], [], Provenance()))


def fingerprint(
    graphs: Iterable[SimpleGraph],
    node_label: str | None = None,
    edge_label: str | None = None,
    condition: Iterable[str] = (),
    generate_features: Iterable[str] | bool = (),
) -> str:
    """A SHA-256 of edges, weights and node features of graphs, in order, and of attributes of these names."""
    digest, conditions = hashlib.sha256(), tuple(condition)
    graphs = list(graphs)
    # All numeric ones have the same fingerprint as their names.
    names = numeric_features(graphs, node_label) if generate_features is True else tuple(generate_features or ())
    for graph in graphs:
        parts = (np.array([graph.nodes, len(graph.edges)]), graph.edges, graph.weights, graph.features)
        digest.update(b"directed" if graph.directed else b"")
        for part in parts:
            # An empty array is not the same as none.
            digest.update(b"-" if part is None else f"{part.shape}{part.dtype.str}".encode() + part.tobytes())
        labels = [graph.node_attributes.get(node_label or ""), graph.edge_attributes.get(edge_label or "")]
        given = [graph.attributes.get(name) for name in conditions]
        if node_label or edge_label or given:
            digest.update(repr((labels, given)).encode())
        if names:
            digest.update(repr([graph.node_attributes.get(name) for name in names]).encode())

    return digest.hexdigest()


def start_run(
    name: str,
    folder: Path,
    data: TrainingData,
    settings: Mapping[str, Any],
    *,
    device: str = "cpu",
    force: bool = False,
    initial: TrainedModel | None = None,
    group: ProcessGroup = SINGLE_PROCESS,
) -> Trainer:
    """Prepare a new run with some settings that differ from the preset's; only rank 0 needs the folder and the file.

    An existing checkpoint is replaced by force only. With an ``initial`` model, that is fine-tuned.
    """
    if group.is_rank_zero:
        claim_folder(folder, force)
    resolve_device(device)
    if data.family is not None:
        check_settings(data.preset, settings, initial)
        # A model of a family generates what its graphs carry.
        own = family_of(data.family, **data.parameters).node_label
        settings = {"node_label": own, **settings} if own is not None and initial is None else settings
    train, validation, provenance = data.share(group)
    names = naming(settings) if initial is None else initial.schema.naming()
    # Record the number, because the default may change.
    data = replace(data, graphs=None if data.family is None else len(train))

    return prepare(
        name,
        train,
        validation,
        settings,
        preset_name=data.preset,
        seed=data.seed,
        folder=folder,
        provenance=provenance,
        data={**data.to_json(), "fingerprint": fingerprint([*train, *validation], **names)},
        device=device,
        initial=initial,
        group=group,
    )


def claim_folder(folder: Path, force: bool, *, resumes: bool = True) -> None:
    """Check, before any work, that a new model can be written to a folder, by force if it has a model already.

    ``resumes`` tells whether runs of this kind can be resumed.
    """
    if _is_taken(folder) and not force:
        reason = "folder-exists-resume" if resumes else "folder-exists"
        raise CheckpointError(f"'{folder}' exists.", reason=reason, folder=folder)
    if _is_taken(folder) and not is_checkpoint(folder):
        raise CheckpointError(
            f"'{folder}' contains files other than a model.", reason="folder-not-a-model", folder=folder
        )
    check_writable(folder)


def _is_taken(folder: Path) -> bool:
    """Whether a folder has files, other than those of a run that was killed before or during its first save."""
    if (folder / FIRST_SAVE).exists() and not (folder / RUN).exists():
        return False

    return folder.exists() and any(not path.name.startswith(HIDDEN) for path in folder.iterdir())


def resume_run(
    folder: Path,
    given: Mapping[str, Any],
    *,
    file: str | None = None,
    device: str = "cpu",
    group: ProcessGroup = SINGLE_PROCESS,
) -> Trainer:
    """Resume the run in a folder; only rank 0 needs the folder and the file.

    The given settings of the model, the run or its data must be those of the run, except its length: with other
    ``epochs`` or another ``budget`` it is extended (see :meth:`.Trainer.extend`). ``file`` is the file of the training
    graphs if it has moved.
    """
    with _at_hand(folder, group) as place:
        data, expected = _read_data(place)
        model = load_checkpoint(place)
        length = check_resumed(folder, model, given, vars(data))
        train, validation, provenance = replace(data, file=file or data.file).share(group)
        if fingerprint([*train, *validation], **model.schema.naming()) != expected:
            raise CheckpointError(
                f"The graphs are not those that the run in '{folder}' was trained on.", reason="resume-other-graphs"
            )

        train, validation = (
            [model.read(graph, index) for index, graph in enumerate(part)] for part in (train, validation)
        )
        trainer = Trainer(
            model.name,
            model.config,
            model.training,
            train,
            validation,
            schema=model.schema,
            folder=place,
            provenance=provenance,
            device=resolve_device(device),
            resume=True,
            group=group,
        )
    trainer.extend(**length)

    return trainer


def check_resumed(
    folder: Path, model: TrainedModel, given: Mapping[str, Any], data: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Check that settings are those of a run and its data, and return those of its length, which may differ."""
    known = {**(data or {}), **vars(model.config), **vars(model.training), **model.schema.naming()}
    for key, value in given.items():
        if key not in known:
            raise ConfigError(f"Unknown setting '{key}'{did_you_mean(key, known)}.")
        if key in model.config.unused:
            raise UnusedSettingError(key, model.config.unused[key])
        if (key, value) == ("ordering", "auto") or key == "epochs" or (key == "budget" and known[key]):
            # The ordering was chosen when the run was started, and its length may change.
            continue
        if key == "generate_features" and isinstance(value, bool) and value == bool(known[key]):
            # All features, whose names are known since the run was started.
            continue
        if (tuple(value) if isinstance(value, list) else value) != known[key]:
            problem = f"The run in '{folder}' has {key}={_shown(known[key])}, not {_shown(value)}."
            raise CheckpointError(problem, reason="resume-other-setting")

    return {key: given[key] for key in ("epochs", "budget") if key in given}


@contextmanager
def _at_hand(folder: Path, group: ProcessGroup) -> Iterator[Path]:
    """The folder of a run; on other ranks, which may be on other hosts, a copy of the files that resuming reads."""
    names = ("config.json", "model.safetensors", RUN, "history.jsonl")
    if group.is_rank_zero:
        # A run that was killed while saving has its weights under a hidden name.
        recover_save(folder)
        if group.world_size > 1:
            found = [path for path in (folder / name for name in names) if path.is_file()]
            group.broadcast({path.name: path.read_bytes() for path in found})
        yield folder
        return
    with tempfile.TemporaryDirectory() as copy:
        for name, content in group.broadcast(dict[str, bytes]()).items():
            Path(copy, name).write_bytes(content)
        yield Path(copy)


def _read_data(folder: Path) -> tuple[TrainingData, str]:
    record = read_run(folder)["data"]
    if record.keys() == {"fingerprint"}:
        problem = "was started from Python, with its training graphs in memory: resume it by 'fit' with 'resume=True'"
        raise CheckpointError(f"The run in '{folder}' {problem}.")
    try:
        expected = str(record.pop("fingerprint"))
        low, high = record["nodes"]
        data = typed(TrainingData, {**record, "nodes": (int(low), int(high))})
        if data.file is None and data.family is None:
            raise ValueError("neither a file nor a family")
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise CheckpointError(
            f"The run in '{folder}' has no valid record of its training graphs.", reason="run-damaged"
        ) from error

    return data, expected


# The maximum number of graphs to sample again for a checkpoint, which may be damaged.
MOST_DRAWN = 10_000_000


@dataclass(frozen=True)
class TrainingGraphs:
    """The training and validation graphs of a model, as far as they are available, and their fingerprint, if known."""

    train: list[SimpleGraph] = field(default_factory=list)
    validation: list[SimpleGraph] = field(default_factory=list)
    fingerprint: str | None = None


def find_training_graphs(folder: Path) -> TrainingGraphs:
    """The graphs that a checkpoint was trained on: sampled again from their seed, or read again if unchanged."""
    if (folder / RUN).exists():
        record = read_run(folder)["data"]
        if record.keys() <= {"fingerprint"}:
            # A run on graphs in memory.
            return TrainingGraphs(fingerprint=record.get("fingerprint"))
        data, expected = _read_data(folder)
        if data.file is not None or (data.graphs or 0) <= MOST_DRAWN:
            with suppress(GraphiteError):
                train, validation, _ = data.load()
                if fingerprint([*train, *validation], **load_checkpoint(folder).schema.naming()) == expected:
                    return TrainingGraphs(train, validation, expected)
        return TrainingGraphs(fingerprint=expected)
    model = load_checkpoint(folder)
    own = model.provenance
    counts = [model.results.get(key) for key in ("training_graphs", "validation_graphs")]
    splits = {
        split: count
        for split, count in zip(("train", "validation"), counts, strict=True)
        if isinstance(count, int) and 0 <= count <= MOST_DRAWN
    }
    if len(splits) < 2 or own.source != "generate" or own.family is None or own.seed is None:
        return TrainingGraphs()
    nodes = min(model.sizes.graphs), model.sizes.largest
    drawn = generate(family_of(own.family, **own.parameters), sum(splits.values()), nodes, own.seed, splits=splits)
    train, validation = split_graphs(drawn.graphs, model.training.seed)

    return TrainingGraphs(train, validation, fingerprint(drawn.graphs))


def _shown(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def is_finished(folder: Path) -> bool:
    """Whether the run in a folder is complete."""
    return read_run(folder)["progress"].get("finished") is True


def free_folder(out: Path, name: str) -> Path:
    """The first of ``name``, ``name-2``, ``name-3``, … that does not exist under ``out``.

    Raises:
        CheckpointError: One of those before has a run that was stopped, and should be resumed or replaced.
    """
    folder, number = out / name, 1
    while _is_taken(folder) or is_locked(folder):
        if not is_locked(folder) and (state := _unfinished(folder)) is not None:
            done, planned = state["progress"].get("epoch"), state.get("length", {}).get("epochs", "?")
            text = f"'{folder}' has an unfinished run, after {done} of {planned} epochs."
            raise CheckpointError(text, reason="run-unfinished", name=folder.name)
        number += 1
        folder = out / f"{name}-{number}"

    return folder


def _unfinished(folder: Path) -> dict[str, Any] | None:
    """The state of a run that was stopped; None for other models, and for a run that is damaged."""
    try:
        state = read_run(folder)
    except CheckpointError:
        return None

    return None if state["progress"].get("finished") is True else state


def lost_run(out: Path, name: str) -> Path | None:
    """The run among ``name``, ``name-2``, … to continue after a restart by torchrun; None if there is none."""
    if os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0":
        return None
    ours = []
    for folder in _runs(out, name):
        # Other runs may be damaged.
        with suppress(CheckpointError):
            if read_run(folder).get("launch") == launch():
                ours.append(folder)

    return last_started(ours) if ours else None


def find_run(out: Path, name: str) -> Path:
    """The last started or resumed run among ``name``, ``name-2``, ``name-3``, … under ``out``."""
    runs = _runs(out, name)
    if not runs:
        raise CheckpointError(f"There is no run called '{name}' under '{out}' to resume.", reason="no-run")

    return last_started(runs)


def _runs(out: Path, name: str) -> list[Path]:
    pattern = re.compile(re.escape(name) + r"(-\d+)?")
    found = {path.parent for file in ("state.json", RUN) for path in out.glob(f"*/{file}")}

    return [folder for folder in found if pattern.fullmatch(folder.name)]
