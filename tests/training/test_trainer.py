import json
import math
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import AUTOREGRESSIVE, SMALL, path, random_graph, star

from graphite_gen.config import ModelConfig, preset
from graphite_gen.data.batch import GraphBatch, collate
from graphite_gen.errors import CheckpointError, ConfigError, DatasetError, TrainingError
from graphite_gen.graph import SimpleGraph
from graphite_gen.likelihood import NLLOptions, estimate_nll
from graphite_gen.records import TrainRecord
from graphite_gen.sampling import Sampler
from graphite_gen.training import trainer as training_module
from graphite_gen.training.checkpoint import load_checkpoint
from graphite_gen.training.step import draw_step, step_loss
from graphite_gen.training.step_memory import step_bytes
from graphite_gen.training.trainer import (
    Trainer,
    _schedule,
    adapt_config,
    configure,
    prepare,
    read_history,
    resolve_device,
)
from graphite_gen.training.validation import sample_novelty, validation_activity

pytestmark = pytest.mark.usefixtures("single_precision")

GRAPHS = [random_graph(nodes, seed) for nodes in (3, 5, 6) for seed in range(5)]
HELD = [random_graph(nodes, seed) for nodes in (4, 5) for seed in range(20, 23)]
QUICK: dict[str, Any] = {
    "epochs": 4,
    "epoch_graphs": 0,
    "batch_size": 4,
    "validate_every": 2,
    "validation_samples": 4,
    "warmup_steps": 3,
    "samples": 1,
    "patience": 0,
}


def trainer(
    folder: Path | None = None,
    graphs: list[SimpleGraph] = GRAPHS,
    held: list[SimpleGraph] = HELD,
    resume: bool = False,
    **changes: Any,
) -> Trainer:
    model, settings = preset("one-shot", **(SMALL | QUICK | changes))
    model = adapt_config(model, [*graphs, *held])

    return Trainer("tiny", model, settings, graphs, held, folder=folder, resume=resume)


