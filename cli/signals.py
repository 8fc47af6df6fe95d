"""Signals that stop a run as Ctrl-C does, each with its own exit code."""

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Generic, TypeVar

T = TypeVar("T")

# By name, since not every system has all of them.
NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


class Stopped(KeyboardInterrupt):
    """A signal, by its number, that stops the program."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def exit_code(error: KeyboardInterrupt) -> int:
    """The exit code for a program that a signal has ended: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + (error.number if isinstance(error, Stopped) else signal.SIGINT)


def raise_on_signals() -> None:
    """Raise :class:`Stopped` on every stop signal; one that is ignored, such as SIGHUP under 'nohup', stays ignored."""
    for number in _handled():
        signal.signal(number, _stop)


@contextmanager
def stop_gracefully(request: Callable[[], None]) -> Iterator[None]:
    """Call ``request`` on the first signal, which should lead to a ``KeyboardInterrupt``; a second raises at once."""
    received: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        received.append(number)
        restore()
        request()

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    previous = {number: signal.signal(number, stop) for number in _handled()}
    try:
        yield
    except KeyboardInterrupt as error:
        raise Stopped(received[0]) if received else error  # noqa: B904
    finally:
        restore()


class UntilStopped(Generic[T]):
    """Items up to the first signal, which ends the iteration instead of the program, unless there is no item yet.

    Attributes:
        count: The number of items so far.
        error: The signal; None if all items were iterated over.
    """

    def __init__(self, items: Iterable[T]) -> None:
        self.items, self.count = items, 0
        self.error: KeyboardInterrupt | None = None
        self._waits = self._stops = False

    def __iter__(self) -> Iterator[T]:
        iterator = iter(self.items)
        try:
            with stop_gracefully(self._stop):
                while not self._stops:
                    # Only work on the next item is interrupted: not, for example, the writing of the last one.
                    self._waits = True
                    item = next(iterator, self)
                    self._waits = False
                    if isinstance(item, UntilStopped):
                        return
                    self.count += 1
                    yield item
                raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            if not self.count:
                raise
            self.error = error

    def _stop(self) -> None:
        self._stops = True
        if self._waits:
            raise KeyboardInterrupt


def _handled() -> list[signal.Signals]:
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]

    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


def _stop(number: int, frame: FrameType | None) -> None:
    raise Stopped(number)
