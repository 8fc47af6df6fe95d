"""What the values of options may look like, with errors that say how to write them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    # Older versions of click have no generic one.
    ParamType = click.ParamType

__all__ = [
    "DECODING_STEPS",
    "DEGREES",
    "FEATURES",
    "LIMIT",
    "NAME",
    "NODES",
    "PARAMETER",
    "PATH",
    "PATH_OR_DASH",
    "PATH_OR_NAME",
    "SEED",
]

LARGEST_SEED = 2**63 - 1
LONGEST_LIST = 1 << 24
"""The most characters of a file of degrees."""
FIGURES = ("ratio", "discrepancy", "auc", "valid", "unique", "novel", "vun")
ENCODER_FEATURES = ("identity", "constant", "degree", "random")


class NodesType(ParamType):
    """A number of nodes or a range of them, as a pair."""

    name = "n or low:high"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"(\d{1,9})(?::(\d{1,9}))?", str(value).strip(), re.ASCII)
        if match is None:
            self.fail(f"'{value}' is not a number of nodes: write one, as in 15, or a range, as in 10:20.", param, ctx)
        low = int(match[1])
        high = int(match[2] or low)
        if low < 1:
            self.fail(f"'{value}' has graphs without nodes: the smallest number is 1.", param, ctx)
        if low > high:
            self.fail(f"'{value}' is empty: write the smaller number first, as in {high}:{low}.", param, ctx)

        return low, high


class DecodingStepsType(ParamType):
    """A number of stages; 'all', one pair at a time, is 0 to the library."""

    name = "n or all"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip()
        if text == "all":
            return 0
        if not re.fullmatch(r"0*[1-9]\d{0,8}", text, re.ASCII):
            self.fail(f"'{value}' is not a number of stages: write one from 1 on, as in 8, or 'all'.", param, ctx)

        return int(text)


class ParameterType(ParamType):
    """A parameter of a family, as a pair of texts."""

    name = "key=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        key, equals, text = str(value).partition("=")
        if not (key.strip() and equals and text.strip()):
            self.fail(f"'{value}' is not a parameter: write it as KEY=VALUE, as in m=3.", param, ctx)

        return key.strip().replace("-", "_"), text.strip()


def _content(path: Path) -> str:
    """The text of a file or a pipe, if it is one; a device may never end, and nor may what is piped."""
    try:
        if path.is_file() or path.is_fifo():
            with path.open(encoding="utf-8") as stream:
                return stream.read(LONGEST_LIST)
    except (OSError, ValueError):
        pass

    return ""


class DegreesType(ParamType):
    """Numbers of neighbours, written out or in a file."""

    name = "list or file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        text = str(value)
        if not re.fullmatch(r"[\d,\s]+", text, re.ASCII):
            text = _content(Path(text))
            if not text:
                self.fail(f"'{value}' is no list of degrees, as in 3,2,2,1, nor a file that has one.", param, ctx)
        words = [word for word in re.split(r"[,\s]+", text.strip()) if word]
        wrong = next((word for word in words if not re.fullmatch(r"\d{1,9}", word, re.ASCII)), None)
        if wrong is not None or not words:
            self.fail(f"'{wrong or value}' is no degree: list whole numbers, one for each node.", param, ctx)

        return tuple(map(int, words))


class SeedType(ParamType):
    """A whole number that every generator takes."""

    name = "seed"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip()
        if not re.fullmatch(r"\d{1,19}", text, re.ASCII) or int(text) > LARGEST_SEED:
            self.fail(f"'{value}' is not a seed: write a whole number from 0 to {LARGEST_SEED}.", param, ctx)

        return int(text)


class FeaturesType(ParamType):
    """A comma-separated list of encoder features."""

    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        names = tuple(name.strip() for name in str(value).split(",") if name.strip())
        unknown = next((name for name in names if name not in ENCODER_FEATURES), None)
        if unknown is not None or not names:
            wanted = ", ".join(ENCODER_FEATURES)
            self.fail(f"'{unknown or value}' is no encoder feature: list some of {wanted}, with commas.", param, ctx)

        return names


class NameType(ParamType):
    """A name that a folder can have."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not text.strip() or text.startswith((".", "-")) or any(sign in text for sign in "/\\\0"):
            self.fail(f"'{text}' cannot name a folder: leave out slashes and leading dots.", param, ctx)

        return text


class PathType(click.Path):
    """A path; none at all, as of a variable that is not set, would be the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value):
            self.fail("the name is empty: give that of a file or a folder, '.' for the current one.", param, ctx)

        return super().convert(value, param, ctx)


class LimitType(ParamType):
    """A figure of an evaluation and its limit."""

    name = "figure=x"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        if isinstance(value, tuple):
            return value
        key, _, text = str(value).partition("=")
        try:
            limit = float(text)
        except ValueError:
            limit = float("nan")
        if key not in FIGURES or limit != limit:
            self.fail(f"'{value}' is no limit: write one of {', '.join(FIGURES)}, as in ratio=3.", param, ctx)

        return key, limit


DEGREES = DegreesType()
LIMIT = LimitType()
NODES = NodesType()
PARAMETER = ParameterType()
PATH = PathType(path_type=Path)
PATH_OR_DASH = PathType(path_type=Path, allow_dash=True)
PATH_OR_NAME = PathType(path_type=str)
SEED = SeedType()
FEATURES = FeaturesType()
NAME = NameType()
DECODING_STEPS = DecodingStepsType()
