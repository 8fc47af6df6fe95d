"""Graphs with labels, types, weights, directions and conditions, from training to samples and likelihoods."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner

import graphite_gen as gg
from graphite_gen.cli.main import main
from graphite_gen.errors import ConfigError, DatasetError, GraphiteError, SamplingError
from graphite_gen.graph import SimpleGraph
from graphite_gen.sampling import sampler

pytestmark = pytest.mark.usefixtures("single_precision")

TINY: dict[str, Any] = {"epochs": 1, "epoch_graphs": 32, "batch_size": 16, "ordering": "bfs", "width": 16}


def molecule(seed: int) -> nx.Graph:
    """A labelled, weighted graph with edges between equal labels only."""
    rng = np.random.default_rng(seed)
    graph = nx.Graph()
    graph.graph["class"] = ("small", "large")[seed % 2]
    graph.add_nodes_from((node, {"element": "CN"[node % 2]}) for node in range(6 + 4 * (seed % 2)))
    for i in graph:
        for j in range(i % 2, i, 2):
            if rng.random() < 0.7:
                graph.add_edge(i, j, bond=int(rng.integers(2)), weight=float(rng.lognormal()))

    return graph


def citations(seed: int) -> nx.DiGraph:
    graph = nx.gnp_random_graph(8, 0.3, seed=seed, directed=True)

    return nx.DiGraph((max(u, v), min(u, v)) for u, v in graph.edges)


def are_equal(first: nx.Graph, second: nx.Graph) -> bool:
    """Whether graphs are equal up to the rounding of weights."""

    def about(one: Any, other: Any) -> bool:
        return dict(one, weight=0) == dict(other, weight=0) and one.get("weight") == pytest.approx(other.get("weight"))

    return (
        dict(first.nodes(data=True)) == dict(second.nodes(data=True))
        and first.edges == second.edges
        and all(about(first.edges[edge], second.edges[edge]) for edge in first.edges)
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> gg.Model:
    graphs = [molecule(seed) for seed in range(40)]
    how: dict[str, Any] = {"node_label": "element", "edge_label": "bond", "condition": ["class", "edges"]}
    folder = tmp_path_factory.mktemp("models") / "molecules"

    return gg.fit(graphs, folder=folder, name="molecules", seed=0, progress=False, **how, **TINY)


@pytest.fixture(scope="module")
def directed() -> gg.Model:
    return gg.fit([citations(seed) for seed in range(40)], seed=0, progress=False, **TINY)


def test_samples_carry_what_training_graphs_carry(model: gg.Model) -> None:
    for graph in model.sample(20, seed=1):
        assert {label for _, label in graph.nodes(data="element")} <= {"C", "N"}
        assert {bond for *_, bond in graph.edges(data="bond")} <= {0, 1}
        assert all(weight > 0 for *_, weight in graph.edges(data="weight"))
        assert graph.graph["class"] in ("small", "large")


def test_sample_i_does_not_depend_on_the_number_of_samples(model: gg.Model, directed: gg.Model) -> None:
    for each in (model, directed):
        few, many = each.sample(3, seed=4), each.sample(7, seed=4)
        assert all(are_equal(*pair) for pair in zip(few, many, strict=False))


def test_blocks_that_are_decoded_together_have_conditions_of_their_own(
    model: gg.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "AUTOREGRESSIVE_BLOCK", 8)
    monkeypatch.setattr(sampler, "TOGETHER", 24)
    together = model.sample(24, nodes=6, seed=4)
    monkeypatch.setattr(sampler, "TOGETHER", 1)

    assert all(are_equal(*pair) for pair in zip(together, model.sample(24, nodes=6, seed=4), strict=True))
    blocks = [tuple(graph.graph["given_edges"] for graph in together[start : start + 8]) for start in (0, 8, 16)]
    assert len(set(blocks)) == 3


def test_conditions_determine_sizes_and_are_recorded(model: gg.Model) -> None:
    small, large = (model.sample(30, seed=2, given={"class": name}) for name in ("small", "large"))

    assert {len(graph) for graph in small} == {6}
    assert {len(graph) for graph in large} == {10}
    assert {graph.graph["class"] for graph in small} == {"small"}
    with pytest.warns(UserWarning, match="'edges' is outside the range"):
        given = model.sample(3, seed=2, given={"edges": 1000})
    assert {graph.graph["given_edges"] for graph in given} == {1000.0}
    with pytest.raises(ConfigError, match="no condition 'size'"):
        model.sample(1, given={"size": 3})


def test_the_condition_changes_the_likelihood(model: gg.Model) -> None:
    graph = molecule(0)
    other = graph.copy()
    other.graph["class"] = "large"

    first, second = (model.nll([one], seed=0).nll for one in (graph, other))

    assert abs(first - second) > 1e-4


def test_an_nll_is_the_sum_of_its_parts_each_beside_a_baseline(model: gg.Model) -> None:
    found = model.nll([molecule(seed) for seed in range(40, 44)], seed=0)

    assert [*found.parts] == ["structure", "labels", "types", "weights"]
    assert sum(found.parts.values()) == pytest.approx(found.nll)
    assert sum(found.baselines.values()) == pytest.approx(found.baseline)
    # Labels alternate, and half of the bonds are of each type.
    nodes, edges = (np.mean([count(molecule(seed)) for seed in range(40, 44)]) for count in (len, nx.Graph.size))
    assert found.baselines["labels"] == pytest.approx(nodes * np.log(2), rel=0.01)
    assert found.baselines["types"] == pytest.approx(edges * np.log(2), rel=0.05)


def test_a_model_and_its_run_survive_their_folder(model: gg.Model, tmp_path: Path) -> None:
    model.save(tmp_path / "copy")
    loaded = gg.load(tmp_path / "copy")

    assert loaded.trained.schema == model.trained.schema
    assert are_equal(loaded.sample(1, seed=3)[0], model.sample(1, seed=3)[0])

    graphs = [molecule(seed) for seed in range(40)]
    how: dict[str, Any] = {"node_label": "element", "folder": tmp_path / "run", "progress": False}
    gg.fit(graphs, seed=0, **how, **TINY)
    resumed = gg.fit(graphs, resume=True, **how, **{**TINY, "epochs": 2})
    assert len(resumed.history) == 2
    assert resumed.trained.schema.node_values == ("C", "N")
    with pytest.raises(GraphiteError, match="node_label=element, not bond"):
        gg.fit(graphs, resume=True, **{**how, "node_label": "bond"}, **{**TINY, "epochs": 3})


def test_other_labels_cannot_be_resumed_on(tmp_path: Path) -> None:
    graphs, changed = ([molecule(seed) for seed in range(6)] for _ in range(2))
    changed[0].nodes[0]["element"] = "N"
    how: dict[str, Any] = {"node_label": "element", "folder": tmp_path / "run", "progress": False}
    gg.fit(graphs, seed=0, **how, **TINY)

    with pytest.raises(GraphiteError, match="not those that the run"):
        gg.fit(changed, resume=True, **how, **{**TINY, "epochs": 2})


def test_sizes_and_conditions_go_together(model: gg.Model) -> None:
    for graph in model.sample(20, nodes=6, seed=0):
        assert (graph.graph["class"], graph.graph["given_edges"] <= 6) == ("small", True)


def test_a_model_of_a_family_with_labels_can_be_fine_tuned() -> None:
    family = gg.family("labelled-sbm")
    graphs = [family.sample(8, np.random.default_rng(seed)) for seed in range(30)]
    first = gg.fit(graphs[:20], node_label="block", progress=False, **TINY)

    tuned = gg.fit(graphs[20:], initial=first, epochs=1, progress=False)

    assert tuned.trained.schema == first.trained.schema


def test_a_topological_ordering_can_be_chosen() -> None:
    graphs = [citations(seed) for seed in range(10)]

    assert gg.fit(graphs, progress=False, **{**TINY, "ordering": "topological"}).config.ordering == "topological"


def test_directed_graphs_are_learned_and_can_be_acyclic(directed: gg.Model) -> None:
    free, acyclic = directed.sample(60, seed=1), directed.sample(60, seed=1, constraints=[gg.Dag()])

    assert all(graph.is_directed() for graph in free)
    assert all(nx.is_directed_acyclic_graph(graph) for graph in acyclic)
    assert acyclic[0].graph["constraints"] == "dag"
    assert [*directed.nll([citations(50)], seed=0).parts] == []
    skeleton = directed.trained.sizes.baseline(SimpleGraph.from_networkx(citations(50)).skeleton())
    # Every arc has one of two directions, and almost none go both ways.
    arcs = citations(50).size()
    assert directed.nll([citations(50)], seed=0).baseline == pytest.approx(skeleton + arcs * np.log(2), abs=1)


def test_latents_of_attributed_graphs_can_be_encoded_and_decoded(model: gg.Model) -> None:
    graphs = [molecule(seed) for seed in range(3)]
    encoded = model.encode(graphs)

    found = model.reconstruct(graphs, seed=0)

    assert [one.nodes for one in encoded] == [len(graph) for graph in graphs]
    assert all(graph.node_attributes["element"] for graph in found.graphs)
    assert len(model.interpolate(graphs[0], graphs[1], 3, seed=0)) == 3


@pytest.mark.parametrize(
    ("graphs", "settings", "error", "words"),
    [
        ([molecule(0), molecule(1)], {"node_label": "element", "decoder": "one-shot"}, ConfigError, "autoregressive"),
        ([citations(0), citations(1)], {"kind": "vgae"}, ConfigError, "autoregressive decoder"),
        ([molecule(0), molecule(1)], {"node_label": "atom"}, ConfigError, "no attribute 'atom'"),
        ([molecule(0), citations(1)], {}, DatasetError, "Some graphs are directed"),
        ([molecule(0), molecule(1)], {"weights": "dnese"}, ConfigError, "'weights' is 'dnese'"),
        ([molecule(0), molecule(1)], {"node_labels": 3}, ConfigError, "follows from the graphs"),
        ([molecule(0), molecule(1)], {"ordering": "topological"}, ConfigError, "one of directed graphs"),
    ],
)
def test_settings_that_do_not_fit_the_graphs_are_refused(
    graphs: list[nx.Graph], settings: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        gg.fit(graphs, epochs=1, progress=False, **settings)


def test_what_a_model_cannot_do_is_said_in_one_line(model: gg.Model, directed: gg.Model) -> None:
    with pytest.raises(SamplingError, match="undirected graphs"):
        model.sample(1, constraints=[gg.Dag()])
    with pytest.raises(SamplingError, match=r"condition 'edges'.*depends on the unknown pairs"):
        model.complete(molecule(0), 1, unknown=[(0, 1)])
    with pytest.raises(DatasetError, match="Graph 0 is undirected, but the model was trained on directed graphs"):
        directed.nll([nx.path_graph(4)])
    with pytest.raises(DatasetError, match="directed"):
        model.nll([citations(0)])


def test_missing_labels_and_weights_are_completed(model: gg.Model) -> None:
    graph = molecule(0)
    graph.graph["edges"] = 6
    missing = [node for node in graph if node in (1, 4)]
    for node in missing:
        del graph.nodes[node]["element"]
    edge, other = list(graph.edges)[:2]
    del graph.edges[edge]["weight"]
    del graph.edges[other]["bond"]

    result = model.complete(graph, 6, unknown=[(0, 1)], seed=0, particles=8, steps=10)

    for found in result.graphs:
        changed = {frozenset(one) for one in found.edges} ^ {frozenset(one) for one in graph.edges}
        assert changed <= {frozenset((0, 1))}
        for node, data in graph.nodes(data=True):
            assert found.nodes[node]["element"] == data.get("element", found.nodes[node]["element"])
            assert found.nodes[node]["element"] in ("C", "N")
        for i, j, data in graph.edges(data=True):
            own = found.edges[i, j]
            assert {**own, **data} == own
            assert (own["bond"] in (0, 1), own["weight"] > 0, own["sampled"]) == (True, True, False)
    assert {one.node for one in result.label_scores} == {*missing}
    larger = model.complete(graph, 2, unlisted="absent", add_nodes=2, seed=0, particles=8, steps=10)
    for found in larger.graphs:
        assert len(found) == len(graph) + 2
        assert all(label in ("C", "N") for _, label in found.nodes(data="element"))
        assert all(weight > 0 for *_, weight in found.edges(data="weight"))


def test_directions_are_completed(directed: gg.Model) -> None:
    graph = citations(3)
    arcs = list(graph.edges)
    graph.edges[arcs[0]]["state"] = "unknown"

    result = directed.complete(graph, 40, seed=0, steps=400)

    assert all(found.is_directed() for found in result.graphs)
    assert {(score.source, score.target) for score in result.scores} == {arcs[0], arcs[0][::-1]}
    free = {arcs[0], arcs[0][::-1]}
    assert len({tuple(sorted(free & {*found.edges})) for found in result.graphs}) > 1
    assert all({*found.edges} - free == {*arcs} - free for found in result.graphs)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda graph: graph.nodes[0].update(element="X"), "node 0 has element 'X', which no training graph has"),
        (lambda graph: graph.edges[0, 2].update(bond=7), "edge 0 - 2 has bond '7', which no training graph has"),
        (lambda graph: graph.edges[0, 2].update(weight=-1.0), "weight -1; those of the model are positive"),
        (lambda graph: graph.graph.update({"class": "huge"}), "class 'huge', which no training graph has"),
        (lambda graph: None, "Nothing of the graph is unknown"),
    ],
)
def test_what_cannot_be_completed_is_refused(model: gg.Model, change: Any, words: str) -> None:
    graph = molecule(0)
    graph.add_edge(0, 2, bond=0, weight=1.0)
    change(graph)

    with pytest.raises(DatasetError, match=words):
        model.complete(graph, 1, unlisted="absent")
    with pytest.raises(DatasetError, match="directed"):
        model.complete(citations(0), 1, unlisted="unknown")


def test_dense_weights_are_those_of_the_paper() -> None:
    graphs = [molecule(seed) for seed in range(6)]

    dense = gg.fit(graphs, weights="dense", epochs=1, progress=False)

    assert (dense.config.decoder, dense.config.observation) == ("one-shot", "normal")


def test_the_command_line_trains_samples_and_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    gg.write_graphs([molecule(seed) for seed in range(30)], "molecules.graphml")

    def run(*words: str) -> str:
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 0, result.output
        return result.output

    names = ("--node-label", "element", "--edge-label", "bond", "--condition", "class")
    run("train", "molecules.graphml", *names, "--epochs", "1", "--ordering", "bfs", "--epoch-graphs", "32")
    run("sample", "-n", "5", "--given", "class=small", "-o", "out.jsonl")
    table = run("nll", "molecules.graphml")
    shown = run("inspect", "molecules")

    drawn = [SimpleGraph.to_networkx(graph) for graph in gg.read_graphs("out.jsonl")]
    assert {len(graph) for graph in drawn} == {6}
    assert {*nx.get_node_attributes(drawn[0], "element").values()} <= {"C", "N"}
    assert all(word in table for word in ("structure", "labels", "types", "weights", "baseline"))
    assert "element" in shown
