from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphite_gen.cli.types import (
    DECODER,
    DEGREES,
    DURATION,
    FEATURES,
    NAME,
    NODES,
    PARAMETER,
    PATH,
    PATH_OR_DASH,
    PATH_OR_NAME,
    SEED,
    shown_duration,
)


@given(st.integers(1, 10**6), st.integers(0, 10**3))
def test_nodes_are_a_number_or_a_range(low: int, more: int) -> None:
    assert NODES.convert(str(low), None, None) == (low, low)
    assert NODES.convert(f"{low}:{low + more}", None, None) == (low, low + more)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (PARAMETER, "largest-component = yes", ("largest_component", "yes")),
        (PARAMETER, "p=0.5=x", ("p", "0.5=x")),
        (DECODER, "autoregressive", "autoregressive"),
        (DECODER, "one-shot", "one-shot"),
        (DECODER, "1", "one-shot"),
        (DECODER, "8", "autoregressive"),
        (DECODER, "all", "autoregressive"),
        (DURATION, "90s", 90.0),
        (DURATION, "10m", 600.0),
        (DURATION, "1.5h", 5400.0),
        (SEED, str(2**63 - 1), 2**63 - 1),
        (FEATURES, "degree, random", ("degree", "random")),
        (PATH, ".", Path()),
        (PATH_OR_DASH, "-", Path("-")),
        (PATH_OR_NAME, "barabasi", "barabasi"),
    ],
)
def test_values_are_parsed(kind: Any, text: str, value: Any) -> None:
    assert kind.convert(text, None, None) == value


@pytest.mark.parametrize(
    ("kind", "texts", "hint"),
    [
        (NODES, ["", "-3", "10:", ":20", "10-20", "1:2:3", "ten", "1.5", "1e3", "٣"], "as in 15"),
        (NODES, ["0", "0:3"], "smallest number is 1"),
        (NODES, ["20:10"], "smaller number first"),
        (PARAMETER, ["m", "=3", "m=", ""], "KEY=VALUE"),
        (DECODER, ["-1", "1.5", "staged", ""], "'one-shot'"),
        (DURATION, ["", "10", "0s", "-5m", "m", "10 minutes", "1h30m"], "as in 90s, 10m or 2h"),
        (DEGREES, ["/dev/zero", "nowhere.txt", "3,x", ",", "-1"], "degree"),
        (SEED, ["-1", "1.5", "x", str(2**63), ""], "whole number"),
        (FEATURES, ["degree,colour", "colour"], "'colour'"),
        (NAME, ["", "..", "a/b", ".hidden", "a\\b", "--x"], "folder"),
        (PATH, [""], "empty"),
        (PATH_OR_DASH, [""], "empty"),
        (PATH_OR_NAME, [""], "empty"),
    ],
)
def test_other_values_are_refused_with_a_hint(kind: Any, texts: list[str], hint: str) -> None:
    for text in texts:
        with pytest.raises(click.BadParameter, match=hint):
            kind.convert(text, None, None)


@pytest.mark.parametrize("text", ["90s", "10m", "2h", "0.5s", "5400s"])
def test_a_duration_is_shown_as_it_can_be_written(text: str) -> None:
    seconds = DURATION.convert(text, None, None)

    assert DURATION.convert(shown_duration(seconds), None, None) == seconds
