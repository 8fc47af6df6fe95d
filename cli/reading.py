"""Which graphs of a file a command takes, and which law they follow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .console import note

if TYPE_CHECKING:
    from graphite_gen.families import Family
    from graphite_gen.graph import SimpleGraph
    from graphite_gen.likelihood.floor import Floor
    from graphite_gen.records import Provenance

__all__ = ["find_floor", "find_law", "marked_or_all", "read_sets"]


def find_law(family: str | None, parameters: dict[str, Any], provenance: Provenance) -> Family | None:
    """The family asked for, or the one written in the file."""
    from graphite_gen.errors import FamilyError
    from graphite_gen.families import family as family_of

    if family is not None:
        return family_of(family, **parameters)
    if provenance.family is None:
        return None
    try:
        return family_of(provenance.family, **provenance.parameters)
    except FamilyError as error:
        note(f"The law written in the file is not one we know. {error}")
        return None


def find_floor(law: Family | None, graphs: list[SimpleGraph], nlls: list[float]) -> Floor | None:
    """The floor of graphs and how far NLLs are above it, where there is one to compare with."""
    from graphite_gen.errors import DatasetError, FamilyError
    from graphite_gen.likelihood.floor import find_floor as floor_of

    if law is None or any(graph.is_weighted for graph in graphs):
        return None
    try:
        return floor_of(law, graphs, nlls)
    except (DatasetError, FamilyError) as error:
        note(f"No floor: {error}")
        return None


def marked_or_all(graphs: list[SimpleGraph], split: str, path: Path) -> list[SimpleGraph]:
    """The graphs that a file marks as that split, all of them if it marks none so; which of the two is said."""
    from graphite_gen.dataset import split_of

    marked = [graph for graph in graphs if split_of(graph) == split]
    if marked:
        note(f"From '{path}': {len(marked)} of {len(graphs)} graphs, those marked '{split}'.")

    return marked or graphs


def read_sets(
    reference: Path, train: Path | None, *, simplify: bool
) -> tuple[list[SimpleGraph], list[SimpleGraph], Provenance]:
    """The reference, the training graphs, and where the reference comes from.

    Of a file that holds all splits, the reference is what it marks 'test'. Without a file of training graphs, they are
    what the reference's own file marks 'train'.
    """
    from graphite_gen.dataset import split_of
    from graphite_gen.formats import read_graphs

    reader = read_graphs(reference, simplify=simplify)
    provenance, graphs = reader.provenance, list(reader)
    test = marked_or_all(graphs, "test", reference)
    if train is not None:
        return test, marked_or_all(list(read_graphs(train, simplify=simplify)), "train", train), provenance
    seen = [graph for graph in graphs if split_of(graph) == "train"]
    if seen and test is not graphs:
        note(f"Training graphs: {len(seen)} marked 'train' in '{reference}'.")
        return test, seen, provenance

    return test, [], provenance
