from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import graphite_gen as gg
from graphite_gen.data.encoded import EncodedGraph
from graphite_gen.errors import DatasetError, OutputError
from graphite_gen.families.simulate import generate
from graphite_gen.graph import SimpleGraph
from graphite_gen.records import TrainRecord
from graphite_gen.viz import figures
from graphite_gen.viz.figures import save_picture

pytest.importorskip("matplotlib")

HISTORY = [TrainRecord(k, 10 * k, 9.0 - k, 0.5, 8.0 if k % 2 else None, 8.0, 0.01, float(k)) for k in range(1, 5)]


def test_a_gallery_draws_every_edge_and_node_of_the_first_graphs_of_both_sides() -> None:
    graphs = [nx.path_graph(5), nx.star_graph(4), nx.empty_graph(3)]
    figure = gg.plot_gallery(graphs, [nx.complete_graph(4)])
    drawn = [axes for axes in figure.get_axes()[:-1] if axes.collections]

    assert [len(axes.collections[0].get_segments()) for axes in drawn] == [4, 4, 0, 6]
    assert [len(axes.collections[1].get_offsets()) for axes in drawn] == [5, 5, 3, 4]
    assert list(drawn[1].collections[1].get_array()) == [4, 1, 1, 1, 1]
    few = gg.plot_gallery((nx.path_graph(3) for _ in range(1000)), count=4)
    assert sum(len(axes.collections) == 2 for axes in few.get_axes()[:-1]) == 4


def panels(figure: Any) -> list[Any]:
    return [axes for axes in figure.get_axes() if axes.collections]


def legend_of(figure: Any) -> Any:
    """The legend, in a subfigure."""
    return next(part.legends[0] for part in figure.subfigs if part.legends)


def test_nodes_with_labels_have_the_colours_of_the_legend() -> None:
    from matplotlib.colors import to_rgba

    graphs = [nx.path_graph(4), nx.path_graph(3)]
    for graph, labels in zip(graphs, ("aba$", "bbb"), strict=True):
        nx.set_node_attributes(graph, dict(enumerate(labels)), "kind")
        nx.set_node_attributes(graph, 0, "other")

    figure = gg.plot_gallery(graphs[:1], graphs[1:], node_label="kind")
    legend = legend_of(figure)
    texts = [text.get_text().replace(r"\$", "$") for text in legend.get_texts()]
    dots = [handle.get_markerfacecolor() for handle in legend.legend_handles]
    colour = {text: to_rgba(dot) for text, dot in zip(texts, dots, strict=True)}

    assert texts == ["$", "a", "b"]
    assert len(set(colour.values())) == 3
    assert legend.get_title().get_text() == "kind"
    for axes, labels in zip(panels(figure), ("aba$", "bbb"), strict=True):
        assert [tuple(found) for found in axes.collections[1].get_facecolors()] == [colour[label] for label in labels]
    assert legend_of(gg.plot_gallery(graphs[1:])).get_title().get_text() == "kind"
    nx.set_node_attributes(graphs[1], "x", "a first one")
    assert legend_of(gg.plot_gallery(graphs[1:])).get_title().get_text() == "a first one"
    # Only labels of both sides are shown.
    assert legend_of(gg.plot_gallery(graphs[1:], graphs[:1])).get_title().get_text() == "kind"
    with pytest.raises(DatasetError, match="'a first one' is not on every node"):
        gg.plot_gallery(graphs, node_label="a first one")


def test_many_labels_are_all_coloured_and_the_first_are_in_the_legend() -> None:
    graph = nx.path_graph(30)
    nx.set_node_attributes(graph, {node: node for node in graph}, "number")

    texts = [text.get_text() for text in legend_of(gg.plot_gallery([graph])).get_texts()]

    assert texts == [*map(str, range(20)), "and 10 more"]
    assert len(panels(gg.plot_gallery([graph]))[0].collections[1].get_facecolors()) == 30


def test_line_widths_are_proportional_to_weights_of_all_graphs() -> None:
    first, second = nx.path_graph(4), nx.path_graph(3)
    nx.set_edge_attributes(first, {(0, 1): 1.0, (1, 2): -2.0, (2, 3): 1e-9}, "weight")
    nx.set_edge_attributes(second, {(0, 1): 4.0, (1, 2): 3.0}, "weight")

    figure = gg.plot_gallery([first, second])
    thin, thick = (axes.collections[0].get_linewidths() for axes in panels(figure)[:2])

    assert thick == pytest.approx([3, 2.25])
    assert thin == pytest.approx([0.75, 1.5, 0.2])
    lines = legend_of(figure).get_lines()
    assert [line.get_linewidth() for line in lines] == pytest.approx([1.5, 3])
    assert [text.get_text() for text in legend_of(figure).get_texts()] == ["weight 2", "weight 4"]
    unweighted = panels(gg.plot_gallery([nx.path_graph(4)]))[0]
    assert len(set(unweighted.collections[0].get_linewidths())) == 1
    assert not any(part.legends for part in gg.plot_gallery([nx.path_graph(4)]).subfigs)


