from pathlib import Path

import h5py
import networkx as nx
import pytest

from graphite_gen.cli.commands import embed

from .conftest import invoke, run

QUICK = ("--epochs", 5, "--latent", 4, "--threads", 1)


@pytest.mark.parametrize("many", [29, 30])
def test_latents_and_a_figure_are_written_and_long_layouts_announced(
    many: int, groups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(embed, "MANY_NODES", many)
    result = run("embed", groups, "-o", "z.h5", "--plot", "tsne.png", *QUICK)

    with h5py.File("z.h5") as file:
        assert file["latents"].shape == (30, 4)
    assert Path("tsne.png").read_bytes().startswith(b"\x89PNG")
    assert ("takes a while" in result.stderr) == (many < 30)


def test_nothing_is_written_if_the_layout_is_interrupted(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("graphite_gen.network.embedding.project_to_plane", interrupted)
    assert invoke("embed", groups, "-o", "z.csv", "--plot", "tsne.png", *QUICK).exit_code == 130
    assert list(Path().iterdir()) == [Path(groups.name)]


def test_latents_become_node_attributes_or_columns(groups: Path) -> None:
    run("embed", groups, "-o", "z.graphml", "--kind", "gae", *QUICK)
    assert {"z0", "z3", "label"} <= nx.read_graphml("z.graphml").nodes["n4"].keys()
    assert run("embed", groups, "-o", "-", "--output-format", "jsonl", *QUICK).stdout.count("\n") == 1
    header, *rows = run("embed", groups, "-o", "-", *QUICK).stdout.splitlines()
    assert header == "node,label,z0,z1,z2,z3"
    assert len(rows) == 30
