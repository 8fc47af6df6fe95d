"""Models as folders: ``config.json`` with the SHA-256 of the weights in ``model.safetensors``.

The rename of ``config.json`` commits a save; until then the new weights have a hidden name with their digest, by which
readers find them. So a process that is killed while saving leaves either the old model or the new one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save
from torch import Tensor, nn

from ..config import ModelConfig, TrainConfig
from ..data.compatibility import check_graph
from ..data.schema import AttributeSchema
from ..data.sizes import SizeDistribution
from ..errors import CheckpointError, ConfigError, OutputError, did_you_mean
from ..graph import SimpleGraph
from ..io.atomic import is_full, replacing, staging, sweep
from ..io.locks import HIDDEN
from ..records import Provenance, typed
from .model import GraphNetwork, build_network

__all__ = [
    "TrainedModel",
    "bundled_folder",
    "bundled_names",
    "check_fits",
    "check_writable",
    "find_checkpoint",
    "is_checkpoint",
    "is_network_model",
    "is_untrained",
    "last_started",
    "load_checkpoint",
    "load_weights",
    "next_turn",
    "read_config",
    "read_model",
    "read_tensors",
    "recover_save",
    "save_checkpoint",
    "write_atomically",
    "write_model",
    "write_tensors",
]

FORMAT = "graphite-gen checkpoint"
VERSION = 1
WEIGHTS = "model.safetensors"
DIGEST = "weights_sha256"
SINGLE_GRAPH = "single graph"
"""The ``scope`` in the config of a network model."""
# A run may save while its model is read: read again this many times.
_ATTEMPTS = 20
# Checksums of a file of tensors and of a config, stored inside them.
_INSIDE, _CHECKSUM = "sha256", "checksum"
_MISFIT = "does not fit its 'config.json'"
_UNREADABLE = (OSError, SafetensorError, ValueError, RuntimeError, TypeError, OverflowError)


@dataclass(frozen=True)
class TrainedModel:
    """A network with everything needed to use it.

    Attributes:
        network: The network, in evaluation mode.
        sizes: The distribution of graph sizes, and the ER baseline.
        provenance: The training data.
        results: Results of training, such as the best validation NLL.
        schema: The attributes that graphs carry, and the conditions that they are given.
    """

    name: str
    network: GraphNetwork
    sizes: SizeDistribution
    training: TrainConfig
    provenance: Provenance
    results: Mapping[str, Any] = field(default_factory=dict)
    schema: AttributeSchema = field(default_factory=AttributeSchema)

    def read(self, graph: SimpleGraph, index: int = 0) -> SimpleGraph:
        """A graph as the network reads it; ``index`` names it in messages.

        Raises:
            DatasetError: It is not of the kind that the model was trained on.
        """
        given, _ = self.schema.features.without(graph)
        check_graph(self.config, self.name, graph if given is graph.features else replace(graph, features=given), index)

        return self.schema.encode(graph, index)

    @property
    def config(self) -> ModelConfig:
        """The configuration of the network."""
        return self.network.config

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.network.parameters()).device


def check_writable(folder: Path) -> None:
    """Check that a folder can be created and written to, leaving nothing behind."""
    with _output_errors(folder), staging(folder):
        pass


@contextmanager
def _output_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        in_the_way = isinstance(error, FileExistsError | NotADirectoryError)
        problem = "a file is in the way" if in_the_way else error.strerror or str(error)
        problem += "; free some space" if is_full(error) else ""
        raise OutputError(f"Cannot write '{path}': {problem}.", reason="folder-not-writable", path=path) from error


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file completely or not at all."""
    with _output_errors(path), replacing(path) as stream:
        stream.write(content)


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors to a safetensors file, with a digest of its contents."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    facts = dict(metadata or {})
    write_atomically(path, save(plain, {**facts, _INSIDE: _digest(plain, facts)}))


