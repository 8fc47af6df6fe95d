"""Planetoid's files are assembled as in Kipf & Welling (2017), and their pickles cannot run code."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from graphite_gen.errors import FormatError
from graphite_gen.network import planetoid
from graphite_gen.network.network import read_network
from graphite_gen.network.planetoid import read_pickle, read_planetoid

from .graphs import features_of, parts_of

KNOWN, TRAIN, WORDS, CLASSES = 510, 6, 7, 3


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A network of 515 papers; nothing is known of paper 512, as in Citeseer."""
    draw = np.random.default_rng(0)
    features = sparse.csr_matrix((draw.random((KNOWN + 4, WORDS)) < 0.4).astype(np.float32))
    labels = np.eye(CLASSES, dtype=np.int32)[draw.integers(0, CLASSES, KNOWN + 4)]
    tested = [514, 510, 513, 511]
    lists: defaultdict[int, list[int]] = defaultdict(list)
    lists[0] = [1, 1, 514, 0]
    lists[514] = [0]
    lists[1] = [0, 513]
    parts: dict[str, Any] = {}
    for prefix, rows in (("", slice(TRAIN)), ("all", slice(KNOWN)), ("t", slice(KNOWN, None))):
        parts |= {f"{prefix}x": features[rows], f"{prefix}y": labels[rows]}
    for protocol, (part, value) in enumerate([*parts.items(), ("graph", lists)]):
        (tmp_path / f"ind.tiny.{part}").write_bytes(pickle.dumps(value, protocol=protocol % 5))
    (tmp_path / "ind.tiny.test.index").write_text("\n".join(map(str, tested)) + "\n")
    np.savez(tmp_path / "truth.npz", features=features.toarray(), labels=labels.argmax(1), tested=tested)

    return tmp_path / "ind.tiny"


def rewrite(files: Path, part: str, change: Callable[[Any], Any]) -> None:
    path = files.with_name(f"ind.tiny.{part}")
    path.write_bytes(pickle.dumps(change(pickle.loads(path.read_bytes())), protocol=2))  # noqa: S301


def test_test_papers_are_placed_by_their_index(files: Path) -> None:
    truth = np.load(files.with_name("truth.npz"))
    found = read_network(files.with_name("ind.tiny.graph"))

    assert found.nodes == 515
    assert found.edges.tolist() == [[0, 1], [0, 514], [1, 513]]
    dense = np.array(features_of(found))
    assert (dense[:KNOWN] == truth["features"][:KNOWN]).all()
    assert (dense[truth["tested"]] == truth["features"][KNOWN:]).all()
    assert (dense[512] == 0).all()
    assert found.labels[512] == -1
    assert (found.labels[truth["tested"]] == truth["labels"][KNOWN:]).all()
    assert parts_of(found) == [list(range(TRAIN)), list(range(TRAIN, TRAIN + 500)), [510, 511, 513, 514]]
    assert repr(read_network(files)) == repr(found), "the common prefix of the files is a source"


@pytest.mark.parametrize("protocol", range(5))
@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i8", "|u1"])
def test_arrays_of_every_protocol_round_trip(tmp_path: Path, protocol: int, dtype: str) -> None:
    path = tmp_path / "array"
    for value in (np.arange(12).reshape(3, 4).astype(dtype), np.asfortranarray(np.arange(6).reshape(2, 3), dtype)):
        path.write_bytes(pickle.dumps(value, protocol=protocol))

        assert (read_pickle(path) == value).all()


def test_dicts_of_python_2_are_read(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    path.write_bytes(b"(dp1\nI0\n(lp2\nI633\naL1862L\nasS'a\\x00b'\np3\nF1.5\ns.")

    assert read_pickle(path) == {0: [633, 1862], "a\0b": 1.5}


class Harmful:
    def __reduce__(self) -> Any:
        return os.mkdir, ("harm",)


@pytest.mark.parametrize("protocol", range(5))
@pytest.mark.parametrize(
    "value", [Harmful(), {"a": [Harmful()]}, np.array([Harmful()], dtype=object), {1, 2}, Path("x"), print]
)
def test_other_objects_are_not_executed(tmp_path: Path, monkeypatch: Any, protocol: int, value: Any) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "ind.tiny.x"
    path.write_bytes(pickle.dumps(value, protocol=protocol))

    with pytest.raises(FormatError, match="not read"):
        read_pickle(path)
    assert not (tmp_path / "harm").exists()


def test_damaged_files_are_named_in_the_error(files: Path) -> None:
    for name in ("ind.tiny.allx", "ind.tiny.graph", "ind.tiny.ty"):
        path = files.with_name(name)
        whole = path.read_bytes()
        for cut in (0, 1, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:cut])
            with pytest.raises(FormatError, match=name):
                read_network(files)
        path.write_bytes(whole)
    files.with_name("ind.tiny.test.index").unlink()
    with pytest.raises(FormatError, match=r"test\.index' cannot be read"):
        read_network(files)


@pytest.mark.parametrize("part", ["x", "test.index"])
def test_devices_are_refused(files: Path, part: str) -> None:
    path = files.with_name(f"ind.tiny.{part}")
    path.unlink()
    path.symlink_to("/dev/zero")

    with pytest.raises(FormatError, match="not a regular file"):
        read_planetoid(files)


