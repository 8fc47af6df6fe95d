"""The families of random graphs, their parameters and entropies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from .. import options
from ..command import Command, Option

if TYPE_CHECKING:
    from graphite_gen.families import Family
    from graphite_gen.families.entropies import EntropyEstimate

SIZES = (10, 20)
GRAPHS = 100
BOUNDED_GRAPHS = 5
OF_ENTROPY = {"parameters": "--param", "nodes": "--nodes", "graphs": "--graphs", "seed": "--seed"}


@click.command(
    cls=Command,
    short_help="List the random graph families.",
    groups={
        "Entropy": "name parameters nodes graphs seed",
        "Output": "as_json",
    },
)
@click.option(
    "--entropy",
    "name",
    cls=Option,
    earlier=("--floor",),
    metavar="NAME",
    help="Compute the entropy of this family, size by size.",
)
@options.parameters
@options.nodes("{}:{}".format(*SIZES), "Sizes.")
@click.option(
    "--graphs",
    type=click.IntRange(1),
    metavar="N",
    help="Simulated graphs per size, where there is no closed form.  "
    f"[default: {GRAPHS}, or {BOUNDED_GRAPHS} for 'geometric', at some seconds each]",
)
@options.seed
@options.as_json
def families(
    name: str | None,
    parameters: tuple[tuple[str, str], ...],
    nodes: tuple[int, int],
    graphs: int | None,
    seed: int,
    as_json: bool,
) -> None:
    """List the families with their parameters and entropies, or compute the entropy of one of them.

    The entropy is the expected -log p(A|n) under the true process in nats per graph, a lower bound on the NLL of any
    model. The list shows the mean over sizes of 10 to 20 nodes; values with a standard error are estimates. Parameters
    are set with '--param'; with 'largest_component=true' samples may have fewer nodes, and the entropy differs.

    \b
    Example:
        graphite-gen families
        graphite-gen families --entropy barabasi --nodes 10:20
        graphite-gen families --entropy geometric --param r=0.3 --nodes 12 --graphs 20
    """
    if name is not None:
        return _show_entropy(name, dict(parameters), nodes, graphs, seed, as_json)
    for key, option in OF_ENTROPY.items():
        if options.is_given(key):
            raise click.UsageError(f"'{option}' needs '--entropy'.")

    return _show_families(as_json)


def _show_families(as_json: bool) -> None:
    from graphite_gen.families import FAMILIES

    from ..console import nats, show_json, show_rows

    rows = [_describe(kind()) for kind in FAMILIES.values()]
    if as_json:
        return show_json(rows)

    entropy = "entropy, nats\n{}–{} nodes".format(*SIZES)

    return show_rows(
        ("family", "parameters", entropy, "description"),
        [
            (
                "\n".join((row["name"], *(f"  or {alias}" for alias in row["aliases"]))),
                "\n".join(f"{key}={_shown(value)}" for key, value in row["parameters"].items()),
                nats(row["entropy"], row["entropy_standard_error"]),
                row["summary"],
            )
            for row in rows
        ],
        numbers=(entropy,),
        whole=("family", "parameters"),
    )


def _describe(family: Family) -> dict[str, Any]:
    entropy = _known_entropy(family)

    return {
        "name": family.name,
        "aliases": list(family.aliases),
        "parameters": family.parameters(),
        "summary": family.summary,
        "has_log_prob": family.has_log_prob,
        "entropy": entropy and entropy.nats,
        "entropy_standard_error": entropy and _error(entropy),
        # Former names of the two.
        "floor": entropy and entropy.nats,
        "floor_standard_error": entropy and _error(entropy),
    }


def _known_entropy(family: Family) -> EntropyEstimate | None:
    """The mean entropy over the default sizes; None unless all are known."""
    from graphite_gen.families.entropies import known_entropy, mean_entropy

    sizes = family.sizes(*SIZES)
    entropies = {n: entropy for n in sizes if (entropy := known_entropy(family, n)) is not None}

    return mean_entropy(entropies, sizes) if len(entropies) == len(sizes) else None


def _error(entropy: EntropyEstimate) -> float | None:
    """The standard error of an estimate; None for a closed form."""
    return entropy.standard_error if entropy.graphs else None


def _show_entropy(
    name: str, parameters: dict[str, str], nodes: tuple[int, int], graphs: int | None, seed: int, as_json: bool
) -> None:
    """Print the entropy for each size and its mean."""
    from graphite_gen.families import family as family_of
    from graphite_gen.families.entropies import mean_entropy

    from ..console import nats, show_json, show_rows

    family = family_of(name, **parameters)
    sizes = family.sizes(*nodes)
    entropies = _compute_entropies(family, sizes, graphs or (GRAPHS if family.has_log_prob else BOUNDED_GRAPHS), seed)
    mean = mean_entropy(entropies, sizes)
    if as_json:
        value = {
            "family": family.name,
            "parameters": family.parameters(),
            "seed": seed,
            **_entropy_row(mean),
            "sizes": [{"nodes": n, **_entropy_row(entropy)} for n, entropy in entropies.items()],
        }
        return show_json(value)

    lines = [*((str(n), entropy) for n, entropy in entropies.items()), ("mean", mean)]
    columns = ("nodes", "entropy, nats per graph", "method") + (() if family.has_log_prob else ("bounds", "gap"))

    show_rows(
        columns,
        [
            (
                label,
                nats(entropy.nats, _error(entropy)),
                f"{entropy.graphs} graphs" if entropy.graphs else "closed form",
                *(
                    ()
                    if family.has_log_prob
                    else (f"{entropy.lower:.2f} to {entropy.upper:.2f}", nats(entropy.gap, entropy.gap_standard_error))
                ),
            )
            for label, entropy in lines
        ],
        numbers=columns,
    )
    _note_crossed_bounds(entropies)

    return None


def _note_crossed_bounds(entropies: Mapping[int, EntropyEstimate]) -> None:
    """Explain bounds that are in the wrong order."""
    from ..console import nats, note

    crossed = {n: entropy for n, entropy in entropies.items() if entropy.gap < 0}
    if crossed:
        listed = ", ".join(
            f"{nats(-entropy.gap, entropy.gap_standard_error)} at {n} nodes" for n, entropy in crossed.items()
        )
        note(
            f"The lower bound exceeds the upper bound by {listed}: Monte Carlo noise, as both hold in expectation. "
            f"Pass a larger '--graphs', or use the midpoint with its standard error."
        )


def _entropy_row(entropy: EntropyEstimate) -> dict[str, Any]:
    return {
        "entropy": entropy.nats,
        "floor": entropy.nats,  # former name
        "standard_error": _error(entropy),
        "lower": entropy.lower,
        "upper": entropy.upper,
        "gap": entropy.gap,
        "gap_standard_error": entropy.gap_standard_error,
        "graphs": entropy.graphs,
    }


def _compute_entropies(family: Family, sizes: list[int], graphs: int, seed: int) -> dict[int, EntropyEstimate]:
    """The entropy of each size, in closed form or from new samples."""
    from graphite_gen.families.entropies import EntropyEstimate, draw_nats

    from ..console import note, track

    exact = {n: family.entropy(n) for n in sizes}
    drawn = [n for n in sizes if exact[n] is None]
    if drawn:
        note(f"Sampling {graphs} graphs of each size: {len(drawn) * graphs} of '{family.name}', seed {seed}.")
    draws = (bounds for n in drawn for bounds in draw_nats(family, n, graphs, seed))
    bounds = list(track(draws, len(drawn) * graphs, "Sampling"))
    found = {n: EntropyEstimate.of(bounds[i * graphs : (i + 1) * graphs]) for i, n in enumerate(drawn)}

    return {n: found[n] if value is None else EntropyEstimate.exact(value) for n, value in exact.items()}


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"
