from pathlib import Path

import networkx as nx
import pytest
from networkx.readwrite.graphml import GraphMLReader

from graphite_gen.families import FAMILIES, Family, family
from graphite_gen.families.simulate import generate
from graphite_gen.io import read_graphs
from graphite_gen.records import Provenance

from .conftest import run


def test_the_file_has_the_graphs_of_the_library_with_splits_and_provenance(graphs: Path) -> None:
    reader = read_graphs(graphs)
    found = list(reader)

    assert reader.provenance == Provenance("ego", {"p": 0.5}, 1, "generate")
    expected = generate(family("ego"), 12, (5, 8), seed=1)
    assert [graph.edges.tolist() for graph in found] == [graph.edges.tolist() for graph in expected]
    assert [graph.attributes["split"] for graph in found] == ["train"] * 4 + ["validation"] * 4 + ["test"] * 4


def test_many_graphs_in_one_graphml_file_come_with_code_that_reads_them() -> None:
    result = run("generate", "--family", "tree", "-n", 5, "-o", "out.graphml")
    line = next(line for line in result.stderr.splitlines() if "GraphMLReader()" in line)
    namespace = {"GraphMLReader": GraphMLReader}
    exec(line.strip(), namespace)

    assert len(namespace["graphs"]) == 5
    assert all(nx.is_tree(graph) for graph in namespace["graphs"])
    assert "{index:04d}" in result.stderr
    assert "--union" in result.stderr


def test_a_template_writes_one_file_per_graph_and_a_union_is_one_graph() -> None:
    for output in (["out/{index:02d}.graphml"], ["u.graphml", "--union"]):
        assert "GraphMLReader" not in run("generate", "--family", "ego", "-n", 3, "-o", *output).stderr

    assert sorted(path.name for path in Path("out").iterdir()) == ["00.graphml", "01.graphml", "02.graphml"]
    assert nx.number_connected_components(nx.read_graphml("u.graphml")) == 3


def test_parameters_reach_the_family() -> None:
    sparse = ("--family", "er", "--param", "p=0.1", "--param", "largest_component=true")
    run("generate", *sparse, "--nodes", 12, "-n", 9, "-o", "cut.jsonl")
    graphs = list(read_graphs("cut.jsonl"))

    assert all(nx.is_connected(graph.to_networkx()) for graph in graphs)
    assert min(graph.nodes for graph in graphs) < 12


@pytest.mark.parametrize("suffix", ["h5", "graphml", "jsonl", "gml"])
@pytest.mark.parametrize("name", ["labelled-sbm", "weighted-barabasi"])
def test_labels_and_weights_are_in_the_file(name: str, suffix: str) -> None:
    run("generate", "--family", name, "-n", 6, "--nodes", "6:8", "--seed", 1, "-o", f"out.{suffix}")
    own, found = generate(name, 6, (6, 8), seed=1), list(read_graphs(f"out.{suffix}"))

    assert all(map(family(name).contains, found))
    assert [family(name).log_prob(graph) for graph in found] == [family(name).log_prob(graph) for graph in own]


def test_a_format_without_labels_says_so() -> None:
    assert "node attributes" in run("generate", "--family", "labelled-sbm", "-n", 3, "-o", "out.g6").stderr


def test_the_help_states_the_largest_sizes() -> None:
    text = " ".join(run("generate", "--help").stdout.split())

    assert f"at most {Family.most_nodes} ({FAMILIES['powerlaw-tree'].most_nodes} in trees)" in text
    assert {kind.most_nodes for name, kind in FAMILIES.items() if name != "powerlaw-tree"} == {Family.most_nodes}


def test_an_existing_file_is_replaced_with_force(graphs: Path) -> None:
    run("generate", "--family", "er", "-o", graphs, "--force")

    assert read_graphs(graphs).provenance.family == "erdos-renyi"
