"""The benchmark of latents recovers hidden variables that are there, and finds none where there are none."""

import json
import math
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from tiny import all_graphs, autoregressive_model, small_model

import graphite_gen as gg
from graphite_gen.families.geometric import Geometric
from graphite_gen.families.simulate import generate
from graphite_gen.graph import SimpleGraph
from graphite_gen.io import write_graphs

script = pytest.importorskip("benchmarks.reproduce.latents", reason="needs scikit-learn")
TINY = {"epochs": 1, "epoch_graphs": 8, "batch_size": 4, "width": 8, "rounds": 1, "ordering": "bfs"}


def rotated(points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (points - 0.5) @ np.linalg.qr(rng.normal(size=(2, 2)))[0]


def test_hidden_variables_belong_to_the_nodes_of_the_graph() -> None:
    graphs, points = script.with_hidden("geometric", 3, 0)
    assert all(np.array_equal(Geometric().graph_of(p).edges, g.edges) for g, p in zip(graphs, points, strict=True))

    (graph,), (ages,) = script.with_hidden("barabasi", 1, 0)
    # A node has four edges to older ones.
    i, j = graph.edges.T
    older = np.bincount(np.concatenate([i[ages[j] < ages[i]], j[ages[i] < ages[j]]]), minlength=graph.nodes)
    assert (older[ages > script.ATTACHED] == script.ATTACHED).all()

    (graph,), (blocks,) = script.with_hidden("sbm", 1, 0)
    same = blocks[graph.edges[:, 0]] == blocks[graph.edges[:, 1]]
    assert same.mean() > 0.8


def test_hidden_variables_are_recovered_from_latents_that_carry_them_and_from_no_others() -> None:
    rng = np.random.default_rng(0)
    points = [rng.random((20, 2)) for _ in range(40)]
    scale = rng.normal(size=(2, 4))
    noise = [rng.normal(size=(20, 4)) for _ in points]
    carried = [rotated(own, rng) @ scale + 0.01 * other for own, other in zip(points, noise, strict=True)]
    assert script.position_r2(carried, points) > 0.98
    assert script.position_r2(noise, points) < 0.2

    ages = [rng.permutation(20) for _ in noise]
    known = [np.concatenate([x, age[:, None]], 1) for x, age in zip(noise, ages, strict=True)]
    assert script.age_correlation(known, ages) > 0.99
    assert abs(script.age_correlation(noise, ages)) < 0.3

    blocks = [np.repeat([0, 1, 2], [5, 7, 8])] * 5
    assert script.block_information([np.eye(3)[own] + 0.01 * noise[0][:, :3] for own in blocks], blocks) == 1
    assert script.block_information(noise[:5], blocks) < 0.5


@pytest.mark.parametrize("attached", [1, 2])
def test_expected_ages_are_the_means_over_simulated_histories(monkeypatch: pytest.MonkeyPatch, attached: int) -> None:
    monkeypatch.setattr(script, "NODES", 6)
    monkeypatch.setattr(script, "ATTACHED", attached)
    found: dict[bytes, list[np.ndarray]] = {}
    for graph, ages in zip(*script.with_hidden("barabasi", 4000, 0), strict=True):
        # Nodes numbered by structure, so that graphs recur.
        order = np.array(nx.to_numpy_array(graph.to_networkx()) @ graph.degrees() ** 2 + graph.degrees()).argsort()
        found.setdefault(graph.permuted(order.argsort()).adjacency().tobytes(), []).append(ages[order])
    key, histories = max(found.items(), key=lambda item: len(item[1]))
    graph = SimpleGraph.from_adjacency(np.frombuffer(key, dtype=bool).reshape(6, 6))

    assert len(histories) > 50
    errors = np.std(histories, axis=0) / len(histories) ** 0.5
    assert (abs(script.expected_ages(graph) - np.mean(histories, axis=0)) < 4 * errors + 0.05).all()


def test_properties_are_regressed_from_vectors() -> None:
    graphs = generate("geometric", 60, seed=0).graphs
    edges = np.array([[len(graph.edges), 0.0] for graph in graphs])

    found = script.property_r2(edges, graphs)

    assert found["edges"] > 0.999
    assert found["diameter"] < 0.99


def test_probabilities_of_block_models_sum_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "BLOCK_SIZES", range(1, 3))
    monkeypatch.setattr(script, "BLOCK_COUNTS", range(1, 4))
    # Partitions of three nodes into one to three blocks of one or two, by their first nodes.
    partitions = [
        p for p in product(range(3), repeat=3) if list(dict.fromkeys(p)) == list(range(max(p) + 1)) and any(p)
    ]
    total = sum(math.exp(-script.sbm_nats(graph, np.array(p))) for graph in all_graphs(3) for p in partitions)

    assert total == pytest.approx(1)


@pytest.mark.parametrize("kind", ["one-shot", "autoregressive"])
def test_ablations_change_models_that_read_their_latents_only(kind: str) -> None:
    graphs = [SimpleGraph.from_networkx(nx.path_graph(n)) for n in (4, 5, 6, 5)]
    others = {} if kind == "one-shot" else {"decoder": "autoregressive", "encoder": "residual", "ordering": "bfs"}

    found = script.ablations(small_model(**others), graphs)
    assert all(values.shape == (4,) and (abs(values) > 1e-6).all() for values in found.values())

    if kind == "autoregressive":
        ignoring = script.ablations(autoregressive_model(), graphs)
        assert all(values == pytest.approx(0, abs=1e-9) for values in ignoring.values())


@pytest.mark.usefixtures("single_precision")
def test_figures_are_logged_and_tabulated_with_their_targets(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    names = []

    def train(out: Path, name: str, source: list[Any], settings: list[str], **_: Any) -> dict[str, Any]:
        """A tiny model in this process instead of the command."""
        names.append(name)
        data = generate(source[1], 16, nodes=(6, 8), seed=0) if source[0] == "--family" else source[0]
        encoder = {"encoder": "none"} if "none" in settings else {}
        gg.fit(data, folder=out / name, **TINY, **encoder)
        return {"folder": str(out / name), "results": {}, "commit": "abc1234", "date": "", "machine": {}}

    log = tmp_path / "log.jsonl"
    for attribute, value in {"train": train, "LOG": log, "PICTURE": tmp_path / "paths.png"}.items():
        monkeypatch.setattr(script, attribute, value)
    write_graphs(generate("ego", 18, nodes=(5, 9), seed=0), tmp_path / "ego_small.h5")
    options = [
        str(tmp_path),
        "--models",
        str(tmp_path / "models"),
        "--seeds",
        "0",
        "--sets",
        "powerlaw-tree",
        "ego_small",
    ]
    options += ["--test-graphs", "6", "--samples", "4", "--paths", "2"]

    script.main(options)
    script.main(options)

    assert names == ["powerlaw-tree-default-default-0", "powerlaw-tree-none-default-0", "ego_small-default-default-0"]
    table = json.loads((results / "latents.json").read_text(encoding="utf-8"))["rows"]
    found = {(row[0], row[1]): SimpleNamespace(target=row[2], value=row[3], reached=row[5]) for row in table}
    assert found["valid on paths", "powerlaw-tree"].value == "1.00"
    assert found["valid on paths", "powerlaw-tree"].reached == "yes"
    assert found["R² of edges from the graph vector", "ego_small"].target == "≥ 0.9"
    assert found["NLL minus that of the decoder without latents, nats", "powerlaw-tree"].reached in ("yes", "no")
    assert (tmp_path / "paths.png").read_bytes().startswith(b"\x89PNG")
