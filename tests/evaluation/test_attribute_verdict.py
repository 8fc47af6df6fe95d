"""The verdict says a sentence about every kind of attribute, with what is attainable; node features are compared."""

from typing import Any

import networkx as nx
import numpy as np
import pytest

import graphite_gen as gg
from graphite_gen.evaluation import Evaluation


def graphs(
    seed: int, *, common: float = 0.5, mean: float = 0.0, slope: float = 1.0, scale: float = 1.0
) -> list[nx.DiGraph]:
    """Digraphs with labels, edge labels, weights and two correlated features, one of them an array."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(60):
        graph = nx.DiGraph(nx.gnp_random_graph(10, 0.3, seed=int(rng.integers(1 << 30)), directed=True))
        for _, data in graph.nodes(data=True):
            x = float(rng.normal())
            data.update(element="C" if rng.random() < common else "N", x=x + mean)
            data["features"] = [slope * x + 0.3 * float(rng.normal())]
        for *_, data in graph.edges(data=True):
            data.update(bond=int(rng.random() < common), weight=scale * float(rng.lognormal()))
        found.append(graph)

    return found


def evaluated(**changes: Any) -> Evaluation:
    return gg.evaluate(graphs(1, **changes), graphs(2), graphs(3), conventions=["rbf"], replicates=0, seed=0)


KINDS = ("Node labels", "Pairs of node labels", "Edge labels", "Weights", "Directions", "Node features")


def finding(evaluation: Evaluation, kind: str) -> str:
    found = [text for text in evaluation.findings if text.startswith(f"{kind} ")]
    assert len(found) == 1

    return found[0]


def test_samples_of_the_true_process_are_close_in_every_kind() -> None:
    evaluation = evaluated()

    for kind in KINDS:
        assert "clearly" not in finding(evaluation, kind)
        assert "training graphs: 0." in finding(evaluation, kind)
    assert {*map(str, evaluation.to_json()["findings"])} == {*evaluation.findings}


@pytest.mark.parametrize(
    ("change", "kinds", "words"),
    [
        ({"common": 0.8}, KINDS[:3], "'element'|'bond'"),
        ({"scale": 3.0}, ("Weights",), "their distribution"),
        ({"mean": 1.0}, ("Node features",), "the distribution of 'x'"),
        ({"slope": 0.0}, ("Node features",), r"'features\[0\]'"),
    ],
)
def test_what_differs_is_found_with_its_worst_measure(
    change: dict[str, float], kinds: tuple[str, ...], words: str
) -> None:
    evaluation = evaluated(**change)

    for kind in KINDS:
        assert ("clearly" in finding(evaluation, kind)) == (kind in kinds), kind
    for kind in kinds:
        assert any(word.replace("\\", "") in finding(evaluation, kind) for word in words.split("|"))


def test_features_agree_with_scipy_and_numpy() -> None:
    samples, reference = graphs(1, mean=0.3), graphs(2)
    rows = {(row.attribute, row.measure, row.labels): row for row in gg.evaluate(samples, reference, seed=0).attributes}

    x, y = (
        [value for graph in side for value in nx.get_node_attributes(graph, "x").values()]
        for side in (samples, reference)
    )
    features = [value[0] for graph in reference for value in nx.get_node_attributes(graph, "features").values()]
    ends = np.array([(graph.nodes[u]["x"], graph.nodes[v]["x"]) for graph in reference for u, v in graph.edges])

    from scipy.stats import ks_2samp

    assert rows["x", "KS of values", ()].samples == pytest.approx(ks_2samp(x, y).statistic)
    assert rows["x", "mean", ()].reference == pytest.approx(np.mean(y))
    assert rows["x", "correlation over edges", ()].reference == pytest.approx(np.corrcoef(ends.T)[0, 1])
    assert rows["features[0]", "correlation", ("x",)].reference == pytest.approx(
        np.corrcoef(features, y)[0, 1], abs=1e-6
    )
    assert rows["x", "mean", ()].training is None
