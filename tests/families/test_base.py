import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass
from functools import partial
from math import exp, inf
from typing import ClassVar

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import all_graphs

from graphite_gen.errors import FamilyError
from graphite_gen.families import FAMILIES, PAPER_FAMILIES, Family, base
from graphite_gen.families import family as family_of
from graphite_gen.families.entropies import EntropyEstimate, draw_nats, mean_entropy
from graphite_gen.graph import SimpleGraph

from .helpers import ALPHA, agreement, all_shapes, fit, labellings, shape

TRACTABLE = [
    *(family_of("erdos-renyi", p=p) for p in (0.0, 0.3, 0.5, 1.0)),
    *(family_of("erdos-renyi", p=p, largest_component=True) for p in (0.3, 0.5)),
    family_of("regular", d=2, largest_component=True),
    *(family_of("ego", p=p) for p in (0.0, 0.4, 1.0)),
    *(family_of("regular", d=d) for d in (2, 3)),
    *(family_of("powerlaw-tree", gamma=gamma) for gamma in (2.2, 3.0)),
    *(family_of("barabasi", m=m) for m in (1, 2, 3, 4)),
]


def has_size(family: Family, n: int) -> bool:
    try:
        family.check_size(n)
    except FamilyError:
        return False
    return True


def test_there_are_nine_families_whose_import_loads_neither_networkx_nor_torch_nor_scipy() -> None:
    assert set(FAMILIES) >= {*PAPER_FAMILIES, "labelled-sbm", "weighted-barabasi", "random-dag"}
    carried = {name: (kind.node_label, kind.weighted, kind.directed) for name, kind in FAMILIES.items()}
    assert [name for name, attributes in carried.items() if not any(attributes)] == list(PAPER_FAMILIES)
    assert all(kind.summary and "\n" not in kind.summary for kind in FAMILIES.values())
    code = "import sys, graphite_gen.families; print([m for m in ('networkx', 'torch', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_a_new_family_only_needs_its_class() -> None:
    try:

        @dataclass(frozen=True)
        class Empty(Family):
            name: ClassVar[str] = "empty"
            aliases: ClassVar[tuple[str, ...]] = ("void",)
            summary: ClassVar[str] = "no edges"

            def _sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
                return SimpleGraph.from_pairs(n, [])

            def _contains(self, graph: SimpleGraph) -> bool:
                return len(graph.edges) == 0

        assert isinstance(family_of("void"), Empty)
        assert "empty" in FAMILIES
        with pytest.raises(FamilyError, match="tractable"):
            family_of("empty").log_prob(SimpleGraph.from_pairs(2, []))
    finally:
        base._registry.pop("empty", None)


@pytest.mark.parametrize("name", FAMILIES)
def test_parameters_are_frozen_and_rebuild_the_family_even_as_strings(name: str) -> None:
    family = family_of(name)

    assert family_of(name, **family.parameters()) == family
    assert family_of(name, **{key: str(value) for key, value in family.parameters().items()}) == family
    with pytest.raises(FrozenInstanceError):
        setattr(family, next(iter(family.parameters())), 1)


def test_aliases_name_the_same_family_and_values_are_parsed_as_the_type_of_the_parameter() -> None:
    aliases = {"er": "erdos-renyi", "tree": "powerlaw-tree", "ba": "barabasi", "Barabasi_Albert": "barabasi"}

    assert all(family_of(alias) == family_of(name) for alias, name in aliases.items())
    assert family_of("er", p="0.3", largest_component="yes").parameters() == {"p": 0.3, "largest_component": True}
    assert family_of("ba", m="3").parameters() == family_of("ba", m=np.int64(3)).parameters() == {"m": 3}


