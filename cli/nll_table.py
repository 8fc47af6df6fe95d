"""Tables and JSON of NLL estimates beside entropy and baseline, with their diagnostics."""

from dataclasses import dataclass
from typing import Any

import click

from graphite_gen.likelihood.bdmc import BDMCEstimate
from graphite_gen.likelihood.excess import Entropy
from graphite_gen.records import NLLEstimate

from .console import nats, show_facts, show_json, show_rows
from .diagnosis import MIN_MARGIN, bdmc_verdict, nll_diagnosis, nll_finding


@dataclass(frozen=True)
class NLLTable:
    """An NLL estimate with the entropy of the family, and the BDMC bounds on graphs sampled from the model.

    All values are per isomorphism class if ``unlabelled``; ``anneals`` is false for an autoregressive model, and
    ``planned`` is the number of graphs if only some of them were scored.
    """

    estimate: NLLEstimate
    entropy: Entropy | None = None
    bdmc: BDMCEstimate | None = None
    unlabelled: bool = False
    anneals: bool = True
    planned: int | None = None

    @property
    def covered(self) -> float | None:
        """The reduction from the baseline by the model, as a fraction of that by the true process."""
        baseline = self.estimate.baseline
        if baseline is None or self.entropy is None or baseline - self.entropy.nats < MIN_MARGIN:
            return None

        return (baseline - self.estimate.nll) / (baseline - self.entropy.nats)

    @property
    def verdict(self) -> str:
        """Whether the method is reliable by BDMC; empty without bounds."""
        return "" if self.bdmc is None else bdmc_verdict(self.bdmc, self.estimate.method, anneals=self.anneals)

    def show_json(self, per_graph: bool) -> None:
        """Print everything as one JSON object."""
        estimate, entropy, bdmc, verdict = self.estimate, self.entropy, self.bdmc, self.verdict
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
            "partial": self.planned is not None,
            "remark": nll_finding(estimate, entropy),
            "diagnosis": nll_diagnosis(estimate, anneals=self.anneals),
        }
        if curve:
            value["curve"] = curve
        if bdmc is not None:
            value["check"] = {"trusted": verdict.startswith("reliable"), "verdict": verdict, **bdmc.to_json()}
        if per_graph:
            pairs = zip(rows, self._entropies(), strict=True)
            value["per_graph"] = [{**row, "entropy": own, "floor": own} for row, own in pairs]
        show_json(value)

    def show_table(self, per_graph: bool) -> None:
        """Print a table, the most important values first."""
        show_facts(self._facts().items())
        if self.estimate.curve:
            click.echo()
            points = [(str(point.samples), nats(point.nll, point.standard_error)) for point in self.estimate.curve]
            show_rows(("samples", "NLL"), points, numbers=("samples", "NLL"))
        if per_graph:
            click.echo()
            columns = ("graph", "nodes", "edges", "NLL", "-ELBO", "entropy", "ER", "-log p(n)", "ESS", "k̂", "method")
            rows = [
                (
                    *map(str, (index, row.nodes, row.edges)),
                    *map(nats, (row.nll, -row.elbo, own, row.baseline, row.size_nats)),
                    f"{row.ess:.1f}",
                    nats(row.khat),
                    row.method,
                )
                for index, (row, own) in enumerate(zip(self.estimate.per_graph, self._entropies(), strict=True))
            ]
            show_rows(columns, rows, numbers=columns[:-1])

    def _entropies(self) -> list[float | None]:
        return list(self.entropy.per_graph) if self.entropy else [None] * self.estimate.graphs

    def _facts(self) -> dict[str, str | None]:
        estimate, entropy, bdmc = self.estimate, self.entropy, self.bdmc
        unit = "nats per isomorphism class" if self.unlabelled else "nats per graph"
        true = excess = bounds = covered = None
        if entropy is not None:
            which, how = ("same graphs", "paired") if entropy.paired else ("expected for these sizes", "not paired")
            true = f"{nats(entropy.nats, entropy.standard_error)} (true process, {which})"
            excess = f"{nats(entropy.excess, entropy.excess_standard_error)} above the entropy, {how}"
        if self.covered is not None:
            covered = f"{self.covered:.0%} of the way from the baseline to the entropy"
        if bdmc is not None:
            bounds = f"{bdmc.lower:.2f} to {bdmc.upper:.2f}, gap {nats(bdmc.gap, bdmc.gap_standard_error)}; "
            bounds += f"'is' gives {bdmc.importance:.2f}"
            bounds += f", 'auto' {bdmc.auto:.2f}, 'ais' {bdmc.upper:.2f}" if self.anneals else ""

        return {
            "model": estimate.model,
            "graphs": f"{estimate.graphs}{f' of {self.planned}: interrupted' if self.planned else ''}",
            "NLL": f"{nats(estimate.nll, estimate.standard_error)} {unit}",
            "entropy": true,
            "excess NLL": excess,
            "ER baseline": nats(estimate.baseline),
            **{
                f"  {name}": f"{nats(own)} (baseline {nats(estimate.baselines[name])})"
                for name, own in estimate.parts.items()
            },
            "covered": covered,
            "finding": nll_finding(estimate, entropy),
            "-log p(n)": f"{nats(estimate.size_nats)} (size distribution, not part of the NLL)",
            "-ELBO": nats(-estimate.elbo),
            "convention": "paper: all cells of the padded matrix, not a distribution over graphs"
            if estimate.convention == "paper"
            else None,
            "method": _method(estimate),
            "median ESS": f"{estimate.ess:.1f}",
            "diagnosis": nll_diagnosis(estimate, anneals=self.anneals),
            "check": self.verdict,
            "bounds": bounds,
        }


def _method(estimate: NLLEstimate) -> str:
    plain = f"importance sampling, K = {estimate.samples}"
    chains = f"{estimate.chains} annealed chains of {estimate.steps} temperatures"
    if estimate.method == "auto":
        return f"{plain}; for {estimate.annealed} of {estimate.graphs} graphs {chains}"

    return plain if estimate.method == "is" else chains
