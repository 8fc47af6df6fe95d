"""The latents of the nodes of one graph: written to files, and drawn on a plane."""

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

__all__ = [
    "check_embedding_picture",
    "check_embedding_target",
    "draw_embedding",
    "project_to_plane",
    "write_embedding",
]

Latents = NDArray[np.float32]

# t-SNE needs more points than a neighbourhood has.
PERPLEXITY = 30.0
GREY = "0.75"


def check_embedding_target(target: Path, format: str | None = None, *, force: bool = False) -> str:
    """The format that latents will be written in: ``csv``, ``h5`` or that of a graph with node attributes.

    Raises:
        OutputError: The file exists, cannot be written, its suffix means no format, or that has no node attributes.
        FormatError: There is no such format.
    """
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
            f"'{target}' is no file for latents: name it '.h5' or '.csv', '.graphml', '.gml' or '.jsonl' for the graph "
            f"with node attributes, or pass '-' for CSV on stdout."
        ) from error
    if name != "h5":
        check_node_attributes(name, "latents")
    elif str(target) == "-":
        raise OutputError("'-' cannot be HDF5, which is not written front to back: pass a file, or another format.")

    return name


def write_embedding(
    graph: Network, z: Latents, target: Path, *, format: str | None = None, force: bool = False, model: str = ""
) -> None:
    """Write latents by suffix, whole or not at all.

    CSV has a row per node: its id, its label if there are any, and ``z0``, ``z1``, …. HDF5 has ``latents (n, D)``,
    ``nodes (n,)`` with the ids as text, and ``labels (n,)``. Graph formats hold the graph, its nodes with ``z0``, ….

    Arguments:
        graph: The graph.
        z: The latents, with shape :math:`(n, D)`.
        target: A file, or ``-`` for stdout.
        format: The format, where the suffix does not tell.
        force: Whether to replace an existing file.
        model: The kind of model they come from.

    Raises:
        OutputError: The file cannot be written.
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
            # They may come from a file of their own.
            columns["label"] = [_label(graph, node) for node in range(graph.nodes)]
        own = replace(graph.graph, node_attributes={**graph.graph.node_attributes, **columns})
        write_graphs([own], target, format=format, provenance=Provenance(source="embed", model=model), force=force)


def _label(graph: Network, node: int) -> Any:
    assert graph.labels is not None
    code = int(graph.labels[node])

    return None if code < 0 else graph.classes[code]


def _csv(graph: Network, z: Latents) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    labelled = graph.labels is not None
    writer.writerow(["node", *(["label"] if labelled else []), *(f"z{k}" for k in range(z.shape[1]))])
    for node, row in enumerate(z):
        label = [_label(graph, node)] if labelled else []
        # As text of its own type: the digits that bring the same number back.
        writer.writerow([graph.name(node), *label, *map(str, row)])

    return text.getvalue()


def _write_h5(file: Any, graph: Network, z: Latents, model: str) -> None:
    file.attrs["format"], file.attrs["version"], file.attrs["model"] = EMBEDDING, 1, model
    file["latents"] = z
    file["nodes"] = np.array([str(graph.name(node)).encode() for node in range(graph.nodes)], dtype=np.bytes_)
    if graph.labels is not None:
        file["labels"] = graph.labels
        file["classes"] = np.array([str(name).encode() for name in graph.classes], dtype=np.bytes_)


def check_embedding_picture(target: Path, *, force: bool = False) -> None:
    """Refuse a picture that cannot be drawn or written, before any work is done for it.

    Raises:
        ConfigError: scikit-learn or matplotlib is not installed.
        OutputError: The file exists, cannot be written, or its suffix is none of a picture.
    """
    check_picture(target, force)
    new_figure(1, 1)
    _tsne()


def _tsne() -> Any:
    try:
        from sklearn.manifold import TSNE
    except ImportError:
        raise ConfigError("t-SNE needs scikit-learn: install it with 'pip install graphite-gen[tasks]'.") from None

    return TSNE


def project_to_plane(z: Latents, seed: int) -> NDArray[np.float32]:
    """The latents as points of a plane by t-SNE (van der Maaten & Hinton, 2008), with shape :math:`(n, 2)`.

    Raises:
        ConfigError: scikit-learn is not installed.
    """
    method = _tsne()
    if len(z) < 3 or not np.ptp(z):
        # Nothing is near or far: points side by side.
        return np.stack([np.arange(len(z)), np.zeros(len(z))], axis=1).astype(np.float32)
    init = "pca" if min(z.shape) >= 2 else "random"
    perplexity = min(PERPLEXITY, (len(z) - 1) / 3)

    return np.asarray(method(perplexity=perplexity, init=init, random_state=seed % 2**32).fit_transform(z))


def draw_embedding(graph: Network, points: NDArray[np.float32], target: Path, *, force: bool = False) -> None:
    """A picture of points in the plane, coloured by label; nodes without one are grey.

    Arguments:
        graph: The graph.
        points: The points, with shape :math:`(n, 2)`.
        target: A file; its suffix says png, svg or pdf.
        force: Whether to replace an existing file.

    Raises:
        ConfigError: matplotlib is not installed.
        OutputError: The file cannot be written, or its suffix is none of a picture.
    """
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
