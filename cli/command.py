"""A command whose help ends with its example."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import cleandoc
from typing import Any

import click

__all__ = ["Command", "Option"]

MARK = "\b\nExample:"


class Command(click.Command):
    """Takes the example off the end of the docstring and shows it below the options."""

    def __init__(self, name: str | None, *, help: str | None = None, **kwargs: Any) -> None:
        text, mark, example = cleandoc(help or "").partition(MARK)
        super().__init__(name, help=text.rstrip(), epilog=mark + example, **kwargs)


class Option(click.Option):
    """An option that still takes its earlier spellings, which the help leaves out.

    Arguments:
        earlier: The earlier spellings.
    """

    def __init__(self, declarations: Sequence[str], /, earlier: Sequence[str] = (), **attributes: Any) -> None:
        super().__init__([*declarations, *earlier], **attributes)
        self.earlier = tuple(earlier)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        every = self.opts
        self.opts = [spelling for spelling in every if spelling not in self.earlier]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = every
