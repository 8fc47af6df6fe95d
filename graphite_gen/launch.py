"""What torchrun has told the processes that it started, beside their numbers."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["launch", "local_rank", "program", "restarts"]


def restarts() -> int:
    """How often torchrun has started this run anew after a process was lost."""
    count = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")

    return int(count) if count.isdecimal() else 0


def launch() -> str | None:
    """What tells this start of torchrun from every other and outlasts its restarts; None without torchrun."""
    name = os.environ.get("TORCHELASTIC_RUN_ID")
    # Its user may leave it unnamed or always give the same name, but who started us stays.
    return None if name is None else f"{name}, process {os.getppid()}{_start_of(os.getppid())}"


def _start_of(process: int) -> str:
    """When a process started, where the system tells: its number alone comes again, in containers at once."""
    try:
        # Its own name, in brackets, may have any signs in it.
        ticks = Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (OSError, IndexError):
        return ""

    return f" from {ticks} of {boot}"


def local_rank() -> int | None:
    """The number of this process on its host, by torchrun, which also numbers the host's devices; None without it."""
    number = os.environ.get("LOCAL_RANK", "")

    return int(number) if number.isdecimal() else None


def program() -> str:
    """How to call the program as it was called now, up to the name of the command."""
    if launch() is None:
        return "graphite-gen"
    here = os.environ.get("LOCAL_WORLD_SIZE")
    # Who meets over several hosts knows how.
    options = f"--nproc-per-node {here}" if here == os.environ.get("WORLD_SIZE") else "…"

    return f"torchrun {options} -m graphite_gen"
