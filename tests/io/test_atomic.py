import errno
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from killing import killed_at

from graphite_gen.io.atomic import filling, is_settled, move_all, replacing, staging, sweep

STAGE = ".graphite-gen.0123456789abcdef.tmp"


def contents(folder: Path) -> dict[str, str]:
    """The texts of all files; folders, such as a stage, have none."""
    return {path.name: path.read_text() if path.is_file() else "" for path in folder.iterdir()}


def visible(folder: Path) -> dict[str, str]:
    return {name: text for name, text in contents(folder).items() if not name.startswith(".")}


def write_files(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).write_text(text)


def replace_file(path: Path, text: str) -> None:
    with replacing(path) as stream:
        stream.write(text.encode())


def fill(folder: Path, texts: dict[str, str], old: str = "") -> None:
    with filling(folder, lambda: [folder / name for name in old]) as new:
        write_files(new, texts)


def kills(task: Callable[[], object], least: int) -> Iterator[None]:
    """Kill a task right before its first file operation, then before its second, and so on until it finishes."""
    operation = 0
    while killed_at(operation, task):
        operation += 1
        yield
    assert operation >= least


def interrupt(
    patch: pytest.MonkeyPatch, method: str, calls: range, error: BaseException, *, late: bool = False
) -> None:
    """Let some calls of a method of paths fail, before or after their work is done."""
    work, number = getattr(Path, method), count()

    def interrupted(self: Path, target: Path) -> Path:
        if next(number) not in calls:
            return work(self, target)
        if late:
            work(self, target)
        raise error

    patch.setattr(Path, method, interrupted)


@pytest.mark.parametrize("fails_at", [0, 1, 2, 3])
@pytest.mark.parametrize("late", [False, True])
def test_all_or_no_moves_are_done(fails_at: int, late: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {name: name for name in "abcd"}
    write_files(tmp_path, before)
    # The last file gets the name that the first one had.
    moves = [(tmp_path / old, tmp_path / new) for old, new in ("ae", "bf", "cg", "da")]

    with monkeypatch.context() as patch:
        interrupt(patch, "rename", range(fails_at, fails_at + 1), KeyboardInterrupt(), late=late)
        with pytest.raises(KeyboardInterrupt):
            move_all(moves)
    assert contents(tmp_path) == before

    move_all(moves)
    assert contents(tmp_path) == {"e": "a", "f": "b", "g": "c", "a": "d"}


def test_a_file_stays_complete_when_its_writer_is_killed_and_the_next_one_cleans_up(tmp_path: Path) -> None:
    replace_file(tmp_path / "file", "old")
    for _ in kills(lambda: replace_file(tmp_path / "file", "new"), 3):
        assert visible(tmp_path)["file"] in ("old", "new")
        replace_file(tmp_path / "other", "")
        assert contents(tmp_path).keys() == {"file", "other"}, "the stage of the killed writer is removed"


def test_a_new_folder_appears_with_all_its_files_or_not_at_all(tmp_path: Path) -> None:
    wanted, out = {"a": "1", "b": "2", "c": "3"}, tmp_path / "out"
    for _ in kills(lambda: fill(out, wanted), 5):
        assert not out.exists() or contents(out) == wanted
        fill(out, wanted, "abc" if out.exists() else "")
        assert list(contents(tmp_path)) == ["out"], "the stage of the killed writer is removed"
        shutil.rmtree(out)
    assert list(contents(tmp_path)) == ["out"]


def test_files_in_an_existing_folder_are_all_replaced_or_none_after_the_next_write(tmp_path: Path) -> None:
    before, after = {"a": "old", "b": "old", "other": "x"}, {"a": "new", "c": "new", "other": "x"}
    write_files(tmp_path, before)
    halves = 0
    for _ in kills(lambda: fill(tmp_path, {"a": "new", "c": "new"}, "ab"), 5):
        is_half = visible(tmp_path) not in (before, after)
        halves += is_half
        assert not (is_half and is_settled(tmp_path)), "a reader could not tell"
        sweep(tmp_path)
        assert is_settled(tmp_path)
        assert contents(tmp_path) in (before, after)
        for path in tmp_path.iterdir():
            path.unlink()
        write_files(tmp_path, before)
    assert halves, "no kill fell between two moves"
    assert visible(tmp_path) == after


def test_a_file_that_appears_meanwhile_is_kept_and_reported(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")

    def appear() -> list[Path]:
        (tmp_path / "c").write_text("foreign")
        return [tmp_path / "gone", tmp_path / "a"]

    with pytest.raises(FileExistsError, match="c"), filling(tmp_path, appear) as new:
        write_files(new, dict.fromkeys("abc", "new"))

    assert contents(tmp_path) == {"a": "old", "c": "foreign"}


@pytest.mark.parametrize("moved", range(6))
def test_a_plan_is_completed_over_files_that_appeared_meanwhile(moved: int, tmp_path: Path) -> None:
    stage = tmp_path / STAGE
    for folder in (stage / "old", stage / "new"):
        folder.mkdir(parents=True)
    write_files(tmp_path, dict.fromkeys("ab", "old"))
    write_files(stage / "new", dict.fromkeys("ace", "new"))
    # "e" was to be replaced too, but was removed before it could be moved.
    (stage / "plan.json").write_text(json.dumps({"old": ["a", "b", "e"], "new": ["e", "a", "c"]}))
    moves = [(tmp_path / name, stage / "old" / name) for name in "ab"]
    moves += [(stage / "new" / name, tmp_path / name) for name in "eac"]
    for old, new in moves[:moved]:
        old.rename(new)
    write_files(tmp_path, dict.fromkeys("c" * (moved < 5) + "a" * (moved == 2), "foreign"))

    sweep(tmp_path)

    assert contents(tmp_path) == {"a": "new", "c": "new", "e": "new"}


def test_old_files_survive_when_they_cannot_be_moved_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, dict.fromkeys("ab", "old"))

    with monkeypatch.context() as patch:
        interrupt(patch, "rename", range(2, 99), OSError(errno.EIO, "Input/output error"))
        with pytest.raises(OSError, match="Input/output"):
            fill(tmp_path, {"a": "new", "c": "new"}, "ab")
    assert not is_settled(tmp_path)
    assert {path.name for path in tmp_path.glob(".*/old/*")} == {"a", "b"}

    sweep(tmp_path)
    assert contents(tmp_path) == {"a": "new", "c": "new"}, "the stage is removed once its plan is completed"


def test_a_write_interrupted_before_its_moves_leaves_no_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("old")
    interrupt(monkeypatch, "replace", range(1), KeyboardInterrupt(), late=True)

    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path, {"a": "new"}, "a")

    assert contents(tmp_path) == {"a": "old"}


