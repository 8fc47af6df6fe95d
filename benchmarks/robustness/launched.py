"""Commands under torchrun: waiting for their files, and finding their processes."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

__all__ = ["wait_for", "worker"]


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a running command has written a file."""
    while not path.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def worker(process: subprocess.Popen[str], rank: int) -> int:
    """The process id of a rank that torchrun has started."""
    for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        if f"\0RANK={rank}\0" in Path(f"/proc/{child}/environ").read_text():
            return int(child)
    raise AssertionError(f"no rank {rank}")
