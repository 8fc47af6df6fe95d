import random
from pathlib import Path

import pytest

from benchmarks.robustness import children, faults


@pytest.fixture(autouse=True)
def one_kind_of_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "RUNS", {"one-shot": faults.RUNS["over another"]})
    children.load_libraries()


def test_killed_training_resumes_to_the_weights_of_an_uninterrupted_run() -> None:
    found = faults.train_killed(random.Random(2), 3)

    assert found["kills"] >= 3
    assert not found["unreadable"] + found["other ends"] + found["left over"], found


def test_killed_writers_leave_the_old_output_or_the_complete_new_one() -> None:
    found = faults.write_killed(random.Random(2), 6)

    assert found["kills"] >= 6
    assert not found["half-written"] + found["other ends"] + found["left over"], found


def test_script_detects_an_unreadable_checkpoint(tmp_path: Path) -> None:
    found = faults.Counter()
    (tmp_path / "config.json").write_text("{}")

    faults._line_after(tmp_path, (), dict.fromkeys(("model.safetensors", faults.RUN), "nothing"), found)

    assert found["unreadable"] == 1
