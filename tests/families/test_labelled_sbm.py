from collections import Counter
from dataclasses import replace
from itertools import combinations, product
from math import exp, inf, log, prod

import numpy as np
import pytest
from tiny import all_graphs

from graphite_gen.errors import FamilyError
from graphite_gen.families import Family
from graphite_gen.families import family as family_of
from graphite_gen.families.entropies import EntropyEstimate, draw_nats
from graphite_gen.graph import SimpleGraph

from .helpers import ALPHA, fit

SBMS = [
    family_of("labelled-sbm"),
    family_of("labelled-sbm", k=2, p_in=1.0, p_out=0.0),
    family_of("labelled-sbm", k=2, p_in=0.1, p_out=0.6),
    family_of("labelled-sbm", k=1),
]


def labelled_graphs(n: int, labels: str) -> list[SimpleGraph]:
    """Every graph on ``n`` nodes with every assignment of labels."""
    return [
        replace(graph, node_attributes={"block": list(word)})
        for graph in all_graphs(n)
        for word in product(labels, repeat=n)
    ]


@pytest.mark.parametrize("family", SBMS, ids=repr)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_probabilities_of_all_labelled_graphs_add_up_to_one_and_give_the_entropy(family: Family, n: int) -> None:
    graphs = labelled_graphs(n, "abc"[: family.parameters()["k"]])
    log_probs = [family.log_prob(graph) for graph in graphs]

    assert sum(map(exp, log_probs)) == pytest.approx(1)
    assert family.entropy(n) == pytest.approx(-sum(exp(value) * value for value in log_probs if value > -inf))
    assert [family.contains(graph) for graph in graphs] == [value > -inf for value in log_probs]


def test_the_parts_are_the_product_over_nodes_and_over_pairs() -> None:
    family, rng = family_of("labelled-sbm", k=4, p_in=0.7, p_out=0.2), np.random.default_rng(0)
    for _ in range(5):
        graph = family.sample(9, rng)
        block, adjacency = graph.node_attributes["block"], graph.adjacency()
        p = {(i, j): 0.7 if block[i] == block[j] else 0.2 for i, j in combinations(range(9), 2)}
        parts = family.log_prob_parts(graph)

        assert exp(parts["labels"]) == pytest.approx(0.25**9)
        assert exp(parts["structure"]) == pytest.approx(prod(q if adjacency[pair] else 1 - q for pair, q in p.items()))
        assert sum(parts.values()) == family.log_prob(graph) == pytest.approx(family.log_prob(graph.to_networkx()))
        other = graph.permuted(rng.permutation(9))
        assert family.log_prob(other) == pytest.approx(family.log_prob(graph))


def test_samples_follow_the_joint_distribution() -> None:
    family, rng = family_of("labelled-sbm", k=2), np.random.default_rng(0)

    def outcome(graph: SimpleGraph) -> tuple[bytes, str]:
        return graph.edges.tobytes(), "".join(graph.node_attributes["block"])

    probabilities = {outcome(graph): exp(family.log_prob(graph)) for graph in labelled_graphs(3, "ab")}
    counts = Counter(outcome(family.sample(3, rng)) for _ in range(10_000))

    assert fit(counts, probabilities) > ALPHA


def test_the_mean_over_large_samples_is_the_entropy() -> None:
    family = family_of("labelled-sbm")
    found = EntropyEstimate.of(list(draw_nats(family, 20, 1000, seed=0)))

    assert found.nats == pytest.approx(family.entropy(20), abs=4 * found.standard_error)
    assert found.standard_error < 0.5


@pytest.mark.parametrize("label", ["d", "A", None, 0, ["a"]])
def test_a_graph_with_another_label_is_outside_the_family(label: object) -> None:
    family = family_of("labelled-sbm")
    graph = SimpleGraph(2, np.zeros((0, 2), np.int32), node_attributes={"block": ["a", label]})

    assert not family.contains(graph)
    assert family.log_prob(graph) == -inf
    assert family_of("labelled-sbm", k=4).contains(graph) == (label == "d")


def test_a_graph_without_labels_has_no_probability() -> None:
    family, graph = family_of("labelled-sbm"), SimpleGraph.from_pairs(2, [])

    assert not family.contains(graph)
    for call in (family.log_prob, family.log_prob_parts):
        with pytest.raises(FamilyError, match="node attribute 'block'") as error:
            call(graph)
        assert error.value.reason == "family-attributes"


def test_one_block_is_an_erdos_renyi_graph() -> None:
    family, other = family_of("labelled-sbm", k=1, p_in=0.3), family_of("er", p=0.3)
    graph = family.sample(12, np.random.default_rng(0))

    assert family.log_prob(graph) == pytest.approx(other.log_prob(graph))
    assert family.entropy(12) == pytest.approx(other.entropy(12))
    # The labels of independent pairs add n log k.
    assert family_of("labelled-sbm", k=5, p_in=0.3, p_out=0.3).entropy(12) == pytest.approx(
        other.entropy(12) + 12 * log(5)
    )
