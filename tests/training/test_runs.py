import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from killing import killed_at

from graphite_gen.distributed import ProcessGroup
from graphite_gen.errors import CheckpointError, UnusedSettingError
from graphite_gen.graph import SimpleGraph
from graphite_gen.io import write_graphs
from graphite_gen.io.locks import HIDDEN
from graphite_gen.training import runs, torchrun
from graphite_gen.training.checkpoint import is_checkpoint, load_checkpoint
from graphite_gen.training.runs import TrainingData, find_training_graphs, fingerprint, resume_run, start_run
from graphite_gen.training.trainer import RUN, Trainer, prepare

DATA = TrainingData(family="ego", parameters={"p": 0.5}, graphs=8, nodes=(3, 5), preset="paper", seed=3)
SETTINGS = {"epochs": 2, "width": 4, "latent": 2, "validation_samples": 1}
PATH = SimpleGraph.from_pairs(3, [(0, 1), (1, 2)])


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trainer, Path]:
    """A finished run and its folder."""
    folder = tmp_path_factory.mktemp("runs") / "a"
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    run = start_run("a", folder, DATA, SETTINGS)
    assert not folder.exists(), "a run that has not saved leaves no files"
    list(run)
    torch.set_default_dtype(before)

    return run, folder


@pytest.fixture
def first(first_run: tuple[Trainer, Path]) -> Trainer:
    return first_run[0]


@pytest.fixture
def finished(first_run: tuple[Trainer, Path], tmp_path: Path) -> Path:
    """A copy of the folder of a finished run."""
    return Path(shutil.copytree(first_run[1], tmp_path / "a"))


def test_a_fingerprint_covers_edges_weights_and_features() -> None:
    others = [
        SimpleGraph.from_pairs(4, [(0, 1), (1, 2)]),
        SimpleGraph.from_pairs(3, [(0, 1), (0, 2)]),
        replace(PATH, weights=np.ones(2)),
        replace(PATH, features=np.zeros((3, 1), dtype=np.float32)),
    ]

    assert fingerprint([PATH]) == fingerprint([replace(PATH, attributes={"split": "train"})])
    assert len({fingerprint([graph]) for graph in (PATH, *others)} | {fingerprint([PATH, PATH]), fingerprint([])}) == 7


def test_a_run_is_resumed_with_its_graphs(first: Trainer, finished: Path) -> None:
    again = resume_run(finished, {"epochs": 2, "family": "ego", "nodes": [3, 5], "graphs": 8})

    assert runs.is_finished(finished)
    assert fingerprint(again.graphs) == fingerprint(first.graphs)
    assert fingerprint(again.validation) == fingerprint(first.validation)
    assert again.config == first.config
    assert [record.loss for record in again.history] == [record.loss for record in first.history]


def test_an_interrupted_save_is_completed_before_it_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, sent = tmp_path / "a", dict[str, bytes]()
    list(start_run("a", folder, DATA, {**SETTINGS, "epochs": 1}))
    old = (folder / "model.safetensors").read_bytes()
    list(start_run("a", folder, DATA, SETTINGS, force=True))
    # The state after a kill between writing the config and renaming the weights.
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


@pytest.mark.parametrize(
    "given", [{"budget": 9.0}, {"family": "regular"}, {"nodes": (3, 6)}, {"parameters": {"p": 0.1}}]
)
def test_a_run_is_not_resumed_with_settings_that_are_other_or_unused(finished: Path, given: dict[str, object]) -> None:
    with pytest.raises(CheckpointError) as error:
        resume_run(finished, given)

    assert error.value.reason == "resume-other-setting"
    with pytest.raises(UnusedSettingError):
        resume_run(finished, {"ordering": "bfs"})


