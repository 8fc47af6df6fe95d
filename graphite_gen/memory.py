"""How much memory there is, so that what cannot fit is refused before it is tried.

Estimates are counted in cells of padded matrices over pairs of nodes, B graphs of N nodes having :math:`B N^2`, times
bytes per cell that were measured; ``tests/test_memory.py`` holds them against what is really taken.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from .errors import GraphiteError

try:
    import resource
except ImportError:  # Not every system has it.
    resource = None  # type: ignore[assignment]

__all__ = ["available_memory", "check_memory"]

_UNLIMITED = 1 << 60
# Not worth a look: what is loaded to compute at all takes more.
_LITTLE = 1 << 26
# Where a process may be held to less than the machine has, newer and older way: limit, use, and what of it can go.
_GROUPS = (
    ("/sys/fs/cgroup", "", "memory.max", "memory.current", "inactive_file"),
    ("/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def check_memory(
    needed: float, what: str, remedy: str | Callable[[int], str], error: Callable[[str], GraphiteError]
) -> None:
    """Refuse what cannot fit.

    Arguments:
        needed: About how many bytes it takes.
        what: What that is, as the begin of a sentence.
        remedy: What to do, as a sentence, or what makes one of the bytes there are.
        error: What to raise.
    """
    if needed < _LITTLE:
        return
    available = available_memory()
    if available is not None and needed > available:
        advice = remedy if isinstance(remedy, str) else remedy(available)
        raise error(
            f"{what} needs about {_shown(needed)} of memory, and {_shown(available)} is there. {advice}".rstrip()
        )


def available_memory() -> int | None:
    """The bytes this process can still take by what the machine has, its control groups and its limits allow.

    None where the system does not tell.
    """
    return min((*_of_machine(), *_of_groups(), *_of_limits()), default=None)


def _of_machine() -> Iterator[int]:
    available = _table("/proc/meminfo").get("MemAvailable")
    if available is not None:
        yield 1024 * available
        return
    # Elsewhere there is at least a bound.
    with suppress(OSError, ValueError, AttributeError):
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _of_groups() -> Iterator[int]:
    for line in _lines("/proc/self/cgroup"):
        _, kinds, own = line.split(":", 2)
        for root, kind, limit, use, idle in _GROUPS:
            if kind not in kinds.split(","):
                continue
            # Inside a container the group's own path may not be seen, but its root stands for it.
            for folder in {Path(root) / own.strip("/"), Path(root)}:
                most, used = _number(folder / limit), _number(folder / use)
                if most is not None and used is not None and most < _UNLIMITED:
                    yield max(0, most - used + _table(str(folder / "memory.stat")).get(idle, 0))


def _of_limits() -> Iterator[int]:
    if resource is None:
        return
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    taken = _table("/proc/self/status").get("VmSize")
    if most != resource.RLIM_INFINITY and taken is not None:
        yield max(0, most - 1024 * taken)


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _number(path: Path) -> int | None:
    text = "".join(_lines(str(path))).strip()

    return int(text) if text.isdigit() else None


def _table(path: str) -> dict[str, int]:
    """The numbers of a file with a name and a number on each line."""
    rows = (line.replace(":", " ").split() for line in _lines(path))

    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}


def _shown(count: float) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
