import math

import numpy as np
import pytest
from tiny import path, random_graph, star

from graphite_gen.data.schema import AttributeSchema
from graphite_gen.errors import DatasetError, FamilyError
from graphite_gen.families import family
from graphite_gen.families.entropies import EntropyEstimate
from graphite_gen.graph import SimpleGraph
from graphite_gen.likelihood import excess as module
from graphite_gen.likelihood.automorphisms import entropy_of_classes
from graphite_gen.likelihood.excess import expected_entropy, find_entropy, paired_entropy

STAR, PATH, COMPLETE = star(4), path(3), random_graph(4, 0, density=1.0)


def test_the_entropy_is_the_mean_over_these_graphs_and_the_excess_is_paired() -> None:
    # p(star) = 1/4 · 2⁻³ and p(complete) = 1 · 2⁻³: any dominating node may be the ego.
    entropies = np.log([32, 8])
    entropy = paired_entropy(family("ego"), [STAR, COMPLETE], [5.0, 3.0])
    excess = np.array([5.0, 3.0]) - entropies

    assert entropy.per_graph == pytest.approx(entropies)
    assert entropy.nats == pytest.approx(entropies.mean())
    assert entropy.excess == pytest.approx(excess.mean())
    assert entropy.excess_standard_error == pytest.approx(excess.std(ddof=1) / math.sqrt(2))
    assert paired_entropy(family("ego"), [STAR], [4.0]).excess_standard_error is None


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entropies of three to five nodes, made up."""
    entropies = {
        3: EntropyEstimate(1.5, 2.5, 0.3, 9),
        4: EntropyEstimate(5.0, 5.0, 0.4, 9),
        5: EntropyEstimate(7.0, 7.0, 0.1, 9),
    }
    monkeypatch.setattr(module, "known_entropy", lambda family, n: entropies.get(n))


@pytest.mark.usefixtures("table")
def test_an_expected_entropy_is_of_the_sizes_and_its_error_is_part_of_the_excess() -> None:
    entropy = expected_entropy(family("geometric"), [STAR, PATH, STAR], [8.0, 3.0, 7.0])

    assert (entropy.nats, entropy.excess) == pytest.approx((4.0, 2.0))
    assert entropy.standard_error == pytest.approx(math.hypot(0.3 / 3, 0.4 * 2 / 3))
    # Differences of entropy between sizes are not noise.
    spread = np.std([3.0, 1.0, 2.0], ddof=1) / math.sqrt(3)
    assert entropy.excess_standard_error == pytest.approx(math.hypot(spread, entropy.standard_error))
    assert not entropy.paired
    assert entropy.per_graph == (None, None, None)
    classes = entropy_of_classes(entropy, [1.0, 2.0, 6.0])
    assert classes.nats == pytest.approx(entropy.nats - 3)
    assert (classes.excess, classes.per_graph) == (entropy.excess, entropy.per_graph)
    assert expected_entropy(family("geometric"), [PATH], [3.0]).excess_standard_error is None


@pytest.mark.usefixtures("table")
def test_a_graph_outside_the_support_is_named() -> None:
    # K(2, 3) as an induced subgraph is impossible in the plane.
    crossed = SimpleGraph.from_pairs(5, [(i, j) for i in (0, 1) for j in (2, 3, 4)])

    with pytest.raises(DatasetError, match="Graph 1"):
        expected_entropy(family("geometric"), [STAR, crossed], [1.0, 1.0])
    with pytest.raises(DatasetError, match="Graph 1"):
        paired_entropy(family("tree"), [STAR, COMPLETE], [1.0, 1.0])


def test_an_unknown_entropy_is_refused_with_the_facts_to_estimate_it() -> None:
    for changed, graphs, nodes in (({"r": 0.3}, [STAR, PATH], "3:4"), ({}, [STAR], "4")):
        with pytest.raises(FamilyError) as error:
            expected_entropy(family("geometric", **changed), graphs, [1.0] * len(graphs))
        assert error.value.reason == "entropy-unknown"
        assert error.value.facts == {"family": "geometric", "nodes": nodes, "parameters": changed}
    with pytest.raises(FamilyError, match="bounded"):
        expected_entropy(family("geometric", largest_component=True), [STAR], [1.0])


def test_families_with_probabilities_are_paired_and_others_expected() -> None:
    assert find_entropy(family("ego"), [STAR], [4.0]).paired
    points = np.random.default_rng(0).random((12, 2))
    graph = family("geometric").graph_of(points)  # type: ignore[attr-defined]

    assert not find_entropy(family("geometric"), [graph], [40.0]).paired


@pytest.mark.parametrize(
    ("name", "carried"),
    [("labelled-sbm", "node labels"), ("weighted-barabasi", "weights"), ("random-dag", "edge directions")],
)
def test_the_entropy_of_attributes_is_not_compared_with_the_nll_of_edges(name: str, carried: str) -> None:
    graph = family(name).sample(10, np.random.default_rng(0))

    with pytest.raises(FamilyError, match=f"includes {carried}"):
        find_entropy(family(name), [graph], [50.0])
    schema = AttributeSchema.of([graph], node_label=family(name).node_label, weighted=family(name).weighted)
    assert find_entropy(family(name), [graph], [50.0], schema).paired
    with pytest.raises(FamilyError, match=f"NLL of the model includes {carried}"):
        find_entropy(family("ego"), [STAR], [50.0], schema)
