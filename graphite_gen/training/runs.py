"""Training runs in folders: starting one, finding it again, and taking it up where it stopped.

A run keeps what makes its graphs again, and their fingerprint, so that a resumed run is the same run or none.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..data.dataset import split_graphs
from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..errors import CheckpointError, DatasetError, GraphiteError
from ..families import family
from ..families.simulate import generate, training_set
from ..graph import SimpleGraph
from ..io import format_of, read_graphs
from ..io.locks import HIDDEN, is_locked
from ..memory import check_memory
from ..records import Provenance, Record, typed
from .checkpoint import check_writable, is_checkpoint, last_started, load_checkpoint, recover_save
from .torchrun import launch, restarts
from .trainer import FIRST_SAVE, RUN, Trainer, prepare, read_run, resolve_device

__all__ = [
    "TrainingData",
    "TrainingGraphs",
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
    """What a run is trained on: a family's graphs or those of a file.

    Attributes:
        family: The family, or None for a file.
        parameters: The parameters of its law.
        graphs: The number of training graphs; None for the preset's.
        nodes: The smallest and the largest number of nodes.
        file: The file, or None for a family.
        format: The file's format, where its suffix does not tell.
        simplify: Whether the file is read leniently.
        ignore_weights: Whether only the file's edges count, not their weights.
        preset: The name of the run's preset.
        seed: The run's one seed.
    """

    family: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    graphs: int | None = None
    nodes: tuple[int, int] = (10, 20)
    file: str | None = None
    format: str | None = None
    simplify: bool = False
    ignore_weights: bool = False
    preset: str = "default"
    seed: int = 0

    def load(self) -> tuple[list[SimpleGraph], list[SimpleGraph], Provenance]:
        """The training graphs, the validation graphs, and where they come from."""
        if self.file is None:
            assert self.family is not None, "a run has a family or a file"
            law = family(self.family, **self.parameters)
            data = training_set(law, preset_name=self.preset, count=self.graphs, nodes=self.nodes, seed=self.seed)
            graphs, provenance = data.graphs, data.provenance
        else:
            _check_file(self.file, self.format)
            reader = read_graphs(self.file, format=self.format, simplify=self.simplify)
            provenance = replace(reader.provenance, source=reader.provenance.source or Path(self.file).name)
            graphs = [graph.unweighted() if self.ignore_weights else graph for graph in reader]

        return *split_graphs(graphs, self.seed), provenance

    def share(self, group: ProcessGroup) -> tuple[list[SimpleGraph], list[SimpleGraph], Provenance]:
        """The same on every rank: rank 0 reads or draws the graphs and broadcasts them."""
        return group.broadcast(self.load() if group.is_rank_zero else ([], [], Provenance()))


def _check_file(file: str, format: str | None) -> None:
    """Refuse a file whose graphs cannot fit; how many there are is not known before it is read."""
    if Path(file).is_file():
        # Arrays take no less in memory than in HDF5; an edge in text is about twenty times as long.
        needed = Path(file).stat().st_size * (1 if format_of(file, format) == "h5" else 0.05)
        check_memory(needed, f"To hold the graphs of '{file}'", "Pass a file with fewer graphs.", DatasetError)


def fingerprint(graphs: Iterable[SimpleGraph]) -> str:
    """A SHA-256 of what training sees of graphs, in order."""
    digest = hashlib.sha256()
    for graph in graphs:
        parts = (np.array([graph.nodes, len(graph.edges)]), graph.edges, graph.weights, graph.features)
        for part in parts:
            # Weighted and featured graphs differ from plain ones even where the array is empty.
            digest.update(b"-" if part is None else f"{part.shape}{part.dtype.str}".encode() + part.tobytes())

    return digest.hexdigest()


def start_run(
    name: str,
    folder: Path,
    data: TrainingData,
    settings: Mapping[str, Any],
    *,
    device: str = "cpu",
    force: bool = False,
    group: ProcessGroup = SINGLE_PROCESS,
) -> Trainer:
    """Prepare a new run.

    Arguments:
        name: What to call the model.
        folder: Where its checkpoint goes.
        data: What to train on.
        settings: Settings of the model and the run that differ from the preset's.
        device: ``auto``, ``cpu`` or ``cuda``.
        force: Whether to replace a checkpoint that is there.
        group: The processes that train it; only rank 0 needs the folder and the file.

    Raises:
        CheckpointError: The folder is taken.
        ConfigError: A setting is unknown, would change nothing or does not fit.
        DistributedError: A worker died.
    """
    if group.is_rank_zero:
        claim_folder(folder, force)
    train, validation, provenance = data.share(group)
    law = None if data.family is None else family(data.family, **data.parameters)
    # The number itself, so that a later default is not taken for it.
    data = replace(data, graphs=None if data.family is None else len(train))

    return prepare(
        name,
        train,
        validation,
        settings,
        preset_name=data.preset,
        seed=data.seed,
        law=law,
        folder=folder,
        provenance=provenance,
        data={**data.to_json(), "fingerprint": fingerprint([*train, *validation])},
        device=device,
        group=group,
    )


def claim_folder(folder: Path, force: bool, *, resumes: bool = True) -> None:
    """Find out before any work whether a new model may go to a folder.

    Arguments:
        folder: The folder.
        force: Whether a model in it may be replaced.
        resumes: Whether runs of this kind can be continued, so that a user may want that instead.

    Raises:
        CheckpointError: The folder is taken.
        OutputError: It cannot be written to.
    """
    if _is_taken(folder) and not force:
        other = "'--resume' to continue its run, " if resumes else ""
        raise CheckpointError(f"'{folder}' exists. Pass {other}'--force' to replace it, or another '--name'.")
    if _is_taken(folder) and not is_checkpoint(folder):
        raise CheckpointError(f"'{folder}' is not a model but holds other files. Pass another '--name' or '--out'.")
    check_writable(folder)


def _is_taken(folder: Path) -> bool:
    """Whether a folder holds anything but what a run leaves that was killed before it has saved, or while it did."""
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
    """Take up the run in a folder.

    Arguments:
        folder: The run's checkpoint.
        given: Settings of the model, the run or its data that it should have.
        file: Where the file it was trained on is now; None for where it was.
        device: ``auto``, ``cpu`` or ``cuda``.
        group: The processes that resume it; only rank 0 needs the folder and the file.

    Raises:
        CheckpointError: There is no such run, it is another one, or its graphs have changed.
        DistributedError: A worker died.
    """
    with _at_hand(folder, group) as place:
        data, print_of_data = _read_data(place)
        model = load_checkpoint(place)
        known = {**data.to_json(), **model.config.to_json(), **model.training.to_json()}
        for key, value in given.items():
            value = list(value) if isinstance(value, tuple) else value
            found = list(known[key]) if isinstance(known[key], tuple) else known[key]
            if value != found:
                raise CheckpointError(
                    f"The run in '{folder}' has {key}={_shown(found)}, not {_shown(value)}. Leave that option out to "
                    f"resume, or start another run under a new '--name'."
                )

        train, validation, provenance = replace(data, file=file or data.file).share(group)
        if fingerprint([*train, *validation]) != print_of_data:
            raise CheckpointError(
                f"The graphs are not those that the run in '{folder}' was trained on. Bring them back to resume, or "
                f"start another run under a new '--name'."
            )

        return Trainer(
            model.name,
            model.config,
            model.training,
            train,
            validation,
            folder=place,
            provenance=provenance,
            device=resolve_device(device),
            resume=True,
            group=group,
        )


@contextmanager
def _at_hand(folder: Path, group: ProcessGroup) -> Iterator[Path]:
    """A run's folder, and on other ranks, which may be on other hosts, a copy of the files that resuming reads."""
    names = ("config.json", "model.safetensors", RUN, "history.jsonl")
    if group.is_rank_zero:
        # A run that was killed as it saved has its weights under a hidden name, and may have no further save.
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
    try:
        print_of_data = str(record.pop("fingerprint"))
        low, high = record["nodes"]
        data = typed(TrainingData, {**record, "nodes": (int(low), int(high))})
        if data.file is None and data.family is None:
            raise ValueError("neither a file nor a family")
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise CheckpointError(
            f"The run in '{folder}' does not say what it was trained on. Train anew with '--force'."
        ) from error

    return data, print_of_data


