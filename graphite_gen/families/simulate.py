"""Graphs from the true process of a family."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import accumulate

from ..data.dataset import SPLITS, Dataset, even_splits, list_splits
from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..errors import DatasetError
from ..graph import SimpleGraph
from ..records import Provenance
from ..rng import derive_seed, stream
from .base import Family
from .base import family as family_of

__all__ = ["TRAINING_GRAPHS", "VALIDATION_GRAPHS", "generate", "generate_graphs", "training_set"]

TRAINING_GRAPHS = 24_000
VALIDATION_GRAPHS = 300
# So many graphs at a time go from one process to another.
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
    """Graphs from the true process, one at a time.

    Graph ``i`` depends on the seed and ``i`` alone, so a longer run begins with the shorter one. Sizes follow one
    shuffled order of the allowed sizes, over and over: any run of graphs, and so every split, has each size equally
    often up to a remainder of one. Sizes for which the family has no graphs are left out.

    Arguments:
        family: The law to draw from; a name means the one with default parameters.
        count: How many graphs.
        nodes: The smallest and the largest number of nodes.
        seed: The seed, at least zero. Another seed gives other graphs, for a test set that shares none.
        splits: How many graphs go to each split, in the order train, validation, test; even thirds by default.
        group: The processes that divide the graphs, which are gathered on rank 0.

    Raises:
        FamilyError: The family has no graphs of any of these sizes, or draws none so large.
        DatasetError: The count or the splits do not fit.
    """
    # Checked here, not at the first graph: a generator's body would wait until someone asks.
    law = _law(family)
    low, high = nodes
    if low > high:
        raise DatasetError(f"The range of nodes {low}:{high} is empty: pass the smaller number first.")
    sizes = law.sizes(low, high)
    if count < 0:
        raise DatasetError(f"Cannot draw {count} graphs: pass a count of at least 0.")
    splits = even_splits(count) if splits is None else splits
    for name in splits:
        if name not in SPLITS:
            raise DatasetError(f"No split is called '{name}': pass one of {list_splits(SPLITS)}.")
    if min(splits.values(), default=0) < 0 or sum(splits.values()) != count:
        found = ", ".join(f"{name} {splits[name]}" for name in splits)
        raise DatasetError(f"The splits ({found}) do not share out {count} graphs: pass counts that add up to it.")

    order = stream(seed, "sizes").permutation(sizes).tolist()
    # Where each split ends.
    ends = dict(zip(SPLITS, accumulate(splits.get(name, 0) for name in SPLITS), strict=True))

    def draw(index: int) -> SimpleGraph:
        graph = law.sample(order[index % len(order)], stream(seed, "generate", index))
        name = next(name for name, end in ends.items() if index < end)

        return replace(graph, attributes={"family": law.name, "split": name})

    return map(draw, range(count)) if group.world_size == 1 else _draw_shared(draw, count, group)


def _draw_shared(draw: Callable[[int], SimpleGraph], count: int, group: ProcessGroup) -> Iterator[SimpleGraph]:
    def draw_some(number: int) -> list[SimpleGraph]:
        return [draw(index) for index in range(count)[number * CHUNK : (number + 1) * CHUNK]]

    chunks = group.gather_in_order(-(-count // CHUNK), draw_some)

    return (graph for chunk in chunks for graph in chunk)


def _law(family: Family | str) -> Family:
    return family_of(family) if isinstance(family, str) else family


def generate(
    family: Family | str,
    count: int = 300,
    nodes: tuple[int, int] = (10, 20),
    seed: int = 0,
    *,
    splits: Mapping[str, int] | None = None,
) -> Dataset:
    """A data set from the true process; see :func:`generate_graphs`."""
    law = _law(family)
    graphs = list(generate_graphs(law, count, nodes, seed, splits=splits))

    return Dataset(graphs, Provenance(law.name, law.parameters(), seed, "generate"))


def training_set(law: Family, *, preset_name: str, count: int | None, nodes: tuple[int, int], seed: int) -> Dataset:
    """Fresh graphs of a family to train on, marked as training and validation graphs.

    They come from a seed of their own: what ``generate`` draws from the same seed is never among them.

    Arguments:
        law: The family.
        preset_name: ``paper`` trains on as many graphs as the paper (100, and 100 for validation).
        count: The number of training graphs; None for the preset's.
        nodes: The smallest and the largest number of nodes.
        seed: The run's one seed.
    """
    default, validation = (100, 100) if preset_name == "paper" else (TRAINING_GRAPHS, VALIDATION_GRAPHS)
    count = default if count is None else count
    splits = {"train": count, "validation": validation}

    return generate(law, count + validation, nodes, derive_seed(seed, "training set"), splits=splits)
