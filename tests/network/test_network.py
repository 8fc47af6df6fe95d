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

from .graphs import features_of, labels_of, parts_of


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


def test_features_labels_and_split_are_read_from_node_attributes(path_graph: Path) -> None:
    found = read_network(path_graph)

    assert found.classes == ("blue", "red")
    assert labels_of(found) == ["red", "blue", None, None, "red"]
    assert parts_of(found) == [[0], [1], [4]]
    assert features_of(found) == [[node, 0] for node in range(5)]
    assert found.name(3) == "d"
    assert repr(found) == "Network(5 nodes, 4 edges, 2 features, 2 classes)"


def test_the_network_layout_is_read_completely(layout: Path) -> None:
    found = read_network(layout)

    assert found.edges.tolist() == [[0, 1], [1, 2]]
    assert features_of(found) == [[0, 1.5], [0, 0], [2, 0], [0, 0]]
    assert labels_of(found) == [2, None, 0, 1]
    assert parts_of(found) == [[0], [2], [3]]
    assert repr(found) == "Network(4 nodes, 2 edges, 2 features, 3 classes)"


def without(path: Path, *names: str) -> Path:
    with h5py.File(path, "a") as file:
        for name in names:
            del file[name]

    return path


@pytest.mark.parametrize(("name", "part"), [("test_idx", [2, 3]), ("val_idx", [2, 2])])
def test_parts_of_a_split_are_disjoint(layout: Path, name: str, part: list[int]) -> None:
    with h5py.File(without(layout, name), "a") as file:
        file[name] = part

    with pytest.raises(FormatError, match="more than once"):
        read_network(layout)


@pytest.mark.parametrize("missing", [("val_idx",), ("train_idx",), ("train_idx", "test_idx")])
def test_incomplete_splits_are_refused(layout: Path, missing: tuple[str, ...]) -> None:
    with pytest.raises(FormatError, match=f"{' and '.join(missing)} not found"):
        read_network(without(layout, *missing))


def test_the_split_is_optional(layout: Path) -> None:
    assert read_network(without(layout, "train_idx", "val_idx", "test_idx")).split is None


def test_minus_one_means_unlabelled_in_the_network_layout(layout: Path) -> None:
    with h5py.File(layout, "a") as file:
        file["labels"][:] = [-1, 1, 2, -1]

    assert labels_of(read_network(layout)) == [None, 1, 2, None]


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

    assert labels_of(read_network(path, labels=own)) == classes


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


def test_nan_labels_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "graph.jsonl"
    path.write_text('{"nodes": [{"id": 0, "label": NaN}, {"id": 1}], "edges": [{"source": 0, "target": 1}]}')

    with pytest.raises(DatasetError, match="NaN"):
        read_network(path)