@pytest.mark.parametrize(
    ("name", "parameters", "reason", "fact"),
    [
        ("erdos", {}, "unknown-family", "erdos-renyi"),
        ("baribasi", {}, "unknown-family", "did you mean 'barabasi'"),
        ("er", {"q": 1}, "unknown-parameter", "'p', 'largest_component'"),
        ("er", {"p": "half"}, "family-value", "p='half'; it should be a number"),
        ("er", {"p": "nan"}, "family-value", "p=nan"),
        ("er", {"p": 1.5}, "family-value", "p=1.5; it should be between 0 and 1"),
        ("er", {"p": True}, "family-value", "p=True"),
        ("er", {"p": None}, "family-value", "p=None"),
        ("er", {"largest_component": "maybe"}, "family-value", "true or false"),
        ("ego", {"p": -1}, "family-value", "p=-1.0"),
        ("ba", {"m": "4.5"}, "family-value", "m='4.5'; it should be an integer"),
        ("ba", {"m": "inf"}, "family-value", "m='inf'"),
        ("ba", {"m": 0}, "family-value", "m=0"),
        ("regular", {"d": -1}, "family-value", "d=-1"),
        ("geometric", {"r": 0}, "family-value", "r=0.0"),
        ("tree", {"gamma": 1}, "family-value", "gamma=1.0; it should be above 1"),
        ("labelled-sbm", {"k": 27}, "family-value", "k=27; it should be between 1 and 26"),
        ("labelled-sbm", {"p_out": "nan"}, "family-value", "p_out=nan; it should be between 0 and 1"),
        ("weighted-barabasi", {"m": 0}, "family-value", "m=0"),
        ("weighted-barabasi", {"sigma": 0}, "family-value", "sigma=0.0; it should be between 0.001 and 10"),
        ("weighted-barabasi", {"exponent": "nan"}, "family-value", "exponent=nan; it should be between -10 and 10"),
        ("random-dag", {"p": 2}, "family-value", "p=2.0; it should be between 0 and 1"),
    ],
)
def test_invalid_parameters_are_refused(name: str, parameters: dict[str, object], reason: str, fact: str) -> None:
    with pytest.raises(FamilyError) as error:
        family_of(name, **parameters)

    assert error.value.reason == reason
    assert fact in str(error.value)


@pytest.mark.parametrize(
    ("family", "n", "fact"),
    [
        (family_of("er"), 0, "at least 1"),
        (family_of("ego"), 0, "at least 1"),
        (family_of("geometric"), 0, "at least 1"),
        (family_of("tree"), 1, "at least 2"),
        (family_of("ba"), 4, "m + 1 = 5"),
        (family_of("regular"), 4, "d + 1 = 5"),
        (family_of("regular", d=3), 7, "n·d = 21 is odd"),
    ],
)
def test_a_size_without_graphs_is_refused(family: Family, n: int, fact: str) -> None:
    for call in (lambda: family.check_size(n), lambda: family.sample(n, np.random.default_rng(0))):
        with pytest.raises(FamilyError) as error:
            call()
        assert (error.value.reason, error.value.n) == ("family-size", n)
        assert fact in str(error.value)


@pytest.mark.parametrize("name", FAMILIES)
def test_sizes_pass_the_check_and_those_beyond_the_limit_are_refused(name: str) -> None:
    family, rng = family_of(name), np.random.default_rng(0)
    most = family.most_nodes

    assert family.sizes(-(10**9), 12) == [n for n in range(13) if has_size(family, n)]
    assert most - 1 in family.sizes(most - 1, most)
    for n, call in ((10**8, lambda n: family.sizes(1, n)), (most + 2, lambda n: family.sample(n, rng))):
        with pytest.raises(FamilyError) as error:
            call(n)
        assert (error.value.n, error.value.most) == (n, most)


@pytest.mark.parametrize(
    "family",
    [family_of("er", largest_component=True), family_of("ego"), family_of("ego", p=0.999), family_of("regular", d=1)],
    ids=repr,
)
def test_entropies_of_large_graphs_are_quick(family: Family) -> None:
    entropies = [family.entropy(n) for n in (600, 3000)]

    assert all(value is not None and 0 < value < inf for value in entropies)


@pytest.mark.parametrize(
    ("family", "n", "most"),
    [
        (family_of("er", largest_component=True), 5001, 5000),
        (family_of("regular", d=2, largest_component=True), 501, 500),
        (family_of("tree"), 2001, 2000),
    ],
    ids=repr,
)
def test_an_intractable_probability_is_refused_and_has_no_entropy(family: Family, n: int, most: int) -> None:
    graph = nx.path_graph(n) if family.name != "regular" else nx.cycle_graph(n)

    assert family.contains(graph)
    assert family.entropy(n) is None
    with pytest.raises(FamilyError) as error:
        family.log_prob(graph)
    assert (error.value.reason, error.value.n, error.value.most) == ("intractable", n, most)


