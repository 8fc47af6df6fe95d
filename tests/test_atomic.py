from __future__ import annotations

import stat
from pathlib import Path

import pytest

from graphite_gen.atomic import move_all, replacing, staging


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_file_is_replaced_whole_or_stays(error: type[BaseException], tmp_path: Path) -> None:
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


def test_a_stage_is_hidden_and_goes_with_the_folders_made_for_it_if_anything_fails(tmp_path: Path) -> None:
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
    # The last one takes a name that the first one has left.
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
