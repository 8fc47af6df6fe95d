"""A report on samples of a model of one network, beside that network."""

from __future__ import annotations

from collections.abc import Sequence

from .. import __version__
from ..evaluation import NetworkComparison, compare_networks
from ..evaluation.histograms import distributions
from ..graph import SimpleGraph
from ..viz.report import ReportData, sample_rows
from .generation import NetworkModel, sample_networks

__all__ = ["collect_network_report"]


def collect_network_report(
    model: NetworkModel,
    facts: Sequence[tuple[str, str]],
    *,
    reference: SimpleGraph | None = None,
    reference_source: str = "none",
    samples: Sequence[SimpleGraph] = (),
    count: int = 3,
    seed: int = 0,
    command: str = "",
) -> ReportData:
    """Sample from a model of one network and collect the data of a report.

    Arguments:
        facts: What is known about the model, as names and values in words.
        reference: The network that the samples should resemble.
        samples: Samples of the model; ``count`` are drawn if there are none.
    """
    drawn = list(samples) or list(sample_networks(model, count, seed=seed))
    known = [] if reference is None else [reference]
    compared = [fact for network in known for fact in _compared(compare_networks(drawn, network))]

    return ReportData(
        name=model.name,
        facts=[*(fact for fact in facts if fact[0] != "folder"), *compared],
        samples=sample_rows(drawn, [], None),
        reference=known,
        reference_source=reference_source,
        evaluation=None,
        nll=None,
        nll_note="Not estimated for a model of one network.",
        entropy=None,
        distributions=distributions(drawn, known) if known else [],
        history=(),
        provenance=[
            ("command", command or "from Python"),
            ("seed of the report", str(seed)),
            ("samples", f"{len(drawn)}, {'read from a file' if samples else f'drawn with seed {seed}'}"),
            ("reference", reference_source),
            ("seed of the training", str(model.seed)),
            ("graphite-gen", __version__),
        ],
    )


def _compared(found: NetworkComparison) -> list[tuple[str, str]]:
    """A comparison in words, as facts."""
    rows = [
        (f"{row.name}, samples", f"{row.samples:.4g} ± {row.deviation:.2g}; the network {row.reference:.4g}")
        for row in found.statistics
        if row.samples is not None and row.reference is not None
    ]
    overlap = [] if found.edge_overlap is None else [("edges in the network", f"{found.edge_overlap:.1%}")]

    return [*rows, ("degree distributions", f"Kolmogorov-Smirnov distance {found.degree_distance:.3f}"), *overlap]
