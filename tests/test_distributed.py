"""Training by real processes of torchrun on loopback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from distributed_training import CASES

SCRIPT = Path(__file__).with_name("distributed_training.py")


@pytest.mark.slow
def test_processes_learn_together_what_one_learns_alone() -> None:
    # Three, as not all numbers are divided by three without rounding.
    line = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "3", str(SCRIPT)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{title}: same" for title in CASES]