def test_an_extended_run_follows_the_schedule_of_a_longer_one(first: Trainer, finished: Path, tmp_path: Path) -> None:
    longer = list(start_run("b", tmp_path / "b", DATA, {**SETTINGS, "epochs": 4}))
    run = resume_run(finished, {"epochs": 4})
    start = run.network.state_dict()
    assert all(torch.equal(start[name], weights) for name, weights in first.network.state_dict().items())
    assert not run.is_finished
    records = list(run)

    # The weights of a run of two epochs and of four differ; steps and learning rates after epoch 2 do not.
    assert [(one.epoch, one.step, one.learning_rate) for one in records] == [
        (one.epoch, one.step, one.learning_rate) for one in longer[2:]
    ]
    steps = {int(run._optimiser.moments(parameter)["step"]) for parameter in run.network.parameters()}
    assert steps == {longer[-1].step}
    assert load_checkpoint(finished).training.epochs == resume_run(finished, {}).epoch == 4
    with pytest.raises(CheckpointError, match="4 epochs"):
        resume_run(finished, {"epochs": 3})


def test_a_larger_budget_extends_a_run_in_proportion() -> None:
    time = iter(np.arange(0, 1e4, 0.01))
    about = {**SETTINGS, "epochs": 3, "budget": 2.0, "batch_size": 4}
    run = prepare("a", [PATH] * 20, [PATH] * 4, about, preset_name="paper", clock=lambda: float(next(time)))
    list(run)
    run.extend(epochs=3, budget=2.0)
    assert run.is_finished, "the settings of the run do not extend it"
    run.extend(budget=4.0)
    records = list(run)

    assert run.training.epochs == 6 >= records[-1].epoch == run.length.epochs > 4
    assert 3 < records[-1].seconds < 5
    # The last epoch of a budget may be short; those of an extension by epochs are not.
    before = run._progress.first_graph / run.epoch
    run.extend(epochs=9)
    assert (run.training.budget, run.length.epochs) == (0, 9)
    assert abs(run.length.epoch_graphs - before) <= 4


def test_an_unfinished_run_is_not_silently_left_behind(finished: Path) -> None:
    out = finished.parent
    assert runs.free_folder(out, "a").name == "a-2"
    stopped = iter(start_run("a-2", out / "a-2", DATA, SETTINGS))
    next(stopped)
    stopped.close()
    with pytest.raises(CheckpointError, match="after 1 of 2 epochs") as error:
        runs.free_folder(out, "a")
    assert (error.value.reason, error.value.facts) == ("run-unfinished", {"name": "a-2"})

    list(resume_run(out / "a-2", {}))
    assert runs.free_folder(out, "a").name == "a-3"


@pytest.mark.parametrize(
    "data", [{}, {"fingerprint": "x"}, {"fingerprint": "x", "nodes": 3}, {"fingerprint": 1, "nodes": [3, 4], "what": 2}]
)
def test_a_run_without_a_record_of_its_graphs_is_refused(tmp_path: Path, data: dict[str, object]) -> None:
    trainer = start_run("a", tmp_path / "a", DATA, SETTINGS)
    trainer._data = data
    list(trainer)

    with pytest.raises(CheckpointError, match="training graphs"):
        resume_run(tmp_path / "a", {})


def test_an_existing_folder_is_refused_unless_forced_and_intact_until_the_first_save(finished: Path) -> None:
    with pytest.raises(CheckpointError) as error:
        start_run("a", finished, DATA, SETTINGS)
    assert error.value.reason == "folder-exists-resume"
    before = {path.name: path.read_bytes() for path in finished.iterdir()}
    run = start_run("a", finished, DATA, {**SETTINGS, "width": 5}, force=True)
    assert {path.name: path.read_bytes() for path in finished.iterdir()} == before
    list(run)

    assert load_checkpoint(finished).config.width == 5