@pytest.mark.parametrize(
    "plan",
    [
        *({"old": ["../victim"], "new": []}, {"old": [], "new": ["../../b"]}, {"old": [".."], "new": []}, ["old"], 3),
        {"old": [], "new": ["diary"]},
    ],
)
def test_a_plan_does_not_leave_its_folder_or_follow_links(tmp_path: Path, plan: object) -> None:
    stage = tmp_path / "folder" / STAGE
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
        replace_file(tmp_path / "b", "b")
        sweep(tmp_path)
        assert stage.exists()

    assert visible(tmp_path) == {"a": "a", "b": "b"}


def refuse_locks(descriptor: int, operation: int) -> None:
    raise OSError(errno.ENOLCK, "No locks available")


@pytest.mark.parametrize(("name", "changed"), [("fcntl.flock", refuse_locks), ("os.getuid", lambda: os.geteuid() + 1)])
def test_without_support_for_locks_and_of_another_user_no_stage_is_removed(
    name: str, changed: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = tmp_path / STAGE
    left.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(name, changed)
        replace_file(tmp_path / "a", "a")
        assert left.exists()

    sweep(tmp_path)
    assert contents(tmp_path) == {"a": "a"}


def test_a_file_is_on_disk_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, fsync = list[tuple[bool, bool]](), os.fsync

    def spy(descriptor: int) -> None:
        synced.append((stat.S_ISREG(os.fstat(descriptor).st_mode), (tmp_path / "a").exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", spy)
    replace_file(tmp_path / "a", "abc")
    # The file, then the folder.
    assert synced == [(True, False), (False, True)]
