import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from tiny import random_graph

from graphite_gen.evaluation import statistics as summaries
from graphite_gen.evaluation.statistics import mean_path_lengths, summarise_graphs
from graphite_gen.graph import SimpleGraph

from .graphs import small_graphs


@given(small_graphs(most=9))
@settings(max_examples=60, deadline=None)
def test_every_statistic_agrees_with_networkx(graph: SimpleGraph) -> None:
    found = {name: values[0] for name, values in summarise_graphs([graph]).items()}
    other = graph.to_networkx()
    hops = [d for node, row in nx.all_pairs_shortest_path_length(other) for to, d in row.items() if to != node]

    assert found["nodes"] == len(other)
    assert found["edges"] == other.size()
    assert found["mean degree"] == pytest.approx(2 * other.size() / len(other))
    assert found["clustering"] == pytest.approx(nx.average_clustering(other))
    assert found["path length"] == pytest.approx(np.mean(hops) if hops else np.nan, nan_ok=True)
    assert found["components"] == nx.number_connected_components(other)


def test_path_lengths_of_large_graphs_use_some_source_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(60, 0, 0.1)
    exact = mean_path_lengths([graph])[0]
    monkeypatch.setattr(summaries, "MAX_SOURCES", 30)

    assert mean_path_lengths([graph])[0] == pytest.approx(exact, rel=0.05)
