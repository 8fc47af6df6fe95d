import itertools
import json
import os
import resource
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from killing import killed_at
from safetensors.torch import load_file, save, save_file
from tiny import autoregressive_model, small_model

from graphite_gen.errors import CheckpointError, OutputError
from graphite_gen.training import checkpoint
from graphite_gen.training.checkpoint import find_checkpoint, load_checkpoint, read_tensors, save_checkpoint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_checkpoint(small_model(), tmp_path / "tiny")

    return tmp_path / "tiny"


def refused(folder: Path) -> str:
    """The message, one line, of the error that loading a folder raises."""
    with pytest.raises(CheckpointError) as error:
        load_checkpoint(folder)
    message = str(error.value)
    assert "\n" not in message
    assert str(folder) in message

    return message


def change(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Edit a config on purpose, which includes removing its checksum."""
    config = json.loads((folder / "config.json").read_text())
    del config["checksum"]
    edit(config)
    (folder / "config.json").write_text(json.dumps(config))


def test_a_model_is_loaded_as_it_was_saved_and_the_global_generator_is_not_used(folder: Path) -> None:
    model, before = small_model(), torch.random.get_rng_state()

    loaded = load_checkpoint(folder)

    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(
        getattr(loaded, part) == getattr(model, part) for part in ("name", "config", "sizes", "training", "provenance")
    )
    weights = model.network.state_dict()
    assert all(torch.equal(tensor, weights[name]) for name, tensor in loaded.network.state_dict().items())
    assert not loaded.network.training
    assert loaded.device.type == "cpu"


def test_no_file_of_a_checkpoint_is_a_pickle_and_all_are_readable_by_others(folder: Path) -> None:
    umask = os.umask(0)
    os.umask(umask)
    files = sorted(folder.iterdir())

    assert [file.name for file in files] == ["config.json", "model.safetensors"]
    assert all(not file.read_bytes().startswith(b"\x80") for file in files)
    assert all(file.stat().st_mode & 0o777 == 0o666 & ~umask for file in files)


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors"])
def test_a_missing_file_and_a_damaged_or_foreign_config_are_refused(folder: Path, missing: str) -> None:
    for content in (b"", b"{", b"\xff\xfe", b"[" * 100_000, b"[]", b"{}", b'{"format": "other"}'):
        (folder / "config.json").write_bytes(content)
        refused(folder)
    (folder / missing).unlink()

    with pytest.raises(CheckpointError, match=missing) as caught:
        load_checkpoint(folder)
    assert caught.value.reason == "model-unknown"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda config: config.update(version=99), "has version 99"),
        (lambda config: config.pop("model"), "'model' is missing"),
        (lambda config: config.pop("sizes"), "'sizes' is missing"),
        (lambda config: config["model"].update(colour="red"), "Unknown setting 'colour'"),
        (lambda config: config["training"].update(colour="red"), "Unknown setting 'colour'"),
        (lambda config: config["training"].update(learning_rate=10**400), "'learning_rate'"),
        (lambda config: config["provenance"].update(colour="red"), "colour"),
        (lambda config: config["model"].update(latent="two"), "'latent' should be int"),
        (lambda config: config.update(sizes={"3": [0, 0]}), "out of range"),
        (lambda config: config.update(results=7), "damaged"),
        (lambda config: config.update(model=None), "should be a JSON object"),
        (lambda config: config["results"].update(validation="low"), "'validation' is not a number"),
        (lambda config: config["provenance"].update(seed="x"), "'seed' should be"),
        (lambda config: config["model"].update(latent="x" * 10**6), "'latent' should be int"),
        (lambda config: config["model"].update(latent=3), "does not fit"),
    ],
)
def test_an_invalid_config_is_refused(folder: Path, edit: Callable[[dict[str, Any]], object], message: str) -> None:
    change(folder, edit)

    assert message in refused(folder)
    assert len(refused(folder)) < 1000


def test_a_killed_save_leaves_the_old_model_or_the_new_one(tmp_path: Path) -> None:
    old, new = small_model(), small_model(width=7)
    seen = set()
    for operation in itertools.count():
        shutil.rmtree(tmp_path / "model", ignore_errors=True)
        save_checkpoint(old, tmp_path / "model")
        if not killed_at(operation, lambda: save_checkpoint(new, tmp_path / "model")):
            break
        found = load_checkpoint(tmp_path / "model")
        wanted = next(model for model in (old, new) if model.config == found.config)
        assert all(torch.equal(x, wanted.network.state_dict()[k]) for k, x in found.network.state_dict().items())
        seen.add((found.config.width, (tmp_path / "model" / "model.safetensors").read_bytes()))
        save_checkpoint(old, tmp_path / "model")
        assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["config.json", "model.safetensors"]
    weights = save(dict(old.network.state_dict()))
    assert {(old.config.width, weights), (7, weights)} <= seen, "one kill fell between config and weights"


def test_a_model_that_is_saved_while_it_is_read_is_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, new = checkpoint.read_config, small_model(width=7)
    saves = [new]

    def late(place: Path) -> dict[str, Any]:
        config = read(place)
        if saves:
            save_checkpoint(saves.pop(), place)
        return config

    monkeypatch.setattr(checkpoint, "read_config", late)

    assert load_checkpoint(folder).config.width == 7


def test_tensors_are_read_with_their_metadata(tmp_path: Path) -> None:
    tensors = {"a": torch.randn(3, 2).T, "b": torch.tensor(1.0)}

    checkpoint.write_tensors(tmp_path / "new" / "x.safetensors", tensors, {"progress": "1"})
    found, metadata = read_tensors(tmp_path / "new" / "x.safetensors")

    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
    assert metadata == {"progress": "1"}
    with pytest.raises(CheckpointError, match="missing"):
        read_tensors(tmp_path / "nothing")


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    checkpoint.write_atomically(path, b"old")

    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(OutputError, match="No space left"):
        checkpoint.write_atomically(path, b"new")

    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_file_cannot_replace_a_folder_and_nothing_can_be_inside_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    (tmp_path / "file").touch()

    for check in (
        lambda: checkpoint.write_atomically(tmp_path / "folder", b"new"),
        lambda: checkpoint.write_atomically(tmp_path / "file" / "x", b"new"),
        lambda: checkpoint.check_writable(tmp_path / "file" / "model"),
    ):
        with pytest.raises(OutputError) as caught:
            check()
        assert caught.value.reason == "folder-not-writable"
    checkpoint.check_writable(tmp_path / "new" / "model")

    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "folder"]


@pytest.fixture
def bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two bundled models."""
    for name in ("barabasi", "ego"):
        (tmp_path / "bundled" / name).mkdir(parents=True)
        (tmp_path / "bundled" / name / "config.json").write_text("{}")
    monkeypatch.setattr(checkpoint, "bundled_folder", lambda: tmp_path / "bundled")

    return tmp_path / "bundled"


def test_paths_precede_local_and_bundled_models(bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    local = tmp_path / "local"

    assert find_checkpoint("ego", local) == bundled / "ego"
    (local / "ego").mkdir(parents=True)
    (local / "ego" / "config.json").write_text("{}")
    assert find_checkpoint("ego", local) == local / "ego"
    assert find_checkpoint("bundled:ego", local) == bundled / "ego"
    (tmp_path / "ego").mkdir()
    (tmp_path / "ego" / "config.json").write_text("{}")
    assert find_checkpoint("ego", local) == Path("ego")
    assert find_checkpoint(str(bundled / "ego"), local) == bundled / "ego"


def test_an_unknown_name_is_refused_with_the_bundled_ones_but_a_folder_is_found(bundled: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    assert "is not a checkpoint" in refused(find_checkpoint(str(tmp_path / "empty"), tmp_path))
    with pytest.raises(CheckpointError, match="egg") as caught:
        find_checkpoint("egg", tmp_path)
    assert caught.value.facts["bundled"] == "barabasi, ego"


def test_without_a_name_the_last_run_is_used_then_the_preferred_bundled_model(bundled: Path, tmp_path: Path) -> None:
    local = tmp_path / "local"

    assert find_checkpoint(None, local) == bundled / "barabasi"
    assert find_checkpoint(None, local, prefer="ego") == bundled / "ego"
    assert find_checkpoint(None, local, prefer="regular") == bundled / "barabasi"
    for time, name in enumerate(("older", "newer", "untrained", "broken")):
        (local / name).mkdir(parents=True)
        if name != "broken":
            (local / name / "config.json").write_text("{}")
        if name != "untrained":
            (local / name / "state.json").write_text("{}")
            os.utime(local / name / "state.json", (1000 + time, 1000 + time))
    assert find_checkpoint(None, local, prefer="ego") == local / "newer"
    # The number of a run takes precedence over the clock, which may have been set back.
    (local / "older" / "state.json").write_text(json.dumps({"turn": checkpoint.next_turn(local / "older")}))
    os.utime(local / "older" / "state.json", (0, 0))
    assert find_checkpoint(None, local, prefer="ego") == local / "older"


@pytest.mark.parametrize("name", checkpoint.bundled_names())
def test_every_bundled_model_loads(name: str) -> None:
    assert load_checkpoint(checkpoint.bundled_folder() / name).config.is_variational


@pytest.mark.parametrize("old", [{"stages": 0}, {"decoding_steps": 16}, {"pair_layers": 2, "row_layers": 2}])
def test_models_with_the_decoder_of_earlier_versions_are_refused(folder: Path, old: dict[str, int]) -> None:
    change(folder, lambda config: config["model"].update(old))

    with pytest.raises(CheckpointError) as error:
        load_checkpoint(folder)
    assert error.value.reason == "old-decoder"


def test_models_whose_latents_had_other_ways_to_edges_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    save_checkpoint(autoregressive_model(), folder)
    weights = load_file(folder / "model.safetensors")
    del weights["decoder.factor.weight"]
    save_file(weights, folder / "model.safetensors")
    change(folder, lambda config: config.pop("weights_sha256"))

    with pytest.raises(CheckpointError) as error:
        load_checkpoint(folder)
    assert error.value.reason == "old-decoder"


def test_one_shot_models_of_earlier_versions_load(folder: Path) -> None:
    change(folder, lambda config: (config["model"].update(stages=1), config["model"].pop("decoder")))

    assert load_checkpoint(folder).config.decoder == "one-shot"


def test_truncated_weights_and_those_with_a_flipped_bit_are_refused(folder: Path) -> None:
    path = folder / "model.safetensors"
    data = path.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]

    for keep in (0, 4, 100, -10):
        path.write_bytes(data[:keep])
        refused(folder)
    for place in range(start, len(data), 97):
        path.write_bytes(data[:place] + bytes((data[place] ^ 1,)) + data[place + 1 :])
        assert "SHA-256" in refused(folder)


def test_weights_without_a_digest_are_read_and_must_be_finite_floating_point_numbers(folder: Path) -> None:
    path = folder / "model.safetensors"
    tensors, metadata = read_tensors(path)
    assert metadata == {}
    change(folder, lambda config: config.pop("weights_sha256"))
    save_file(tensors, path, {"by": "another"})
    load_checkpoint(folder)
    for wrong in (lambda tensor: tensor.view(torch.int64), lambda tensor: tensor * torch.nan, torch.Tensor.log):
        save_file({name: wrong(tensor.detach() * 0) for name, tensor in tensors.items()}, path)
        assert "not finite" in refused(folder)


def test_an_edited_config_is_refused_unless_its_checksum_is_removed(folder: Path) -> None:
    path = folder / "config.json"
    path.write_text(path.read_text().replace('"skip_weight": 0.5', '"skip_weight": 0.25'))

    assert "checksum" in refused(folder)

    change(folder, lambda config: None)
    assert load_checkpoint(folder).config.skip_weight == 0.25


def test_a_config_of_a_huge_model_takes_no_memory(folder: Path) -> None:
    huge = {"encoder_features": ["identity"], "max_nodes": 10**6, "node_features": 10**6, "width": 4096}
    change(folder, lambda config: config["model"].update(huge))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    assert "does not fit" in refused(folder)
    # In kilobytes; one layer of the network takes 16 GB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
