import math

import networkx as nx
import pytest
from tiny import all_graphs, coin_model, random_graph, star

from graphite_gen.errors import DatasetError
from graphite_gen.families import family
from graphite_gen.graph import SimpleGraph
from graphite_gen.likelihood import NLLOptions, iterate_nll
from graphite_gen.likelihood.automorphisms import entropy_of_classes, log_labellings, nll_of_class
from graphite_gen.likelihood.excess import paired_entropy

pytest.importorskip("igraph")


def test_labelled_copies_are_those_of_an_enumeration() -> None:
    graphs = all_graphs(4)
    for graph in graphs:
        copies = sum(nx.is_isomorphic(graph.to_networkx(), other.to_networkx()) for other in graphs)
        assert math.exp(log_labellings(graph)) == pytest.approx(copies)


@pytest.mark.parametrize("nodes", [1, 2, 20, 400])
def test_stars_and_empty_graphs_of_any_size_are_counted(nodes: int) -> None:
    centres = nodes if nodes > 2 else 1

    assert log_labellings(star(nodes)) == pytest.approx(math.log(centres))
    assert log_labellings(SimpleGraph.from_pairs(nodes, [])) == pytest.approx(0, abs=1e-9)


def test_the_nll_baseline_elbo_curve_and_entropy_shift_by_the_labellings() -> None:
    graphs = [star(4), star(5)]
    rows = list(iterate_nll(coin_model(0.7), graphs, NLLOptions(10, curve=True)))
    shifts = [log_labellings(graph) for graph in graphs]
    entropy = paired_entropy(family("ego"), graphs, [row.nll for row in rows])

    moved = [nll_of_class(row, shift) for row, shift in zip(rows, shifts, strict=True)]
    classes = entropy_of_classes(entropy, shifts)

    for row, new, shift in zip(rows, moved, shifts, strict=True):
        assert row.baseline is not None
        assert new.nll == pytest.approx(row.nll - shift)
        assert new.baseline == pytest.approx(row.baseline - shift)
        assert new.elbo == pytest.approx(row.elbo + shift)
        assert new.curve[0][1] == pytest.approx(row.curve[0][1] - shift)
    assert classes.excess == entropy.excess
    assert entropy.nats - classes.nats == pytest.approx(sum(shifts) / 2)


def test_weighted_graphs_are_refused() -> None:
    with pytest.raises(DatasetError, match="weights"):
        log_labellings(random_graph(3, 0, 1.0, weighted=True))
