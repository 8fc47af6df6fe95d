"""Node features that are generated with graphs, from training to samples, likelihoods and files."""

import json
import math
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner

import graphite_gen as gg
from graphite_gen.cli.main import main
from graphite_gen.errors import ConfigError, DatasetError, GraphiteError
from graphite_gen.graph import SimpleGraph

pytestmark = pytest.mark.usefixtures("single_precision")

TINY: dict[str, Any] = {"epochs": 1, "epoch_graphs": 32, "batch_size": 16, "ordering": "bfs", "width": 16}
SLOPE, NOISE = 0.8, (0.5, 0.3)


def measured(seed: int) -> nx.Graph:
    """A graph with a feature that is linear in the degree, one that is linear in the first, and a label."""
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(int(rng.integers(6, 10)), 0.4, seed=seed)
    for node, data in graph.nodes(data=True):
        x = SLOPE * graph.degree[node] + NOISE[0] * float(rng.normal())
        data.update(
            x=x, y=1.0 - x + NOISE[1] * float(rng.normal()), element="CN"[rng.integers(2)], age=int(rng.integers(9))
        )

    return graph


def true_nats(graph: nx.Graph) -> float:
    """-log p of the features x and y of a graph."""
    residuals = [
        (data["x"] - SLOPE * graph.degree[node], data["y"] - 1.0 + data["x"]) for node, data in graph.nodes(data=True)
    ]

    return sum(
        0.5 * (value / scale) ** 2 + math.log(scale) + 0.5 * math.log(2 * math.pi)
        for row in residuals
        for value, scale in zip(row, NOISE, strict=True)
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> gg.Model:
    folder = tmp_path_factory.mktemp("models") / "measured"
    graphs = [measured(seed) for seed in range(40)]

    return gg.fit(graphs, folder=folder, node_label="element", generate_features=True, seed=0, progress=False, **TINY)


def test_samples_carry_features_of_the_same_names_and_types(model: gg.Model) -> None:
    for graph in model.sample(5, seed=1):
        for _, data in graph.nodes(data=True):
            assert {key: type(value) for key, value in data.items()} == {
                "element": str,
                "x": float,
                "y": float,
                "age": int,
            }
            assert data["age"] >= 0
    few, many = model.sample(2, seed=4), model.sample(6, seed=4)
    for one, same in zip(few, many, strict=False):
        assert [*one.edges(data=True)] == [*same.edges(data=True)]
        for name in ("x", "y", "age"):
            # Sums in single precision depend on the size of a batch.
            values, others = ([value for _, value in graph.nodes(data=name)] for graph in (one, same))
            assert values == pytest.approx(others, rel=1e-4, abs=1e-4)


def test_arrays_of_features_come_back_as_arrays() -> None:
    graphs = [measured(seed) for seed in range(20)]
    for graph in graphs:
        for _, data in graph.nodes(data=True):
            data["features"] = [data.pop("x"), data.pop("y")]

    model = gg.fit(graphs, generate_features=["features"], seed=0, progress=False, **TINY)
    conditioned = gg.fit(graphs, seed=0, progress=False, **TINY)

    assert (model.config.node_features, conditioned.config.node_features) == (0, 2)
    drawn = model.sample(2, seed=0)
    assert all(len(row) == 2 for _, row in drawn[0].nodes(data="features"))
    assert "age" not in drawn[0].nodes[0]
    assert model.nll(graphs[:2], seed=0, samples=8).parts["features"] is not None
    assert model.reconstruct(graphs[:2], seed=0).graphs[0].features is not None
    with pytest.raises(DatasetError, match="no node features"):
        model.nll([nx.path_graph(4)])


def test_features_are_a_part_of_the_nll_beside_a_baseline(model: gg.Model) -> None:
    graphs = [measured(seed) for seed in range(40, 44)]
    found = model.nll(graphs, seed=0, samples=20)

    assert [*found.parts] == ["structure", "labels", "features"]
    assert sum(found.parts.values()) == pytest.approx(found.nll)
    assert sum(found.baselines.values()) == pytest.approx(found.baseline)
    moved = [graph.copy() for graph in graphs]
    for graph in moved:
        for _, data in graph.nodes(data=True):
            data["x"] += 50.0
    assert model.nll(moved, seed=0, samples=20).parts["features"] > found.parts["features"] + 10


def test_a_run_on_all_features_can_be_saved_loaded_and_resumed(model: gg.Model, tmp_path: Path) -> None:
    model.save(tmp_path / "copy")
    assert gg.load(tmp_path / "copy").trained.schema == model.trained.schema

    graphs = [measured(seed) for seed in range(20)]
    how: dict[str, Any] = {"folder": tmp_path / "run", "progress": False}
    gg.fit(graphs, generate_features=True, seed=0, **how, **TINY)
    resumed = gg.fit(graphs, generate_features=True, resume=True, **how, **{**TINY, "epochs": 2})
    assert len(resumed.history) == 2
    with pytest.raises(GraphiteError, match="generate_features"):
        gg.fit(graphs, generate_features=["x"], resume=True, **how, **{**TINY, "epochs": 3})
    graphs[3].nodes[0]["x"] += 1.0
    with pytest.raises(GraphiteError, match="not those that the run"):
        gg.fit(graphs, resume=True, **how, **{**TINY, "epochs": 3})


def test_a_graph_is_not_completed_with_features(model: gg.Model, tmp_path: Path) -> None:
    graph = measured(0)
    graph.edges[next(iter(graph.edges))]["state"] = "unknown"
    nx.write_graphml(graph, tmp_path / "partial.graphml")
    paths = [str(tmp_path / name) for name in ("partial.graphml", "completed.graphml", "scores.csv")]

    with pytest.raises(GraphiteError, match="generates node features"):
        model.complete(graph, 1)
    model.save(tmp_path / "measured")
    options = ["--model", str(tmp_path / "measured"), "-o", paths[1], "--scores", paths[2]]
    result = CliRunner().invoke(main, ["complete", paths[0], *options])

    assert result.exit_code == 1
    lines = [line for line in result.stderr.splitlines() if line.startswith("Error")]
    assert lines == ["Error: 'model' generates node features; graphs cannot be completed by such a model."]
    assert {path.name for path in tmp_path.iterdir()} == {"partial.graphml", "measured"}


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"decoder": "one-shot"}, ConfigError, "autoregressive"),
        ({"generate_features": ["xx"]}, ConfigError, "no attribute 'xx'"),
        ({"node_label": "age", "generate_features": ["age"]}, ConfigError, "is the node label"),
        ({"feature_kinds": ("real",)}, ConfigError, "follows from the graphs"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        gg.fit([measured(0), measured(1)], epochs=1, progress=False, **{"generate_features": True, **settings})


def test_the_command_line_generates_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    gg.write_graphs([measured(seed) for seed in range(30)], "measured.graphml")
    odd = [measured(seed) for seed in range(4)]
    odd[2].nodes[1]["age"] = 2.5
    gg.write_graphs(odd, "odd.jsonl")

    def run(*words: str, code: int = 0) -> str:
        result = CliRunner().invoke(main, words)
        assert result.exit_code == code, result.output
        return result.output

    quick = ("--epochs", "1", "--ordering", "bfs", "--epoch-graphs", "32")
    run("train", "measured.graphml", "--node-label", "element", "--generate-features", *quick)
    run("sample", "-n", "12", "-o", "out.graphml")
    table = run("nll", "measured.graphml", "-k", "8")
    shown = run("inspect", "measured")
    compared = run("evaluate", "out.graphml", "--reference", "measured.graphml", "--json")
    value = json.loads(compared[compared.index("{") :])
    refused = run("nll", "odd.jsonl", "-k", "8", code=1)
    run("train", "measured.graphml", "--node-feature", "x", "--name", "one", *quick)
    run("sample", "--model", "one", "-n", "2", "-o", "one.jsonl")

    drawn = [SimpleGraph.to_networkx(graph) for graph in gg.read_graphs("out.graphml")]
    assert {*drawn[0].nodes[next(iter(drawn[0]))]} == {"element", "x", "y", "age"}
    assert "features" in table
    assert "x (real)" in shown
    assert any(row["attribute"] == "x" and row["measure"] == "KS of values" for row in value["attributes"])
    assert any(text.startswith("Node features") for text in value["findings"])
    assert "Graph 2 has age 2.5" in refused or "graph 2 has age 2.5" in refused
    assert {*next(iter(gg.read_graphs("one.jsonl"))).node_attributes} == {"x"}


@pytest.mark.slow
def test_features_of_a_known_process_are_learned_to_their_entropy() -> None:
    graphs = [measured(seed) for seed in range(4000)]
    settings: dict[str, Any] = {"ordering": "uniform", "epochs": 14, "epoch_graphs": 2500, "width": 32}

    model = gg.fit(graphs, generate_features=["x", "y"], seed=0, progress=False, **settings)

    test = [measured(seed) for seed in range(10_000, 10_120)]
    found = model.nll(test, samples=32, seed=0)
    excess = found.parts["features"] - np.mean([true_nats(graph) for graph in test])
    assert excess <= 0.1
    assert found.baselines["features"] - found.parts["features"] > 5
