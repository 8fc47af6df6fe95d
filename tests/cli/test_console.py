import sys
from collections.abc import Iterator

import pytest

from graphite_gen.cli import console
from graphite_gen.cli.console import counting, duration, forecast, progress_bar, track


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which passes only as tests advance it."""
    now = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])

    return now


def working(clock: list[float], count: int, seconds: float) -> Iterator[int]:
    """Items that take some seconds each."""
    for item in range(count):
        clock[0] += seconds
        yield item


def test_long_work_prints_progress_ever_more_rarely_and_only_to_stderr(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    assert list(track(working(clock, 100, 4), 100, "Scoring")) == list(range(100))
    out, err = capsys.readouterr()
    lines = err.splitlines()

    assert out == ""
    # After 10 s and then after half as much again, as items take 4 s.
    after = [12, 20, 32, 48, 72, 108, 164, 248, 372]
    assert [line.split(" after ")[0] for line in lines] == [f"Scoring: {time // 4} of 100" for time in after]
    assert lines[0] == "Scoring: 3 of 100 after 12 s, about 6 min 28 s left."


@pytest.mark.parametrize(("count", "seconds"), [(100, 0.09), (1, 600), (0, 1)])
def test_short_or_finished_work_prints_nothing(
    clock: list[float], capsys: pytest.CaptureFixture[str], count: int, seconds: float
) -> None:
    assert len(list(track(working(clock, count, seconds), count, "Scoring"))) == count
    assert capsys.readouterr() == ("", "")


def test_items_of_unknown_number_are_counted(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    list(track(working(clock, 3, 11), None, "Reading"))

    assert capsys.readouterr().err.splitlines() == [f"Reading: {n} after {11 * n} s." for n in (1, 2, 3)]


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (754, "12 min 34 s")])
def test_durations_are_formatted(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_terminal_shows_a_bar_from_the_first_count(monkeypatch: pytest.MonkeyPatch) -> None:
    assert progress_bar().disable
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert not progress_bar().disable
    bar = progress_bar()
    monkeypatch.setattr(console, "progress_bar", lambda: bar)

    with counting("Completing") as count:
        assert not bar.tasks
        for done in (1, 2):
            count(done, 4)
            assert [(task.description, task.completed, task.total) for task in bar.tasks] == [("Completing", done, 4)]


def test_items_that_come_together_are_counted_together(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    def blocks() -> Iterator[int]:
        for item in range(40):
            clock[0] += 0 if item % 10 else 15
            yield item

    list(track(blocks(), 40, "Writing", 10))

    assert capsys.readouterr().err.splitlines()[0] == "Writing: 10 of 40 after 15 s, about 45 s left."


@pytest.mark.parametrize(
    ("costs", "found"), [([1, 1, 2, 4], "1 min 20 s"), ([1, 1, 1], None), ([1, 50], None), ([], None)]
)
def test_long_work_is_announced_by_the_cost_of_what_is_left(
    clock: list[float], capsys: pytest.CaptureFixture[str], costs: list[float], found: str | None
) -> None:
    assert list(forecast(working(clock, len(costs), 10), costs, "Scoring")) == list(range(len(costs)))

    err = capsys.readouterr().err
    assert f"about {found}" in err if found else not err
