"""Every command and every snippet of the README runs, in the order in which a reader meets them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"

# What a reader types is tested, only shorter: as written it takes minutes.
SHORTER = {
    r"train (?!.*--(?:resume|single))": "--epochs 1 --epoch-graphs 64 --batch-size 32",
    r"(?:link|classify|embed|train --single) ": "--epochs 5",
    r"complete ": "--runs 2 --steps 20",
}


def blocks() -> list[tuple[str, str]]:
    """The language and the text of each runnable block."""
    found = re.findall(r"^```(sh|python)\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)

    return [(language, text) for language, text in found if "make " not in text]


def shortened(text: str) -> str:
    for command, options in SHORTER.items():
        text = re.sub(rf"^graphite-gen {command}.*$", rf"\g<0> {options}", text, flags=re.MULTILINE)

    return text


@pytest.mark.slow
def test_every_block_of_the_readme_runs_in_an_empty_folder(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    found = blocks()
    assert len(found) >= 10

    for language, text in found:
        command = (
            ["bash", "-euo", "pipefail", "-c", shortened(text)] if language == "sh" else [sys.executable, "-c", text]
        )
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        if "of 20 are stars" in text:
            assert int(done.stdout.split()[0]) >= 18, "what is shown as learned was not"


def test_the_readme_names_only_options_that_exist() -> None:
    from click.testing import CliRunner

    from graphite_gen.cli.main import main

    for command, line in re.findall(r"^graphite-gen (\w+)(.*)$", README.read_text(encoding="utf-8"), re.MULTILINE):
        known = CliRunner().invoke(main, [command, "--help"]).output
        for option in re.findall(r"(?<=\s)--[a-z-]+", line):
            assert option in known, f"{command} {option}"


def test_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make (\w+)", README.read_text(encoding="utf-8")):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_tables_of_the_readme_are_those_the_benchmarks_wrote() -> None:
    tables = re.findall(r"<!-- begin (\w+) -->\n(.*?)<!-- end \1 -->", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(tables) >= 3

    for name, text in tables:
        assert text == (ROOT / "benchmarks" / "results" / f"{name}.md").read_text(encoding="utf-8")
