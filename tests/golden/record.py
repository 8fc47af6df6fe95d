"""What commands print and write for fixed seeds; run as a script, it records the results that 'test_golden.py' checks.

The file 'golden.json' holds through changes that are meant to change no result. Record it again, or some of its parts,
only together with a change that is meant to change results, such as new bundled models:

    python tests/golden/record.py [names] [options] [generated] [samples] [likelihoods] [completed] [trained]
"""

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner

GOLDEN = Path(__file__).resolve().with_name("golden.json")

FAMILIES = ("barabasi", "ego", "erdos-renyi", "geometric", "powerlaw-tree", "regular")
MODELS = (*FAMILIES, *(f"{name}-one-shot" for name in FAMILIES))
CONSTRAINTS = {
    "powerlaw-tree": ("--tree", "--max-degree", "5"),
    "powerlaw-tree-one-shot": ("--tree",),
    "regular": ("--regular", "4", "--connected"),
    "geometric": ("--nodes", "12", "--planar", "--edges", "18"),
    "erdos-renyi-one-shot": ("--nodes", "12", "--edges", "18"),
    "barabasi": ("--degrees", "4,3,3,2,2,2,2,1,1"),
    "ego": ("--acyclic", "--nodes", "11"),
}
TINY = ("--graphs", "40", "--nodes", "5:7", "--width", "8", "--epoch-graphs", "0", "--threads", "1", "--seed", "5")


def run(*args: str) -> Any:
    from graphite_gen.cli.main import main

    result = CliRunner().invoke(main, list(args))
    assert result.exit_code == 0, f"{args}: {result.stderr}"

    return result


def digest(*args: str) -> str:
    """The SHA-256 of what a command writes to standard output."""
    return hashlib.sha256(run(*args).stdout_bytes).hexdigest()


def samples(name: str) -> dict[str, str]:
    """Digests of samples from a bundled model, free and under constraints."""
    draw = ("sample", "-n", "12", "--model", f"bundled:{name}", "--seed", "7", "--format", "g6", "-o", "-")
    found = {"free": digest(*draw)}
    if name in CONSTRAINTS:
        found["constrained"] = digest(*draw, *CONSTRAINTS[name])

    return found


def likelihoods(name: str) -> Any:
    """The JSON of the NLL of three graphs under a bundled model."""
    family = name.removesuffix("-one-shot")
    run("generate", "--family", family, "--graphs", "9", "--seed", "3", "--force", "-o", "test.h5")

    return json.loads(run("nll", "test.h5", "--model", f"bundled:{name}", "--samples", "8", "--json").stdout)


def generated(name: str) -> str:
    return digest("generate", "--family", name, "--graphs", "20", "--seed", "11", "--format", "g6", "-o", "-")


def completed(name: str) -> str:
    """The digest of completions of a graph with three unknown pairs."""
    import networkx as nx

    graph = nx.barabasi_albert_graph(10, 3, seed=1)
    graph.add_edges_from([(0, 7), (3, 9), (8, 9)], state="unknown")
    nx.write_graphml(graph, "partial.graphml")

    return digest("complete", "partial.graphml", "-n", "5", "--model", f"bundled:{name}", "--format", "g6", "-o", "-")


def trained(preset: str) -> list[float]:
    """Norms of the weights of a run that was resumed, in ascending order."""
    from safetensors.torch import load_file

    name = f"golden-{preset}"
    common = ("train", "--family", "ego", "--preset", preset, *TINY, "--epochs", "4", "--name", name)
    interrupted(*common)
    run("train", "--family", "ego", "--name", name, "--resume", "--threads", "1")

    return sorted(float(value.double().norm()) for value in load_file(f"checkpoints/{name}/model.safetensors").values())


def interrupted(*args: str) -> None:
    """Train, and stop as by Ctrl-C after two epochs."""
    import subprocess

    stop = (
        "from graphite_gen.cli import main; from graphite_gen.training.trainer import Trainer\n"
        "started, epoch = 0, Trainer._epoch\n"
        "def counted(self):\n"
        "    global started\n"
        "    started += 1\n"
        "    if started == 3: raise KeyboardInterrupt\n"
        "    return epoch(self)\n"
        "Trainer._epoch = counted\n"
        "main.run()\n"
    )
    done = subprocess.run([sys.executable, "-c", stop, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 130, done.stderr


def commands() -> dict[str, click.Command]:
    """Every command by its name; none has subcommands."""
    from graphite_gen.cli.main import COMMANDS, main

    return {name: main.get_command(click.Context(main), name) for name in COMMANDS}


def options() -> dict[str, list[str]]:
    """Every spelling of every option of every command, with every value where there is a choice."""
    return {
        name: sorted(
            f"{flag} {choice}".strip()
            for parameter in command.params
            if isinstance(parameter, click.Option)
            for flag in (*parameter.opts, *parameter.secondary_opts)
            for choice in (parameter.type.choices if isinstance(parameter.type, click.Choice) else ("",))
        )
        for name, command in commands().items()
    }


def names() -> list[str]:
    import graphite_gen

    return sorted(graphite_gen.__all__)


RESULTS: dict[str, tuple[Callable[[str], Any], tuple[str, ...]]] = {
    "generated": (generated, FAMILIES),
    "samples": (samples, MODELS),
    "likelihoods": (likelihoods, MODELS),
    "completed": (completed, ("barabasi", "barabasi-one-shot")),
    "trained": (trained, ("default", "one-shot")),
}


def record(part: str) -> Any:
    if part in RESULTS:
        return dict(zip(RESULTS[part][1], map(*RESULTS[part]), strict=True))

    return {"names": names, "options": options}[part]()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    parts = ["names", "options", *RESULTS]
    recorded = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        recorded |= {part: record(part) for part in sys.argv[1:] or parts}
    GOLDEN.write_text(json.dumps({part: recorded[part] for part in parts}, indent=1) + "\n", encoding="utf-8")
