"""The families of random graphs, their parameters and entropies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .. import options
from ..command import Option, command
from ..console import nats, note, show_json, show_rows, track

if TYPE_CHECKING:
    from graphite_gen.families import Family
    from graphite_gen.families.entropies import EntropyEstimate

SIZES = (10, 20)
GRAPHS, BOUNDED_GRAPHS = 100, 5


@command(
    short_help="List the random graph families.",
    groups={"Entropy": "name parameters nodes graphs seed", "Output": "as_json"},
    needs=dict.fromkeys(("parameters", "nodes", "graphs", "seed"), "name"),
)
@click.option(
    *("--entropy", "name"),
    cls=Option,
    earlier=("--floor",),
    metavar="NAME",
    help="Compute the entropy of this family for each number of nodes.",
)
@options.parameters
@options.nodes(default="{}:{}".format(*SIZES), help="Numbers of nodes.")
@options.number(
    "--graphs",
    help="Graphs to simulate per number of nodes, where there is no closed form.  "
    f"[default: {GRAPHS}, or {BOUNDED_GRAPHS} for 'geometric', which takes seconds per graph]",
)
@options.all_of(options.seed, options.as_json)
def families(name: str | None, as_json: bool, **values: Any) -> None:
    """List the families with their parameters and entropies, or compute the entropy of one of them.

    The entropy is the expected -log p(A|n) under the true process in nats per graph, a lower bound on the NLL of any
    model. It includes node labels and weights where graphs have them. The list shows the mean over sizes of 10 to 20
    nodes; values with a standard error are estimates. Parameters are set with '--param'; with 'largest_component=true'
    samples may have fewer nodes, and the entropy differs.

    \b
    Example:
        graphite-gen families
        graphite-gen families --entropy barabasi --nodes 10:20
        graphite-gen families --entropy geometric --param r=0.3 --nodes 12 --graphs 20
    """
    if name is not None:
        return _show_entropy(name, as_json, **values)

    from graphite_gen.families import FAMILIES

    rows = [_describe(kind()) for kind in FAMILIES.values()]
    if as_json:
        return show_json(rows)
    entropy = "entropy, nats\n{}–{} nodes".format(*SIZES)
    cells = [
        (
            "\n".join((row["name"], *(f"  or {alias}" for alias in row["aliases"]))),
            "\n".join(f"{key}={_shown(value)}" for key, value in row["parameters"].items()),
            nats(row["entropy"], row["entropy_standard_error"]),
            row["summary"],
        )
        for row in rows
    ]
    columns = ("family", "parameters", entropy, "description")

    return show_rows(columns, cells, numbers=(entropy,), whole=("family", "parameters"))


def _describe(family: Family) -> dict[str, Any]:
    from graphite_gen.families.entropies import known_entropy, mean_entropy

    sizes = family.sizes(*SIZES)
    known = {n: entropy for n in sizes if (entropy := known_entropy(family, n)) is not None}
    mean = mean_entropy(known, sizes) if len(known) == len(sizes) else None
    value, error = (None, None) if mean is None else (mean.nats, _error(mean))

    return {
        "name": family.name,
        "aliases": list(family.aliases),
        "parameters": family.parameters(),
        "summary": family.summary,
        "has_log_prob": family.has_log_prob,
        **{name: getattr(family, name) for name in ("node_label", "weighted", "directed")},
        "entropy": value,
        "entropy_standard_error": error,
        # Former names of the two.
        "floor": value,
        "floor_standard_error": error,
    }


def _error(entropy: EntropyEstimate) -> float | None:
    """The standard error of an estimate; None for a closed form."""
    return entropy.standard_error if entropy.graphs else None


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


def _show_entropy(
    name: str, as_json: bool, *, parameters: Any, nodes: tuple[int, int], graphs: int | None, seed: int
) -> None:
    """Print the entropy for each size and its mean."""
    from graphite_gen.families import family as family_of
    from graphite_gen.families.entropies import mean_entropy

    family = family_of(name, **dict(parameters))
    sizes = family.sizes(*nodes)
    is_exact = family.has_log_prob
    entropies = _compute_entropies(family, sizes, graphs or (GRAPHS if is_exact else BOUNDED_GRAPHS), seed)
    mean = mean_entropy(entropies, sizes)
    if as_json:
        rows = [{"nodes": n, **_entropy_json(entropy)} for n, entropy in entropies.items()]
        about = {"family": family.name, "parameters": family.parameters(), "seed": seed}
        return show_json({**about, **_entropy_json(mean), "sizes": rows})
    columns = ("nodes", "entropy, nats per graph", "method", "bounds", "gap")[: 3 if is_exact else None]
    cells = [
        (
            str(label),
            nats(entropy.nats, _error(entropy)),
            f"{entropy.graphs} graphs" if entropy.graphs else "closed form",
            f"{entropy.lower:.2f} to {entropy.upper:.2f}",
            nats(entropy.gap, entropy.gap_standard_error),
        )[: len(columns)]
        for label, entropy in (*entropies.items(), ("mean", mean))
    ]
    show_rows(columns, cells, numbers=columns)
    crossed = [
        f"{nats(-entropy.gap, entropy.gap_standard_error)} at {n} nodes"
        for n, entropy in entropies.items()
        if entropy.gap < 0
    ]
    if crossed:
        note(
            f"The lower bound exceeds the upper bound by {', '.join(crossed)}: Monte Carlo noise, as both hold in "
            f"expectation. Pass a larger '--graphs', or use the midpoint with its standard error."
        )

    return None


def _entropy_json(entropy: EntropyEstimate) -> dict[str, Any]:
    names = ("lower", "upper", "gap", "gap_standard_error", "graphs")

    return {
        "entropy": entropy.nats,
        "floor": entropy.nats,  # former name
        "standard_error": _error(entropy),
        **{name: getattr(entropy, name) for name in names},
    }


def _compute_entropies(family: Family, sizes: list[int], graphs: int, seed: int) -> dict[int, EntropyEstimate]:
    """The entropy of each size, in closed form or from new samples."""
    from graphite_gen.families.entropies import EntropyEstimate, draw_nats

    exact = {n: family.entropy(n) for n in sizes}
    drawn = [n for n in sizes if exact[n] is None]
    if drawn:
        note(f"Sampling {graphs} graphs of each size: {len(drawn) * graphs} of '{family.name}', seed {seed}.")
    draws = (bounds for n in drawn for bounds in draw_nats(family, n, graphs, seed))
    bounds = list(track(draws, len(drawn) * graphs, "Sampling"))
    found = {n: EntropyEstimate.of(bounds[i * graphs : (i + 1) * graphs]) for i, n in enumerate(drawn)}

    return {n: found[n] if value is None else EntropyEstimate.exact(value) for n, value in exact.items()}