def loss_of(run: Trainer, batch: GraphBatch, fraction: float, step: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    drawn = draw_step(run.network, batch, run.training, step, fraction)

    return step_loss(run.network, drawn, run.training.convention)


def same_weights(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def timeless(history: list[TrainRecord]) -> list[TrainRecord]:
    return [replace(record, seconds=0.0) for record in history]


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trainer, Path]:
    """A run without interruption, and its folder."""
    folder = tmp_path_factory.mktemp("run")
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    run = trainer(folder)
    list(run)
    torch.set_default_dtype(before)

    return run, folder


@pytest.fixture
def straight(finished_run: tuple[Trainer, Path]) -> Trainer:
    return finished_run[0]


@pytest.fixture
def finished(finished_run: tuple[Trainer, Path], tmp_path: Path) -> Path:
    """A copy of the folder of a finished run."""
    return Path(shutil.copytree(finished_run[1], tmp_path / "run"))


def interrupt_after(calls: int, function: Callable[..., Any], *, late: bool) -> Callable[..., Any]:
    """A function that is interrupted at the start, or late, at the end, of one of its calls."""
    left = [calls]

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        left[0] -= 1
        result = function(*args, **kwargs) if late or left[0] != -1 else None
        if left[0] == -1:
            raise KeyboardInterrupt
        return result

    return interrupted


INTERRUPTIONS = [
    ("stop", 0),
    *[("collate", calls) for calls in (0, 2, 5, 9)],  # between steps: in the first epoch, within and at the end
    *[("validation_nll", calls) for calls in (0, 1)],  # between the last step of an epoch and its record
    *[("step", calls) for calls in (0, 6)],  # after the weights have changed and before the step is counted
]


@pytest.mark.parametrize(("place", "calls"), INTERRUPTIONS)
def test_a_resumed_run_ends_with_bit_identical_weights(
    place: str, calls: int, straight: Trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = trainer(tmp_path)
    owner = first._optimiser if place == "step" else first if place == "stop" else training_module
    with monkeypatch.context() as patch:
        if place == "stop":
            first.stop()
        else:
            function = interrupt_after(calls, getattr(owner, place), late=place == "step")
            patch.setattr(owner, place, function)
        with pytest.raises(KeyboardInterrupt):
            list(first)
    resumed = trainer(tmp_path, resume=(tmp_path / "state.json").exists())
    list(resumed)

    assert same_weights(resumed.network.state_dict(), straight.network.state_dict())
    assert same_weights(resumed.model.network.state_dict(), straight.model.network.state_dict())
    assert same_weights(load_checkpoint(tmp_path).network.state_dict(), straight.model.network.state_dict())
    assert timeless(resumed.history) == timeless(straight.history)
    assert [record.epoch for record in resumed.history] == [1, 2, 3, 4]


def test_the_status_counts_steps_and_a_run_stops_within_a_validation(straight: Trainer, tmp_path: Path) -> None:
    run, seen = trainer(tmp_path), []

    def watch() -> None:
        seen.append(run.status)
        if run.epoch == 1 and run.status.step == 2 * run.status.steps / 4:
            run.stop()

    run.watch = watch
    with pytest.raises(KeyboardInterrupt):
        list(run)

    assert [record.epoch for record in run.history] == [1]
    assert {status.steps for status in seen} == {straight.history[-1].step}
    assert (seen[0].step, seen[0].loss, seen[0].seconds_left) == (0, None, None)
    assert seen[-1].step == straight.history[1].step
    spent = run._progress.seconds
    assert seen[-1].seconds_left == pytest.approx(spent, rel=0.5)
    resumed = trainer(tmp_path, resume=True)
    list(resumed)
    assert timeless(resumed.history) == timeless(straight.history)


def test_ctrl_c_at_any_moment_leaves_a_run_that_can_be_resumed(tmp_path: Path) -> None:
    straight = trainer(epochs=30)
    list(straight)

    for attempt in range(8):
        run = trainer(tmp_path, resume=(tmp_path / "state.json").exists(), epochs=30)
        signal.setitimer(signal.ITIMER_REAL, 0.02 + 0.013 * attempt)
        handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            list(run)
        except KeyboardInterrupt:
            pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
    resumed = trainer(tmp_path, resume=(tmp_path / "state.json").exists(), epochs=30)
    # An interrupt while torch switches gradients off leaves them off: other tests need them.
    torch.set_grad_enabled(True)
    list(resumed)

    assert same_weights(resumed.network.state_dict(), straight.network.state_dict())
    assert timeless(resumed.history) == timeless(straight.history)


@torch.no_grad()
def test_a_run_learns_even_if_gradients_are_switched_off() -> None:
    run = trainer()
    before = {name: value.clone() for name, value in run.network.state_dict().items()}

    list(run)

    assert not same_weights(run.network.state_dict(), before)


def test_a_finished_run_is_resumed_without_training_and_a_missing_one_refused(finished: Path) -> None:
    resumed = trainer(finished, resume=True)

    assert list(resumed) == []
    assert same_weights(resumed.model.network.state_dict(), load_checkpoint(finished).network.state_dict())
    assert json.loads((finished / "state.json").read_text())["progress"]["finished"] is True
    for file, reason in (("optimizer.safetensors", "no-run-but-model"), ("config.json", "no-run")):
        (finished / file).unlink()
        with pytest.raises(CheckpointError) as error:
            trainer(finished, resume=True)
        assert error.value.reason == reason


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"seed": 1}, "'seed' 0, not 1"),
        ({"epochs": 9}, "'epochs' 4, not 9"),
        ({"skip_weight": 0.25}, "'skip_weight' 0.5, not 0.25"),
        ({"latent": 3}, "'latent' 2, not 3"),
        ({"graphs": GRAPHS[1:]}, "other graphs"),
    ],
)
def test_a_run_is_not_resumed_with_other_settings_or_graphs(finished: Path, changes: dict[str, Any], fact: str) -> None:
    with pytest.raises(CheckpointError, match=fact) as error:
        trainer(finished, resume=True, **changes)
    assert error.value.reason == "other-run"


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("history.jsonl", b"{"),
        ("history.jsonl", b'{"epoch": 1}'),
        ("history.jsonl", b"[" * 100_000),
        (
            "history.jsonl",
            b'{"epoch": 1, "step": 1, "loss": "low", "kl": 0, "validation": null, "best": null, "learning_rate": 1, '
            b'"seconds": 1}',
        ),
        ("optimizer.safetensors", b"damage"),
        ("model.safetensors", b""),
        ("config.json", b"{}"),
    ],
)
def test_a_damaged_run_is_refused_in_one_line(finished: Path, file: str, content: bytes) -> None:
    (finished / file).write_bytes(content)

    with pytest.raises(CheckpointError) as error:
        trainer(finished, resume=True)

    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "state",
    ['{"progress": {"era": 3}, "data": {}}', '{"progress": {"epoch": "x"}, "data": {}}', '{"data": {}}', "[" * 100_000],
)
def test_a_run_without_its_position_or_with_moments_of_another_shape_is_refused(finished: Path, state: str) -> None:
    file = finished / "optimizer.safetensors"
    tensors, metadata = training_module.read_tensors(file)
    training_module.write_tensors(file, tensors, {"state": state})
    with pytest.raises(CheckpointError, match="position"):
        trainer(finished, resume=True)

    name = next(name for name, tensor in tensors.items() if name.startswith("exp_avg/") and tensor.ndim == 2)
    training_module.write_tensors(file, tensors | {name: tensors[name][:, :1].clone()}, metadata)
    with pytest.raises(CheckpointError, match="does not fit"):
        trainer(finished, resume=True)


