"""Targets appear whole or not at all; sources are opened carefully."""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphite_gen.errors import FormatError, OutputError
from graphite_gen.formats import FORMATS, _files, read_graphs, write_graphs
from graphite_gen.graph import SimpleGraph

GRAPH = SimpleGraph.from_pairs(3, [(0, 1)])


def failing(error: BaseException) -> Iterator[SimpleGraph]:
    yield GRAPH
    raise error


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "edgelist"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("x"), MemoryError()])
def test_a_failure_on_the_way_leaves_nothing_and_keeps_what_was(
    format: str, error: BaseException, tmp_path: Path
) -> None:
    old = tmp_path / f"old.{format}"
    old.write_bytes(b"precious")

    for target in (old, tmp_path / f"new.{format}"):
        with pytest.raises(type(error)):
            write_graphs(failing(error), target, force=True)

    assert [path.name for path in tmp_path.iterdir()] == [old.name]
    assert old.read_bytes() == b"precious"


def test_an_existing_file_is_replaced_only_by_force(tmp_path: Path) -> None:
    target = tmp_path / "a.g6"
    target.write_text("precious")

    with pytest.raises(OutputError, match="pass --force"):
        write_graphs([GRAPH], target)
    assert target.read_text() == "precious"
    write_graphs([GRAPH], target, force=True)

    assert next(read_graphs(target)).nodes == 3


def test_a_file_may_be_read_and_replaced_at_once(tmp_path: Path) -> None:
    write_graphs([GRAPH] * 9000, tmp_path / "a.g6")

    assert write_graphs(read_graphs(tmp_path / "a.g6"), tmp_path / "a.g6", force=True) == 9000
    assert sum(1 for _ in read_graphs(tmp_path / "a.g6")) == 9000


def test_a_new_file_has_the_usual_permissions_and_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    (tmp_path / "link.g6").symlink_to(tmp_path / "real.g6")
    write_graphs([GRAPH], tmp_path / "link.g6")

    assert (tmp_path / "link.g6").is_symlink()
    assert stat.S_IMODE((tmp_path / "real.g6").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


@pytest.mark.parametrize("format", FORMATS)
def test_targets_that_cannot_be_are_named(format: str, tmp_path: Path) -> None:
    (tmp_path / f"folder.{format}").mkdir()

    with pytest.raises(OutputError, match="is a folder"):
        write_graphs([GRAPH], tmp_path / f"folder.{format}", force=True)
    with pytest.raises(OutputError, match=r"the folder '.*missing' does not exist"):
        write_graphs([GRAPH], tmp_path / "missing" / f"a.{format}")
    with pytest.raises(OutputError, match="There are no graphs"):
        write_graphs([], tmp_path / f"a.{format}")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    with pytest.raises(OutputError, match="Permission denied"):
        write_graphs([GRAPH], tmp_path / "a.g6")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("format", [name for name in FORMATS if name not in ("h5", "edgelist")])
def test_a_full_disk_is_one_clear_line(format: str) -> None:
    with pytest.raises(OutputError, match="No space left"):
        write_graphs([GRAPH] * 5000, "/dev/full", format=format)


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="there is no /dev/null here")
def test_a_device_is_written_to_and_stays_one() -> None:
    assert write_graphs([GRAPH], "/dev/null", format="g6") == 1
    assert Path("/dev/null").is_char_device()
    with pytest.raises(OutputError, match="HDF5"):
        write_graphs([GRAPH], "/dev/null", format="h5")


def test_a_broken_pipe_is_left_to_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.BytesIO):
        def write(self, data: object) -> int:
            raise BrokenPipeError

    out = io.TextIOWrapper(Broken())
    monkeypatch.setattr(sys, "stdout", out)

    with pytest.raises(BrokenPipeError):
        write_graphs([GRAPH], "-", format="g6")


def test_a_template_writes_one_file_each_and_refuses_a_folder_with_such_files(tmp_path: Path) -> None:
    template = f"{tmp_path}/deep/er/{{index:04d}}.g6"

    assert write_graphs([GRAPH] * 12, template) == 12

    names = [path.name for path in sorted((tmp_path / "deep" / "er").iterdir())]
    assert names == [f"{i:04d}.g6" for i in range(12)]
    assert sum(1 for _ in read_graphs(tmp_path / "deep" / "er")) == 12
    with pytest.raises(OutputError, match=r"0000\.g6' exists: pass --force"):
        write_graphs([GRAPH], template)
    assert write_graphs([GRAPH] * 3, template, force=True) == 3


@pytest.mark.parametrize(
    "name",
    [
        "{index}{other}.g6",
        "{index.__class__}.g6",
        "{index[0]}.g6",
        "{index!r}.g6",
        "{index:0999999999d}.g6",
        "{index:/<4}.g6",
        "{index:x}.g6",
        "{index}-{index}.g6",
        "{index.g6",
        "{index}/a.g6",
        "{index:{index}}.g6",
    ],
)
def test_other_templates_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="template"):
        write_graphs([GRAPH], f"{tmp_path}/{name}")

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "h5"])
def test_gzip_cut_short_or_damaged_is_refused(format: str, tmp_path: Path) -> None:
    write_graphs([GRAPH], tmp_path / f"a.{format}.gz")
    data = (tmp_path / f"a.{format}.gz").read_bytes()
    changed = data[:12] + bytes(255 - byte for byte in data[12:])

    for number, body in enumerate((data[:-9], data[:11], changed, data[:-1])):
        bad = tmp_path / f"bad{number}.{format}.gz"
        bad.write_bytes(body)
        with pytest.raises(FormatError, match=rf"bad{number}\.{format}\.gz', byte \d+: the gzip data are damaged"):
            list(read_graphs(bad))


def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_files, "_BOMB_BYTES", 1 << 20)
    for name, body in (("newlines.jsonl.gz", b"\n" * (1 << 24)), ("line.g6.gz", b"~" * (1 << 24))):
        (tmp_path / name).write_bytes(gzip.compress(body))

        with pytest.raises(FormatError, match="expand more than 500 times"):
            list(read_graphs(tmp_path / name))


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_files, "MAX_LINE", 1000)
    (tmp_path / "a.jsonl").write_bytes(b"[" * 1002)

    with pytest.raises(FormatError, match="line 1: longer than 1000 bytes"):
        list(read_graphs(tmp_path / "a.jsonl"))


def test_missing_and_unreadable_sources_are_named(tmp_path: Path) -> None:
    for name in ("a.g6", "a.h5"):
        with pytest.raises(FormatError, match="does not exist"):
            read_graphs(tmp_path / name)
    with pytest.raises(FormatError, match="holds no file of graphs"):
        read_graphs(tmp_path)