def _digest(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """The SHA-256 of metadata, names, types, shapes and values."""
    digest = hashlib.sha256(json.dumps(sorted(metadata.items())).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)

    return digest.hexdigest()


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the metadata of a safetensors file."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            metadata = file.metadata() or {}
        # Files of other programs and of earlier versions have none.
        digest = metadata.pop(_INSIDE, None)
        if digest is not None and digest != _digest(tensors, metadata):
            raise ValueError("the tensors do not match their digest")
    except _UNREADABLE as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise _damaged(path, f"is damaged or missing: {reason}") from error

    return tensors, metadata


def save_checkpoint(model: TrainedModel, folder: Path, weights: Mapping[str, Tensor] | None = None) -> None:
    """Save a model, by default with the weights of its network."""
    config = {
        "name": model.name,
        "model": model.config.to_json(),
        "sizes": model.sizes.to_json(),
        "training": model.training.to_json(model.config.unused),
        "provenance": model.provenance.to_json(),
        "results": dict(model.results),
        **({} if model.schema.is_plain else {"attributes": model.schema.to_json()}),
    }
    write_model(folder, config, model.network.state_dict() if weights is None else weights)


def write_model(folder: Path, content: Mapping[str, Any], weights: Mapping[str, Tensor]) -> None:
    """Save a config and weights; until both are on disk, the previous model stays."""
    data = save({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()})
    digest = hashlib.sha256(data).hexdigest()
    config = {"format": FORMAT, "version": VERSION, **content, "torch": str(torch.__version__), DIGEST: digest}
    config[_CHECKSUM] = _checksum(config)
    with _output_errors(folder):
        recover_save(folder)
        is_new = _read_weights(folder / WEIGHTS, digest) is None
        if is_new:
            write_atomically(_hidden(folder, digest), data)
        write_atomically(folder / "config.json", (json.dumps(config, indent=2) + "\n").encode())
        if is_new:
            _hidden(folder, digest).replace(folder / WEIGHTS)


def recover_save(folder: Path) -> None:
    """Complete a save that was committed, and remove the files of one that was not; only for the writer of a folder."""
    sweep(folder)
    for path in folder.glob(f"{HIDDEN}*.safetensors"):
        try:
            committed = _hidden(folder, str(_read_config(folder / "config.json").get(DIGEST)))
        except CheckpointError:
            committed = None
        # Another process may do the same.
        with suppress(FileNotFoundError):
            path.replace(folder / WEIGHTS) if path == committed else path.unlink()


def _hidden(folder: Path, digest: str) -> Path:
    """The name of weights until their config is written."""
    return folder / f"{HIDDEN}{digest[:16]}.safetensors"


def _checksum(config: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def read_config(folder: Path) -> dict[str, Any]:
    """The config of a checkpoint, of a model of many graphs or of a network."""
    missing = [f"'{name}'" for name in ("config.json", WEIGHTS) if not (folder / name).is_file()]
    # The first save may have been committed but not completed.
    if missing and not (missing == [f"'{WEIGHTS}'"] and any(folder.glob(f"{HIDDEN}*.safetensors"))):
        raise _unknown(f"'{folder}' is not a checkpoint: {' and '.join(missing)} not found.", folder)

    return _read_config(folder / "config.json")


def _unknown(problem: str, name: Path | str) -> CheckpointError:
    names = ", ".join(bundled_names()) or "none"

    return CheckpointError(f"{problem} Bundled models: {names}.", reason="model-unknown", name=str(name), bundled=names)


def _damaged(path: Path, problem: str) -> CheckpointError:
    return CheckpointError(f"'{path}' {problem}. Restore the file, or train the model again.", path=path)


def read_model(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The config of a checkpoint and its weights."""
    path, before = folder / WEIGHTS, None
    for _ in range(_ATTEMPTS):
        config = read_config(folder)
        if (digest := config.get(DIGEST)) is None:
            return config, read_tensors(path)[0]
        for place in (_hidden(folder, str(digest)), path):
            if (weights := _read_weights(place, str(digest))) is not None:
                return config, weights
        # If a run has saved in between, the config has changed.
        if config == before:
            break
        before = config
    # Raises a more specific error if the file is not readable at all.
    read_tensors(path)
    raise _damaged(path, f"does not match the SHA-256 in its 'config.json' (keys '{DIGEST}' and '{_CHECKSUM}')")


def _read_weights(path: Path, digest: str) -> dict[str, Tensor] | None:
    """The tensors of a file with that digest; None for any other file."""
    try:
        data = path.read_bytes()
        return load(data) if hashlib.sha256(data).hexdigest() == digest else None
    except _UNREADABLE:
        return None


def is_network_model(config: Mapping[str, Any]) -> bool:
    """Whether a config is that of a network model."""
    return config.get("scope") == SINGLE_GRAPH


def is_untrained(folder: Path) -> bool:
    """Whether a folder has a run that was stopped before its first validation."""
    try:
        results = _read_config(folder / "config.json").get("results")
    except CheckpointError:
        return False

    return isinstance(results, Mapping) and results.get("best_epoch") == 0


def load_checkpoint(folder: Path, device: torch.device | str = "cpu") -> TrainedModel:
    """Load a model of many graphs."""
    config, weights = read_model(folder)
    if is_network_model(config):
        problem = "is a model of one network; expected a model of many graphs"
        raise CheckpointError(f"'{folder}' {problem}.", reason="network-model", path=folder)
    if _has_old_decoder(config.get("model"), weights):
        problem = "was trained by an earlier version, with a decoder that no longer exists, and has to be trained again"
        raise CheckpointError(f"'{folder}' {problem}.", reason="old-decoder", path=folder)
    try:
        settings = ModelConfig.from_json(config["model"])
        sizes = SizeDistribution.from_json(config["sizes"])
        training = TrainConfig.from_json(config["training"])
        provenance = typed(Provenance, config["provenance"])
        name, results = str(config["name"]), _results(config["results"])
        schema = AttributeSchema.from_json(config["attributes"]) if "attributes" in config else AttributeSchema()
        if any(getattr(settings, key) != value for key, value in schema.settings().items()):
            raise ValueError("the attributes do not fit the model")
    except (ConfigError, CheckpointError, KeyError, TypeError, ValueError) as error:
        problem = f"{error} is missing" if isinstance(error, KeyError) else str(error)[:400].rstrip(".")
        raise _damaged(folder / "config.json", f"is damaged: {problem}") from error
    path = folder / WEIGHTS
    check_fits(lambda: build_network(settings), weights, path)
    network = build_network(settings)
    load_weights(network, weights, path)
    network.to(device).eval()

    return TrainedModel(name, network, sizes, training, provenance, results, schema)


def _has_old_decoder(settings: Any, weights: Mapping[str, Tensor]) -> bool:
    """Whether a model has the autoregressive decoder of an earlier version."""
    return isinstance(settings, Mapping) and (
        "pair_layers" in settings
        or "row_layers" in settings
        or any(settings.get(name, 1) != 1 for name in ("decoding_steps", "stages"))
        # Its latents had other ways to edges than the low-rank graph.
        or (settings.get("decoder") == "autoregressive" and "decoder.factor.weight" not in weights)
    )


def check_fits(build: Callable[[], nn.Module], weights: Mapping[str, Tensor], source: Path) -> None:
    """Check the shapes of weights from a file against the network that ``build`` returns, without its memory."""
    try:
        with torch.device("meta"):
            expected = {name: value.shape for name, value in build().state_dict().items()}
    except (RuntimeError, OverflowError) as error:
        raise _damaged(source, _MISFIT) from error
    if expected != {name: value.shape for name, value in weights.items()}:
        raise _damaged(source, _MISFIT)


def _results(values: Any) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        raise TypeError("'results' is not a JSON object")
    wrong = next((name for name, value in values.items() if type(value) not in (int, float, type(None))), None)
    if wrong is not None:
        raise ValueError(f"the result '{wrong[:80]}' is not a number")

    return dict(values)


def is_checkpoint(folder: Path) -> bool:
    """Whether a folder has the config of a model, whatever the state of its weights."""
    try:
        _read_config(folder / "config.json")
    except CheckpointError:
        return False

    return True


def load_weights(network: nn.Module, weights: Mapping[str, Tensor], source: Path) -> None:
    """Load weights into a network."""
    try:
        network.load_state_dict(dict(weights))
    except RuntimeError as error:
        raise _damaged(source, _MISFIT) from error
    if not all(tensor.is_floating_point() and tensor.isfinite().all() for tensor in weights.values()):
        raise _damaged(source, "has weights that are not finite numbers")


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(path, f"cannot be read: {str(error)[:200]}") from error
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise CheckpointError(f"'{path}' is not the config of a graphite-gen model.", reason="not-a-model", path=path)
    if config.get("version") != VERSION:
        version = str(config.get("version"))[:80]
        problem = f"'{path}' has version {version}; this version of graphite-gen reads {VERSION}."
        raise CheckpointError(problem, path=path)
    if config.pop(_CHECKSUM, None) not in (None, _checksum(config)):
        raise _damaged(path, f"does not match its checksum (if it was edited on purpose, remove '{_CHECKSUM}')")

    return config


def bundled_folder() -> Path:
    """The folder of the models that come with the package."""
    from .. import checkpoints

    return Path(checkpoints.__file__).parent


def bundled_names() -> list[str]:
    """The names of the bundled models."""
    # In a checkout the user's own runs may be in the same folder.
    found = [path.parent for path in bundled_folder().glob("*/config.json")]

    return sorted(folder.name for folder in found if not (folder / "state.json").exists())


def find_checkpoint(name: str | None, local: Path, prefer: str | None = None) -> Path:
    """The folder of a model.

    Arguments:
        name: A path, the name of a folder under ``local``, or a bundled name, also as ``bundled:NAME``; None for the
            last model trained under ``local`` and validated at least once, otherwise a bundled one.
        local: The folder of the user's own models, ``./checkpoints``.
        prefer: The bundled model to fall back on, such as the family of the graphs.
    """
    if name is not None:
        bundled = bundled_folder() / name.removeprefix("bundled:")
        for folder in (Path(name), local / name, bundled):
            if (folder / "config.json").exists():
                return folder
        if Path(name).exists():
            return Path(name)
        known = [*bundled_names(), *(path.parent.name for path in local.glob("*/config.json"))]
        raise _unknown(f"There is no model '{name}'{did_you_mean(name, known)}.", name)
    # Only runs have 'state.json': in a checkout './checkpoints' also contains the bundled models.
    runs = [path.parent for path in local.glob("*/state.json") if (path.parent / "config.json").exists()]
    if trained := [folder for folder in runs if not is_untrained(folder)]:
        return last_started(trained)

    return bundled_folder() / (prefer if prefer in bundled_names() else "barabasi")


def last_started(runs: Sequence[Path]) -> Path:
    """The run that was started or resumed last: by its number, or by time where it has none."""

    def place(folder: Path) -> tuple[int, int, str]:
        state = folder / "state.json"
        return _turn(folder), state.stat().st_mtime_ns if state.exists() else 0, folder.name

    return max(runs, key=place)


def next_turn(folder: Path) -> int:
    """The number of a new run: one more than the largest beside it."""
    return 1 + max(map(_turn, (path.parent for path in folder.parent.glob("*/state.json"))), default=0)


def _turn(folder: Path) -> int:
    try:
        turn = json.loads((folder / "state.json").read_text(encoding="utf-8"))["turn"]
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return 0

    return turn if isinstance(turn, int) else 0
