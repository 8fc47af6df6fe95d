from collections import Counter
from itertools import islice

import numpy as np
import pytest

from graphite_gen.data.dataset import SPLITS, Dataset, even_splits, split_of
from graphite_gen.errors import DatasetError, FamilyError
from graphite_gen.families import FAMILIES, family
from graphite_gen.families.simulate import generate, generate_graphs
from graphite_gen.graph import SimpleGraph
from graphite_gen.records import Provenance


def same(first: SimpleGraph, second: SimpleGraph) -> bool:
    return first.nodes == second.nodes and np.array_equal(first.edges, second.edges)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_default_is_300_graphs_in_even_thirds_with_their_provenance(name: str) -> None:
    data = generate(family(name), seed=0)

    assert [len(data), *(len(data.split(split)) for split in SPLITS)] == [300, 100, 100, 100]
    assert data.provenance == Provenance(name, family(name).parameters(), 0, "generate")
    assert all(graph.attributes["family"] == name for graph in data)


@pytest.mark.parametrize("count", [11, 100, 300, 301])
def test_sizes_are_balanced_in_the_whole_and_in_every_split(count: int) -> None:
    data = generate(family("er"), count, (10, 20), seed=3)

    assert sum(even_splits(count).values()) == count
    assert max(even_splits(count).values()) - min(even_splits(count).values()) <= 1
    for graphs in (data.graphs, *map(data.split, SPLITS)):
        counts = Counter(graph.nodes for graph in graphs)
        assert max(counts.values()) - min(counts[n] for n in range(10, 21)) <= 1


def test_a_graph_depends_on_the_seed_and_not_on_how_many_are_drawn() -> None:
    short, long, other = (generate(family("er"), count, seed=seed) for count, seed in ((20, 5), (50, 5), (20, 6)))
    some = list(islice(generate_graphs(family("er"), 10**9, (10, 20), 5, splits={"train": 10**9}), 5))

    assert all(map(same, short, long))
    assert all(map(same, short.graphs[:5], some))
    assert not any(map(same, short, other))


def test_sizes_without_graphs_are_left_out() -> None:
    data = generate(family("regular", d=3), 60, (3, 9), seed=0)

    assert Counter(data.sizes.tolist()) == {4: 20, 6: 20, 8: 20}


def test_splits_may_be_chosen() -> None:
    data = generate(family("er"), 10, splits={"test": 2, "train": 8})

    assert [graph.attributes["split"] for graph in data] == ["train"] * 8 + ["test"] * 2
    with pytest.raises(DatasetError, match="validation") as caught:
        data.split("validation")
    assert caught.value.reason == "split-empty"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": -1}, "is -1"),
        ({"nodes": (20, 10)}, "20:10 is empty"),
        ({"splits": {"dev": 9}}, "no split 'dev'"),
        ({"splits": {"train": 5}}, "add up to 9"),
        ({"splits": {"train": 10, "test": -1}}, "add up to 9"),
    ],
)
def test_invalid_counts_sizes_and_splits_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        generate(family("er"), **{"count": 9, **options})  # type: ignore[arg-type]


def test_a_name_is_the_family_with_its_default_parameters() -> None:
    data = generate("ba", 12, seed=0)

    assert all(map(same, data, generate(family("barabasi"), 12, seed=0)))
    assert data.provenance == generate(family("barabasi"), 12, seed=0).provenance
    assert all(map(same, data, generate_graphs("ba", 12, (10, 20), 0)))


@pytest.mark.parametrize(("name", "sizes", "fact"), [("ba", (2, 4), "n=4 nodes"), ("er", (1, 99_999_999), "99999999")])
def test_impossible_sizes_are_refused_before_anything_is_drawn(name: str, sizes: tuple[int, int], fact: str) -> None:
    with pytest.raises(FamilyError, match=fact):
        generate_graphs(family(name), 10, sizes, 0)


def in_split(split: object) -> SimpleGraph:
    return SimpleGraph(1, np.zeros((0, 2), dtype=np.int32), attributes={"split": split})


@pytest.mark.parametrize(
    ("spelling", "split"),
    [*((name, name) for name in SPLITS), ("val", "validation"), ("valid", "validation"), (" Val ", "validation")],
)
def test_common_spellings_of_a_split_are_read(spelling: str, split: str) -> None:
    data = Dataset([in_split(spelling), in_split(None)], Provenance())

    assert split_of(in_split(spelling)) == split
    assert split_of(SimpleGraph.from_pairs(1, [])) is None
    assert data.split(split) == data.graphs[:1]


@pytest.mark.parametrize(("split", "wanted"), [("dev", "test"), (1, "test"), ("", "test"), ("test", "dev")])
def test_an_unknown_split_is_refused(split: object, wanted: str) -> None:
    with pytest.raises(DatasetError) as caught:
        Dataset([in_split("test"), in_split(split)], Provenance()).split(wanted)
    assert caught.value.reason == "split-unknown"
