"""Fault injection: programs are killed at random while they train and write, and other faults are injected once each.

Half of the kills come at a random time, half right before a random operation on files. After each kill the folder is
read as a user would read it, the run is resumed or the output is written again, and the result is compared with that of
an uninterrupted run.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.robustness.children import Ending, at_operation, load_libraries, operations, run, run_for
from benchmarks.tables import publish
from graphite_gen.errors import FormatError, GraphiteError
from graphite_gen.io import read_graphs
from graphite_gen.io.atomic import is_settled, sweep
from graphite_gen.network.storage import load_network
from graphite_gen.training.checkpoint import load_checkpoint, read_tensors
from graphite_gen.training.trainer import RUN, read_run

MODEL = Path("checkpoints") / "run"
TRAIN = ("train", "graphs.h5", "--name", "run", "--width", 16, "--validate-every", 1, "--epoch-graphs", 0)
TRAIN = (*TRAIN, "--threads", 1)
RESUME = ("train", "graphs.h5", "--name", "run", "--resume")
# Autoregressive and one-shot, and a run that replaces a model of another shape.
RUNS = {
    "autoregressive": ("--epochs", 4),
    "one-shot": ("--epochs", 6, "--preset", "one-shot"),
    "over another": ("--epochs", 5, "--preset", "one-shot", "--force"),
}
KILLS_PER_RUN = 4
NOBODY = 65534
# Memory that is left to a program, in bytes.
SPARE = 60 << 20


def writings() -> dict[str, tuple[object, ...]]:
    """Return commands that write, by the name of their output."""
    generate, sample = ("generate", "--family", "ego", "--seed", 3), ("sample", "--model", "model", "--seed", 3)

    return {
        "out.h5": (*generate, "-n", 600, "-o", "out.h5"),
        "out.graphml": (*sample, "-n", 600, "-o", "out.graphml"),
        "out.jsonl.gz": (*generate, "-n", 300, "-o", "out.jsonl.gz"),
        "out": (*sample, "-n", 60, "-o", "out/{index:03d}.graphml"),
        "checkpoints/one": ("train", "--single", "one.g6", "--epochs", 3, "--threads", 1, "--name", "one"),
    }


@contextmanager
def workplace() -> Iterator[Path]:
    """Create an empty folder to run in; stdout and stderr go to its parent."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve() / "work"
        folder.mkdir()
        yield folder


def digest(path: Path) -> str:
    """Return the digest of a file, or of all visible files of a folder."""
    if not path.exists():
        return "nothing"
    files = [path] if path.is_file() else sorted(each for each in path.iterdir() if not each.name.startswith("."))
    # It contains the time of the run.
    files = [file for file in files if file.name != "state.json"]

    return hashlib.sha256(b"".join(file.name.encode() + file.read_bytes() for file in files)).hexdigest()


def hidden(folder: Path) -> list[str]:
    """Return the temporary files in a folder and below."""
    return [str(path) for path in folder.rglob(".graphite-gen.*")]


def weights(folder: Path) -> str:
    """Return the digest of the best and the last weights of a run."""
    tensors, _ = read_tensors(folder / RUN)
    parts = [(folder / "model.safetensors").read_bytes()]
    parts += [tensors[name].numpy().tobytes() for name in sorted(tensors)]

    return hashlib.sha256(b"".join(parts)).hexdigest()


def killed_at_random(rng: random.Random, folder: Path, steps: int, seconds: float, args: tuple[object, ...]) -> Ending:
    """Run a command and kill it at a random time, or before a random operation on files."""
    if rng.random() < 0.5:
        return run_for(rng.uniform(0.01, seconds), folder, *args)
    kill = at_operation(folder, rng.randrange(steps), lambda: os.kill(os.getpid(), signal.SIGKILL))

    return run(folder, *args, before=kill)


# Training ---------------------------------------------------------------------------------------------------------


def prepare(folder: Path) -> None:
    """Create graphs to train on, and a model to sample from and to replace."""
    assert run(folder, "generate", "--family", "ego", "-n", 24, "--nodes", "5:8", "-o", "graphs.h5").code == 0
    assert run(folder, "generate", "--family", "barabasi", "-n", 1, "--nodes", 40, "-o", "one.g6").code == 0
    settings = ("--width", 8, "--epochs", 1, "--preset", "one-shot", "--threads", 1)
    assert run(folder, "train", "graphs.h5", "--out", ".", "--name", "model", *settings).code == 0


