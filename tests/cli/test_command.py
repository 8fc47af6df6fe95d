import re

import click
import pytest
from click.testing import CliRunner

from graphite_gen.cli.command import NO_BREAK, Command, Option
from graphite_gen.cli.main import COMMANDS, SECTIONS

from .conftest import run


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_every_option_once_with_one_default_and_ends_with_examples(command: str) -> None:
    text, _, examples = run(command, "--help").stdout.partition("Example:\n")
    shown = "\n".join(re.split(r"\n\n(?=\w[\w ]*:\n)", text)[1:])
    flags = [line.split()[0].rstrip(",") for line in shown.splitlines() if line.startswith("  -")]

    assert len(flags) == len(set(flags))
    assert "[default: " in shown
    assert all(option.count("[default: ") <= 1 for option in " ".join(shown.split()).split(" --"))
    assert "x>=" not in shown
    # Names of options are not broken across lines.
    assert not any(line.endswith("-") for line in text.splitlines())
    assert NO_BREAK not in text
    assert all(line.strip().startswith("graphite-gen ") for line in examples.splitlines() if line)
    assert f"graphite-gen {command}" in examples


def test_common_options_come_first_and_the_others_under_advanced() -> None:
    common, _, advanced = run("train", "--help").stdout.partition("\nAdvanced:\n")

    assert all(f"\n  {flag} " in common for flag in ("--family", "--decoder", "--epochs", "--name"))
    assert all(f"\n  {flag} " in advanced for flag in ("--clip", "--threads", "-h,"))
    assert "--stages" not in common + advanced


def test_commands_are_listed_in_sections() -> None:
    text = run("--help").stdout
    places = [text.index(f"\n{title}:\n") for title in SECTIONS]

    assert places == sorted(places)
    assert all(text.count(f"\n  {name} ") == 1 for name in COMMANDS)


def test_earlier_spellings_are_accepted_and_not_shown() -> None:
    @click.command(cls=Command)
    @click.option("--ordering", cls=Option, earlier=("--order",), find_default=lambda: "bfs", help="Node ordering.")
    def build(ordering: str) -> None:
        click.echo(ordering)

    assert CliRunner().invoke(build, ["--order", "dfs"]).stdout == "dfs\n"
    text = CliRunner().invoke(build, ["--help"]).stdout
    assert "--order " not in text
    assert "Node ordering.  [default: bfs]" in text
