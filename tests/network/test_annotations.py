"""Features and labels from files, hostile ones included."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from graphite_gen.errors import DatasetError, FormatError
from graphite_gen.network import annotations
from graphite_gen.network.annotations import csr_rows
from graphite_gen.network.network import read_network


@pytest.fixture
def path_graph(tmp_path: Path) -> Path:
    path = tmp_path / "graph.edgelist"
    path.write_text("a b\nb c\nc d\n")

    return path


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)

    return stream.getvalue()


def archive(path: Path, *members: tuple[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members:
            file.writestr(name, data)

    return path


X = npy(np.zeros((4, 3)))


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ([("features.npy", X.replace(b"(4, 3)", b"(4, 9)"))], "size does not fit its shape"),
        ([("features.npy", X.replace(b"(4, 3)", b"(4, 2)"))], "size does not fit its shape"),
        ([("features.npy", X.replace(b"(4, 3), ", b"(9999999, 99999), "))], "not an npz file"),
        ([("features.npy", npy(np.zeros((4, 0))))], "shape"),
        ([("features.npy", npy(np.array([{}] * 4, dtype=object)))], "object"),
        ([("features.npy", X), ("features.npy", X)], "two arrays of one name"),
        ([("features.npy", X), ("split.nv", X)], "not an array"),
        ([("features.npy", b"no array")], "not an npz file"),
        ([("features.npy", X), ("ids.npy", npy(np.array("abcd")))], "'ids' is"),
        ([("features.npy", X), ("nodes.npy", npy(np.array(list("dcba"))))], "array 'nodes'.* no 'ids'"),
    ],
)
def test_invalid_npz_arrays_are_refused(path_graph: Path, members: list[tuple[str, bytes]], problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        read_network(path_graph, features=archive(path_graph.with_name("x.npz"), *members))


def test_zip_bombs_are_refused_and_small_archives_may_expand_by_any_ratio(
    path_graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archive(path_graph.with_name("x.npz"), ("features.npy", npy(np.zeros((4, 10**5), np.float32))))
    read_network(path_graph, features=path)
    monkeypatch.setattr(annotations, "_BOMB_BYTES", 1 << 20)

    with pytest.raises(FormatError, match=r"expands more than 200 times, to over 1 MB"):
        read_network(path_graph, features=path)


@pytest.mark.parametrize("labels", [np.zeros((4, 2)), np.zeros(4, "M8[s]"), np.array([0, 1, np.nan, 0])])
def test_labels_are_one_dimensional_numbers_or_strings(path_graph: Path, labels: Any) -> None:
    with pytest.raises(FormatError, match="expected a number or a string"):
        read_network(path_graph, labels=archive(path_graph.with_name("y.npz"), ("labels.npy", npy(labels))))


def test_flipped_bits_of_an_npz_file_change_nothing_or_are_refused(path_graph: Path) -> None:
    path = path_graph.with_name("y.npz")
    np.savez_compressed(path, labels=list("uvuw"), ids=list("abcd"), split=["train", "val", "train", "test"])
    data = path.read_bytes()

    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes((data[place] ^ 8,)) + data[place + 1 :])
        try:
            found = read_network(path_graph, labels=path)
        except FormatError:
            continue
        assert found.labels is not None
        assert found.split is not None
        assert found.labels.tolist() == [0, 1, 0, 2]
        assert found.split.train.tolist() == [0, 2]


def test_features_that_overflow_are_refused_without_a_warning(
    path_graph: Path, recwarn: pytest.WarningsRecorder
) -> None:
    path = path_graph.with_name("x.csv")
    path.write_text("id,x\na,1e99\nb,1\nc,1\nd,1\n")

    with pytest.raises(FormatError, match="not a finite number"):
        read_network(path_graph, features=path)
    assert not recwarn.list


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e99"])
def test_errors_of_non_finite_features_name_row_node_and_column(path_graph: Path, number: str) -> None:
    path = path_graph.with_name("x.csv")
    path.write_text(f"id,x,age\nd,1,0\nc,0,0\nb,2,{number}\na,nan,1\n")
    with pytest.raises(FormatError, match="row 4: column 'age' of node 'b' is not a finite number"):
        read_network(path_graph, features=path)

    x = np.zeros((4, 3), np.float64)
    x[2, 1] = float(number)
    with np.errstate(over="ignore"):
        np.savez(path.with_suffix(".npz"), features=x.astype(np.float32), ids=list("dcba"))
        with pytest.raises(FormatError, match="column 1 of node 'b' is not a finite number"):
            read_network(path_graph, features=path.with_suffix(".npz"))
        sparse.save_npz(path.with_suffix(".npz"), sparse.csr_array(x.astype(np.float32)))
    with pytest.raises(FormatError, match="column 1 of node 'c' is not a finite number"):
        read_network(path_graph, features=path.with_suffix(".npz"))


@pytest.mark.parametrize("text", ["id\na\nb\n", "id x y\na 1 2\nb 3 4\n", ""])
def test_errors_of_one_column_files_name_the_delimiters(path_graph: Path, text: str) -> None:
    path = path_graph.with_name("x.csv")
    path.write_text(text)

    for what in ("features", "labels"):
        with pytest.raises(FormatError, match="commas, semicolons or tabs"):
            read_network(path_graph, **{what: path})


@pytest.mark.parametrize("text", ["a,red\nb,blue\nc,red\n", " a ,red\nc,red\n"])
def test_a_missing_header_row_is_refused(path_graph: Path, text: str) -> None:
    path = path_graph.with_name("labels.csv")
    path.write_text(text)

    with pytest.raises(FormatError, match="header row"):
        read_network(path_graph, labels=path)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiters_are_commas_semicolons_or_tabs(path_graph: Path, delimiter: str) -> None:
    path = path_graph.with_name("nodes.csv")
    path.write_text("id,x,y\na,1,2\nb,3,4\nc,5,6\nd,7,8\n".replace(",", delimiter))
    found = read_network(path_graph, features=path)
    assert found.features is not None
    assert found.features.toarray().tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]

    # Other delimiters inside quoted cells are text.
    path.write_text(f"id{delimiter}label\n" + "".join(f'{node}{delimiter}"u,v;w\tx"\n' for node in "abcd"))
    assert read_network(path_graph, labels=path).classes == ("u,v;w\tx",)


def test_decimal_commas_are_refused(path_graph: Path) -> None:
    path = path_graph.with_name("x.csv")
    path.write_text("id;x\na;0,5\nb;1\nc;1\nd;1\n")

    with pytest.raises(FormatError, match="row 2: '0,5' is not a number"):
        read_network(path_graph, features=path)


@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_integer_valued_floats_are_ids_of_numbered_nodes(tmp_path: Path, suffix: str) -> None:
    graph, path = tmp_path / "graph.edgelist", (tmp_path / "y").with_suffix(suffix)
    graph.write_text("0 1\n1 20\n20 v1\n")

    def write(*ids: float | str) -> None:
        if suffix == ".npz":
            np.savez(path, labels=list("uvwx")[: len(ids)], ids=np.array(ids))
        else:
            path.write_text("id,label\n" + "".join(f"{each},{'uvwx'[k]}\n" for k, each in enumerate(ids)))

    write(20.0, 0.0, 1.0)
    found = read_network(graph, labels=path)
    assert found.labels is not None
    assert [found.classes[code] for code in found.labels[:3]] == ["v", "w", "u"]
    for ids, problem in (
        ((20.0, 0.5), "a node '0.5'"),
        (("v1.0",), "a node 'v1.0'"),
        (("1", "1.0"), "two rows of node '1.0'"),
    ):
        write(*ids)
        with pytest.raises(FormatError, match=problem):
            read_network(graph, labels=path)


@pytest.mark.parametrize("text", ["a,colour\na,red\nb,blue\n", "a,label\nb,blue\n"])
def test_a_header_may_contain_a_node_id(path_graph: Path, text: str) -> None:
    path = path_graph.with_name("labels.csv")
    path.write_text(text)
    found = read_network(path_graph, labels=path)

    assert found.labels is not None
    assert found.classes[found.labels[1]] == "blue"


def test_nan_labels_are_refused(path_graph: Path) -> None:
    path = path_graph.with_suffix(".jsonl")
    path.write_text(
        '{"nodes": [{"id": 0, "label": NaN}, {"id": 1, "label": 2}], "edges": [{"source": 0, "target": 1}]}'
    )

    with pytest.raises(DatasetError, match="NaN"):
        read_network(path)


@pytest.mark.parametrize(("name", "problem"), [("x.csv", "a line of more than"), ("x.npz", "not a regular file")])
def test_endless_devices_are_refused(path_graph: Path, name: str, problem: str) -> None:
    path = path_graph.with_name(name)
    path.symlink_to("/dev/zero")

    with pytest.raises(FormatError, match=problem):
        read_network(path_graph, features=path)


def test_the_first_column_is_the_id_whatever_its_name(path_graph: Path) -> None:
    path = path_graph.with_name("y.csv")
    path.write_text("label,club\na,u\nb,v\nc,u\nd,u\n")
    found = read_network(path_graph, labels=path)

    assert found.classes == ("u", "v")


CSR = sparse.csr_array(np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 3.0]]))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
def test_csr_rows_round_trips_valid_arrays(dtype: type) -> None:
    assert (csr_rows(CSR.data, CSR.indices.astype(dtype), CSR.indptr.astype(dtype), CSR.shape) != CSR).nnz == 0


@pytest.mark.parametrize(
    ("indices", "indptr", "shape"),
    [
        ([1, 0, 2], [0, 16777217, 16777216, -1811939328], (3, 3)),
        ([1, 0, 2], [0, 1, 0, 3], (3, 3)),
        ([1, 0, 2], [1, 1, 1, 3], (3, 3)),
        ([1, 0, 2], [0, 1, 1, 2], (3, 3)),
        ([1, 0, 3], [0, 1, 1, 3], (3, 3)),
        ([1, 0, -1], [0, 1, 1, 3], (3, 3)),
        ([1, 0], [0, 1, 1, 3], (3, 3)),
        ([1, 0, 2], [0, 1, 1, 3], (2, 3)),
        ([1, 0, 2], [0, 1, 1, 3], (10**12, 3)),
        ([1.0, 0.0, 2.0], [0, 1, 1, 3], (3, 3)),
        ([[1, 0, 2]], [0, 1, 1, 3], (3, 3)),
        ([1, 0, 2], [0, 1, 1, 3], (3, 3, 3)),
    ],
)
def test_csr_rows_refuses_invalid_arrays(indices: list[int], indptr: list[int], shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        csr_rows(CSR.data, np.array(indices), np.array(indptr), shape)


def test_csr_rows_refuses_strings() -> None:
    with pytest.raises(ValueError, match="numbers"):
        csr_rows(np.array(["a", "b", "c"]), CSR.indices, CSR.indptr, CSR.shape)
