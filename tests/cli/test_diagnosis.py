import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tiny import path

from graphite_gen.cli.diagnosis import bdmc_verdict, late_gain, nll_finding, training_finding
from graphite_gen.families import family
from graphite_gen.likelihood import NLLOptions, summarise
from graphite_gen.likelihood.bdmc import BDMCEstimate, GraphBDMC, summarise_bdmc
from graphite_gen.likelihood.excess import Entropy
from graphite_gen.records import GraphNLL, NLLEstimate, Provenance


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


NOTHING = [0.0] * 16
TIGHT, LOOSE, APART = [0.1] * 16, [0.5] * 16, spread(6.0, 0.5)
CROSSED = [-5.0, -5.1, -4.9]
FEW = "too high | '--check-graphs'"


@pytest.mark.parametrize(
    ("gaps", "importance", "method", "verdict", "facts"),
    [
        # The gap of annealed importance sampling is compared with its standard error.
        (spread(0.3, 0.1), None, "ais", "reliable", "0.30 ± 0.10 nats too high"),
        (spread(0.9, 0.04), None, "ais", "reliable", "0.90 ± 0.04 nats too high"),
        (spread(-0.3, 0.2), None, "ais", "reliable", "0.30 ± 0.20 nats below the lower bound"),
        (spread(0.9, 0.6), None, "ais", "inconclusive", f"0.90 ± 0.60 nats {FEW}"),
        (spread(1.1, 0.6), None, "ais", "inconclusive", f"1.10 ± 0.60 nats {FEW}"),
        (spread(0.3, 0.4), None, "ais", "inconclusive", f"0.30 ± 0.40 nats {FEW}"),
        (spread(1.3, 0.1), None, "ais", "unknown", "1.30 ± 0.10 nats apart | '--steps'"),
        (spread(3.0, 0.6), None, "ais", "unknown", "3.00 ± 0.60 nats apart | '--steps'"),
        # A method is judged by its paired distance from the lower bound.
        (TIGHT, spread(4.0, 0.5), "ais", "reliable", "too high"),
        (TIGHT, spread(4.0, 0.5), "is", "not reliable", "4.00 ± 0.50 nats too high | above | '--method ais'"),
        (APART, spread(0.2, 0.05), "is", "reliable", "0.20 ± 0.05 nats too high"),
        (APART, spread(0.2, 0.05), "ais", "unknown", "6.00 ± 0.50 nats apart"),
        ([0.5] * 4, None, "is", "reliable", "too high"),
        # Outside of the bounds, its distance is significant or not.
        (LOOSE, spread(-0.3, 0.2), "is", "reliable", "0.30 ± 0.20 nats below the lower bound on average, within noise"),
        (LOOSE, spread(-0.3, 0.1), "is", "reliable", "0.30 ± 0.10 nats below | significantly"),
        (LOOSE, spread(-0.9, 0.6), "is", "inconclusive", "0.90 ± 0.60 nats below | within noise | '--check-graphs'"),
        (LOOSE, spread(-3.0, 0.3), "is", "not reliable", "3.00 ± 0.30 nats below | significantly | '--check-graphs'"),
        (TIGHT, spread(0.4, 0.05), "is", "reliable", "too high | 0.30 ± 0.05 above the upper bound, significantly"),
        (TIGHT, spread(0.4, 0.2), "is", "reliable", "too high | 0.30 ± 0.20 above the upper bound, within noise"),
        # Distances that round to zero are not outside.
        (NOTHING, spread(0.004, 0.01), "is", "reliable", "0.00 ± 0.01 nats too high"),
        (NOTHING, spread(-0.004, 0.01), "is", "reliable", "0.00 ± 0.01 nats too high"),
        # Bounds that cross significantly are not reliable; within noise or within the tolerance they are accepted.
        (CROSSED, [0.2, 0.3, 0.1], "is", "unknown", "cross | 5.20 ± 0.12 above the upper | too high | '--chains'"),
        (spread(-1.5, 0.6), spread(0.2, 0.1), "is", "reliable", "above | too high"),
        (spread(-0.5, 0.01), spread(0.2, 0.01), "is", "reliable", "above | too high"),
        # One graph has no standard error.
        ([0.1], [0.1], "is", "inconclusive", f"on 1 graph | 0.10 nats {FEW}"),
        ([0.1], [-0.3], "is", "inconclusive", "on 1 graph | 0.30 nats below | '--check-graphs'"),
        ([0.1], [0.4], "is", "inconclusive", f"on 1 graph | 0.30 above | 0.40 nats {FEW}"),
        # Infinite estimates.
        ([0.1], [math.inf], "is", "unknown", "apart"),
        ([math.inf], None, "ais", "unknown", "apart"),
        ([0.1, 0.2, 0.1, 0.2], [math.inf, 0.1, 0.1, 0.1], "is", "not reliable", "inf nats too high | above"),
        ([math.inf, 0.1, 0.1, 0.1], None, "ais", "unknown", "inf nats apart"),
    ],
)
def test_verdicts_take_standard_errors_into_account(
    gaps: list[float], importance: list[float] | None, method: str, verdict: str, facts: str
) -> None:
    text = bdmc_verdict(bdmc(gaps, importance), method)

    assert text.split(":")[0] == verdict
    assert all(fact in text for fact in facts.split(" | ")), text
    for word in ("too high", "below", "above", "apart", "cross", "'--check-graphs'"):
        assert (word in text) == (word in facts), text
    assert "nan" not in text
    if len(gaps) == 1 or math.inf in (importance or gaps):
        assert "nois" not in text
        assert "±" not in text


def test_models_without_annealing_are_advised_to_raise_the_samples() -> None:
    for bounds in (bdmc(TIGHT, spread(4.0, 0.5)), bdmc(APART), bdmc(CROSSED, [0.2, 0.3, 0.1])):
        text = bdmc_verdict(bounds, "is", anneals=False)
        assert "'-k'" in text
        assert not any(option in text for option in ("--method", "--steps", "--chains"))


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
        ([2.0, 2.2, 1.8], "2.00 ± 0.12 above the ER baseline, which does better than"),
        ([2.0, -1.7, 0.3], "0.20 ± 1.07 above the ER baseline, within noise, which does as"),
        ([2.0], "2.00 above the ER baseline, possibly by noise, which does as"),
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
    assert "2.50 ± 0.06 above the ER baseline, which does better than the model." in finding
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


@pytest.mark.parametrize(
    ("nlls", "gain"), [([5, 4, 3.5, 3], 0.5), ([5, 4, 3, 3.5], None), ([5, 4, 3.01, 3], None), ([3], None)]
)
def test_a_run_still_improves_if_its_last_quarter_did(nlls: list[float], gain: float | None) -> None:
    history = [SimpleNamespace(epoch=epoch, validation=nll) for epoch, nll in enumerate(nlls, 1)]
    model = SimpleNamespace(results={"best_epoch": 1 + nlls.index(min(nlls))})
    run = SimpleNamespace(history=history, length=SimpleNamespace(epochs=len(nlls)), model=model)

    assert late_gain(run) == (None if gain is None else pytest.approx(gain))  # type: ignore[arg-type]
