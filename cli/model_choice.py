"""Which model a command uses, and why."""

from pathlib import Path

from graphite_gen.api import LOCAL
from graphite_gen.training import checkpoint
from graphite_gen.training.checkpoint import TrainedModel, bundled_names, find_checkpoint, is_untrained, load_checkpoint
from graphite_gen.training.runs import is_finished
from graphite_gen.training.trainer import resolve_device

from .console import note


def choose_model(name: str | None, device: str, prefer: str | None = None) -> TrainedModel:
    """Load a model by path or name, by default preferably the bundled one of a family, and say which one and why."""
    return load_model(*choose_folder(name, prefer), device)


def choose_folder(name: str | None, prefer: str | None = None) -> tuple[Path, str]:
    """The folder of a model, and why it was chosen."""
    folder = find_checkpoint(name, LOCAL, prefer)
    is_bundled = folder.resolve().parent == checkpoint.bundled_folder().resolve()
    if name is not None:
        other = f"; the bundled one is 'bundled:{name}'" if name in bundled_names() and not is_bundled else ""
        return folder, f"passed as '{name}'{other}"
    if is_bundled:
        family = " of the graphs' family" if folder.name == prefer else ""
        return folder, f"the bundled model{family}, as none was trained under '{LOCAL}'"

    return folder, f"the last one trained under '{LOCAL}'"


def load_model(folder: Path, reason: str, device: str) -> TrainedModel:
    """Load the model of many graphs in a folder, and say which one and why."""
    model = load_checkpoint(folder, resolve_device(device))
    low, high = min(model.sizes.graphs), model.sizes.largest
    note(f"Model '{model.name}', of graphs on {low} to {high} nodes, in '{folder}': {reason}.")
    if is_untrained(folder):
        note(f"'{model.name}' is untrained: its run was stopped before the first validation.")
    elif (folder / "state.json").exists() and not is_finished(folder):
        note(f"The training of '{model.name}' is not finished: these are its best weights so far.")

    return model
