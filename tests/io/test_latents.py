from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from graphite_gen.data.encoded import EncodedGraph
from graphite_gen.errors import FormatError, OutputError
from graphite_gen.io import read_graphs
from graphite_gen.io.latents import read_latents, write_latents

SUFFIXES = ("h5", "hdf5", "npz", "csv", "jsonl")
FIELDS = ("mean", "std", "position", "features")


def encoded(nodes: int, *, rich: bool, names: tuple[Any, ...] | None = None) -> EncodedGraph:
    rng = np.random.default_rng(nodes)
    mean, std = rng.normal(size=(nodes, 3)).astype(np.float32), rng.random((nodes, 3)).astype(np.float32)
    position = rng.permutation(nodes).astype(np.int32)
    features = rng.normal(size=(nodes, 2)).astype(np.float32)

    return EncodedGraph(mean, std, position if rich else None, features if rich else None, names)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("rich", [False, True])
def test_latents_survive_a_round_trip(suffix: str, rich: bool, tmp_path: Path) -> None:
    graphs = [encoded(1, rich=rich), encoded(4, rich=rich, names=("a", "b,c", "ü", '"')), encoded(3, rich=rich)]

    write_latents(graphs, tmp_path / f"z.{suffix}", model="ego")
    found = read_latents(tmp_path / f"z.{suffix}")

    for one, other in zip(graphs, found, strict=True):
        for name in FIELDS:
            before, after = getattr(one, name), getattr(other, name)
            assert (before is None) == (after is None)
            assert before is None or (np.array_equal(before, after) and before.dtype == after.dtype)
            assert after is None or after.flags.writeable, "torch takes no arrays that are read-only"
        assert one.names == other.names


def test_hdf5_has_the_documented_layout_and_is_no_file_of_graphs(tmp_path: Path) -> None:
    graphs = [encoded(2, rich=True), encoded(3, rich=True)]
    write_latents(graphs, tmp_path / "z.h5", model="ego")

    with h5py.File(tmp_path / "z.h5") as file:
        assert dict(file.attrs) == {"format": "graphite-gen latents", "version": 1, "model": "ego"}
        assert file["node_counts"][:].tolist() == [2, 3]
        assert file["mean"].shape == file["std"].shape == (5, 3)
        assert np.array_equal(file["graph_vectors"][1], graphs[1].vector)
    with pytest.raises(FormatError, match="contains latents, no graphs"):
        list(read_graphs(tmp_path / "z.h5"))


def test_means_are_enough(tmp_path: Path) -> None:
    z = np.arange(8.0).reshape(4, 2)
    np.savez(tmp_path / "z.npz", node_counts=[1, 3], mean=z)
    (tmp_path / "z.csv").write_text("graph,z0,z1\n0,0,1\n1,2,3\n1,4,5\n1,6,7\n")
    (tmp_path / "z.jsonl").write_text(
        json.dumps({"mean": z[:1].tolist()}) + "\n" + json.dumps({"mean": z[1:].tolist()})
    )

    for suffix in ("npz", "csv", "jsonl"):
        first, second = read_latents(tmp_path / f"z.{suffix}")
        assert np.array_equal(np.concatenate([first.mean, second.mean]), z)
        assert not second.std.any()
        assert second.position is second.names is None


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("content", [b"", b"graph,node\n", b"{}\n", b"[[1]]", b"\xff\xfe\x00junk", b"PK\x03\x04"])
def test_files_without_latents_are_one_error(suffix: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / f"z.{suffix}").write_bytes(content)

    with pytest.raises(FormatError, match=r"z\."):
        read_latents(tmp_path / f"z.{suffix}")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_truncated_files_are_refused_or_have_fewer_graphs(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"z.{suffix}"
    write_latents([encoded(n, rich=True) for n in (3, 4, 5)], path)
    data = path.read_bytes()
    for size in range(1, len(data), max(1, len(data) // 40)):
        path.write_bytes(data[:size])
        try:
            assert len(read_latents(path)) <= 3
        except FormatError:
            continue


@pytest.mark.parametrize(
    "arrays",
    [
        {"mean": np.zeros((3, 2))},
        {"node_counts": np.array([4]), "mean": np.zeros((3, 2))},
        {"node_counts": np.array([-1, 4]), "mean": np.zeros((3, 2))},
        {"node_counts": np.array([3]), "mean": np.zeros((3, 2)), "position": np.array([0, 0, 1])},
        {"node_counts": np.array([3.0]), "mean": np.zeros((3, 2))},
        {"node_counts": np.array([3]), "mean": np.full((3, 2), np.inf)},
        {"node_counts": np.array([3]), "mean": np.array([[{}], [1], [2]], dtype=object)},
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays: dict[str, Any], tmp_path: Path) -> None:
    np.savez(tmp_path / "z.npz", **arrays)

    with pytest.raises(FormatError):
        read_latents(tmp_path / "z.npz")


def test_damaged_archives_and_line_ends_are_one_error(tmp_path: Path) -> None:
    path = tmp_path / "z.npz"
    write_latents([encoded(3, rich=False)], path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for old, new in ((b"(3,", b"(999999999999,"), (b"}", b"(")):
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data.replace(old, new, 1) if name == "mean.npy" else data)
        with pytest.raises(FormatError, match="npz"):
            read_latents(path)

    write_latents([encoded(3, rich=False)], path, force=True)
    data = bytearray(path.read_bytes())
    # The sizes in the first entry of the directory.
    at = data.index(b"PK\x01\x02") + 20
    data[at : at + 8] = (2**31).to_bytes(4, "little") * 2
    path.write_bytes(data)
    with pytest.raises(FormatError, match="larger than the file"):
        read_latents(path)

    (tmp_path / "z.csv").write_bytes(b"graph,z0\r0,1\r")
    with pytest.raises(FormatError, match="csv"):
        read_latents(tmp_path / "z.csv")


def test_files_are_written_once_and_completely(tmp_path: Path) -> None:
    target = tmp_path / "z.csv"
    write_latents([encoded(2, rich=False)], target)
    before = target.read_bytes()

    with pytest.raises(OutputError, match="exists"):
        write_latents([encoded(3, rich=False)], target)
    with pytest.raises(OutputError, match="no latents"):
        write_latents([], target, force=True)
    with pytest.raises(FormatError, match="suffix"):
        write_latents([encoded(3, rich=False)], tmp_path / "z.pkl")
    with pytest.raises(FormatError, match="does not exist"):
        read_latents(tmp_path / "none.h5")
    assert target.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["z.csv"]
