import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from graphite_gen.errors import FormatError
from graphite_gen.graph import SimpleGraph
from graphite_gen.io import FORMATS, dropped_by, format_of, keeps_node_attributes, read_graphs, write_graphs

from .graphs import assert_not_written

GRAPH = SimpleGraph.from_pairs(4, [(0, 1), (1, 3)])
STREAMING = [name for name in FORMATS if name != "edgelist"]


def test_the_format_follows_from_the_suffix_or_the_name() -> None:
    assert [format_of(path) for path in ("a.graphml", "a.HDF5", "a.b.g6.gz")] == ["graphml", "h5", "g6"]
    assert [format_of("a.txt", "edgelist"), format_of("-", ".hdf5")] == ["edgelist", "h5"]


@pytest.mark.parametrize(
    ("path", "format", "fact", "reason"),
    [
        ("a.txt", None, ".graphml", "format-unknown"),
        ("graphml", None, ".graphml", "format-unknown"),
        ("a.gz", None, ".graphml", "format-unknown"),
        ("-", None, "one of graphml, h5", "format-unknown"),
        ("a.g6", "pickle", "one of graphml, h5", "format-unknown"),
        ("a.h5.gz", None, "gzip", ""),
        ("a.gz", "h5", "gzip", ""),
    ],
)
def test_unknown_formats_and_gzipped_hdf5_are_refused(path: str, format: str | None, fact: str, reason: str) -> None:
    with pytest.raises(FormatError, match=fact) as caught:
        format_of(path, format)
    assert caught.value.reason == reason


@pytest.mark.parametrize("name", ["a.pkl", "a.PICKLE", "a.gpickle", "ind.cora", "ind.cora.allx", "ind.cora.test.index"])
def test_pickles_are_refused_by_name_in_favour_of_other_formats(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"\x80\x04N.")

    with pytest.raises(FormatError, match=r"pickles.*not read.*HDF5, GraphML and edge lists.*CSV or npz"):
        read_graphs(tmp_path / name)


def test_a_folder_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    for nodes, name in enumerate(("a.g6", "b.graphml.gz", "c.h5", "d.jsonl")):
        write_graphs([nx.empty_graph(nodes), SimpleGraph.from_pairs(nodes, [])], tmp_path / name)
    (tmp_path / ".hidden.g6").write_text("damaged")
    (tmp_path / "README.md").write_text("not graphs")

    assert [graph.nodes for graph in read_graphs(tmp_path)] == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("format", STREAMING)
def test_a_closed_reader_ends_and_frees_the_file(format: str, tmp_path: Path) -> None:
    write_graphs([GRAPH] * 3, tmp_path / f"a.{format}")

    with read_graphs(tmp_path / f"a.{format}") as reader:
        assert next(reader).nodes == 4

    assert list(reader) == []


@pytest.mark.slow
@pytest.mark.parametrize("format", STREAMING)
def test_a_long_stream_takes_no_more_memory_than_a_short_one(format: str, tmp_path: Path) -> None:
    def peak(count: int) -> int:
        tracemalloc.start()
        write_graphs((replace(GRAPH) for _ in range(count)), tmp_path / f"a.{format}", force=True)
        assert sum(1 for _ in read_graphs(tmp_path / f"a.{format}")) == count
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(100)
    short = 9000 if format == "h5" else 1000

    assert peak(4 * short) < 1.2 * peak(short) + 2e5


@pytest.mark.parametrize("format", ["graphml", "gml", "jsonl", "h5"])
def test_a_union_is_one_graph_with_the_part_as_node_attribute(format: str, tmp_path: Path) -> None:
    parts = [replace(GRAPH, attributes={"family": "ego", "split": split}) for split in ("train", "test")]

    assert write_graphs(parts, tmp_path / f"a.{format}", union=True) == 2

    (read,) = read_graphs(tmp_path / f"a.{format}")
    assert read.nodes == 8
    assert read.edges.tolist() == [[0, 1], [1, 3], [4, 5], [5, 7]]
    assert read.node_attributes["graph"] == [0] * 4 + [1] * 4
    assert read.node_attributes["split"] == ["train"] * 4 + ["test"] * 4
    assert read.attributes["family"] == "ego"


def test_a_union_is_directed_if_all_parts_are(tmp_path: Path) -> None:
    arcs = SimpleGraph.from_pairs(2, [(0, 1), (1, 0)], directed=True)
    write_graphs([arcs, arcs], tmp_path / "a.jsonl", union=True)

    (read,) = read_graphs(tmp_path / "a.jsonl")

    assert (read.directed, read.edges.tolist()) == (True, [[0, 1], [1, 0], [2, 3], [3, 2]])
    assert_not_written(tmp_path / "b.jsonl", "union of directed and undirected", arcs, GRAPH, union=True)


@pytest.mark.parametrize("format", ["g6", "s6", "edgelist"])
def test_a_union_without_node_attributes_is_refused(format: str, tmp_path: Path) -> None:
    assert_not_written(tmp_path / f"a.{format}", "format-drops-attributes", GRAPH, union=True)


@pytest.mark.parametrize("format", FORMATS)
def test_a_format_declares_what_it_drops(format: str, tmp_path: Path) -> None:
    carried = {
        "weights": np.array([2.5, 1.0]),
        "features": np.ones((4, 1), np.float32),
        "names": ("a", "b", "c", "d"),
        "node_attributes": {"colour": ["red", "blue", "red", "blue"]},
        "edge_attributes": {"kind": ["road", "path"]},
    }
    rich = replace(GRAPH, **carried)
    write_graphs([rich], tmp_path / f"a.{format}")

    (back,) = read_graphs(tmp_path / f"a.{format}")

    lost = [name for name in carried if getattr(back, name) is None or not len(getattr(back, name))]
    assert dropped_by(format, rich) == [name.replace("_", " ") for name in lost]
    assert dropped_by(format, GRAPH) == []
    assert keeps_node_attributes(format) == bool(back.node_attributes)


def test_importing_the_formats_loads_no_heavy_library() -> None:
    code = "import sys, graphite_gen.io; print({'torch', 'networkx', 'h5py', 'igraph'} & set(sys.modules))"

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
