"""A model that loses to the ER baseline is told so, and what to try."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from graphite_gen.cli.remarks import nll_remark, training_remark
from graphite_gen.likelihood import summarise
from graphite_gen.likelihood.floor import Floor
from graphite_gen.records import GraphNLL, NLLEstimate


def scored(excesses: list[float], baseline: float | None = 50.0, khat: float | None = 0.1) -> NLLEstimate:
    """An estimate whose graphs lie so far above a baseline of their own."""
    rows = [
        GraphNLL(5, 4, 50.0 + i + excess, -60.0, 9.0, 1.0, None if baseline is None else baseline + i, khat)
        for i, excess in enumerate(excesses)
    ]

    return summarise("tiny", "pairs", 100, rows)


def floor(nats: float) -> Floor:
    return Floor(nats, 1.0, 0.1, ())


@pytest.mark.parametrize(
    ("excesses", "words"),
    [
        # The error is that of the differences: the graphs themselves differ by more.
        ([2.0, 2.2, 1.8], "2.00 ± 0.12 above the ER baseline: one edge probability per size does better than"),
        ([2.0, -1.7, 0.3], "0.20 ± 1.07 above the ER baseline, within noise: one edge probability per size does as"),
        ([2.0], "2.00 above the ER baseline: one"),
    ],
)
def test_an_nll_above_the_baseline_is_told_with_its_noise(excesses: list[float], words: str) -> None:
    remark = nll_remark(scored(excesses), floor(30.0))

    assert remark is not None
    assert words in remark
    assert "'train --epochs'" in remark
    assert "diagnosis" not in remark


@pytest.mark.parametrize("excesses", [[-2.0, -1.0], [0.01, 0.02], [0.0, 0.0]])
def test_an_nll_at_or_below_the_baseline_is_not_remarked_on(excesses: list[float]) -> None:
    assert nll_remark(scored(excesses), None) is None


def test_nothing_is_said_where_there_is_no_baseline_or_it_is_the_best_there_is() -> None:
    assert nll_remark(scored([2.0, 2.0], baseline=None), None) is None
    assert nll_remark(scored([2.0, 2.0]), floor(50.3)) is None


@pytest.mark.parametrize("khat", [None, 0.9])
def test_an_estimate_in_doubt_is_blamed_first(khat: float | None) -> None:
    remark = nll_remark(scored([2.0, 2.1], khat=khat), None)

    assert remark is not None
    assert "see the diagnosis" in remark


@pytest.mark.parametrize("staged", [True, False])
def test_a_run_above_the_baseline_is_told_with_what_to_try(staged: bool) -> None:
    trainer = SimpleNamespace(
        config=SimpleNamespace(is_staged=staged), training=SimpleNamespace(epochs=3), graphs=[None] * 70
    )
    remark = training_remark(trainer, 52.5, 50.0)  # type: ignore[arg-type]

    assert remark is not None
    assert "2.50 above the ER baseline" in remark
    assert "('--epochs', now 3)" in remark
    assert "more graphs than 70" in remark
    assert ("--preset default" in remark) == (not staged)
    for figure, baseline in ((50.01, 50.0), (40.0, 50.0), (None, 50.0), (52.5, None)):
        assert training_remark(trainer, figure, baseline) is None  # type: ignore[arg-type]
