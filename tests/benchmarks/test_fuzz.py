import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.robustness import fuzz
from benchmarks.robustness.fuzzing import supervision
from graphite_gen.errors import FormatError


@pytest.mark.usefixtures("single_precision")
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_no_reader_fails_on_a_seeded_run(results: Path) -> None:
    fuzz.main(["--inputs", "2000", "--seed", "7"])

    found = json.loads((results / "fuzz.json").read_text(encoding="utf-8"))
    failures = {name: reader["failures"] for name, reader in found["details"]["readers"].items() if reader["failures"]}
    assert failures == {}
    assert found["rows"][-1][1] >= 1900
    assert found["rows"][-1][-5:] == [0] * 5
    # Every reader refuses some of its inputs.
    assert all(row[2] > 0 for row in found["rows"])


class Broken:
    """Fails in another way for each input."""

    name = "broken"
    weight = 1.0

    def trial(self, rng: random.Random, folder: Path) -> tuple[str, Callable[[], Any], Callable[[Any], str | None]]:
        kind = int((folder.parent / "next").read_text()) % 6
        (folder.parent / "next").write_text(str(kind + 1))

        def read() -> Any:
            if kind == 0:
                raise FormatError("no")
            if kind == 1:
                raise KeyError("x")
            if kind == 2:
                time.sleep(60)
            if kind == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            if kind == 4:
                return bytearray(3 << 30)
            return 0

        return str(kind), read, lambda value: "not what was written"


def test_every_kind_of_failure_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "SECONDS", 0.1)
    monkeypatch.setattr(supervision, "_WAITING", 0.5)
    (tmp_path / "next").write_text("0")

    found = list(supervision.outcomes(Broken(), 0, 6, tmp_path / "input"))

    assert [outcome.ending for outcome in found] == ["refused", "traceback", "hang", "crash", "memory", "corrupt"]
