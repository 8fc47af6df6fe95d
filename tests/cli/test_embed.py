from __future__ import annotations

import sys
from pathlib import Path

import h5py
import networkx as nx
import pytest

from graphite_gen.cli.commands import embed

from .conftest import Invoke, is_one_line

QUICK = ("--epochs", 5, "--latent", 4, "--threads", 1)


def test_latents_and_a_figure_are_written(invoke: Invoke, groups: Path) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    result = invoke("embed", groups, "-o", "z.h5", "--plot", "tsne.png", *QUICK)

    assert result.exit_code == 0, result.stderr
    with h5py.File("z.h5") as file:
        assert file["latents"].shape == (30, 4)
    assert Path("tsne.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("many", "noted"), [(29, True), (30, False)])
def test_long_layouts_are_announced(
    many: int, noted: bool, invoke: Invoke, groups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(embed, "MANY_NODES", many)
    result = invoke("embed", groups, "--plot", "tsne.svg", *QUICK)

    assert result.exit_code == 0, result.stderr
    assert ("takes a while" in result.stderr) == noted


def test_nothing_is_written_if_the_layout_is_interrupted(
    invoke: Invoke, groups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    line = ("embed", groups, "-o", "z.csv", "--plot", "tsne.png", *QUICK)
    with monkeypatch.context() as patch:
        patch.setattr("graphite_gen.network.embedding.project_to_plane", interrupted)
        assert invoke(*line).exit_code != 0
    assert not Path("z.csv").exists()
    again = invoke(*line)
    assert again.exit_code == 0, again.stderr
    assert Path("z.csv").exists()
    assert Path("tsne.png").exists()


def test_latents_become_node_attributes(invoke: Invoke, groups: Path) -> None:
    assert invoke("embed", groups, "-o", "z.graphml", "--kind", "gae", *QUICK).exit_code == 0
    found = nx.read_graphml("z.graphml")

    assert {"z0", "z3", "label"} <= found.nodes["n4"].keys()
    printed = invoke("embed", groups, "-o", "-", "--output-format", "jsonl", *QUICK)
    assert printed.exit_code == 0, printed.stderr
    assert printed.stdout.count("\n") == 1


def test_latents_on_stdout_are_csv(invoke: Invoke, groups: Path) -> None:
    printed = invoke("embed", groups, "-o", "-", *QUICK)
    assert printed.exit_code == 0, printed.stderr

    assert printed.stdout.splitlines()[0] == "node,label,z0,z1,z2,z3"
    assert printed.stdout.count("\n") == 31


@pytest.mark.parametrize("package", ["sklearn.manifold", "matplotlib.figure"])
def test_missing_packages_are_reported_before_training(
    package: str, invoke: Invoke, groups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    result = invoke("embed", groups, "-o", "z.h5", "--plot", "tsne.png", *QUICK)

    assert result.exit_code == 1
    assert is_one_line(result.stderr)
    assert not Path("z.h5").exists()


def test_mistakes_end_in_one_line(invoke: Invoke, groups: Path) -> None:
    for options, problem in (
        (["-o", "z.g6"], "node attributes"),
        (["-o", "missing/z.csv"], "does not exist"),
        (["--plot", "z.txt"], "z.txt"),
        (["-o", "z.txt"], "'.csv'"),
        (["-o", "-", "--output-format", "h5"], "HDF5"),
    ):
        result = invoke("embed", groups, *options, *QUICK)
        assert result.exit_code == 1
        assert is_one_line(result.stderr)
        assert problem in result.stderr
    assert invoke("embed", groups).exit_code == 2
