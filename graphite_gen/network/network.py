"""A large graph with what is known about its nodes, from any file we read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..errors import DatasetError, FormatError
from ..graph import SimpleGraph
from ..io import format_of, read_graphs
from ..io.build import Context
from ..io.h5_reader import dataset
from ..records import count_of
from .annotations import csr_rows, read_features, read_labels
from .planetoid import is_planetoid, read_planetoid

__all__ = ["Network", "NodeSplit", "count_features", "describe_nodes", "from_simple_graph", "read_network"]

PARTS = {"train": "train", "val": "validation", "valid": "validation", "validation": "validation", "test": "test"}


@dataclass(frozen=True, eq=False)
class NodeSplit:
    """Which labels are learned from, chosen by and tested on, as node numbers."""

    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Network:
    """One graph and its nodes.

    Attributes:
        graph: The nodes, their names and the edges.
        features: Node features :math:`X`, sparse, or None, with shape :math:`(n, F)`.
        labels: The class of each node, -1 where it is not known, or None, with shape :math:`(n,)`.
        classes: The names of the classes, in the order of their numbers.
        split: Which labels are for what, or None.
    """

    graph: SimpleGraph
    features: sparse.csr_array | None = None
    labels: NDArray[np.int64] | None = None
    classes: tuple[Any, ...] = ()
    split: NodeSplit | None = None

    def __repr__(self) -> str:
        width = 0 if self.features is None else self.features.shape[1]
        counts = ((self.nodes, "node"), (len(self.edges), "edge"), (width, "feature"), (len(self.classes), "class"))

        return f"SingleGraph({', '.join(count_of(*count) for count in counts)})"

    @property
    def nodes(self) -> int:
        """The number of nodes :math:`n`."""
        return self.graph.nodes

    @property
    def edges(self) -> NDArray[np.int32]:
        """Node pairs with ``i < j``, with shape :math:`(E, 2)`."""
        return self.graph.edges

    def name(self, node: int) -> Any:
        """What the file calls a node."""
        return node if self.graph.names is None else self.graph.names[node]


def read_network(
    source: str | Path,
    *,
    format: str | None = None,
    simplify: bool = False,
    features: str | Path | None = None,
    labels: str | Path | None = None,
) -> Network:
    """The one graph of a file, with the features, labels and split that it has.

    They are those of the single-graph HDF5 layout or of Planetoid's raw files; in other formats node ``features``, and
    the node attributes ``label`` and ``split`` (train, validation or test). A label -1 is none in the single-graph
    layout and in npz files; elsewhere it is none beside 0, among whole numbers, and a class without.

    Arguments:
        source: A file of any format we read, ``-`` for stdin, or one of Planetoid's files, such as ``ind.cora.graph``.
        format: The format, where the suffix does not tell.
        simplify: Whether to ignore directions and drop self-loops and repeated edges, rather than refuse them.
        features: A CSV or npz file of features that take the place of the graph's own, joined by node id.
        labels: A CSV or npz file of labels, and maybe of the split, that take the place of the graph's own.

    Raises:
        FormatError: A file is missing, damaged or not what it claims to be.
        DatasetError: There is more than one graph, or what is known of nodes does not fit them.
    """
    if format is None and is_planetoid(source):
        raw = read_planetoid(source)
        # Planetoid lists citations, which come both ways, more than once, and now and then to the paper itself.
        found = describe_nodes(raw.graph, raw.features, raw.labels, raw.split)
    else:
        found = _read(source, format, simplify)
    graph = found.graph
    x = found.features if features is None else read_features(Path(features), graph)
    if labels is None:
        return Network(graph, x, found.labels, found.classes, found.split)
    values, parts = read_labels(Path(labels), graph)

    return describe_nodes(graph, x, values, parts or found.split)


def describe_nodes(
    graph: SimpleGraph,
    features: sparse.csr_array | None,
    labels: Sequence[Any] | None,
    split: Sequence[Any] | NodeSplit | None = None,
) -> Network:
    """A graph whose nodes have labels of any kind; None is no label.

    Nor is -1 among codes that count from zero, whole numbers of which 0 is one and none is less: so data sets mark what
    is not known. Beside 1 alone, say, it is a class as any other.

    Arguments:
        graph: The graph.
        features: Node features, with shape :math:`(n, F)`.
        labels: A label per node.
        split: The split, or the part of it that each node belongs to.
    """
    parts = split if split is None or isinstance(split, NodeSplit) else _split(split)
    if labels is None or all(label is None for label in labels):
        return Network(graph, features, split=parts)
    if any(label != label for label in labels):
        raise DatasetError("A node's label is NaN: leave it empty where there is none.")
    labels = _without_unknown(labels)
    # Numbers in their order, then words in theirs; so files with labels 0, 1, … keep those as numbers of the classes.
    classes = sorted({label for label in labels if label is not None}, key=lambda each: (isinstance(each, str), each))
    number = {label: index for index, label in enumerate(classes)}
    codes = np.array([-1 if label is None else number[label] for label in labels], dtype=np.int64)

    return Network(graph, features, codes, tuple(classes), parts)


def _without_unknown(labels: Sequence[Any]) -> Sequence[Any]:
    """The labels with None for -1, if they are codes that count from zero."""
    numbers = {label: _whole_number(label) for label in set(labels) if label is not None}
    found = set(numbers.values())
    if not ({-1, 0} <= found and all(number is not None and number >= -1 for number in found)):
        return labels

    return [None if label is None or numbers[label] == -1 else label for label in labels]


def _whole_number(label: Any) -> int | None:
    """The number that a label is, or that its text says, if it is a whole one; -1.0 is, too."""
    try:
        number = float(label)
    except (TypeError, ValueError, OverflowError):
        return None

    return int(number) if number.is_integer() else None


def _split(parts: Sequence[Any]) -> NodeSplit | None:
    words = [None if part is None else PARTS.get(str(part).strip().lower(), str(part)) for part in parts]
    wrong = next((word for word in words if word not in (None, *PARTS.values())), None)
    if wrong is not None:
        raise DatasetError(f"A node is in part '{wrong[:80]}' of the split: wanted 'train', 'validation' or 'test'.")
    if not any(words):
        return None

    return NodeSplit(*(np.flatnonzero([word == part for word in words]) for part in ("train", "validation", "test")))


def _read(source: str | Path, format: str | None, simplify: bool) -> Network:
    with read_graphs(source, format=format, simplify=simplify) as graphs:
        graph = next(graphs)
        if next(graphs, None) is not None:
            raise DatasetError(
                f"'{source}' holds more than one graph, and this is about a single one: pass one that "
                f"'graphite-gen convert FILE one/{{index:04d}}.graphml' writes."
            )
    found = from_simple_graph(graph)
    if found.features is None and format_of(source, format) == "h5":
        return replace(found, features=_h5_features(Path(source), graph.nodes))

    return found


def from_simple_graph(graph: SimpleGraph) -> Network:
    """A graph with what its nodes carry: their ``features``, and the attributes ``label`` and ``split``.

    Raises:
        DatasetError: A node is in an unknown part of the split.
    """
    x = None if graph.features is None else sparse.csr_array(graph.features)

    return describe_nodes(graph, x, _hashable(graph.node_attributes), graph.node_attributes.get("split"))


def count_features(path: Path, nodes: int) -> int:
    """How many features a node has in the single-graph HDF5 layout, which keeps them beside the graph; 0 in others.

    Raises:
        FormatError: They are damaged.
    """
    x = _h5_features(path, nodes)

    return 0 if x is None else int(x.shape[1])


def _hashable(attributes: Mapping[str, list[Any]]) -> list[Any] | None:
    labels = attributes.get("label")
    # A list or a dict is no class of nodes.
    return labels if labels is None or all(isinstance(each, str | int | float | None) for each in labels) else None


def _h5_features(path: Path, nodes: int) -> sparse.csr_array | None:
    """The features of the single-graph layout; None if there are none, or the file has another."""
    context = Context(str(path))
    with h5py.File(path, "r") as file:
        if "edge_index" not in file or "features" not in file:
            return None
        try:
            return _checked_rows(context, _h5_rows(file, context), nodes)
        except (OSError, RuntimeError, LookupError, ValueError, TypeError, AttributeError) as error:
            raise FormatError(f"'{path}' is damaged ({str(error)[:200]}).", reason="file-damaged") from error


def _h5_rows(file: Any, context: Context) -> sparse.csr_array:
    group = file["features"]
    if isinstance(group, h5py.Dataset):
        return sparse.csr_array(dataset(context, file, "features", "biuf", width=0)[:].astype(np.float32))
    data, indices, indptr = (
        dataset(context, group, name, kinds)[:]
        for name, kinds in (("data", "iuf"), ("indices", "iu"), ("indptr", "iu"))
    )

    return csr_rows(data.astype(np.float32), indices, indptr, group.attrs["shape"])


def _checked_rows(context: Context, x: sparse.csr_array, nodes: int) -> sparse.csr_array:
    if x.shape[0] != nodes:
        raise context.error(
            "'features'", f"{count_of(x.shape[0], 'row')} for {count_of(nodes, 'node')}; write a row for each node."
        )
    if not np.isfinite(x.data).all():
        raise context.error("'features'", "a feature is not a finite number; replace it, or leave features out.")

    return x
