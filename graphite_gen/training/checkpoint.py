"""Models as folders: ``config.json`` and ``model.safetensors``, and what a run needs to go on.

Every file is written beside its place and renamed, so a reader finds the old one or the new one, never half of it. The
two belong together: ``config.json`` has the SHA-256 of its weights. These are there under a hidden name before it is
written and take the place of others after it, so that a save that is cut off leaves the model before it or the new one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save
from torch import Tensor, nn

from ..config import ModelConfig, TrainConfig
from ..data.sizes import SizeDistribution
from ..errors import CheckpointError, ConfigError, OutputError
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
    "last_started",
    "load_checkpoint",
    "load_weights",
    "next_turn",
    "read_config",
    "read_model",
    "read_tensors",
    "save_checkpoint",
    "settle",
    "write_atomically",
    "write_model",
    "write_tensors",
]

FORMAT = "graphite-gen checkpoint"
VERSION = 1
WEIGHTS = "model.safetensors"
DIGEST = "weights_sha256"
# How often to look again where a training saves in the middle of a look.
LOOKS = 20
# What a checkpoint says it is of, where that is not many graphs.
SINGLE_GRAPH = "single graph"
# What tells that a file is as it was written, inside it, so that the two can never disagree.
_INSIDE, _CHECKSUM = "sha256", "checksum"

# What libraries say of a file of tensors that is none.
_UNREADABLE = (OSError, SafetensorError, ValueError, RuntimeError, TypeError, OverflowError)


@dataclass(frozen=True)
class TrainedModel:
    """A network with everything needed to use it.

    Attributes:
        name: What to call it.
        network: The network, in evaluation mode.
        sizes: The law of graph sizes, and the baseline.
        training: How it was trained.
        provenance: What it was trained on.
        results: Figures from training, such as the best validation NLL.
    """

    name: str
    network: GraphNetwork
    sizes: SizeDistribution
    training: TrainConfig
    provenance: Provenance
    results: Mapping[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> ModelConfig:
        """The architecture."""
        return self.network.config

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.network.parameters()).device


def check_writable(folder: Path) -> None:
    """Find out before hours of work whether a folder can be made and written to; nothing is left of the try.

    Raises:
        OutputError: It cannot.
    """

    class UndoError(Exception):
        """Leaves the staging the way of a failure, which takes away the folders it made."""

    try:
        with staging(folder):
            raise UndoError
    except UndoError:
        return
    except OSError as error:
        raise _unwritable(folder, error) from error


def _unwritable(path: Path, error: OSError) -> OutputError:
    in_the_way = isinstance(error, FileExistsError | NotADirectoryError)
    reason = "there is a file in the way" if in_the_way else error.strerror or str(error)
    remedy = "Move it away, or choose" if in_the_way else "Make room there, or choose" if is_full(error) else "Choose"

    return OutputError(f"Cannot write '{path}': {reason}. {remedy} another folder with '--out'.")


def write_atomically(path: Path, content: bytes) -> None:
    """Write a whole file or nothing.

    Raises:
        OutputError: The folder cannot be written to.
    """
    try:
        _write(path, content)
    except OSError as error:
        raise _unwritable(path, error) from error


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as stream:
        stream.write(content)


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors as one safetensors file, with a digest of all that is in it."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    facts = dict(metadata or {})
    write_atomically(path, save(plain, {**facts, _INSIDE: _digest(plain, facts)}))


def _digest(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """A SHA-256 of names, types, shapes and numbers: a flipped bit of a weight would be another weight."""
    digest = hashlib.sha256(json.dumps(sorted(metadata.items())).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)

    return digest.hexdigest()


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a safetensors file, and its metadata.

    Raises:
        CheckpointError: The file is missing or damaged.
    """
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            metadata = file.metadata() or {}
        # Files of others, and our own of before, have none.
        digest = metadata.pop(_INSIDE, None)
        if digest is not None and digest != _digest(tensors, metadata):
            raise ValueError("its numbers are not those that were written")
    except _UNREADABLE as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise CheckpointError(
            f"'{path}' is damaged or missing: {reason}. Train the model again or restore the file."
        ) from error

    return tensors, metadata


def save_checkpoint(model: TrainedModel, folder: Path, weights: Mapping[str, Tensor] | None = None) -> None:
    """Write a model: its weights and the config that makes the folder a checkpoint."""
    config = {
        "name": model.name,
        "model": model.config.to_json(),
        "sizes": model.sizes.to_json(),
        "training": model.training.to_json(model.config.unused),
        "provenance": model.provenance.to_json(),
        "results": dict(model.results),
    }
    write_model(folder, config, model.network.state_dict() if weights is None else weights)


