import errno
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from filelock import FileLock

from graphite_gen.errors import CheckpointError, OutputError
from graphite_gen.io.locks import LOCK, is_locked, locked

HOLDER = """
import sys, time
from pathlib import Path
from graphite_gen.io.locks import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_folder_is_locked_until_its_process_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "run"
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        assert is_locked(folder)
        with pytest.raises(CheckpointError, match=f"pid {holder.pid}") as caught, locked(folder):
            pass
        assert (caught.value.reason, caught.value.facts["pid"]) == ("folder-locked", holder.pid)
        assert (folder / LOCK).exists(), "the lock file belongs to its holder"
        holder.send_signal(signal.SIGKILL)
    assert (folder / LOCK).exists()
    assert not is_locked(folder)

    with locked(folder):
        assert is_locked(folder)
    assert not (folder / LOCK).exists()


def test_testing_a_lock_is_not_mistaken_for_holding_it(tmp_path: Path) -> None:
    tested = FileLock(tmp_path / LOCK, thread_local=False)
    tested.acquire()
    threading.Thread(target=lambda: (time.sleep(0.05), tested.release())).start()

    assert not is_locked(tmp_path)


def test_a_folder_that_stayed_empty_is_removed(tmp_path: Path) -> None:
    with locked(tmp_path / "a" / "b"):
        pass
    assert not list(tmp_path.iterdir())

    with locked(tmp_path / "a" / "b"):
        (tmp_path / "a" / "b" / "model").touch()
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["model"]


def test_a_lock_file_removed_before_locking_is_created_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last holder may remove the file after it was opened and before it was locked."""
    fcntl = pytest.importorskip("fcntl")
    flock, calls = fcntl.flock, list[int]()

    def late(descriptor: int, operation: int) -> None:
        calls.append(operation)
        if len(calls) == 1:
            (tmp_path / LOCK).unlink()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with locked(tmp_path):
        assert (tmp_path / LOCK).exists()
        assert is_locked(tmp_path)


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_without_support_for_locks_none_is_held(code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(code, "No locks available")

    monkeypatch.setattr(pytest.importorskip("fcntl"), "flock", refuse)
    (tmp_path / LOCK).write_text("1\n")  # left by a killed run
    with locked(tmp_path), locked(tmp_path):
        assert not is_locked(tmp_path)


def test_testing_a_lock_and_a_folder_that_cannot_be_created_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert not is_locked(tmp_path)
    assert not is_locked(tmp_path / "none")
    with pytest.raises(OutputError) as caught, locked(tmp_path / "file" / "run"):
        pass
    assert caught.value.reason == "folder-not-writable"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_lock_file_is_removed_while_the_lock_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release, found = FileLock.release, list[bool]()

    def spy(lock: FileLock, force: bool = False) -> None:
        found.append((tmp_path / LOCK).exists())
        release(lock, force)

    with locked(tmp_path):
        monkeypatch.setattr(FileLock, "release", spy)
    assert found[0] is False
