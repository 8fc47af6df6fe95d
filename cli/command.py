"""A command whose help ends with its example."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

import click

__all__ = ["Command"]

MARK = "\b\nExample:"


class Command(click.Command):
    """Takes the example off the end of the docstring and shows it below the options."""

    def __init__(self, name: str | None, *, help: str | None = None, **kwargs: Any) -> None:
        text, mark, example = cleandoc(help or "").partition(MARK)
        super().__init__(name, help=text.rstrip(), epilog=mark + example, **kwargs)
