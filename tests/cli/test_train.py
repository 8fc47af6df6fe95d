from __future__ import annotations

import json
import shlex
import shutil
import signal
from pathlib import Path
from typing import Any

import click
import networkx as nx
import pytest

from graphite_gen import config
from graphite_gen.cli.commands.train import train
from graphite_gen.cli.train_options import ENCODERS, KINDS, ORDERINGS
from graphite_gen.config import PRESETS, preset
from graphite_gen.families import family
from graphite_gen.families.simulate import TRAINING_GRAPHS, training_set
from graphite_gen.io import read_graphs
from graphite_gen.network.hyperparameters import GENERATION
from graphite_gen.training.checkpoint import load_checkpoint

from .conftest import TINY, Invoke, assert_error, only_json, program


def history(folder: Path) -> list[dict[str, Any]]:
    """The run's records without the time they took."""
    rows = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]

    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def test_the_model_is_saved_and_its_results_are_on_stdout(invoke: Invoke) -> None:
    result = invoke("train", "--family", "ego", *TINY)

    assert result.exit_code == 0
    assert load_checkpoint(Path("checkpoints/ego")).name == "ego"
    assert "checkpoints/ego" in result.stdout
    assert "validation NLL" in result.stdout
    assert "ER baseline" in result.stdout
    assert "epoch 2/2" in result.stderr
    assert "Plan: 2 epochs of 60 graphs" in result.stderr
    assert "graphite-gen sample --model checkpoints/ego" in result.stderr


def test_json_has_the_baseline_of_the_validation_graphs_and_a_finding_above_it(invoke: Invoke) -> None:
    value = only_json(invoke("train", "--family", "ego", *TINY, "--name", "mine", "--json"))
    model, results = load_checkpoint(Path(value["folder"])), value["results"]
    validation = training_set(family("ego"), preset_name="default", count=60, nodes=(5, 8), seed=0).split("validation")
    excess = results["validation"] - results["baseline"]

    assert (value["name"], value["folder"]) == ("mine", "checkpoints/mine")
    assert (results["training_graphs"], results["validation"]) == (60, model.results["validation"])
    assert results["baseline"] == pytest.approx(sum(map(model.sizes.baseline, validation)) / len(validation))
    assert excess > 1
    assert f"{excess:.2f} ± " in results["remark"]
    assert "Train longer ('--epochs', now 2), or on" in results["remark"]


def test_a_run_below_the_baseline_has_no_finding(invoke: Invoke) -> None:
    # All pairs or none: the baseline tosses a coin for each, and a model knows after the first.
    graphs = [nx.node_link_data(nx.complete_graph(6) if i % 2 else nx.empty_graph(6), edges="edges") for i in range(40)]
    Path("coin.jsonl").write_text("".join(json.dumps(graph) + "\n" for graph in graphs))
    quick = ("--epochs", 6, "--batch-size", 4, "--learning-rate", 0.01, "--width", 16, "--epoch-graphs", 0)
    results = only_json(invoke("train", "coin.jsonl", *quick, "--threads", 1, "--json"))["results"]

    assert results["validation"] < results["baseline"] - 0.5
    assert results["remark"] is None


def test_there_is_no_finding_if_the_baseline_is_the_true_process(invoke: Invoke) -> None:
    line = ("train", "--family", "erdos-renyi", *TINY, "--preset", "one-shot", "--epochs", 1, "--json")
    results = only_json(invoke(*line))["results"]

    assert results["validation"] > results["baseline"] + 1
    assert results["remark"] is None


def test_only_options_that_were_given_change_the_preset(invoke: Invoke) -> None:
    line = ("train", "--family", "ego", "--preset", "paper", *TINY, "--no-mlp", "--encoder-features", "degree,constant")
    assert invoke(*line, "--seed", 5).exit_code == 0
    model, training = PRESETS["paper"]
    found = load_checkpoint(Path("checkpoints/ego"))

    changed = {"width": 16, "mlp": False, "encoder_features": ["degree", "constant"], "max_nodes": 8}
    assert found.config.to_json() == {**model.to_json(), **changed}
    assert found.training.to_json() == {**training.to_json(), "epochs": 2, "epoch_graphs": 0, "seed": 5}


