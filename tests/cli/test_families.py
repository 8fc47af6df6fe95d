import math

import numpy as np
import pytest

from graphite_gen.families import FAMILIES, family
from graphite_gen.families.entropies import known_entropy
from graphite_gen.rng import stream

from .conftest import run, run_json


def test_families_are_listed_with_parameters_and_entropies() -> None:
    rows = {row["name"]: row for row in run_json("families")}

    assert list(rows) == list(FAMILIES)
    assert all(rows[name]["parameters"] == kind().parameters() for name, kind in FAMILIES.items())
    assert rows["labelled-sbm"]["node_label"] == "block"
    assert [name for name, row in rows.items() if row["directed"] or row["weighted"]] == [
        "random-dag",
        "weighted-barabasi",
    ]
    exact = sum(math.comb(n, 2) for n in range(10, 21)) / 11 * math.log(2)
    assert rows["erdos-renyi"]["floor"] == pytest.approx(exact)
    # Without a closed form, the tabulated estimate and its standard error.
    errors = {name for name, row in rows.items() if row["floor_standard_error"] is not None}
    assert errors == {"barabasi", "geometric", "random-dag", "weighted-barabasi"}
    for name in errors:
        known = [known_entropy(family(name), n) for n in range(10, 21)]
        assert rows[name]["floor"] == pytest.approx(np.mean([entropy.nats for entropy in known if entropy]))


def test_an_entropy_is_computed_size_by_size() -> None:
    line = ("families", "--entropy", "ba", "--nodes", "6:8", "--graphs", 5, "--seed", 3, "--param", "m=2")
    value, shown = run_json(*line), run(*line)
    ba = family("barabasi", m=2)
    nats = {n: [-ba.log_prob(ba.sample(n, stream(3, "floor", n, i))) for i in range(5)] for n in (6, 7, 8)}

    assert (value["family"], value["parameters"], value["graphs"]) == ("barabasi", {"m": 2}, 15)
    assert [row["nodes"] for row in value["sizes"]] == [6, 7, 8]
    for row in value["sizes"]:
        assert row["floor"] == pytest.approx(np.mean(nats[row["nodes"]]))
        assert row["standard_error"] == pytest.approx(np.std(nats[row["nodes"]], ddof=1) / math.sqrt(5))
    assert value["floor"] == pytest.approx(np.mean(list(nats.values())))
    assert "5 graphs" in shown.stderr
    assert "nats per graph" in shown.stdout
    for row in (*value["sizes"], value):
        assert f"{row['floor']:.2f} ± {row['standard_error']:.2f}" in shown.stdout
    assert "gap" not in shown.stdout


def test_an_entropy_estimated_by_bounds_shows_the_bounds_and_their_gap() -> None:
    line = ("families", "--entropy", "geometric", "--nodes", "3:4", "--graphs", 3)
    value, text = run_json(*line), run(*line, env={"COLUMNS": "80"}).stdout

    for row in (*value["sizes"], value):
        assert row["gap"] == pytest.approx(row["upper"] - row["lower"])
        assert row["floor"] == pytest.approx((row["upper"] + row["lower"]) / 2)
        assert f"{row['lower']:.2f} to {row['upper']:.2f}" in text
    assert value["gap"] != 0
    assert "gap" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(("shift", "crossed"), [(0.5, True), (-0.5, False)])
def test_crossing_bounds_are_explained_as_noise(monkeypatch: pytest.MonkeyPatch, shift: float, crossed: bool) -> None:
    # Lower bounds of 3 and 5, upper ones of 2.5 and 4.7: crossed by 0.4 ± 0.1 in the mean.
    draws = iter([(3.0, 3.0 - shift), (5.0, 5.0 - shift + 0.2)] * 2)
    monkeypatch.setattr(FAMILIES["geometric"], "_draw_nats", lambda self, n, rng: next(draws))
    line = ("families", "--entropy", "geometric", "--nodes", 4, "--graphs", 2)
    result, value, gap = run(*line), run_json(*line), 0.1 - shift

    assert f"{gap:.2f} ± 0.10" in result.stdout
    assert (value["gap"], value["gap_standard_error"]) == pytest.approx((gap, 0.1))
    assert ("0.40 ± 0.10 at 4 nodes" in result.stderr) == crossed
    assert ("'--graphs'" in result.stderr) == crossed


def test_a_closed_form_needs_no_simulation() -> None:
    line = ("families", "--entropy", "regular", "--nodes", "5:6")
    result, value = run(*line), run_json(*line)

    # There is one 4-regular graph on five nodes, and there are fifteen on six.
    assert [row["floor"] for row in value["sizes"]] == pytest.approx([0, math.log(15)])
    assert (value["standard_error"], value["graphs"]) == (None, 0)
    assert result.stderr == ""
    assert "closed form" in result.stdout
    # Fewer graphs by default where each takes seconds.
    assert " 5 graphs" in run("families", "--entropy", "geometric", "--nodes", 2).stderr
    assert " 100 graphs" in run("families", "--entropy", "barabasi", "--nodes", 5).stderr


@pytest.mark.parametrize("columns", [80, 200])
def test_the_table_is_plain_complete_and_fits(columns: int) -> None:
    text = run("families", env={"COLUMNS": str(columns)}).stdout

    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= columns
    for word in ("nats", "10–20 nodes", "largest_component=false", *FAMILIES):
        assert word in text
    for row in run_json("families"):
        error = row["floor_standard_error"]
        assert f"{row['floor']:.2f}" + (f" ± {error:.2f}" if error else "") in text
