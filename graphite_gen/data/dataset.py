"""Datasets: graphs with provenance and split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

from ..errors import DatasetError
from ..graph import SimpleGraph
from ..records import Provenance, count_of, listed
from ..rng import stream

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["SPELLINGS", "SPLITS", "Dataset", "even_splits", "split_graphs", "split_of"]

SHOWN = 6
"""The number of graphs that are drawn in notebooks."""

SPLITS = ("train", "validation", "test")
"""The splits, in the order of a dataset."""

SPELLINGS = {**{name: name for name in SPLITS}, "val": "validation", "valid": "validation"}
"""Spellings of the splits in files."""


@dataclass(frozen=True, repr=False)
class Dataset:
    """Graphs and their provenance; the graph attribute ``split`` is the split of a graph."""

    graphs: list[SimpleGraph]
    provenance: Provenance

    def __len__(self) -> int:
        return len(self.graphs)

    def __iter__(self) -> Iterator[SimpleGraph]:
        return iter(self.graphs)

    @overload
    def __getitem__(self, index: int) -> SimpleGraph: ...

    @overload
    def __getitem__(self, index: slice) -> Dataset: ...

    def __getitem__(self, index: int | slice) -> SimpleGraph | Dataset:
        return replace(self, graphs=self.graphs[index]) if isinstance(index, slice) else self.graphs[index]

    def __repr__(self) -> str:
        family = "" if self.provenance.family is None else f", family '{self.provenance.family}'"
        sizes = f" of {self.sizes.min()} to {self.sizes.max()} nodes" if self.graphs else ""

        return f"Dataset({count_of(len(self), 'graph')}{sizes}{family})"

    def _repr_html_(self) -> str:
        return f"{''.join(graph.picture() for graph in self.graphs[:SHOWN])}<div>{self!r}</div>"

    def to_networkx(self) -> list[nx.Graph]:
        """The graphs as networkx graphs."""
        return [graph.to_networkx() for graph in self.graphs]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of nodes of each graph, with shape :math:`(G,)`."""
        return np.array([graph.nodes for graph in self.graphs], dtype=np.int64)

    def split(self, name: str) -> list[SimpleGraph]:
        """The graphs of one split, in order.

        Raises:
            DatasetError: The split is unknown or empty, or a graph has an unknown split.
        """
        wanted = SPELLINGS.get(name)
        if wanted is None:
            problem = f"There is no split '{name}'; expected one of {listed(SPLITS)}."
            raise DatasetError(problem, reason="split-unknown", split=name)
        graphs = [graph for graph in self.graphs if split_of(graph) == wanted]
        if not graphs:
            problem = f"None of the {len(self)} graphs belongs to the split '{name}'."
            raise DatasetError(problem, reason="split-empty", split=name)

        return graphs


def split_of(graph: SimpleGraph) -> str | None:
    """The split of a graph, whatever its spelling; None if it has none."""
    mark = graph.attributes.get("split")
    if mark is None:
        return None
    name = SPELLINGS.get(str(mark).strip().lower())
    if name is None:
        problem = f"A graph has the unknown split '{mark}'; expected one of {listed(SPLITS)}, or none."
        raise DatasetError(problem, reason="split-unknown", split=mark)

    return name


def even_splits(count: int) -> dict[str, int]:
    """The number of graphs of each split if they are divided evenly; the first splits get the remainder."""
    return {name: (count + len(SPLITS) - 1 - k) // len(SPLITS) for k, name in enumerate(SPLITS)}


def split_graphs(
    graphs: Sequence[SimpleGraph], seed: int, validation: float = 0.1
) -> tuple[list[SimpleGraph], list[SimpleGraph]]:
    """Training and validation graphs: by their split, otherwise a random tenth for validation.

    Graphs of the split ``test`` are never used.

    Raises:
        DatasetError: All graphs are test graphs.
    """
    splits = [split_of(graph) for graph in graphs]
    if "train" in splits:
        by_split = {name: [g for g, split in zip(graphs, splits, strict=True) if split == name] for name in SPLITS}
        return by_split["train"], by_split["validation"]
    graphs = [graph for graph, split in zip(graphs, splits, strict=True) if split != "test"]
    if splits and not graphs:
        raise DatasetError("All graphs are in the split 'test', which is not used for training.", reason="split-empty")
    order = stream(seed, "split").permutation(len(graphs))
    held = max(1, round(len(graphs) * validation)) if len(graphs) > 1 else 0
    chosen = set(order[:held].tolist())

    return (
        [graph for index, graph in enumerate(graphs) if index not in chosen],
        [graph for index, graph in enumerate(graphs) if index in chosen],
    )
