from __future__ import annotations

from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphite_gen.cli.types import (
    DECODING_STEPS,
    FEATURES,
    NAME,
    NODES,
    PARAMETER,
    PATH,
    PATH_OR_DASH,
    PATH_OR_NAME,
    SEED,
)


@given(st.integers(1, 10**6), st.integers(0, 10**3))
def test_nodes_are_a_number_or_a_range(low: int, more: int) -> None:
    assert NODES.convert(str(low), None, None) == (low, low)
    assert NODES.convert(f"{low}:{low + more}", None, None) == (low, low + more)


@pytest.mark.parametrize("text", ["", "0", "-3", "20:10", "10:", ":20", "10-20", "1:2:3", "ten", "1.5", "1e3", "٣"])
def test_other_nodes_are_refused_with_the_way_to_write_them(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"(as in 15|smallest number is 1|smaller number first)"):
        NODES.convert(text, None, None)


def test_a_parameter_is_a_key_and_a_value() -> None:
    assert PARAMETER.convert("largest-component = yes", None, None) == ("largest_component", "yes")
    assert PARAMETER.convert("p=0.5=x", None, None) == ("p", "0.5=x")


@pytest.mark.parametrize("text", ["m", "=3", "m=", ""])
def test_other_parameters_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="KEY=VALUE"):
        PARAMETER.convert(text, None, None)


def test_stages_are_a_number_or_all_of_them() -> None:
    assert DECODING_STEPS.convert("8", None, None) == 8
    assert DECODING_STEPS.convert("all", None, None) == 0


@pytest.mark.parametrize("text", ["0", "00", "-1", "1.5", "ALL", "", "1234567890"])
def test_other_stages_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="from 1 on, as in 8, or 'all'"):
        DECODING_STEPS.convert(text, None, None)


@pytest.mark.parametrize("text", ["-1", "1.5", "x", str(2**63), ""])
def test_a_seed_is_a_whole_number_that_generators_take(text: str) -> None:
    assert SEED.convert(str(2**63 - 1), None, None) == 2**63 - 1
    with pytest.raises(click.BadParameter, match="whole number"):
        SEED.convert(text, None, None)


def test_encoder_features_are_a_list() -> None:
    assert FEATURES.convert("degree, random", None, None) == ("degree", "random")
    with pytest.raises(click.BadParameter, match="'colour'"):
        FEATURES.convert("degree,colour", None, None)


@pytest.mark.parametrize("text", ["", "..", "a/b", ".hidden", "a\\b", "--x"])
def test_a_name_stays_within_its_folder(text: str) -> None:
    with pytest.raises(click.BadParameter):
        NAME.convert(text, None, None)


def test_an_empty_name_is_not_the_current_folder() -> None:
    assert PATH.convert(".", None, None) == Path()
    assert PATH_OR_DASH.convert("-", None, None) == Path("-")
    assert PATH_OR_NAME.convert("barabasi", None, None) == "barabasi"
    for kind in (PATH, PATH_OR_DASH, PATH_OR_NAME):
        with pytest.raises(click.BadParameter, match="the name is empty"):
            kind.convert("", None, None)