def test_a_model_without_its_run_and_files_that_are_not_a_model_are_not_replaced(finished: Path) -> None:
    (finished / RUN).unlink()
    with pytest.raises(CheckpointError, match="exists"):
        start_run("a", finished, DATA, SETTINGS)

    (finished / "config.json").write_text('{"mine": true}')
    with pytest.raises(CheckpointError) as error:
        start_run("a", finished, DATA, SETTINGS, force=True)
    assert error.value.reason == "folder-not-a-model"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_run_killed_in_its_first_save_can_be_resumed_or_started_again(tmp_path: Path) -> None:
    run = start_run("a", tmp_path / "a", DATA, SETTINGS)
    endings = []
    for operation in range(200):
        run.folder = folder = tmp_path / str(operation) / "a"
        if not killed_at(operation, run._save):
            break
        assert not is_checkpoint(folder) or load_checkpoint(folder).name == "a"
        if (folder / RUN).exists():
            assert resume_run(folder, {}).epoch == 0
        else:
            assert runs.free_folder(folder.parent, "a") == folder
            runs.claim_folder(folder, force=False)
        endings.append((is_checkpoint(folder), (folder / RUN).exists()))

    assert set(endings) == {(False, False), (True, False), (True, True)}
    assert not [path for path in folder.iterdir() if path.name.startswith(HIDDEN)]


def test_names_are_numbered_and_the_last_run_is_found(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="to resume"):
        runs.find_run(tmp_path, "ego")
    for name in ("ego", "ego-2", "ego-3", "egoist", "ego-x"):
        assert not name.startswith("ego-") or name == "ego-x" or runs.free_folder(tmp_path, "ego").name == name
        (tmp_path / name).mkdir()
        (tmp_path / name / "state.json").write_text("{}")

    assert runs.find_run(tmp_path, "ego").name == "ego-3"


def test_a_run_is_continued_only_by_the_launch_that_started_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "always the same")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    start_run("a", tmp_path / "a", DATA, SETTINGS)._save()
    start_run("a", tmp_path / "a-2", DATA, SETTINGS)._save()
    start_run("a", tmp_path / "a", DATA, SETTINGS, force=True)._save()

    assert runs.lost_run(tmp_path, "a") == tmp_path / "a"
    # Another process with the same pid.
    monkeypatch.setattr(torchrun, "_start_of", lambda process: " from another time")
    assert runs.lost_run(tmp_path, "a") is None


def test_training_graphs_are_found_from_the_run_or_the_seed(first: Trainer, finished: Path) -> None:
    by_run = find_training_graphs(finished)
    (finished / RUN).unlink()
    by_seed = find_training_graphs(finished)

    for found in (by_run, by_seed):
        assert fingerprint(found.train) == fingerprint(first.graphs)
        assert fingerprint(found.validation) == fingerprint(first.validation)
        assert found.fingerprint == fingerprint([*first.graphs, *first.validation])
    config = json.loads((finished / "config.json").read_text(encoding="utf-8"))
    del config["checksum"]
    for part, key, value in (("provenance", "source", "mine.h5"), ("results", "training_graphs", 10**12)):
        changed = config | {part: config[part] | {key: value}}
        (finished / "config.json").write_text(json.dumps(changed), encoding="utf-8")
        assert find_training_graphs(finished) == runs.TrainingGraphs()


def test_changed_training_graphs_are_not_returned(tmp_path: Path) -> None:
    file = tmp_path / "mine.g6"
    write_graphs([PATH, SimpleGraph.from_pairs(3, [(0, 1)])] * 5, file)
    list(start_run("a", tmp_path / "a", TrainingData(file=str(file), preset="paper"), SETTINGS))
    known = find_training_graphs(tmp_path / "a")
    write_graphs([PATH] * 10, file, force=True)
    changed = find_training_graphs(tmp_path / "a")
    file.unlink()

    assert len(known.train) == 9
    assert changed == runs.TrainingGraphs(fingerprint=known.fingerprint) == find_training_graphs(tmp_path / "a")


def test_temporary_files_of_a_killed_run_are_removed_when_it_is_resumed(finished: Path) -> None:
    names = sorted(path.name for path in finished.iterdir())
    (finished / f"{HIDDEN}0123456789abcdef.tmp").mkdir()
    (finished / f"{HIDDEN}0123456789abcdef.safetensors").touch()

    resume_run(finished, {})

    assert sorted(path.name for path in finished.iterdir()) == names
