import numpy as np
import pytest
from tiny import all_graphs

from graphite_gen.families.ego import _universal


@pytest.mark.parametrize("p", [0.0, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_the_number_of_universal_nodes_agrees_with_enumeration(n: int, p: float) -> None:
    expected = np.zeros(n + 1)
    for graph in all_graphs(n):
        missing = n * (n - 1) // 2 - len(graph.edges)
        expected[(graph.degrees() == n - 1).sum()] += p ** len(graph.edges) * (1 - p) ** missing

    assert _universal(n, p) == pytest.approx(expected)


@pytest.mark.parametrize("p", [0.5, 0.99, 0.9999])
def test_universal_nodes_of_large_graphs_keep_their_mean(p: float) -> None:
    probabilities = _universal(700, p)

    assert probabilities.sum() == pytest.approx(1)
    assert probabilities @ np.arange(701) == pytest.approx(700 * p**699)