def uninterrupted(origin: Path, args: tuple[object, ...]) -> tuple[str, int, float]:
    """Return the weights of a run without faults, its number of operations on files, and its seconds."""
    with copied(origin) as folder:
        started = time.monotonic()
        assert run(folder, *args).code == 0
        seconds, found = time.monotonic() - started, weights(folder / MODEL)
    with copied(origin) as folder:
        return found, operations(folder, *args), seconds


@contextmanager
def copied(origin: Path, old: bool = True) -> Iterator[Path]:
    """Copy a workplace, optionally with another model in the folder of the run."""
    with workplace() as folder:
        shutil.copytree(origin, folder, dirs_exist_ok=True)
        if old:
            shutil.copytree(folder / "model", folder / MODEL)
        yield folder


def train_killed(rng: random.Random, kills: int) -> Counter[str]:
    """Kill training runs, resume them, and compare the weights with those of uninterrupted runs."""
    found: Counter[str] = Counter()
    with workplace() as origin:
        prepare(origin)
        models = {name: (*TRAIN, *args) for name, args in RUNS.items()}
        wanted = {}
        for name, args in models.items():
            wanted[name] = uninterrupted(origin, args if "--force" in args else (*args, "--force"))
        while found["kills"] < kills:
            name = list(models)[found["runs"] % len(models)]
            with copied(origin, old="--force" in models[name]) as folder:
                found.update(_train_with_kills(rng, folder, models[name], *wanted[name]))
            found["runs"] += 1

    return found


def _train_with_kills(
    rng: random.Random, folder: Path, args: tuple[object, ...], end: str, steps: int, seconds: float
) -> Counter[str]:
    """Train one run, killed a few times and resumed after each kill."""
    found: Counter[str] = Counter()
    model = folder / MODEL
    old = {name: digest(model / name) for name in ("model.safetensors", RUN)}
    line = args
    for _ in range(KILLS_PER_RUN):
        if not killed_at_random(rng, folder, steps, seconds, line).is_killed:
            break
        found["kills"] += 1
        line = _line_after(model, args, old, found)
    for _ in range(2):
        done = run(folder, *line)
        # Killed before its first checkpoint: the run is started again.
        if done.code == 0:
            break
        line = (*args, "--force")
    if done.code != 0 or weights(model) != end:
        found["other ends"] += 1
        print(f"other weights: {args}, after {line}: {done}", flush=True)
    left = hidden(folder)
    found["left over"] += len(left)
    if left:
        print(f"left over: {left}", flush=True)

    return found


def _line_after(model: Path, args: tuple[object, ...], old: dict[str, str], found: Counter[str]) -> tuple[object, ...]:
    """Check what a killed run has left, and return the command to continue with."""
    # Before its first checkpoint, a run that replaces another one would resume the other one.
    is_saved = digest(model / RUN) not in ("nothing", old[RUN])
    found["while it could be resumed"] += is_saved
    if (model / "config.json").exists():
        try:
            load_checkpoint(model)
            if is_saved:
                read_run(model)
        except GraphiteError as error:
            found["unreadable"] += 1
            print(f"unreadable: {error}")
    elif old["model.safetensors"] != "nothing":
        found["unreadable"] += 1
        print(f"'{model}' has lost the model that was to be replaced")

    return RESUME if is_saved else args


# Writing ----------------------------------------------------------------------------------------------------------


def write_killed(rng: random.Random, kills: int) -> Counter[str]:
    """Kill commands that write, and check that the output is complete or as before."""
    found: Counter[str] = Counter()
    with workplace() as folder:
        prepare(folder)
        # A new file, folder or model, and one that replaces another.
        jobs = []
        for name, args in writings().items():
            other = _other(folder, name, args)
            for old in (None, other):
                _lay_out(folder / name, old)
                started = time.monotonic()
                steps = operations(folder, *args, "--force")
                jobs.append((name, old, digest(folder / name), steps, time.monotonic() - started))
        while found["kills"] < kills:
            found.update(_write_with_kill(rng, folder, *rng.choice(jobs)))

    return found


