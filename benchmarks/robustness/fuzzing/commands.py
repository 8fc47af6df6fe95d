"""Fuzzing of the options of every command, in this process."""

from __future__ import annotations

import importlib
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import torch
from click.testing import CliRunner, Result

from graphite_gen.cli.main import COMMANDS, main
from graphite_gen.errors import GraphiteError
from graphite_gen.families.simulate import generate
from graphite_gen.io import write_graphs

from .mutations import HOSTILE as ANY

__all__ = ["Commands"]

# Arguments that a shell can pass: no null characters, and no surrogates.
HOSTILE = tuple(word for word in ANY if "\0" not in word and "\ud800" not in word)
# The other arguments of each command: little work, or a missing file for slow commands.
_TINY = ("--threads", "1", "--model", "MODEL")
_LINES: dict[str, tuple[str, ...]] = {
    "train": ("missing.g6",),
    "sample": ("-n", "2", "-o", "out.g6", *_TINY),
    "complete": ("tree.graphml", "-n", "1", "--particles", "4", "--steps", "4", "--runs", "2", *_TINY),
    "nll": ("trees.g6", "-k", "2", *_TINY),
    "evaluate": ("trees.g6", "--reference", "trees.g6"),
    "plot": ("missing.g6", "-o", "out.png"),
    "report": ("missing", "-o", "out.html"),
    "generate": ("--family", "barabasi", "-n", "3", "--nodes", "5:6", "-o", "out.g6"),
    "families": (),
    "link": ("missing.edgelist",),
    "classify": ("missing.edgelist",),
    "embed": ("missing.edgelist", "-o", "out.csv"),
    "encode": ("trees.g6", "-o", "out.csv", *_TINY),
    "reconstruct": ("trees.g6", *_TINY),
    "interpolate": ("trees.g6", "trees.g6", "-o", "out.g6", *_TINY),
    "convert": ("trees.g6", "out.jsonl"),
    "inspect": ("trees.g6",),
}
# Options that set the amount of work: large numbers are valid, and slow.
_WORK = {
    *(
        "count",
        "graphs",
        "samples",
        "particles",
        "steps",
        "runs",
        "chains",
        "check_graphs",
        "epochs",
        "add_nodes",
        "seed",
    ),
    *("columns", "rows", "nodes", "floor", "entropy", "examples"),
}
_SMALL = tuple(word for word in HOSTILE if not word.strip().isdigit() or word in ("0", "1", "007"))
_NAMES = (
    "../x",
    "/",
    "",
    ".",
    "-",
    "x" * 300,
    "/dev/full",
    "/dev/null",
    "a\nb",
    "\udcff",
    "tree.graphml",
    "missing",
)


class RefusalError(GraphiteError):
    """A one-line error of a command."""


class Commands:
    """The command line with one or two corrupted options."""

    name = "options"

    def __init__(self, weight: float, root: Path) -> None:
        from .readers import _train

        self.weight = weight
        self._root = root
        _train(root / "model")
        trees = generate("powerlaw-tree", 4, nodes=(4, 6), seed=3).graphs
        write_graphs(trees, root / "trees.g6")
        write_graphs(trees[:1], root / "tree.graphml")
        self._options = {
            name: [
                each
                for each in getattr(importlib.import_module(f"graphite_gen.cli.commands.{name}"), name).params
                if isinstance(each, click.Option) and not each.is_flag and each.opts
            ]
            for name in COMMANDS
        }

    def trial(self, rng: random.Random, folder: Path) -> tuple[str, Callable[[], Any], Callable[[Any], str | None]]:
        name = rng.choice(COMMANDS)
        words = [word.replace("MODEL", str(self._root / "model")) for word in _LINES[name]]
        for option in rng.sample(self._options[name], k=min(rng.choice((1, 1, 2)), len(self._options[name]))):
            words += [rng.choice(option.opts), self._value(rng, option)]
        # A missing file must stay missing, since training would be slow.
        if rng.random() < 0.1 and words and not words[0].startswith("missing"):
            words[rng.randrange(len(words))] = rng.choice((*_NAMES, *_SMALL))
        for path in ("trees.g6", "tree.graphml"):
            (folder / path).symlink_to(self._root / path)

        def read() -> Result:
            os.chdir(folder)
            result = CliRunner().invoke(main, [name, *words])
            torch.set_num_threads(1)
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                raise result.exception
            if result.exit_code in (1, 2):
                last = result.stderr.strip().splitlines()[-1:]
                if "Unexpected" in result.stderr or not last or not last[0].startswith("Error: "):
                    raise RuntimeError(" ".join([name, *words])[:200] + ": " + result.stderr[-300:])
                raise RefusalError(last[0])
            return result

        def fault(result: Result) -> str | None:
            return None if result.exit_code == 0 else f"exit {result.exit_code}"

        return " ".join([name, *words])[:300], read, fault

    def _value(self, rng: random.Random, option: click.Option) -> str:
        if isinstance(option.type, click.Path):
            return rng.choice(_NAMES)
        if isinstance(option.type, click.Choice) and rng.random() < 0.5:
            return str(rng.choice(list(option.type.choices)))
        return rng.choice(_SMALL if option.name in _WORK else (*HOSTILE, *_NAMES))
