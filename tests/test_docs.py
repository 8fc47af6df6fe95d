import json
import os
import re
import shlex
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from graphite_gen.cli.main import COMMANDS, main

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "docs").rglob("*.ipynb"))]

# As written these take minutes; the last value of an option counts.
SHORTER = {
    r"train (?!.*--(?:resume|single))": "--epochs 1 --epoch-graphs 32 --batch-size 16",
    r"train --family": "--graphs 64",
    r"train .*--resume --epochs": "--epochs 2",
    r"(?:link|classify|embed|train --single) ": "--epochs 5",
    r"complete ": "--runs 2 --steps 8 --particles 8",
    r"nll (?!.*--check)": "-k 4",
    r"evaluate ": "--most 40",
}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@cache
def text_of(page: Path) -> str:
    """Return a page as Markdown; the code cells of a notebook become Python blocks."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".md":
        return text
    sources = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"]]

    return "\n".join(source if kind == "markdown" else f"```python\n{source}\n```\n" for kind, source in sources)


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the language and the text of each runnable block; ``norun`` marks the others."""
    found = re.findall(r"^```(sh|python)\n(.*?)^```$", text_of(page), re.MULTILINE | re.DOTALL)

    return [(language, text) for language, text in found if "make " not in text]


def shortened(text: str) -> str:
    for command, options in SHORTER.items():
        text = re.sub(rf"^graphite-gen {command}[^|>\n]*", rf"\g<0> {options} ", text, flags=re.MULTILINE)

    return text


def run_commands(text: str) -> None:
    """Run shell commands, in this process unless they need a shell."""
    if "|" in text:
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        return
    for line in text.splitlines():
        command, _, target = line.partition(" > ")
        program, *args = shlex.split(command)
        assert program == "graphite-gen", f"'{line}' needs a shell: mark the block 'sh norun'"
        result = CliRunner().invoke(main, args)
        assert result.exit_code == 0, f"{line}\n{result.output}\n{result.exception!r}"
        if target:
            Path(target.strip()).write_text(result.stdout, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.usefixtures("single_precision")
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name_of)
def test_every_block_of_the_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    for language, text in blocks(page):
        if language == "sh":
            # A pipe may span several lines, so it is a command of its own.
            for part in re.split(r"\n(?=graphite-gen )", shortened(text).strip()):
                run_commands(part)
        else:
            exec(compile(re.sub(r"^%.*$", "", text, flags=re.MULTILINE), page.name, "exec"), names)
            if "are stars" in text:
                stars = re.search(r"(\d+) of 20 are stars", capsys.readouterr().out)
                assert stars is not None
                assert int(stars[1]) >= 18


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_options_and_commands_of_the_page_exist(page: Path) -> None:
    for command, line in re.findall(r"^(?:torchrun.*-m graphite_gen|graphite-gen) (\w+)(.*)$", text_of(page), re.M):
        assert command in COMMANDS, command
        parameters = getattr(import_module(f"graphite_gen.cli.commands.{command}"), command).params
        known = {option for each in parameters if isinstance(each, click.Option) for option in each.opts}
        known |= {option for each in parameters for option in each.secondary_opts}
        for option in re.findall(r"(?<=\s)--[a-z-]+", line):
            assert option in known, f"{command} {option}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_tables_of_the_page_are_those_of_the_benchmarks(page: Path) -> None:
    for name, text in re.findall(r"<!-- begin ([\w-]+) -->\n(.*?)<!-- end \1 -->", text_of(page), re.DOTALL):
        assert text == (ROOT / "benchmarks" / "results" / f"{name}.md").read_text(encoding="utf-8"), name


