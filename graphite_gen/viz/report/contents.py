"""Everything a report says, measured once."""

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

__all__ = ["Contents", "SampleRow", "gather"]

REFERENCE_GRAPHS = 200
NLL_SAMPLES = 30


@dataclass(frozen=True)
class SampleRow:
    """A sampled graph and what is said of it.

    Attributes:
        graph: The graph.
        summaries: Its plain figures by name; not a number where it has none.
        valid: Whether it is of the family; None where that was not asked.
        novel: Whether no training graph is the same; None where there are none.
    """

    graph: SimpleGraph
    summaries: Mapping[str, float]
    valid: bool | None
    novel: bool | None


@dataclass(frozen=True)
class Contents:
    """What a report says.

    Attributes:
        name: The model's name.
        facts: What the model is, as pairs of a name and a value.
        samples: The sampled graphs.
        reference: The true graphs beside them; there may be none.
        reference_source: What those are.
        evaluation: How good the samples are; None without a reference.
        nll: The held-out NLL; None where there is none to measure.
        nll_note: Why there is none, or how it was measured.
        floor: The floor of the same graphs; None where it is not known.
        distributions: Descriptors of both.
        history: The records of training.
        provenance: Where everything comes from, as pairs of a name and a value.
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


def gather(
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
) -> Contents:
    """Sample from a model, judge it, and collect what is known of it.

    Arguments:
        folder: Its checkpoint.
        reference: True graphs; without any, fresh ones of the model's family, else the validation graphs of its run.
        reference_source: What to call them.
        train: What it was trained on; without any, they are drawn or read again where that can be done.
        samples: Its samples; without any, they are drawn.
        family: The family that samples should belong to; None for the one the model was trained on.
        count: How many samples to draw.
        nll_graphs: How many reference graphs to score; 0 for none.
        seed: The run's one seed.
        command: The command that asked for it.
        progress: Called with the name of each step.

    Raises:
        GraphiteError: The model cannot be read, or does not suit the graphs.
    """
    model = load_checkpoint(folder)
    law = family or _own_law(model)
    progress("Finding the training graphs")
    found = find_training_graphs(folder)
    seen = list(train) or found.train
    known, source = (list(reference), reference_source) if reference else _find_reference(model, law, found, seed)
    progress("Sampling")
    drawn = list(samples) or list(
        Sampler(model, count, seed=seed, features=[graph for graph in known if graph.features is not None])
    )
    progress("Judging")
    evaluation = evaluate(drawn, known, seen, family=law, seed=seed) if min(len(drawn), len(known)) > 1 else None
    progress("Scoring")
    nll, entropy, note = _score(model, known[:nll_graphs], law, seed)

    return Contents(
        name=model.name,
        # Where it lies on this machine is nothing for a page that is sent around.
        facts=[fact for fact in model_facts(describe_model(model, folder)) if fact[0] != "folder"],
        samples=_rows(drawn, seen, law),
        reference=known,
        reference_source=source,
        evaluation=evaluation,
        nll=nll,
        nll_note=note,
        entropy=entropy,
        distributions=distributions(drawn, known),
        history=read_history(folder) if (folder / "history.jsonl").exists() else (),
        provenance=_provenance(model, found, source, len(drawn), seed, command, drawn_here=not samples),
    )


def _own_law(model: TrainedModel) -> Family | None:
    provenance = model.provenance
    try:
        return None if provenance.family is None else family_of(provenance.family, **provenance.parameters)
    except FamilyError:
        return None


def _find_reference(
    model: TrainedModel, law: Family | None, found: TrainingGraphs, seed: int
) -> tuple[list[SimpleGraph], str]:
    if law is not None:
        nodes = min(model.sizes.graphs), model.sizes.largest
        graphs = generate(law, REFERENCE_GRAPHS, nodes, derive_seed(seed, "reference of a report")).graphs
        return graphs, f"{len(graphs)} fresh graphs of the family '{law.name}'"
    if found.validation:
        return found.validation, f"the {len(found.validation)} validation graphs of its training"

    return [], "none: pass '--reference FILE' to judge the samples"


def _score(
    model: TrainedModel, graphs: Sequence[SimpleGraph], law: Family | None, seed: int
) -> tuple[NLLEstimate | None, Entropy | None, str]:
    """The NLL and its floor, and a word on both; a model without a likelihood still has a report."""
    if not graphs:
        return None, None, "It was not measured: there are no graphs to score."
    try:
        estimate = estimate_nll(model, graphs, NLLOptions(min(default_samples(model), NLL_SAMPLES), seed))
    except DatasetError as error:
        return None, None, str(error)
    kind = "orders of arrival" if model.config.is_autoregressive else "latents"
    note = f"{len(graphs)} reference graphs, {estimate.samples} {kind} each"
    if law is None or any(graph.is_weighted for graph in graphs):
        return estimate, None, note
    try:
        return estimate, find_entropy(law, graphs, [row.nll for row in estimate.per_graph]), note
    except (DatasetError, FamilyError) as error:
        return estimate, None, f"{note}. No floor: {error}"


def _rows(samples: Sequence[SimpleGraph], train: Sequence[SimpleGraph], law: Family | None) -> list[SampleRow]:
    summaries = summarise_graphs(samples)
    copies = find_isomorphic(samples, train)
    judged = len(samples) if law is None or law.most_judged is None else law.most_judged

    return [
        SampleRow(
            graph,
            {name: float(values[k]) for name, values in summaries.items()},
            law.contains(graph) if law is not None and k < judged else None,
            copies[k] is None if train else None,
        )
        for k, graph in enumerate(samples)
    ]


def _provenance(
    model: TrainedModel, found: TrainingGraphs, source: str, count: int, seed: int, command: str, *, drawn_here: bool
) -> list[tuple[str, str]]:
    where = f"drawn with seed {seed}" if drawn_here else "read from a file"

    return [
        ("command", command or "from Python"),
        ("seed of the report", str(seed)),
        ("samples", f"{count}, {where}"),
        ("reference", source),
        ("training data", origin_in_words(model.provenance.to_json())),
        ("SHA-256 of the training data", found.fingerprint or "not known: the graphs are not at hand"),
        ("seed of the training", str(model.training.seed)),
        ("graphite-gen", __version__),
        ("Python", platform.python_version()),
        ("torch, numpy, networkx", f"{torch.__version__}, {np.__version__}, {nx.__version__}"),
    ]