@pytest.mark.parametrize(
    ("part", "content", "problem"),
    [
        ("test.index", b"99999999\n510\n513\n511\n", "99999999"),
        ("test.index", b"510\n513\n511\n", "differ"),
        ("tx", pickle.dumps(sparse.csr_matrix(np.full((4, WORDS), np.nan, np.float32)), protocol=2), "finite"),
        ("ty", pickle.dumps(np.zeros(4), protocol=2), "differ"),
        ("ty", pickle.dumps([0] * 4, protocol=2), "list: expected one-hot rows"),
        (
            "tx",
            b"\x80\x02cscipy.sparse._csr\ncsr_matrix\n)\x81}("
            + b"".join(b"X%c\0\0\0%bN" % (len(name), name) for name in (b"data", b"indices", b"indptr"))
            + b"ub.",
            "is damaged",
        ),
    ],
)
def test_files_that_do_not_fit_are_refused(files: Path, part: str, content: bytes, problem: str) -> None:
    files.with_name(f"ind.tiny.{part}").write_bytes(content)

    with pytest.raises(FormatError, match=problem):
        read_planetoid(files)


@pytest.mark.parametrize(
    ("attack", "problem"),
    [
        (b"\x80\x02Nr\xff\xff\xff\xff.", "memo index 4294967295"),  # would allocate gigabytes
        (b"\x80\x04\x8e" + (2**40).to_bytes(8, "little") + b".", "is damaged"),  # a terabyte of bytes announced
        (b"cnumpy\ndtype\n(S'f8'\nI0\nI1\ntR(NVsetattr\nVx\ns.", "is damaged"),
        (b"\x80\x02}(N\x85" + b"q\x00h\x00h\x00\x86" * 60 + b"K\x01u.", "shared tuples"),  # a key of 2**60 tuples
        (b"\x80\x02}" + b"(" + b"N" + b"\x85" * 10**5 + b"K\x01u.", "nested"),
        (b"\x80\x02cnumpy\nndarray\nN}X\x08\0\0\0__init__K\x01s\x86b.", "is damaged"),  # attributes of a stand-in
        (b"\x80\x02ccollections\ndefaultdict\n)R}X\x01\0\0\0aK\x01sb.", "a dict with attributes"),
        (b"c" + b"x" * 70_000 + b"\nname\n.", "which is not read"),
    ],
)
def test_hostile_pickles_end_quickly_in_one_short_line(tmp_path: Path, attack: bytes, problem: str) -> None:
    path = tmp_path / "graph"
    path.write_bytes(attack)

    with pytest.raises(FormatError, match=problem) as error:
        read_pickle(path)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 1000
    path.write_bytes(pickle.dumps(np.arange(3), protocol=2))
    assert (read_pickle(path) == np.arange(3)).all(), "stand-ins are unchanged"


# [[[], []], [[], []]] and so on: 2**40 lists in 401 bytes.
SHARED = b"]" + b"q\x000](h\x00h\x00e" * 40
FLOATS = b"cnumpy\ndtype\nX\x02\0\0\0f8\x85R"
ARRAY = b"\x80\x02cnumpy\nndarray\n)R(K\x01"


@pytest.mark.parametrize(
    ("attack", "problem"),
    [
        (b"\x80\x02cnumpy\ndtype\n" + SHARED + b"\x85R.", "type list"),
        (b"\x80\x02" + FLOATS + b"(K\x03" + SHARED + b"tb.", "byte order list"),
        (b"\x80\x02c_codecs\nencode\nX\x01\0\0\0a" + SHARED + b"\x86R.", "bytes in list"),
        (ARRAY + SHARED + FLOATS + b"\x89X\0\0\0\0tb.", "without a type or shape"),
        (ARRAY + SHARED + b"\x85" + FLOATS + b"\x89X\0\0\0\0tb.", "without a type or shape"),
    ],
)
def test_lists_that_share_lists_are_not_formatted(tmp_path: Path, attack: bytes, problem: str) -> None:
    path = tmp_path / "array"
    path.write_bytes(attack)
    # In another process: formatting them would not end, and could not be interrupted.
    code = f"""
import signal
from pathlib import Path
from graphite_gen.errors import FormatError
from graphite_gen.network.planetoid import read_pickle
signal.signal(signal.SIGALRM, signal.SIG_DFL)
signal.alarm(1)
try:
    read_pickle(Path({str(path)!r}))
except FormatError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert problem in done.stdout


def test_validation_papers_may_be_the_last_known_ones(files: Path) -> None:
    for part in ("allx", "ally"):
        rewrite(files, part, lambda rows: rows[: TRAIN + 500])
    split = read_planetoid(files)[3]
    assert split[TRAIN + 499] == "validation"
    assert split[TRAIN + 500 : KNOWN] == [None] * (KNOWN - TRAIN - 500)


def test_the_number_of_citations_is_limited(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planetoid, "MAX_CITATIONS", 6)
    with pytest.raises(FormatError, match="more than 6 neighbours"):
        read_planetoid(files)
    monkeypatch.setattr(planetoid, "MAX_CITATIONS", 7)
    read_planetoid(files)


def test_a_row_of_zeros_is_no_label(files: Path) -> None:
    rewrite(files, "ty", lambda rows: np.concatenate([0 * rows[:1], rows[1:]]))
    labels = read_planetoid(files)[2]
    assert labels[514] is None
    assert labels[510] is not None
