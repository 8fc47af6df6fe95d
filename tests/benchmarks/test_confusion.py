from pathlib import Path

import numpy as np
import pytest

from graphite_gen.families import PAPER_FAMILIES


@pytest.mark.slow
def test_every_family_is_closest_to_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    from benchmarks.reproduce import confusion

    monkeypatch.setattr(confusion, "PICTURE", tmp_path / "confusion.png")
    matrix = confusion.ratios(40, 5)
    confusion.draw(matrix, list(PAPER_FAMILIES))

    same = np.eye(6, dtype=bool)
    assert 0.5 < matrix[same].min() <= matrix[same].max() < 2
    assert matrix[~same].min() > 2
    assert confusion.PICTURE.read_bytes().startswith(b"\x89PNG")