def test_records_after_the_last_save_of_the_weights_are_dropped(finished: Path) -> None:
    history = read_history(finished)
    with (finished / "history.jsonl").open("a") as file:
        file.write(json.dumps(replace(history[-1], epoch=5).to_json()))

    assert trainer(finished, resume=True).history == history


def test_training_reads_and_writes_no_global_generator(straight: Trainer) -> None:
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    before, numpy_before = torch.random.get_rng_state(), np.random.get_state()[1]  # noqa: NPY002
    run = trainer()
    assert not same_weights(run.network.state_dict(), trainer(seed=2).network.state_dict())
    list(run)

    assert torch.equal(torch.random.get_rng_state(), before)
    assert (np.random.get_state()[1] == numpy_before).all()  # noqa: NPY002
    assert same_weights(run.network.state_dict(), straight.network.state_dict())


def test_the_best_weights_are_kept_and_training_stops_when_patience_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = iter([5.0, 3.0, 4.0, 3.5, 1.0])
    seen: list[dict[str, torch.Tensor]] = []

    def figure(network: torch.nn.Module, *_: Any) -> float:
        seen.append({name: tensor.clone() for name, tensor in network.state_dict().items()})
        return next(figures)

    monkeypatch.setattr(training_module, "validation_nll", figure)
    run = trainer(tmp_path, epochs=20, validate_every=1, patience=2)

    history = list(run)

    assert [record.validation for record in history] == [5.0, 3.0, 4.0, 3.5]
    assert [record.best for record in history] == [5.0, 3.0, 3.0, 3.0]
    assert same_weights(run.model.network.state_dict(), seen[1])
    assert not same_weights(seen[1], seen[3])
    assert run.model.results["best_epoch"] == 2
    assert list(trainer(tmp_path, resume=True, epochs=20, validate_every=1, patience=2)) == []


def test_validation_comes_every_few_epochs_and_at_the_end() -> None:
    history = list(trainer(epochs=5))

    assert [record.validation is not None for record in history] == [False, True, False, True, True]
    assert history[2].best == history[1].best


def test_without_validation_graphs_the_last_weights_are_kept() -> None:
    run = trainer(held=[])

    history = list(run)

    assert [record.validation for record in history] == [None] * 4
    assert same_weights(run.model.network.state_dict(), run.network.state_dict())


