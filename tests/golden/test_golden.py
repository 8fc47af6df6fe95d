"""Results for fixed seeds stay what they were when 'golden.json' was recorded, and nothing that was public is gone."""

import json
from pathlib import Path
from typing import Any

import pytest
from record import GOLDEN, RESULTS, commands

import graphite_gen

# Sentences for people, which may be worded otherwise.
PROSE = ("diagnosis", "remark")
RECORDED = json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, single_precision: None) -> None:
    monkeypatch.chdir(tmp_path)


def agrees(found: Any, recorded: Any) -> bool:
    """Whether all recorded entries are there and equal, numbers up to rounding."""
    if isinstance(recorded, dict):
        return all(key in found and (key in PROSE or agrees(found[key], recorded[key])) for key in recorded)
    if isinstance(recorded, list):
        return len(found) == len(recorded) and all(map(agrees, found, recorded))
    if isinstance(recorded, float):
        # Processors differ in the order of their sums in single precision.
        return found == pytest.approx(recorded, rel=1e-4, abs=1e-5)

    return bool(found == recorded)


def test_public_names_are_kept() -> None:
    assert [name for name in RECORDED["names"] if not hasattr(graphite_gen, name)] == []


def test_options_are_kept_with_their_values() -> None:
    found = commands()
    for name, spellings in RECORDED["options"].items():
        parameters = {flag: p for p in found[name].params for flag in (*p.opts, *p.secondary_opts)}
        for flag, _, value in (spelling.partition(" ") for spelling in spellings):
            assert flag in parameters, f"{name} {flag}"
            if value:
                parameters[flag].type.convert(value, parameters[flag], None)


@pytest.mark.parametrize(("part", "name"), [(part, name) for part, (_, names) in RESULTS.items() for name in names])
def test_results_for_fixed_seeds_are_the_recorded_ones(part: str, name: str) -> None:
    assert agrees(RESULTS[part][0](name), RECORDED[part][name])
