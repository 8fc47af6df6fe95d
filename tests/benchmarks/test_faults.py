from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Any:
    from benchmarks.robustness import children, faults

    monkeypatch.setattr(faults, "RUNS", {"one-shot": faults.RUNS["over another"]})
    children.load_libraries()

    return faults


def test_killed_training_resumes_to_the_weights_of_an_uninterrupted_run(faults: Any) -> None:
    found = faults.train_killed(random.Random(2), 3)

    assert found["kills"] >= 3
    assert not found["unreadable"] + found["other ends"] + found["left over"], found


def test_killed_writers_leave_the_old_output_or_the_complete_new_one(faults: Any) -> None:
    found = faults.write_killed(random.Random(2), 6)

    assert found["kills"] >= 6
    assert not found["half-written"] + found["other ends"] + found["left over"], found


def test_script_detects_an_unreadable_checkpoint(faults: Any, tmp_path: Path) -> None:
    found = faults.Counter()
    (tmp_path / "config.json").write_text("{}")

    faults._line_after(tmp_path, (), dict.fromkeys(("model.safetensors", faults.RUN), "nothing"), found)

    assert found["unreadable"] == 1
