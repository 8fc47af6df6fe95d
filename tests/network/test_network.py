from __future__ import annotations

from pathlib import Path

import h5py
import networkx as nx
import numpy as np
import pytest
from scipy import sparse

from graphite_gen.errors import DatasetError, FormatError
from graphite_gen.io import write_graphs
from graphite_gen.network.network import read_network


@pytest.fixture
def path_graph(tmp_path: Path) -> Path:
    """Five named nodes in a row, with labels on three of them."""
    graph = nx.path_graph(["a", "b", "c", "d", "e"])
    for name, label, split in (("a", "red", "train"), ("b", "blue", "val"), ("e", "red", "test")):
        graph.nodes[name].update(label=label, split=split)
    for node, name in enumerate(graph):
        graph.nodes[name]["features"] = [float(node), 0.0]
    write_graphs([graph], tmp_path / "path.graphml")

    return tmp_path / "path.graphml"


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    """Four nodes in the network layout."""
    path = tmp_path / "network.h5"
    with h5py.File(path, "w") as file:
        file["edge_index"] = np.array([[0, 1], [1, 2]], dtype=np.int32)
        file["labels"] = np.array([2, -1, 0, 1], dtype=np.int16)
        x = sparse.csr_array(np.array([[0, 1.5], [0, 0], [2, 0], [0, 0]], dtype=np.float32))
        for name in ("data", "indices", "indptr"):
            file[f"features/{name}"] = getattr(x, name)
        file["features"].attrs["shape"] = x.shape
        file["train_idx"], file["val_idx"], file["test_idx"] = [0], [2], [3]

    return path


def test_labels_and_split_are_read_from_node_attributes(path_graph: Path) -> None:
    found = read_network(path_graph)

    assert found.classes == ("blue", "red")
    assert found.labels is not None
    assert found.labels.tolist() == [1, 0, -1, -1, 1]
    assert found.split is not None
    assert [part.tolist() for part in (found.split.train, found.split.validation, found.split.test)] == [[0], [1], [4]]
    assert found.features is not None
    assert found.features.toarray()[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert found.name(3) == "d"


@pytest.mark.parametrize(("name", "part"), [("test_idx", [2, 3]), ("val_idx", [2, 2])])
def test_parts_of_a_split_are_disjoint(layout: Path, name: str, part: list[int]) -> None:
    with h5py.File(layout, "a") as file:
        del file[name]
        file[name] = part

    with pytest.raises(FormatError, match="more than once"):
        read_network(layout)


@pytest.mark.parametrize("missing", [("val_idx",), ("train_idx",), ("train_idx", "test_idx")])
def test_incomplete_splits_are_refused(layout: Path, missing: tuple[str, ...]) -> None:
    with h5py.File(layout, "a") as file:
        for name in missing:
            del file[name]

    with pytest.raises(FormatError, match=f"{' and '.join(missing)} not found"):
        read_network(layout)


def test_the_split_is_optional(layout: Path) -> None:
    with h5py.File(layout, "a") as file:
        for name in ("train_idx", "val_idx", "test_idx"):
            del file[name]

    assert read_network(layout).split is None


def test_the_network_layout_is_read_completely(layout: Path) -> None:
    found = read_network(layout)

    assert found.edges.tolist() == [[0, 1], [1, 2]]
    assert found.features is not None
    assert found.features.toarray().tolist() == [[0, 1.5], [0, 0], [2, 0], [0, 0]]
    assert found.labels is not None
    assert found.labels.tolist() == [2, -1, 0, 1]
    assert found.split is not None
    assert found.split.test.tolist() == [3]


def test_minus_one_means_unlabelled_in_the_network_layout(layout: Path) -> None:
    with h5py.File(layout, "a") as file:
        file["labels"][:] = [-1, 1, 2, -1]
    found = read_network(layout)

    assert found.classes == (1, 2)
    assert found.labels is not None
    assert found.labels.tolist() == [-1, 0, 1, -1]


def test_features_and_labels_of_other_files_are_joined_by_node_id(path_graph: Path, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id,height,width\nc,3,0\na,1,0\nb,2,0\ne,5,7.5\nd,4,0\n")
    (tmp_path / "y.csv").write_text("node,kind,split\nd,new,train\na,old,test\n")
    found = read_network(path_graph, features=tmp_path / "x.csv", labels=tmp_path / "y.csv")

    assert found.features is not None
    assert found.features.toarray().tolist() == [[1, 0], [2, 0], [3, 0], [4, 0], [5, 7.5]]
    assert found.classes == ("new", "old")
    assert found.labels is not None
    assert found.labels.tolist() == [1, -1, -1, 0, -1]
    assert found.split is not None
    assert found.split.train.tolist() == [3]

    np.savez(tmp_path / "x.npz", features=np.arange(10).reshape(5, 2), ids=list("edcba"))
    np.savez(tmp_path / "y.npz", labels=[0, 1, -1, 1, 0])
    found = read_network(path_graph, features=tmp_path / "x.npz", labels=tmp_path / "y.npz")
    assert found.features is not None
    assert found.features.toarray()[:, 0].tolist() == [8, 6, 4, 2, 0]
    assert found.labels is not None
    assert found.labels.tolist() == [0, 1, -1, 1, 0]

    x = sparse.csr_array(np.eye(5, 3))
    sparse.save_npz(tmp_path / "sparse.npz", x)
    found = read_network(path_graph, features=tmp_path / "sparse.npz")
    assert found.features is not None
    assert (found.features != x).nnz == 0


@pytest.mark.parametrize("suffix", ["graphml", "gml", "jsonl", "h5", "csv", "npz"])
@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([0, 1, -1, 2], [0, 1, None, 2]),
        ([0.0, 1.0, -1.0, None], [0, 1, None, None]),
        ([-1, 1, None, 1], [-1, 1, None, 1]),
        ([-2, -1, 0, 1], [-2, -1, 0, 1]),
        ([-1, 0, 0.5, 1], [-1, 0, 0.5, 1]),
        (["-1", "0", "many", "1"], ["-1", "0", "many", "1"]),
    ],
)
def test_minus_one_means_unlabelled_only_among_integers_from_zero(
    tmp_path: Path, suffix: str, labels: list[float | str | None], classes: list[float | str | None]
) -> None:
    graph = nx.path_graph(4)
    own = None
    if suffix == "npz":
        if None in labels:
            pytest.skip("an array of numbers has no empty cells")
        own = tmp_path / "y.npz"
        np.savez(own, labels=labels)
        # Never a class, since arrays have no empty cells.
        classes = [None if label == -1 else label for label in labels]
    elif suffix == "csv":
        own = tmp_path / "y.csv"
        own.write_text("id,label\n" + "".join(f"{i},{'' if y is None else y}\n" for i, y in enumerate(labels)))
        classes = [None if wanted is None else str(label) for label, wanted in zip(labels, classes, strict=True)]
    else:
        nx.set_node_attributes(graph, {i: y for i, y in enumerate(labels) if y is not None}, "label")
    path = tmp_path / f"graph.{suffix if own is None else 'graphml'}"
    write_graphs([graph], path)
    found = read_network(path, labels=own)

    assert found.labels is not None
    assert [None if code < 0 else found.classes[code] for code in found.labels] == classes


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("id,x\na,1\n", "no features of node 'b'"),
        ("id,x\na,1\nz,2\n", "node 'z'"),
        ("id,x\na,1\na,2\n", "two rows of node 'a'"),
        ("id,x\na,1,2\n", "row 2: 3 cells"),
        ("id,x\na,red\n", "'red' is not a number"),
        ("id,x\na,nan\nb,1\nc,1\nd,1\ne,1\n", "not a finite number"),
        ("1,2\n", "header row"),
        ("", "two columns"),
    ],
)
def test_csv_features_that_do_not_fit_are_refused(path_graph: Path, tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "x.csv").write_text(text)

    with pytest.raises(FormatError, match=problem):
        read_network(path_graph, features=tmp_path / "x.csv")


