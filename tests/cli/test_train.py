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

from .conftest import TINY, assert_error, invoke, program, run, run_json


def history(folder: Path) -> list[dict[str, Any]]:
    """The run's records without the time they took."""
    rows = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]

    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def test_the_model_is_saved_and_its_results_are_on_stdout() -> None:
    result = run("train", "--family", "ego", *TINY)

    assert load_checkpoint(Path("checkpoints/ego")).name == "ego"
    for fact in ("checkpoints/ego", "validation NLL", "ER baseline", "entropy"):
        assert fact in result.stdout
    for note in ("epoch 2/2", "Plan: 2 epochs of 60 graphs", "graphite-gen sample --model checkpoints/ego"):
        assert note in result.stderr


def test_json_has_the_baseline_of_the_validation_graphs_and_a_finding_above_it() -> None:
    value = run_json("train", "--family", "ego", *TINY, "--name", "mine")
    model, results = load_checkpoint(Path(value["folder"])), value["results"]
    validation = training_set(family("ego"), preset_name="default", count=60, nodes=(5, 8), seed=0).split("validation")
    excess = results["validation"] - results["baseline"]

    assert (value["name"], value["folder"]) == ("mine", "checkpoints/mine")
    assert (results["training_graphs"], results["validation"]) == (60, model.results["validation"])
    assert results["baseline"] == pytest.approx(sum(map(model.sizes.baseline, validation)) / len(validation))
    assert excess > 1
    assert f"{excess:.2f} ± " in results["remark"]
    assert "Train longer ('--epochs', now 2), or on" in results["remark"]


def test_only_options_that_were_given_change_the_preset() -> None:
    line = ("train", "--family", "ego", "--preset", "paper", *TINY, "--no-mlp", "--encoder-features", "degree,spectral")
    run(*line, "--seed", 5)
    model, training = PRESETS["paper"]
    found = load_checkpoint(Path("checkpoints/ego"))

    changed = {"width": 16, "mlp": False, "encoder_features": ["degree", "spectral"], "max_nodes": 8}
    assert found.config.to_json() == {**model.to_json(), **changed}
    assert found.training.to_json() == {**training.to_json(), "epochs": 2, "epoch_graphs": 0, "seed": 5}


def test_default_names_are_numbered_and_given_names_are_not() -> None:
    line = ("train", "--family", "ego", *TINY)
    run(*line)
    second = run(*line).stderr.splitlines()[0]
    assert sorted(path.name for path in Path("checkpoints").iterdir()) == ["ego", "ego-2"]
    assert "'ego-2'" in second

    run(*line, "--name", "ego", "--force", "--seed", 1)
    assert load_checkpoint(Path("checkpoints/ego")).training.seed == 1


def test_a_file_is_used_by_its_splits_and_names_the_model(graphs: Path) -> None:
    value = run_json("train", graphs, "--epochs", 1, "--width", 8, "--epoch-graphs", 0)

    assert value["name"] == "ego"
    assert (value["results"]["training_graphs"], value["results"]["validation_graphs"]) == (4, 4)


def test_choices_of_options_are_those_of_the_library() -> None:
    assert (config.KINDS, tuple(config.ORDERINGS)) == (KINDS, ORDERINGS)
    for encoder in ENCODERS:
        assert preset("default", encoder=encoder)[0].encoder == encoder


def test_help_shows_the_defaults_of_the_presets_and_for_one_network() -> None:
    records = {option.name: option.get_help_record(click.Context(train)) for option in train.params}
    shown = {name: record[1] for name, record in records.items() if record}

    epochs = {name: training.epochs for name, (_, training) in PRESETS.items()}
    expected = f"[default: {epochs['default']}; one-shot: {epochs['one-shot']}; paper: {epochs['paper']}; "
    assert expected in shown["epochs"]
    assert f"[default: {TRAINING_GRAPHS}; paper: 100]" in shown["graphs"]
    for name in ("epochs", "learning_rate", "latent", "skip_weight"):
        assert f"; --single: {getattr(GENERATION, name):g}; " in shown[name]
    assert (GENERATION.width, GENERATION.kind, GENERATION.skip) == (0, "graphite-vae", "convex")
    assert "; --single: none; " in shown["width"]
    assert f"[default: not used; --single: {GENERATION.subsample:g}; " in shown["subsample"]
    # Defaults that are equal, or not used there, are not repeated.
    assert not any("--single: " in shown[name] for name in ("kind", "validate_every", "patience"))


