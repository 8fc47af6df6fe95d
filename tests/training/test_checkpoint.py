from __future__ import annotations

import itertools
import json
import os
import resource
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from killing import killed_at
from safetensors.torch import save, save_file
from tiny import small_model

from graphite_gen.errors import CheckpointError, GraphiteError, OutputError
from graphite_gen.training import checkpoint
from graphite_gen.training.checkpoint import (
    bundled_folder,
    check_writable,
    find_checkpoint,
    load_checkpoint,
    read_tensors,
    save_checkpoint,
    write_atomically,
    write_tensors,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_checkpoint(small_model(), tmp_path / "tiny")

    return tmp_path / "tiny"


def refused(folder: Path) -> str:
    """The one line with which a folder is refused."""
    with pytest.raises(CheckpointError) as error:
        load_checkpoint(folder)
    message = str(error.value)
    assert "\n" not in message
    assert str(folder) in message

    return message


def change(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Edit a config as someone would who means it, and so takes its checksum away."""
    config = json.loads((folder / "config.json").read_text())
    del config["checksum"]
    edit(config)
    (folder / "config.json").write_text(json.dumps(config))


def test_a_model_comes_back_as_it_was(folder: Path) -> None:
    model = small_model()

    loaded = load_checkpoint(folder)

    assert (loaded.name, loaded.config, loaded.sizes, loaded.training, loaded.provenance) == (
        model.name,
        model.config,
        model.sizes,
        model.training,
        model.provenance,
    )
    weights = model.network.state_dict()
    assert all(torch.equal(tensor, weights[name]) for name, tensor in loaded.network.state_dict().items())
    assert not loaded.network.training
    assert loaded.device.type == "cpu"


def test_loading_leaves_the_users_generator_as_it_was(folder: Path) -> None:
    before = torch.random.get_rng_state()

    load_checkpoint(folder)

    assert torch.equal(torch.random.get_rng_state(), before)


def test_no_file_of_a_checkpoint_is_a_pickle_and_all_are_readable_by_others(folder: Path) -> None:
    umask = os.umask(0)
    os.umask(umask)
    files = sorted(folder.iterdir())

    assert [file.name for file in files] == ["config.json", "model.safetensors"]
    assert all(not file.read_bytes().startswith(b"\x80") for file in files)
    assert all(file.stat().st_mode & 0o777 == 0o666 & ~umask for file in files)


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors"])
def test_a_folder_without_one_of_the_two_files_is_no_checkpoint(folder: Path, missing: str) -> None:
    (folder / missing).unlink()

    assert f"is not a checkpoint: '{missing}' not found" in refused(folder)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"[]", b"{}", b'{"format": "other"}'])
def test_a_damaged_or_foreign_config_is_refused(folder: Path, content: bytes) -> None:
    (folder / "config.json").write_bytes(content)

    refused(folder)


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
    ],
)
def test_a_config_with_a_wrong_part_is_refused_by_that_part(
    folder: Path, edit: Callable[[dict[str, Any]], object], message: str
) -> None:
    change(folder, edit)

    assert message in refused(folder)


@pytest.mark.parametrize("keep", [0, 4, 100, -10])
def test_cut_off_weights_are_refused(folder: Path, keep: int) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])

    refused(folder)


def test_weights_of_another_network_are_refused(folder: Path) -> None:
    change(folder, lambda config: config["model"].update(latent=3))

    assert "does not fit its 'config.json'" in refused(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(folder: Path, value: float) -> None:
    weights, _ = read_tensors(folder / "model.safetensors")
    next(iter(weights.values())).view(-1)[0] = value
    save_file(weights, folder / "model.safetensors")
    change(folder, lambda config: config.pop("weights_sha256"))

    assert "not finite" in refused(folder)


def test_a_save_that_is_cut_off_leaves_the_old_model_or_the_new_one(tmp_path: Path) -> None:
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
    assert {(old.config.width, weights), (7, weights)} <= seen, "once the new weights had not their own name yet"


def test_a_first_save_that_is_cut_off_is_a_model_or_none(tmp_path: Path) -> None:
    endings = []
    for operation in itertools.count():
        shutil.rmtree(tmp_path / "model", ignore_errors=True)
        if not killed_at(operation, lambda: save_checkpoint(small_model(), tmp_path / "model")):
            break
        is_there = (tmp_path / "model" / "config.json").exists()
        endings.append(is_there)
        if is_there:
            load_checkpoint(tmp_path / "model")
    assert set(endings) == {False, True}


def test_weights_that_a_training_replaces_in_the_middle_of_a_look_are_read_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, new = checkpoint.read_config, small_model(width=7)
    saves = [new]

    def late(place: Path) -> dict[str, Any]:
        config = read(place)
        if saves:
            save_checkpoint(saves.pop(), place)
        return config

    monkeypatch.setattr(checkpoint, "read_config", late)

    assert load_checkpoint(folder).config.width == 7


def test_one_flipped_bit_in_the_weights_is_told(folder: Path) -> None:
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)

    assert "is not the file that its 'config.json' was saved with" in refused(folder)


def test_tensors_come_back_with_their_metadata(tmp_path: Path) -> None:
    tensors = {"a": torch.randn(3, 2).T, "b": torch.tensor(1.0)}

    write_tensors(tmp_path / "new" / "x.safetensors", tensors, {"progress": "1"})
    found, metadata = read_tensors(tmp_path / "new" / "x.safetensors")

    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
    assert metadata == {"progress": "1"}
    with pytest.raises(CheckpointError, match="damaged or missing"):
        read_tensors(tmp_path / "nothing")


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OutputError, match="No space left on device"):
        write_atomically(path, b"new")

    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_file_cannot_take_the_place_of_a_folder_or_stand_under_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    (tmp_path / "file").write_bytes(b"")

    for path in (tmp_path / "folder", tmp_path / "file" / "x"):
        with pytest.raises(OutputError, match="Cannot write"):
            write_atomically(path, b"new")

    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "folder"]


@pytest.fixture
def bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for bundled models with two of them."""
    for name in ("barabasi", "ego"):
        (tmp_path / "bundled" / name).mkdir(parents=True)
        (tmp_path / "bundled" / name / "config.json").write_text("{}")
    monkeypatch.setattr(checkpoint, "bundled_folder", lambda: tmp_path / "bundled")

    return tmp_path / "bundled"


def test_a_name_is_a_path_then_a_local_model_then_a_bundled_one(
    bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    local = tmp_path / "local"

    assert find_checkpoint("ego", local) == bundled / "ego"
    (local / "ego").mkdir(parents=True)
    (local / "ego" / "config.json").write_text("{}")
    assert find_checkpoint("ego", local) == local / "ego"
    (tmp_path / "ego").mkdir()
    (tmp_path / "ego" / "config.json").write_text("{}")
    assert find_checkpoint("ego", local) == Path("ego")
    assert find_checkpoint(str(bundled / "ego"), local) == bundled / "ego"


def test_a_path_that_is_no_checkpoint_is_found_so_that_loading_says_what_it_lacks(
    bundled: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()

    assert "is not a checkpoint" in refused(find_checkpoint(str(tmp_path / "empty"), tmp_path))


def test_an_unknown_name_is_answered_with_the_known_ones(bundled: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"No model called 'egg'.*bundled name: barabasi, ego\."):
        find_checkpoint("egg", tmp_path)


def test_without_a_name_the_last_run_is_taken_then_the_preferred_bundled_model(bundled: Path, tmp_path: Path) -> None:
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
    # A clock that was set back in between has no say where runs count themselves.
    (local / "older" / "state.json").write_text(json.dumps({"turn": checkpoint.next_turn(local / "older")}))
    os.utime(local / "older" / "state.json", (0, 0))
    assert find_checkpoint(None, local, prefer="ego") == local / "older"


def test_bundled_models_stand_in_the_package() -> None:
    assert (bundled_folder() / "__init__.py").is_file()


@pytest.mark.parametrize("name", checkpoint.bundled_names())
def test_every_bundled_model_loads(name: str) -> None:
    assert load_checkpoint(bundled_folder() / name).config.is_variational


def test_every_problem_with_a_checkpoint_is_one_the_user_can_fix() -> None:
    assert issubclass(CheckpointError, GraphiteError)
    assert issubclass(OutputError, GraphiteError)


def test_a_folder_is_tried_before_the_work_and_left_as_it_was(tmp_path: Path) -> None:
    check_writable(tmp_path / "new" / "model")
    assert not list(tmp_path.iterdir())

    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="--out"):
        check_writable(tmp_path / "file" / "model")


def test_a_bundled_model_is_found_behind_one_of_the_same_name(tmp_path: Path) -> None:
    save_checkpoint(small_model(), tmp_path / "barabasi")

    assert find_checkpoint("barabasi", tmp_path) == tmp_path / "barabasi"
    assert find_checkpoint("bundled:barabasi", tmp_path) == bundled_folder() / "barabasi"


def test_a_flipped_bit_of_the_weights_is_found_out(folder: Path) -> None:
    path = folder / "model.safetensors"
    data = path.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]

    for place in range(start, len(data), 97):
        path.write_bytes(data[:place] + bytes((data[place] ^ 1,)) + data[place + 1 :])
        assert "is not the file that its 'config.json' was saved with" in refused(folder)


def test_weights_without_a_digest_are_read_and_must_be_numbers_with_a_fraction(folder: Path) -> None:
    path = folder / "model.safetensors"
    tensors, metadata = read_tensors(path)
    assert metadata == {}
    change(folder, lambda config: config.pop("weights_sha256"))
    save_file(tensors, path, {"by": "another"})
    load_checkpoint(folder)
    save_file({name: tensor.view(torch.int64) for name, tensor in tensors.items()}, path)

    assert "weights that are not finite" in refused(folder)


def test_a_config_that_was_changed_says_so_unless_that_is_meant(folder: Path) -> None:
    path = folder / "config.json"
    path.write_text(path.read_text().replace('"skip_weight": 1.0', '"skip_weight": 0.5'))

    assert "is not as it was written" in refused(folder)

    change(folder, lambda config: None)
    assert load_checkpoint(folder).config.skip_weight == 0.5


def test_a_config_of_a_huge_model_takes_no_memory(folder: Path) -> None:
    huge = {"encoder_features": ["identity"], "max_nodes": 10**6, "node_features": 10**6, "width": 4096}
    change(folder, lambda config: config["model"].update(huge))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    assert "does not fit its 'config.json'" in refused(folder)
    # In kilobytes; one layer of it has 16 GB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda config: config["results"].update(validation="low"), "'validation' is no number"),
        (lambda config: config["provenance"].update(seed="x"), "'seed' should be"),
        (lambda config: config["model"].update(latent="x" * 10**6), "'latent' should be int"),
    ],
)
def test_what_a_config_says_is_of_the_right_type(
    folder: Path, edit: Callable[[dict[str, Any]], object], message: str
) -> None:
    change(folder, edit)

    assert message in refused(folder)
    assert len(refused(folder)) < 1000
