import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from tiny import SMALL, random_graph, small_model

import graphite_gen as gg
from graphite_gen.api import Model, fit, load
from graphite_gen.data.dataset import split_graphs
from graphite_gen.errors import (
    CheckpointError,
    ConfigError,
    DatasetError,
    FormatError,
    SamplingError,
    UnusedSettingError,
)
from graphite_gen.families import family
from graphite_gen.families.simulate import generate, training_set
from graphite_gen.graph import SimpleGraph
from graphite_gen.io import write_graphs
from graphite_gen.records import Provenance, TrainRecord
from graphite_gen.training.runs import TrainingData, find_training_graphs, resume_run, start_run

QUICK: dict[str, Any] = {key: SMALL[key] for key in ("width", "rounds")} | {
    "seed": 0,
    "epochs": 1,
    "epoch_graphs": 0,
    "batch_size": 8,
    "validate_every": 1,
    "validation_samples": 2,
}

pytestmark = pytest.mark.usefixtures("single_precision")


def marked(split: str | None, seed: int = 0) -> SimpleGraph:
    return replace(random_graph(4, seed), attributes={} if split is None else {"split": split})


def same_graphs(first: list[nx.Graph], second: list[nx.Graph]) -> bool:
    return len(first) == len(second) and all(nx.utils.graphs_equal(a, b) for a, b in zip(first, second, strict=True))


def test_fit_sample_score_save_and_load_on_networkx_graphs(tmp_path: Path) -> None:
    graphs = [nx.gnp_random_graph(n, 0.5, seed=n) for n in (4, 5, 6, 4, 5, 6)]
    records: list[TrainRecord] = []

    model = fit(graphs, name="mine", progress=records.append, **(QUICK | {"epochs": 2}))
    drawn = model.sample(5, nodes=(3, 6), seed=1)
    estimate = model.nll(graphs, samples=8, seed=0)
    model.save(tmp_path / "mine")
    loaded = load(tmp_path / "mine")

    assert [record.epoch for record in records] == [1, 2]
    assert tuple(records) == model.history
    assert all(isinstance(graph, nx.Graph) and 3 <= len(graph) <= 6 for graph in drawn)
    assert same_graphs(loaded.sample(5, nodes=(3, 6), seed=1), drawn)
    assert loaded.nll(graphs, samples=8, seed=0) == estimate
    assert estimate.model == "mine"
    assert loaded.history == ()


def test_models_are_sampled_with_options_scored_and_shown() -> None:
    model = Model(small_model())

    assert all(nx.is_connected(graph) for graph in model.sample(10, nodes=4, connected=True))
    assert all(nx.is_connected(graph) for graph in model.sample(10, nodes=6, largest_component=True))
    assert set(model.sample(1, nodes=4, with_latents=True)[0].nodes[0]) == {"z0", "z1"}
    for nodes in ("10:12", (3,), 2.5):
        with pytest.raises(SamplingError, match="'nodes' is"):
            model.sample(1, nodes=nodes)  # type: ignore[arg-type]
    # A graph of one node has no weights after conversion from networkx.
    weighted = Model(small_model(observation="normal"))
    assert math.isfinite(weighted.nll(weighted.sample(10, nodes=(1, 4)), samples=4).nll)
    assert re.fullmatch(r"Model\('tiny', graphite-vae, [\d,]+ parameters, \d+ to \d+ nodes\)", repr(model))
    # Scores do not depend on the type of the graphs.
    graphs = [random_graph(nodes, 0) for nodes in (3, 5)]
    same = [graph.to_networkx() for graph in graphs]
    assert model.nll(graphs, samples=4, seed=0) == model.nll(same, samples=4, seed=0)
    assert np.isfinite(model.nll(graphs, samples=4, convention="paper").nll)


def test_training_graphs_of_a_family_differ_from_those_of_generate() -> None:
    ego = gg.family("ego")

    data = training_set(ego, preset_name="default", count=40, nodes=(5, 8), seed=0)
    other = gg.generate(ego, 40, (5, 8), 0)

    assert [len(data.split(name)) for name in ("train", "validation")] == [40, 300]
    assert data.provenance.family == "ego"
    drawn, known = ({graph.edges.tobytes() for graph in each if graph.nodes == 8} for each in (data, other))
    assert len(drawn & known) < 2
    assert len(training_set(ego, preset_name="paper", count=None, nodes=(5, 8), seed=0)) == 200


