"""Planetoid's raw files (Yang et al., 2016): ``ind.NAME.x`` and seven others."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..errors import FormatError
from ..graph import SimpleGraph
from ..io.files import is_special
from .plain_pickle import read_plain

__all__ = ["PlanetoidGraph", "is_planetoid", "read_planetoid"]

_NAME = re.compile(r"(ind\.[^.]+)(?:\.(?:x|tx|allx|y|ty|ally|graph|test\.index))?")
VALIDATION = 500
MAX_CITATIONS = 100_000_000


@dataclass(frozen=True, eq=False)
class PlanetoidGraph:
    """A citation network as its files tell it.

    Attributes:
        graph: The papers and the citations between them.
        features: The words of each paper, with shape :math:`(n, F)`.
        labels: The subject of each paper, None where it has none.
        split: The part of the public split each paper is in: train, then 500 for validation, and the test papers.
    """

    graph: SimpleGraph
    features: sparse.csr_array
    labels: list[int | None]
    split: list[str | None]


def is_planetoid(source: str | Path) -> bool:
    """Whether that is one of Planetoid's files, or what their names begin with, as in ``data/ind.cora``."""
    return _NAME.fullmatch(Path(source).name) is not None


def read_planetoid(source: str | Path) -> PlanetoidGraph:
    """The citation network of a set of files, put together as Kipf & Welling (2017) do.

    Test papers are listed in an order of their own. Citeseer has some of which nothing is known but their number: they
    get neither features nor label.

    Raises:
        FormatError: A file is missing, holds anything but arrays and lists, or does not fit the others.
    """
    path = Path(source)
    match = _NAME.fullmatch(path.name)
    assert match is not None
    stem = path.with_name(match[1])

    x, tx, allx = (_matrix(stem, part) for part in ("x", "tx", "allx"))
    y, ty, ally = (_one_hot(stem, part) for part in ("y", "ty", "ally"))
    tested = _test_index(stem)
    if (
        len(tested) != tx.shape[0]
        or len(ty) != len(tested)
        or allx.shape[0] != len(ally)
        or tx.shape[1] != allx.shape[1]
    ):
        raise FormatError(
            f"'{stem}.*' do not belong together: their numbers of rows or columns differ; fetch them again."
        )

    known = allx.shape[0]
    nodes = max(known, int(tested.max(initial=-1)) + 1)
    rows = np.concatenate([np.arange(known), tested])
    # Node numbers bound what is allocated: a damaged one must not claim the machine's memory.
    if nodes > 2 * len(rows):
        raise FormatError(
            f"'{stem}.test.index' lists node {nodes - 1}, and most before it are unknown; fetch it again."
        )
    if len(np.unique(rows)) != len(rows) or len(y) + VALIDATION > known or len(y) != x.shape[0]:
        raise FormatError(
            f"'{stem}.test.index' and '{stem}.allx' share nodes, or there are too few of them; fetch them again."
        )
    if not (np.isfinite(allx.data).all() and np.isfinite(tx.data).all()):
        raise FormatError(f"'{stem}.*' have a feature that is not a finite number; fetch them again.")
    stacked = sparse.vstack([allx, tx]).tocoo()
    features = sparse.csr_array((stacked.data, (rows[stacked.row], stacked.col)), shape=(nodes, allx.shape[1]))

    labels: list[int | None] = [None] * nodes
    for node, row in zip(rows.tolist(), np.concatenate([ally, ty]), strict=True):
        labels[node] = int(row.argmax()) if row.any() else None
    split: list[str | None] = [None] * nodes
    split[: len(y)] = ["train"] * len(y)
    split[len(y) : len(y) + VALIDATION] = ["validation"] * VALIDATION
    for node in tested.tolist():
        split[node] = "test"

    return PlanetoidGraph(_graph(stem, nodes), features.astype(np.float32), labels, split)


def _load(stem: Path, part: str) -> Any:
    return read_plain(stem.with_name(f"{stem.name}.{part}"))


def _matrix(stem: Path, part: str) -> sparse.csr_array:
    value = _load(stem, part)
    if not isinstance(value, sparse.csr_array):
        raise FormatError(f"'{stem}.{part}' holds {type(value).__name__}: wanted a sparse matrix; fetch it again.")

    return value


def _one_hot(stem: Path, part: str) -> NDArray[Any]:
    value = _load(stem, part)
    if not isinstance(value, np.ndarray) or value.ndim != 2:
        raise FormatError(
            f"'{stem}.{part}' holds {type(value).__name__}: wanted a row of 0 and 1 for each node; fetch it again."
        )

    return value


def _test_index(stem: Path) -> NDArray[np.int64]:
    path = stem.with_name(f"{stem.name}.test.index")
    if is_special(path):
        raise FormatError(f"'{path}' is no file; fetch it again.")
    try:
        words = path.read_text(encoding="ascii").split()
        tested = np.array([int(word) for word in words], dtype=np.int64)
    except OSError as error:
        raise FormatError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    except (ValueError, OverflowError) as error:
        raise FormatError(f"'{path}' is no list of node numbers ({str(error)[:200]}); fetch it again.") from error
    if len(tested) and tested.min() < 0:
        raise FormatError(f"'{path}' lists node {tested.min()}, which cannot be; fetch it again.")

    return tested


def _graph(stem: Path, nodes: int) -> SimpleGraph:
    """The citations, which come both ways, more than once, and now and then to the paper itself."""
    lists = _load(stem, "graph")
    if not isinstance(lists, dict):
        raise FormatError(f"'{stem}.graph' holds {type(lists).__name__}: wanted lists of neighbours; fetch it again.")
    # Lists may be shared: a small file can claim more pairs than there is memory for.
    if sum(len(near) for near in lists.values() if isinstance(near, list)) > MAX_CITATIONS:
        raise FormatError(f"'{stem}.graph' lists more than {MAX_CITATIONS} neighbours, the most that are read.")
    try:
        pairs = np.array([(i, j) for i, near in lists.items() for j in near], dtype=np.int64).reshape(-1, 2)
    except (TypeError, ValueError, OverflowError):
        raise FormatError(f"'{stem}.graph' lists neighbours that are no node numbers; fetch it again.") from None
    if len(pairs) and not 0 <= pairs.min() <= pairs.max() < nodes:
        raise FormatError(f"'{stem}.graph' has a node out of range; the nodes are 0 to {nodes - 1}; fetch it again.")
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)

    return SimpleGraph(nodes, np.unique(pairs, axis=0).astype(np.int32).reshape(-1, 2))
