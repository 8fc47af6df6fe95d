"""Bounds on -log p(A|n) of the geometric test graphs, graph by graph: what paired excesses over the floor need.

Seconds a graph, so every graph is kept as soon as it is done: run it again to go on. The graphs are the first of
``generate("geometric", seed=1000)``, of which other benchmarks test on 300.
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

FILE = Path(__file__).resolve().parent / "results" / "geometric_bounds.json"
TITLE = "Lower and upper bounds, each in expectation, of -log p(A|n) in nats, geometric graphs with r = 0.5"
TEST_SEED = 1000
PARTICLES = 1000


def digest(graph: SimpleGraph) -> str:
    """A short name of a labelled graph, to tell that two files speak of the same."""
    content = graph.nodes.to_bytes(4, "little") + graph.edges.astype("<i4").tobytes()

    return hashlib.sha256(content).hexdigest()[:16]


def read_rows() -> list[dict[str, Any]]:
    """The bounds so far, by index of the graph."""
    return list(json.loads(FILE.read_text(encoding="utf-8"))["graphs"]) if FILE.exists() else []


def write_rows(rows: list[dict[str, Any]]) -> None:
    """Keep the bounds, one graph a line."""
    head = {"title": TITLE, "seed": TEST_SEED, "particles": PARTICLES}
    lines = ",\n".join(json.dumps(row) for row in rows)
    text = json.dumps(head)[:-1] + f', "graphs": [\n{lines}\n]}}\n'
    fresh = FILE.with_suffix(".part")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(FILE)


def bound(index: int, graph: SimpleGraph) -> dict[str, Any]:
    """The bounds of one test graph, with the points it was made from found again by its random stream."""
    law = Geometric()
    again, points = law.sample_with_points(graph.nodes, stream(TEST_SEED, "generate", index))
    assert digest(again) == digest(graph)
    lower, upper = law.log_prob_bounds(graph, stream(TEST_SEED, "bounds", index), PARTICLES, points)

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
    parser.add_argument("--graphs", type=int, default=300, help="how many of the graphs, from the first")
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
