import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import graphite_gen as gg
from graphite_gen.errors import ConfigError

from .graphs import planted


def named() -> nx.Graph:
    """Four groups of people; only some of them have a label."""
    graph = planted().graph.to_networkx()
    for node in graph:
        if node % 3:
            graph.nodes[node]["label"] = f"club {node // 15}"

    return nx.relabel_nodes(graph, {node: f"person {node}" for node in graph})


def test_score_links_takes_models_and_baselines() -> None:
    model = gg.score_links(named(), runs=2, epochs=40, latent=8, seed=0)
    baseline = gg.score_links(named(), "adamic-adar", runs=2, seed=0)

    assert (model.model, model.features, model.runs) == ("graphite-vae", False, 2)
    assert min(model.auc, baseline.auc) > 0.7


@pytest.mark.parametrize(("kind", "settings"), [("graphite-vae", {"epochs": 100, "latent": 8}), ("pagerank", {})])
def test_predicted_links_are_within_groups(kind: str, settings: dict[str, Any]) -> None:
    links = gg.predict_links(named(), 20, kind, seed=1, **settings)

    group = {f"person {node}": node // 15 for node in range(60)}
    assert np.mean([group[link.source] == group[link.target] for link in links]) > 0.8
    assert not any(named().has_edge(link.source, link.target) for link in links)
    scores = [link.score if isinstance(link, gg.ScoredLink) else link.probability for link in links]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] > 0


def test_every_node_gets_a_class_and_an_embedding() -> None:
    # Integers for floating-point settings, and numbers of numpy, are accepted.
    numbers = {"runs": np.int64(1), "epochs": np.int64(60), "learning_rate": np.float64(0.03), "weight_decay": 0}
    labels, result = gg.classify_nodes(named(), width=8, latent=4, seed=0, **numbers)

    right = [label == f"club {node // 15}" for node, label in enumerate(labels)]
    assert np.mean(right) > 0.85
    assert result.runs == 1
    z = gg.embed_nodes(named(), epochs=5, latent=3)
    assert z.shape == (60, 3)
    assert np.isfinite(z).all()


@pytest.mark.parametrize("kind", ["graphite-vae", "gae"])
def test_a_network_model_round_trips(kind: str, tmp_path: Path) -> None:
    nx.write_graphml(named(), tmp_path / "people.graphml")
    model = gg.fit_network(tmp_path / "people.graphml", name="people", seed=3, kind=kind, epochs=20, latent=4)
    gg.save_network(model, tmp_path / "people")
    loaded = gg.load_network(tmp_path / "people")

    with pytest.raises(gg.GraphiteError):
        gg.load(tmp_path / "people")
    assert repr(loaded) == f"NetworkModel('people', {kind}, 60 nodes, {len(named().edges)} edges)"
    assert (loaded.settings, loaded.seed, loaded.provenance) == (model.settings, 3, model.provenance)
    assert model.provenance.source == "people.graphml"
    for nodes in (50, 60, 90):
        first, second = (each.sample(1, nodes=nodes, seed=4)[0] for each in (model, loaded))
        assert nx.utils.graphs_equal(first, second)
        assert len(first) == nodes
        assert 2 * first.number_of_edges() / nodes == pytest.approx(model.mean_degree, rel=0.25)


@pytest.mark.parametrize("task", [gg.score_links, gg.predict_links, gg.classify_nodes, gg.embed_nodes, gg.fit_network])
@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"colour": 1}, "'colour'"),
        ({"self": 1}, "'self'"),
        ({"epochs": 2.5}, r"'epochs'.*2\.5"),
        ({"epochs": "many"}, "'epochs'.*'many'"),
        ({"epochs": 0}, "'epochs' is 0"),
        ({"learning_rate": None}, "'learning_rate'.*None"),
        ({"kind": 3}, "'kind'.*3"),
    ],
)
def test_invalid_settings_are_refused_by_every_task(
    task: Callable[..., Any], settings: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        task(named(), **settings)


@pytest.mark.parametrize(
    ("task", "kind", "splits"),
    [
        (gg.score_links, "gae", "connected, random"),
        (gg.score_links, "pagerank", "connected, random"),
        (gg.classify_nodes, "gcn", "own, fresh"),
    ],
)
def test_invalid_runs_and_splits_are_refused(task: Callable[..., Any], kind: str, splits: str) -> None:
    for runs in (0, -3, 1.0, True, "2", None):
        with pytest.raises(ConfigError, match=f"'runs' is {runs!r}"):
            task(named(), kind, runs=runs)
    for split in ("foo", None):
        with pytest.raises(ConfigError, match=f"'{split}'.*{splits}"):
            task(named(), kind, split=split)


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        (lambda: gg.score_links(named(), "nothing"), "'kind' is"),
        (lambda: gg.score_links(named(), "pagerank", epochs=5), "'epochs' has no effect"),
        (lambda: gg.predict_links(named(), kind="pagerank", epochs=5), "'epochs' has no effect"),
        (lambda: gg.predict_links(named(), -1), "'count' is -1"),
        (lambda: gg.predict_links(nx.complete_graph(5)), "complete"),
        (lambda: gg.score_links(named(), features=np.eye(60)), "ndarray"),
        (lambda: gg.score_links(named(), features=True), "features=True"),
        (lambda: gg.score_links(nx.path_graph(30)), "split='random'"),
        (lambda: gg.classify_nodes(named(), features=np.eye(60)), "ndarray"),
        (lambda: gg.embed_nodes(np.eye(60)), "from_numpy_array"),
        (lambda: gg.fit_network([named()]), "list"),
    ],
)
def test_errors_are_one_line_and_name_a_keyword(task: Callable[[], Any], problem: str) -> None:
    with pytest.raises(gg.GraphiteError, match=re.escape(problem)) as caught:
        task()

    assert "\n" not in str(caught.value)
