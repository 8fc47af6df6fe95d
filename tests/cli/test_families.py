from __future__ import annotations

import math

import pytest

from graphite_gen.families import FAMILIES

from .conftest import Invoke, only_json


def test_every_family_is_listed_with_its_parameters(invoke: Invoke) -> None:
    rows = only_json(invoke("families", "--json"))

    assert [row["name"] for row in rows] == list(FAMILIES)
    assert all(row["parameters"] == FAMILIES[row["name"]]().parameters() for row in rows)


def test_floors_are_those_of_the_laws(invoke: Invoke) -> None:
    floors = {row["name"]: row["floor"] for row in only_json(invoke("families", "--json"))}

    assert floors["erdos-renyi"] == pytest.approx(sum(math.comb(n, 2) for n in range(10, 21)) / 11 * math.log(2))
    assert floors["geometric"] is None


def test_the_help_explains_the_largest_component(invoke: Invoke) -> None:
    text = " ".join(invoke("families", "--help").stdout.split())

    assert "'largest_component=true' keeps the largest component" in text


@pytest.mark.parametrize("columns", [80, 200])
def test_the_table_is_plain_and_fits(invoke: Invoke, columns: int) -> None:
    result = invoke("families", env={"COLUMNS": str(columns)})

    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= columns
    assert all(name in result.stdout for name in FAMILIES)
    assert "largest_component=false" in result.stdout