def test_fit_knows_families_by_name_and_keeps_their_provenance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphite_gen.families.simulate.TRAINING_GRAPHS", 12)
    monkeypatch.setattr("graphite_gen.families.simulate.VALIDATION_GRAPHS", 3)

    models = [fit(source, **QUICK) for source in ("ego", gg.family("ego"))]

    for model in models:
        assert model.trained.provenance.family == "ego"
        assert model.trained.results["training_graphs"] == 12
        assert model.trained.results["validation_graphs"] == 3
        assert set(model.trained.sizes.graphs) <= set(range(10, 21))
    first, second = (model.trained.network.state_dict() for model in models)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_graphs_are_split_as_marked_and_test_graphs_are_not_used() -> None:
    graphs = [marked(split) for split in ("train", "validation", "test", None, "train")]

    train, validation = split_graphs(graphs, 0)

    assert [graph.attributes["split"] for graph in train] == ["train", "train"]
    assert [graph.attributes["split"] for graph in validation] == ["validation"]
    # Test graphs are not used even if none is marked for training.
    train, validation = split_graphs([marked("test")] * 3 + [marked(None)] * 10, 0)
    assert len(train) + len(validation) == 10
    assert all("split" not in graph.attributes for graph in train + validation)
    assert [len(part) for part in split_graphs([marked("train"), marked("val"), marked("valid")], 0)] == [1, 2]
    for names, wrong in ((("train", "dev"), "'dev'"), (("test",), "'test'")):
        with pytest.raises(DatasetError, match=wrong):
            split_graphs([marked(name) for name in names], 0)


@pytest.mark.parametrize(("count", "held"), [(1, 0), (2, 1), (5, 1), (40, 4)])
def test_unmarked_graphs_are_split_at_random_by_the_seed(count: int, held: int) -> None:
    graphs = [marked(None, seed) for seed in range(count)]

    train, validation = split_graphs(graphs, 0)

    assert len(validation) == held
    assert {id(graph) for graph in [*train, *validation]} == {id(graph) for graph in graphs}
    assert list(map(id, split_graphs(graphs, 0)[1])) == list(map(id, validation))
    if count == 40:
        assert list(map(id, split_graphs(graphs, 1)[1])) != list(map(id, validation))


