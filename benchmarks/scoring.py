"""NLL of fresh graphs under a model of this version or an earlier one, graph by graph."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.commands import Side, this_version
from graphite_gen.graph import SimpleGraph
from graphite_gen.io import write_graphs

__all__ = ["mean_and_error", "upper_bounds"]

SCORE = """
import json, sys
import torch
import graphite_gen as gg

model, file, samples, threads = json.loads(sys.argv[1])
torch.set_num_threads(threads)
estimate = gg.load(model).nll(gg.read_graphs(file), samples=samples, seed=0, curve=True)
# The last point of the curve is the plain mean of all weights.
print(json.dumps([row.curve[-1][1] for row in estimate.per_graph]))
"""


def upper_bounds(
    model: str | Path, graphs: Sequence[SimpleGraph], samples: int, *, threads: int = 1, side: Side | None = None
) -> np.ndarray:
    """Return -log of the plain mean weight of each graph: an upper bound on its NLL in expectation, in nats.

    Arguments:
        model: The folder or name of the model.
        graphs: The graphs to score.
        samples: Node orderings per graph.
        threads: Threads of torch.
        side: The version of the model; by default this one.
    """
    with tempfile.TemporaryDirectory() as place:
        # graph6 keeps the order of the graphs, and both versions read it.
        file = Path(place) / "test.g6"
        write_graphs(graphs, file)

        return np.array((side or this_version()).evaluate(SCORE, model, file, samples, threads, threads=threads))


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Return the mean of values, and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))
