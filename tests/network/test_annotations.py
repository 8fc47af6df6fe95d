import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from graphite_gen.errors import FormatError
from graphite_gen.network.annotations import csr_rows
from graphite_gen.network.network import Network, read_network

from .graphs import features_of, labels_of, parts_of


@pytest.fixture
def path_graph(tmp_path: Path) -> Path:
    path = tmp_path / "graph.edgelist"
    path.write_text("a b\nb c\nc d\n")

    return path


def joined(graph: Path, what: str, content: str | bytes) -> Network:
    """A graph with features or labels of a CSV file, given by its text, or of an npz file."""
    path = graph.with_name("nodes.csv" if isinstance(content, str) else "nodes.npz")
    path.write_bytes(content.encode() if isinstance(content, str) else content)

    return read_network(graph, **{what: path})


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)

    return stream.getvalue()


def archive(*members: tuple[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members:
            file.writestr(name, data)

    return stream.getvalue()


def npz(**arrays: Any) -> bytes:
    return archive(*((f"{name}.npy", npy(array)) for name, array in arrays.items()))


def saved(x: Any) -> bytes:
    stream = io.BytesIO()
    sparse.save_npz(stream, sparse.csr_array(x))

    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("id,height,width\nc,3,0\na,1,0\nb,2,0\nd,4,7.5\n", [[1, 0], [2, 0], [3, 0], [4, 7.5]]),
        (npz(features=np.arange(8).reshape(4, 2), ids=list("dcba")), [[6, 7], [4, 5], [2, 3], [0, 1]]),
        (npz(features=np.eye(4, 2)), np.eye(4, 2).tolist()),
        (saved(np.eye(4, 3)), np.eye(4, 3).tolist()),
    ],
)
def test_features_are_joined_by_node_id(path_graph: Path, content: str | bytes, wanted: list[list[float]]) -> None:
    assert features_of(joined(path_graph, "features", content)) == wanted


def test_labels_and_splits_are_joined_by_node_id(path_graph: Path) -> None:
    found = joined(path_graph, "labels", "node,kind,split\nd,new,train\na,old,test\n")

    assert found.classes == ("new", "old")
    assert labels_of(found) == ["old", None, None, "new"]
    assert parts_of(found) == [[3], [], [0]]


@pytest.mark.parametrize("labels", [[0, 1, -1, 2], [-2, -1, 0, 1], [-1, 0, 0.5, 1], ["-1", "0", "many", "1"]])
def test_minus_one_is_never_a_class_in_an_npz_file(path_graph: Path, labels: list[Any]) -> None:
    # Arrays have no empty cells.
    wanted = [None if label == -1 else label for label in labels]

    assert labels_of(joined(path_graph, "labels", npz(labels=labels))) == wanted


