"""Benchmarks run commands of this version and of earlier ones, and do not repeat finished runs."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks import commands


def test_finished_runs_are_not_repeated_and_interrupted_ones_are_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []

    def graphite(*words: Any, **_: Any) -> commands.Finished:
        calls.append(list(map(str, words)))
        folder = tmp_path / "m"
        folder.mkdir(exist_ok=True)
        (folder / "state.json").write_text("{}", encoding="utf-8")
        if len(calls) == 1:
            raise KeyboardInterrupt
        return commands.Finished(json.dumps({"results": {"seconds": 120.0}}), 60.0, 90.0)

    monkeypatch.setattr(commands, "graphite", graphite)
    start = (tmp_path, "m", ["--family", "ego"], ["--budget", "2m"])
    with pytest.raises(KeyboardInterrupt):
        commands.train(*start)
    resumed = commands.train(*start)
    assert commands.train(*start) == resumed

    assert "--resume" not in calls[0]
    assert "--budget" in calls[0]
    assert "--resume" in calls[1]
    assert "--budget" not in calls[1]
    # The CPU time before the interruption is unknown.
    assert resumed["cpu_seconds"] is None
    assert commands.minutes(resumed) == 2

    again = commands.train(*start, again=True)
    assert len(calls) == 3
    assert "--resume" not in calls[2]
    assert commands.minutes(again) == 1


def test_failed_commands_raise() -> None:
    with pytest.raises(RuntimeError, match="ended with 3"):
        commands.this_version().run(["-c", "raise SystemExit(3)"])


@pytest.mark.slow
def test_an_earlier_version_is_imported_with_its_own_command_and_models() -> None:
    known = subprocess.run(["git", "cat-file", "-e", commands.EARLIER], cwd=commands.ROOT, capture_output=True)
    if known.returncode:
        pytest.skip("the history is not complete")

    with commands.earlier_version() as side:
        assert "--stages" in commands.graphite("train", "--help", side=side).stdout
        code = "import json, graphite_gen as gg; print(json.dumps(len(gg.load('ego').sample(2))))"
        assert side.evaluate(code) == 2
    assert "--stages" not in commands.graphite("train", "--help").stdout
    assert side.folder is not None
    assert not side.folder.exists()