def test_every_result_is_on_a_page_and_rendered_from_its_json() -> None:
    from benchmarks.tables import render

    pages = "".join(map(text_of, PAGES))
    for path in (ROOT / "benchmarks" / "results").glob("*.md"):
        assert f"<!-- begin {path.stem} -->" in pages, path.stem
        assert path.read_text(encoding="utf-8") == render(json.loads(path.with_suffix(".json").read_text()))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_modules_and_links_of_the_page_exist(page: Path) -> None:
    text = text_of(page)
    for path in re.findall(r"`((?:graphite_gen|benchmarks|tests|cli|docs)/[\w./-]+)`", text):
        assert (ROOT / path).exists(), path
    for module in re.findall(r"python -m (benchmarks[\w.]+)", text):
        assert (ROOT / module.replace(".", "/")).with_suffix(".py").exists(), module
    for link in re.findall(r"\]\((?!http)([^)#\s]+)", text):
        assert (page.parent / link).exists(), link


def test_symbols_of_the_paper_map_and_the_architecture_exist() -> None:
    pages = "".join((ROOT / "docs" / "concepts" / f"{name}.md").read_text() for name in ("paper-map", "architecture"))
    symbols = set(re.findall(r"`((?:graphite_gen|benchmarks)(?:\.\w+)+)`", pages))
    assert len(symbols) > 20

    for symbol in symbols:
        parts = symbol.split(".")
        size = max(n for n in range(1, len(parts) + 1) if _is_module(".".join(parts[:n])))
        found: Any = import_module(".".join(parts[:size]))
        for part in parts[size:]:
            found = getattr(found, part)


def _is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")

    return path.is_dir() or path.with_suffix(".py").exists()


def test_each_equation_is_on_the_paper_map() -> None:
    rows = re.findall(r"^\| (\d+) \|", (ROOT / "docs" / "concepts" / "paper-map.md").read_text(), re.MULTILINE)

    assert list(map(int, rows)) == list(range(1, 11))


def test_readme_fits_on_two_screens_and_its_make_targets_exist() -> None:
    readme, makefile = (ROOT / "README.md").read_text(), (ROOT / "Makefile").read_text()

    assert len(readme.splitlines()) <= 150
    for target in re.findall(r"make (\w+)", readme):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.usefixtures("single_precision")
def test_clone_to_first_picture_is_two_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readme, makefile = (ROOT / "README.md").read_text(), (ROOT / "Makefile").read_text()
    monkeypatch.chdir(tmp_path)
    first, second = re.search(r"^make (\w+).*\n\.venv/bin/(graphite-gen [^#]*)", readme, re.MULTILINE).groups()  # type: ignore[union-attr]
    stamp, sample = re.search(rf"^{first}: (.*)\n\t\$\(BIN\)/(.*)", makefile, re.MULTILINE).groups()  # type: ignore[union-attr]
    run_commands(f"{sample}\n{second}")

    assert Path("samples.png").read_bytes().startswith(b"\x89PNG")
    assert re.search(rf"^{re.escape(stamp)}:.*\n.*\n.*'\.\[plot\]'", makefile, re.MULTILINE), "matplotlib is installed"


def test_quickstart_is_what_its_script_writes() -> None:
    script = (ROOT / "docs" / "build_quickstart.py").read_text(encoding="utf-8")
    cells = json.loads((ROOT / "docs" / "tutorials" / "quickstart.ipynb").read_text(encoding="utf-8"))["cells"]

    assert all("".join(cell["source"]) in script for cell in cells)
    assert all(cell["execution_count"] for cell in cells if cell["cell_type"] == "code")


@pytest.mark.parametrize("path", sorted((ROOT / "graphite_gen").rglob("*.py")), ids=lambda path: path.stem)
def test_every_argument_has_its_own_line_in_a_docstring(path: Path) -> None:
    """The reference lists arguments one by one, and its build fails on others."""
    for section in re.findall(r"^ +Arguments:\n((?: {8,}.*\n)+)", path.read_text(encoding="utf-8"), re.MULTILINE):
        assert not re.findall(r"^ {8}\w+, \w+.*: ", section, re.MULTILINE)
