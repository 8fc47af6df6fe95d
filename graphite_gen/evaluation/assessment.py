"""Every figure by which samples are judged, in one record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..errors import DatasetError
from ..families import Family
from ..families import family as family_of
from ..graph import SimpleGraph, as_simple_graph
from ..records import Record
from ..rng import stream
from .classifier import LEAST_GRAPHS, ClassifierScore, tell_apart
from .descriptors import describe
from .isomorphism import isomorphism_classes
from .mmd import CONVENTIONS, REPLICATES, MMDRow, compare_rows
from .statistics import summarise_graphs
from .verdict import find_words
from .vun import VUN, Proportion, score_vun

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["MOST_COMPARED", "Evaluation", "Summary", "evaluate"]

MOST_COMPARED = 1000
"""Distances between all pairs of graphs grow with the square of their number, and more tell little more."""


@dataclass(frozen=True)
class Summary(Record):
    """A plain figure over samples and over the reference; None where no graph has it.

    Attributes:
        name: What it is, a key of :data:`graphite_gen.evaluation.statistics.SUMMARIES`.
        samples: Its mean over samples.
        samples_deviation: Its standard deviation over samples.
        reference: Its mean over reference graphs.
        reference_deviation: Its standard deviation over reference graphs.
        errors_apart: How many standard errors lie between the two means; None where neither varies.
    """

    name: str
    samples: float | None
    samples_deviation: float | None
    reference: float | None
    reference_deviation: float | None
    errors_apart: float | None

    @classmethod
    def of(cls, name: str, x: NDArray[np.float64], y: NDArray[np.float64]) -> Summary:
        """The figure of both sets from its values, those that are not numbers left out."""
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
    """How good samples are.

    Attributes:
        samples: The number of samples.
        reference: The number of reference graphs.
        train: The number of training graphs.
        family: The family whose members are valid; None where nothing was asked.
        ratio: The mean over descriptors of the ``rbf`` MMD of samples over what is attainable: about 1 for samples of
            the true law. None without training graphs.
        mmd: Every MMD, in the order of conventions and descriptors.
        vun: What is valid, unique and novel among samples; where validity takes long, only the first are asked for it.
        reference_vun: What is unique and novel among the reference graphs, as what can be expected.
        comparable_unique: What is unique among as many samples as reference graphs: more graphs repeat more.
        classifier: How well samples are told from the reference; None for fewer than eight graphs on a side.
        attainable_classifier: The same for training graphs.
        summaries: Plain figures.
        findings: What all this says, in words.
    """

    samples: int
    reference: int
    train: int
    family: str | None
    ratio: float | None
    mmd: tuple[MMDRow, ...]
    vun: VUN
    reference_vun: VUN
    comparable_unique: tuple[Proportion, Proportion]
    classifier: ClassifierScore | None
    attainable_classifier: ClassifierScore | None
    summaries: tuple[Summary, ...]
    findings: tuple[str, ...] = ()

    def figures(self) -> dict[str, float | None]:
        """The figures that a script may hold against a limit."""
        score = self.classifier
        shares = {"valid": self.vun.valid, "unique": self.vun.unique, "novel": self.vun.novel, "vun": self.vun.vun}

        return {
            "ratio": self.ratio,
            "discrepancy": None if score is None else score.discrepancy,
            "auc": None if score is None else score.auc,
            **{name: None if share is None else share.value for name, share in shares.items()},
        }


def evaluate(
    samples: Iterable[SimpleGraph | nx.Graph],
    reference: Iterable[SimpleGraph | nx.Graph],
    train: Iterable[SimpleGraph | nx.Graph] = (),
    *,
    family: Family | str | None = None,
    validity: Callable[[SimpleGraph], bool] | None = None,
    conventions: Sequence[str] = tuple(CONVENTIONS),
    replicates: int = REPLICATES,
    most: int = MOST_COMPARED,
    seed: int = 0,
    group: ProcessGroup = SINGLE_PROCESS,
) -> Evaluation:
    """Judge samples against a reference; edge weights and features play no part.

    Arguments:
        samples: The graphs to judge, as they were sampled.
        reference: Test graphs.
        train: What the model was trained on: for novelty, and for what is attainable.
        family: The family that samples should belong to, or its name.
        validity: What tells whether a graph is valid, where there is no family.
        conventions: Those of the MMD, keys of :data:`CONVENTIONS`; ``rbf`` is always among them.
        replicates: Bootstrap replicates of each interval of an MMD; 0 for none.
        most: The most graphs of a set that MMDs and classifiers compare; of larger sets some are chosen at random.
            Summaries and what is valid, unique and novel are of all.
        seed: The seed of all that is random.
        group: The processes that divide the work; all pass the same graphs, and each gets the result.

    Raises:
        DatasetError: There are too few graphs, or one has no nodes.
        FamilyError: There is no such family.
    """
    own, known, seen = ([as_simple_graph(graph) for graph in graphs] for graphs in (samples, reference, train))
    if min(len(own), len(known)) < 2:
        raise DatasetError(
            f"There is too little to compare: wanted at least 2 samples and 2 reference graphs, and there are "
            f"{len(own)} and {len(known)}."
        )
    if len(seen) == 1:
        raise DatasetError("One training graph tells nothing of what is attainable: pass at least 2, or none.")
    law = family_of(family) if isinstance(family, str) else family
    x, y = (
        describe(_some(graphs, most, seed, name), group=group)
        for graphs, name in ((own, "samples"), (known, "reference"))
    )
    # No more than samples: figures of older conventions depend on the number of graphs, and so would their ratio.
    z = describe(_some(seen, min(most, len(own)), seed, "train"), group=group) if seen else None
    rows = compare_rows(
        x, y, z, conventions=list(dict.fromkeys([*conventions, "rbf"])), replicates=replicates, seed=seed, group=group
    )
    figures = [summarise_graphs(graphs, group=group) for graphs in (own, known)]
    found = Evaluation(
        samples=len(own),
        reference=len(known),
        train=len(seen),
        family=None if law is None else law.name,
        ratio=_overall_ratio(rows),
        mmd=rows,
        vun=_score_vun(
            own, seen, law if law is not None else validity, None if law is None else law.most_judged, group
        ),
        reference_vun=score_vun(known, seen, group=group),
        comparable_unique=_comparable_unique(own, known, most, seed, group),
        classifier=_classifier(x, y, seed),
        attainable_classifier=None if z is None else _classifier(z, y, seed),
        summaries=tuple(Summary.of(name, figures[0][name], figures[1][name]) for name in figures[0]),
    )

    return replace(found, findings=find_words(found))


def _some(graphs: Sequence[SimpleGraph], most: int, seed: int, name: str) -> Sequence[SimpleGraph]:
    if len(graphs) <= most:
        return graphs
    # Files may be sorted, so the first ones would not do.
    chosen = np.sort(stream(seed, "compared", name).permutation(len(graphs))[:most])

    return [graphs[index] for index in chosen]


def _score_vun(
    samples: Sequence[SimpleGraph],
    train: Sequence[SimpleGraph],
    check: Callable[[SimpleGraph], bool] | Family | None,
    judged: int | None,
    group: ProcessGroup,
) -> VUN:
    found = score_vun(samples[:judged], train, check, group=group)
    if judged is None or judged >= len(samples):
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


def _overall_ratio(rows: Sequence[MMDRow]) -> float | None:
    ratios = [row.ratio for row in rows if row.samples.convention == "rbf" and row.ratio is not None]

    return float(np.mean(ratios)) if ratios else None


def _classifier(
    x: Mapping[str, NDArray[np.float64]], y: Mapping[str, NDArray[np.float64]], seed: int
) -> ClassifierScore | None:
    enough = min(len(rows["degree"]) for rows in (x, y)) >= LEAST_GRAPHS

    return tell_apart(x, y, seed=seed) if enough else None
