"""All metrics of a set of samples in one record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..config import require
from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..errors import ConfigError, DatasetError
from ..families import Family
from ..families import family as family_of
from ..graph import SimpleGraph, as_simple_graph
from ..records import Record, count_of, listed
from ..rng import seed_or_new, stream
from .attributes import AttributeRow, compare_attributes, describe_attributes, find_labels, is_directed
from .classifier import MIN_GRAPHS, ClassifierScore, score_classifier
from .conditional_accuracy import ConditionalAccuracy, score_conditions
from .descriptors import describe
from .isomorphism import isomorphism_classes
from .mmd import CONVENTIONS, REPLICATES, MMDRow, compare_rows
from .statistics import summarise_graphs
from .validity import VALIDITY
from .verdict import list_findings
from .vun import VUN, Proportion, score_vun

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

__all__ = ["MAX_COMPARED", "Evaluation", "Summary", "evaluate"]

MAX_COMPARED = 1000
"""The default limit on the graphs of a set that MMDs compare: the cost is quadratic."""


@dataclass(frozen=True)
class Summary(Record):
    """Mean and standard deviation of a statistic over samples and reference; None if undefined for all graphs.

    The means are ``errors_apart`` standard errors apart; None if neither varies.
    """

    name: str
    samples: float | None
    samples_deviation: float | None
    reference: float | None
    reference_deviation: float | None
    errors_apart: float | None

    @classmethod
    def of(cls, name: str, x: NDArray[np.float64], y: NDArray[np.float64]) -> Summary:
        sides = [values[np.isfinite(values)] for values in (x, y)]
        means = [float(values.mean()) if len(values) else None for values in sides]
        deviations = [float(values.std()) if len(values) else None for values in sides]
        apart = None
        if means[0] is not None and means[1] is not None:
            error = float(np.sqrt(sum(values.var() / len(values) for values in sides)))
            apart = abs(means[0] - means[1]) / error if error > 0 else None

        return cls(name, means[0], deviations[0], means[1], deviations[1], apart)


@dataclass(frozen=True)
class Evaluation(Record):
    """The quality of a set of samples.

    Attributes:
        samples: The number of samples.
        reference: The number of reference graphs.
        train: The number of training graphs.
        family: The family of valid graphs; None if there is none.
        ratio: The mean over descriptors of the ratio of the ``rbf`` MMD of samples to that of training graphs, about 1
            for samples of the true process; None without training graphs.
        mmd: All MMDs, by convention and descriptor.
        vun: Validity, uniqueness and novelty; only the first samples are checked for validity where that is slow.
        reference_vun: Uniqueness and novelty of the reference graphs, for comparison.
        comparable_unique: Uniqueness among equally many samples and reference graphs, as it depends on the number.
        classifier: A classifier between samples and reference; None for fewer than eight graphs on a side.
        attainable_classifier: The same between training graphs and reference.
        summaries: Summary statistics.
        findings: The verdict in words.
        attributes: Measures of labels, weights, directions and node features; empty if both sides share none.
        accuracy: The proportion of samples in the class that they were sampled for; None without classes.
        notes: What the metrics leave out, such as directions.
    """

    samples: int
    reference: int
    train: int
    family: str | None
    ratio: float | None
    mmd: tuple[MMDRow, ...] = field(repr=False)
    vun: VUN = field(repr=False)
    reference_vun: VUN = field(repr=False)
    comparable_unique: tuple[Proportion, Proportion] = field(repr=False)
    classifier: ClassifierScore | None = field(repr=False)
    attainable_classifier: ClassifierScore | None = field(repr=False)
    summaries: tuple[Summary, ...] = field(repr=False)
    findings: tuple[str, ...] = ()
    attributes: tuple[AttributeRow, ...] = field(default=(), repr=False)
    accuracy: ConditionalAccuracy | None = field(default=None, repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)

    def figures(self) -> dict[str, float | None]:
        """The metrics that scripts can compare with a limit; V.U.N. only if validity and novelty were tested."""
        score, vun = self.classifier, self.vun
        proportions = {"valid": vun.valid, "unique": vun.unique, "novel": vun.novel}
        proportions["vun"] = None if vun.valid is None or vun.novel is None else vun.vun

        return {
            "ratio": self.ratio,
            "discrepancy": None if score is None else score.discrepancy,
            "auc": None if score is None else score.auc,
            **{name: None if found is None else found.value for name, found in proportions.items()},
        }

    def to_frame(self) -> pd.DataFrame:
        """The MMDs as a table of pandas: a row for each descriptor and convention."""
        try:
            import pandas as pd
        except ImportError:
            raise ConfigError("pandas is not installed: 'pip install graphite-gen[pandas]'.") from None

        return pd.DataFrame(
            {
                "descriptor": row.samples.descriptor,
                "convention": row.samples.convention,
                "samples": row.samples.value,
                "low": row.samples.low,
                "high": row.samples.high,
                "training": None if row.attainable is None else row.attainable.value,
                "ratio": row.ratio,
            }
            for row in self.mmd
        )


def evaluate(
    samples: Iterable[SimpleGraph | nx.Graph],
    reference: Iterable[SimpleGraph | nx.Graph],
    train: Iterable[SimpleGraph | nx.Graph] = (),
    *,
    family: Family | str | None = None,
    validity: Callable[[SimpleGraph], bool] | str | None = None,
    conventions: Sequence[str] = tuple(CONVENTIONS),
    replicates: int = REPLICATES,
    most: int = MAX_COMPARED,
    node_label: str | None = None,
    edge_label: str | None = None,
    given_attribute: str | None = None,
    seed: int | None = None,
    group: ProcessGroup = SINGLE_PROCESS,
) -> Evaluation:
    """Compare samples with reference graphs: their structure, and what else both have.

    That is labels, weights, directions and numeric node features. Structural metrics are those of undirected skeletons.

    Arguments:
        samples: The samples.
        reference: Test graphs.
        train: The training graphs, for novelty and for attainable values of the metrics.
        family: The family that samples should belong to, or its name.
        validity: A criterion for valid graphs, if there is no family: a key of :data:`VALIDITY`, or any function, such
            as ``lambda graph: nx.is_chordal(graph.to_networkx())``.
        conventions: The MMD conventions, keys of :data:`CONVENTIONS`; ``rbf`` is always included.
        replicates: The number of bootstrap replicates of each MMD interval; 0 for no interval.
        most: The maximum number of graphs of a set for MMDs and classifiers, chosen at random from larger sets.
        node_label: The node attribute to compare as a label; None for every one that is on all nodes of both sides and
            has at most 50 distinct values, which are strings, integers or booleans.
        edge_label: The edge attribute to compare, likewise.
        given_attribute: The graph attribute with the class of a reference graph, and the one that a sample was sampled
            for, to find out whether a classifier of reference graphs agrees.
        seed: The seed of bootstrap, subsets and classifiers; None for a new one.
        group: The processes that share the work. All have all graphs and all return the result.
    """
    # All processes use the same seed.
    seed = group.broadcast(seed_or_new(seed))
    own, known, seen = ([as_simple_graph(graph) for graph in graphs] for graphs in (samples, reference, train))
    if min(len(own), len(known)) < 2:
        found = f"{count_of(len(own), 'sample')} and {count_of(len(known), 'reference graph')}"
        message = f"Found {found}; at least 2 of each are needed."
        raise DatasetError(message, reason="too-few-graphs")
    if len(seen) == 1:
        raise DatasetError("There is 1 training graph; there should be at least 2, or none.", reason="too-few-graphs")
    family = family_of(family) if isinstance(family, str) else family
    if isinstance(validity, str):
        require("validity", validity, tuple(VALIDITY))
        validity = _criterion(validity)
    attributes = compare_attributes(own, known, seen, node_label=node_label, edge_label=edge_label, seed=seed)
    compared = _some(own, most, seed, "samples"), _some(known, most, seed, "reference")
    x, y = (describe(graphs, group=group) for graphs in compared)
    accuracy = None
    if given_attribute is not None:
        extra = describe_attributes(*compared)
        accuracy = score_conditions(*compared, given_attribute, x | extra[0], y | extra[1], seed=seed)
    # At most as many as samples: biased MMDs, and so their ratio, depend on the number of graphs.
    z = describe(_some(seen, min(most, len(own)), seed, "train"), group=group) if seen else None
    every = tuple(dict.fromkeys([*conventions, "rbf"]))
    rows = compare_rows(x, y, z, conventions=every, replicates=replicates, seed=seed, group=group)
    ratios = [row.ratio for row in rows if row.samples.convention == "rbf" and row.ratio is not None]
    figures = [summarise_graphs(graphs, group=group) for graphs in (own, known)]
    result = Evaluation(
        samples=len(own),
        reference=len(known),
        train=len(seen),
        family=None if family is None else family.name,
        ratio=float(np.mean(ratios)) if ratios else None,
        mmd=rows,
        vun=_score_vun(own, seen, validity if family is None else family, group),
        reference_vun=score_vun(known, seen, group=group),
        comparable_unique=_comparable_unique(own, known, most, seed, group),
        classifier=_classifier(x, y, seed),
        attainable_classifier=None if z is None else _classifier(z, y, seed),
        summaries=tuple(Summary.of(name, figures[0][name], figures[1][name]) for name in figures[0]),
        attributes=attributes,
        accuracy=accuracy,
        notes=tuple(_notes(own, known, attributes, node_label, edge_label)),
    )

    return replace(result, findings=list_findings(result))


def _some(graphs: Sequence[SimpleGraph], most: int, seed: int, name: str) -> Sequence[SimpleGraph]:
    if len(graphs) <= most:
        return graphs
    # At random, as files may be sorted.
    chosen = np.sort(stream(seed, "compared", name).permutation(len(graphs))[:most])

    return [graphs[index] for index in chosen]


def _criterion(name: str) -> Callable[[SimpleGraph], bool]:
    """A criterion of :data:`VALIDITY`; only 'acyclic' depends on directions."""
    check = VALIDITY[name]

    return check if name == "acyclic" else lambda graph: check(graph.skeleton())


def _notes(
    samples: Sequence[SimpleGraph],
    reference: Sequence[SimpleGraph],
    attributes: Sequence[AttributeRow],
    node_label: str | None,
    edge_label: str | None,
) -> Iterator[str]:
    if is_directed(samples):
        yield "The graphs are directed: structural metrics are those of their undirected skeletons."
    if attributes:
        yield "MMDs, AUC, uniqueness and novelty are structural: they ignore labels, weights, directions and features."
    compared = {(row.on, row.attribute) for row in attributes}
    for on, chosen in (("node", node_label), ("edge", edge_label)):
        others = [name for name in find_labels(reference, on) if chosen is None and (on, name) not in compared]
        if others:
            yield f"Not compared: {on} attributes {listed(others)}, which are not labels of every {on} of the samples."


def _score_vun(
    samples: Sequence[SimpleGraph],
    train: Sequence[SimpleGraph],
    check: Callable[[SimpleGraph], bool] | Family | None,
    group: ProcessGroup,
) -> VUN:
    checked = check.max_checked if isinstance(check, Family) else None
    found = score_vun(samples[:checked], train, check, group=group)
    if checked is None or checked >= len(samples):
        return found
    whole = score_vun(samples, train, group=group)

    return replace(found, unique=whole.unique, novel=whole.novel)


def _comparable_unique(
    samples: Sequence[SimpleGraph], reference: Sequence[SimpleGraph], most: int, seed: int, group: ProcessGroup
) -> tuple[Proportion, Proportion]:
    count = min(len(samples), len(reference), most)
    own, known = (
        len(set(isomorphism_classes(_some(graphs, count, seed, name), group=group)))
        for graphs, name in ((samples, "samples"), (reference, "reference"))
    )

    return Proportion.of(own, count), Proportion.of(known, count)


def _classifier(
    x: Mapping[str, NDArray[np.float64]], y: Mapping[str, NDArray[np.float64]], seed: int
) -> ClassifierScore | None:
    enough = min(len(rows["degree"]) for rows in (x, y)) >= MIN_GRAPHS

    return score_classifier(x, y, seed=seed) if enough else None