def test_arcs_are_arrows_that_point_at_their_targets() -> None:
    graph = nx.DiGraph([(0, 1), (1, 0), (2, 1), (3, 0)])
    simple = SimpleGraph.from_networkx(graph)

    lines, nodes, heads = panels(gg.plot_gallery([graph]))[0].collections
    places = np.asarray(nodes.get_offsets())
    tips = np.array([path.vertices[0] for path in heads.get_paths()])

    assert len(tips) == len(lines.get_segments()) == 4
    distances = np.linalg.norm(tips[:, None] - places, axis=2)
    assert distances.argmin(1).tolist() == simple.edges[:, 1].tolist()
    starts = np.array([segment[0] for segment in lines.get_segments()])
    assert np.linalg.norm(starts[:, None] - places, axis=2).argmin(1).tolist() == simple.edges[:, 0].tolist()
    # Arcs in both directions do not cover each other.
    assert not np.allclose(lines.get_segments()[0], lines.get_segments()[1][::-1], atol=0.02)
    assert len(panels(gg.plot_gallery([graph.to_undirected()]))[0].collections) == 2


def test_the_matrix_of_a_directed_graph_has_its_sources_as_rows() -> None:
    graph = nx.gnp_random_graph(6, 0.3, seed=0, directed=True)
    matrix = figures.ordered_adjacency(SimpleGraph.from_networkx(graph))

    assert nx.is_isomorphic(nx.from_numpy_array(matrix, create_using=nx.DiGraph), graph)
    assert (matrix != matrix.T).any()


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_suffix_chooses_the_format(tmp_path: Path, suffix: str, start: bytes) -> None:
    target = tmp_path / f"picture.{suffix}"
    own, known = generate("ego", 4, seed=0).graphs, generate("ego", 4, seed=1).graphs

    save_picture(gg.plot_distributions(own, known), target)

    assert target.read_bytes().startswith(start)
    with pytest.raises(OutputError, match="exists"):
        save_picture(gg.plot_distributions(own), target)
    save_picture(gg.plot_adjacency(own, known[:2]), target, force=True)


def test_ordered_adjacency_only_permutes_the_nodes() -> None:
    graph = generate("barabasi", 1, seed=0).graphs[0]
    matrix = figures.ordered_adjacency(graph)

    assert nx.is_isomorphic(nx.from_numpy_array(matrix), graph.to_networkx())
    assert len(gg.plot_adjacency([graph]).get_axes()) == 2


def test_curves_show_every_epoch() -> None:
    loss, rate = gg.plot_training(HISTORY, title="<x>").get_axes()

    assert list(loss.lines[0].get_ydata()) == [8, 7, 6, 5]
    assert list(loss.lines[1].get_xdata()) == [1, 3]
    assert len(rate.lines) == 1


def test_samples_and_reference_differ_in_lightness() -> None:
    from matplotlib.colors import to_rgb

    light, dark = (np.dot(to_rgb(colour), (0.2126, 0.7152, 0.0722)) for colour in (figures.REFERENCE, figures.SAMPLES))

    assert light - dark > 0.3


def test_latents_are_projected_to_principal_components_with_the_values_of_their_property() -> None:
    rng = np.random.default_rng(0)
    graphs = [nx.path_graph(n) for n in (4, 5, 7)]
    nx.set_node_attributes(graphs[0], "a", "kind")
    nx.set_node_attributes(graphs[2], "b$", "kind")
    encoded = [EncodedGraph.exact(rng.normal(size=(len(graph), 3))) for graph in graphs]
    centred = np.concatenate([one.mean for one in encoded]).astype(np.float64)
    centred -= centred.mean(0)

    axes, *_ = gg.plot_latents(encoded, graphs, level="nodes").get_axes()
    unknown, dots = axes.collections
    drawn = np.asarray(dots.get_offsets())
    # The projection preserves the variance along the first eigenvectors of the covariance.
    assert drawn.var(0) == pytest.approx(np.linalg.eigvalsh(centred.T @ centred / len(centred))[:0:-1])
    assert list(dots.get_array()) == [degree for graph in graphs for _, degree in graph.degree]
    assert not len(unknown.get_offsets())

    axes = gg.plot_latents(encoded, graphs, level="nodes", by="kind").get_axes()[0]
    assert [len(part.get_offsets()) for part in axes.collections] == [5, 4, 7]
    points = gg.plot_latents(encoded, graphs, by="edges").get_axes()[0].collections[1]
    assert list(points.get_array()) == [3, 4, 6]


@pytest.mark.parametrize(
    ("draw", "problem"),
    [
        (lambda: gg.plot_gallery([]), "no graphs"),
        (lambda: gg.plot_gallery([nx.path_graph(1001)]), "1001 nodes"),
        (lambda: gg.plot_adjacency([], [nx.path_graph(3)]), "no graphs"),
        (lambda: gg.plot_training([]), "history"),
        (lambda: gg.plot_latents([EncodedGraph.exact([[1.0]] * 4)], [nx.path_graph(3)]), "differ"),
        (lambda: gg.plot_latents([EncodedGraph.exact([[1.0]] * 3)], [nx.path_graph(3)], level="edges"), "'nodes'"),
    ],
)
def test_empty_and_too_large_inputs_are_refused(draw: Callable[[], Any], problem: str) -> None:
    with pytest.raises(DatasetError, match=problem):
        draw()
