import json
import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from graphite_gen import likelihood
from graphite_gen.cli.signals import Stopped, UntilStopped, exit_code, raise_on_signals, stop_gracefully
from graphite_gen.io import read_graphs
from graphite_gen.io.locks import locked
from graphite_gen.sampling import Sampler

from .conftest import TINY, assert_error, invoke, program

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.fixture(autouse=True)
def handlers() -> object:
    kept = {number: signal.getsignal(number) for number, _ in SIGNALS}
    # Under 'nohup' the tests themselves ignore SIGHUP.
    for number in kept:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_every_signal_raises_with_its_own_exit_code(number: int, code: int) -> None:
    raise_on_signals()

    with pytest.raises(KeyboardInterrupt) as error:
        os.kill(os.getpid(), number)

    assert exit_code(error.value) == code


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise_on_signals()

    os.kill(os.getpid(), signal.SIGHUP)

    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_the_first_signal_is_a_request_and_the_second_raises(number: int, code: int) -> None:
    raise_on_signals()
    requests: list[bool] = []

    with pytest.raises(Stopped) as error, stop_gracefully(lambda: requests.append(True)):  # noqa: PT012
        os.kill(os.getpid(), number)
        assert requests == [True]
        os.kill(os.getpid(), signal.SIGTERM)

    assert exit_code(error.value) == code
    assert signal.getsignal(number) is not signal.SIG_DFL


def test_sigterm_ends_a_writer_without_output(own_folder: Path) -> None:
    writing = program("generate", "--family", "ego", "-n", 10_000_000, "-o", "out.h5")
    while not list(own_folder.iterdir()):
        assert writing.poll() is None
        time.sleep(0.05)
    writing.send_signal(signal.SIGTERM)

    assert writing.communicate(timeout=120)[1] == "Interrupted.\n"
    assert writing.returncode == 143
    assert not list(own_folder.iterdir())


@pytest.mark.parametrize("options", [(), ("--force",), ("--resume",)])
def test_a_second_training_in_a_folder_is_refused(own_folder: Path, options: tuple[str, ...]) -> None:
    settings = () if options == ("--resume",) else TINY
    with locked(Path("checkpoints/run")):
        result = invoke("train", "--family", "ego", *settings, "--name", "run", *options)

    assert_error(result, "'checkpoints/run' is locked by another run (pid ")


@pytest.mark.parametrize("during", ["work", "use"])
def test_items_before_a_signal_are_kept(during: str) -> None:
    raise_on_signals()

    def items() -> Iterator[int]:
        for item in range(9):
            if (during, item) == ("work", 3):
                os.kill(os.getpid(), signal.SIGTERM)
            yield item

    kept, found = UntilStopped(items()), []
    for item in kept:
        if (during, item) == ("use", 2):
            os.kill(os.getpid(), signal.SIGTERM)
        found.append(item)

    assert found == [0, 1, 2]
    assert kept.count == 3
    assert kept.error is not None
    assert exit_code(kept.error) == 143


def test_a_signal_before_the_first_item_is_raised() -> None:
    raise_on_signals()
    with pytest.raises(Stopped):
        list(UntilStopped(os.kill(os.getpid(), signal.SIGINT) for _ in range(3)))


def test_nll_and_sample_keep_what_is_done(model: Path, graphs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupting(items: Iterable[object], after: int) -> Iterator[object]:
        for index, item in enumerate(items):
            if index == after:
                os.kill(os.getpid(), signal.SIGINT)
            yield item

    score, draw = likelihood.iterate_nll, Sampler.__iter__
    monkeypatch.setattr(likelihood, "iterate_nll", lambda *args, **rest: interrupting(score(*args, **rest), 2))
    monkeypatch.setattr(Sampler, "__iter__", lambda sampler: interrupting(draw(sampler), 3))

    line = ("nll", graphs, "--model", model, "-k", 5, "--split", "all")
    found = invoke(*line, "--json")
    value = json.loads(found.stdout)
    assert (found.exit_code, value["graphs"], value["partial"]) == (130, 2, True)
    assert "the first 2 of 12 graphs" in found.stderr
    assert "2 of 12: interrupted" in invoke(*line).stdout
    drawn = invoke("sample", "--model", model, "-n", 9, "-o", "out.g6")
    assert (drawn.exit_code, len(list(read_graphs("out.g6")))) == (130, 3)
    assert "3 of 9 graphs" in drawn.stderr
