import json
import math
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny import all_graphs, random_graph, star

from graphite_gen.data.sizes import SizeDistribution
from graphite_gen.errors import CheckpointError

GRAPHS = [random_graph(nodes, seed) for nodes, seed in ((3, 0), (5, 0), (5, 1), (5, 2), (1, 0))]


def test_the_size_distribution_is_the_histogram_also_after_a_round_trip_to_json() -> None:
    sizes = SizeDistribution.of(GRAPHS)

    assert {n: math.exp(sizes.log_prob(n)) for n in range(7)} == pytest.approx(
        {0: 0, 1: 1 / 5, 2: 0, 3: 1 / 5, 4: 0, 5: 3 / 5, 6: 0}
    )
    assert sizes.largest == 5
    assert SizeDistribution.from_json(json.loads(json.dumps(sizes.to_json()))) == sizes


@pytest.mark.parametrize("nodes", [1, 3, 5])
def test_the_baseline_is_erdos_renyi_with_the_density_of_that_size(nodes: int) -> None:
    sizes, graph = SizeDistribution.of(GRAPHS), random_graph(nodes, 7)
    pairs = list(combinations(range(nodes), 2))
    same = [other for other in GRAPHS if other.nodes == nodes]
    heads = sum(int(other.adjacency()[i, j]) for other in same for i, j in pairs)
    coin = (heads + 0.5) / (len(same) * len(pairs) + 1)

    direct = -sum(math.log(coin if graph.adjacency()[i, j] else 1 - coin) for i, j in pairs)

    assert sizes.baseline(graph) == pytest.approx(direct)


def test_the_baseline_is_normalised_even_at_unseen_sizes_and_after_complete_graphs() -> None:
    for sizes in (SizeDistribution.of(GRAPHS), SizeDistribution.of([star(2)])):
        assert sum(math.exp(-sizes.baseline(graph)) for graph in all_graphs(4)) == pytest.approx(1)
    seen = sum(len(graph.edges) for graph in GRAPHS)
    assert SizeDistribution.of(GRAPHS).density(4) == pytest.approx((seen + 0.5) / (3 + 3 * 10 + 1))


@pytest.mark.parametrize(
    "value",
    [
        *(None, [], {}, "sizes", {"five": [1, 2]}, {"-5": [1, 2]}, {"0": [1, 0]}, {"99999999999999999999": [1, 1]}),
        *({"5": counts} for counts in (3, "12", [1], [1, 2, 3], [1, None], [1.5, 2], [True, 2], [math.inf, 2])),
        *({"5": counts} for counts in ([1, math.nan], [0, 0], [1, -1], [1, 11], [10**400, 0])),
    ],
)
def test_invalid_json_is_refused_in_one_line(value: Any) -> None:
    with pytest.raises(CheckpointError) as error:
        SizeDistribution.from_json(value)

    assert "\n" not in str(error.value)


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["1", "2", "x", ""]), inner, max_size=3)
        ),
        max_leaves=6,
    )
)
def test_any_json_is_refused_or_gives_a_normalised_distribution(value: Any) -> None:
    try:
        sizes = SizeDistribution.from_json(value)
    except CheckpointError:
        return

    assert sum(math.exp(sizes.log_prob(n)) for n in sizes.graphs) == pytest.approx(1)
