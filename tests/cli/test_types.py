from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphite_gen.cli import types


@given(st.integers(1, 10**6), st.integers(0, 10**3))
def test_nodes_are_a_number_or_a_range(low: int, more: int) -> None:
    assert types.NODES.convert(str(low), None, None) == (low, low)
    assert types.NODES.convert(f"{low}:{low + more}", None, None) == (low, low + more)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (types.PARAMETER, "largest-component = yes", ("largest_component", "yes")),
        (types.PARAMETER, "p=0.5=x", ("p", "0.5=x")),
        (types.DECODER, "autoregressive", "autoregressive"),
        (types.DECODER, "one-shot", "one-shot"),
        (types.DECODER, "1", "one-shot"),
        (types.DECODER, "8", "autoregressive"),
        (types.DECODER, "all", "autoregressive"),
        (types.DURATION, "90s", 90.0),
        (types.DURATION, "10m", 600.0),
        (types.DURATION, "1.5h", 5400.0),
        (types.SEED, str(2**63 - 1), 2**63 - 1),
        (types.FEATURES, "degree, random", ("degree", "random")),
        (types.PATH, ".", Path()),
        (types.PATH_OR_DASH, "-", Path("-")),
        (types.PATH_OR_NAME, "barabasi", "barabasi"),
    ],
)
def test_values_are_parsed(kind: Any, text: str, value: Any) -> None:
    assert kind.convert(text, None, None) == value


@pytest.mark.parametrize(
    ("kind", "texts", "hint"),
    [
        (types.NODES, ["", "-3", "10:", ":20", "10-20", "1:2:3", "ten", "1.5", "1e3", "٣"], "as in 15"),
        (types.NODES, ["0", "0:3"], "smallest number is 1"),
        (types.NODES, ["20:10"], "smaller number first"),
        (types.PARAMETER, ["m", "=3", "m=", ""], "KEY=VALUE"),
        (types.DECODER, ["-1", "1.5", "staged", ""], "'one-shot'"),
        (types.DURATION, ["", "10", "0s", "-5m", "m", "10 minutes", "1h30m"], "as in 90s, 10m or 2h"),
        (types.DEGREES, ["/dev/zero", "nowhere.txt", "3,x", ",", "-1"], "degree"),
        (types.SEED, ["-1", "1.5", "x", str(2**63), ""], "whole number"),
        (types.FEATURES, ["degree,colour", "colour"], "'colour'"),
        (types.NAME, ["", "..", "a/b", ".hidden", "a\\b", "--x"], "folder"),
        (types.PATH, [""], "empty"),
        (types.PATH_OR_DASH, [""], "empty"),
        (types.PATH_OR_NAME, [""], "empty"),
    ],
)
def test_other_values_are_refused_with_a_hint(kind: Any, texts: list[str], hint: str) -> None:
    for text in texts:
        with pytest.raises(click.BadParameter, match=hint):
            kind.convert(text, None, None)


@pytest.mark.parametrize("text", ["90s", "10m", "2h", "0.5s", "5400s"])
def test_a_duration_is_shown_as_it_can_be_written(text: str) -> None:
    seconds = types.DURATION.convert(text, None, None)

    assert types.DURATION.convert(types.shown_duration(seconds), None, None) == seconds
