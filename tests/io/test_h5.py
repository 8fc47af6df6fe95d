import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from graphite_gen.errors import FormatError
from graphite_gen.graph import SimpleGraph
from graphite_gen.io import read_graphs, write_graphs
from graphite_gen.io.h5_writer import PatientFile
from graphite_gen.records import Provenance

from .graphs import assert_kept, assert_not_written, assert_refused, assert_same

PATH = np.array([[0, 1], [1, 2]], np.int32)


def test_the_layout_is_the_documented_one_also_after_conversion(tmp_path: Path) -> None:
    def graph(features: float, weights: list[float], **attributes: object) -> SimpleGraph:
        e = len(weights)
        rows = np.full((e + 1, 2), features, np.float32)
        return SimpleGraph(e + 1, PATH[:e], np.array(weights, float), rows, attributes=attributes)

    graphs = [
        graph(1, [1, 2], split="test", score=0.5),
        graph(0, [], split="train", score=1.5),
        graph(1, [3], split="validation"),
    ]
    write_graphs(graphs, tmp_path / "a.h5", provenance=Provenance("ego", {"m": 4}, 7, "generate", "name"))
    write_graphs((graph for graph in read_graphs(tmp_path / "a.h5")), tmp_path / "b.h5")

    with h5py.File(tmp_path / "b.h5") as file:
        known = {"format": "graphite-gen", "version": 1, "family": "ego", "seed": 7}
        assert {name: file.attrs[name] for name in known} == known
        assert json.loads(file.attrs["parameters"]) == {"m": 4}
        for name, dtype, values in (
            ("node_counts", np.int32, [3, 1, 2]),
            ("edge_counts", np.int32, [2, 0, 1]),
            ("edges", np.int32, [[0, 1], [1, 2], [0, 1]]),
            ("weights", np.float64, [1, 2, 3]),
            ("node_features", np.float32, [[1, 1]] * 3 + [[0, 0]] + [[1, 1]] * 2),
            ("split", np.uint8, [2, 0, 1]),
        ):
            assert file[name].dtype == dtype
            assert file[name][:].tolist() == values
        assert [text.decode() for text in file["graph_attributes/score"][:]] == ["0.5", "1.5", ""]


def test_columns_of_one_kind_are_numbers_and_become_text_when_another_kind_comes(tmp_path: Path) -> None:
    def graph(value: Any) -> SimpleGraph:
        return SimpleGraph(2, PATH[:1], node_attributes={"a/b%": [1, 2]}, edge_attributes={"x": [value]})

    graphs = [graph(i) for i in range(5000)] + [graph("late")]
    assert_kept(graphs[:-1], tmp_path / "a.h5")
    assert_kept(graphs, tmp_path / "b.h5")

    with h5py.File(tmp_path / "a.h5") as file, h5py.File(tmp_path / "b.h5") as other:
        assert file["edge_attributes/x"].dtype == np.int64
        assert file["node_attributes/a%2Fb%25"].dtype == np.int64
        assert list(other["edge_attributes"]) == ["x"]


