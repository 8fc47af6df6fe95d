"""A model that loses to the ER baseline is told so, and what to try."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tiny import path

from graphite_gen.cli.remarks import nll_remark, training_remark
from graphite_gen.families import family
from graphite_gen.likelihood import summarise
from graphite_gen.likelihood.excess import Entropy
from graphite_gen.records import GraphNLL, NLLEstimate, Provenance


def scored(excesses: list[float], baseline: float | None = 50.0, khat: float | None = 0.1) -> NLLEstimate:
    """An estimate whose graphs lie so far above a baseline of their own."""
    rows = [
        GraphNLL(5, 4, 50.0 + i + excess, -60.0, 9.0, 1.0, None if baseline is None else baseline + i, khat)
        for i, excess in enumerate(excesses)
    ]

    return summarise("tiny", "pairs", 100, rows)


def entropy(nats: float) -> Entropy:
    return Entropy(nats, 1.0, 0.1, ())


@pytest.mark.parametrize(
    ("excesses", "words"),
    [
        # The error is that of the differences: the graphs themselves differ by more.
        ([2.0, 2.2, 1.8], "2.00 ± 0.12 above the ER baseline: one edge probability per size does better than"),
        ([2.0, -1.7, 0.3], "0.20 ± 1.07 above the ER baseline, within noise: one edge probability per size does as"),
        ([2.0], "2.00 above the ER baseline, perhaps by noise: one edge probability per size does as"),
    ],
)
def test_an_nll_above_the_baseline_is_told_with_its_noise(excesses: list[float], words: str) -> None:
    remark = nll_remark(scored(excesses), entropy(30.0))

    assert remark is not None
    assert words in remark
    assert "'train --epochs'" in remark
    assert "diagnosis" not in remark


@pytest.mark.parametrize("excesses", [[-2.0, -1.0], [0.01, 0.02], [0.0, 0.0]])
def test_an_nll_at_or_below_the_baseline_is_not_remarked_on(excesses: list[float]) -> None:
    assert nll_remark(scored(excesses), None) is None


def test_nothing_is_said_where_there_is_no_baseline_or_it_is_the_best_there_is() -> None:
    assert nll_remark(scored([2.0, 2.0], baseline=None), None) is None
    assert nll_remark(scored([2.0, 2.0]), entropy(50.3)) is None


@pytest.mark.parametrize("khat", [None, 0.9])
def test_an_estimate_in_doubt_is_blamed_first(khat: float | None) -> None:
    remark = nll_remark(scored([2.0, 2.1], khat=khat), None)

    assert remark is not None
    assert "see the diagnosis" in remark


def run(
    monkeypatch: pytest.MonkeyPatch, nlls: list[float], kind: str = "graphite-vae", source: str | None = None
) -> tuple[Any, Any]:
    """A run of three epochs with so many validation graphs, and its best model; 'staged' is a kind too."""
    monkeypatch.setattr("graphite_gen.training.trainer.validation_nats", lambda model, graphs: nlls)
    config = SimpleNamespace(kind="graphite-vae" if kind == "staged" else kind, is_autoregressive=kind == "staged")
    model = SimpleNamespace(
        config=config, results={"validation": sum(nlls) / len(nlls)}, provenance=Provenance(family=source)
    )
    graphs = [path(5)] * len(nlls)

    return SimpleNamespace(training=SimpleNamespace(epochs=3), graphs=[None] * 70, validation=graphs), model


@pytest.mark.parametrize("kind", ["staged", "graphite-vae", "vgae", "gae"])
def test_a_run_above_the_baseline_is_told_with_what_to_try(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    remark = training_remark(*run(monkeypatch, [52.4, 62.5, 72.6], kind), [50.0, 60.0, 70.0])

    assert remark is not None
    # Graphs differ by more than that: the error is of the differences.
    assert "2.50 ± 0.06 above the ER baseline: one edge probability per size does better than the model." in remark
    assert "('--epochs', now 3)" in remark
    assert "more graphs than 70" in remark
    assert ("--preset default" in remark) == (kind == "graphite-vae")


@pytest.mark.parametrize(
    ("nlls", "words"),
    [
        ([51.0, 49.2], "0.10 ± 0.90 above the ER baseline, within noise"),
        ([51.0], "1.00 above the ER baseline, perhaps"),
    ],
)
def test_a_run_above_the_baseline_by_noise_is_told_as_such(
    monkeypatch: pytest.MonkeyPatch, nlls: list[float], words: str
) -> None:
    remark = training_remark(*run(monkeypatch, nlls), [50.0] * len(nlls))

    assert remark is not None
    assert words in remark
    assert "does as well as the model" in remark


def test_a_run_is_not_remarked_on_where_it_is_not_above_or_cannot_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for nll in (50.01, 40.0):
        assert training_remark(*run(monkeypatch, [nll] * 2), [50.0] * 2) is None
    trainer, model = run(monkeypatch, [52.5] * 2)
    assert training_remark(trainer, model, []) is None
    model.results["validation"] = None
    assert training_remark(trainer, model, [50.0] * 2) is None


def test_a_run_is_not_remarked_on_where_no_model_does_better(monkeypatch: pytest.MonkeyPatch) -> None:
    law = family("erdos-renyi")
    entropy = -law.log_prob(path(5))

    for room, told in ((0.3, False), (0.8, True)):
        trainer, model = run(monkeypatch, [entropy + 5.0] * 2, source="erdos-renyi")
        assert (training_remark(trainer, model, [entropy + room] * 2) is not None) == told
    # Parameters that are none of its own leave the floor unknown.
    model = SimpleNamespace(**{**vars(model), "provenance": Provenance(family="erdos-renyi", parameters={"q": 1})})
    assert training_remark(trainer, model, [entropy + 0.3] * 2) is not None  # type: ignore[arg-type]