X = npy(np.zeros((4, 3)))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("id,x\na,1\n", "no features of node 'b'"),
        ("id,x\na,1\nz,2\n", "node 'z'"),
        ("id,x\na,1\na,2\n", "two rows of node 'a'"),
        ("id,x\na,1,2\n", "row 2: 3 cells"),
        ("id,x\na,red\n", "'red' is not a number"),
        ("id;x\na;0,5\nb;1\nc;1\nd;1\n", "row 2: '0,5' is not a number"),
        ("1,2\n", "header row"),
        ("a,1\nb,2\nc,3\nd,4\n", "header row"),
        (" a ,1\nc,2\n", "header row"),
        ("id\na\nb\n", "commas, semicolons or tabs"),
        ("id x y\na 1 2\nb 3 4\n", "commas, semicolons or tabs"),
        ("", "commas, semicolons or tabs"),
        (npz(features=np.ones((3, 2))), "3 rows"),
        (npz(x=np.ones((4, 2))), "has 'x'"),
        (npz(features=np.ones((4, 2)), ids=list("abc")), "3 ids for 4 rows"),
        (npz(features=np.array([[print]] * 4, dtype=object)), "plain arrays.*object"),
        (b"no zip", "nodes.npz"),
        (archive(("features.npy", X.replace(b"(4, 3)", b"(4, 9)"))), "size does not fit its shape"),
        (archive(("features.npy", X.replace(b"(4, 3)", b"(4, 2)"))), "size does not fit its shape"),
        (archive(("features.npy", X.replace(b"(4, 3), ", b"(9999999, 99999), "))), "not an npz file"),
        (archive(("features.npy", X), ("again.ry.npy", X)).replace(b"again.ry", b"features"), "two arrays of one name"),
        (archive(("features.npy", X), ("split.nv", X)), "not an array"),
        (archive(("features.npy", b"no array")), "not an npz file"),
        (npz(features=np.zeros((4, 0))), "shape"),
        (npz(features=np.zeros((4, 3)), ids=np.array("abcd")), "'ids' is"),
        (npz(features=np.zeros((4, 3)), nodes=list("dcba")), "array 'nodes'.* no 'ids'"),
    ],
)
def test_features_that_do_not_fit_are_refused(
    path_graph: Path, content: str | bytes, problem: str, recwarn: pytest.WarningsRecorder
) -> None:
    with pytest.raises(FormatError, match=problem):
        joined(path_graph, "features", content)
    assert not recwarn.list


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("id,x,y\na,1,2\n", "one called 'label'"),
        ("", "commas, semicolons or tabs"),
        *(
            (npz(labels=labels), "expected a number or a string")
            for labels in (np.zeros((4, 2)), np.zeros(4, "M8[s]"), np.array([0, 1, np.nan, 0]))
        ),
    ],
)
def test_labels_that_do_not_fit_are_refused(path_graph: Path, content: str | bytes, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        joined(path_graph, "labels", content)


def test_zip_bombs_are_refused_and_small_archives_may_expand_by_any_ratio(
    path_graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = npz(features=np.zeros((4, 10**5), np.float32))
    joined(path_graph, "features", content)
    monkeypatch.setattr("graphite_gen.io.npz._BOMB_BYTES", 1 << 20)

    with pytest.raises(FormatError, match=r"expands more than 200 times, to over 1 MB"):
        joined(path_graph, "features", content)


def test_flipped_bits_of_an_npz_file_change_nothing_or_are_refused(path_graph: Path) -> None:
    data = npz(labels=list("uvuw"), ids=list("abcd"), split=["train", "val", "train", "test"])

    for place in range(len(data)):
        try:
            found = joined(path_graph, "labels", data[:place] + bytes((data[place] ^ 8,)) + data[place + 1 :])
        except FormatError:
            continue
        assert labels_of(found) == list("uvuw")
        assert parts_of(found)[0] == [0, 2]


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e99"])
def test_errors_of_non_finite_features_name_row_node_and_column(path_graph: Path, number: str) -> None:
    x = np.zeros((4, 3))
    x[2, 1] = float(number)
    with np.errstate(over="ignore"):
        x = x.astype(np.float32)
    for content, problem in (
        (f"id,x,age\nd,1,0\nc,0,0\nb,2,{number}\na,nan,1\n", "row 4: column 'age' of node 'b'"),
        (npz(features=x, ids=list("dcba")), "column 1 of node 'b'"),
        (saved(x), "column 1 of node 'c'"),
    ):
        with pytest.raises(FormatError, match=f"{problem} is not a finite number"):
            joined(path_graph, "features", content)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiters_are_commas_semicolons_or_tabs(path_graph: Path, delimiter: str) -> None:
    text = "id,x,y\na,1,2\nb,3,4\nc,5,6\nd,7,8\n".replace(",", delimiter)
    # Other delimiters inside quoted cells are text.
    quoted = f"id{delimiter}label\n" + "".join(f'{node}{delimiter}"u,v;w\tx"\n' for node in "abcd")

    assert features_of(joined(path_graph, "features", text)) == [[1, 2], [3, 4], [5, 6], [7, 8]]
    assert joined(path_graph, "labels", quoted).classes == ("u,v;w\tx",)


@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_integer_valued_floats_are_ids_of_numbered_nodes(tmp_path: Path, suffix: str) -> None:
    graph = tmp_path / "graph.edgelist"
    graph.write_text("0 1\n1 20\n20 v1\n")

    def labelled(*ids: float | str) -> Network:
        labels = "uvwx"[: len(ids)]
        rows = "".join(f"{each},{label}\n" for each, label in zip(ids, labels, strict=True))
        return joined(graph, "labels", "id,label\n" + rows if suffix == ".csv" else npz(labels=list(labels), ids=ids))

    assert labels_of(labelled(20.0, 0.0, 1.0)) == ["v", "w", "u", None]
    for ids, problem in (
        ((20.0, 0.5), "a node '0.5'"),
        (("v1.0",), "a node 'v1.0'"),
        (("1", "1.0"), "two rows of node '1.0'"),
    ):
        with pytest.raises(FormatError, match=problem):
            labelled(*ids)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("a,colour\na,red\nb,blue\n", ["red", "blue", None, None]),
        ("a,label\nb,blue\n", [None, "blue", None, None]),
        # The first column is the node id, whatever its name.
        ("label,club\na,u\nb,v\nc,u\nd,u\n", ["u", "v", "u", "u"]),
    ],
)
def test_a_header_may_contain_any_names(path_graph: Path, text: str, labels: list[str | None]) -> None:
    assert labels_of(joined(path_graph, "labels", text)) == labels


