from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from graphite_gen.cli.watching import watch
from graphite_gen.records import TrainRecord


class Run:
    """Something that trains for some epochs and validates now and then."""

    def __init__(self, epochs: int, every: int) -> None:
        self.training = SimpleNamespace(epochs=epochs)
        self.every = every

    def stop(self) -> None:
        """Is never asked for here."""

    def __iter__(self) -> Iterator[TrainRecord]:
        for epoch in range(1, self.training.epochs + 1):
            validates = epoch % self.every == 0 or epoch == self.training.epochs
            yield TrainRecord(epoch, epoch, 1.0, 1.0, 2.0 if validates else None, 2.0, 0.1, float(epoch))


@pytest.mark.parametrize(("epochs", "every"), [(1, 1), (2, 1), (100, 1), (100, 4), (1000, 1), (1000, 7), (30, 40)])
def test_a_run_without_a_terminal_prints_few_lines_and_the_last(
    capsys: pytest.CaptureFixture[str], epochs: int, every: int
) -> None:
    watch(Run(epochs, every))  # type: ignore[arg-type]
    out, err = capsys.readouterr()
    lines = err.splitlines()

    assert out == ""
    assert 1 <= len(lines) <= 21
    assert lines[-1].startswith(f"epoch {epochs}/{epochs} ")
