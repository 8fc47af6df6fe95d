from itertools import combinations
from pathlib import Path

import networkx as nx
import pytest

from graphite_gen.errors import FormatError
from graphite_gen.graph import SimpleGraph
from graphite_gen.io import read_graphs, write_graphs

from .graphs import assert_kept, assert_not_written, assert_same

CLIENTS = {"g6": (nx.from_graph6_bytes, nx.to_graph6_bytes), "s6": (nx.from_sparse6_bytes, nx.to_sparse6_bytes)}
GRAPHS = [nx.gnp_random_graph(n, p, seed=n) for n in [*range(35), 62, 63, 64, 128, 129, 300] for p in (0.02, 0.5)]


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("format", CLIENTS)
def test_networkx_opens_what_we_write_and_what_it_writes_is_read(format: str, header: bool, tmp_path: Path) -> None:
    ours, theirs = tmp_path / f"ours.{format}", tmp_path / f"theirs.{format}"
    decode, encode = CLIENTS[format]
    write_graphs(GRAPHS, ours)
    theirs.write_bytes(b"".join(encode(graph, header=header) for graph in GRAPHS))

    for graph, line, read in zip(GRAPHS, ours.read_bytes().splitlines(), read_graphs(theirs), strict=True):
        assert_same(SimpleGraph.from_networkx(graph), SimpleGraph.from_networkx(decode(line)))
        assert_same(SimpleGraph.from_networkx(graph), read)


@pytest.mark.parametrize("nodes", [2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33])
def test_padding_of_sparse6_never_reads_as_an_edge(nodes: int, tmp_path: Path) -> None:
    pairs = [pair for pair in combinations(range(nodes), 2) if pair[1] >= nodes - 3]

    assert_kept([SimpleGraph.from_pairs(nodes, [pair]) for pair in pairs], tmp_path / "a.s6")


def test_sparse6_holds_large_graphs_and_graph6_refuses_a_bit_for_every_pair(tmp_path: Path) -> None:
    sizes = (258_047, 258_048, 1_000_000)

    assert_kept([SimpleGraph.from_pairs(n, [(0, n - 1), (5, 6), (5, n - 2)]) for n in sizes], tmp_path / "a.s6")
    assert_not_written(tmp_path / "a.g6", r"\.s6", SimpleGraph.from_pairs(1_000_000, []))


def test_most_cuts_within_sparse6_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.s6"
    line = nx.to_sparse6_bytes(nx.gnp_random_graph(35, 0.4, seed=35), header=False).strip()
    refused = 0
    for stop in range(2, len(line)):
        path.write_bytes(line[:stop])
        try:
            list(read_graphs(path))
        except FormatError:
            refused += 1
    # A cut between two edges cannot be told from a smaller graph.
    assert refused > len(line) // 2
