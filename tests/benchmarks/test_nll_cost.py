import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.performance import nll_cost

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nll_cost, "PROGRAM", (sys.executable,))


def test_memory_and_time_are_those_of_the_child() -> None:
    # More than this process has, since a child inherits its peak.
    cost = nll_cost.run("-c", "import time; x = b'1' * 2_000_000_000; time.sleep(0.5)")

    assert 2000 < cost["megabytes"] < 2050
    assert cost["seconds"] > 0.5
    assert cost["cpu_seconds"] < cost["seconds"]


def test_script_starts_the_program_before_it_imports_torch() -> None:
    code = "import sys, benchmarks.performance.nll_cost; print([x for x in ('torch', 'numpy') if x in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)

    assert done.stdout.strip() == "[]", done.stderr


def test_failing_program_is_reported() -> None:
    with pytest.raises(SystemExit, match="failed"):
        nll_cost.run("-c", "raise SystemExit(3)")