def test_default_names_are_numbered_and_given_names_are_not(invoke: Invoke) -> None:
    assert invoke("train", "--family", "ego", *TINY).exit_code == 0
    assert invoke("train", "--family", "ego", *TINY).exit_code == 0
    assert sorted(path.name for path in Path("checkpoints").iterdir()) == ["ego", "ego-2"]

    refused = invoke("train", "--family", "ego", *TINY, "--name", "ego")
    assert_error(refused)
    assert all(word in refused.stderr for word in ("--resume", "--force", "--name"))
    assert invoke("train", "--family", "ego", *TINY, "--name", "ego", "--force", "--seed", 1).exit_code == 0
    assert load_checkpoint(Path("checkpoints/ego")).training.seed == 1


def test_a_file_is_used_by_its_splits_and_names_the_model(invoke: Invoke, graphs: Path) -> None:
    value = only_json(invoke("train", graphs, "--epochs", 1, "--width", 8, "--epoch-graphs", 0, "--json"))

    assert value["name"] == "ego"
    assert (value["results"]["training_graphs"], value["results"]["validation_graphs"]) == (4, 4)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (("--skip", "convex"), "'--skip' has no effect on an autoregressive model"),
        (("--no-mlp",), "'--mlp/--no-mlp' has no effect on an autoregressive model"),
        (("--latent", 4), "'--latent' has no effect on a model without encoder"),
        (("--kl-warmup", 0.5), "'--kl-warmup' has no effect on a model without encoder"),
        (("--encoder-features", "degree"), "'--encoder-features' has no effect on a model without encoder"),
        (("--stages", 1, "--order", "peel"), "'--ordering' has no effect on a one-shot model"),
    ],
)
def test_an_option_without_effect_is_refused(invoke: Invoke, line: tuple[object, ...], what: str) -> None:
    assert_error(invoke("train", "--family", "ego", *TINY, *line), what, code=2)
    assert not list(Path().iterdir())


def test_choices_of_options_are_those_of_the_library() -> None:
    assert (config.KINDS, tuple(config.ORDERINGS)) == (KINDS, ORDERINGS)
    for encoder in ENCODERS:
        assert preset("default", encoder=encoder)[0].encoder == encoder


def test_help_shows_the_defaults_of_the_presets(invoke: Invoke) -> None:
    text = " ".join(invoke("train", "--help").stdout.split())

    epochs = {name: training.epochs for name, (_, training) in PRESETS.items()}
    assert f"[default: {epochs['default']}; one-shot: {epochs['one-shot']}; paper: {epochs['paper']}; " in text
    assert f"[default: {TRAINING_GRAPHS}; paper: 100]" in text


def test_help_shows_the_defaults_for_one_network() -> None:
    records = {option.name: option.get_help_record(click.Context(train)) for option in train.params}
    shown = {name: record[1] for name, record in records.items() if record}

    for name in ("epochs", "learning_rate", "latent", "rounds", "skip_weight"):
        assert f"; --single: {getattr(GENERATION, name):g}; " in shown[name]
    assert (GENERATION.width, GENERATION.kind, GENERATION.skip) == (0, "graphite-vae", "convex")
    assert "; --single: none; " in shown["width"]
    assert f"[default: not used; --single: {GENERATION.subsample:g}; " in shown["subsample"]
    # Defaults that are equal, or not used there, are not repeated.
    assert not any("--single: " in shown[name] for name in ("kind", "validate_every", "patience"))


@pytest.mark.parametrize(
    "line",
    [
        *("", "graphs.h5 --family ego", "graphs.h5 --nodes 5", "graphs.h5 --graphs 5", "graphs.h5 --param p=1"),
        *("--family ego --simplify", "--family ego --resume --force", "--family ego --epochs 0", "--resume"),
        *("--family ego --epochs many", "--family ego --learning-rate -1", "--family ego --kind gan"),
        *("--family ego --encoder-features colour", "--family ego --name ../out", "--family ego --nodes 0:5"),
        "--family ego --threads 0",
    ],
)
def test_wrong_usage_is_exit_two(invoke: Invoke, line: str) -> None:
    assert invoke("train", *line.split()).exit_code == 2


@pytest.mark.parametrize(
    "line",
    [
        *("missing.h5", "--family nobody", "--family ego --resume", "--family ego --resume --name never"),
        *(f"--family ego {' '.join(map(str, TINY))} --out /proc/models", "--family regular --nodes 3"),
    ],
)
def test_an_error_is_one_line_and_leaves_no_files(invoke: Invoke, line: str) -> None:
    assert_error(invoke("train", *line.split()))
    assert not list(Path().iterdir())


