"""The entropies of families by number of nodes: the table that is shipped with the package.

Five families have a closed form. The log-probabilities of barabasi, weighted-barabasi and random-dag are exact, so
their entropies are estimated by means over fresh graphs. That of geometric is bounded graph by graph by
``geometric_bounds.py``, which must be run first.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.reproduce import geometric_bounds
from benchmarks.tables import publish
from graphite_gen import families
from graphite_gen.families import PAPER_FAMILIES, Family, family
from graphite_gen.families.entropies import TABLE, EntropyEstimate, draw_nats, mean_entropy

SIZES = range(10, 21)
SAMPLED = ("barabasi", "weighted-barabasi", "random-dag")
FILE = Path(families.__file__).parent / TABLE


def closed_forms(process: Family) -> dict[int, EntropyEstimate]:
    """Return the entropies of a family that has a closed form."""
    values = {n: process.entropy(n) for n in process.sizes(SIZES[0], SIZES[-1])}

    return {n: EntropyEstimate.exact(value) for n, value in values.items() if value is not None}


def sampled(name: str, graphs: int, largest: int) -> dict[int, EntropyEstimate]:
    """Return means of the exact -log p over fresh graphs."""
    process = family(name)
    found = {}
    for n in range(SIZES[0], largest + 1):
        found[n] = EntropyEstimate.of(list(draw_nats(process, n, graphs, seed=0)))
        print(f"{name} n={n}: {found[n].nats:.2f} ± {found[n].standard_error:.2f}", file=sys.stderr)

    return found


def geometric() -> dict[int, EntropyEstimate]:
    """Return means of the bounds of the test graphs."""
    bounds = defaultdict(list)
    for row in geometric_bounds.read_rows():
        bounds[row["nodes"]].append((row["lower"], row["upper"]))

    return {n: EntropyEstimate.of(bounds[n]) for n in SIZES}


def write_table(estimated: dict[str, dict[int, EntropyEstimate]]) -> None:
    """Write the shipped file, one line per size."""
    parts = []
    for name, entropies in sorted(estimated.items()):
        lines = ",\n".join(f'      "{n}": {json.dumps(_rounded(entropy))}' for n, entropy in entropies.items())
        parameters = json.dumps(family(name).parameters())
        parts.append(f'  "{name}": {{\n    "parameters": {parameters},\n    "entropies": {{\n{lines}\n    }}\n  }}')
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _rounded(entropy: EntropyEstimate) -> dict[str, Any]:
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in entropy.to_json().items()}


def cell(entropy: EntropyEstimate | None) -> str:
    """Format an entropy, with its standard error if it was estimated."""
    if entropy is None:
        return "–"

    return f"{entropy.nats:.2f} ± {entropy.standard_error:.2f}" if entropy.graphs else f"{entropy.nats:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=1000, help="graphs per size of a family without bounds")
    parser.add_argument("--largest", type=int, default=30, help="largest number of nodes of these graphs")
    arguments = parser.parse_args()

    estimated = {name: sampled(name, arguments.graphs, arguments.largest) for name in SAMPLED}
    estimated["geometric"] = geometric()
    write_table(estimated)
    entropies = {name: estimated.get(name) or closed_forms(family(name)) for name in PAPER_FAMILIES}
    means = {name: mean_entropy(own, [n for n in SIZES if n in own]) for name, own in entropies.items()}
    last = max(n for own in entropies.values() for n in own)
    rows = [[str(n), *(cell(entropies[name].get(n)) for name in entropies)] for n in range(SIZES[0], last + 1)]
    rows.append([f"{SIZES[0]}:{SIZES[-1]}", *(cell(means[name]) for name in entropies)])
    details = {
        "settings": vars(arguments),
        "floors": {name: {n: entropy.to_json() for n, entropy in own.items()} for name, own in entropies.items()},
        "means": {name: entropy.to_json() for name, entropy in means.items()},
    }
    title = "Entropy of each family by number of nodes, nats per graph, default parameters"
    publish("entropies", title, ["n", *entropies], rows, details)


if __name__ == "__main__":
    main()
