from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import networkx as nx
import pytest

from graphite_gen import config
from graphite_gen.cli import console
from graphite_gen.cli.commands import sample
from graphite_gen.cli.commands.classify import classify
from graphite_gen.cli.commands.link import link
from graphite_gen.network import generation, hyperparameters, tasks
from graphite_gen.network.baselines import BASELINES
from graphite_gen.network.link_prediction import NEGATIVES
from graphite_gen.network.node_classification import NODE_SPLITS
from graphite_gen.network.splits import SPLITS

from .conftest import assert_error, invoke, run

TINY = ("--epochs", 3, "--latent", 4, "--threads", 1)
COMMANDS = {
    "link": ("link", "graph.graphml", "--runs", 1, *TINY),
    "predict": ("link", "graph.graphml", "--predict", "links.csv", "--kind", "graphite-vae", *TINY),
    "classify": ("classify", "graph.graphml", "--runs", 1, *TINY),
    "embed": ("embed", "graph.graphml", "-o", "z.csv", *TINY),
    "train": ("train", "--single", "graph.graphml", *TINY),
}


def cliques(sizes: tuple[int, ...], isolated: int = 0) -> nx.Graph:
    """Disjoint cliques and isolated nodes; the clique is the label of every second node."""
    graph = nx.disjoint_union_all([nx.complete_graph(size) for size in sizes] + [nx.empty_graph(isolated)])
    for number, part in enumerate(nx.connected_components(graph)):
        for node in sorted(part)[::2]:
            graph.nodes[node]["label"] = f"clique {number % 2}"

    return graph


def test_choices_are_those_of_the_library() -> None:
    choices = {
        (command, option.name): tuple(option.type.choices)
        for command in (link, classify)
        for option in command.params
        if isinstance(option.type, click.Choice)
    }

    assert choices[link, "kinds"] == config.KINDS
    assert choices[link, "baselines"] == BASELINES
    assert choices[link, "split"] == SPLITS
    assert choices[link, "skip"] == hyperparameters.SKIPS
    assert choices[link, "head"] == hyperparameters.HEADS
    assert choices[link, "targets"] == hyperparameters.TARGETS
    assert choices[link, "pair_features"] == hyperparameters.PAIR_FEATURES
    assert choices[link, "negatives"] == NEGATIVES
    assert choices[classify, "split"] == NODE_SPLITS
    assert sorted(choices[classify, "kinds"]) == sorted(hyperparameters.CLASSIFIERS)


@pytest.fixture
def few_cliques(own_folder: Path) -> None:
    nx.write_graphml(cliques((8, 7, 6)), "graph.graphml")


@pytest.mark.usefixtures("few_cliques")
@pytest.mark.parametrize("command", ["link", "predict", "embed"])
def test_settings_are_passed_to_the_library(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[hyperparameters.LinkSettings] = []

    def noted(*args: Any, **kwargs: Any) -> Any:
        seen.append(args[1])
        return learn(*args, **kwargs)

    work = {"link": "run_link", "predict": "train_ranking"}.get(command, "train_on_all")
    learn = getattr(tasks, work)
    monkeypatch.setattr(tasks, work, noted)
    plain = ("--width", 32, "--hops", 1, "--teleport", 0, "--head", "inner", "--targets", "all", "--edge-dropout", 0)
    objective = ("--skip", "incremental", "--kl-weight", 0.5, "--subsample", 0, "--unbalanced")
    for given in ((), (*plain, *objective), ("--balanced",)):
        run(*COMMANDS[command], *given, "--force")

    tiny = hyperparameters.LinkSettings(epochs=3, latent=4)
    changes = {"width": 32, "hops": 1, "teleport": 0, "head": "inner", "targets": "all", "edge_dropout": 0}
    changes |= {"skip": "incremental", "kl_weight": 0.5, "subsample": 0, "balanced": False}
    assert seen == [tiny, replace(tiny, **changes), tiny]


def test_help_shows_the_defaults_of_the_library() -> None:
    words = " ".join(run("link", "--help").stdout.split())

    assert "(ELBO). [default: balanced]" in words
    assert "is a GCN. [default: 0.1]" in words


@pytest.mark.usefixtures("few_cliques")
@pytest.mark.parametrize(("command", "what"), [("link", "connected split"), ("classify", "run")])
def test_the_caption_mentions_the_standard_error_of_several_runs(command: str, what: str) -> None:
    one, two = (run(command, "graph.graphml", *TINY, "--runs", runs) for runs in (1, 2))

    assert "±" not in one.stdout + one.stderr
    assert f"From one {what}" in one.stderr
    assert "±" in two.stdout
    assert f"Mean ± standard error of 2 {what}s.\n" in two.stderr


@pytest.mark.usefixtures("few_cliques")
@pytest.mark.parametrize("command", ["predict", "embed", "train"])
def test_long_training_and_networks_too_large_for_calibration_are_noted(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run(*COMMANDS[command]).stderr
    monkeypatch.setattr(console, "PATIENCE", 0.0)
    monkeypatch.setattr(generation, "MOST_NODES", 20)
    after = run(*COMMANDS[command], "--force").stderr

    for note in ("Training graphite-vae: 1 of ", *(["more than 20 nodes"] if command == "train" else [])):
        assert note in after
        assert note not in before


@pytest.mark.parametrize("command", COMMANDS)
def test_isolated_nodes_components_and_missing_labels_are_supported(command: str) -> None:
    nx.write_graphml(cliques((8, 7, 6), isolated=5), "graph.graphml")
    run(*COMMANDS[command])

    if command == "embed":
        assert len(Path("z.csv").read_text().splitlines()) == 27
    if command == "train":
        run("sample", "-n", 1, "-o", "like.graphml", "--threads", 1)
        assert len(nx.read_graphml("like.graphml")) == 26


def test_settings_that_one_chosen_kind_uses_are_accepted(groups: Path) -> None:
    kinds = ("--kind", "gae", "--kind", "graphite-vae")
    run("link", groups, *kinds, "--skip-weight", 0.5, "--kl-weight", 0.5, "--runs", 1, *TINY)
    run("classify", groups, "--runs", 1, "--reconstruction", 0.1, *TINY)


@pytest.mark.usefixtures("few_cliques")
def test_novelty_is_reported_and_refused_without_effect() -> None:
    run(*COMMANDS["train"], "--name", "own", "--force")
    done = run("sample", "--model", "checkpoints/own", "--novelty", 0, "-o", "like.graphml")

    assert "Copied edges: " in done.stderr
    assert "novelty at least 0" in done.stderr
    assert 0 <= nx.read_graphml("like.graphml").graph["copied_edges"] <= 1
    assert_error(invoke("sample", "--model", "bundled:ego", "--novelty", 0.5, "-o", "x.graphml"), "--novelty", code=2)
    assert sample.NOVELTY == generation.NOVELTY