# More graphs than that are not drawn again, just because a checkpoint says that there were so many.
MOST_DRAWN = 10_000_000


@dataclass(frozen=True)
class TrainingGraphs:
    """What a model was trained on, as far as it is still at hand.

    Attributes:
        train: The training graphs; none if they are not.
        validation: The validation graphs.
        fingerprint: The fingerprint of both; None if it is not known.
    """

    train: list[SimpleGraph] = field(default_factory=list)
    validation: list[SimpleGraph] = field(default_factory=list)
    fingerprint: str | None = None


def find_training_graphs(folder: Path) -> TrainingGraphs:
    """The graphs that a checkpoint was trained on: drawn again by their seed, or read again if they are the same."""
    if (folder / RUN).exists():
        data, print_of_data = _read_data(folder)
        if data.file is None and (data.graphs or 0) > MOST_DRAWN:
            return TrainingGraphs(fingerprint=print_of_data)
        try:
            train, validation, _ = data.load()
        except GraphiteError:
            return TrainingGraphs(fingerprint=print_of_data)
        same = fingerprint([*train, *validation]) == print_of_data
        return TrainingGraphs(train, validation, print_of_data) if same else TrainingGraphs(fingerprint=print_of_data)
    model = load_checkpoint(folder)
    own, counts = model.provenance, [model.results.get(f"{name}_graphs") for name in ("training", "validation")]
    if own.source != "generate" or own.family is None or own.seed is None:
        return TrainingGraphs()
    splits = {
        name: count
        for name, count in zip(("train", "validation"), counts, strict=True)
        if isinstance(count, int) and 0 <= count <= MOST_DRAWN
    }
    if len(splits) < len(counts):
        return TrainingGraphs()
    nodes = min(model.sizes.graphs), model.sizes.largest
    drawn = generate(family(own.family, **own.parameters), sum(splits.values()), nodes, own.seed, splits=splits)
    train, validation = split_graphs(drawn.graphs, model.training.seed)

    return TrainingGraphs(train, validation, fingerprint(drawn.graphs))


