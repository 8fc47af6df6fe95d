from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphite_gen.errors import CheckpointError
from graphite_gen.graph import SimpleGraph
from graphite_gen.runs import (
    TrainingData,
    discard_unsaved,
    find_run,
    fingerprint,
    free_folder,
    is_finished,
    resume_run,
    start_run,
)

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


@pytest.mark.parametrize("given", [{"epochs": 3}, {"family": "regular"}, {"nodes": (3, 6)}, {"parameters": {"p": 0.1}}])
def test_a_run_is_not_resumed_as_another(tmp_path: Path, given: dict[str, object]) -> None:
    list(start_run("a", tmp_path / "a", DATA, SETTINGS))

    with pytest.raises(CheckpointError, match="another run"):
        resume_run(tmp_path / "a", given)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"fingerprint": "x", "nodes": 3}', '{"fingerprint": 1, "what": 2}']
)
def test_damaged_data_are_refused(tmp_path: Path, content: str) -> None:
    list(start_run("a", tmp_path / "a", DATA, SETTINGS))
    (tmp_path / "a" / "data.json").write_text(content)

    with pytest.raises(CheckpointError, match="damaged"):
        resume_run(tmp_path / "a", {})


def test_a_taken_folder_is_refused_unless_forced(tmp_path: Path) -> None:
    list(start_run("a", tmp_path / "a", DATA, SETTINGS))
    with pytest.raises(CheckpointError, match="--resume"):
        start_run("a", tmp_path / "a", DATA, SETTINGS)
    start_run("a", tmp_path / "a", DATA, SETTINGS, force=True)

    assert [path.name for path in (tmp_path / "a").iterdir()] == ["data.json"]


def test_what_a_run_left_before_it_saved_is_taken_away(tmp_path: Path) -> None:
    trainer = start_run("a", tmp_path / "a", DATA, SETTINGS)
    discard_unsaved(tmp_path / "a")
    assert not (tmp_path / "a").exists()
    list(trainer)
    discard_unsaved(tmp_path / "a")

    assert (tmp_path / "a" / "model.safetensors").exists()


def test_names_are_numbered_and_the_last_run_found(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="to resume"):
        find_run(tmp_path, "ego")
    for name in ("ego", "ego-2", "ego-3", "egoist", "ego-x"):
        assert not name.startswith("ego-") or name == "ego-x" or free_folder(tmp_path, "ego").name == name
        (tmp_path / name).mkdir()
        (tmp_path / name / "state.json").write_text("{}")

    assert find_run(tmp_path, "ego").name == "ego-3"
