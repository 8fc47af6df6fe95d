import json
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
    """The estimated bytes of a task, as reported by the error that refuses it."""
    with monkeypatch.context() as patch:
        patch.setattr(memory, "available_memory", lambda: 0)
        with pytest.raises((DatasetError, SamplingError, TrainingError)) as error:
            task()
    assert error.value.facts["available"] == 0

    return float(error.value.facts["needed"])


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs /proc")
def test_estimates_are_within_a_factor_of_two(single_precision: None, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Path(memory_tasks.__file__)
    found = json.loads(subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True).stdout)

    for name, task in TASKS.items():
        expected = estimated(task, monkeypatch)
        # Libraries loaded on first use are counted too.
        assert 0.5 < expected / found[name] < 2 or abs(expected - found[name]) < 60e6, (name, expected, found[name])


def test_small_amounts_and_unknown_limits_are_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 0)
    check_memory(1e6, "It", "Do less.", DatasetError)
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    check_memory(1e30, "It", "Do less.", DatasetError)


def test_available_memory_is_the_least_of_all_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < available_memory() < 1 << 50

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


def test_the_largest_batch_and_number_of_samples_that_fit_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(150, 0)
    monkeypatch.setattr(memory, "available_memory", lambda: 30_000_000)

    with pytest.raises(TrainingError, match="14"):
        prepare("x", [graph], [], {"batch_size": 200, "samples": 1}, preset_name="one-shot")
    with pytest.raises(DatasetError, match="44"):
        estimate_nll(small_model(), [graph], NLLOptions(1000))
