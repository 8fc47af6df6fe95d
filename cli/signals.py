"""Signals that ask to stop, all of which end a run as Ctrl-C does, with an exit code of their own."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Stopped", "exit_code", "heed_signals", "instead_of_stopping"]

# By name, as not every system has all of them.
NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


class Stopped(KeyboardInterrupt):
    """A signal has asked to stop.

    Attributes:
        number: Which one.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def exit_code(error: KeyboardInterrupt) -> int:
    """What a shell expects of a program that a signal has ended: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + (error.number if isinstance(error, Stopped) else signal.SIGINT)


def heed_signals() -> None:
    """Let all of them raise; one that is ignored, as SIGHUP is under 'nohup', stays so."""
    for number in _heeded():
        signal.signal(number, _stop)


@contextmanager
def instead_of_stopping(ask: Callable[[], None]) -> Iterator[None]:
    """Let the first of them ask for an end that raises ``KeyboardInterrupt``, and a second one raise at once."""
    asked: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        restore()
        ask()

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    previous = {number: signal.signal(number, stop) for number in _heeded()}
    try:
        yield
    except KeyboardInterrupt as error:
        raise Stopped(asked[0]) if asked else error  # noqa: B904
    finally:
        restore()


def _heeded() -> list[signal.Signals]:
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]

    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


def _stop(number: int, frame: FrameType | None) -> None:
    raise Stopped(number)
