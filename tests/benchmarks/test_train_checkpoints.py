import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks.reproduce import train_checkpoints as checkpoints
from graphite_gen.api import load
from graphite_gen.evaluation.activity import latent_activity
from graphite_gen.families import family
from graphite_gen.families.simulate import generate
from graphite_gen.likelihood.bdmc import GraphBDMC, summarise_bdmc
from graphite_gen.training.checkpoint import bundled_folder


@pytest.mark.usefixtures("single_precision")
def test_card_reports_the_bdmc_gap_with_its_error_and_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []
    rows = [GraphBDMC(10, 20, 30.0, 30.2, 30.5, 0.2), GraphBDMC(11, 22, 33.0, 33.6, 33.5, 0.2)]

    def check(model: Any, graphs: int, options: Any) -> Any:
        calls.append((model.name, graphs, options.samples))
        return summarise_bdmc(model.name, options, rows)

    monkeypatch.setattr(checkpoints, "bdmc_nll", check)
    folder = tmp_path / "ego"
    shutil.copytree(bundled_folder() / "ego-one-shot", folder)

    line = checkpoints.write_card(folder, graphs=3, samples=20, check_graphs=2)

    card = (folder / "README.md").read_text(encoding="utf-8")
    assert calls == [("ego-one-shot", 2, 20)]
    assert "| 0.40 ± 0.20 |" in card
    assert "2 graphs sampled from the model, 64 chains of 60 temperatures" in card
    assert "gap 0.40 ± 0.20" in line
    activity = latent_activity(load(str(folder)).encode(generate(family("ego"), 3, seed=checkpoints.TEST_SEED).graphs))
    assert f"same graphs | {activity.mutual_information:.2f} |" in card
    assert "1 of 8 units active" in card
