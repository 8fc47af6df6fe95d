"""mkdocs hooks: the reference pages are generated from ``--help`` and from the table of public names."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

GROUPS = {
    "Models": ("api", "config", "records", "errors"),
    "Graphs and files": ("graph", "data", "io", "families"),
    "Constraints and latents": ("sampling",),
    "Completion": ("completion",),
    "Evaluation": ("evaluation",),
    "One large network": ("network",),
    "Figures": ("viz",),
}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in the generated parts of the reference."""
    if page.file.src_uri == "reference/cli.md":
        return markdown.replace("<!-- commands -->", commands())
    if page.file.src_uri == "reference/api.md":
        return markdown.replace("<!-- api -->", api())

    return markdown


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Turn the reStructuredText roles of docstrings into mathematics and code."""
    if page.file.src_uri != "reference/api.md":
        return html
    html = re.sub(r":math:<code>(.*?)</code>", r'<span class="arithmatex">\\(\1\\)</span>', html, flags=re.DOTALL)
    html = re.sub(r"<p>\.\. math:: (.*?)</p>", r'<div class="arithmatex">\\[\1\\]</div>', html, flags=re.DOTALL)

    return re.sub(r":(?:class|meth|func|data|attr|mod):<code>~?(?:[\w.]*\.)?(\w+)</code>", r"<code>\1</code>", html)


def commands() -> str:
    """Return the help of every command as Markdown."""
    from click.testing import CliRunner

    from graphite_gen.cli.main import COMMANDS, main

    parts = []
    for name in COMMANDS:
        text = CliRunner().invoke(main, [name, "--help"], prog_name="graphite-gen", terminal_width=100).output
        parts.append(f"## {name}\n\n```text\n{text.rstrip()}\n```\n")

    return "\n".join(parts)


def api() -> str:
    """Return a mkdocstrings directive for every public name, in groups."""
    from graphite_gen import _EXPORTS

    groups = defaultdict(list)
    for name, module in _EXPORTS.items():
        group = next((title for title, packages in GROUPS.items() if module.split(".")[0] in packages), "Other")
        groups[group].append(f"::: graphite_gen.{module}.{name}\n")

    return "\n".join(f"## {title}\n\n" + "\n".join(groups[title]) for title in (*GROUPS, "Other") if groups[title])
