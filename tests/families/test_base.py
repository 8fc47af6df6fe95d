"""What holds for every family, whatever its law."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, dataclass
from math import exp, inf, log
from typing import ClassVar

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphite_gen.errors import FamilyError
from graphite_gen.families import FAMILIES, Family, base, family
from graphite_gen.graph import SimpleGraph

from .helpers import CHANCE, all_graphs, fit, shape

LAWS = [
    family("erdos-renyi"),
    family("erdos-renyi", p=0.3),
    family("erdos-renyi", p=0.3, largest_component=True),
    family("ego", p=0.4),
    family("regular", d=2),
    family("regular", d=2, largest_component=True),
    family("regular", d=3),
    family("powerlaw-tree"),
    family("powerlaw-tree", gamma=2.2),
    family("barabasi", m=1),
    family("barabasi", m=2),
    family("barabasi", m=3),
]


def sizes_of(law: Family, low: int, high: int) -> Iterator[int]:
    for n in range(low, high + 1):
        try:
            law.check_size(n)
        except FamilyError:
            continue
        yield n


def test_there_are_six_families_and_each_describes_itself() -> None:
    assert set(FAMILIES) >= {"erdos-renyi", "ego", "regular", "geometric", "powerlaw-tree", "barabasi"}
    assert all(kind.summary and "\n" not in kind.summary for kind in FAMILIES.values())


def test_importing_families_loads_neither_networkx_nor_torch_nor_scipy() -> None:
    code = "import sys, graphite_gen.families; print([m for m in ('networkx', 'torch', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_a_new_family_needs_nothing_but_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_registry", base._registry)
    try:

        @dataclass(frozen=True)
        class Empty(Family):
            name: ClassVar[str] = "empty"
            aliases: ClassVar[tuple[str, ...]] = ("void",)
            summary: ClassVar[str] = "no edges"

            def _check_size(self, n: int) -> None: ...

            def _sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
                return SimpleGraph.from_pairs(n, [])

            def _contains(self, graph: SimpleGraph) -> bool:
                return len(graph.edges) == 0

        assert isinstance(family("void"), Empty)
        assert "empty" in FAMILIES
        with pytest.raises(FamilyError, match="no tractable probability"):
            family("empty").log_prob(SimpleGraph.from_pairs(2, []))
    finally:
        base._registry.pop("empty", None)


@pytest.mark.parametrize(
    ("alias", "name"),
    [("er", "erdos-renyi"), ("tree", "powerlaw-tree"), ("ba", "barabasi"), ("Barabasi_Albert", "barabasi")],
)
def test_aliases_name_the_same_family(alias: str, name: str) -> None:
    assert family(alias) == family(name)


@pytest.mark.parametrize("name", FAMILIES)
def test_parameters_rebuild_the_family_even_as_text(name: str) -> None:
    law = family(name)

    assert family(name, **law.parameters()) == law
    assert family(name, **{key: str(value) for key, value in law.parameters().items()}) == law


@pytest.mark.parametrize("name", FAMILIES)
def test_families_are_frozen(name: str) -> None:
    law = family(name)
    key = next(iter(law.parameters()))

    with pytest.raises(FrozenInstanceError):
        setattr(law, key, 1)


def test_values_are_read_as_the_type_of_the_parameter() -> None:
    assert family("er", p="0.3").parameters()["p"] == 0.3
    assert family("er", p=1).parameters()["p"] == 1.0
    assert family("ba", m="3").parameters() == {"m": 3}
    assert family("ba", m=np.int64(3)).parameters() == {"m": 3}
    assert family("er", largest_component="yes").parameters()["largest_component"] is True


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("erdos", {}, r"No family is called 'erdos'.*'erdos-renyi'"),
        ("baribasi", {}, r"did you mean 'barabasi'"),
        ("er", {"q": 1}, r"'erdos-renyi' has no parameter 'q': pass one of 'p', 'largest_component'"),
        ("er", {"p": "half"}, r"cannot read p='half': pass a number"),
        ("er", {"p": "nan"}, r"cannot have p=nan"),
        ("er", {"p": 1.5}, r"cannot have p=1.5: pass a probability between 0 and 1"),
        ("er", {"p": True}, r"cannot read p=True"),
        ("er", {"p": None}, r"cannot read p=None"),
        ("er", {"largest_component": "maybe"}, r"pass true or false"),
        ("ego", {"p": -1}, r"cannot have p=-1.0"),
        ("ba", {"m": "4.5"}, r"cannot read m='4.5': pass a whole number"),
        ("ba", {"m": "inf"}, r"cannot read m='inf': pass a whole number"),
        ("ba", {"m": 0}, r"cannot have m=0"),
        ("regular", {"d": -1}, r"cannot have d=-1"),
        ("geometric", {"r": 0}, r"cannot have r=0.0"),
        ("tree", {"gamma": 1}, r"cannot have gamma=1.0: pass an exponent above 1"),
    ],
)
def test_an_error_says_what_was_found_and_what_is_wanted(
    name: str, parameters: dict[str, object], message: str
) -> None:
    with pytest.raises(FamilyError, match=message):
        family(name, **parameters)


@pytest.mark.parametrize(
    ("law", "n", "message"),
    [
        (family("er"), 0, "at least 1"),
        (family("ego"), 0, "at least 1"),
        (family("geometric"), 0, "at least 1"),
        (family("tree"), 1, "at least 2"),
        (family("ba"), 4, r"'barabasi' \(m=4\) has no graphs with n=4 nodes: pass at least m \+ 1 = 5"),
        (family("regular"), 4, r"pass at least d \+ 1 = 5"),
        (family("regular", d=3), 7, r"n·d = 21 is odd, pass an even n"),
    ],
)
def test_a_size_without_graphs_is_refused_before_drawing(law: Family, n: int, message: str) -> None:
    with pytest.raises(FamilyError, match=message):
        law.check_size(n)
    with pytest.raises(FamilyError, match=message):
        law.sample(n, np.random.default_rng(0))


@pytest.mark.parametrize("name", FAMILIES)
def test_sizes_that_would_not_fit_are_refused_before_drawing(name: str) -> None:
    law = family(name)
    most = law.most_nodes

    assert most - 1 in law.sizes(most - 1, most)
    with pytest.raises(FamilyError, match=f"'{name}' draws graphs of at most {most} nodes, not {10**8}"):
        law.sizes(1, 10**8)
    with pytest.raises(FamilyError, match=f"at most {most} nodes, not {most + 2}"):
        law.sample(most + 2, np.random.default_rng(0))


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_sizes_are_those_that_pass_the_check(law: Family) -> None:
    assert law.sizes(-(10**9), 12) == list(sizes_of(law, 0, 12))


@pytest.mark.parametrize("law", [*LAWS, family("geometric")], ids=repr)
def test_networkx_graphs_are_taken_as_they_are(law: Family) -> None:
    graph = law.sample(8, np.random.default_rng(0))
    theirs = nx.relabel_nodes(graph.to_networkx(), lambda node: f"node {node}")

    assert law.contains(theirs)
    if law.has_log_prob:
        assert law.log_prob(theirs) == law.log_prob(graph)


@pytest.mark.parametrize(
    "law",
    [family("er", largest_component=True), family("ego"), family("ego", p=0.999), family("regular", d=1)],
    ids=repr,
)
def test_floors_of_large_graphs_are_soon_known(law: Family) -> None:
    entropies = [law.entropy(n) for n in (600, 3000)]

    assert all(value is not None and 0 < value < inf for value in entropies)


@pytest.mark.parametrize(
    ("law", "n", "most"),
    [
        (family("er", largest_component=True), 5001, 5000),
        (family("regular", d=2, largest_component=True), 501, 500),
        (family("tree"), 2001, 2000),
    ],
    ids=repr,
)
def test_a_law_that_would_take_too_long_is_refused_and_has_no_floor(law: Family, n: int, most: int) -> None:
    graph = nx.path_graph(n) if law.name != "regular" else nx.cycle_graph(n)

    assert law.contains(graph)
    assert law.entropy(n) is None
    with pytest.raises(FamilyError, match=f"is not tractable above n={most}, and the graph has {n} nodes"):
        law.log_prob(graph)


@pytest.mark.parametrize("name", FAMILIES)
def test_samples_are_simple_graphs_that_the_family_contains(name: str) -> None:
    law, rng = family(name), np.random.default_rng(0)
    for n in range(10, 21):
        graph = law.sample(n, rng)
        i, j = graph.edges.T

        assert graph.nodes == n
        assert graph.edges.dtype == np.int32
        assert (i < j).all()
        assert (np.diff(i * n + j) > 0).all()
        assert j.max() < n
        assert law.contains(graph)
        assert not law.has_log_prob or -inf < law.log_prob(graph) < 0


@pytest.mark.parametrize("name", FAMILIES)
def test_one_seed_is_one_graph(name: str) -> None:
    law = family(name)
    first, second = (law.sample(12, np.random.default_rng(3)) for _ in range(2))

    assert np.array_equal(first.edges, second.edges)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_probabilities_of_all_graphs_add_up_to_one(law: Family) -> None:
    for n in sizes_of(law, 1, 5):
        log_probs = [law.log_prob(graph) for graph in all_graphs(n)]

        assert sum(map(exp, log_probs)) == pytest.approx(1)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_a_graph_is_contained_where_its_probability_is_positive(law: Family) -> None:
    for graph in all_graphs(5):
        assert law.contains(graph) == (law.log_prob(graph) > -inf)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_the_floor_is_the_entropy_over_all_graphs(law: Family) -> None:
    for n in sizes_of(law, 1, 5):
        log_probs = [law.log_prob(graph) for graph in all_graphs(n)]
        entropy = -sum(exp(value) * value for value in log_probs if value > -inf)

        assert law.entropy(n) in (None, pytest.approx(entropy, abs=1e-9))


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("n", [4, 5])
def test_sampled_labelled_graphs_follow_the_law(law: Family, n: int) -> None:
    if n not in sizes_of(law, n, n):
        pytest.skip("the family has no graphs of this size")
    rng = np.random.default_rng(n)
    probabilities = {(g.nodes, g.edges.tobytes()): exp(law.log_prob(g)) for g in all_graphs(n)}
    graphs = [law.sample(n, rng) for _ in range(9000)]
    counts = Counter((g.nodes, g.edges.tobytes()) for g in graphs if g.nodes == n)

    assert fit(counts, probabilities) > CHANCE


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_sampled_shapes_follow_the_law_on_six_nodes(law: Family) -> None:
    rng = np.random.default_rng(6)
    probabilities: Counter[tuple[int, bytes]] = Counter()
    for graph in all_graphs(6):
        if law.contains(graph):
            probabilities[shape(graph)] += exp(law.log_prob(graph))
    graphs = [law.sample(6, rng) for _ in range(20_000)]
    counts = Counter(shape(graph) for graph in graphs if graph.nodes == 6)

    assert sum(probabilities.values()) == pytest.approx(1)
    assert fit(counts, probabilities) > CHANCE


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from([law for law in LAWS if law != family("regular", d=3)]), st.integers(0, 2**32), st.integers(6, 14)
)
def test_renumbering_changes_nothing(law: Family, seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    graph = law.sample(n, rng)
    other = graph.permuted(rng.permutation(graph.nodes))

    assert law.contains(other)
    assert law.log_prob(other) == pytest.approx(law.log_prob(graph), rel=1e-12, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "nats"), [("erdos-renyi", 76.25), ("ego", 69.22), ("regular", 42.04)])
def test_floors_are_those_of_the_reference(name: str, nats: float) -> None:
    law, rng = family(name), np.random.default_rng(0)
    entropies = [law.entropy(n) for n in range(10, 21)]
    costs = np.array([[-law.log_prob(law.sample(n, rng)) for n in range(10, 21)] for _ in range(200)])
    error = float(np.sqrt(costs.var(axis=0, ddof=1).sum() / len(costs)) / 11)

    assert float(np.mean(entropies)) == pytest.approx(nats, abs=0.006)
    assert costs.mean() == pytest.approx(np.mean(entropies), abs=4 * error + 1e-6)


def test_log_two_per_pair_is_the_price_of_a_fair_coin() -> None:
    assert family("er").log_prob(SimpleGraph.from_pairs(20, [(0, 1)])) == pytest.approx(-190 * log(2))
