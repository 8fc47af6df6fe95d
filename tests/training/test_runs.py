from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from killing import killed_at

from graphite_gen.distributed import ProcessGroup
from graphite_gen.errors import CheckpointError
from graphite_gen.graph import SimpleGraph
from graphite_gen.io import write_graphs
from graphite_gen.io.locks import HIDDEN
from graphite_gen.training import runs, torchrun
from graphite_gen.training.checkpoint import is_checkpoint, load_checkpoint
from graphite_gen.training.runs import (
    TrainingData,
    TrainingGraphs,
    claim_folder,
    find_run,
    find_training_graphs,
    fingerprint,
    free_folder,
    is_finished,
    lost_run,
    resume_run,
    start_run,
)
from graphite_gen.training.trainer import RUN

DATA = TrainingData(family="ego", parameters={"p": 0.5}, graphs=8, nodes=(3, 5), preset="paper", seed=3)
SETTINGS = {"epochs": 2, "width": 4, "latent": 2, "validation_samples": 1}
PATH = SimpleGraph.from_pairs(3, [(0, 1), (1, 2)])


def test_a_fingerprint_is_of_what_training_sees() -> None:
    others = [
        SimpleGraph.from_pairs(4, [(0, 1), (1, 2)]),
        SimpleGraph.from_pairs(3, [(0, 1), (0, 2)]),
        replace(PATH, weights=np.ones(2)),
        replace(PATH, features=np.zeros((3, 1), dtype=np.float32)),
    ]

    assert fingerprint([PATH]) == fingerprint([replace(PATH, attributes={"split": "train"})])
    assert len({fingerprint([graph]) for graph in (PATH, *others)} | {fingerprint([PATH, PATH]), fingerprint([])}) == 7


def test_a_run_is_resumed_with_the_graphs_it_began_with(tmp_path: Path) -> None:
    first = start_run("a", tmp_path / "a", DATA, SETTINGS)
    list(first)
    again = resume_run(tmp_path / "a", {"epochs": 2, "family": "ego", "nodes": (3, 5), "graphs": 8})

    assert is_finished(tmp_path / "a")
    assert fingerprint(again.graphs) == fingerprint(first.graphs)
    assert fingerprint(again.validation) == fingerprint(first.validation)
    assert again.config == first.config
    assert [record.loss for record in again.history] == [record.loss for record in first.history]


def test_a_save_that_was_cut_off_is_whole_for_those_who_get_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, sent = tmp_path / "a", dict[str, bytes]()
    list(start_run("a", folder, DATA, {**SETTINGS, "epochs": 1}))
    old = (folder / "model.safetensors").read_bytes()
    list(start_run("a", folder, DATA, SETTINGS, force=True))
    # As a kill leaves it between the config and the weights' own name.
    digest = json.loads((folder / "config.json").read_text(encoding="utf-8"))["weights_sha256"]
    (folder / "model.safetensors").rename(folder / f"{HIDDEN}{digest[:16]}.safetensors")
    (folder / "model.safetensors").write_bytes(old)

    def broadcast(group: ProcessGroup, files: dict[str, bytes]) -> dict[str, bytes]:
        sent.update(files)
        return sent

    monkeypatch.setattr(ProcessGroup, "broadcast", broadcast)
    with runs._at_hand(folder, ProcessGroup(0, 2)), runs._at_hand(folder, ProcessGroup(1, 2)) as copy:
        assert copy != folder
        ours, theirs = (load_checkpoint(place).network.state_dict() for place in (folder, copy))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("given", [{"epochs": 3}, {"family": "regular"}, {"nodes": (3, 6)}, {"parameters": {"p": 0.1}}])
def test_a_run_is_not_resumed_as_another(tmp_path: Path, given: dict[str, object]) -> None:
    list(start_run("a", tmp_path / "a", DATA, SETTINGS))

    with pytest.raises(CheckpointError, match="another run"):
        resume_run(tmp_path / "a", given)


@pytest.mark.parametrize(
    "data", [{}, {"fingerprint": "x"}, {"fingerprint": "x", "nodes": 3}, {"fingerprint": 1, "nodes": [3, 4], "what": 2}]
)
def test_a_run_that_does_not_say_what_it_was_trained_on_is_refused(tmp_path: Path, data: dict[str, object]) -> None:
    trainer = start_run("a", tmp_path / "a", DATA, SETTINGS)
    trainer._data = data
    list(trainer)

    with pytest.raises(CheckpointError, match="what it was trained on"):
        resume_run(tmp_path / "a", {})


def test_a_taken_folder_is_refused_unless_forced(tmp_path: Path) -> None:
    list(start_run("a", tmp_path / "a", DATA, SETTINGS))
    with pytest.raises(CheckpointError, match="--resume"):
        start_run("a", tmp_path / "a", DATA, SETTINGS)
    list(start_run("a", tmp_path / "a", DATA, {**SETTINGS, "width": 5}, force=True))

    assert load_checkpoint(tmp_path / "a").config.width == 5


