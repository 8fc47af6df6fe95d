from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny import autoregressive_model

from graphite_gen.api import load
from graphite_gen.io import read_graphs
from graphite_gen.io.latents import read_latents
from graphite_gen.training.checkpoint import save_checkpoint

from .conftest import assert_error, invoke, read_csv, run


@pytest.fixture(scope="session")
def autoregressive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny autoregressive model of ego networks."""
    out = tmp_path_factory.mktemp("autoregressive")
    tiny = ("--graphs", 40, "--epochs", 1, "--nodes", "5:8", "--width", 16, "--epoch-graphs", 0, "--threads", 1)
    run("train", "--family", "ego", "--ordering", "bfs", *tiny, "--out", out)

    return out / "ego"


@pytest.mark.parametrize("kind", ["model", "autoregressive"])
@pytest.mark.parametrize("suffix", ["h5", "npz", "csv", "jsonl"])
def test_latents_are_those_of_the_library_and_are_decoded_from_any_format(
    kind: str, suffix: str, graphs: Path, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(kind)
    run("encode", graphs, "--model", folder, "-o", f"z.{suffix}")
    run("sample", "--latents", f"z.{suffix}", "--model", folder, "--seed", 2, "-o", "out.g6")

    model = load(folder)
    encoded = model.encode(read_graphs(graphs))
    for one, other in zip(encoded, read_latents(f"z.{suffix}"), strict=True):
        assert np.array_equal(one.mean, other.mean)
        assert (one.position is None) == (kind == "model")
    wanted = [sorted(map(sorted, graph.edges)) for graph in model.decode(encoded, seed=2)]
    assert [graph.edges.tolist() for graph in read_graphs("out.g6")] == wanted


def test_csv_is_written_to_standard_output(model: Path, graphs: Path) -> None:
    text = run("encode", graphs, "--model", model, "-o", "-").stdout
    Path("z.csv").write_text(text)

    rows = read_csv("z.csv")
    assert len(rows) == sum(graph.nodes for graph in read_graphs(graphs))
    assert rows[0].keys() == {"graph", "node", *(f"{key}{d}" for key in ("z", "std") for d in range(8))}


def test_what_cannot_be_encoded_or_decoded_is_one_line(model: Path, graphs: Path) -> None:
    save_checkpoint(autoregressive_model(), Path("without"))
    assert_error(invoke("encode", graphs, "--model", "without", "-o", "z.h5"), "no encoder", after_notes=True)
    run("encode", graphs, "--model", model, "-o", "z.h5")
    assert_error(invoke("encode", graphs, "--model", model, "-o", "z.h5"), "exists", "--force")
    run("encode", graphs, "--model", model, "-o", "z.h5", "--force")
    assert_error(invoke("inspect", "z.h5"), "latents", "sample --latents")

    sample = ("sample", "-o", "out.g6", "--model")
    assert_error(invoke(*sample, "without", "--latents", "z.h5"), "width 8", after_notes=True)
    Path("empty.csv").touch()
    assert_error(invoke(*sample, model, "--latents", "empty.csv"), "no latents")
    assert_error(invoke(*sample, model, "--latents", "none.h5"), "does not exist", "encode")
    assert_error(invoke(*sample, model, "--latents", "z.h5", "--nodes", 5), "--nodes", code=2)
    assert not Path("out.g6").exists()