def _other(folder: Path, name: str, args: tuple[object, ...]) -> Path:
    """Create another output of that name and move it aside."""
    target, aside = folder / name, folder.parent / f"old-{Path(name).name}"
    changed = tuple(4 if word == 3 else word for word in args)
    assert run(folder, *changed, "--force").code == 0
    shutil.move(target, aside)

    return aside


def _lay_out(target: Path, old: Path | None) -> None:
    """Place an old output at the target, or remove it."""
    shutil.rmtree(target, ignore_errors=True) if target.is_dir() else target.unlink(missing_ok=True)
    if old is not None:
        (shutil.copytree if old.is_dir() else shutil.copyfile)(old, target)


def _write_with_kill(
    rng: random.Random, folder: Path, name: str, old: Path | None, end: str, steps: int, seconds: float
) -> Counter[str]:
    found: Counter[str] = Counter()
    target, args = folder / name, (*writings()[name], "--force")
    _lay_out(target, old)
    before = digest(target)
    if not killed_at_random(rng, folder, steps, seconds, args).is_killed:
        # It finished before the kill.
        return found
    found["kills"] += 1
    found["while something was replaced"] += old is not None
    at_once = digest(target)
    after = _read_again(target)
    found["finished by the next command"] += at_once != after
    if after not in (before, end) and not _is_whole_model(target, before, end):
        found["half-written"] += 1
        print(f"half-written: {name}")
    done = run(folder, *args)
    found["other ends"] += done.code != 0 or digest(target) != end
    found["left over"] += len(hidden(folder))

    return found


def _read_again(target: Path) -> str:
    """Return the digest after reading; partly moved folders must be refused, and are finished by the next writer."""
    if target.exists() and not (target / "config.json").exists() and target.name != "one":
        if target.is_dir() and not is_settled(target):
            with suppress(FormatError):
                list(read_graphs(target))
                return "a partly moved folder was read"
            sweep(target)
        for _ in read_graphs(target):
            pass

    return digest(target)


def _is_whole_model(target: Path, before: str, end: str) -> bool:
    """Return whether a folder is a complete model, or no model yet."""
    if target.name != "one":
        return False
    if not (target / "config.json").exists():
        return before == digest(Path("nowhere")) or not target.exists()
    try:
        load_network(target)
    except GraphiteError as error:
        print(error)
        return False

    return True


# Every other fault ------------------------------------------------------------------------------------------------

Row = tuple[str, Ending, str]


def other_faults() -> Iterator[Row]:
    """Inject each fault once; yield its name, the exit of the program, and the consequence."""
    with workplace() as origin:
        prepare(origin)
        args = (*TRAIN, "--epochs", 4)
        end, _, _ = uninterrupted(origin, (*args, "--force"))
        for name, fault, repair in _faults():
            with copied(origin, old=False) as folder:
                yield _faulty(name, folder, args, end, fault, repair)
        yield _two_runs(origin, args, end)
        yield _clock(origin, args)
        yield from _full_disk(origin, args, end)
        yield from _read_only(origin, args, end)
        yield from _little_memory(origin)


def _faults() -> list[tuple[str, Callable[[Path], object], Callable[[Path], object]]]:
    def nothing(folder: Path) -> None:
        pass

    def to_file(folder: Path) -> None:
        (folder / MODEL).rename(folder / "aside")
        (folder / MODEL).write_text("a file")

    def back(folder: Path) -> None:
        (folder / MODEL).unlink()
        (folder / "aside").rename(folder / MODEL)

    return [
        ("SIGTERM while training", lambda _: os.kill(os.getpid(), signal.SIGTERM), nothing),
        ("SIGHUP while training", lambda _: os.kill(os.getpid(), signal.SIGHUP), nothing),
        ("the model's folder vanishes while training", lambda folder: shutil.rmtree(folder / MODEL), nothing),
        ("the model's folder becomes a file while training", to_file, back),
    ]