def test_a_model_stays_whole_until_the_run_that_replaces_it_has_saved(tmp_path: Path) -> None:
    list(start_run("a", tmp_path / "a", DATA, SETTINGS))
    before = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    start_run("a", tmp_path / "a", DATA, {**SETTINGS, "width": 5}, force=True)

    assert {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()} == before


def test_files_that_are_no_model_are_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"mine": true}')

    with pytest.raises(CheckpointError, match="other files"):
        start_run("a", tmp_path, DATA, SETTINGS, force=True)


def test_a_run_that_has_not_saved_leaves_nothing(tmp_path: Path) -> None:
    start_run("a", tmp_path / "a", DATA, SETTINGS)

    assert not (tmp_path / "a").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_run_that_is_killed_in_its_first_save_is_resumed_or_starts_again(tmp_path: Path) -> None:
    run = start_run("a", tmp_path / "a", DATA, SETTINGS)
    endings = []
    for operation in range(200):
        run.folder = folder = tmp_path / str(operation) / "a"
        if not killed_at(operation, run._save):
            break
        if (folder / RUN).exists():
            assert resume_run(folder, {}).epoch == 0
        else:
            assert free_folder(folder.parent, "a") == folder
            claim_folder(folder, force=False)
        endings.append((is_checkpoint(folder), (folder / RUN).exists()))

    assert set(endings) == {(False, False), (True, False), (True, True)}
    assert not [path for path in folder.iterdir() if path.name.startswith(HIDDEN)]


def test_a_model_without_its_run_is_not_taken_for_a_first_save(tmp_path: Path) -> None:
    list(start_run("a", tmp_path / "a", DATA, SETTINGS))
    (tmp_path / "a" / RUN).unlink()

    with pytest.raises(CheckpointError, match="exists"):
        start_run("a", tmp_path / "a", DATA, SETTINGS)


def test_names_are_numbered_and_the_last_run_found(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="to resume"):
        find_run(tmp_path, "ego")
    for name in ("ego", "ego-2", "ego-3", "egoist", "ego-x"):
        assert not name.startswith("ego-") or name == "ego-x" or free_folder(tmp_path, "ego").name == name
        (tmp_path / name).mkdir()
        (tmp_path / name / "state.json").write_text("{}")

    assert find_run(tmp_path, "ego").name == "ego-3"


def test_a_run_is_continued_by_the_launch_that_started_it_and_by_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "always the same")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    start_run("a", tmp_path / "a", DATA, SETTINGS)._save()
    start_run("a", tmp_path / "a-2", DATA, SETTINGS)._save()
    start_run("a", tmp_path / "a", DATA, SETTINGS, force=True)._save()

    # The last started one of several.
    assert lost_run(tmp_path, "a") == tmp_path / "a"
    # A process of the same number that started at another time.
    monkeypatch.setattr(torchrun, "_start_of", lambda process: " from another time")
    assert lost_run(tmp_path, "a") is None


def test_training_graphs_are_found_again_by_run_by_seed_or_not_at_all(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    run = start_run("a", folder, DATA, SETTINGS)
    list(run)
    by_run = find_training_graphs(folder)
    for name in ("optimizer.safetensors", "state.json"):
        (folder / name).unlink()
    by_seed = find_training_graphs(folder)

    for found in (by_run, by_seed):
        assert fingerprint(found.train) == fingerprint(run.graphs)
        assert fingerprint(found.validation) == fingerprint(run.validation)
        assert found.fingerprint == fingerprint([*run.graphs, *run.validation])
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    del config["checksum"]
    for part, key, value in (("provenance", "source", "mine.h5"), ("results", "training_graphs", 10**12)):
        changed = config | {part: config[part] | {key: value}}
        (folder / "config.json").write_text(json.dumps(changed), encoding="utf-8")
        assert find_training_graphs(folder) == TrainingGraphs()


def test_training_graphs_that_have_changed_are_not_those_of_the_run(tmp_path: Path) -> None:
    file = tmp_path / "mine.g6"
    write_graphs([PATH, SimpleGraph.from_pairs(3, [(0, 1)])] * 5, file)
    list(start_run("a", tmp_path / "a", TrainingData(file=str(file), preset="paper"), SETTINGS))
    known = find_training_graphs(tmp_path / "a")
    write_graphs([PATH] * 10, file, force=True)
    changed = find_training_graphs(tmp_path / "a")
    file.unlink()

    assert len(known.train) == 9
    assert changed == TrainingGraphs(fingerprint=known.fingerprint) == find_training_graphs(tmp_path / "a")


def test_what_a_run_left_that_was_killed_as_it_ended_is_gone_when_it_is_resumed(tmp_path: Path) -> None:
    list(start_run("a", tmp_path / "a", DATA, SETTINGS))
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    for name in (".graphite-gen.0123456789abcdef.tmp", ".graphite-gen.0123456789abcdef.safetensors"):
        (tmp_path / "a" / name).touch()

    resume_run(tmp_path / "a", {})

    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == names
