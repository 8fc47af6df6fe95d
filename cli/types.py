"""Types of option values, with errors that say how to write them."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from graphite_gen.config import ENCODER_FEATURES

LARGEST_SEED = 2**63 - 1
LONGEST_LIST = 1 << 24
"""The most characters read from a file of degrees."""
FIGURES = ("ratio", "discrepancy", "auc", "valid", "unique", "novel", "vun")
DECODERS = ("autoregressive", "one-shot")
UNITS = {"s": 1, "m": 60, "h": 3600}


class ParsedType(click.ParamType):  # type: ignore[type-arg]  # not generic in older versions of click
    """A type given by a function of the text, which raises ValueError with the message to show."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name, self.parse = name, parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except ValueError as error:
            return self.fail(str(error), param, ctx)


class PathType(click.Path):
    """A path that is not empty; an empty one, as of an unset variable, would be the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value):
            self.fail("the path is empty: pass a file or a folder, '.' for the current one.", param, ctx)

        return super().convert(value, param, ctx)


def _nodes(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,9})(?::(\d{1,9}))?", text.strip(), re.ASCII)
    if match is None:
        raise ValueError(f"'{text}' is not a number of nodes: write one, as in 15, or a range, as in 10:20.")
    low, high = int(match[1]), int(match[2] or match[1])
    if low < 1:
        raise ValueError(f"'{text}' includes graphs without nodes: the smallest number is 1.")
    if low > high:
        raise ValueError(f"'{text}' is an empty range: write the smaller number first, as in {high}:{low}.")

    return low, high


def _decoder(text: str) -> str:
    # Earlier, a number of decoding steps, or 'all'.
    if re.fullmatch(r"all|\d{1,9}", text, re.ASCII):
        return "one-shot" if text == "1" else "autoregressive"
    if text not in DECODERS:
        raise ValueError(f"'{text}' is not a decoder: write 'autoregressive' or 'one-shot'.")

    return text


def _duration(text: str) -> float:
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)([smh])", text.strip(), re.ASCII)
    seconds = float(match[1]) * UNITS[match[2]] if match else 0.0
    if not seconds:
        raise ValueError(f"'{text}' is not a duration: write it in seconds, minutes or hours, as in 90s, 10m or 2h.")

    return seconds


def shown_duration(seconds: float) -> str:
    """A duration as it is written on the command line."""
    unit = max((unit for unit in UNITS if seconds % UNITS[unit] == 0), key=UNITS.__getitem__, default="s")

    return f"{seconds / UNITS[unit]:g}{unit}"


def _parameter(text: str) -> tuple[str, str]:
    key, _, value = (part.strip() for part in text.partition("="))
    if not (key and value):
        raise ValueError(f"'{text}' is not a parameter: write it as KEY=VALUE, as in m=3.")

    return key.replace("-", "_"), value


def _condition(text: str) -> tuple[str, str]:
    name, _, value = (part.strip() for part in text.partition("="))
    if not (name and value):
        raise ValueError(f"'{text}' is not a condition: write it as NAME=VALUE, as in class=2 or clustering=0.4:0.5.")

    return name, value


def _content(path: Path) -> str:
    """The text of a file or a pipe, up to a bound; a device may never end."""
    try:
        if path.is_file() or path.is_fifo():
            with path.open(encoding="utf-8") as stream:
                return stream.read(LONGEST_LIST)
    except (OSError, ValueError):
        pass

    return ""


def _degrees(value: str) -> tuple[int, ...]:
    text = value if re.fullmatch(r"[\d,\s]+", value, re.ASCII) else _content(Path(value))
    if not text:
        raise ValueError(f"'{value}' is neither a list of degrees, as in 3,2,2,1, nor a file with one.")
    words = text.replace(",", " ").split()
    wrong = next((word for word in words if not re.fullmatch(r"\d{1,9}", word, re.ASCII)), None)
    if wrong is not None or not words:
        raise ValueError(f"'{wrong or value}' is not a degree: list whole numbers, one for each node.")

    return tuple(map(int, words))


def _seed(text: str) -> int:
    if not re.fullmatch(r"\d{1,19}", text.strip(), re.ASCII) or int(text) > LARGEST_SEED:
        raise ValueError(f"'{text}' is not a seed: write a whole number from 0 to {LARGEST_SEED}.")

    return int(text)


def _features(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = next((name for name in names if name not in ENCODER_FEATURES), None)
    if unknown is not None or not names:
        known = ", ".join(ENCODER_FEATURES)
        raise ValueError(f"'{unknown or text}' is not an encoder feature: list some of {known}, separated by commas.")

    return names


def _name(text: str) -> str:
    if not text.strip() or text.startswith((".", "-")) or any(sign in text for sign in "/\\\0"):
        raise ValueError(f"'{text}' cannot name a folder: it must not contain slashes or start with '.' or '-'.")

    return text


def _limit(text: str) -> tuple[str, float]:
    key, _, value = text.partition("=")
    try:
        limit = float(value)
    except ValueError:
        limit = float("nan")
    if key not in FIGURES or limit != limit:
        raise ValueError(f"'{text}' is not a limit: write one of {', '.join(FIGURES)}, as in ratio=3.")

    return key, limit


CONDITION = ParsedType("name=value", _condition)
DECODER = ParsedType("decoder", _decoder)
DEGREES = ParsedType("list|file", _degrees)
DURATION = ParsedType("duration", _duration)
FEATURES = ParsedType("list", _features)
LIMIT = ParsedType("figure=x", _limit)
NAME = ParsedType("name", _name)
NODES = ParsedType("n|low:high", _nodes)
PARAMETER = ParsedType("key=value", _parameter)
PATH = PathType(path_type=Path)
PATH_OR_DASH = PathType(path_type=Path, allow_dash=True)
PATH_OR_NAME = PathType(path_type=str)
SEED = ParsedType("n", _seed)