def _faulty(
    name: str,
    folder: Path,
    args: tuple[object, ...],
    end: str,
    fault: Callable[[Path], object],
    repair: Callable[[Path], object],
) -> Row:
    """Inject a fault into training after a checkpoint, repair it and resume."""
    ending = run(folder, *args, before=at_a_save(folder, lambda: fault(folder)))
    repair(folder)

    return name, ending, _resumed(folder, end)


def at_a_save(folder: Path, fault: Callable[[], object]) -> Callable[[], object]:
    """Return a set-up that injects a fault at the start of the second checkpoint."""
    # Each save opens the existing weights, and the first renames them.
    return at_operation(folder, 2, fault, "model.safetensors")


def _resumed(folder: Path, end: str) -> str:
    load_checkpoint(folder / MODEL)
    done = run(folder, *RESUME)
    assert done.code == 0, done

    return "resumed to the same weights" if weights(folder / MODEL) == end else "RESUMED TO OTHER WEIGHTS"


def _two_runs(origin: Path, args: tuple[object, ...], end: str) -> Row:
    """Start a second run in the folder of a running one."""
    seen: list[Ending] = []
    with copied(origin, old=False) as folder:
        second = [sys.executable, "-m", "graphite_gen", *map(str, args), "--force"]

        def begin() -> None:
            done = subprocess.run(second, cwd=folder, capture_output=True, text=True, check=False)
            (folder / "second.txt").write_text(f"{done.returncode} {done.stderr.splitlines()[-1]}")

        first = run(folder, *args, before=at_a_save(folder, begin))
        code, _, line = (folder / "second.txt").read_text().partition(" ")
        seen.append(Ending(int(code), line))

        done = first.code == 0 and seen[0].code == 1 and weights(folder / MODEL) == end
        outcome = "the first ends with the same weights" if done else "THE FIRST CHANGED"

    return "a second run in the same folder", seen[0], outcome


def _clock(origin: Path, args: tuple[object, ...]) -> Row:
    """Set the clock back between two runs: the later one is still the last."""
    with copied(origin, old=False) as folder:
        for name in ("run", "run-2"):
            line = tuple(name if word == "run" else word for word in args)
            assert run(folder, *line).code == 0
        os.utime(folder / "checkpoints" / "run-2" / "state.json", (0, 0))
        ending = run(folder, "sample", "-n", 1, "-o", "x.g6")
        chosen = "run-2" in (folder.parent / "err.txt").read_text().splitlines()[0]

    return (
        "the clock is set back 50 years between two trainings",
        ending,
        "uses the later" if chosen else "USES THE FIRST",
    )


def _full_disk(origin: Path, args: tuple[object, ...], end: str) -> Iterator[Row]:
    """A disk without room, while training and while writing."""
    with workplace() as folder:
        if not _mount(folder):
            return
        try:
            shutil.copytree(origin, folder, dirs_exist_ok=True)
            ending = run(folder, *args, before=at_a_save(folder, lambda: _fill(folder)))
            (folder / "filler").unlink()
            yield "a full disk while training", ending, _resumed(folder, end)
            _fill(folder, 20_000)
            for name in ("out.h5", "out.graphml", "out"):
                ending = run(folder, *writings()[name], *(["-n", 6000] if name != "out" else []))
                yield f"a full disk while writing '{name}'", ending, _left(folder, name)
        finally:
            subprocess.run(["umount", str(folder)], check=False)


def _left(folder: Path, name: str) -> str:
    """Whether anything of an output is there."""
    return "SOMETHING IS LEFT" if hidden(folder) or (folder / name).exists() else "nothing is left"


def _mount(folder: Path) -> bool:
    """Put a small disk in the place of a folder, where that is allowed."""
    try:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True, check=False
        )
    except OSError:
        return False

    return mounted.returncode == 0


def _fill(folder: Path, spare: int = 0) -> None:
    free = os.statvfs(folder)
    with (folder / "filler").open("wb") as file:
        file.write(bytes(max(0, free.f_bavail * free.f_frsize - spare)))