@pytest.mark.parametrize(
    ("setting", "value", "problem"),
    [
        ("colour", 1, "Unknown setting 'colour'"),
        ("seed", "x", "'seed' is 'x'"),
        ("epochs", "many", "should be int"),
        ("observation", "bernoulli", "'observation' follows from the graphs.*ignore_weights=True"),
        ("max_nodes", 9, "'max_nodes' follows from the graphs"),
        ("node_features", 2, "'node_features' follows from the graphs"),
    ],
)
def test_wrong_settings_are_refused_before_training(setting: str, value: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        fit([random_graph(4, 0)], **{setting: value})


@pytest.mark.parametrize(
    ("graphs", "problem"),
    [
        ([], "no graphs"),
        ([nx.DiGraph([(0, 1)]), nx.path_graph(2)], "directed"),
        (None, "'graphs' is None; expected a list of networkx graphs"),
        (nx.path_graph(3), "one graph; expected a list"),
        ([1, 2], "found int 1"),
    ],
)
def test_wrong_graphs_are_refused_before_training(graphs: Any, problem: str) -> None:
    with pytest.raises(DatasetError, match=problem):
        fit(graphs)


ARCS = nx.DiGraph([(0, 1), (1, 2), (2, 1)])


@pytest.mark.parametrize(
    "use",
    [
        *(lambda model: model.nll([ARCS]), lambda model: model.encode([ARCS]), lambda model: model.reconstruct([ARCS])),
        *(lambda model: model.interpolate(nx.path_graph(3), ARCS), lambda model: model.complete(ARCS, 1, unknown=[])),
        lambda model: model.sample(1, features=[ARCS]),
        *(lambda _: gg.predict_links(ARCS), lambda _: gg.classify_nodes(ARCS), lambda _: gg.embed_nodes(ARCS)),
        lambda _: gg.fit_network(ARCS),
    ],
)
def test_what_needs_undirected_graphs_refuses_directed_ones_in_one_line(use: Callable[[Model], Any]) -> None:
    # A model may be of directed graphs, which can then be completed.
    wanted = r"(; expected an undirected graph|, and 'tiny' is a model of undirected graphs)"
    with pytest.raises(DatasetError, match=rf"^(The graph|Graph \d) is directed{wanted}\.$") as caught:
        use(Model(small_model()))
    assert caught.value.reason == "directed-graph"


@pytest.mark.parametrize(
    ("settings", "on"),
    [
        ({"skip": "convex"}, "an autoregressive model"),
        ({"samples": 4}, "an autoregressive model"),
        ({"encoder": "none", "kl_warmup": 0.5}, "a model without encoder, whose latents are noise"),
        ({"encoder": "none", "free_bits": 1.0}, "a model without encoder, whose latents are noise"),
        ({"decoder": "one-shot", "ordering": "degeneracy"}, "a one-shot model"),
        ({"kind": "vgae", "rounds": 3}, "a 'vgae'"),
        ({"kind": "graphite-ae", "kl_warmup": 0.5}, "an autoencoder"),
        ({"kind": "gae", "free_bits": 0.5}, "an autoencoder"),
    ],
)
def test_a_setting_without_effect_is_refused(settings: dict[str, Any], on: str) -> None:
    with pytest.raises(UnusedSettingError) as error:
        fit([random_graph(4, 0)], **settings)

    assert (error.value.setting, error.value.on) == (list(settings)[-1], on)
    with pytest.raises(UnusedSettingError, match="'ordering' has no effect on a one-shot model"):
        fit([random_graph(4, 0, 1.0, weighted=True)], weights="dense", ordering="degeneracy")


def test_a_setting_without_effect_is_refused_before_graphs_of_a_family_are_drawn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def draw(*arguments: Any, **options: Any) -> None:
        raise AssertionError("graphs are drawn")

    monkeypatch.setattr("graphite_gen.api.training_set", draw)
    monkeypatch.setattr("graphite_gen.training.runs.training_set", draw)
    with pytest.raises(UnusedSettingError, match="'skip' has no effect"):
        fit("ego", skip="convex")
    with pytest.raises(UnusedSettingError, match="'skip' has no effect"):
        start_run("a", tmp_path / "a", TrainingData(family="ego"), {"skip": "convex"})
    with pytest.raises(AssertionError):
        fit("ego", preset="one-shot", skip="convex")


def test_fit_keeps_a_run_in_its_folder_and_load_finds_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = fit([random_graph(4, seed) for seed in range(4)], name="mine", folder="checkpoints/mine", **QUICK)

    for found in (load(), load("mine"), load(tmp_path / "checkpoints" / "mine")):
        assert found.trained.name == "mine"
        assert same_graphs(found.sample(3, seed=0), model.sample(3, seed=0))
    with pytest.raises(CheckpointError, match="no model 'other'"):
        load("other")


def test_every_public_name_is_there_and_no_other() -> None:
    assert all(getattr(gg, name) is not None for name in gg.__all__)
    assert dir(gg) == sorted(gg.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'colour'"):
        gg.colour  # noqa: B018


def test_a_model_with_features_is_sampled_given_features() -> None:
    graphs = [random_graph(4, seed, features=2) for seed in range(6)]
    model = fit(graphs, **QUICK)

    drawn = model.sample(3, features=graphs[:2])

    for graph, other in zip(drawn, (graphs[0], graphs[1], graphs[0]), strict=True):
        assert [graph.nodes[node]["features"] for node in range(4)] == other.features.tolist()


def test_a_file_is_fitted_with_its_provenance(tmp_path: Path) -> None:
    write_graphs(generate(family("ego"), 6, (3, 5), seed=1), tmp_path / "ego.h5", provenance=Provenance(family="ego"))

    for source in (tmp_path / "ego.h5", str(tmp_path / "ego.h5")):
        model = fit(source, **QUICK)
        assert model.trained.provenance.family == "ego"
        assert sum(model.trained.sizes.graphs.values()) == 2


def test_weights_are_learned_unless_all_are_one_or_ignored() -> None:
    weighted = [random_graph(4, seed, 1.0, weighted=True) for seed in range(6)]
    ones = [replace(graph, weights=np.ones(len(graph.edges))) for graph in weighted]

    def kind(**settings: Any) -> tuple[str, str]:
        config = fit(weighted, **QUICK, **settings).config
        return config.observation, config.weights

    assert kind(weights="dense") == ("normal", "")
    assert kind() == ("bernoulli", "real")
    assert kind(ignore_weights=True) == ("bernoulli", "")
    model = fit(ones, **QUICK)
    assert (model.config.observation, model.config.weights) == ("bernoulli", "")
    assert math.isfinite(model.nll(ones, samples=4).nll)
    with pytest.raises(DatasetError, match="weighted"):
        model.nll(weighted, samples=4)


@pytest.mark.parametrize("settings", [{}, {"preset": "default", "ordering": "bfs"}])
def test_latents_are_encoded_decoded_and_interpolated(settings: dict[str, Any]) -> None:
    graphs = [nx.gnp_random_graph(nodes, 0.5, seed=nodes) for nodes in (4, 5, 6, 4, 5, 6)]
    model = fit(graphs, **{**QUICK, **settings})

    encoded = model.encode(graphs)
    assert [len(one.mean) for one in encoded] == [4, 5, 6, 4, 5, 6]

    z = encoded[1].mean + encoded[2].mean[:5]
    assert [len(graph) for graph in model.decode(z, 3)] == [5, 5, 5]
    assert [len(graph) for graph in model.decode([z, encoded[2]], 2)] == [5, 6, 5, 6]
    assert [len(graph) for graph in model.decode(encoded)] == [4, 5, 6, 4, 5, 6]
    assert all(map(nx.is_tree, model.decode(encoded, constraints=[gg.Tree()])))
    with pytest.raises(ConfigError, match="no latents"):
        model.decode([])

    assert len(model.reconstruct(graphs).graphs) == 6
    assert [len(graph) for graph in model.interpolate(graphs[0], graphs[2], 3)] == [4, 5, 6]


def test_a_model_is_fine_tuned_by_object_or_path(tmp_path: Path) -> None:
    start = Model(small_model())
    start.save(tmp_path / "start")
    how = {"epochs": 1, "epoch_graphs": 0, "learning_rate": 1e-9}
    models = [
        fit([random_graph(4, seed) for seed in range(6)], initial=given, **how) for given in (start, tmp_path / "start")
    ]

    weights = start.trained.network.state_dict()
    for model in models:
        assert all(
            torch.allclose(weights[name], own, atol=1e-6) for name, own in model.trained.network.state_dict().items()
        )


def test_without_a_seed_graphs_are_new_and_an_integer_reproduces_them() -> None:
    model = Model(small_model())

    assert not same_graphs(model.sample(20), model.sample(20))
    assert same_graphs(model.sample(5, seed=3), model.sample(5, seed=3))
    first, second = gg.generate("erdos-renyi", 3), gg.generate("erdos-renyi", 3)
    assert first.provenance.seed != second.provenance.seed
    again = gg.generate("erdos-renyi", 3, seed=first.provenance.seed)
    assert same_graphs(again.to_networkx(), first.to_networkx())


def test_a_folder_is_kept_unless_forced_and_its_run_is_resumed(tmp_path: Path) -> None:
    graphs = [random_graph(4, seed) for seed in range(6)]

    def stop(record: TrainRecord) -> None:
        if record.epoch == 1:
            raise KeyboardInterrupt

    own = {**QUICK, "epochs": 3, "folder": tmp_path / "mine"}
    whole = fit(graphs, **{**own, "folder": None})
    with pytest.raises(KeyboardInterrupt):
        fit(graphs, progress=stop, **own)
    with pytest.raises(CheckpointError, match="exists"):
        fit(graphs, **own)
    with pytest.raises(CheckpointError, match="not those"):
        fit(graphs[:5], resume=True, **own)
    with pytest.raises(CheckpointError, match=r"has width=.*, not 4"):
        fit(graphs, resume=True, **{**own, "width": 4})
    resumed = fit(graphs, resume=True, **{**own, "seed": None})

    assert [record.epoch for record in resumed.history] == [1, 2, 3]
    assert find_training_graphs(tmp_path / "mine").train == []
    with pytest.raises(CheckpointError, match="started from Python"):
        resume_run(tmp_path / "mine", {})
    states = [model.trained.network.state_dict() for model in (whole, resumed)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    with pytest.raises(ConfigError, match=r"Unknown setting 'widht' \(did you mean 'width'\?\)"):
        fit(graphs, resume=True, **own, widht=4)
    features = list(whole.config.encoder_features)
    longer = fit(graphs, resume=True, **{**own, "epochs": 4, "encoder_features": features})
    assert [record.epoch for record in longer.history] == [1, 2, 3, 4]
    assert fit(graphs, force=True, **{**own, "epochs": 1}).history[-1].epoch == 1


@pytest.mark.parametrize("constraints", [[gg.Tree], ["tree"], gg.Tree, "tree"])
def test_constraints_that_are_no_instances_are_refused(constraints: Any) -> None:
    with pytest.raises(SamplingError, match=r"expected an instance of gg\.Tree"):
        Model(small_model()).sample(1, constraints=constraints)
    assert all(map(nx.is_tree, Model(small_model()).sample(3, constraints=gg.Tree())))  # type: ignore[arg-type]


def test_everything_is_shown_briefly_and_drawn_in_notebooks(tmp_path: Path) -> None:
    data = gg.generate("ego", 30, (10, 20), 0)
    model = Model(small_model())
    write_graphs(data, tmp_path / "a.g6")
    shown = [data, data[0], gg.read_graphs(tmp_path / "a.g6"), model.nll([random_graph(4, 0)] * 9, samples=4)]
    shown += [
        model.encode([random_graph(4, 0)]),
        gg.evaluate(data[:9], data[9:20]),
        model.complete(random_graph(4, 0), 2, unknown=[(0, 1)]),
    ]

    assert all(len(repr(each)) < 1000 for each in shown)
    assert [repr(data), repr(data[0])] == [
        "Dataset(30 graphs of 10 to 20 nodes, family 'ego')",
        f"SimpleGraph({data[0].nodes} nodes, {len(data[0].edges)} edges)",
    ]
    assert data._repr_html_().count("<svg") == 6
    assert data[0]._repr_html_().count("<circle") == data[0].nodes
    assert len(data[3:7]) == 4
    assert [graph.edges.tolist() for graph in data[-2:]] == [data[28].edges.tolist(), data[29].edges.tolist()]
    assert model.config is model.trained.config
    assert all(isinstance(graph, nx.Graph) for graph in gg.read_graphs(tmp_path / "a.g6").to_networkx())


def test_an_evaluation_is_a_table_of_its_mmds() -> None:
    data = gg.generate("ego", 20, (5, 8), 0).graphs

    result = gg.evaluate(data[:6], data[6:12], data[12:])
    frame = result.to_frame()

    assert frame["samples"].tolist() == [row.samples.value for row in result.mmd]
    assert {"descriptor", "convention", "training", "ratio"} <= set(frame.columns)


def test_a_progress_bar_is_shown_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    graphs = [random_graph(4, seed) for seed in range(4)]
    fit(graphs, **QUICK)
    assert capsys.readouterr().err == ""

    monkeypatch.setenv("FORCE_COLOR", "1")
    fit(graphs, progress=False, **QUICK)
    assert capsys.readouterr().err == ""
    fit(graphs, **QUICK)
    assert "1/1" in capsys.readouterr().err


@pytest.mark.slow
def test_a_notebook_shows_one_bar_for_a_run() -> None:
    nbformat, nbclient = pytest.importorskip("nbformat.v4"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    source = f"import graphite_gen as gg\ngg.fit(gg.generate('ego', 8, nodes=(4, 6), seed=0), **{QUICK})"
    notebook = nbformat.new_notebook(cells=[nbformat.new_code_cell(source)])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()

    bar, model = notebook.cells[0].outputs
    assert "1/1" in bar["data"]["text/html"]
    assert model["data"]["text/plain"].startswith("Model('model'")


def test_the_estimator_has_the_interface_of_scikit_learn() -> None:
    from sklearn.base import clone

    graphs = [nx.gnp_random_graph(5, 0.5, seed=seed) for seed in range(6)]
    generator = gg.GraphGenerator(**QUICK)
    with pytest.raises(ConfigError, match="not fitted"):
        generator.sample(1)

    other = clone(generator).set_params(epochs=2).fit(graphs)

    assert generator.get_params()["epochs"] == 1
    assert other.get_params()["epochs"] == len(other.model_.history) == 2
    assert len(other.sample(3)) == 3
    assert math.isfinite(other.score(graphs))
    assert other.score(graphs) == other.score(graphs), "the seed is that of the generator"
    assert repr(generator).startswith("GraphGenerator(preset='default', seed=0, ")


def test_a_saved_model_replaces_another_only_by_force(tmp_path: Path) -> None:
    graphs = [random_graph(4, seed) for seed in range(6)]
    fit(graphs, folder=tmp_path / "mine", **QUICK)
    other = Model(small_model())

    with pytest.raises(CheckpointError, match="exists: force=True replaces it"):
        other.save(tmp_path / "mine")
    other.save(tmp_path / "mine", force=True)

    assert gg.load(tmp_path / "mine").trained.name == "tiny"
    assert not (tmp_path / "mine" / "state.json").exists()


@pytest.mark.parametrize("method", ["encode", "nll", "reconstruct"])
def test_one_graph_or_a_table_instead_of_graphs_is_refused(method: str) -> None:
    call = getattr(Model(small_model()), method)

    with pytest.raises(DatasetError, match="'graphs' is one graph"):
        call(random_graph(4, 0))
    with pytest.raises(DatasetError, match="'from_pandas'"):
        call(gg.to_pandas([random_graph(4, 0)]))


def test_sources_and_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(FormatError, match=r"'nofile\.graphml' does not exist"):
        fit("nofile.graphml")
    with pytest.raises(ConfigError, match="either 'initial' or 'preset'"):
        fit([random_graph(4, 0)], initial=Model(small_model()), preset="one-shot")
