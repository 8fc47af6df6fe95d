from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from graphite_gen.errors import CheckpointError, OutputError
from graphite_gen.io import locks
from graphite_gen.io.locks import LOCK, claimed, is_claimed

HOLDER = """
import sys, time
from pathlib import Path
from graphite_gen.io.locks import claimed
with claimed(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_folder_is_one_trainings_until_its_process_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "run"
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert is_claimed(folder)
        with pytest.raises(CheckpointError, match="Another training is at work in"), claimed(folder):
            pass
        assert (folder / LOCK).exists(), "who is refused leaves the lock to its owner"
        holder.send_signal(signal.SIGKILL)
    assert (folder / LOCK).exists()
    assert not is_claimed(folder)

    with claimed(folder):
        assert is_claimed(folder)
    assert not (folder / LOCK).exists()


def test_who_only_looks_is_taken_for_no_training(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    with (tmp_path / LOCK).open("w") as looker:
        fcntl.flock(looker, fcntl.LOCK_SH)

        assert not is_claimed(tmp_path)


def test_a_folder_that_nothing_came_into_is_gone_again(tmp_path: Path) -> None:
    with claimed(tmp_path / "a" / "b"):
        pass
    assert not list(tmp_path.iterdir())

    with claimed(tmp_path / "a" / "b"):
        (tmp_path / "a" / "b" / "model").touch()
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["model"]


def test_a_lock_that_was_taken_away_meanwhile_keeps_no_one_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last owner may remove the file after we have opened it and before we have locked it."""
    take, left = locks.take, [True]

    def late(descriptor: int, *, shared: bool = False) -> locks.Hold:
        if left.pop() if left else False:
            (tmp_path / LOCK).unlink()
        return take(descriptor, shared=shared)

    monkeypatch.setattr(locks, "take", late)
    with claimed(tmp_path):
        assert (tmp_path / LOCK).exists()
        assert is_claimed(tmp_path)


@pytest.mark.parametrize("way", ["no module", "no locks"])
def test_where_there_are_no_locks_no_one_is_kept_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(37, "No locks available")

    if way == "no module":
        monkeypatch.setattr(locks, "fcntl", None)
    else:
        monkeypatch.setattr(locks.fcntl, "flock", refuse)
    with claimed(tmp_path), claimed(tmp_path):
        assert not is_claimed(tmp_path)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(OutputError, match=r"Cannot write .* '--out'"), claimed(tmp_path / "file" / "run"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