@pytest.mark.parametrize(("place", "held"), [("loss", HELD), ("loss", []), ("gradient", HELD), ("validation", HELD)])
def test_a_diverging_run_leaves_the_last_checkpoint_loadable(
    place: str, held: list[SimpleGraph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trainer(tmp_path, held=held)
    records = iter(run)
    next(records), next(records)
    good = load_checkpoint(tmp_path)
    if place == "loss":
        monkeypatch.setattr(training_module, "backward", lambda *_: (math.nan, 0.0))
    elif place == "gradient":
        next(run.network.parameters()).register_hook(lambda gradient: gradient * math.inf)
    else:
        monkeypatch.setattr(training_module, "validation_nll", lambda *_: math.nan)

    with pytest.raises(TrainingError) as error:
        list(records)

    assert (error.value.reason, error.value.facts) == ("training-diverged", {"learning_rate": 0.002})
    assert same_weights(load_checkpoint(tmp_path).network.state_dict(), good.network.state_dict())
    # Not even at the last step of a run without validation, after which nothing would notice.
    assert all(tensor.isfinite().all() for tensor in run.network.state_dict().values())


def test_the_learning_rate_has_linear_warmup_and_cosine_decay() -> None:
    assert [_schedule(0, step, 3) for step in range(5)] == pytest.approx([0.25, 0.5, 0.75, 1, 1])
    assert [_schedule(part, 100, 3) for part in (0, 0.25, 0.5, 1)] == pytest.approx(
        [1, 0.5 + math.sqrt(0.5) / 2, 0.5, 0]
    )
    history = list(trainer(epochs=2, batch_size=5, warmup_steps=0, learning_rate=0.01))
    last = [_schedule((epoch - 1 / (record.step / epoch)) / 2, 9, 0) for epoch, record in enumerate(history, 1)]
    assert [record.learning_rate for record in history] == pytest.approx([0.01 * part for part in last])


def test_the_kl_weight_rises_to_one_during_warmup() -> None:
    run = trainer(kl_warmup=0.5, free_bits=0.0)
    batch = collate(GRAPHS[:3], 8)

    def terms(fraction: float) -> tuple[float, float]:
        loss, kl = loss_of(run, batch, fraction)
        return float(loss.detach().sum()), float(kl.detach().sum())

    likelihood = terms(0.0)[0]
    for fraction, weight in ((0.0, 0.0), (0.125, 0.25), (0.5, 1.0), (0.9, 1.0)):
        loss, kl = terms(fraction)
        assert loss == pytest.approx(likelihood + weight * kl, rel=1e-5)
    assert terms(0.5)[1] > 0


def test_several_samples_give_a_tighter_bound() -> None:
    run = trainer(kl_warmup=0.0, samples=64, samples_from=0.0)
    batch = collate(GRAPHS[:3], 8)

    many, _ = loss_of(run, batch, 0.5)
    run.training = replace(run.training, samples=1)
    one = [loss_of(run, batch, 0.5, step)[0].sum() for step in range(50)]

    assert many.sum() < torch.stack(one).mean()


@pytest.mark.parametrize("epoch_graphs", [0, 5, 17, 40])
def test_epochs_of_any_size_show_every_graph_equally_often(epoch_graphs: int) -> None:
    run = trainer(epoch_graphs=epoch_graphs)
    size = epoch_graphs or len(GRAPHS)

    shown = []
    for epoch in range(len(GRAPHS)):
        run._progress.epoch, run._progress.first_graph = epoch, epoch * size
        shown.append([index for batch in run._batches() for index in batch])

    assert [len(epoch) for epoch in shown] == [size] * len(GRAPHS)
    assert np.bincount(np.concatenate(shown)).tolist() == [size] * len(GRAPHS)


def test_no_two_steps_share_their_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    run = trainer()
    seen: list[bytes] = []

    def watched(*args: Any) -> Any:
        step = draw_step(*args)
        seen.append(step.epsilon.numpy().tobytes())
        return step

    monkeypatch.setattr(training_module, "draw_step", watched)
    history = list(run)

    assert len(set(seen)) == len(seen) == history[-1].step


def test_the_bias_is_initialised_to_the_log_odds_of_the_training_density() -> None:
    graphs = [star(4), star(5)]

    bias = trainer(graphs=graphs, held=[]).network.decoder.head.size[-1].bias

    assert float(bias.detach().sigmoid()) == pytest.approx((7 + 0.5) / (6 + 10 + 1))


def test_training_ends_below_the_baseline_and_above_the_entropy() -> None:
    graphs = [star(nodes, centre) for nodes in (4, 5, 6) for centre in range(4)]
    run = trainer(graphs=graphs, held=graphs, epochs=60, width=16, learning_rate=0.01, validate_every=60)
    start = run.model

    list(run)

    baseline = np.mean([start.sizes.baseline(graph) for graph in graphs])
    before = estimate_nll(start, graphs, NLLOptions(64)).nll
    after = estimate_nll(run.model, graphs, NLLOptions(64)).nll
    assert after < before - 0.5
    assert after < baseline - 0.5
    # The entropy is that of the centre of the star.
    assert after > np.mean([math.log(graph.nodes) for graph in graphs]) - 0.2


def test_weighted_graphs_are_learned_with_a_normal_distribution() -> None:
    complete = [random_graph(nodes, 0, 1.0) for nodes in (3, 4, 5)]
    graphs = [replace(graph, weights=2.0 + 0.1 * np.arange(len(graph.edges)) % 0.2) for graph in complete]
    run = trainer(graphs=graphs, held=graphs, epochs=80, learning_rate=0.02, validate_every=80)
    before = estimate_nll(run.model, graphs, NLLOptions(32)).nll

    list(run)

    assert run.config.observation == "normal"
    assert estimate_nll(run.model, graphs, NLLOptions(32)).nll < before - 1
    weights = np.concatenate([graph.weights for graph in Sampler(run.model, 20)])
    assert abs(weights.mean() - 2) < 0.5


def test_node_features_are_learned_from() -> None:
    """Edges join nodes with equal features, which only a model that reads X can predict."""
    rng = np.random.default_rng(0)

    def camps(nodes: int) -> SimpleGraph:
        side = rng.integers(0, 2, nodes)
        graph = SimpleGraph.from_adjacency(side[:, None] == side[None])
        return replace(graph, features=(2.0 * side[:, None] - 1).astype(np.float32))

    graphs = [camps(nodes) for nodes in (5, 6) for _ in range(15)]
    plain = [replace(graph, features=None) for graph in graphs]
    changes = {"epochs": 30, "learning_rate": 0.02, "validate_every": 30, "batch_size": 10}
    seeing, blind = trainer(graphs=graphs, held=graphs, **changes), trainer(graphs=plain, held=plain, **changes)
    list(seeing), list(blind)

    assert seeing.config.node_features == 1
    seen = estimate_nll(seeing.model, graphs, NLLOptions(32)).nll
    assert seen < estimate_nll(blind.model, plain, NLLOptions(32)).nll - 1


@pytest.mark.parametrize("kind", ["graphite-ae", "gae"])
def test_autoencoders_learn_to_reconstruct_and_have_no_kl_term(kind: str) -> None:
    run = trainer(kind=kind, held=GRAPHS, epochs=20, learning_rate=0.01, validate_every=10)

    history = list(run)

    assert history[-1].loss < history[0].loss
    assert all(record.kl == 0 for record in history)
    assert history[-1].best == min(record.validation for record in history if record.validation is not None)


def test_settings_are_adapted_to_the_graphs() -> None:
    config = ModelConfig(max_nodes=3)

    assert adapt_config(config, [path(4), star(7)]) == replace(config, max_nodes=7)
    assert adapt_config(config, [random_graph(3, 0, features=2)]).node_features == 2
    weighted = [random_graph(4, 0, 1.0, weighted=True), random_graph(2, 0, 0.0)]
    assert adapt_config(config, weighted).observation == "normal"


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        ([], "no graphs"),
        ([path(3), random_graph(0, 0)], "no nodes"),
        ([path(3), random_graph(3, 0, 1.0, weighted=True)], "weighted"),
        ([path(3), random_graph(3, 0, features=2)], r"different widths: \[0, 2\]"),
    ],
)
def test_graphs_that_cannot_be_trained_on_together_are_refused(graphs: list[SimpleGraph], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        adapt_config(ModelConfig(), graphs)


def test_identity_features_cover_larger_validation_graphs() -> None:
    model, settings = preset("paper", **(SMALL | QUICK | {"epochs": 1}))

    run = Trainer("tiny", adapt_config(model, [path(3)]), settings, [path(3)], [path(6)])

    assert run.config.max_nodes == 6
    list(run)


def test_devices_are_found_by_name() -> None:
    assert resolve_device("cpu").type == "cpu"
    assert resolve_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(TrainingError, match="toaster"):
        resolve_device("toaster")
    if not torch.cuda.is_available():
        with pytest.raises(TrainingError) as error:
            resolve_device("cuda")
        assert error.value.reason == "no-cuda"


@pytest.mark.parametrize("kind", ["graphite-vae", "vgae", "graphite-ae"])
def test_convention_paper_trains_on_all_cells_of_the_widest_graph(kind: str) -> None:
    run = trainer(kind=kind, convention="paper", kl_warmup=0.0)
    batch = training_module.collate([path(3)], run.config.max_nodes)

    before, _ = loss_of(run, batch, 0.5)
    history = list(run)

    # A probability of 1/2 for every cell of the padded matrix.
    assert before.item() > 0.5 * run.config.max_nodes**2 * math.log(2)
    assert history[-1].loss < history[0].loss
    with pytest.raises(ConfigError, match="unweighted"):
        trainer(graphs=[random_graph(4, 0, 1.0, weighted=True)], held=[], kind=kind, convention="paper")


def test_a_run_stopped_before_it_validates_leaves_the_weights_it_has_reached(tmp_path: Path) -> None:
    run = trainer(folder=tmp_path, validate_every=100, epochs=100)
    for _ in zip(run, range(2), strict=False):
        pass
    run.stop()
    with pytest.raises(KeyboardInterrupt):
        list(run)

    assert same_weights(load_checkpoint(tmp_path).network.state_dict(), run.network.state_dict())


def test_large_graphs_bound_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_module, "BATCH_CELLS", 4 * 36)
    run = trainer(epoch_graphs=25, samples=2)

    batches = run._batches()

    sizes = [[GRAPHS[index].nodes for index in batch] for batch in batches]
    assert all(len(batch) == 1 or len(batch) * max(batch) ** 2 <= 2 * 36 for batch in sizes)
    assert sum(map(len, batches)) == 25
    plan = run.plan()
    assert (plan.epoch_graphs, plan.steps) == (25, 4 * len(batches))