def _shown(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def is_finished(folder: Path) -> bool:
    """Whether the run in a folder has come to its end.

    Raises:
        CheckpointError: There is no run.
    """
    return read_run(folder)["progress"].get("finished") is True


def free_folder(out: Path, name: str) -> Path:
    """The first of ``name``, ``name-2``, ``name-3``, … that is free under ``out``."""
    folder, number = out / name, 1
    while _is_taken(folder) or is_locked(folder):
        number += 1
        folder = out / f"{name}-{number}"

    return folder


def lost_run(out: Path, name: str) -> Path | None:
    """The run among ``name``, ``name-2``, … that torchrun has started us again to continue; None if there is none."""
    if not restarts():
        return None
    ours = []
    for folder in _runs(out, name):
        # Another's run may be damaged.
        with suppress(CheckpointError):
            if read_run(folder).get("launch") == launch():
                ours.append(folder)

    return last_started(ours) if ours else None


def find_run(out: Path, name: str) -> Path:
    """The run that was last started or resumed among ``name``, ``name-2``, ``name-3``, … under ``out``.

    Raises:
        CheckpointError: There is none.
    """
    runs = _runs(out, name)
    if not runs:
        raise CheckpointError(f"No run called '{name}' under '{out}' to resume. Start one without '--resume'.")

    return last_started(runs)


def _runs(out: Path, name: str) -> list[Path]:
    pattern = re.compile(re.escape(name) + r"(-\d+)?")
    found = {path.parent for file in ("state.json", RUN) for path in out.glob(f"*/{file}")}

    return [folder for folder in found if pattern.fullmatch(folder.name)]
