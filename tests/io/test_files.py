import gzip
import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphite_gen.errors import FormatError, OutputError
from graphite_gen.graph import SimpleGraph
from graphite_gen.io import FORMATS, read_graphs, write_graphs
from graphite_gen.io import files as _files

from .graphs import assert_not_written, assert_refused

GRAPH = SimpleGraph.from_pairs(3, [(0, 1)])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def failing(error: BaseException) -> Iterator[SimpleGraph]:
    yield GRAPH
    raise error


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *((f"old/a.{format}", f"old/b.{format}") for format in FORMATS if format != "edgelist"),
        *((f"old/{{index}}.{suffix}", f"new/deep/{{index}}.{suffix}") for suffix in ("g6", "h5", "graphml.gz")),
    ],
)
@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("x"), MemoryError(), OSError(28, "No space left")])
def test_a_failure_leaves_nothing_and_keeps_what_was(old: str, new: str, error: BaseException, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    write_graphs([GRAPH] * 3, tmp_path / old)
    before = contents(tmp_path / "old")

    for target in (old, new):
        with pytest.raises(OutputError if isinstance(error, OSError) else type(error)):
            write_graphs(failing(error), tmp_path / target, force=True)

    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert contents(tmp_path / "old") == before


@pytest.mark.parametrize(("name", "count"), [("a.g6", 9000), ("{index:02d}.g6", 6)])
def test_files_are_replaced_only_with_force_and_read_meanwhile(name: str, count: int, tmp_path: Path) -> None:
    write_graphs([SimpleGraph.from_pairs(1 + n % 60, []) for n in range(count)], tmp_path / name)

    assert_not_written(tmp_path / name, "output-exists", GRAPH)
    assert write_graphs(read_graphs(tmp_path), tmp_path / name, force=True) == count
    assert [graph.nodes for graph in read_graphs(tmp_path)] == [1 + n % 60 for n in range(count)]


def test_a_new_file_has_the_usual_permissions_and_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    (tmp_path / "link.g6").symlink_to(tmp_path / "real.g6")
    write_graphs([GRAPH], tmp_path / "link.g6")

    assert (tmp_path / "link.g6").is_symlink()
    assert stat.S_IMODE((tmp_path / "real.g6").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


@pytest.mark.parametrize("name", [*(f"a.{format}" for format in FORMATS), "{index}.g6"])
def test_targets_that_cannot_be_written_are_named(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name.format(index=1)
    folder.mkdir()
    (tmp_path / "file").touch()

    assert_not_written(tmp_path / name, "output-is-folder", *[GRAPH] * (1 + (folder.name != name)), force=True)
    for parent in ("file", "file/deeper"):
        assert_not_written(tmp_path / parent / name, "file' is a file, not a folder", GRAPH)
    assert_not_written(tmp_path / f"b{name}", "no graphs")
    if folder.name == name:
        assert_not_written(tmp_path / "missing" / name, "missing' does not exist", GRAPH)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([folder.name, "file"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    assert_not_written(tmp_path / "a.g6", "permission denied", GRAPH)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("format", [name for name in FORMATS if name not in ("h5", "edgelist")])
def test_a_full_disk_is_reported(format: str) -> None:
    assert_not_written("/dev/full", "No space left", *[GRAPH] * 5000, format=format)


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="there is no /dev/null here")
def test_a_device_is_written_to_directly() -> None:
    assert write_graphs([GRAPH], "/dev/null", format="g6") == 1
    assert Path("/dev/null").is_char_device()
    assert_not_written("/dev/null", "h5-not-seekable", GRAPH, format="h5")


def test_files_of_a_template_are_replaced_together_with_force_and_others_stay(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "er"
    template, others = folder / "{index:02d}.g6", dict.fromkeys(("7.g6", "notes.txt", "000.g6"), b"precious")

    assert write_graphs([GRAPH] * 12, template) == 12
    assert sorted(contents(folder)) == [f"{i:02d}.g6" for i in range(12)]
    assert [graph.nodes for graph in read_graphs(folder)] == [3] * 12
    for name, data in others.items():
        (folder / name).write_bytes(data)

    assert_not_written(template, "output-exists", GRAPH)
    assert write_graphs([SimpleGraph.from_pairs(5, [])] * 2, template, force=True) == 2
    assert contents(folder) == {"00.g6": b"D??\n", "01.g6": b"D??\n", **others}


@pytest.mark.parametrize("suffix", ["g6", "h5", "graphml"])
def test_files_of_a_template_are_written_as_graphs_are_generated(suffix: str, tmp_path: Path) -> None:
    def graphs() -> Iterator[SimpleGraph]:
        for count in range(4):
            assert len(list(tmp_path.rglob(f"*.{suffix}"))) == count
            yield GRAPH

    assert write_graphs(graphs(), f"{tmp_path}/{{index}}.{suffix}") == 4


@pytest.mark.parametrize("what", ["weights", "features"])
@pytest.mark.parametrize("format", FORMATS)
def test_numbers_that_are_not_finite_are_not_written(format: str, what: str, tmp_path: Path) -> None:
    values = np.array([np.nan]) if what == "weights" else np.full((3, 1), np.inf, np.float32)

    assert_not_written(tmp_path / f"a.{format}", f"Graph 0 has a {what[:-1]}", replace(GRAPH, **{what: values}))


def test_closed_streams_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stdout", None)

    with pytest.raises(FormatError, match="closed"):
        read_graphs("-", format="g6")
    assert_not_written("-", "closed", GRAPH, format="g6")


@pytest.mark.parametrize(
    "name",
    [
        *("{index}{other}.g6", "{index.__class__}.g6", "{index[0]}.g6", "{index!r}.g6", "{index:0999999999d}.g6"),
        *("{index:/<4}.g6", "{index:x}.g6", "{index}-{index}.g6", "{index.g6", "{index}/a.g6", "{index:{index}}.g6"),
    ],
)
def test_other_templates_are_refused(name: str, tmp_path: Path) -> None:
    assert_not_written(tmp_path / name, "template", GRAPH)

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "h5"])
def test_truncated_or_damaged_gzip_is_refused(format: str, tmp_path: Path) -> None:
    write_graphs([GRAPH], tmp_path / f"a.{format}.gz")
    data = (tmp_path / f"a.{format}.gz").read_bytes()
    changed = data[:12] + bytes(255 - byte for byte in data[12:])

    for number, body in enumerate((data[:-9], data[:11], changed, data[:-1])):
        assert_refused(tmp_path / f"bad{number}.{format}.gz", r"byte \d+: the gzip data are damaged", body)


def test_gzip_bombs_and_long_lines_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_files, "_BOMB_BYTES", 1 << 20)
    for name, byte in (("newlines.jsonl.gz", b"\n"), ("line.g6.gz", b"~")):
        assert_refused(tmp_path / name, "500 times", gzip.compress(byte * (1 << 24)))
    monkeypatch.setattr(_files, "MAX_LINE", 1000)
    assert_refused(tmp_path / "a.jsonl", "line 1: .* 1000 bytes", b"[" * 1002)


@pytest.mark.parametrize("format", FORMATS)
def test_an_empty_file_has_no_graphs(format: str, tmp_path: Path) -> None:
    assert_refused(tmp_path / f"a.{format}", "no-graphs", "")
    if format not in ("edgelist", "h5"):
        assert_refused(tmp_path / f"a.{format}", "no-graphs", "\n  \n\n")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.edgelist", "0 1 nan"),
        *(("a.g6", "&A_"), ("a.g6", "~~~~~~~~")),
        ("a.graphml", "<graphml><graph><hyperedge/></graph></graphml>"),
        ("a.graphml", '<graphml><graph><edge source="a" target="b" sourceport="p"/></graph></graphml>'),
    ],
)
def test_content_that_another_format_would_not_fix_has_no_reason(name: str, text: str, tmp_path: Path) -> None:
    assert_refused(tmp_path / name, "finite|digraph6|at most|between two nodes|port", text + "\n", reason="")


