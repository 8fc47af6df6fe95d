"""A report on graphs whose names contain markup."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tiny import random_graph, small_model

from graphite_gen.graph import SimpleGraph
from graphite_gen.records import TrainRecord
from graphite_gen.training.checkpoint import save_checkpoint
from graphite_gen.viz.report import ReportData, collect_report, render_page

SCRIPT = "<script>document.title='caught'</script>"
ATTRIBUTE = '"><img src=x onerror="document.title=\'caught\'">'


def named(graph: SimpleGraph, index: int) -> SimpleGraph:
    """A graph with markup in its name, its node names and its attributes."""
    attributes = {"name": f"{ATTRIBUTE}{SCRIPT} {index}", "note": f"]]></data>{SCRIPT}"}

    return replace(graph, names=tuple(f"{ATTRIBUTE}{node}" for node in range(graph.nodes)), attributes=attributes)


@pytest.fixture(scope="session")
def contents(tmp_path_factory: pytest.TempPathFactory) -> ReportData:
    folder = tmp_path_factory.mktemp("model")
    save_checkpoint(replace(small_model(), name=f"a {SCRIPT}"), folder)
    records = [TrainRecord(k, k, 9.0 - k, 0.0, 8.0 if k > 1 else None, 8.0, 0.1, float(k)) for k in range(1, 4)]
    (folder / "history.jsonl").write_text("".join(json.dumps(record.to_json()) + "\n" for record in records))
    graphs = [named(random_graph(3 + k % 3, k), k) for k in range(40)]

    return collect_report(
        folder,
        reference=graphs[:20],
        reference_source=f"graphs of '{SCRIPT}.h5'",
        train=graphs[10:20],
        samples=graphs[20:],
        nll_graphs=3,
        command=f"graphite-gen report '{SCRIPT}'",
    )


@pytest.fixture(scope="session")
def page(contents: ReportData) -> str:
    return render_page(contents)


@pytest.fixture
def file(page: str, tmp_path: Path) -> Path:
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")

    return path
