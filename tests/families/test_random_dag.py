from collections import Counter
from itertools import permutations, product
from math import comb, exp, factorial, inf, log

import networkx as nx
import numpy as np
import pytest
from scipy import stats

from graphite_gen.errors import FamilyError
from graphite_gen.families import Family, random_dag
from graphite_gen.families import family as family_of
from graphite_gen.families.entropies import EntropyEstimate, draw_nats, known_entropy
from graphite_gen.graph import SimpleGraph

from .helpers import ALPHA, fit

DAGS = [family_of("random-dag", p=p) for p in (0.0, 0.3, 0.8, 1.0)]


def directed(n: int, arcs: list[tuple[int, int]]) -> SimpleGraph:
    return SimpleGraph(n, np.array(sorted(arcs), dtype=np.int32).reshape(-1, 2), directed=True)


def all_digraphs(n: int) -> list[SimpleGraph]:
    arcs = list(permutations(range(n), 2))

    return [
        directed(n, [arc for arc, bit in zip(arcs, bits, strict=True) if bit])
        for bits in product((0, 1), repeat=len(arcs))
    ]


def extensions(graph: SimpleGraph) -> float:
    """The number of linear extensions by the family: with p = ½, arcs given an order have one probability."""
    log_prob = family_of("random-dag", p=0.5).log_prob(graph)

    return exp(log_prob + comb(graph.nodes, 2) * log(2)) * factorial(graph.nodes)


@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_linear_extensions_are_the_orders_that_all_arcs_follow(n: int) -> None:
    rng = np.random.default_rng(n)
    for p in (0.1, 0.3, 0.6):
        graph = family_of("random-dag", p=p).sample(n, rng)
        places = (np.argsort(order) for order in permutations(range(n)))
        count = sum(all(place[i] < place[j] for i, j in graph.edges.tolist()) for place in places)

        assert extensions(graph) == pytest.approx(count, rel=1e-12)


def test_linear_extensions_of_known_orders_on_twenty_nodes() -> None:
    path = [(i, i + 1) for i in range(19)]
    chains = [(i, i + 1) for i in range(19) if i != 7]
    fence = [(i, i + 1) if i % 2 else (i + 1, i) for i in range(19)]

    assert extensions(directed(20, path)) == pytest.approx(1)
    assert extensions(directed(20, chains)) == pytest.approx(comb(20, 8))
    # Alternating permutations: the Euler number of 20 (OEIS A000111).
    assert extensions(directed(20, fence)) == pytest.approx(370371188237525, rel=1e-12)
    assert extensions(directed(14, [])) == pytest.approx(factorial(14), rel=1e-12)


@pytest.mark.parametrize("family", DAGS, ids=repr)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_probabilities_of_all_directed_graphs_add_up_to_one(family: Family, n: int) -> None:
    graphs = all_digraphs(n)
    log_probs = [family.log_prob(graph) for graph in graphs]

    assert sum(map(exp, log_probs)) == pytest.approx(1)
    assert [family.contains(graph) for graph in graphs] == [value > -inf for value in log_probs]
    if family == DAGS[1]:
        acyclic = [nx.is_directed_acyclic_graph(graph.to_networkx()) for graph in graphs]
        assert acyclic == [value > -inf for value in log_probs]
        assert sum(acyclic) == (1, 3, 25, 543)[n - 1]


@pytest.mark.parametrize("family", DAGS, ids=repr)
def test_samples_follow_the_distribution(family: Family) -> None:
    rng = np.random.default_rng(0)
    probabilities = {graph.edges.tobytes(): exp(family.log_prob(graph)) for graph in all_digraphs(3)}
    counts = Counter(family.sample(3, rng).edges.tobytes() for _ in range(10_000))

    assert fit(counts, probabilities) > ALPHA


@pytest.mark.parametrize("p", [0.3, 0.8])
def test_draws_average_to_the_entropy(p: float) -> None:
    family = family_of("random-dag", p=p)
    log_probs = [value for graph in all_digraphs(4) if (value := family.log_prob(graph)) > -inf]
    found = EntropyEstimate.of(list(draw_nats(family, 4, 2000, seed=0)))

    assert found.nats == pytest.approx(-sum(exp(value) * value for value in log_probs), abs=4 * found.standard_error)
    assert 0 < found.standard_error < 0.05


@pytest.mark.parametrize("n", [10, 20])
def test_the_entropy_in_the_table_is_the_mean_over_samples(n: int) -> None:
    family, rng = family_of("random-dag"), np.random.default_rng(n)
    known, nats = known_entropy(family, n), [-family.log_prob(family.sample(n, rng)) for _ in range(200)]

    assert known is not None
    assert np.mean(nats) == pytest.approx(known.nats, abs=4 * np.hypot(stats.sem(nats), known.standard_error))


def test_samples_are_directed_and_exchangeable() -> None:
    family, rng = family_of("random-dag"), np.random.default_rng(0)
    for n in (2, 9, 20):
        graph = family.sample(n, rng)
        theirs = graph.to_networkx()
        other = directed(n, [tuple(arc) for arc in rng.permutation(n)[graph.edges].tolist()])

        assert isinstance(theirs, nx.DiGraph)
        assert nx.is_directed_acyclic_graph(theirs)
        assert sorted(theirs.edges) == list(map(tuple, graph.edges.tolist()))
        assert family.log_prob_parts(other) == {"structure": pytest.approx(family.log_prob(graph))}
        assert nx.utils.graphs_equal(graph.skeleton().to_networkx(), theirs.to_undirected())


def test_directed_and_undirected_families_refuse_each_others_graphs() -> None:
    arc, edge = directed(2, [(1, 0)]), SimpleGraph.from_pairs(2, [(0, 1)])

    for family, graph, fact in ((DAGS[1], edge, "are directed"), (family_of("er"), arc, "are undirected")):
        assert not family.contains(graph)
        with pytest.raises(FamilyError, match=fact):
            family.log_prob(graph)


def test_too_many_nodes_or_down_sets_are_intractable_but_contained(monkeypatch: pytest.MonkeyPatch) -> None:
    family = DAGS[1]
    large, cycle = directed(64, []), directed(64, [(i, (i + 1) % 64) for i in range(64)])
    monkeypatch.setattr(random_dag, "MAX_SETS", 69)

    assert family.contains(large)
    assert family.contains(family.sample(300, np.random.default_rng(0)))
    assert family.log_prob(cycle) == -inf
    assert family.log_prob(directed(7, [])) < 0
    for graph, fact in ((large, "n=63"), (directed(8, []), "down-sets")):
        with pytest.raises(FamilyError, match=fact) as error:
            family.log_prob(graph)
        assert error.value.reason == "intractable"