def write_model(folder: Path, content: Mapping[str, Any], weights: Mapping[str, Tensor]) -> None:
    """Write what a checkpoint says of itself and its weights; the model that was there is whole until then.

    Raises:
        OutputError: The folder cannot be written to.
    """
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    data = save(plain)
    digest = hashlib.sha256(data).hexdigest()
    config = {"format": FORMAT, "version": VERSION, **content, "torch": str(torch.__version__), DIGEST: digest}
    config[_CHECKSUM] = _checksum(config)
    try:
        settle(folder)
        is_there = _file_digest(folder / WEIGHTS) == digest
        if not is_there:
            _write(_hidden(folder, digest), data)
        _write(folder / "config.json", (json.dumps(config, indent=2) + "\n").encode())
        if not is_there:
            _hidden(folder, digest).replace(folder / WEIGHTS)
    except OSError as error:
        raise _unwritable(folder, error) from error


def settle(folder: Path) -> None:
    """Bring a save that was cut off to its end, and take away what is left of one that did not come so far.

    Only for who alone writes there.
    """
    sweep(folder)
    for path in folder.glob(f"{HIDDEN}*.safetensors"):
        try:
            wanted = _hidden(folder, str(_read_config(folder / "config.json").get(DIGEST)))
        except CheckpointError:
            wanted = None
        # Another process may be at the same, and ahead.
        with suppress(FileNotFoundError):
            if path == wanted:
                path.replace(folder / WEIGHTS)
            else:
                path.unlink()


def _hidden(folder: Path, digest: str) -> Path:
    """Where weights are until their config is written."""
    return folder / f"{HIDDEN}{digest[:16]}.safetensors"


