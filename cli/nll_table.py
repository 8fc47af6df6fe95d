"""Tables and JSON of NLL estimates beside entropy and baseline, with their diagnostics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from .console import nats, show_facts, show_json, show_rows
from .diagnosis import MIN_MARGIN, bdmc_verdict, is_reliable, nll_diagnosis, nll_finding

if TYPE_CHECKING:
    from graphite_gen.likelihood.bdmc import BDMCEstimate
    from graphite_gen.likelihood.excess import Entropy
    from graphite_gen.records import NLLEstimate

__all__ = ["NLLTable"]


@dataclass(frozen=True)
class NLLTable:
    """An NLL estimate with all that is shown beside it.

    Attributes:
        estimate: The NLL.
        entropy: The entropy of the family and the excess NLL.
        bdmc: The bounds on graphs sampled from the model.
        unlabelled: Whether all values are per isomorphism class.
        anneals: Whether the model has a method ``ais``, which an autoregressive one has not.
    """

    estimate: NLLEstimate
    entropy: Entropy | None = None
    bdmc: BDMCEstimate | None = None
    unlabelled: bool = False
    anneals: bool = True

    @property
    def covered(self) -> float | None:
        """The reduction from the baseline by the model, as a fraction of that by the true process."""
        baseline = self.estimate.baseline
        if baseline is None or self.entropy is None or baseline - self.entropy.nats < MIN_MARGIN:
            return None

        return (baseline - self.estimate.nll) / (baseline - self.entropy.nats)

    def show_json(self, per_graph: bool) -> None:
        """Print everything as one JSON object."""
        estimate, entropy = self.estimate, self.entropy
        known = estimate.to_json()
        rows, curve = known.pop("per_graph"), known.pop("curve")
        value: dict[str, Any] = {
            **known,
            "entropy": entropy and entropy.nats,
            "entropy_standard_error": entropy and entropy.standard_error,
            "excess": entropy and entropy.excess,
            "excess_standard_error": entropy and entropy.excess_standard_error,
            # Earlier names of the entropy.
            "floor": entropy and entropy.nats,
            "floor_standard_error": entropy and entropy.standard_error,
            "paired": entropy and entropy.paired,
            "covered": self.covered,
            "unlabelled": self.unlabelled,
            "remark": nll_finding(estimate, entropy),
            "diagnosis": nll_diagnosis(estimate, anneals=self.anneals),
        }
        if curve:
            value["curve"] = curve
        if self.bdmc is not None:
            value["check"] = {
                "trusted": is_reliable(self.bdmc, estimate.method),
                "verdict": bdmc_verdict(self.bdmc, estimate.method, anneals=self.anneals),
                **self.bdmc.to_json(),
            }
        if per_graph:
            entropies = entropy.per_graph if entropy else [None] * len(rows)
            pairs = zip(rows, entropies, strict=True)
            value["per_graph"] = [{**row, "entropy": own, "floor": own} for row, own in pairs]
        show_json(value)

    def show_table(self, per_graph: bool) -> None:
        """Print a table, the most important values first."""
        show_facts([*self._figures(), *self._diagnostics()])
        if self.estimate.curve:
            click.echo()
            show_rows(
                ("samples", "NLL"),
                [(f"{point.samples}", nats(point.nll, point.standard_error)) for point in self.estimate.curve],
                numbers=("samples", "NLL"),
            )
        if per_graph:
            click.echo()
            self._show_graphs()

    def _figures(self) -> list[tuple[str, str]]:
        estimate, entropy = self.estimate, self.entropy
        unit = "nats per isomorphism class" if self.unlabelled else "nats per graph"
        facts = [
            ("model", estimate.model),
            ("graphs", str(estimate.graphs)),
            ("NLL", f"{nats(estimate.nll, estimate.standard_error)} {unit}"),
        ]
        if entropy is not None:
            which, how = ("same graphs", "paired") if entropy.paired else ("expected for these sizes", "not paired")
            facts += [
                ("entropy", f"{nats(entropy.nats, entropy.standard_error)} (true process, {which})"),
                ("excess NLL", f"{nats(entropy.excess, entropy.excess_standard_error)} above the entropy, {how}"),
            ]
        facts.append(("ER baseline", nats(estimate.baseline)))
        if self.covered is not None:
            facts.append(("covered", f"{self.covered:.0%} of the way from the baseline to the entropy"))
        if finding := nll_finding(estimate, entropy):
            facts.append(("finding", finding))
        facts += [
            ("-log p(n)", f"{nats(estimate.size_nats)} (size distribution, not part of the NLL)"),
            ("-ELBO", nats(-estimate.elbo)),
        ]
        if estimate.convention == "paper":
            facts.append(("convention", "paper: all cells of the padded matrix, not a distribution over graphs"))

        return facts

    def _diagnostics(self) -> list[tuple[str, str]]:
        estimate = self.estimate
        facts = [
            ("method", _method(estimate)),
            ("median ESS", f"{estimate.ess:.1f}"),
            ("diagnosis", nll_diagnosis(estimate, anneals=self.anneals)),
        ]
        if self.bdmc is not None:
            bounds = self.bdmc
            facts += [
                ("check", bdmc_verdict(bounds, estimate.method, anneals=self.anneals)),
                (
                    "",
                    f"Bounds {bounds.lower:.2f} to {bounds.upper:.2f}, gap "
                    f"{nats(bounds.gap, bounds.gap_standard_error)}; 'is' gives {bounds.importance:.2f}"
                    + (f", 'auto' {bounds.auto:.2f}, 'ais' {bounds.upper:.2f}." if self.anneals else "."),
                ),
            ]

        return facts

    def _show_graphs(self) -> None:
        columns = ("graph", "nodes", "edges", "NLL", "-ELBO", "entropy", "ER", "-log p(n)", "ESS", "k̂", "method")
        entropies = self.entropy.per_graph if self.entropy else [None] * self.estimate.graphs
        rows = [
            (
                *map(str, (index, row.nodes, row.edges)),
                *map(nats, (row.nll, -row.elbo, own, row.baseline, row.size_nats)),
                f"{row.ess:.1f}",
                nats(row.khat),
                row.method,
            )
            for index, (row, own) in enumerate(zip(self.estimate.per_graph, entropies, strict=True))
        ]
        show_rows(columns, rows, numbers=columns[:-1])


def _method(estimate: NLLEstimate) -> str:
    plain = f"importance sampling, K = {estimate.samples}"
    chains = f"{estimate.chains} annealed chains of {estimate.steps} temperatures"
    if estimate.method == "is":
        return plain
    if estimate.method == "ais":
        return chains

    return f"{plain}; for {estimate.annealed} of {estimate.graphs} graphs {chains}"
