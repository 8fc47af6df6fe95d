"""Datasets sampled from the true process of a family."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import accumulate, chain

from ..data.dataset import SPLITS, Dataset, even_splits
from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..errors import DatasetError
from ..graph import SimpleGraph
from ..records import Provenance, listed
from ..rng import derive_seed, seed_or_new, stream
from .base import Family
from .base import family as family_of

__all__ = ["TRAINING_GRAPHS", "VALIDATION_GRAPHS", "generate", "generate_graphs", "training_set"]

TRAINING_GRAPHS = 24_000
VALIDATION_GRAPHS = 300
# Graphs sent at once between processes.
CHUNK = 32


def generate_graphs(
    family: Family | str,
    count: int,
    nodes: tuple[int, int],
    seed: int,
    *,
    splits: Mapping[str, int] | None = None,
    group: ProcessGroup = SINGLE_PROCESS,
) -> Iterator[SimpleGraph]:
    """Yield graphs from the true process.

    Graph ``i`` depends only on the seed and ``i``. Sizes cycle through one random permutation of the sizes that the
    family has, so that each occurs equally often, up to one, in every split.

    Arguments:
        family: The family, or its name for default parameters.
        nodes: The smallest and the largest number of nodes.
        splits: The number of graphs of each split, in the order train, validation, test; equal thirds by default.
        group: The processes that share the work; rank 0 yields the graphs.
    """
    # Not a generator function, so that arguments are checked at once.
    family = family_of(family) if isinstance(family, str) else family
    low, high = nodes
    if low > high:
        raise DatasetError(f"The range of nodes {low}:{high} is empty.")
    sizes = family.sizes(low, high)
    if count < 0:
        raise DatasetError(f"The number of graphs is {count}; it should be at least 0.")
    splits = even_splits(count) if splits is None else splits
    for name in splits:
        if name not in SPLITS:
            raise DatasetError(f"There is no split '{name}'; there are {listed(SPLITS)}.")
    if min(splits.values(), default=0) < 0 or sum(splits.values()) != count:
        found = ", ".join(f"{name} {splits[name]}" for name in splits)
        raise DatasetError(f"The splits ({found}) do not add up to {count} graphs.")

    order = stream(seed, "sizes").permutation(sizes).tolist()
    ends = dict(zip(SPLITS, accumulate(splits.get(name, 0) for name in SPLITS), strict=True))

    def draw(index: int) -> SimpleGraph:
        graph = family.sample(order[index % len(order)], stream(seed, "generate", index))
        name = next(name for name, end in ends.items() if index < end)

        return replace(graph, attributes={"family": family.name, "split": name})

    def draw_chunk(number: int) -> list[SimpleGraph]:
        return [draw(index) for index in range(count)[number * CHUNK : (number + 1) * CHUNK]]

    if group.world_size == 1:
        return map(draw, range(count))
    chunks = group.gather_in_order(-(-count // CHUNK), draw_chunk)

    return chain.from_iterable(chunks)


def generate(
    family: Family | str,
    count: int = 300,
    nodes: tuple[int, int] = (10, 20),
    seed: int | None = None,
    *,
    splits: Mapping[str, int] | None = None,
) -> Dataset:
    """A dataset from the true process, with a new seed for None; see :func:`generate_graphs`."""
    seed = seed_or_new(seed)
    family = family_of(family) if isinstance(family, str) else family
    graphs = list(generate_graphs(family, count, nodes, seed, splits=splits))

    return Dataset(graphs, Provenance(family.name, family.parameters(), seed, "generate"))


def training_set(family: Family, *, preset_name: str, count: int | None, nodes: tuple[int, int], seed: int) -> Dataset:
    """Training and validation graphs of a family, from a seed derived from the run's seed.

    They differ from the graphs that :func:`generate` samples with the same seed. ``count`` is the number of training
    graphs; None for that of the preset, where ``paper`` has 100 training and 100 validation graphs.
    """
    default, validation = (100, 100) if preset_name == "paper" else (TRAINING_GRAPHS, VALIDATION_GRAPHS)
    count = default if count is None else count
    splits = {"train": count, "validation": validation}

    return generate(family, count + validation, nodes, derive_seed(seed, "training set"), splits=splits)
