"""The launch by torchrun that this process belongs to, from its environment variables."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["launch"]


def launch() -> str | None:
    """An identifier of this start of torchrun that its restarts share; None without torchrun."""
    name = os.environ.get("TORCHELASTIC_RUN_ID")
    if name is None:
        return None
    # The name alone may be a default, and process ids are reused, in containers at once.
    return f"{name}, process {os.getppid()}{_start_of(os.getppid())}"


def _start_of(process: int) -> str:
    """The start time of a process, where the system has it."""
    try:
        # The name of the program, in parentheses, may contain any character.
        ticks = Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (OSError, IndexError):
        return ""

    return f" from {ticks} of {boot}"