@pytest.mark.parametrize("format", ["graphml", "h5", "jsonl", "gml", "g6"])
def test_truncated_files_and_those_in_another_format_are_damaged(format: str, tmp_path: Path) -> None:
    assert_refused(tmp_path / f"a.{format}", "file-damaged", "Dear reader, this is <no graph>.\n")
    write_graphs([SimpleGraph.from_pairs(5, [(0, 1)])] * (50 if format == "h5" else 1), tmp_path / f"b.{format}")
    data = (tmp_path / f"b.{format}").read_bytes()

    for part in (0.5, 0.9, 0.99) if format == "h5" else (0.5,):
        assert_refused(tmp_path / f"b.{format}", "file-damaged", data[: int(part * len(data))])


def test_missing_and_unsuitable_sources_are_refused(tmp_path: Path) -> None:
    for name in ("a.g6", "a.h5"):
        assert_refused(tmp_path / name, "input-missing")
    assert_refused(tmp_path, "no-graphs")
    assert_refused(tmp_path / "a.edgelist.gz", "no gzip data", b"\x1f")
    for name in ("config.json", "model.safetensors", "history.jsonl"):
        (tmp_path / name).touch()
    assert_refused(tmp_path, "model-not-graphs")


@pytest.mark.parametrize("name", ["a\0.g6", "\ud800.g6", "x" * 300 + ".g6", "loop/a.g6", "loop/{index}.g6"])
def test_names_that_no_file_can_have_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")

    with pytest.raises(FormatError, match=r"cannot be read|does not exist"):
        read_graphs(tmp_path / name)
    assert_not_written(tmp_path / name, "output-not-writable", GRAPH)
    assert [path.name for path in tmp_path.iterdir()] == ["loop"]


def test_a_broken_link_in_a_folder_is_refused(tmp_path: Path) -> None:
    write_graphs([GRAPH], tmp_path / "a.g6")
    (tmp_path / "b.g6").symlink_to(tmp_path / "moved.g6")

    with pytest.raises(FormatError, match=r"b\.g6") as caught:
        list(read_graphs(tmp_path))
    assert caught.value.reason == "input-missing"