def test_a_finished_run_is_reported(invoke: Invoke, model: Path) -> None:
    before = (model / "model.safetensors").read_bytes()
    result = invoke("train", "--family", "ego", "--out", model.parent, "--resume", "--json")

    assert "finished" in result.stderr
    assert only_json(result)["results"]["epochs"] == 2
    assert (model / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    "change", ["--epochs 9", "--seed 1", "--nodes 5:9", "--param p=0.4", "--no-mlp", "--preset paper"]
)
def test_a_run_is_not_resumed_with_other_settings(invoke: Invoke, model: Path, change: str) -> None:
    line = ("train", "--family", "ego", *TINY, "--out", model.parent, "--resume")
    assert invoke(*line).exit_code == 0
    assert_error(invoke(*line, *change.split()), "start another run")


def test_a_run_is_not_resumed_on_other_graphs(invoke: Invoke, graphs: Path) -> None:
    settings = ("--epochs", 1, "--width", 8, "--epoch-graphs", 0)
    assert invoke("train", graphs, *settings).exit_code == 0
    assert invoke("train", graphs, "--resume").exit_code == 0
    shutil.move(graphs, "elsewhere.h5")
    assert invoke("train", "elsewhere.h5", "--name", "ego", "--resume").exit_code == 0
    assert invoke("generate", "--family", "ego", "--nodes", "5:8", "--seed", 2, "-n", 12, "-o", graphs).exit_code == 0
    assert_error(invoke("train", graphs, "--resume"), "graphs are not those")


