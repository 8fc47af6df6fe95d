import re
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from graphite_gen.cli.command import NO_BREAK, Command, Option
from graphite_gen.cli.main import COMMANDS, SECTIONS, main
from graphite_gen.cli.types import NODES, PARAMETER, PATH_OR_NAME, SEED

from .conftest import invoke, run

WRITERS = ("sample", "complete", "generate", "convert", "reconstruct", "interpolate")


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


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("sample --model ba", {"barabasi", "barabasi-one-shot"}),
        ("sample --model mi", {"mine"}),
        ("train --from mi", {"mine"}),
        ("nll --family e", {"ego", "erdos-renyi"}),
        ("ge", {"generate"}),
    ],
)
def test_the_shell_completes_commands_models_and_families(words: str, found: set[str], own_folder: Path) -> None:
    (own_folder / "checkpoints" / "mine").mkdir(parents=True)
    (own_folder / "checkpoints" / "mine" / "config.json").touch()
    *args, incomplete = words.split()
    items = ShellComplete(main, {}, "graphite-gen", "_X").get_completions(args, incomplete)

    assert {item.value for item in items if item.type == "plain"} == found


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("trian", "train"),
        ("sample --model barabsi -o a.g6", "barabasi"),
        ("generate --family egp -o a.g6", "ego"),
        ("generate --family geometric --param largest_comp=true -o a.g6", "largest_component"),
    ],
)
def test_misspelt_names_get_a_suggestion(line: str, hint: str) -> None:
    result = invoke(*line.split())

    assert f"did you mean '{hint}'?" in result.stderr.splitlines()[-1]
    assert result.exit_code in (1, 2)


@pytest.mark.parametrize("command", COMMANDS)
def test_options_have_the_same_meaning_in_all_commands(command: str) -> None:
    found = getattr(import_module(f"graphite_gen.cli.commands.{command}"), command)
    for option in (option for option in found.params if isinstance(option, click.Option)):
        for flag, own in (("--seed", SEED), ("--nodes", NODES), ("--model", PATH_OR_NAME), ("--param", PARAMETER)):
            assert flag not in option.opts or option.type is own
        if "--union" in option.opts or "--force" in option.opts:
            assert option.is_flag
        assert "--threads" not in option.opts or isinstance(option.type, click.IntRange)
    flags = {flag for option in found.params for flag in option.opts}
    # A command that writes graphs can write their disjoint union, and replace files; one that uses a model can say how.
    assert {"--union", "--force"} <= flags or command not in WRITERS
    assert {"--seed", "--device", "--threads"} <= flags or "--model" not in flags