def test_a_plan_says_what_is_trained_and_changes_nothing(straight: Trainer) -> None:
    run = trainer()
    plan = run.plan()

    assert (plan.graphs, plan.validation_graphs, plan.epochs, plan.batch_size) == (len(GRAPHS), len(HELD), 4, 4)
    assert plan.epoch_graphs == len(GRAPHS)
    assert plan.ordering is None
    assert plan.steps == pytest.approx(straight.history[-1].step, abs=4)
    assert plan.parameters == sum(parameter.numel() for parameter in run.network.parameters())
    assert plan.seconds > 0
    assert plan.nodes == (3, 6)
    assert plan.memory == step_bytes(run.config, run.training)
    next(iter(run))
    assert run.plan().epochs == 3
    list(run)
    assert same_weights(run.network.state_dict(), straight.network.state_dict())
    # Batches that are done are left out.
    run = trainer()
    run._progress.batch = 2
    assert run.plan().steps == plan.steps - 2


AVERAGED = AUTOREGRESSIVE | {"average": 0.9, "validation_samples": 2}


@pytest.mark.parametrize("encoder", ["none", "residual"])
def test_an_autoregressive_model_left_between_epochs_resumes_bit_for_bit(tmp_path: Path, encoder: str) -> None:
    settings = AVERAGED | {"encoder": encoder, "epochs": 6, "dropout": 0.2}
    whole = trainer(tmp_path / "whole", **settings)
    history = list(whole)

    stopped = trainer(tmp_path / "stopped", **settings)
    for record in stopped:
        if record.epoch == 3:
            break
    resumed = trainer(tmp_path / "stopped", resume=True, **settings)
    rest = list(resumed)

    assert timeless(resumed.history) == timeless(history)
    assert timeless(rest) == timeless(history[3:])
    assert same_weights(whole.network.state_dict(), resumed.network.state_dict())
    assert same_weights(whole.model.network.state_dict(), resumed.model.network.state_dict())
    assert not same_weights(whole.model.network.state_dict(), whole.network.state_dict())