@pytest.mark.parametrize("name", FAMILIES)
def test_samples_are_simple_graphs_of_the_family_and_the_same_for_a_seed(name: str) -> None:
    family, rng = family_of(name), np.random.default_rng(0)
    for n in range(10, 21):
        graph = family.sample(n, rng)
        i, j = graph.edges.T

        assert graph.nodes == n
        assert graph.edges.dtype == np.int32
        assert graph.directed == family.directed
        assert (i != j).all() if family.directed else (i < j).all()
        assert (np.diff(i * n + j) > 0).all()
        assert graph.edges.max() < n
        theirs = graph
        if not family.directed:
            theirs = nx.relabel_nodes(graph.to_networkx(), lambda node: f"node {node}")
        assert family.contains(theirs)
        assert not family.has_log_prob or -inf < family.log_prob(graph) == family.log_prob(theirs) < 0
    first, second = (family.sample(12, np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(first.edges, second.edges)
    assert np.array_equal(first.weights, second.weights)
    assert first.node_attributes == second.node_attributes


@pytest.mark.parametrize("family", TRACTABLE, ids=repr)
def test_probabilities_add_up_to_one_agree_with_contains_and_give_the_entropy(family: Family) -> None:
    for n in range(6):
        log_probs = [family.log_prob(graph) for graph in all_graphs(n)]

        assert [family.contains(graph) for graph in all_graphs(n)] == [value > -inf for value in log_probs]
        assert has_size(family, n) or set(log_probs) == {-inf}
        if has_size(family, n):
            entropy = -sum(exp(value) * value for value in log_probs if value > -inf)
            assert sum(map(exp, log_probs)) == pytest.approx(1)
            assert family.entropy(n) in (None, pytest.approx(entropy, abs=1e-9))


@pytest.mark.parametrize("family", TRACTABLE, ids=repr)
@pytest.mark.parametrize("n", [4, 5, pytest.param(6, marks=pytest.mark.slow)])
def test_samples_follow_the_distribution(family: Family, n: int) -> None:
    if not has_size(family, n):
        pytest.skip("the family has no graphs of this size")
    rng = np.random.default_rng(n)
    # There are 32,768 graphs on six nodes: their isomorphism classes are counted instead.
    outcome, graphs = (lambda graph: graph.edges.tobytes(), all_graphs(n)) if n < 6 else (shape, all_shapes(n))
    multiplicity = {graph: labellings(graph) if n == 6 else 1 for graph in graphs}
    probabilities = {outcome(graph): multiplicity[graph] * exp(family.log_prob(graph)) for graph in graphs}
    samples = (family.sample(n, rng) for _ in range(10_000))
    counts = Counter(outcome(graph) for graph in samples if graph.nodes == n)

    assert sum(probabilities.values()) == pytest.approx(1)
    assert fit(counts, probabilities) > ALPHA


@pytest.mark.parametrize(
    ("family", "n", "theirs"),
    [
        (family_of("er", p=0.3), 6, partial(nx.gnp_random_graph, p=0.3)),
        (family_of("geometric"), 6, partial(nx.random_geometric_graph, radius=0.5)),
        *((family_of("ba", m=m), 8, partial(nx.barabasi_albert_graph, m=m)) for m in (1, 2, 4)),
    ],
    # The text of a function has its address, which differs between processes.
    ids=lambda value: None if callable(value) else repr(value),
)
def test_samples_agree_with_networkx(family: Family, n: int, theirs: Callable[..., nx.Graph]) -> None:
    assert agreement(family, n, theirs) > ALPHA


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from([family for family in TRACTABLE if family != family_of("regular", d=3)]),
    st.integers(0, 2**32),
    st.integers(6, 14),
)
def test_probabilities_are_exchangeable(family: Family, seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    graph = family.sample(n, rng)
    other = graph.permuted(rng.permutation(graph.nodes))

    assert family.contains(other)
    assert family.log_prob(other) == pytest.approx(family.log_prob(graph), rel=1e-12, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "nats"), [("er", 76.25), ("ego", 69.22), ("regular", 42.04), ("tree", 27.384)])
def test_entropies_are_the_published_ones(name: str, nats: float) -> None:
    family = family_of(name)
    entropy = float(np.mean([family.entropy(n) for n in range(10, 21)]))
    found = {n: EntropyEstimate.of(list(draw_nats(family, n, 200, seed=0))) for n in range(10, 21)}
    mean = mean_entropy(found, list(found))

    assert entropy == pytest.approx(nats, abs=0.006)
    assert mean.nats == pytest.approx(entropy, abs=4 * mean.standard_error + 1e-6)
