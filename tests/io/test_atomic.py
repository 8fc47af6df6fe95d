from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import stat
from pathlib import Path

import pytest
from killing import killed_at

from graphite_gen.io.atomic import filling, is_settled, move_all, replacing, staging, sweep


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_file_is_replaced_completely_or_not_at_all(error: type[BaseException], tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    mode = stat.S_IMODE(path.stat().st_mode)

    with pytest.raises(error), replacing(path) as stream:  # noqa: PT012
        stream.write(b"half")
        raise error
    assert path.read_bytes() == b"old"
    with replacing(path) as stream:
        stream.write(b"new")

    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_failed_stage_is_removed_with_the_folders_created_for_it(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "er"

    with pytest.raises(KeyboardInterrupt), staging(folder) as stage:  # noqa: PT012
        assert stage.parent == folder
        assert stage.name.startswith(".")
        (stage / "file").touch()
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())
    with staging(folder) as stage:
        (stage / "file").touch()
        (stage / "file").rename(folder / "file")

    assert [file.name for file in folder.iterdir()] == ["file"]


@pytest.mark.parametrize("fails_at", [0, 1, 2, 3])
@pytest.mark.parametrize("late", [False, True])
def test_moves_are_all_done_or_all_undone(
    fails_at: int, late: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abcd":
        (tmp_path / name).write_text(name)
    # The last file gets the name that the first one had.
    moves = [(tmp_path / old, tmp_path / new) for old, new in ("ae", "bf", "cg", "da")]
    rename, calls = Path.rename, 0

    def interrupted(self: Path, target: Path) -> Path:
        nonlocal calls
        calls += 1
        if calls != fails_at + 1:
            return rename(self, target)
        if late:
            rename(self, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        move_all(moves)
    monkeypatch.undo()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {name: name for name in "abcd"}

    move_all(moves)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"e": "a", "f": "b", "g": "c", "a": "d"}


def test_a_name_taken_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text(name)

    with pytest.raises(FileExistsError, match="c"):
        move_all([(tmp_path / old, tmp_path / new) for old, new in (("a", "d"), ("gone", "e"), ("b", "c"))])
    assert visible(tmp_path) == {"a": "a", "b": "b", "c": "c"}


def visible(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if not path.name.startswith(".")}


def write_file(path: Path, text: str) -> None:
    with replacing(path) as stream:
        stream.write(text.encode())


def test_a_file_stays_complete_when_its_writer_is_killed_and_the_next_one_cleans_up(tmp_path: Path) -> None:
    write_file(tmp_path / "file", "old")
    for operation in itertools.count():
        if not killed_at(operation, lambda: write_file(tmp_path / "file", "new")):
            break
        assert visible(tmp_path)["file"] in ("old", "new")
        write_file(tmp_path / "other", "")
        assert len(list(tmp_path.iterdir())) == 2, "the stage of the killed writer is removed"
    assert operation > 2


def fill(folder: Path, texts: dict[str, str], old: tuple[str, ...] = ()) -> None:
    with filling(folder, lambda: [folder / name for name in old]) as new:
        for name, text in texts.items():
            (new / name).write_text(text)


def test_a_new_folder_appears_with_all_its_files_or_not_at_all(tmp_path: Path) -> None:
    wanted = {"a": "1", "b": "2", "c": "3"}
    for operation in itertools.count():
        if not killed_at(operation, lambda: fill(tmp_path / "out", wanted)):
            break
        assert not (tmp_path / "out").exists() or visible(tmp_path / "out") == wanted
        fill(tmp_path / "out", wanted, tuple(wanted) if (tmp_path / "out").exists() else ())
        assert [path.name for path in tmp_path.iterdir()] == ["out"], "the stage of the killed writer is removed"
        shutil.rmtree(tmp_path / "out")
    assert operation > 4
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_files_in_an_existing_folder_are_all_replaced_or_none_after_the_next_write(tmp_path: Path) -> None:
    before, after = {"a": "old", "b": "old", "other": "x"}, {"a": "new", "c": "new", "other": "x"}
    halves = 0
    for operation in itertools.count():
        for path in tmp_path.iterdir():
            path.unlink() if path.is_file() else shutil.rmtree(path)
        for name, text in before.items():
            (tmp_path / name).write_text(text)
        if not killed_at(operation, lambda: fill(tmp_path, {"a": "new", "c": "new"}, ("a", "b"))):
            break
        is_half = visible(tmp_path) not in (before, after)
        halves += is_half
        assert not (is_half and is_settled(tmp_path)), "a reader could not tell"
        sweep(tmp_path)
        assert is_settled(tmp_path)
        assert visible(tmp_path) in (before, after)
    assert halves, "no kill fell between two moves"
    assert visible(tmp_path) == after


def test_a_file_that_appears_meanwhile_is_kept_and_reported(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")

    def appear() -> list[Path]:
        (tmp_path / "c").write_text("foreign")
        return [tmp_path / "a"]

    with pytest.raises(FileExistsError), filling(tmp_path, appear) as new:  # noqa: PT012
        for name in "abc":
            (new / name).write_text("new")

    assert visible(tmp_path) == {"a": "old", "c": "foreign"}
    assert len(list(tmp_path.iterdir())) == 2, "the stage is removed"


@pytest.mark.parametrize("moved", range(6))
def test_a_plan_is_completed_over_files_that_appeared_meanwhile(moved: int, tmp_path: Path) -> None:
    stage = tmp_path / ".graphite-gen.0123456789abcdef.tmp"
    for folder in (stage / "old", stage / "new"):
        folder.mkdir(parents=True)
    for name in "ab":
        (tmp_path / name).write_text("old")
    for name in "ace":
        (stage / "new" / name).write_text("new")
    # "e" was to be replaced too, but was removed before it could be moved.
    (stage / "plan.json").write_text(json.dumps({"old": ["a", "b", "e"], "new": ["e", "a", "c"]}))
    moves = [(tmp_path / name, stage / "old" / name) for name in "ab"]
    moves += [(stage / "new" / name, tmp_path / name) for name in "eac"]
    for old, new in moves[:moved]:
        old.rename(new)
    if moved < 5:
        (tmp_path / "c").write_text("foreign")
    if moved == 2:
        (tmp_path / "a").write_text("foreign")

    sweep(tmp_path)

    assert visible(tmp_path) == {"a": "new", "c": "new", "e": "new"}
    assert not stage.exists()


def test_old_files_survive_when_they_cannot_be_moved_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        (tmp_path / name).write_text("old")
    rename, calls = Path.rename, 0

    def fail_late(self: Path, target: Path) -> Path:
        nonlocal calls
        calls += 1
        if calls > 2:
            raise OSError(errno.EIO, "Input/output error")
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", fail_late)
        with pytest.raises(OSError, match="Input/output"):
            fill(tmp_path, {"a": "new", "c": "new"}, ("a", "b"))
    assert not is_settled(tmp_path)
    assert {path.name for path in tmp_path.glob(".*/old/*")} == {"a", "b"}

    sweep(tmp_path)
    assert visible(tmp_path) == {"a": "new", "c": "new"}
    assert len(list(tmp_path.iterdir())) == 2, "the stage is removed once its plan is completed"


def test_a_write_interrupted_before_its_first_move_leaves_no_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("old")
    replace = Path.replace

    def interrupted(self: Path, target: Path) -> Path:
        replace(self, target)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fill(tmp_path, {"a": "new"}, ("a",))

    assert visible(tmp_path) == {"a": "old"}
    assert len(list(tmp_path.iterdir())) == 1


def test_single_files_of_earlier_versions_are_removed_unless_locked(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    left, used, link = (tmp_path / f".graphite-gen.{name}.tmp" for name in ("left", "used", "link"))
    (tmp_path / "target").write_text("x")
    link.symlink_to(tmp_path / "target")
    left.write_text("half")
    with used.open("x") as stream:
        stream.write("half")
        stream.flush()
        fcntl.flock(stream, fcntl.LOCK_EX)
        sweep(tmp_path)
        assert not left.exists()
        assert used.read_text() == "half"
        assert link.read_text() == "x"

    sweep(tmp_path)
    assert not used.exists()


@pytest.mark.parametrize(
    "plan",
    [
        *({"old": ["../victim"], "new": []}, {"old": [], "new": ["../../b"]}, {"old": [".."], "new": []}, ["old"], 3),
        {"old": [], "new": ["diary"]},
    ],
)
def test_a_plan_does_not_leave_its_folder_or_follow_links(tmp_path: Path, plan: object) -> None:
    stage = tmp_path / "folder" / ".graphite-gen.0123456789abcdef.tmp"
    for folder in (stage / "old", tmp_path / "secret"):
        folder.mkdir(parents=True)
    (stage / "new").symlink_to(tmp_path / "secret") if "diary" in str(plan) else (stage / "new").mkdir()
    (stage / "plan.json").write_text(json.dumps(plan))
    for file in (tmp_path / "victim", tmp_path / "secret" / "diary"):
        file.write_text("dear")

    sweep(tmp_path / "folder")

    assert (tmp_path / "victim").read_text() == (tmp_path / "secret" / "diary").read_text() == "dear"


def test_a_stage_in_use_is_not_removed(tmp_path: Path) -> None:
    with replacing(tmp_path / "a") as stream, staging(tmp_path) as stage:
        stream.write(b"a")
        write_file(tmp_path / "b", "b")
        sweep(tmp_path)
        assert stage.exists()

    assert visible(tmp_path) == {"a": "a", "b": "b"}


def test_without_support_for_locks_nothing_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    left = tmp_path / ".graphite-gen.0123456789abcdef.tmp"
    left.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(pytest.importorskip("fcntl"), "flock", refuse)
        write_file(tmp_path / "a", "a")
        assert left.exists()

    write_file(tmp_path / "a", "a")
    assert not left.exists()


def test_the_stage_of_another_user_is_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = tmp_path / ".graphite-gen.0123456789abcdef.tmp"
    left.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getuid", lambda: left.stat().st_uid + 1)
        sweep(tmp_path)
        assert left.exists()
    sweep(tmp_path)
    assert not left.exists()


def test_a_file_is_on_disk_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, fsync = list[tuple[bool, bool]](), os.fsync

    def spy(descriptor: int) -> None:
        synced.append((stat.S_ISREG(os.fstat(descriptor).st_mode), (tmp_path / "a").exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", spy)
    with replacing(tmp_path / "a") as stream:
        stream.write(b"abc")
    # The file, then the folder.
    assert synced == [(True, False), (False, True)]