@pytest.mark.parametrize("order", ["bfs", "degeneracy", "uniform"])
def test_an_autoregressive_model_learns_stars_and_its_novelty_tells(order: str, tmp_path: Path) -> None:
    stars = [star(5, centre % 5) for centre in range(20)]
    settings = {"epochs": 25, "epoch_graphs": 200, "batch_size": 40, "learning_rate": 0.02, "width": 16}

    run = trainer(tmp_path, graphs=stars, held=stars[:5], **(AVERAGED | settings | {"ordering": order}))
    before = sample_novelty(run.network, stars, run.model.sizes, 0)
    history = list(run)

    # A star on five nodes has five labellings; independent edges need at least 6.7 nats.
    assert math.log(5) - 0.05 < estimate_nll(run.model, stars[:5], NLLOptions(20)).nll < math.log(5) + 0.4
    assert [record.novelty for record in read_history(tmp_path)] == [record.novelty for record in history]
    checked = [record.novelty for record in history if record.validation is not None]
    assert None not in checked
    # Nothing but stars is left at the end.
    assert checked[-1] < 0.2 < before
    assert load_checkpoint(tmp_path).results["novelty"] in checked


@pytest.mark.parametrize("case", ["family", "many graphs", "one-shot"])
def test_novelty_is_not_checked_where_it_tells_little(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if case == "many graphs":
        monkeypatch.setattr(training_module, "FEW_GRAPHS", 10)
    config, training = preset("one-shot", **(SMALL | QUICK | ({} if case == "one-shot" else AVERAGED)))
    data = {"family": "ego"} if case == "family" else {}
    run = Trainer("tiny", adapt_config(config, GRAPHS), training, GRAPHS, HELD, data=data)

    assert all(record.novelty is None for record in run)
    assert "novelty" not in run.model.results


def test_validation_measures_the_latents_and_the_best_model_keeps_the_result(
    finished_run: tuple[Trainer, Path],
) -> None:
    run, folder = finished_run
    best = run.model

    assert [bool(record.latents) for record in run.history] == [record.validation is not None for record in run.history]
    assert read_history(folder) == run.history
    activity = validation_activity(best.network, HELD, run.training)
    assert {"kl", "active_units", "mutual_information", "gain", "gain_error"} == activity.keys()
    assert load_checkpoint(folder).results.items() >= activity.items()


@pytest.mark.parametrize("changes", [{"kind": "graphite-ae"}, AUTOREGRESSIVE])
def test_latents_without_a_variational_posterior_are_not_measured(changes: dict[str, Any]) -> None:
    run = trainer(**(changes | {"epochs": 1}))

    assert all(record.latents == {} for record in run)
    assert "active_units" not in run.model.results


def test_a_wider_model_needs_more_memory() -> None:
    for name in ("default", "one-shot"):
        estimates = []
        for width in (16, 64, 256):
            config, training = preset(name, width=width, batch_size=16)
            estimates.append(step_bytes(replace(config, max_nodes=60), training))
        assert estimates == sorted(estimates)
        assert estimates[-1] > 2 * estimates[0]


def test_fine_tuning_keeps_the_architecture_and_refuses_graphs_that_do_not_fit(straight: Trainer) -> None:
    model, graphs = straight.model, [random_graph(5, seed) for seed in range(4)]
    kept = {"width": model.config.width, "encoder_features": list(model.config.encoder_features)}
    config, training = configure("default", graphs, initial=model, **kept, epochs=3)
    assert replace(config, max_nodes=model.config.max_nodes) == model.config
    assert (training.epochs, training.kl_warmup) == (3, 0.0)
    assert training.learning_rate < preset("one-shot")[1].learning_rate
    assert configure("default", graphs, initial=model, learning_rate=0.5)[1].learning_rate == 0.5
    run = prepare("b", graphs, [], {}, initial=model)
    assert same_weights(run.network.state_dict(), model.network.state_dict())

    with pytest.raises(ConfigError, match="latent"):
        configure("default", graphs, initial=model, latent=model.config.latent + 1)
    for wrong in (random_graph(5, 0, weighted=True), random_graph(5, 0, features=2)):
        with pytest.raises(DatasetError, match="these have"):
            configure("default", [wrong], initial=model)


def test_fine_tuning_standardises_structural_features_again() -> None:
    first = prepare("a", [path(5)] * 4, [], {"width": 8, "ordering": "bfs"})
    found = prepare("b", [star(5)] * 4, [], {}, initial=first.model).network.decoder.draft_head

    # The mean logarithm of one plus the degree in a star.
    assert float(found.mean[0]) == pytest.approx((math.log(5) + 4 * math.log(2)) / 5)


def test_other_kinds_start_from_the_one_shot_preset() -> None:
    featured = [random_graph(5, seed, features=2) for seed in range(4)]
    plain = [random_graph(5, seed) for seed in range(4)]

    assert configure("default", plain)[0].is_autoregressive
    assert configure("default", plain)[0].ordering == "auto"
    assert configure("default", featured)[0].ordering == "uniform"
    for changes in ({"decoder": "one-shot"}, {"kind": "vgae"}):
        model, training = configure("default", plain, **changes)
        assert not model.is_autoregressive
        assert training == preset("one-shot")[1]


@pytest.mark.parametrize(("gain", "error", "remain"), [(0.01, 0.01, False), (0.5, 0.01, True), (0.2, 0.1, True)])
def test_free_bits_end_when_the_decoder_gains_little_from_latents_after_a_third_of_the_run(
    gain: float, error: float, remain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float] = []
    draw = training_module.draw_step

    def spy(*args: Any) -> Any:
        step = draw(*args)
        seen.append(step.free_bits)
        return step

    # Without free bits the divergence vanishes, and any gain is a large part of it: they do not return.
    few, none = {"kl": 1.0, "gain": gain, "gain_error": error}, {"kl": 1e-9, "gain": 1e-9, "gain_error": 0.0}
    found = iter([{"kl": 1.0, "gain": 0.0, "gain_error": 0.0}, few, *[few if remain else none] * 3])
    monkeypatch.setattr(training_module, "draw_step", spy)
    monkeypatch.setattr(training_module, "validation_activity", lambda *_: next(found))
    model, settings = preset("default", **(SMALL | QUICK | {"ordering": "bfs", "epochs": 5, "validate_every": 1}))
    model = adapt_config(model, [*GRAPHS, *HELD])
    run = Trainer("tiny", model, settings, GRAPHS, HELD)
    assert run._free_bits_until == pytest.approx(1.75)
    assert trainer()._free_bits_until == 0, "those of one-shot models fall by themselves"

    free = []
    for _ in run:
        free.append(set(seen))
        seen.clear()

    kept = {settings.free_bits}
    # A third of five epochs is done with the second.
    assert free == [kept, kept, *[kept if remain else {0.0}] * 3]


@pytest.mark.parametrize(
    ("encoder", "free_bits", "last"), [("residual", 0.05, 5), ("residual", 0.0, 3), ("none", 0.05, 3)]
)
def test_patience_begins_when_unused_latents_have_lost_their_free_bits(
    encoder: str, free_bits: float, last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rising = iter(range(100))
    monkeypatch.setattr(training_module, "validation_nll", lambda *_: float(next(rising)))
    changes = {"ordering": "bfs", "epochs": 10, "validate_every": 1, "patience": 2, "encoder": encoder}
    model, settings = preset("default", **(SMALL | QUICK | changes | {"free_bits": free_bits}))
    run = Trainer("tiny", adapt_config(model, [*GRAPHS, *HELD]), settings, GRAPHS, HELD)

    # A third of ten epochs is done after the third.
    assert len(list(run)) == last