def _file_digest(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def _checksum(config: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def read_config(folder: Path) -> dict[str, Any]:
    """What a checkpoint says of itself, of many graphs or of one.

    Raises:
        CheckpointError: A part is missing or damaged, or was made by something else.
    """
    missing = [f"'{name}'" for name in ("config.json", WEIGHTS) if not (folder / name).is_file()]
    # Between the config and the first weights' own name a save may have been cut off.
    if missing and not (missing == [f"'{WEIGHTS}'"] and any(folder.glob(f"{HIDDEN}*.safetensors"))):
        raise CheckpointError(
            f"'{folder}' is not a checkpoint: {' and '.join(missing)} not found. "
            f"Pass a folder that 'graphite-gen train' wrote, or a bundled name: {', '.join(bundled_names())}."
        )

    return _read_config(folder / "config.json")


def read_model(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What a checkpoint says of itself, and the weights that belong to it.

    Raises:
        CheckpointError: A part is missing or damaged, or was made by something else.
    """
    path, before = folder / WEIGHTS, None
    for _ in range(LOOKS):
        config = read_config(folder)
        digest = config.get(DIGEST)
        if digest is None:
            return config, read_tensors(path)[0]
        for place in (_hidden(folder, str(digest)), path):
            weights = _read_weights(place, str(digest))
            if weights is not None:
                return config, weights
        # A training may have saved between the two: then the config is another by now.
        if config == before:
            break
        before = config
    # What else is wrong with the file says more.
    read_tensors(path)
    raise CheckpointError(
        f"'{path}' is not the file that its 'config.json' was saved with: its SHA-256 is another. Restore it or train "
        f"the model again; to use it as it is, take '{DIGEST}' and '{_CHECKSUM}' out of 'config.json'."
    )


def _read_weights(path: Path, digest: str) -> dict[str, Tensor] | None:
    """The tensors of a file, if it is the one of that digest."""
    try:
        data = path.read_bytes()
        return load(data) if hashlib.sha256(data).hexdigest() == digest else None
    except _UNREADABLE:
        return None


def is_network_model(config: Mapping[str, Any]) -> bool:
    """Whether a checkpoint is of one large graph."""
    return config.get("scope") == SINGLE_GRAPH


def load_checkpoint(folder: Path, device: torch.device | str = "cpu") -> TrainedModel:
    """Read a model of many graphs.

    Raises:
        CheckpointError: A part is missing or damaged, or was made by something else, or from one large graph.
    """
    config, weights = read_model(folder)
    if is_network_model(config):
        raise CheckpointError(
            f"'{folder}' was trained on one network, which can only be sampled from and inspected.",
            reason="network-model",
        )
    try:
        settings = ModelConfig.from_json(config["model"])
        sizes = SizeDistribution.from_json(config["sizes"])
        training = TrainConfig.from_json(config["training"])
        provenance = typed(Provenance, config["provenance"])
        name, results = str(config["name"]), _figures(config["results"])
    except (ConfigError, CheckpointError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"'{folder / 'config.json'}' is damaged: {_reason(error)}") from error
    path = folder / WEIGHTS
    check_fits(lambda: build_network(settings), weights, path)
    network = build_network(settings)
    load_weights(network, weights, path)
    network.to(device).eval()

    return TrainedModel(name, network, sizes, training, provenance, results)


def check_fits(build: Callable[[], nn.Module], weights: Mapping[str, Tensor], source: Path) -> None:
    """Refuse weights of another network than a config describes, before any memory is taken for that.

    Arguments:
        build: What makes the network.
        weights: The weights by name.
        source: Their file, for the message.

    Raises:
        CheckpointError: They are another network's.
    """
    try:
        with torch.device("meta"):
            wanted = {name: value.shape for name, value in build().state_dict().items()}
    except (RuntimeError, OverflowError) as error:
        raise _misfit(source) from error
    if wanted != {name: value.shape for name, value in weights.items()}:
        raise _misfit(source)


def _misfit(source: Path) -> CheckpointError:
    return CheckpointError(f"'{source}' does not fit its 'config.json'. Train the model again.")


def _figures(results: Any) -> dict[str, Any]:
    """The figures of a training, each a number or unknown."""
    if not isinstance(results, Mapping):
        raise TypeError("The results are no JSON object.")
    wrong = next((name for name, value in results.items() if type(value) not in (int, float, type(None))), None)
    if wrong is not None:
        raise ValueError(f"The result '{wrong[:80]}' is no number.")

    return dict(results)


def is_checkpoint(folder: Path) -> bool:
    """Whether a folder holds a model of ours, whole or damaged."""
    try:
        _read_config(folder / "config.json")
    except CheckpointError:
        return False

    return True


def load_weights(network: nn.Module, weights: Mapping[str, Tensor], source: Path) -> None:
    """Put weights into a network.

    Raises:
        CheckpointError: They are another network's, or not finite.
    """
    try:
        network.load_state_dict(dict(weights))
    except RuntimeError as error:
        raise _misfit(source) from error
    if not all(tensor.is_floating_point() and tensor.isfinite().all() for tensor in weights.values()):
        raise CheckpointError(f"'{source}' has weights that are not finite. Train the model again.")


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"'{path}' cannot be read: {str(error)[:200]}. Restore it or train again.") from error
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise CheckpointError(f"'{path}' was not written by 'graphite-gen train'. Pass a folder that was.")
    if config.get("version") != VERSION:
        version = str(config.get("version"))[:80]
        raise CheckpointError(f"'{path}' has version {version}; this program reads {VERSION}. Update it.")
    if config.pop(_CHECKSUM, None) not in (None, _checksum(config)):
        raise CheckpointError(
            f"'{path}' is not as it was written. Restore it or train again; if you changed it and mean it, remove its "
            f"line '{_CHECKSUM}'."
        )

    return config


def _reason(error: Exception) -> str:
    return f"{error} is missing." if isinstance(error, KeyError) else str(error)[:400]


def bundled_folder() -> Path:
    """Where the models that come with the package are."""
    # The folder of the data package, found without importing it.
    from importlib.util import find_spec

    spec = find_spec("graphite_gen.checkpoints")
    assert spec is not None
    assert spec.origin is not None

    return Path(spec.origin).parent


def bundled_names() -> list[str]:
    """The names of the bundled models."""
    return sorted(folder.parent.name for folder in bundled_folder().glob("*/config.json"))


def find_checkpoint(name: str | None, local: Path, prefer: str | None = None) -> Path:
    """The folder of a model.

    Arguments:
        name: A path, the name of a folder under ``local``, or a bundled name, also as ``bundled:NAME``; None for the
            last model trained under ``local``, else the bundled one.
        local: The folder of the user's own models, ``./checkpoints``.
        prefer: The bundled model to fall back on, such as the family of the graphs at hand.

    Raises:
        CheckpointError: There is no such model.
    """
    if name is not None:
        bundled = bundled_folder() / name.removeprefix("bundled:")
        for folder in (Path(name), local / name, bundled):
            if (folder / "config.json").exists():
                return folder
        if Path(name).exists():
            return Path(name)
        raise CheckpointError(
            f"No model called '{name}'. Pass a folder that 'graphite-gen train' wrote, "
            f"or a bundled name: {', '.join(bundled_names()) or 'none'}."
        )
    # Only a run leaves 'state.json': in a checkout './checkpoints' also holds the bundled models.
    trained = [path.parent for path in local.glob("*/state.json") if (path.parent / "config.json").exists()]
    if trained:
        return last_started(trained)

    return bundled_folder() / (prefer if prefer in bundled_names() else "barabasi")


def last_started(runs: Sequence[Path]) -> Path:
    """The one of some runs that was started or resumed last.

    Runs count themselves, as a clock may be set back; its word is taken only where they do not.
    """

    def place(folder: Path) -> tuple[int, int, str]:
        state = folder / "state.json"
        return _turn(folder), state.stat().st_mtime_ns if state.exists() else 0, folder.name

    return max(runs, key=place)


def next_turn(folder: Path) -> int:
    """The number of a run that starts now: one more than any other beside it has."""
    return 1 + max(map(_turn, (path.parent for path in folder.parent.glob("*/state.json"))), default=0)


def _turn(folder: Path) -> int:
    try:
        turn = json.loads((folder / "state.json").read_text(encoding="utf-8"))["turn"]
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return 0

    return turn if isinstance(turn, int) else 0