def test_npz_features_that_do_not_fit_are_refused(path_graph: Path, tmp_path: Path) -> None:
    for arrays, problem in (
        ({"features": np.ones((3, 2))}, "3 rows"),
        ({"x": np.ones((5, 2))}, "has 'x'"),
        ({"features": np.ones((5, 2)), "ids": list("abc")}, "3 ids for 5 rows"),
        ({"features": np.array([[print]] * 5, dtype=object)}, "plain arrays"),
    ):
        np.savez(tmp_path / "x.npz", **arrays)
        with pytest.raises(FormatError, match=problem):
            read_network(path_graph, features=tmp_path / "x.npz")
    (tmp_path / "x.npz").write_bytes(b"no zip")
    with pytest.raises(FormatError, match=r"x\.npz"):
        read_network(path_graph, features=tmp_path / "x.npz")
    with pytest.raises(FormatError, match="cannot be read"):
        read_network(path_graph, labels=tmp_path / "none.csv")


def test_a_damaged_network_layout_is_refused(layout: Path) -> None:
    with h5py.File(layout, "a") as file:
        file["features"].attrs["shape"] = (3, 2)
    with pytest.raises(FormatError, match=r"network\.h5"):
        read_network(layout)
    with h5py.File(layout, "a") as file:
        del file["features"]
        file["test_idx"][0] = 9
    with pytest.raises(FormatError, match="out of range"):
        read_network(layout)


def test_several_graphs_are_refused(tmp_path: Path) -> None:
    write_graphs([nx.path_graph(3), nx.path_graph(4)], tmp_path / "two.g6")

    with pytest.raises(DatasetError) as error:
        read_network(tmp_path / "two.g6")
    assert error.value.reason == "more-than-one-graph"


def test_repr_states_the_counts(path_graph: Path, layout: Path) -> None:
    assert repr(read_network(path_graph)) == "Network(5 nodes, 4 edges, 2 features, 2 classes)"
    assert repr(read_network(layout)) == "Network(4 nodes, 2 edges, 2 features, 3 classes)"
