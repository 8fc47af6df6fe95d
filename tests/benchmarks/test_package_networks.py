"""The formats of networks that packages ship are read edge by edge."""

import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from benchmarks import package_networks
from benchmarks.package_networks import NETWORKS, member


def matlab(**values: object) -> bytes:
    stream = io.BytesIO()
    savemat(stream, values)

    return stream.getvalue()


def table(ends: tuple[str, str], rows: list[list[int]]) -> dict[str, str]:
    return {"_object": json.dumps({"columns": ["name", *ends], "index": [], "data": [["x", *row] for row in rows]})}


GRID = {"line": table(("from_bus", "to_bus"), [[5, 7], [7, 9]]), "trafo": table(("hv_bus", "lv_bus"), [[9, 2]])}
WATER = """[JUNCTIONS]
 J-1 10 ;
 J-2 10 20 ; not an edge
[PIPES]
;ID Node1 Node2 Length
 P-1 J-1 J-2 494.25 ;
[PUMPS]
 U-1 J-2 R-9 HEAD 1 ;
[COORDINATES]
 J-1 10 20
"""
EXAMPLES: dict[str, tuple[bytes, set[tuple[object, object]]]] = {
    "gml_edges": (b"graph [ node [ id 0 ] edge\n [\n source 3\n target 1\n value 2 ] ]", {("3", "1")}),
    "listed_edges": (b"# comment\n% another\n1 2\n2\t3 0.5\n", {("1", "2"), ("2", "3")}),
    "bipartite_edges": (b"% bip\n1 1\n1 2\n", {("a1", "b1"), ("a1", "b2")}),
    "matrix_edges": (b"0 2 0\n0 0 1\n0 0 0\n", {(0, 1), (1, 2)}),
    "road_edges": (matlab(A=sparse.csc_array(np.array([[0, 1], [0, 0]]))), {(0, 1)}),
    "mesh_edges": (matlab(i_inds=np.array([[1, 2]]), j_inds=np.array([[2, 3]])), {(1, 2), (2, 3)}),
    "water_edges": (WATER.encode(), {("J-1", "J-2"), ("J-2", "R-9")}),
    "grid_edges": (json.dumps({"_object": GRID}).encode(), {(5, 7), (7, 9), (9, 2)}),
    "roget_edges": (
        gzip.compress(b"* comment\n1existence:2 31\\\n 4\n2inexistence:1\n"),
        {(1, 2), (1, 31), (1, 4), (2, 1)},
    ),
    "word_edges": (gzip.compress(b"* comment\nwhich*1\nwitch\nwater\nwafer\n"), {("wafer", "water")}),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_edges_are_read(name: str) -> None:
    data, wanted = EXAMPLES[name]

    assert set(getattr(package_networks, name)(data)) == wanted


def test_every_reader_has_an_example() -> None:
    assert {read.__name__ for _, _, read in NETWORKS.values()} == set(EXAMPLES)


def test_networks_are_written_from_wheels_and_source_archives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with zipfile.ZipFile(tmp_path / "pandapower-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("pandapower/networks/case3120sp.json", EXAMPLES["grid_edges"][0])
    data = b"edge [ source 1 target 2 ] edge [ source 2 target 1 ] edge [ source 3 target 3 ]"
    with tarfile.open(tmp_path / "igraph-1.0.tar.gz", "w:gz") as archive:
        info = tarfile.TarInfo("igraph-1.0/simple/karate.gml")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    assert member(tmp_path / "igraph-1.0.tar.gz", "simple/karate.gml") == data

    kept = ("karate", "football", "grid-poland")
    monkeypatch.setattr(package_networks, "NETWORKS", {name: NETWORKS[name] for name in kept})
    monkeypatch.setattr("sys.argv", ["package_networks", str(tmp_path), str(tmp_path / "out")])
    package_networks.main()

    assert "football: no archive of nxviz" in capsys.readouterr().out
    sizes = {path.stem: nx.read_edgelist(path).size() for path in (tmp_path / "out").iterdir()}
    # Without the repeated edge and the self-loop.
    assert sizes == {"karate": 1, "grid-poland": 3}