def test_a_finished_run_is_reported_and_not_resumed_with_other_settings(model: Path) -> None:
    before = (model / "model.safetensors").read_bytes()
    line = ("train", "--family", "ego", *TINY, "--out", model.parent, "--resume")
    result = run(*line, "--json")

    assert "finished" in result.stderr
    assert json.loads(result.stdout)["results"]["epochs"] == 2
    for change in ("--batch-size 9", "--seed 1", "--nodes 5:9", "--param p=0.4", "--no-mlp", "--preset paper"):
        assert_error(invoke(*line, *change.split()), "start another run")
    assert (model / "model.safetensors").read_bytes() == before


def test_a_run_is_not_resumed_on_other_graphs(graphs: Path) -> None:
    run("train", graphs, "--epochs", 1, "--width", 8, "--epoch-graphs", 0)
    run("train", graphs, "--resume")
    shutil.move(graphs, "elsewhere.h5")
    run("train", "elsewhere.h5", "--name", "ego", "--resume")
    run("generate", "--family", "ego", "--nodes", "5:8", "--seed", 2, "-n", 12, "-o", graphs)
    assert_error(invoke("train", graphs, "--resume"), "graphs are not those")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_resumes_to_the_same_bytes(number: int, code: int) -> None:
    line = ("train", "--family", "ego", *TINY, "--epochs", 12, "--validate-every", 1)
    run(*line, "--name", "whole")
    whole, parts = Path("checkpoints/whole"), Path("checkpoints/parts")

    process = program(*line, "--name", "parts")
    assert process.stderr is not None
    while not (text := process.stderr.readline()).startswith("epoch"):
        assert text, "the run ended before its first epoch"
    process.send_signal(number)
    text = process.communicate(timeout=120)[1].splitlines()[-1]

    assert process.returncode == code
    assert text.startswith("Interrupted. Continue with: graphite-gen train --family ego --name parts --resume")
    assert not list(parts.glob(".*"))
    assert len(history(parts)) < 12
    run(*shlex.split(text.partition("graphite-gen ")[2]))
    assert (parts / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert history(parts) == history(whole)


def stopped(monkeypatch: pytest.MonkeyPatch, where: str, *line: object) -> str:
    """The last line on stderr of a run that is stopped, as by Ctrl-C, where it calls a function."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"graphite_gen.{where}", interrupt)
        result = invoke("train", "--family", "ego", *line)
    assert (result.exit_code, result.stdout) == (130, "")

    return result.stderr.splitlines()[-1]


@pytest.mark.parametrize("where", ["training.runs.TrainingData.load", "cli.progress.train_with_progress"])
def test_a_run_stopped_before_its_first_step_reports_that_nothing_was_saved(
    monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    assert stopped(monkeypatch, where, *TINY) == "Interrupted before anything was saved."
    assert not list(Path().iterdir())


def test_a_run_stopped_in_its_first_step_or_while_resuming_can_be_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = "Interrupted. Continue with: graphite-gen train --family ego --name ego --resume"
    assert stopped(monkeypatch, "training.trainer.Trainer._step", *TINY).startswith(expected)
    line = stopped(monkeypatch, "training.runs.TrainingData.load", "--resume")

    assert line.startswith(expected)
    assert_error(
        invoke("train", "--family", "ego", *TINY), "unfinished", "'--resume --name ego'", "'--force --name ego'"
    )
    # It has never been validated, so it is not chosen by default.
    sample = ("sample", "-n", 2, "-o", "-", "--format", "g6")
    assert "Model 'barabasi'" in run(*sample).stderr
    assert "'ego' is untrained" in run(*sample, "--model", "ego").stderr
    assert run_json(*shlex.split(line.partition("graphite-gen ")[2]))["results"]["epochs"] == 2
    assert "Model 'ego'" in run(*sample).stderr

    assert run_json("train", "--family", "ego", "--resume", "--epochs", 3)["results"]["epochs"] == 3


def test_a_model_is_fine_tuned_on_other_graphs(model: Path, graphs: Path) -> None:
    tune = ("train", graphs, "--from", model, "--name", "tuned", "--epochs", 1, "--epoch-graphs", 0)
    assert_error(invoke(*tune, "--width", 5), "width=16", "'--from'", after_notes=True)
    assert_error(invoke(*tune, "--resume"), "'--from'", code=2)
    assert not Path("checkpoints").exists()
    run(*tune, "--learning-rate", 1e-9)

    ours, theirs = (load_checkpoint(folder).network.state_dict() for folder in (Path("checkpoints/tuned"), model))
    assert all(abs(ours[name] - theirs[name]).max() < 1e-6 for name in theirs)
    assert json.loads(Path("checkpoints/tuned/state.json").read_text())["data"]["initial"] == str(model)


def test_weights_are_announced_and_can_be_ignored() -> None:
    graph = nx.les_miserables_graph()
    egos = [nx.ego_graph(graph, node) for node in list(graph)[:12]]
    Path("egos.jsonl").write_text("".join(json.dumps(nx.node_link_data(ego, edges="edges")) + "\n" for ego in egos))
    quick = ("--epochs", 1, "--epoch-graphs", 0, "--width", 4)

    weighted = run("train", "egos.jsonl", "--name", "weighted", *quick)
    dense = run("train", "egos.jsonl", "--name", "dense", "--weights", "dense", *quick)
    plain = run("train", "egos.jsonl", "--name", "plain", "--ignore-weights", *quick)

    # Weights on all pairs have no baseline.
    assert ["ER baseline" in result.stdout for result in (weighted, dense, plain)] == [True, False, True]
    assert ["--ignore-weights" in result.stderr for result in (weighted, dense, plain)] == [True, True, False]
    assert "counts as weights of edges are learned" in weighted.stderr
    score = ("nll", "egos.jsonl", "--model", "plain", "-k", 2)
    assert_error(invoke(*score), "'--ignore-weights'", after_notes=True)
    run(*score, "--ignore-weights")


def test_attributes_that_are_not_learned_are_named() -> None:
    Path("own.csv").write_text(
        "graph,source,target,kind\n" + "".join(f"{k},0,1,road\n{k},1,2,path\n" for k in range(4))
    )

    text = run("train", "own.csv", "--preset", "one-shot", "--epochs", 1, "--width", 8, "--threads", 1).stderr

    assert "Not learned: edge attributes 'kind'." in text


def test_a_model_of_one_network_is_trained_and_sampled(groups: Path) -> None:
    trained = run("train", "--single", groups, "--epochs", 20, "--latent", 4, "--subsample", 0, "--threads", 1)
    assert "sample --model checkpoints/groups" in trained.stderr
    assert json.loads(Path("checkpoints/groups/config.json").read_text())["model"]["subsample"] == 0
    files = ["config.json", "model.safetensors", "state.json"]
    assert sorted(path.name for path in Path("checkpoints/groups").iterdir()) == files

    # The default is one network.
    for options, sizes in (("", [30]), ("-n 2 --nodes 80 --seed 1", [80, 80])):
        result = run("sample", "-o", "out.h5", "--force", "--threads", 1, *options.split())
        assert "the last one trained" in result.stderr
        assert [graph.nodes for graph in read_graphs("out.h5")] == sizes

    facts = run_json("inspect", "groups")
    assert (facts["scope"], facts["nodes"]["max"]) == ("single graph", 30)
    assert "of one network" in run("inspect", "groups").stdout
    assert "groups" in run("inspect").stdout
