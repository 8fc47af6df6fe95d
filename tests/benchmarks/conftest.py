from pathlib import Path

import pytest

from benchmarks import tables


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that results are written to, in place of the one in the repository."""
    monkeypatch.setattr(tables, "FOLDER", tmp_path / "results")
    monkeypatch.setattr(tables, "DOCS", tmp_path / "docs")

    return tmp_path / "results"
