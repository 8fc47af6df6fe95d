"""Commands and options whose help is grouped: common options first, the others under 'Advanced', an example last."""

import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from inspect import cleandoc
from typing import Any

import click
from click.core import ParameterSource

EXAMPLE = "\b\nExample:"
# Click shows a range such as '[x>=1]' for every number.
RANGE = re.compile(r"  \[[-\d.e<=]*x[-\d.e<>=]*\]|; [-\d.e<=]*x[-\d.e<>=]*(?=\])")
WIDEST_TERM = 26
# Stands for hyphens while lines are wrapped, so that the name of an option is not split.
NO_BREAK = "\N{NON-BREAKING HYPHEN}"


def is_given(name: str) -> bool:
    """Whether an option was passed on the command line."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def flag_of(name: str) -> str:
    """The long flag of an option of the current command, as in ``--samples`` or ``--mlp/--no-mlp``."""
    option = next(option for option in click.get_current_context().command.params if option.name == name)
    flag = next(flag for flag in option.opts if flag.startswith("--"))

    return "/".join([flag, *option.secondary_opts])


def shown_default(flag: str, value: Any) -> str:
    """A default as the help shows it; that of a switch is the name of the state."""
    if isinstance(value, bool):
        return flag.split("/")[not value].removeprefix("--")
    if isinstance(value, tuple):
        return ",".join(value) or "none"

    return f"{value:g}" if isinstance(value, float) else "auto" if value is None else str(value)


class Command(click.Command):
    """A command whose help shows options in named groups and ends with the example of its docstring.

    Arguments:
        groups: The parameter names of each group, separated by spaces; all other options are 'Advanced'.
        needs: For some options, the option without which they have no effect.
    """

    def __init__(
        self,
        name: str | None,
        *,
        help: str | None = None,
        groups: Mapping[str, str] | None = None,
        needs: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        text, mark, example = cleandoc(help or "").partition(EXAMPLE)
        super().__init__(name, help=text.rstrip(), epilog=mark + example, **kwargs)
        self.groups, self.needs = groups or {}, needs or {}

    def invoke(self, ctx: click.Context) -> Any:
        for name, other in self.needs.items():
            if is_given(name) and not ctx.params[other]:
                raise click.UsageError(f"'{flag_of(name)}' needs '{flag_of(other)}'.")

        return super().invoke(ctx)

    def get_help(self, ctx: click.Context) -> str:
        return super().get_help(ctx).replace(NO_BREAK, "-")

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(str(self.help).replace("-", NO_BREAK))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        records = {
            str(option.name): record
            for option in self.get_params(ctx)
            if isinstance(option, click.Option) and (record := option.get_help_record(ctx)) is not None
        }
        # The same column for the descriptions of all groups.
        width = min(WIDEST_TERM, max(len(term) for term, _ in records.values()))
        sections = {title: [records.pop(name) for name in names.split()] for title, names in self.groups.items()}
        only_help = len(records) == 1
        sections["Advanced" if sections and not only_help else "Options"] = list(records.values())
        for title, rows in sections.items():
            texts = [(term.ljust(width), RANGE.sub("", text).replace("-", NO_BREAK)) for term, text in rows]
            with formatter.section(title):
                formatter.write_dl(texts, WIDEST_TERM)


command = partial(click.command, cls=Command)


class Option(click.Option):
    """An option with earlier spellings that the help does not show, and a default that only the help looks up.

    Arguments:
        earlier: The earlier spellings.
        find_default: What the help shows as the default, where the parser's default is None.
        role: What the option is for, where its flag differs between commands.
    """

    def __init__(
        self,
        declarations: Sequence[str],
        /,
        earlier: Sequence[str] = (),
        find_default: Callable[[], str] | None = None,
        role: str = "",
        **attributes: Any,
    ) -> None:
        super().__init__([*declarations, *earlier], **attributes)
        self.earlier, self.find_default, self.role = earlier, find_default, role

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super(Option, self._current()).get_help_record(ctx)
        if record is None or self.find_default is None:
            return record
        # What click adds at the end is the range.
        text, _, bounds = record[1].partition("  [")

        return record[0], f"{text}  [default: {self.find_default()}{'; ' + bounds if bounds else ']'}"

    def get_error_hint(self, ctx: click.Context | None) -> str:
        return super(Option, self._current()).get_error_hint(ctx)

    def _current(self) -> "Option":
        """The option without its earlier spellings."""
        shown = copy(self)
        shown.opts = [spelling for spelling in self.opts if spelling not in self.earlier]

        return shown
