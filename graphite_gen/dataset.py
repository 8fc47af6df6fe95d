"""Graphs, where they come from and how they are split."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from .crew import ALONE, Crew
from .errors import DatasetError
from .families import Family
from .families import family as family_of
from .graph import SimpleGraph
from .parcels import pack_graphs, unpack_graphs
from .records import Provenance
from .seeding import stream

__all__ = ["SPLITS", "Dataset", "even_splits", "generate", "generate_graphs", "split_of"]

SPLITS = ("train", "validation", "test")
"""The splits in the order in which a data set holds them."""

SPELLINGS = {**{name: name for name in SPLITS}, "val": "validation", "valid": "validation"}
"""How a file may spell a split, and which one it means."""

# So many graphs at a time go from one process to another.
CHUNK = 32


@dataclass(frozen=True)
class Dataset:
    """Graphs and their provenance; the attribute ``split`` of a graph says which split it belongs to.

    Attributes:
        graphs: The graphs in order.
        provenance: Where they come from.
    """

    graphs: list[SimpleGraph]
    provenance: Provenance

    def __len__(self) -> int:
        return len(self.graphs)

    def __iter__(self) -> Iterator[SimpleGraph]:
        return iter(self.graphs)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of nodes of each graph, with shape :math:`(G,)`."""
        return np.array([graph.nodes for graph in self.graphs], dtype=np.int64)

    def split(self, name: str) -> list[SimpleGraph]:
        """The graphs of one split, in order.

        Raises:
            DatasetError: There is no such split, no graph belongs to it, or a graph is marked as something else.
        """
        wanted = SPELLINGS.get(name)
        if wanted is None:
            raise DatasetError(f"No split is called '{name}': pass one of {_listed(SPLITS)}.")
        graphs = [graph for graph in self.graphs if split_of(graph) == wanted]
        if not graphs:
            raise DatasetError(
                f"None of the {len(self)} graphs belongs to the split '{name}': use all of them, or split them."
            )

        return graphs


def split_of(graph: SimpleGraph) -> str | None:
    """The split a graph is marked with, however it is spelled; None for a graph without a mark.

    Raises:
        DatasetError: The mark is not the name of a split.
    """
    mark = graph.attributes.get("split")
    if mark is None:
        return None
    name = SPELLINGS.get(str(mark).strip().lower())
    if name is None:
        raise DatasetError(f"A graph is marked as split '{mark}': mark it as one of {_listed(SPLITS)}, or not at all.")

    return name


def even_splits(count: int) -> dict[str, int]:
    """How many graphs each split has when they share evenly, the first ones taking the remainder."""
    return {name: (count + len(SPLITS) - 1 - k) // len(SPLITS) for k, name in enumerate(SPLITS)}


def generate_graphs(
    family: Family | str,
    count: int,
    nodes: tuple[int, int],
    seed: int,
    *,
    splits: Mapping[str, int] | None = None,
    crew: Crew = ALONE,
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
        crew: The processes that share the graphs, which come to the one that leads.

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
            raise DatasetError(f"No split is called '{name}': pass one of {_listed(SPLITS)}.")
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

    return map(draw, range(count)) if crew.size == 1 else _draw_shared(draw, count, crew)


def _draw_shared(draw: Callable[[int], SimpleGraph], count: int, crew: Crew) -> Iterator[SimpleGraph]:
    def draw_some(number: int) -> list[SimpleGraph]:
        return [draw(index) for index in range(count)[number * CHUNK : (number + 1) * CHUNK]]

    chunks = crew.ordered(-(-count // CHUNK), draw_some, pack_graphs, lambda parcel: unpack_graphs(parcel)[0])

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


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)
