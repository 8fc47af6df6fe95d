"""Verdicts on estimates take their standard errors into account."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tiny import path

from graphite_gen.cli.diagnosis import bdmc_verdict, nll_finding, training_finding
from graphite_gen.families import family
from graphite_gen.likelihood import NLLOptions, summarise
from graphite_gen.likelihood.bdmc import BDMCEstimate, GraphBDMC, summarise_bdmc
from graphite_gen.likelihood.excess import Entropy
from graphite_gen.records import GraphNLL, NLLEstimate, Provenance


def is_reliable(bounds: BDMCEstimate, method: str) -> bool:
    return bdmc_verdict(bounds, method).startswith("reliable")


def bdmc(gaps: list[float], importance: list[float] | None = None) -> BDMCEstimate:
    """Bounds with given gaps, and importance sampling with given distances from the lower bound."""
    above = gaps if importance is None else importance
    rows = [
        GraphBDMC(5, 4, 10.0 + i, 10.0 + i + gap, 10.0 + i + off, 0.1)
        for i, (gap, off) in enumerate(zip(gaps, above, strict=True))
    ]

    return summarise_bdmc("tiny", NLLOptions(100, chains=8, steps=8), rows)


def spread(mean: float, error: float, count: int = 16) -> list[float]:
    """Values with this mean and this standard error."""
    signs = np.resize([1.0, -1.0], count)

    return (mean + error * math.sqrt(count) * signs / signs.std(ddof=1)).tolist()


@pytest.mark.parametrize(
    ("mean", "error", "word"),
    [
        (0.3, 0.1, "reliable"),
        (0.9, 0.04, "reliable"),
        # Not significantly different from a nat.
        (0.9, 0.6, "inconclusive"),
        (1.1, 0.6, "inconclusive"),
        (0.3, 0.4, "inconclusive"),
        (1.3, 0.1, "unknown"),
        (3.0, 0.6, "unknown"),
        # Swapped by noise.
        (-0.3, 0.2, "reliable"),
    ],
)
def test_a_gap_is_compared_with_its_standard_error(mean: float, error: float, word: str) -> None:
    bounds = bdmc(spread(mean, error))
    text = bdmc_verdict(bounds, "ais")

    assert bounds.gap_standard_error == pytest.approx(error)
    assert text.split(":")[0] == word
    assert is_reliable(bounds, "ais") == (word == "reliable")
    assert f"{abs(mean):.2f} ± {error:.2f}" in text
    assert ("below the lower bound" in text) == (mean < 0)
    assert ("--check-graphs" in text) == (word == "inconclusive")


def test_a_method_is_judged_by_its_paired_distance_from_the_lower_bound() -> None:
    poor, loose = bdmc(spread(0.2, 0.05), spread(4.0, 0.5)), bdmc(spread(6.0, 0.5), spread(0.2, 0.05))

    assert is_reliable(poor, "ais")
    assert not is_reliable(poor, "is")
    assert bdmc_verdict(poor, "is").startswith("not reliable")
    assert "4.00 ± 0.50" in bdmc_verdict(poor, "is")
    assert is_reliable(loose, "is")
    assert bdmc_verdict(loose, "ais").startswith("unknown")
    # The NLLs of graphs differ by nats, but their gaps are equal.
    assert is_reliable(bdmc([0.5] * 4), "is")
    for bounds in (poor, bdmc(spread(6.0, 0.5))):
        assert "-k" in bdmc_verdict(bounds, "is", anneals=False)
        assert "--method ais" not in bdmc_verdict(bounds, "is", anneals=False)


@pytest.mark.parametrize(
    ("gap", "mean", "error", "verdict", "noise"),
    [
        (0.5, -0.3, 0.2, "reliable", "within noise"),
        (0.5, -0.3, 0.1, "reliable", "significantly"),
        (0.5, -0.9, 0.6, "inconclusive", "within noise"),
        (0.5, -3.0, 0.3, "not reliable", "significantly"),
        (0.1, 0.4, 0.05, "reliable", "significantly"),
        (0.1, 0.4, 0.2, "reliable", "within noise"),
    ],
)
def test_a_method_outside_the_bounds_is_reported_with_its_significance(
    gap: float, mean: float, error: float, verdict: str, noise: str
) -> None:
    bounds = bdmc([gap] * 16, spread(mean, error))
    text = bdmc_verdict(bounds, "is")
    below = f"{-mean:.2f} ± {error:.2f} nats below the lower bound on average, {noise}"
    above = f"{mean:.2f} ± {error:.2f} nats too high on average and {mean - gap:.2f} ± {error:.2f} above the upper"

    assert text.split(":")[0] == verdict
    assert is_reliable(bounds, "is") == (verdict == "reliable")
    assert (below if mean < 0 else f"{above} bound, {noise}") in text
    assert ("too high" in text) == (mean > 0)
    # The upper bound is the estimate of 'ais'.
    assert "above" not in bdmc_verdict(bounds, "ais")
    # Distances that round to zero are not outside.
    assert "bound" not in bdmc_verdict(bdmc([0.0] * 16, spread(math.copysign(0.004, mean), 0.01)), "is")


def test_one_graph_is_inconclusive() -> None:
    # One graph has no standard error.
    for off in (0.1, -0.3, 0.4):
        text = bdmc_verdict(bdmc([0.1], [off]), "is")
        assert not is_reliable(bdmc([0.1], [off]), "is")
        assert text.startswith("inconclusive: on 1 graph ")
        assert ("bound" in text) == (off != 0.1)
        assert "nois" not in text
        assert "±" not in text


def test_bounds_that_cross_significantly_are_not_reliable() -> None:
    crossed = bdmc([-5.0, -5.1, -4.9], [0.2, 0.3, 0.1])

    assert not is_reliable(crossed, "is")
    assert "unknown: on 3 graphs sampled from the model, the bounds cross: method 'is'" in bdmc_verdict(crossed, "is")
    assert "5.20 ± 0.12 above the upper bound, significantly" in bdmc_verdict(crossed, "is")
    assert "'--steps' or '--chains'" in bdmc_verdict(crossed, "is")
    assert "samples ('-k')" in bdmc_verdict(crossed, "is", anneals=False)
    # Crossing within noise or within the tolerance is accepted.
    assert is_reliable(bdmc(spread(-1.5, 0.6), spread(0.2, 0.1)), "is")
    assert is_reliable(bdmc(spread(-0.5, 0.01), spread(0.2, 0.01)), "is")


@pytest.mark.parametrize("graphs", [1, 4])
@pytest.mark.parametrize(("method", "word"), [("is", "not reliable"), ("ais", "unknown")])
def test_an_infinite_estimate_is_not_reliable(graphs: int, method: str, word: str) -> None:
    poor = [math.inf] + [0.1] * (graphs - 1)
    bounds = bdmc([0.1, 0.2, 0.1, 0.2][:graphs] if method == "is" else poor, poor)
    text = bdmc_verdict(bounds, method)

    assert not is_reliable(bounds, method)
    assert text.startswith("unknown" if graphs == 1 else word)
    assert "inf" in text or graphs == 1
    assert "nois" not in text
    assert "nan" not in text


def scored(excesses: list[float], baseline: float | None = 50.0, khat: float | None = 0.1) -> NLLEstimate:
    """An estimate with given distances above the baseline of each graph."""
    rows = [
        GraphNLL(5, 4, 50.0 + i + excess, -60.0, 9.0, 1.0, None if baseline is None else baseline + i, khat)
        for i, excess in enumerate(excesses)
    ]

    return summarise("tiny", NLLOptions(100), rows)


@pytest.mark.parametrize(
    ("excesses", "words"),
    [
        # The error is that of the paired differences.
        ([2.0, 2.2, 1.8], "2.00 ± 0.12 above the ER baseline: one edge probability per size does better than"),
        ([2.0, -1.7, 0.3], "0.20 ± 1.07 above the ER baseline, within noise: one edge probability per size does as"),
        ([2.0], "2.00 above the ER baseline, possibly by noise: one edge probability per size does as"),
    ],
)
@pytest.mark.parametrize("khat", [0.1, None, 0.9])
def test_an_nll_above_the_baseline_is_reported_with_its_significance(
    excesses: list[float], words: str, khat: float | None
) -> None:
    finding = nll_finding(scored(excesses, khat=khat), Entropy(30.0, 1.0, 0.1, ()))

    assert finding is not None
    assert words in finding
    assert "'train --budget'" in finding
    assert ("see the diagnosis" in finding) == (khat != 0.1)


@pytest.mark.parametrize(
    ("excesses", "baseline", "entropy"),
    [([-2.0, -1.0], 50.0, None), ([0.01, 0.02], 50.0, None), ([2.0, 2.0], None, None), ([2.0, 2.0], 50.0, 50.3)],
)
def test_there_is_no_finding_without_a_baseline_that_is_exceeded_and_above_the_entropy(
    excesses: list[float], baseline: float | None, entropy: float | None
) -> None:
    known = None if entropy is None else Entropy(entropy, 1.0, 0.1, ())

    assert nll_finding(scored(excesses, baseline), known) is None


def run(
    monkeypatch: pytest.MonkeyPatch,
    nlls: list[float],
    kind: str = "graphite-vae",
    source: str | None = None,
    budget: float = 0.0,
) -> tuple[Any, Any]:
    """A run of three epochs with given validation NLLs, and its best model."""
    monkeypatch.setattr("graphite_gen.training.validation.validation_nats", lambda model, graphs: nlls)
    autoregressive = kind == "autoregressive"
    model = SimpleNamespace(
        config=SimpleNamespace(kind="graphite-vae" if autoregressive else kind, is_autoregressive=autoregressive),
        results={"validation": sum(nlls) / len(nlls)},
        provenance=Provenance(family=source),
    )
    graphs = [path(5)] * len(nlls)

    training = SimpleNamespace(epochs=3, budget=budget)

    return SimpleNamespace(training=training, graphs=[None] * 70, validation=graphs), model


@pytest.mark.parametrize("kind", ["autoregressive", "graphite-vae", "vgae", "gae"])
def test_a_run_above_the_baseline_gets_advice(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    finding = training_finding(*run(monkeypatch, [52.4, 62.5, 72.6], kind), [50.0, 60.0, 70.0])

    assert finding is not None
    assert "2.50 ± 0.06 above the ER baseline: one edge probability per size does better than the model." in finding
    assert "('--epochs', now 3)" in finding
    assert "more than 70 graphs" in finding
    assert ("--preset default" in finding) == (kind == "graphite-vae")
    timed = training_finding(*run(monkeypatch, [52.4, 62.5, 72.6], kind, budget=300.0), [50.0, 60.0, 70.0])
    assert "('--budget', now 5 min 0 s)" in str(timed)


def test_a_run_below_or_without_a_baseline_has_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    for nll in (50.01, 40.0):
        assert training_finding(*run(monkeypatch, [nll] * 2), [50.0] * 2) is None
    trainer, model = run(monkeypatch, [52.5] * 2)
    assert training_finding(trainer, model, []) is None
    model.results["validation"] = None
    assert training_finding(trainer, model, [50.0] * 2) is None


def test_a_run_has_no_finding_if_the_baseline_is_close_to_the_entropy(monkeypatch: pytest.MonkeyPatch) -> None:
    entropy = -family("erdos-renyi").log_prob(path(5))

    for margin, found in ((0.3, False), (0.8, True)):
        trainer, model = run(monkeypatch, [entropy + 5.0] * 2, source="erdos-renyi")
        assert (training_finding(trainer, model, [entropy + margin] * 2) is not None) == found
    # With unknown parameters the entropy is unknown.
    model = SimpleNamespace(**{**vars(model), "provenance": Provenance(family="erdos-renyi", parameters={"q": 1})})
    assert training_finding(trainer, model, [entropy + 0.3] * 2) is not None  # type: ignore[arg-type]
