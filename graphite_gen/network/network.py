"""A network: one large graph with node features, labels and a split, from any supported file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..data.dataset import SPELLINGS, SPLITS
from ..errors import DatasetError, FormatError
from ..graph import SimpleGraph, require_undirected
from ..io import format_of, read_graphs
from ..io.build import Context
from ..io.h5_reader import dataset
from ..records import count_of, listed
from .annotations import csr_rows, read_features, read_labels

__all__ = ["Network", "NodeSplit", "count_features", "describe_nodes", "from_simple_graph", "read_network"]


@dataclass(frozen=True, eq=False)
class NodeSplit:
    """Node indices for training, validation and test."""

    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Network:
    """One large graph with what is known about its nodes.

    Attributes:
        graph: The nodes, their names and the edges.
        features: Node features :math:`X`, sparse, or None, with shape :math:`(n, F)`.
        labels: The class index of each node, -1 if unlabelled, or None, with shape :math:`(n,)`.
        classes: The names of the classes, by index.
        split: The split of the nodes, or None.
    """

    graph: SimpleGraph
    features: sparse.csr_array | None = None
    labels: NDArray[np.int64] | None = None
    classes: tuple[Any, ...] = ()
    split: NodeSplit | None = None

    def __repr__(self) -> str:
        width = 0 if self.features is None else self.features.shape[1]
        counts = ((self.nodes, "node"), (len(self.edges), "edge"), (width, "feature"), (len(self.classes), "class"))

        return f"Network({', '.join(count_of(*count) for count in counts)})"

    @property
    def nodes(self) -> int:
        """The number of nodes :math:`n`."""
        return self.graph.nodes

    @property
    def edges(self) -> NDArray[np.int32]:
        """Node pairs with ``i < j``, with shape :math:`(E, 2)`."""
        return self.graph.edges

    def labelled_by(self, attribute: str) -> Network:
        """The network with the values of a node attribute as labels.

        Raises:
            DatasetError: No node has the attribute, or its values are not numbers or strings.
        """
        columns = self.graph.node_attributes
        if attribute not in columns:
            found = f"they have {listed(columns)}" if columns else "they have none"
            raise DatasetError(f"The nodes have no attribute '{attribute}'; {found}.")
        if not all(isinstance(value, str | int | float | None) for value in columns[attribute]):
            raise DatasetError(f"The node attribute '{attribute}' has values other than numbers and strings.")

        return describe_nodes(self.graph, self.features, columns[attribute], self.split)

    def name(self, node: int) -> Any:
        """The name of a node in its file."""
        return node if self.graph.names is None else self.graph.names[node]


def read_network(
    source: str | Path,
    *,
    format: str | None = None,
    simplify: bool = False,
    features: str | Path | None = None,
    labels: str | Path | None = None,
) -> Network:
    """Read a network: a file with one graph, and the features, labels and split of its nodes.

    These come from the network HDF5 layout, or in other formats from node ``features`` and the node attributes
    ``label`` and ``split`` (train, validation or test). A label -1 means unlabelled in the network layout and in npz
    files; elsewhere only if the labels are integers from 0.

    Arguments:
        source: A graph file, or ``-`` for stdin.
        format: The format, if the suffix does not determine it.
        simplify: Whether to drop directions, self-loops and repeated edges instead of raising an error.
        features: A CSV or npz file of features by node id, which replace those of the graph.
        labels: A CSV or npz file of labels (and a split) by node id, which replace those of the graph.

    Raises:
        FormatError: A file is missing or damaged.
        DatasetError: The file holds more than one graph, or annotations do not fit its nodes.
    """
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
    """A network from a graph and annotations of its nodes.

    A label None means unlabelled. So does -1 if 0 is a label and all others are positive integers; otherwise, for
    example beside 1 alone, it is a class. ``split`` may be the name of the part that each node belongs to.
    """
    parts = split if split is None or isinstance(split, NodeSplit) else _split(split)
    if labels is None or all(label is None for label in labels):
        return Network(graph, features, split=parts)
    if any(label != label for label in labels):
        raise DatasetError("The label of a node is NaN: use an empty label for unlabelled nodes.")
    labels = _without_unknown(labels)
    # Numbers in order, then strings in order: labels 0, 1, … are their own class indices.
    classes = sorted({label for label in labels if label is not None}, key=lambda each: (isinstance(each, str), each))
    index = {label: code for code, label in enumerate(classes)}
    codes = np.array([-1 if label is None else index[label] for label in labels], dtype=np.int64)

    return Network(graph, features, codes, tuple(classes), parts)


def _without_unknown(labels: Sequence[Any]) -> Sequence[Any]:
    """The labels with None for -1, if they are integers from 0."""
    numbers = {label: _integer(label) for label in set(labels) if label is not None}
    found = set(numbers.values())
    if not ({-1, 0} <= found and all(number is not None and number >= -1 for number in found)):
        return labels

    return [None if label is None or numbers[label] == -1 else label for label in labels]


def _integer(label: Any) -> int | None:
    """The integer value of a label or its text, such as '-1.0', or None."""
    try:
        number = float(label)
    except (TypeError, ValueError, OverflowError):
        return None

    return int(number) if number.is_integer() else None


def _split(parts: Sequence[Any]) -> NodeSplit | None:
    words = [None if part is None else SPELLINGS.get(str(part).strip().lower(), str(part)) for part in parts]
    wrong = next((word for word in words if word not in (None, *SPLITS)), None)
    if wrong is not None:
        raise DatasetError(f"A node has the split '{wrong[:80]}': expected 'train', 'validation' or 'test'.")
    if not any(words):
        return None

    return NodeSplit(*(np.flatnonzero([word == part for word in words]) for part in SPLITS))


def _read(source: str | Path, format: str | None, simplify: bool) -> Network:
    with read_graphs(source, format=format, simplify=simplify, directed=False) as graphs:
        graph = next(graphs)
        if next(graphs, None) is not None:
            raise DatasetError(f"'{source}' holds more than one graph: expected one.", reason="more-than-one-graph")
    found = from_simple_graph(graph)
    if found.features is None and format_of(source, format) == "h5":
        return replace(found, features=_h5_features(Path(source), graph.nodes))

    return found


def from_simple_graph(graph: SimpleGraph) -> Network:
    """A network from a graph with node ``features`` and the node attributes ``label`` and ``split``."""
    require_undirected(graph)
    x = None if graph.features is None else sparse.csr_array(graph.features)
    labels = graph.node_attributes.get("label")
    if labels is not None and not all(isinstance(each, str | int | float | None) for each in labels):
        # Lists and dicts cannot be classes.
        labels = None

    return describe_nodes(graph, x, labels, graph.node_attributes.get("split"))


def count_features(path: Path, nodes: int) -> int:
    """The number of node features in a file of the network HDF5 layout; 0 in other layouts."""
    x = _h5_features(path, nodes)

    return 0 if x is None else int(x.shape[1])


def _h5_features(path: Path, nodes: int) -> sparse.csr_array | None:
    """Features in the network layout; None without features, or in another layout."""
    context = Context(str(path))
    with h5py.File(path, "r") as file:
        if "edge_index" not in file or "features" not in file:
            return None
        try:
            x = _h5_rows(file, context)
        except (OSError, RuntimeError, LookupError, ValueError, TypeError, AttributeError) as error:
            raise FormatError(f"'{path}' is damaged ({str(error)[:200]}).", reason="file-damaged") from error
    if x.shape[0] != nodes:
        raise context.error("'features'", f"{count_of(x.shape[0], 'row')} for {count_of(nodes, 'node')}.")
    if not np.isfinite(x.data).all():
        raise context.error("'features'", "a feature is not a finite number.")

    return x


def _h5_rows(file: Any, context: Context) -> sparse.csr_array:
    group = file["features"]
    if isinstance(group, h5py.Dataset):
        return sparse.csr_array(dataset(context, file, "features", "biuf", width=0)[:].astype(np.float32))
    data, indices, indptr = (
        dataset(context, group, name, kinds)[:]
        for name, kinds in (("data", "iuf"), ("indices", "iu"), ("indptr", "iu"))
    )

    return csr_rows(data.astype(np.float32), indices, indptr, group.attrs["shape"])
