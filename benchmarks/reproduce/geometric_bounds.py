"""Bounds on -log p(A|n) of the geometric test graphs, one graph at a time, for paired estimates of excess NLL.

Each graph takes seconds and is stored as soon as it is done; run the script again to continue. The graphs are the first
of ``generate("geometric", seed=1000)``, 300 of which are the test graphs of other benchmarks.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from pathlib import Path
from typing import Any

from graphite_gen.families.geometric import Geometric
from graphite_gen.families.simulate import generate
from graphite_gen.graph import SimpleGraph
from graphite_gen.rng import stream

__all__ = ["FILE", "PARTICLES", "TEST_SEED", "digest", "read_rows"]

FILE = Path(__file__).resolve().parents[1] / "results" / "geometric_bounds.json"
TITLE = "Lower and upper bounds, each in expectation, of -log p(A|n) in nats, geometric graphs with r = 0.5"
TEST_SEED = 1000
PARTICLES = 1000


def digest(graph: SimpleGraph) -> str:
    """Return a short hash of a labelled graph."""
    content = graph.nodes.to_bytes(4, "little") + graph.edges.astype("<i4").tobytes()

    return hashlib.sha256(content).hexdigest()[:16]


def read_rows() -> list[dict[str, Any]]:
    """Return the stored bounds, by index of the graph."""
    return list(json.loads(FILE.read_text(encoding="utf-8"))["graphs"]) if FILE.exists() else []


def write_rows(rows: list[dict[str, Any]]) -> None:
    """Store the bounds, one graph per line."""
    head = {"title": TITLE, "seed": TEST_SEED, "particles": PARTICLES}
    lines = ",\n".join(json.dumps(row) for row in rows)
    text = json.dumps(head)[:-1] + f', "graphs": [\n{lines}\n]}}\n'
    fresh = FILE.with_suffix(".part")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(FILE)


def bound(index: int, graph: SimpleGraph) -> dict[str, Any]:
    """Return the bounds of one test graph; its points are recovered from its random stream."""
    process = Geometric()
    again, points = process.sample_with_points(graph.nodes, stream(TEST_SEED, "generate", index))
    assert digest(again) == digest(graph)
    lower, upper = process.log_prob_bounds(graph, stream(TEST_SEED, "bounds", index), PARTICLES, points)

    return {
        "index": index,
        "digest": digest(graph),
        "nodes": graph.nodes,
        "edges": len(graph.edges),
        "lower": round(-upper, 4),
        "upper": round(-lower, 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=300, help="number of graphs")
    parser.add_argument("--minutes", type=float, default=40, help="CPU time after which to stop")
    arguments = parser.parse_args()

    rows = read_rows()
    graphs = generate(Geometric(), arguments.graphs, seed=TEST_SEED).graphs
    for index in range(len(rows), arguments.graphs):
        if time.process_time() > 60 * arguments.minutes:
            break
        rows.append(bound(index, graphs[index]))
        write_rows(rows)
    print(f"{len(rows)} graphs in '{FILE.name}'.")


if __name__ == "__main__":
    main()
