"""Available memory, to refuse computations that do not fit before they start.

Estimates are the number of cells of padded adjacency matrices, :math:`B N^2` for B graphs of N nodes, times measured
bytes per cell; ``tests/test_memory.py`` compares them with the memory that is actually used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from .errors import GraphiteError

try:
    import resource
except ImportError:  # Not available on Windows.
    resource = None  # type: ignore[assignment]

__all__ = ["available_memory", "check_memory"]

_UNLIMITED = 1 << 60
# Smaller amounts are not checked: the libraries alone take more.
_NEGLIGIBLE = 1 << 26
# Control groups, versions 2 and 1: folder, controller, limit, usage, and the part of the usage that can be reclaimed.
_GROUPS = (
    ("/sys/fs/cgroup", "", "memory.max", "memory.current", "inactive_file"),
    ("/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def check_memory(
    needed: float, what: str, remedy: str | Callable[[int], str], error: Callable[..., GraphiteError]
) -> None:
    """Raise an error if a computation does not fit into memory.

    Arguments:
        needed: The estimated number of bytes.
        what: The computation, as the subject of a sentence.
        remedy: What to do instead, as a sentence, or a function of the available bytes that returns one.
        error: The exception to raise, with facts ``needed`` and ``available``; a partial of it can add others.
    """
    if needed < _NEGLIGIBLE:
        return
    available = available_memory()
    if available is not None and needed > available:
        advice = remedy if isinstance(remedy, str) else remedy(available)
        text = f"{what} needs about {_shown(needed)} of memory, and {_shown(available)} is available. {advice}"
        raise error(text.rstrip(), needed=needed, available=available)


def available_memory() -> int | None:
    """The bytes this process can still allocate: the least of free memory, control groups and resource limits.

    None if the system does not report it.
    """
    return min((*_of_machine(), *_of_groups(), *_of_limits()), default=None)


def _of_machine() -> Iterator[int]:
    available = _table("/proc/meminfo").get("MemAvailable")
    if available is not None:
        yield 1024 * available
        return
    # On other systems the physical memory is an upper bound.
    with suppress(OSError, ValueError, AttributeError):
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _of_groups() -> Iterator[int]:
    for line in _lines("/proc/self/cgroup"):
        _, kinds, own = line.split(":", 2)
        for root, kind, limit, use, idle in _GROUPS:
            if kind not in kinds.split(","):
                continue
            # Inside a container only the root of the group may be visible.
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
    """The numbers of a file with one name and number per line."""
    rows = (line.replace(":", " ").split() for line in _lines(path))

    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}


def _shown(count: float) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
