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
        # In other formats -1 would be a class, as 0 is not.
        file["labels"] = np.array([2, -1, 3, 1], dtype=np.int16)
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
    assert labels_of(found) == [2, None, 3, 1]
    assert parts_of(found) == [[0], [2], [3]]
    assert repr(found) == "Network(4 nodes, 2 edges, 2 features, 3 classes)"


def change_split(path: Path, **parts: list[int] | None) -> None:
    """Replace parts of the split, or delete them if None."""
    with h5py.File(path, "a") as file:
        for name, part in parts.items():
            del file[name]
            if part is not None:
                file[name] = part


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"test_idx": [2, 3]}, "more than once"),
        ({"val_idx": [2, 2]}, "more than once"),
        ({"test_idx": [9]}, "out of range"),
        ({"val_idx": None}, "val_idx not found"),
        ({"train_idx": None}, "train_idx not found"),
        ({"train_idx": None, "test_idx": None}, "train_idx and test_idx not found"),
    ],
)
def test_invalid_splits_are_refused(layout: Path, parts: dict[str, list[int] | None], problem: str) -> None:
    change_split(layout, **parts)

    with pytest.raises(FormatError, match=problem):
        read_network(layout)


def test_the_split_is_optional(layout: Path) -> None:
    change_split(layout, train_idx=None, val_idx=None, test_idx=None)

    assert read_network(layout).split is None


@pytest.mark.parametrize("suffix", ["graphml", "gml", "jsonl", "h5", "csv"])
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
    if suffix == "csv":
        own = tmp_path / "y.csv"
        own.write_text("id,label\n" + "".join(f"{i},{'' if y is None else y}\n" for i, y in enumerate(labels)))
        classes = [None if wanted is None else str(label) for label, wanted in zip(labels, classes, strict=True)]
    else:
        nx.set_node_attributes(graph, {i: y for i, y in enumerate(labels) if y is not None}, "label")
    path = tmp_path / f"graph.{suffix if own is None else 'graphml'}"
    write_graphs([graph], path)

    assert labels_of(read_network(path, labels=own)) == classes


def test_features_of_another_number_of_nodes_are_refused(layout: Path) -> None:
    with h5py.File(layout, "a") as file:
        file["features"].attrs["shape"] = (3, 2)
    with pytest.raises(FormatError, match=r"network\.h5"):
        read_network(layout)

    with h5py.File(layout, "a") as file:
        del file["features"]
        file["features"] = np.ones((3, 2))
    with pytest.raises(FormatError, match="3 rows for 4 nodes"):
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
