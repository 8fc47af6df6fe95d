"""The data of a report."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import numpy as np
import torch

from ... import __version__
from ...errors import DatasetError, FamilyError
from ...evaluation import Evaluation, evaluate, find_isomorphic
from ...evaluation.histograms import Distribution, distributions
from ...evaluation.statistics import summarise_graphs
from ...families import Family
from ...families import family as family_of
from ...families.simulate import generate
from ...graph import SimpleGraph
from ...likelihood import NLLOptions, estimate_nll
from ...likelihood.estimate import default_samples
from ...likelihood.excess import Entropy, find_entropy
from ...records import NLLEstimate, TrainRecord
from ...rng import derive_seed
from ...sampling import Sampler
from ...training.checkpoint import TrainedModel, load_checkpoint
from ...training.model_card import describe_model, model_facts, origin_in_words
from ...training.runs import TrainingGraphs, find_training_graphs
from ...training.trainer import read_history

__all__ = ["ReportData", "SampleRow", "collect_report", "sample_rows"]

REFERENCE_GRAPHS = 200
NLL_SAMPLES = 30


@dataclass(frozen=True)
class SampleRow:
    """A sampled graph, its summary statistics (NaN: undefined), and whether it is valid and novel (None: unknown)."""

    graph: SimpleGraph
    summaries: Mapping[str, float]
    valid: bool | None
    novel: bool | None


@dataclass(frozen=True)
class ReportData:
    """What a report shows; facts and provenance are names and values in words.

    There is no evaluation without a reference, no ``nll`` if it was not estimated (``nll_note`` says why), and no
    entropy if it is unknown; it includes the excess NLL of the graphs that were scored.
    """

    name: str
    facts: Sequence[tuple[str, str]]
    samples: Sequence[SampleRow]
    reference: Sequence[SimpleGraph]
    reference_source: str
    evaluation: Evaluation | None
    nll: NLLEstimate | None
    nll_note: str
    entropy: Entropy | None
    distributions: Sequence[Distribution]
    history: Sequence[TrainRecord]
    provenance: Sequence[tuple[str, str]]


def collect_report(
    folder: Path,
    *,
    reference: Sequence[SimpleGraph] = (),
    reference_source: str = "",
    train: Sequence[SimpleGraph] = (),
    samples: Sequence[SimpleGraph] = (),
    family: Family | None = None,
    count: int = 100,
    nll_graphs: int = 25,
    seed: int = 0,
    command: str = "",
    progress: Callable[[str], None] = lambda step: None,
) -> ReportData:
    """Sample from a model, evaluate it and collect the data of a report.

    Arguments:
        folder: The checkpoint.
        reference: Reference graphs; by default new graphs of the model's family, else the run's validation graphs.
        reference_source: What the reference graphs are, in words.
        train: The training graphs; by default they are regenerated or read again if possible.
        samples: Samples of the model; ``count`` are drawn if there are none.
        family: The family that samples should belong to; by default the one the model was trained on.
        nll_graphs: The number of reference graphs to score; 0 to skip the NLL.
        command: The command line, for the provenance.
        progress: Called with the name of each step.
    """
    model = load_checkpoint(folder)
    family = family or _family_of_model(model)
    progress("Finding the training graphs")
    found = find_training_graphs(folder)
    seen = list(train) or found.train
    known, source = (list(reference), reference_source) if reference else _find_reference(model, family, found, seed)
    progress("Sampling")
    featured = [graph for graph in known if graph.features is not None]
    drawn = list(samples) or list(Sampler(model, count, seed=seed, features=featured))
    progress("Evaluating the samples")
    evaluation = evaluate(drawn, known, seen, family=family, seed=seed) if min(len(drawn), len(known)) > 1 else None
    progress("Estimating the NLL")
    nll, entropy, note = _score(model, known[:nll_graphs], family, seed)

    return ReportData(
        name=model.name,
        # The page may be shared, so the folder on this machine is left out.
        facts=[fact for fact in model_facts(describe_model(model, folder)) if fact[0] != "folder"],
        samples=sample_rows(drawn, seen, family),
        reference=known,
        reference_source=source,
        evaluation=evaluation,
        nll=nll,
        nll_note=note,
        entropy=entropy,
        distributions=distributions(drawn, known),
        history=read_history(folder) if (folder / "history.jsonl").exists() else (),
        provenance=[
            ("command", command or "from Python"),
            ("seed of the report", str(seed)),
            ("samples", f"{len(drawn)}, {'read from a file' if samples else f'drawn with seed {seed}'}"),
            ("reference", source),
            ("training data", origin_in_words(model.provenance.to_json())),
            ("SHA-256 of the training data", found.fingerprint or "unknown: the training graphs were not found"),
            ("seed of the training", str(model.training.seed)),
            ("graphite-gen", __version__),
            ("Python", platform.python_version()),
            ("torch, numpy, networkx", f"{torch.__version__}, {np.__version__}, {nx.__version__}"),
        ],
    )


def _family_of_model(model: TrainedModel) -> Family | None:
    provenance = model.provenance
    try:
        return None if provenance.family is None else family_of(provenance.family, **provenance.parameters)
    except FamilyError:
        return None


def _find_reference(
    model: TrainedModel, family: Family | None, found: TrainingGraphs, seed: int
) -> tuple[list[SimpleGraph], str]:
    if family is not None:
        nodes = min(model.sizes.graphs), model.sizes.largest
        graphs = generate(family, REFERENCE_GRAPHS, nodes, derive_seed(seed, "reference of a report")).graphs
        return graphs, f"{len(graphs)} new graphs of the family '{family.name}'"
    if found.validation:
        return found.validation, f"the {len(found.validation)} validation graphs of its training"

    return [], "none"


def _score(
    model: TrainedModel, graphs: Sequence[SimpleGraph], family: Family | None, seed: int
) -> tuple[NLLEstimate | None, Entropy | None, str]:
    """The NLL, the entropy and a note; models without a likelihood only get the note."""
    if not graphs:
        return None, None, "Not estimated: there are no graphs to score."
    try:
        estimate = estimate_nll(model, graphs, NLLOptions(min(default_samples(model), NLL_SAMPLES), seed))
    except DatasetError as error:
        return None, None, str(error)
    kind = "node orderings" if model.config.is_autoregressive else "latents"
    note = f"{len(graphs)} reference graphs, {estimate.samples} {kind} each."
    if family is None or (any(graph.is_weighted for graph in graphs) and not model.schema.weights):
        return estimate, None, note
    nlls = [row.nll for row in estimate.per_graph]
    try:
        return estimate, find_entropy(family, graphs, nlls, model.schema), note
    except (DatasetError, FamilyError) as error:
        return estimate, None, f"{note} The entropy is unknown: {error}"


def sample_rows(samples: Sequence[SimpleGraph], train: Sequence[SimpleGraph], family: Family | None) -> list[SampleRow]:
    """Samples with their statistics, their validity in a family, and their novelty beside training graphs."""
    summaries = summarise_graphs(samples)
    copies = find_isomorphic(samples, train)
    checked = len(samples) if family is None or family.max_checked is None else family.max_checked

    return [
        SampleRow(
            graph,
            {name: float(values[k]) for name, values in summaries.items()},
            family.contains(graph) if family is not None and k < checked else None,
            copies[k] is None if train else None,
        )
        for k, graph in enumerate(samples)
    ]
