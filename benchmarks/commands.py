"""Commands of graphite-gen as benchmarks run them: in a process of their own, of this version or an earlier one."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from benchmarks.tables import provenance

__all__ = ["EARLIER", "Finished", "Side", "earlier_version", "graphite", "minutes", "this_version", "train"]

ROOT = Path(__file__).resolve().parents[1]
EARLIER = "4952f1f"
"""The last commit before the recurrent decoder."""


@dataclass(frozen=True)
class Finished:
    """The output of a finished command, and what it cost.

    Attributes:
        stdout: What it printed.
        cpu_seconds: CPU time of the process and its children.
        wall_seconds: Elapsed time.
    """

    stdout: str
    cpu_seconds: float
    wall_seconds: float


@dataclass(frozen=True)
class Side:
    """A version of the package that processes can be started with.

    Attributes:
        commit: Its commit; None for this one.
        folder: A folder to import it from; None for the installed package.
    """

    commit: str | None = None
    folder: Path | None = None

    def environment(self, threads: int) -> dict[str, str]:
        """Return the environment of its processes."""
        own = os.environ | {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE"}

        return own if self.folder is None else own | {"PYTHONPATH": str(self.folder)}

    def run(self, words: Sequence[str | Path], *, threads: int = 1, show: bool = True) -> Finished:
        """Run Python with these arguments; notes of the process go to stderr if ``show``."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        # In another folder: this one's modules would be imported first.
        done = subprocess.run(
            [sys.executable, *map(str, words)],
            env=self.environment(threads),
            cwd=tempfile.gettempdir(),
            stdout=subprocess.PIPE,
            stderr=None if show else subprocess.PIPE,
            text=True,
        )
        wall = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            raise RuntimeError(f"'{' '.join(map(str, words))}' ended with {done.returncode}: {done.stderr or ''}")

        return Finished(done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall)

    def evaluate(self, code: str, *arguments: Any, threads: int = 1) -> Any:
        """Run code that prints one JSON value last; its arguments are ``json.loads(sys.argv[1])``."""
        done = self.run(["-c", code, json.dumps(arguments, default=str)], threads=threads)

        return json.loads(done.stdout.splitlines()[-1])


def this_version() -> Side:
    """Return the installed package."""
    return Side()


@contextmanager
def earlier_version(commit: str = EARLIER) -> Iterator[Side]:
    """Extract an earlier commit from the history into a temporary folder, with its own bundled models."""
    with tempfile.TemporaryDirectory(prefix="graphite-gen-") as place:
        folder = Path(place)
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=BytesIO(archive)) as tar:
            tar.extractall(folder, filter="data")
        # Installed under the package by setuptools.
        for name in ("cli", "checkpoints"):
            (folder / "graphite_gen" / name).symlink_to(folder / name, target_is_directory=True)
        side = Side(commit, folder)
        used = Path(side.evaluate(WHERE))
        assert used.is_relative_to(folder), f"'{used}' is imported instead of the package of {commit}"

        yield side


WHERE = "import json, graphite_gen.cli as cli; print(json.dumps(cli.__file__))"


def graphite(*words: str | Path, threads: int = 1, side: Side | None = None, show: bool = True) -> Finished:
    """Run a command of graphite-gen."""
    return (side or this_version()).run(["-m", "graphite_gen", *words], threads=threads, show=show)


def train(
    out: Path,
    name: str,
    source: Sequence[str | Path],
    settings: Sequence[str] = (),
    *,
    threads: int = 1,
    side: Side | None = None,
    again: bool = False,
) -> dict[str, Any]:
    """Train a model, or resume an interrupted run, and return its folder, cost, results and provenance.

    They are stored beside the folder of the model, so that a finished run is not repeated. CPU and wall seconds are
    those of the command, with start-up, pilot runs and validation; those of a run that was interrupted are None.

    Arguments:
        out: The folder of models.
        name: The name of the model.
        source: The file to train on, or ``("--family", name)``.
        settings: Other options of 'train'.
        threads: Threads of torch.
        side: The version to train with; by default this one.
        again: Whether to replace a finished or interrupted run.
    """
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    folder, record = out / name, out / f"{name}.json"
    if again:
        record.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
    known = json.loads(record.read_text(encoding="utf-8")) if record.exists() else None
    if known is not None and "results" in known:
        return dict(known)
    if known is None:
        known = {"folder": str(folder), "settings": list(settings), **provenance()}
        known |= {"commit": side.commit} if side is not None and side.commit else {}
        record.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
    resumes = (folder / "state.json").exists()
    words = [*source, *(["--resume"] if resumes else settings)]
    done = graphite("train", *words, "--out", out, "--name", name, "--json", threads=threads, side=side)
    cost = (None, None) if resumes else (done.cpu_seconds, done.wall_seconds)
    known |= {"results": json.loads(done.stdout)["results"], "cpu_seconds": cost[0], "wall_seconds": cost[1]}
    record.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")

    return dict(known)


def minutes(trained: dict[str, Any]) -> float:
    """Return the CPU minutes of a run of :func:`train`; the minutes that it recorded itself if it was interrupted."""
    seconds = trained["cpu_seconds"]

    return float(trained["results"]["seconds"] if seconds is None else seconds) / 60
