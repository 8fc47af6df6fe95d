"""Node embeddings of a network: files of latents, and t-SNE figures."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError, FormatError, OutputError
from ..io import check_node_attributes, format_of, write_graphs
from ..io.files import check_target, open_output
from ..io.h5 import EMBEDDING
from ..io.h5_writer import PatientFile, undisturbed
from ..records import Provenance
from ..viz.figures import check_picture, new_figure, save_picture
from .network import Network

__all__ = ["check_embedding_picture", "check_embedding_target", "draw_embedding", "project_to_plane", "write_embedding"]

Latents = NDArray[np.float32]

PERPLEXITY = 30.0
GREY = "0.75"


def check_embedding_target(target: Path, format: str | None = None, *, force: bool = False) -> str:
    """Format of an embedding file: ``csv``, ``h5``, or a graph format with node attributes."""
    if str(target) != "-":
        check_target(target, force)
    if format is None and (str(target) == "-" or target.suffix.lower() == ".csv"):
        return "csv"
    try:
        name = format_of(target, format)
    except FormatError as error:
        if format is not None:
            raise
        raise OutputError(
            f"'{target}' has no suffix of an embedding file: use '.h5' or '.csv', '.graphml', '.gml' or '.jsonl' for "
            f"the graph with node attributes, or '-' for CSV on stdout."
        ) from error
    if name != "h5":
        check_node_attributes(name, "latents")
    elif str(target) == "-":
        raise OutputError("HDF5 cannot be written to stdout: pass a file name or another format.")

    return name


def write_embedding(
    graph: Network, z: Latents, target: Path, *, format: str | None = None, force: bool = False, model: str = ""
) -> None:
    """Write latents of shape :math:`(n, D)` atomically, in the format of the suffix; ``-`` is stdout.

    CSV has a row per node: its id, its label if any, and ``z0``, ``z1``, …. HDF5 has ``latents (n, D)``, ``nodes (n,)``
    with the ids as text, and ``labels (n,)``. Graph formats hold the graph with node attributes ``z0``, ….
    """
    name = check_embedding_target(target, format, force=force)
    path = None if str(target) == "-" else target
    if name == "csv":
        with open_output(path, force) as stream:
            stream.write(_csv(graph, z).encode())
    elif name == "h5":
        with open_output(path, force) as stream:
            own_file = PatientFile(stream)
            with undisturbed(), h5py.File(own_file, "w") as file:
                _write_h5(file, graph, z, model)
            own_file.check()
    else:
        columns = {f"z{k}": z[:, k].tolist() for k in range(z.shape[1])}
        if graph.labels is not None:
            # Labels may come from a separate file.
            columns["label"] = _labels(graph)
        own = replace(graph.graph, node_attributes={**graph.graph.node_attributes, **columns})
        write_graphs([own], target, format=format, provenance=Provenance(source="embed", model=model), force=force)


def _labels(graph: Network) -> list[Any]:
    return [] if graph.labels is None else [None if code < 0 else graph.classes[code] for code in graph.labels]


def _csv(graph: Network, z: Latents) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    labels = _labels(graph)
    writer.writerow(["node", *["label"] * (graph.labels is not None), *(f"z{k}" for k in range(z.shape[1]))])
    for node, row in enumerate(z):
        # The shortest text that round-trips.
        writer.writerow([graph.name(node), *labels[node : node + 1], *map(str, row)])

    return text.getvalue()


def _write_h5(file: Any, graph: Network, z: Latents, model: str) -> None:
    file.attrs["format"], file.attrs["version"], file.attrs["model"] = EMBEDDING, 1, model
    file["latents"] = z
    file["nodes"] = np.array([str(graph.name(node)).encode() for node in range(graph.nodes)], dtype=np.bytes_)
    if graph.labels is not None:
        file["labels"] = graph.labels
        file["classes"] = np.array([str(name).encode() for name in graph.classes], dtype=np.bytes_)


def check_embedding_picture(target: Path, *, force: bool = False) -> None:
    """Raise an error if a figure cannot be drawn or written, before any work is done for it."""
    check_picture(target, force)
    new_figure(1, 1)
    _tsne()


def _tsne() -> Any:
    try:
        from sklearn.manifold import TSNE
    except ImportError:
        raise ConfigError("t-SNE needs scikit-learn: 'pip install graphite-gen[tasks]'.") from None

    return TSNE


def project_to_plane(z: Latents, seed: int) -> NDArray[np.float32]:
    """Two-dimensional t-SNE of latents (van der Maaten & Hinton, 2008), with shape :math:`(n, 2)`."""
    method = _tsne()
    if len(z) < 3 or not np.ptp(z):
        # Too few distinct points for t-SNE.
        return np.stack([np.arange(len(z)), np.zeros(len(z))], axis=1).astype(np.float32)
    init = "pca" if min(z.shape) >= 2 else "random"
    perplexity = min(PERPLEXITY, (len(z) - 1) / 3)

    return np.asarray(method(perplexity=perplexity, init=init, random_state=seed % 2**32).fit_transform(z))


def draw_embedding(graph: Network, points: NDArray[np.float32], target: Path, *, force: bool = False) -> None:
    """Scatter plot of points of shape :math:`(n, 2)`, coloured by label; unlabelled nodes are grey."""
    check_picture(target, force)

    figure = new_figure(6, 6)
    axes = figure.add_subplot()
    axes.set_axis_off()
    size = float(np.clip(3e4 / max(len(points), 1), 2, 40))
    labels = np.full(len(points), -1) if graph.labels is None else graph.labels
    axes.scatter(points[labels < 0, 0], points[labels < 0, 1], s=size, color=GREY, linewidths=0)
    for code, name in enumerate(graph.classes):
        own = points[labels == code]
        axes.scatter(own[:, 0], own[:, 1], s=size, color=f"C{code % 10}", linewidths=0, label=str(name))
    if graph.classes and len(graph.classes) <= 20:
        axes.legend(frameon=False, markerscale=2, fontsize="small")
    save_picture(figure, target, force=force)
