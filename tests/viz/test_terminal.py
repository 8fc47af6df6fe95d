import networkx as nx
import numpy as np
import pytest

from graphite_gen.graph import SimpleGraph
from graphite_gen.viz.terminal import bar, draw_curve, draw_graph, draw_matrix, draw_points


def test_a_small_graph_shows_its_nodes_and_edges_and_its_matrix() -> None:
    lines = draw_graph(SimpleGraph.from_networkx(nx.cycle_graph(6)), 20, 8)
    text = "".join(lines)

    assert [len(line) for line in lines] == [20] * 8
    assert text.count("●") == 6
    assert any(0x2800 < ord(sign) < 0x2900 for sign in text)
    assert set("".join(draw_graph(SimpleGraph.from_pairs(2, [])))) == {" ", "●"}
    # A matrix has two rows in a line.
    assert draw_matrix(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])) == ["▄▀▄", " ▀ "]


@pytest.mark.parametrize(("fraction", "drawn"), [(0, ""), (0.5, "██"), (1, "████"), (0.28, "█▏"), (2, "████")])
def test_the_length_of_a_bar_is_its_fraction(fraction: float, drawn: str) -> None:
    assert bar(fraction, 4) == drawn


def test_a_decreasing_curve_goes_down() -> None:
    lines = draw_curve([3.0, 2.0, 1.0], 10, 4)

    assert lines[0].startswith("3 ")
    assert lines[-1].startswith("1 ")
    assert lines[0].rstrip() < lines[0]
    assert lines[-1].rstrip() == lines[-1]
    assert len(draw_curve([5.0])) == 10


def test_points_are_shaded_by_their_mean_value() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.5, 1.0], [0.0, 1.0]])
    lines = draw_points(points, np.array([2.0, 2.0, 4.0, 4.0, np.nan]), width=5, height=2)

    assert lines == ["· █  ", "░   ▓"]
    assert draw_points(np.zeros((2, 2)), np.ones(2), width=2, height=1) == ["░ "]
