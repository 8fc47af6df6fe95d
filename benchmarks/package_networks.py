"""Real networks that Python packages ship, written as edge lists.

    pip download --no-deps --no-binary :all: --dest packages NAME ...    (pandapower as a wheel)
    python -m benchmarks.package_networks packages networks

The archives are those of ``NETWORKS``; none is needed for the others. Directions, weights and repeated edges are
dropped.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

__all__ = ["NETWORKS", "main"]

Edges = Iterable[tuple[Any, Any]]


def gml_edges(data: bytes) -> Edges:
    """Return the edges of a GML file, which may repeat labels and edges."""
    return re.findall(r"source\s+(\d+)\s+target\s+(\d+)", data.decode("latin-1"))


def listed_edges(data: bytes) -> Edges:
    """Return the first two columns of an edge list with comments."""
    rows = (line.split() for line in data.decode("utf-8").splitlines() if line and line[0] not in "%#")

    return [(row[0], row[1]) for row in rows]


def bipartite_edges(data: bytes) -> Edges:
    """Return the edges of a KONECT file whose two sides are numbered separately."""
    return [(f"a{i}", f"b{j}") for i, j in listed_edges(data)]


def matrix_edges(data: bytes) -> Edges:
    """Return the entries of a dense adjacency matrix in text form that are not zero."""
    return zip(*np.nonzero(np.loadtxt(io.BytesIO(data))), strict=True)


def road_edges(data: bytes) -> Edges:
    """Return the entries of the sparse matrix ``A`` in a MATLAB file."""
    from scipy.io import loadmat

    return zip(*loadmat(io.BytesIO(data))["A"].nonzero(), strict=True)


def mesh_edges(data: bytes) -> Edges:
    """Return the pairs of a MATLAB file with lists of ends ``i_inds`` and ``j_inds``."""
    from scipy.io import loadmat

    found = loadmat(io.BytesIO(data))

    return zip(found["i_inds"].ravel(), found["j_inds"].ravel(), strict=True)


def water_edges(data: bytes) -> Edges:
    """Return pipes, pumps and valves of an EPANET file."""
    edges, section = [], ""
    for line in data.decode("latin-1").splitlines():
        words = line.partition(";")[0].split()
        if words and words[0].startswith("["):
            section = words[0]
        elif len(words) > 2 and section in ("[PIPES]", "[PUMPS]", "[VALVES]"):
            edges.append((words[1], words[2]))

    return edges


def grid_edges(data: bytes) -> Edges:
    """Return lines and transformers of a pandapower file."""
    parts = json.loads(data)["_object"]
    for name, ends in (("line", ("from_bus", "to_bus")), ("trafo", ("hv_bus", "lv_bus"))):
        table = json.loads(parts[name]["_object"])
        i, j = (table["columns"].index(end) for end in ends)
        yield from ((row[i], row[j]) for row in table["data"])


def roget_edges(data: bytes) -> Edges:
    """Return the references between the categories of Roget's Thesaurus, in the format of the Stanford GraphBase."""
    text = re.sub(r"\\\n", "", gzip.decompress(data).decode("utf-8"))
    for line in text.splitlines():
        head, _, tail = line.partition(":")
        if tail and head[0].isdigit():
            yield from ((int(re.match(r"\d+", head)[0]), int(other)) for other in tail.split())  # type: ignore[index]


def word_edges(data: bytes) -> Edges:
    """Return the pairs of English words of five letters that differ in one letter."""
    words = [line[:5] for line in gzip.decompress(data).decode("utf-8").splitlines() if line[:1].isalpha()]
    groups: dict[str, list[str]] = {}
    for word in words:
        for place in range(5):
            groups.setdefault(word[:place] + "_" + word[place + 1 :], []).append(word)

    return [(a, b) for group in groups.values() for k, a in enumerate(group) for b in group[:k]]


# The package, the end of the path in its archive, and the reader.
NETWORKS: dict[str, tuple[str, str, Callable[[bytes], Edges]]] = {
    "karate": ("igraph", "simple/karate.gml", gml_edges),
    "lesmis": ("igraph", "lesmis/lesmis.gml", gml_edges),
    "football": ("nxviz", "data/football.gml", gml_edges),
    "drosophila": ("graspologic", "drosophila/left_adjacency.csv", matrix_edges),
    "celegans": ("igraph", "simple/celegansneural.gml", gml_edges),
    "water": ("wntr", "networks/ky10.inp", water_edges),
    "roget": ("networkx", "graph/roget_dat.txt.gz", roget_edges),
    "crime": ("nxviz", "moreno_crime/out.moreno_crime_crime", bipartite_edges),
    "wormnet": ("networkx", "algorithms/WormNet.v3.benchmark.txt", listed_edges),
    "road": ("pygsp", "pointclouds/minnesota.mat", road_edges),
    "grid-europe": ("pandapower", "case2869pegase.json", grid_edges),
    "grid-poland": ("pandapower", "case3120sp.json", grid_edges),
    "airfoil": ("pygsp", "pointclouds/airfoil.mat", mesh_edges),
    "synonyms": ("igraph", "unit/wikti_en_V_syn.elist", listed_edges),
    "words": ("networkx", "graph/words_dat.txt.gz", word_edges),
}


def member(archive: Path, end: str) -> bytes:
    """Return the first file of an archive whose path has the given end."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(next(name for name in wheel.namelist() if name.endswith(end)))
    with tarfile.open(archive) as file:
        found = file.extractfile(next(name for name in file.getnames() if name.endswith(end)))
        assert found is not None
        return found.read()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages", type=Path, help="the folder of the archives")
    parser.add_argument("output", type=Path, help="the folder for the edge lists")
    arguments = parser.parse_args()

    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, (package, end, read) in NETWORKS.items():
        archives = sorted(arguments.packages.glob(f"{package}-*"))
        if not archives:
            print(f"{name}: no archive of {package}")
            continue
        graph = nx.Graph((i, j) for i, j in read(member(archives[-1], end)) if i != j)
        graph = nx.convert_node_labels_to_integers(graph)
        nx.write_edgelist(graph, arguments.output / f"{name}.edgelist", data=False)
        print(f"{name}: {len(graph)} nodes, {graph.size()} edges, from {archives[-1].name}")


if __name__ == "__main__":
    main()