def test_what_only_late_graphs_carry_and_texts_of_growing_width_come_back(tmp_path: Path) -> None:
    bare = SimpleGraph(3, PATH)
    arrays, names = (np.array([1.0, 2.0]), np.ones((3, 2), np.float32)), ("a", 5, "c")
    rich = SimpleGraph(3, PATH, *arrays, names, {"k": [1, None, 2]}, {"e": [[1], "x"]}, {"split": "train", "fact": 3})
    odd = SimpleGraph(3, PATH, attributes={"split": "other"})
    wide = [SimpleGraph(1, PATH[:0], attributes={"note": "x" * (i // 1000) ** 3}) for i in range(13_000)]

    assert_kept([bare] * 4100 + [rich, bare, odd] + wide, tmp_path / "a.h5")


def good(file: Any) -> None:
    file["node_counts"] = np.array([3, 2], np.int32)
    file["edge_counts"] = np.array([2, 1], np.int32)
    file["edges"] = np.array([[0, 1], [1, 2], [0, 1]], np.int32)


def put(name: str, value: Any = None, **options: Any) -> Callable[[Any], None]:
    """Replace an object of a file by a value, or by a data set with the given options."""

    def change(file: Any) -> None:
        file.pop(name, None)
        if options:
            file.create_dataset(name, **options)
        else:
            file[name] = value

    return change


def virtual(file: Any) -> None:
    del file["edges"]
    layout = h5py.VirtualLayout((3, 2), "i4")
    layout[:] = h5py.VirtualSource("/etc/hostname", "edges", (3, 2))
    file.create_virtual_dataset("edges", layout)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda file: file.attrs.update(format="graphite-gen", version=2), "version 2 of the format 'graphite-gen'"),
        (lambda file: file.attrs.update(format="other", version=1), "format 'other'"),
        (lambda file: file.attrs.update(version=1), "format None"),
        (lambda file: file.__delitem__("edges"), "dataset 'edges': missing"),
        (lambda file: file.__delitem__("node_counts"), "dataset 'node_counts': missing"),
        (put("node_counts", np.array([3, 2**31 - 1], np.int32)), "graph 1: 'node_counts' is 2147483647"),
        (put("node_counts", np.array([3, -1], np.int32)), "graph 1: 'node_counts' is -1"),
        (put("node_counts", np.array([3.0, 2.0])), "expected integers"),
        (put("node_counts", np.array([3, 2, 1], np.int32)), "'edge_counts': has 2 rows"),
        (put("node_counts", np.array([2, 3], np.int32)), "graph 0: an edge ends at node 2"),
        (put("edge_counts", np.array([2, 2], np.int32)), "does not sum to the 3 rows"),
        (put("edge_counts", np.array([4, -1], np.int32)), "'edge_counts' is 4"),
        (put("edges", np.array([0, 1, 1, 2, 0, 1], np.int32)), "has shape"),
        (put("edges", np.zeros((3, 3), np.int32)), "has shape"),
        (put("edges", 7), "has shape"),
        (put("edges", np.array([[0, 1], [0, 1], [0, 1]], np.int32)), "graph 0: the edge 0 - 1 is repeated"),
        (put("edges", np.array([[0, 1], [1, 2], [1, 1]], np.int32)), "graph 1: node 1 has a self-loop"),
        (put("edges", np.array([[0, 1], [-1, 2], [0, 1]], np.int32)), "graph 0: an edge ends at node -1"),
        (put("weights", np.array([1, np.nan, 1])), "graph 0: a weight is not a finite"),
        (put("weights", np.array([1.0, 1.0])), "'weights': has 2 rows"),
        (put("weights", np.array(["a", "b", "c"], dtype=h5py.string_dtype())), "expected numbers"),
        (put("node_features", np.zeros((4, 2))), "'node_features': has 4 rows"),
        (put("node_features", np.array([1, 1, 1, 1, np.nan])[:, None]), "graph 1: a feature is not a finite"),
        (put("node_features", np.array([1, 1e39, 1, 1, 1])[:, None]), "graph 0: a feature is not a finite"),
        (put("split", np.array([0, 3], np.uint8)), "graph 1: split is 3"),
        (put("directed", np.array([0, 3], np.uint8)), "graph 1: directed is 3"),
        (put("directed", np.array([1], np.uint8)), "'directed': has 1 rows"),
        (put("directed", np.array([0.0, 1.0])), "'directed': has dtype float64"),
        (put("node_attributes", 3), "not a group"),
        (put("node_attributes/x", np.zeros(4)), "'x': has 4 rows"),
        (put("edge_attributes/x", np.array([b"{", b"", b""])), "not JSON"),
        (put("edge_attributes/x", np.array(["1"] * 3, dtype=h5py.string_dtype())), "expected numbers"),
        (put("edges", h5py.SoftLink("/node_counts")), "soft or external link"),
        (put("edges", h5py.ExternalLink("/etc/hostname", "/edges")), "missing|external link|damaged"),
        (virtual, "virtual"),
        (put("edges", shape=(3, 2), dtype="i4", external=[("/etc/hostname", 0, 24)]), "external"),
        (put("edges", shape=(2**31 - 1, 2), dtype="i4", chunks=(1024, 2)), "stores almost none"),
        (
            put("node_counts", data=np.zeros(10**7, np.int32), chunks=(10**6,), compression="gzip"),
            "expands to more than 500 times",
        ),
        (put("node_features", shape=(5, 2**29), dtype="f4", chunks=(5, 2**29 // 8)), "blocks larger than"),
    ],
)
def test_invalid_files_are_refused_in_one_line(change: Callable[[Any], None], expected: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "bad.h5", "w") as file:
        good(file)
        change(file)

    assert_refused(tmp_path / "bad.h5", expected)


def test_files_of_other_programs_have_no_version(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "many.h5", "w") as file:
        good(file)
        file["split"] = np.array([1, 255], np.uint8)
    with h5py.File(tmp_path / "network.h5", "w") as file:
        file["edge_index"], file["labels"] = PATH.T, np.array([1, -1, 0])
        file["train_idx"], file["val_idx"], file["test_idx"] = (np.array([node]) for node in range(3))

    (network,) = read_graphs(tmp_path / "network.h5")

    assert [graph.edges.tolist() for graph in read_graphs(tmp_path / "many.h5")] == [[[0, 1], [1, 2]], [[0, 1]]]
    assert [dict(graph.attributes) for graph in read_graphs(tmp_path / "many.h5")] == [{"split": "validation"}, {}]
    columns = {"label": [1, None, 0], "split": ["train", "validation", "test"]}
    assert_same(network, SimpleGraph(3, PATH, node_attributes=columns))


def test_directions_are_a_dataset_that_only_files_of_directed_graphs_have(tmp_path: Path) -> None:
    arcs = SimpleGraph(3, np.array([[0, 1], [1, 0], [2, 0]], np.int32), np.arange(3.0), directed=True)
    plain = SimpleGraph(3, PATH)
    assert_kept([plain], tmp_path / "a.h5")
    assert_kept([plain] * 5000 + [arcs, plain], tmp_path / "b.h5")

    with h5py.File(tmp_path / "a.h5") as file, h5py.File(tmp_path / "b.h5", "r+") as other:
        assert "directed" not in file
        assert other["directed"].dtype == np.uint8
        assert np.flatnonzero(other["directed"][:]).tolist() == [5000]
        assert other["edges"][-5:-2].tolist() == [[0, 1], [1, 0], [2, 0]]
        # Another program may write arcs in any order, with or without that dataset.
        other["edges"][-5:-2] = [[2, 0], [1, 0], [0, 1]]
        other["weights"][-5:-2] = [2, 1, 0]
    assert_same(list(read_graphs(tmp_path / "b.h5"))[5000], arcs)
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file["node_counts"], file["edge_counts"] = np.array([3], np.int32), np.array([2], np.int32)
        file["edges"] = np.array([[2, 1], [1, 2]], np.int32)
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file["edge_index"] = np.array([[2, 1], [1, 2]])
    for name in ("c.h5", "d.h5"):
        (found,) = read_graphs(tmp_path / name, directed=True)
        assert_same(found, SimpleGraph.from_pairs(3, [(1, 2), (2, 1)], directed=True))
        assert_refused(tmp_path / name, "needs-simplify")


def test_simplify_sorts_out_pairs_and_keeps_their_weights(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["node_counts"], file["edge_counts"] = np.array([3], np.int32), np.array([5], np.int32)
        file["edges"] = np.array([[2, 1], [0, 0], [1, 0], [0, 1], [1, 2]], np.int32)
        file["weights"] = np.arange(5.0)

    (graph,) = read_graphs(tmp_path / "a.h5", simplify=True)

    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.weights.tolist() == [2, 0]


def test_changed_attributes_and_a_heap_on_which_hdf5_would_not_terminate_are_refused(tmp_path: Path) -> None:
    write_graphs([SimpleGraph(3, PATH)], tmp_path / "a.h5", provenance=Provenance("ego", {"m": 4}))
    data = (tmp_path / "a.h5").read_bytes()
    # The first object of the heap becomes free space of no size.
    at = data.index(b"GCOL") + 16

    assert_refused(tmp_path / "a.h5", "size zero", data[:at] + bytes(16) + data[at + 16 :])
    assert_refused(tmp_path / "a.h5", "checksum", data.replace(b'{"m": 4}', b'{"m": 5}'))


def test_pipes_and_features_of_two_widths_are_refused(tmp_path: Path) -> None:
    graphs = (SimpleGraph(1, PATH[:0], features=np.ones((1, width), np.float32)) for width in (1, 2))

    assert_not_written(tmp_path / "a.h5", "1 and 2", *graphs)
    with pytest.raises(FormatError, match="not seekable"):
        read_graphs("-", format="h5")
    assert_not_written("-", "h5-not-seekable", SimpleGraph(3, PATH), format="hdf5")


def test_every_flipped_bit_changes_nothing_or_is_refused(tmp_path: Path) -> None:
    graph = SimpleGraph(3, PATH, np.array([1.0, 2.0]), names=("a", "b", 3), attributes={"split": "test"})
    path = tmp_path / "a.h5"
    write_graphs([graph] * 3, path, provenance=Provenance("ego", {"m": 4}, 7, "generate", "name"))
    sound, data = list(read_graphs(path)), path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0

    for place in rng.choice(len(data), 200, replace=False).tolist():
        bit = 1 << int(rng.integers(8))
        path.write_bytes(data[:place] + bytes((data[place] ^ bit,)) + data[place + 1 :])
        try:
            found = list(read_graphs(path))
        except FormatError:
            refused += 1
            continue
        for one, other in zip(sound, found, strict=True):
            assert_same(one, other)
    assert refused > 50


def test_a_signal_during_a_write_is_delayed_until_hdf5_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, sent = PatientFile.write, []

    def interrupted(*args: Any) -> int:
        if len(sent) < 2:
            sent.append(os.kill(os.getpid(), signal.SIGINT))
        return write(*args)

    monkeypatch.setattr(PatientFile, "write", interrupted)
    # A background process ignores the signal.
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    target = tmp_path / "graphs.h5"
    target.write_bytes(b"old")

    try:
        with pytest.raises(KeyboardInterrupt):
            write_graphs([SimpleGraph.from_pairs(3, [(0, 1)])] * 3, target, force=True)
    finally:
        signal.signal(signal.SIGINT, previous)

    assert sent
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["graphs.h5"]