def test_an_interrupted_run_resumes_to_the_same_bytes(invoke: Invoke, own_folder: Path) -> None:
    line = ("train", "--family", "ego", *TINY, "--epochs", 12, "--validate-every", 1)
    whole = invoke(*line, "--name", "whole")
    assert whole.exit_code == 0

    process = program(*line, "--name", "parts")
    assert process.stderr is not None
    while not (text := process.stderr.readline()).startswith("epoch"):
        assert text, "the run ended before its first epoch"
    process.send_signal(signal.SIGINT)
    text = process.communicate(timeout=60)[1].splitlines()[-1]

    assert process.returncode == 130
    assert text.startswith("Interrupted. Continue with: graphite-gen train --family ego --name parts --resume")
    assert len(history(Path("checkpoints/parts"))) < 12
    again = invoke(*shlex.split(text.partition("graphite-gen ")[2]))
    assert again.exit_code == 0, again.stderr
    for name in ("model.safetensors",):
        assert Path("checkpoints/parts", name).read_bytes() == Path("checkpoints/whole", name).read_bytes()
    assert history(Path("checkpoints/parts")) == history(Path("checkpoints/whole"))


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["training.runs.TrainingData.load", "cli.progress.train_with_progress"])
def test_a_run_stopped_before_its_first_step_reports_that_nothing_was_saved(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setattr(f"graphite_gen.{where}", interrupt)
    result = invoke("train", "--family", "ego", *TINY)

    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == "Interrupted before anything was saved."
    assert result.stdout == ""
    assert not list(Path().iterdir())


def test_a_run_stopped_while_resuming_can_be_resumed(
    invoke: Invoke, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphite_gen.training.runs.TrainingData.load", interrupt)
    result = invoke("train", "--family", "ego", "--out", model.parent, "--resume")

    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1].startswith("Interrupted. Continue with: graphite-gen train --family ego")


def test_a_run_stopped_in_its_first_step_can_be_resumed(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("graphite_gen.training.trainer.Trainer._step", interrupt)
        result = invoke("train", "--family", "ego", *TINY)
    line = result.stderr.splitlines()[-1]

    assert result.exit_code == 130
    assert line.startswith("Interrupted. Continue with: graphite-gen train --family ego --name ego --resume")
    assert only_json(invoke(*shlex.split(line.partition("graphite-gen ")[2]), "--json"))["results"]["epochs"] == 2


def test_weights_are_announced_and_can_be_ignored(invoke: Invoke) -> None:
    graph = nx.les_miserables_graph()
    egos = [nx.ego_graph(graph, node) for node in list(graph)[:12]]
    Path("egos.jsonl").write_text("".join(json.dumps(nx.node_link_data(ego, edges="edges")) + "\n" for ego in egos))
    quick = ("--epochs", 1, "--epoch-graphs", 0, "--width", 4)

    weighted = invoke("train", "egos.jsonl", "--name", "weighted", *quick)
    plain = invoke("train", "egos.jsonl", "--name", "plain", "--ignore-weights", *quick)

    assert (weighted.exit_code, plain.exit_code) == (0, 0)
    # The baseline is a distribution over unweighted graphs.
    assert ("ER baseline" in weighted.stdout, "ER baseline" in plain.stdout) == (False, True)
    assert "--ignore-weights" in weighted.stderr
    assert "--ignore-weights" not in plain.stderr
    assert invoke("nll", "egos.jsonl", "--model", "plain", "-k", 2).exit_code == 1
    assert invoke("nll", "egos.jsonl", "--model", "plain", "-k", 2, "--ignore-weights").exit_code == 0
    assert invoke("train", "--family", "ego", "--ignore-weights").exit_code == 2


def test_single_is_suggested_for_a_file_of_one_graph(invoke: Invoke, groups: Path, graphs: Path) -> None:
    hint = "pass '--single'"
    options = ("--epochs", 1, "--width", 8, "--threads", 1)
    one = invoke("train", groups, "--stages", 1, *options)
    assert one.exit_code == 0, one.stderr
    assert "on 1 graph, validating on 0.\n" in one.stderr
    assert hint in one.stderr
    many = invoke("train", graphs, "--stages", 1, *options)
    assert many.exit_code == 0, many.stderr
    assert hint not in many.stderr


def test_a_model_of_one_network_is_trained_and_sampled(invoke: Invoke, groups: Path) -> None:
    options = ("--epochs", 20, "--latent", 4, "--subsample", 0, "--threads", 1)
    trained = invoke("train", "--single", groups, *options)
    assert trained.exit_code == 0, trained.stderr
    assert "sample --model checkpoints/groups" in trained.stderr
    assert json.loads(Path("checkpoints/groups/config.json").read_text())["model"]["subsample"] == 0
    assert {path.name for path in Path("checkpoints/groups").iterdir()} == {
        "config.json",
        "model.safetensors",
        "state.json",
    }

    for file, extra in (("a.h5", ()), ("b.h5", ()), ("c.h5", ("--nodes", 80, "--seed", 1))):
        result = invoke("sample", "-n", 2, "-o", file, "--threads", 1, *extra)
        assert result.exit_code == 0, result.stderr
        assert "the last one trained" in result.stderr
    first, second, third = (list(read_graphs(file)) for file in ("a.h5", "b.h5", "c.h5"))
    assert [graph.edges.tolist() for graph in first] == [graph.edges.tolist() for graph in second]
    assert [graph.nodes for graph in first + third] == [30, 30, 80, 80]

    # The default is one network.
    assert invoke("sample", "-o", "d.h5", "--threads", 1).exit_code == 0
    (only,) = read_graphs("d.h5")
    assert only.edges.tolist() == first[0].edges.tolist()

    facts = only_json(invoke("inspect", "groups", "--json"))
    assert (facts["scope"], facts["nodes"]["max"]) == ("single graph", 30)
    assert "of one network" in invoke("inspect", "groups").stdout
    assert "groups" in invoke("inspect").stdout
    again = invoke("train", "--single", groups, "--name", "groups", *options)
    assert_error(again)
    # There is no such run to go on with.
    assert "--resume" not in again.stderr


def test_commands_and_options_that_do_not_apply_to_one_network_are_refused(invoke: Invoke, groups: Path) -> None:
    assert invoke("train", "--single", groups, "--epochs", 2, "--latent", 4, "--threads", 1).exit_code == 0
    for line, code, problem in (
        (("nll", groups), 1, "'--model bundled:barabasi'"),
        (("nll", groups, "--model", "groups"), 1, "'--model bundled:barabasi'"),
        (("report", "groups", "-o", "page.html"), 1, "'bundled:barabasi'"),
        (("plot", "training", "groups", "--terminal"), 1, "'bundled:barabasi'"),
        (("complete", groups, "--add-nodes", 1, "-o", "out.graphml"), 1, "model of one network"),
        (("train", groups, "--name", "groups", "--resume"), 1, ""),
        (("sample", "--tree", "-o", "out.h5"), 2, "'--tree' has no effect"),
        (("sample", "--stages", 4, "-o", "out.h5"), 2, "'--decoding-steps' has no effect"),
        (("sample", "--nodes", 2, "-o", "out.h5"), 1, "mean degree"),
        (("train", "--single"), 2, "the file of the graph"),
        (("train", "--single", groups, "--stages", 3), 2, "'--decoder' has no effect"),
        (("train", groups, "--subsample", 2), 2, "'--subsample' needs '--single'"),
        (("train", "--single", groups, "--resume"), 2, "'--resume' has no effect"),
        (("train", "--single", "--family", "ego"), 2, "'--family' has no effect"),
    ):
        result = invoke(*line)
        assert result.exit_code == code, (line, result.stderr)
        assert problem in result.stderr.splitlines()[-1], line
        assert "Traceback" not in result.stderr
    assert not Path("out.h5").exists()
