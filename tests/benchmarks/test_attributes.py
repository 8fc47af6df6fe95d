"""Statistics of attributed samples against fresh graphs."""

from dataclasses import replace

import numpy as np

from benchmarks.reproduce.attributes import SETS, compare, fresh_graphs


def test_samples_of_the_true_process_differ_little_and_others_much() -> None:
    for name, own in SETS.items():
        first, second = fresh_graphs(name, 300, 0), fresh_graphs(name, 300, 1)
        found = compare(first, second, own)
        assert abs(found["edges"]) < 0.2, name
        assert all(abs(value) < 0.1 for key, value in found.items() if "largest" in key or "KS" in key), name

    weighted = fresh_graphs("weighted-barabasi", 50, 0)
    doubled = [replace(graph, weights=4 * graph.weights) for graph in weighted if graph.weights is not None]
    assert compare(doubled, weighted, SETS["weighted-barabasi"])["weights, KS"] > 0.5
    labelled = fresh_graphs("labelled-sbm", 50, 0)
    shuffled = [
        replace(
            graph,
            node_attributes={"block": np.random.default_rng(0).permutation(graph.node_attributes["block"]).tolist()},
        )
        for graph in labelled
    ]
    assert compare(shuffled, labelled, SETS["labelled-sbm"])["label pairs, largest difference"] > 0.05


def test_dags_are_acyclic_and_answered_arcs_are_counted() -> None:
    dags, digraphs = fresh_graphs("random-dag", 20, 0), fresh_graphs("reciprocal", 20, 0)

    assert compare(dags, dags, SETS["random-dag"])["acyclic samples"] == 1
    assert compare(digraphs, digraphs, SETS["reciprocal"])["reciprocity"] == 0
    assert compare(digraphs, digraphs, SETS["reciprocal"])["acyclic samples"] < 0.5
