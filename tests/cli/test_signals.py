from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from graphite_gen.cli.signals import Stopped, exit_code, heed_signals, instead_of_stopping

from .conftest import TINY, program

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.fixture(autouse=True)
def handlers() -> object:
    kept = {number: signal.getsignal(number) for number, _ in SIGNALS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_every_signal_raises_as_ctrl_c_does_with_a_code_of_its_own(number: int, code: int) -> None:
    heed_signals()

    with pytest.raises(KeyboardInterrupt) as error:
        os.kill(os.getpid(), number)

    assert exit_code(error.value) == code


def test_what_is_ignored_stays_so() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    heed_signals()

    os.kill(os.getpid(), signal.SIGHUP)

    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_the_first_signal_asks_and_the_second_does_not(number: int, code: int) -> None:
    heed_signals()
    asked: list[bool] = []

    with pytest.raises(Stopped) as error, instead_of_stopping(lambda: asked.append(True)):  # noqa: PT012
        os.kill(os.getpid(), number)
        assert asked == [True]
        os.kill(os.getpid(), signal.SIGTERM)

    assert exit_code(error.value) == code
    assert signal.getsignal(number) is not signal.SIG_DFL


def test_sigterm_ends_a_training_with_its_save_and_a_writer_with_nothing(own_folder: Path) -> None:
    training = program("train", "--family", "ego", *TINY, "--epochs", 4000, "--validate-every", 1, "--name", "run")
    writing = program("generate", "--family", "ego", "-n", 10_000_000, "-o", "out.h5")
    assert training.stderr is not None
    while "epoch" not in (text := training.stderr.readline()):
        assert text, "the run ended before its first epoch"
    second = program("train", "--family", "ego", *TINY, "--name", "run", "--force").communicate(timeout=60)[1]
    for process in (training, writing):
        process.send_signal(signal.SIGTERM)
    lines = [process.communicate(timeout=60)[1].splitlines()[-1] for process in (training, writing)]

    assert second.count("\n") == 1
    assert "Another training is at work in 'checkpoints/run'" in second
    assert [training.returncode, writing.returncode] == [143, 143]
    assert lines[0].startswith("Interrupted. Continue with: graphite-gen train --family ego --name run --resume")
    assert lines[1] == "Interrupted."
    assert [path.name for path in own_folder.iterdir()] == ["checkpoints"]
    assert not list((own_folder / "checkpoints" / "run").glob(".*"))
