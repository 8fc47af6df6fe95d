"""Excess NLL of the six families by training time, and its picture.

Each model is trained by ``graphite-gen train --family F --budget Xm`` and scored on fresh graphs, whose true
log-probability is known. ``--earlier`` measures the decoder of an earlier commit in the same way; it has no budget, so
a short run measures its speed, and the number of graphs per epoch is set for the wanted time. Times are CPU minutes of
the whole command. Finished models are in a log, which is continued.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from benchmarks import logs, tables
from benchmarks.commands import EARLIER, Side, earlier_version, minutes, this_version, train
from benchmarks.reproduce.autoregressive import TEST_SEED, true_nats
from benchmarks.scoring import mean_and_error, upper_bounds
from graphite_gen.families import PAPER_FAMILIES, family
from graphite_gen.families.simulate import generate
from graphite_gen.viz import figures

LOG = tables.FOLDER / "quality_by_time.jsonl"
PICTURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "quality-by-time.png"
KEYS = ("version", "family", "budget", "seed")
BUDGETS = (0.5, 1.0, 2.0, 4.0, 8.0)
# The run that measures the speed of the earlier decoder.
PILOT_GRAPHS, EPOCHS = 1024, 30
# The colours of Okabe and Ito, and markers that differ, for colour-blind readers and print.
LINES = {
    "erdos-renyi": (figures.INK, "o"),
    "ego": ("#56B4E9", "s"),
    "regular": ("#009E73", "^"),
    "geometric": (figures.SECOND, "D"),
    "powerlaw-tree": ("#CC79A7", "v"),
    "barabasi": (figures.SAMPLES, "P"),
}
TARGET = 0.05


def earlier_settings(name: str, budget: float, seed: int, side: Side, options: argparse.Namespace) -> list[str]:
    """Return settings of the earlier version for a run of about ``budget`` minutes."""
    words = ["--epochs", "1", "--epoch-graphs", str(PILOT_GRAPHS), "--seed", str(seed)]
    source = ["--family", name]
    pilot = train(options.models, f"{name}-pilot-{side.commit}", source, words, threads=options.threads, side=side)
    per_graph = max(pilot["results"]["seconds"], 0.1) / PILOT_GRAPHS
    count = max(1, round(60 * budget / (EPOCHS * per_graph)))

    return ["--epochs", str(EPOCHS), "--epoch-graphs", str(count)]


def measure(job: tuple[str, str, float, int], sides: dict[str, Side], options: argparse.Namespace) -> dict[str, Any]:
    """Return training time and excess NLL of one model."""
    version, name, budget, seed = job
    side = sides[version]
    length = (
        ["--budget", f"{round(60 * budget)}s"]
        if side.commit is None
        else earlier_settings(name, budget, seed, side, options)
    )
    label = f"{name}-{budget:g}m-{seed}-{version}"
    words = [*length, "--seed", str(seed)]
    source = ["--family", name]
    trained = train(options.models, label, source, words, threads=options.threads, side=side, again=options.again)
    process = family(name)
    test = generate(process, options.graphs, seed=TEST_SEED).graphs
    bounds = upper_bounds(trained["folder"], test, options.samples, threads=options.threads, side=side)
    excess, error = mean_and_error(bounds - true_nats(process, test))

    return {
        **dict(zip(KEYS, job, strict=True)),
        "minutes": minutes(trained),
        "interrupted": trained["cpu_seconds"] is None,
        "settings": trained["settings"],
        "results": trained["results"],
        "nll": float(bounds.mean()),
        "excess": excess,
        "excess_error": error,
        "graphs": options.graphs,
        "samples": options.samples,
        "threads": options.threads,
        **{key: trained[key] for key in ("commit", "date", "machine")},
    }


def draw(rows: Sequence[dict[str, Any]], picture: Path) -> None:
    """Draw excess NLL against minutes, one line per family; the earlier decoder has a panel of its own."""
    versions = [version for version in ("this", "earlier") if any(row["version"] == version for row in rows)]
    figure = figures.new_figure(4.6 * len(versions) + 0.6, 3.8)
    panels = figure.subplots(1, len(versions), squeeze=False, sharex=True, sharey=True)[0]
    for panel, version in zip(panels, versions, strict=True):
        for name, (colour, marker) in LINES.items():
            own = sorted((row for row in rows if (row["version"], row["family"]) == (version, name)), key=_minutes)
            if own:
                points = [_minutes(row) for row in own], [row["excess"] for row in own]
                error = [row["excess_error"] for row in own]
                style = {"color": colour, "marker": marker, "markersize": 5, "linewidth": 1.3, "capsize": 2}
                panel.errorbar(*points, yerr=error, label=name, **style)
        panel.axhline(TARGET, color=figures.GREY, linewidth=0.8, linestyle="--")
        commit = next(row["commit"] for row in rows if row["version"] == version)
        title = f"this decoder ({commit})" if version == "this" else f"earlier decoder ({commit})"
        figures._style(panel, title, "training, CPU minutes")
        panel.set_xscale("log", base=2)
        panel.xaxis.set_major_formatter("{x:g}")
        # Linear near 0: an excess within its error may be negative.
        panel.set_yscale("symlog", linthresh=TARGET)
        panel.yaxis.set_major_formatter("{x:g}")
    panels[0].set_ylabel("excess NLL, nats per graph", fontsize=8)
    found = [panel.get_legend_handles_labels() for panel in panels]
    legend = {label: handle for handles, labels in found for handle, label in zip(handles, labels, strict=True)}
    figure.legend(legend.values(), legend.keys(), loc="outside right center", frameon=False, fontsize=8)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figures.save_picture(figure, picture, force=True)


def _minutes(row: dict[str, Any]) -> float:
    return float(row["minutes"])


def table(rows: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return header and lines of the table: one line per family and version."""
    budgets = sorted({row["budget"] for row in rows})
    lines = []
    for version in ("this", "earlier"):
        for name in PAPER_FAMILIES:
            own = {row["budget"]: row for row in rows if (row["version"], row["family"]) == (version, name)}
            cells = [
                f"{own[budget]['excess']:.3f} ± {own[budget]['excess_error']:.3f} ({own[budget]['minutes']:.1f})"
                if budget in own
                else "–"
                for budget in budgets
            ]
            if own:
                commits = dict.fromkeys(row["commit"] for row in own.values())
                lines.append([name, ", ".join(commits), *cells])

    return ["family", "commit", *(f"{budget:g} min" for budget in budgets)], lines


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", help="families to train; all by default")
    parser.add_argument("--budgets", type=float, nargs="+", default=list(BUDGETS), help="minutes of training")
    parser.add_argument("--graphs", type=int, default=300, help="fresh graphs to score")
    parser.add_argument("--samples", type=int, default=100, help="node orderings per graph")
    parser.add_argument("--earlier", action="store_true", help=f"also train and score with commit {EARLIER} (long)")
    parser.add_argument("--again", action="store_true", help="train and score again what is in the log")
    parser.add_argument("--models", type=Path, default=Path("build/quality_by_time"), help="folder of models")
    parser.add_argument("--picture", type=Path, default=PICTURE)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    logs.add_options(parser, LOG)
    options = logs.parse(parser, LOG, arguments)
    options.models = options.models.resolve()
    if options.log != LOG and options.picture == PICTURE:
        options.picture = options.log.with_suffix(".png")
    if options.quick:
        options.budgets, options.graphs, options.samples = [0.02, 0.05], 10, 5

    versions = ["this", "earlier"] if options.earlier else ["this"]
    # The largest budgets last, so that an interrupted benchmark has all families.
    jobs = [
        (version, name, float(budget), options.seed)
        for version in versions
        for budget in sorted(options.budgets)
        for name in options.families or list(PAPER_FAMILIES)
    ]
    if not options.tables:
        with earlier_version() if options.earlier else nullcontext(this_version()) as earlier:
            sides = {"this": this_version(), "earlier": earlier}
            logs.run_all(jobs, KEYS, lambda job: measure(job, sides, options), options.log, again=options.again)
    # The last row of a job counts.
    rows = list({tuple(row[key] for key in KEYS): row for row in logs.read_log(options.log)}.values())
    draw(rows, options.picture)
    header, lines = table(rows)
    if options.log == LOG:
        title = (
            f"Excess NLL by the budget of training, {options.graphs} fresh graphs, nats per graph "
            "(in parentheses: CPU minutes of the command)"
        )
        tables.publish("quality_by_time", title, header, lines, {"settings": logs.settings(options), "rows": rows})
    else:
        print(*tables.lines(header, lines), sep="\n")


if __name__ == "__main__":
    main()
