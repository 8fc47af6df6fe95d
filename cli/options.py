"""Options that commands share."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from .command import Option, flag_of, is_given
from .types import DECODER, DECODERS, NODES, PARAMETER, PATH, PATH_OR_DASH, PATH_OR_NAME, SEED

FORMATS = ("graphml", "h5", "g6", "s6", "jsonl", "gml", "edgelist", "csv", "tsv")

EARLIER = {"--ordering": ("--order",), "--decoder": ("--stages",)}
"""Earlier spellings of settings."""
METAVARS = {DECODER: f"[{'|'.join(DECODERS)}]"}

F = TypeVar("F", bound=Callable[..., Any])


def refuse_without_effect(names: Iterable[str], on: str) -> None:
    """Raise a usage error if one of the options was passed."""
    for name in names:
        if is_given(name):
            raise click.UsageError(f"'{flag_of(name)}' has no effect on {on}. Leave it out.")


def all_of(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """One decorator for several options, in the order of the help."""

    def decorate(command: F) -> F:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def number(*names: str, low: int = 1, high: int | None = None, metavar: str = "N", **rest: Any) -> Callable[[F], F]:
    """A whole number in a range."""
    return click.option(*names, type=click.IntRange(low, high), metavar=metavar, show_default=True, **rest)


def choice(*names: str, of: Iterable[str], **rest: Any) -> Callable[[F], F]:
    """One of some words."""
    return click.option(*names, type=click.Choice(tuple(of)), show_default=True, **rest)


def name_of(flag: str) -> str:
    """The parameter name of a flag, as in ``mlp`` for ``--mlp/--no-mlp``."""
    return flag.partition("/")[0].removeprefix("--").replace("-", "_")


def settings(rows: Iterable[tuple[str, Any, str]], find_default: Callable[[str], str]) -> Callable[[F], F]:
    """Options for settings of the library, by flag, type (None for a switch) and help; None if not given."""

    def option(flag: str, kind: Any, help: str) -> Callable[[F], F]:
        metavar = METAVARS.get(kind, "N" if isinstance(kind, (click.IntRange, click.FloatRange)) else None)
        about = {"earlier": EARLIER.get(flag, ()), "find_default": partial(find_default, flag), "help": help}

        return click.option(flag, name_of(flag), cls=Option, type=kind, metavar=metavar, default=None, **about)

    return all_of(*(option(*row) for row in rows))


flag = partial(click.option, is_flag=True)
attribute = partial(click.option, metavar="NAME")
file = partial(click.option, type=PATH, metavar="FILE")
file_or_dash = partial(click.option, type=PATH_OR_DASH, metavar="FILE")

_format = partial(click.option, cls=Option, type=click.Choice(FORMATS, case_sensitive=False))


def input_format(flag: str = "--format") -> Callable[[F], F]:
    """The format of the graphs read."""
    return _format(flag, role="input_format", help="Input format.  [default: by suffix]")


def output_format(flag: str = "--format", default: str = "by suffix") -> Callable[[F], F]:
    """The format of the graphs written."""
    return _format(flag, role="output_format", help=f"Output format.  [default: {default}]")


def complete_models(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names of own and bundled models for the shell, and folders."""
    from graphite_gen import checkpoints

    places = (Path("checkpoints"), Path(checkpoints.__file__).parent)
    names = {path.parent.name for place in places for path in place.glob("*/config.json")}
    found = [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]

    return [*found, CompletionItem(incomplete, type="dir")]


def complete_families(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names of families for the shell."""
    from graphite_gen.families import FAMILIES

    return [CompletionItem(name) for name in FAMILIES if name.startswith(incomplete)]


def use_threads(threads: int | None) -> None:
    """Use this many CPU threads; None for all."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)


nodes = partial(click.option, "--nodes", type=NODES, show_default=True)
family = partial(click.option, "--family", metavar="NAME", shell_complete=complete_families)
parameters = click.option(
    "--param",
    "parameters",
    type=PARAMETER,
    multiple=True,
    help="Parameter of the family, as in m=3; may be repeated.  [default: see 'graphite-gen families']",
)
model = click.option(
    "--model",
    type=PATH_OR_NAME,
    metavar="PATH_OR_NAME",
    shell_complete=complete_models,
    help="Folder or name of the model.  [default: the last one trained under ./checkpoints, else a bundled one]",
)
output = file_or_dash(
    *("-o", "--output"),
    required=True,
    help="File to write, '-' for stdout, or a template such as 'out/{index:04d}.graphml' for one file per graph.",
)
seed = click.option("--seed", type=SEED, default=0, show_default=True, help="Random seed.")
device = choice("--device", of=("auto", "cpu", "cuda"), default="auto", help="Device; 'auto' is CUDA if available.")
threads = number(
    "--threads",
    high=4096,
    expose_value=False,
    callback=lambda context, option, threads: use_threads(threads),
    help="Number of CPU threads.  [default: all]",
)
workers = number(
    "--workers",
    high=256,
    default=1,
    help="Worker processes on this machine; the result does not depend on their number.",
)
simplify = flag(
    "--simplify", help="Ignore edge directions, self-loops and repeated edges.  [default: such graphs are an error]"
)
ignore_weights = flag("--ignore-weights", help="Ignore edge weights.  [default: weights are part of the model]")
force = flag("--force", help="Overwrite existing files.")
as_json = flag("--json", "as_json", help="Print JSON instead of a table.")
union = flag("--union", help="Write the disjoint union as one graph; the node attribute 'graph' is the graph's index.")
