"""Runs on several hosts: torchrun in two network namespaces that are joined by a veth pair."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from graphite_gen.training.checkpoint import read_tensors

from .conftest import TINY, run

pytestmark = pytest.mark.slow

ADDRESSES = ("10.213.0.1", "10.213.0.2")


def ip(*args: str) -> None:
    subprocess.run(["ip", *args], check=True, capture_output=True, text=True)


@pytest.fixture(scope="module")
def hosts() -> Iterator[list[str]]:
    """The names of two network namespaces that reach each other and nothing else."""
    if not hasattr(os, "geteuid") or os.geteuid() or shutil.which("ip") is None:
        pytest.skip("needs root and iproute2 to create network namespaces")
    names = [f"graphite-gen-{os.getpid()}-{number}" for number in range(2)]
    try:
        try:
            for name in names:
                ip("netns", "add", name)
            ip("-n", names[0], "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", names[1])
            for name, address in zip(names, ADDRESSES, strict=True):
                ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
                for device in ("lo", "eth0"):
                    ip("-n", name, "link", "set", device, "up")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces cannot be created: {error.stderr.strip()}")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def run_on(hosts: list[str], *args: object) -> Path:
    """Run a command on both hosts, each in a folder of its own; return the folder of rank 0, which has the output."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("GLOO_SOCKET_IFNAME", None)
    before, processes = {}, []
    for number, (host, address) in enumerate(zip(hosts, ADDRESSES, strict=True)):
        folder = Path(f"host{number}")
        folder.mkdir(exist_ok=True)
        before[folder] = sorted(folder.rglob("*"))
        options = ("--nnodes", 2, "--nproc-per-node", 1, "--rdzv-backend", "c10d", "--rdzv-id", "graphs")
        endpoint = ("--rdzv-endpoint", f"{ADDRESSES[0]}:29417", "--rdzv-conf", f"is_host={1 - number}")
        words = (*options, *endpoint, "--local-addr", address, "-m", "graphite_gen", *args)
        line = ["ip", "netns", "exec", host, sys.executable, "-m", "torch.distributed.run", *map(str, words)]
        output = (folder / "stderr").open("w")
        processes.append(subprocess.Popen(line, cwd=folder, env=environment, stdout=output, stderr=output))
    try:
        codes = [process.wait(120) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert codes == [0, 0], [(folder / "stderr").read_text()[-2000:] for folder in before]
    changed = [folder for folder in before if set(folder.rglob("*")) - {*before[folder], folder / "stderr"}]
    assert len(changed) == 1, "rank 0 alone writes"

    return changed[0]


def test_sampled_files_do_not_depend_on_the_number_of_hosts(hosts: list[str], model: Path) -> None:
    line = ("sample", "--model", model, "-n", 300, "--threads", 1, "-o")
    run(*line, "one.h5")

    folder = run_on(hosts, *line, "two.h5")

    assert (folder / "two.h5").read_bytes() == Path("one.h5").read_bytes()


def test_training_on_two_hosts_agrees_with_one_process(hosts: list[str]) -> None:
    line = ("train", "--family", "ego", *TINY)
    run(*line)

    folder = run_on(hosts, *line)

    ours, theirs = (read_tensors(place / "checkpoints" / "ego" / "model.safetensors")[0] for place in (Path(), folder))
    assert all(torch.allclose(ours[name], theirs[name], rtol=0, atol=1e-5) for name in ours)
