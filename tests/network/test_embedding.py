import csv
from dataclasses import replace
from pathlib import Path

import h5py
import networkx as nx
import numpy as np
import pytest

from graphite_gen.errors import GraphiteError
from graphite_gen.network.embedding import draw_embedding, project_to_plane, write_embedding
from graphite_gen.network.network import Network

from .graphs import planted


@pytest.fixture
def graph() -> Network:
    """Named nodes, the first of them without a label."""
    plain = planted()
    labels = np.where(np.arange(60) == 0, -1, plain.labels)

    return replace(plain, graph=replace(plain.graph, names=tuple(f"n{i}" for i in range(60))), labels=labels)


@pytest.fixture
def z() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)


def test_csv_round_trips(graph: Network, z: np.ndarray, tmp_path: Path) -> None:
    write_embedding(graph, z, tmp_path / "z.csv")
    with (tmp_path / "z.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))

    assert [row["node"] for row in rows] == list(graph.graph.names or ())
    assert (rows[0]["label"], rows[1]["label"], rows[59]["label"]) == ("", "0", "3")
    assert (np.array([[row[f"z{k}"] for k in range(3)] for row in rows], dtype=np.float32) == z).all()


def test_hdf5_has_latents_ids_and_labels(graph: Network, z: np.ndarray, tmp_path: Path) -> None:
    write_embedding(graph, z, tmp_path / "z.h5", model="vgae")
    with h5py.File(tmp_path / "z.h5") as file:
        assert (file["latents"][:] == z).all()
        assert file["nodes"][59] == b"n59"
        assert (file["labels"][:] == graph.labels).all()
        assert file.attrs["model"] == "vgae"


def test_graph_formats_have_node_attributes(graph: Network, z: np.ndarray, tmp_path: Path) -> None:
    write_embedding(graph, z, tmp_path / "z.graphml")
    found = nx.read_graphml(tmp_path / "z.graphml")

    assert found.number_of_edges() == len(graph.edges)
    assert found.nodes["n7"]["z2"] == pytest.approx(float(z[7, 2]))
    # Labels may come from another file than the graph.
    assert "label" not in graph.graph.node_attributes
    assert (found.nodes["n59"]["label"], "label" in found.nodes["n0"]) == (3, False)


def test_a_figure_has_a_colour_per_class(graph: Network, z: np.ndarray, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw_embedding(graph, z[:, :2], tmp_path / "z.svg")
    text = (tmp_path / "z.svg").read_text()

    # Matplotlib's first four colours, and grey for the node without a label.
    assert all(colour in text for colour in ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#bfbfbf"))


def test_near_latents_are_near_in_the_projection() -> None:
    pytest.importorskip("sklearn")
    centres = np.repeat(np.eye(3) * 20, 12, axis=0)
    z = (centres + np.random.default_rng(0).normal(size=(36, 3))).astype(np.float32)
    points = project_to_plane(z, 0)
    gaps = np.linalg.norm(points[:, None] - points[None], axis=-1) + np.diag([np.inf] * 36)

    assert (gaps.argmin(1) // 12 == np.arange(36) // 12).all()
    assert (points == project_to_plane(z, 0)).all()
    for strange in (z[:1], z[:2], z[:5], z[:, :1], np.zeros((9, 3), np.float32)):
        assert np.isfinite(project_to_plane(strange, 0)).all()
        assert len(project_to_plane(strange, 0)) == len(strange)


def test_invalid_targets_are_refused(graph: Network, z: np.ndarray, tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("")
    for name, problem in (("old.csv", "exists"), ("z.g6", "node attributes"), ("z.xyz", "'.h5' or '.csv'")):
        with pytest.raises(GraphiteError, match=problem):
            write_embedding(graph, z, tmp_path / name)
    with pytest.raises(GraphiteError, match=r"z\.txt"):
        draw_embedding(graph, z[:, :2], tmp_path / "z.txt")