def _read_only(origin: Path, args: tuple[object, ...], end: str) -> Iterator[Row]:
    """A folder that may not be written, from the start and in the middle of a run; root may always, so not as root."""

    def demote() -> None:
        if os.geteuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)

    with copied(origin, old=False) as folder:
        for path in (folder.parent, folder, *folder.iterdir()):
            path.chmod(0o777 if path.is_dir() else 0o666)
        for name in ("out.txt", "err.txt"):
            (folder.parent / name).touch()
            (folder.parent / name).chmod(0o666)
        (folder / "checkpoints").mkdir()
        (folder / "checkpoints").chmod(0o777)

        def fault() -> None:
            (folder / MODEL).chmod(0o555)

        def set_up() -> None:
            demote()
            at_a_save(folder, fault)()

        ending = run(folder, *args, before=set_up)
        (folder / MODEL).chmod(0o777)
        done = run(folder, *RESUME, before=demote)
        same = done.code == 0 and weights(folder / MODEL) == end
        outcome = "resumed to the same weights" if same else "RESUMED TO OTHER WEIGHTS"
        yield "the folder becomes read-only while training", ending, outcome
        folder.chmod(0o555)
        shutil.rmtree(folder / "checkpoints")
        ending = run(folder, *args, before=demote)
        yield "a read-only folder to train in", ending, _left(folder, "checkpoints")
        ending = run(folder, *writings()["out.h5"], before=demote)
        yield "a read-only folder to write in", ending, _left(folder, "out.h5")
        folder.chmod(0o777)


def _little_memory(origin: Path) -> Iterator[Row]:
    """Run work that exceeds the available memory."""

    def confine() -> None:
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (taken + SPARE, taken + SPARE))

    large = ("generate", "--family", "barabasi", "-n", 6, "--nodes", 1500, "-o", "large.h5")
    with copied(origin, old=False) as folder:
        assert run(folder, *large).code == 0
        for name, line in {
            "train": ("train", "large.h5", "--name", "large"),
            "sample": ("sample", "--model", "model", "--nodes", 5000, "-n", 1, "-o", "large.g6"),
            "nll": ("nll", "large.h5", "--model", "bundled:ego-one-shot"),
            "evaluate": ("evaluate", "large.h5", "--reference", "large.h5"),
        }.items():
            ending = run(folder, *line, before=confine)
            refused = ending.code == 1 and "memory, and" in ending.line
            yield f"'{name}' with {SPARE >> 20} MB of memory left", ending, "refused" if refused else "NOT REFUSED"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200, help="number of kills while training, and while writing")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="few kills, without publishing")
    arguments = parser.parse_args()

    load_libraries()
    # Under 'nohup' children would ignore it.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    rng, kills = random.Random(arguments.seed), 8 if arguments.quick else arguments.kills
    faults = list(other_faults())
    trained = train_killed(rng, kills)
    written = write_killed(rng, kills)
    rows: list[list[Any]] = [
        ["kill -9 while training", trained["kills"], f"{trained['unreadable']} unreadable checkpoints", 137, ""],
        ["", "", f"{trained['other ends']} of {trained['runs']} resumed runs end with other weights", "", ""],
        ["", "", f"{trained['left over']} files left over when they have ended", "", ""],
        ["kill -9 while writing", written["kills"], f"{written['half-written']} half-written outputs", 137, ""],
        ["", "", f"{written['finished when next read']} folders between two moves, whole when next read", "", ""],
        ["", "", f"{written['other ends']} outputs written again differ", "", ""],
        ["", "", f"{written['left over']} files left over when they are written", "", ""],
        *([name, 1, outcome, ending.code, shown(ending.line)] for name, ending, outcome in faults),
    ]
    header = ["fault", "times", "consequence", "exit code", "last line on stderr"]
    details = {"training": trained, "writing": written, **vars(arguments)}
    bad = [trained["unreadable"], trained["other ends"], trained["left over"]]
    bad += [written["half-written"], written["other ends"], written["left over"]]
    if arguments.quick:
        print(details)
        print(*rows, sep="\n")
    else:
        publish("faults", "Injected faults and their consequences", header, rows, details)

    return int(any(bad) or any(outcome.isupper() for _, _, outcome in faults))


def shown(line: str) -> str:
    """Return a line that fits into a table cell."""
    return line.replace("|", "/") if line else "–"


if __name__ == "__main__":
    sys.exit(main())
