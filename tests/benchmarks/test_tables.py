import json
from pathlib import Path

from benchmarks import tables


def test_publish_records_provenance_and_updates_the_page(results: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "page.md"
    page.write_text("before\n<!-- begin x -->\nold\n<!-- end x -->\nafter\n", encoding="utf-8")

    tables.publish("x", "A title", ["a", "b"], [["one", 2.0], ["two", 1000]], {"settings": {"seed": 1}})

    text = (results / "x.md").read_text(encoding="utf-8")
    stored = json.loads((results / "x.json").read_text(encoding="utf-8"))
    assert page.read_text(encoding="utf-8") == f"before\n<!-- begin x -->\n{text}<!-- end x -->\nafter\n"
    assert text == tables.render(stored)
    assert "| two | 1,000 |" in text
    assert stored["run"].keys() == {"command", "commit", "date"}
    assert "cores" in stored["machine"]["cpu"]
    assert stored["details"] == {"settings": {"seed": 1}}
