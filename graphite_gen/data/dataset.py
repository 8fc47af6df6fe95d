"""Graphs, where they come from and how they are split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import DatasetError
from ..graph import SimpleGraph
from ..records import Provenance
from ..rng import stream

__all__ = ["SPLITS", "Dataset", "even_splits", "list_splits", "split_graphs", "split_of"]

SPLITS = ("train", "validation", "test")
"""The splits in the order in which a data set holds them."""

SPELLINGS = {**{name: name for name in SPLITS}, "val": "validation", "valid": "validation"}
"""How a file may spell a split, and which one it means."""


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
            raise DatasetError(f"No split is called '{name}': pass one of {list_splits(SPLITS)}.")
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
        raise DatasetError(
            f"A graph is marked as split '{mark}': mark it as one of {list_splits(SPLITS)}, or not at all."
        )

    return name


def even_splits(count: int) -> dict[str, int]:
    """How many graphs each split has when they share evenly, the first ones taking the remainder."""
    return {name: (count + len(SPLITS) - 1 - k) // len(SPLITS) for k, name in enumerate(SPLITS)}


def split_graphs(
    graphs: Sequence[SimpleGraph], seed: int, validation: float = 0.1
) -> tuple[list[SimpleGraph], list[SimpleGraph]]:
    """Training and validation graphs: by the split written in the file, else a random tenth for validation.

    Graphs marked ``test`` are left alone.

    Raises:
        DatasetError: All graphs are marked ``test``, or one is marked as something else than a split.
    """
    marks = [split_of(graph) for graph in graphs]
    if "train" in marks:
        by_mark = {name: [g for g, mark in zip(graphs, marks, strict=True) if mark == name] for name in SPLITS}
        return by_mark["train"], by_mark["validation"]
    graphs = [graph for graph, mark in zip(graphs, marks, strict=True) if mark != "test"]
    if marks and not graphs:
        raise DatasetError("All graphs are marked 'test', and those are not trained on. Mark some as 'train', or none.")
    order = stream(seed, "split").permutation(len(graphs))
    held = max(1, round(len(graphs) * validation)) if len(graphs) > 1 else 0
    chosen = set(order[:held].tolist())

    return (
        [graph for index, graph in enumerate(graphs) if index not in chosen],
        [graph for index, graph in enumerate(graphs) if index in chosen],
    )


def list_splits(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)
