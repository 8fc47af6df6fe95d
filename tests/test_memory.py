"""What is estimated is held against what a process of its own really takes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import memory_tasks
import pytest
from memory_tasks import TASKS
from tiny import random_graph, small_model

from graphite_gen import memory
from graphite_gen.errors import DatasetError, SamplingError, TrainingError
from graphite_gen.likelihood import NLLOptions, estimate_nll
from graphite_gen.memory import available_memory, check_memory
from graphite_gen.training.trainer import prepare


def estimated(task: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> float:
    """The bytes that a task is said to take, in the line with which it is refused."""
    with monkeypatch.context() as patch:
        patch.setattr(memory, "available_memory", lambda: 0)
        with pytest.raises((DatasetError, SamplingError, TrainingError)) as error:
            task()
    found = re.search(r"needs about ([\d.]+) (MB|GB) of memory, and 0 MB is there\.( [A-Z].*\.)?$", str(error.value))
    assert found, str(error.value)

    return float(found[1]) * {"MB": 1e6, "GB": 1e9}[found[2]]


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux tells what a process has taken")
def test_what_is_estimated_is_what_is_taken_within_a_factor_of_two(
    single_precision: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Path(memory_tasks.__file__)
    found = json.loads(subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True).stdout)

    for name, task in TASKS.items():
        wanted = estimated(task, monkeypatch)
        # What is loaded at the first use of anything is counted with it.
        assert 0.5 < wanted / found[name] < 2 or abs(wanted - found[name]) < 60e6, (name, wanted, found[name])


def test_little_is_never_refused_and_nothing_where_the_system_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 0)
    check_memory(1e6, "It", "Do less.", DatasetError)
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    check_memory(1e30, "It", "Do less.", DatasetError)


def test_what_there_is_is_the_least_of_all_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = available_memory()
    assert real is not None
    assert 0 < real < 1 << 50

    (tmp_path / "own").mkdir()
    for name, text in (("memory.max", "5000000"), ("memory.current", "4000000"), ("memory.stat", "inactive_file 7\n")):
        (tmp_path / "own" / name).write_text(text)
    group = (str(tmp_path), "", "memory.max", "memory.current", "inactive_file")
    lines = memory._lines
    monkeypatch.setattr(memory, "_GROUPS", (group,))
    monkeypatch.setattr(memory, "_lines", lambda path: ["0::/own"] if path == "/proc/self/cgroup" else lines(path))
    assert available_memory() == 1000007

    (tmp_path / "own" / "memory.max").write_text("max")
    assert available_memory() != 1000007


def test_a_batch_or_samples_that_fit_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(150, 0)
    monkeypatch.setattr(memory, "available_memory", lambda: 30_000_000)

    with pytest.raises(TrainingError, match=r"A step on 93 graphs of 150 nodes .* A batch size of 16 would fit"):
        prepare("x", [graph], [], {"batch_size": 200, "samples": 1}, preset_name="one-shot")
    with pytest.raises(DatasetError, match=r"Graph 0, on 150 nodes, .* 44 samples would fit"):
        estimate_nll(small_model(), [graph], NLLOptions(1000))