@pytest.mark.parametrize(("name", "problem"), [("x.csv", "a line of more than"), ("x.npz", "not a regular file")])
def test_missing_files_and_endless_devices_are_refused(path_graph: Path, name: str, problem: str) -> None:
    path = path_graph.with_name(name)
    with pytest.raises(FormatError, match=r"cannot be read|does not exist"):
        read_network(path_graph, features=path)
    path.symlink_to("/dev/zero")
    with pytest.raises(FormatError, match=problem):
        read_network(path_graph, features=path)


@pytest.mark.parametrize("kind", ["features", "labels"])
def test_pickles_are_refused(path_graph: Path, kind: str) -> None:
    with pytest.raises(FormatError, match=r"pickles.*are not read.*CSV or npz"):
        read_network(path_graph, **{kind: path_graph.with_name("ind.cora.x")})  # type: ignore[arg-type]


CSR = sparse.csr_array(np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 3.0]]))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
def test_csr_rows_round_trips_valid_arrays(dtype: type) -> None:
    assert (csr_rows(CSR.data, CSR.indices.astype(dtype), CSR.indptr.astype(dtype), CSR.shape) != CSR).nnz == 0


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"indptr": [0, 16777217, 16777216, -1811939328]}, "ascend"),
        ({"indptr": [0, 1, 0, 3]}, "ascend"),
        ({"indptr": [1, 1, 1, 3]}, "ascend"),
        ({"indptr": [0, 1, 1, 2]}, "ascend"),
        ({"indices": [1, 0, 3]}, "outside 0 to 2"),
        ({"indices": [1, 0, -1]}, "outside 0 to 2"),
        ({"indices": [1, 0]}, "do not fit"),
        ({"shape": (2, 3)}, "do not fit"),
        ({"shape": (10**12, 3)}, "do not fit"),
        ({"indices": [1.0, 0.0, 2.0]}, "not integers"),
        ({"indices": [[1, 0, 2]]}, "one-dimensional"),
        ({"shape": (3, 3, 3)}, "too many values"),
        ({"data": ["a", "b", "c"]}, "numbers"),
    ],
)
def test_csr_rows_refuses_invalid_arrays(change: dict[str, Any], problem: str) -> None:
    arrays = {"data": CSR.data, "indices": CSR.indices, "indptr": CSR.indptr} | change
    shape = arrays.pop("shape", CSR.shape)
    with pytest.raises(ValueError, match=problem):
        csr_rows(**{name: np.array(array) for name, array in arrays.items()}, shape=shape)
