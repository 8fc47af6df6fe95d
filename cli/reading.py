"""Graphs of files by split, and the family they come from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .advice import explain
from .console import note

if TYPE_CHECKING:
    from graphite_gen.distributed import ProcessGroup
    from graphite_gen.families import Family
    from graphite_gen.graph import SimpleGraph
    from graphite_gen.likelihood.excess import Entropy
    from graphite_gen.records import Provenance

__all__ = ["find_entropy", "find_family", "marked_or_all", "read_for_all", "read_sets"]


def read_for_all(
    group: ProcessGroup | None, source: Path, *, format: str | None = None, simplify: bool = False
) -> tuple[list[SimpleGraph], Provenance]:
    """Read the graphs of a file and their provenance on rank 0, and broadcast them."""
    from graphite_gen.io import read_graphs
    from graphite_gen.records import Provenance

    graphs: list[SimpleGraph] = []
    provenance = Provenance()
    if group is None or group.is_rank_zero:
        reader = read_graphs(source, format=format, simplify=simplify)
        provenance = reader.provenance
        graphs = list(reader)

    return (graphs, provenance) if group is None else group.broadcast((graphs, provenance))


def find_family(family: str | None, parameters: dict[str, Any], provenance: Provenance) -> Family | None:
    """The family given by name, else the one recorded in the file."""
    from graphite_gen.errors import FamilyError
    from graphite_gen.families import family as family_of

    if family is not None:
        return family_of(family, **parameters)
    if provenance.family is None:
        return None
    try:
        return family_of(provenance.family, **provenance.parameters)
    except FamilyError as error:
        note(f"The family recorded in the file is ignored. {explain(error)}")
        return None


def find_entropy(family: Family | None, graphs: list[SimpleGraph], nlls: list[float]) -> Entropy | None:
    """The entropy of the family and the excess of NLLs over it; None if it is not known."""
    from graphite_gen.errors import DatasetError, FamilyError
    from graphite_gen.likelihood.excess import find_entropy as entropy_of

    if family is None or any(graph.is_weighted for graph in graphs):
        return None
    try:
        return entropy_of(family, graphs, nlls)
    except (DatasetError, FamilyError) as error:
        note(f"No entropy: {explain(error)}")
        return None


def marked_or_all(graphs: list[SimpleGraph], split: str, path: Path) -> list[SimpleGraph]:
    """The graphs of a split, with a note on stderr; all graphs if the file has none of that split."""
    from graphite_gen.data.dataset import split_of

    marked = [graph for graph in graphs if split_of(graph) == split]
    if marked:
        note(f"Using the split '{split}' of '{path}': {len(marked)} of {len(graphs)} graphs.")

    return marked or graphs


def read_sets(
    reference: Path, train: Path | None, *, simplify: bool, group: ProcessGroup | None = None
) -> tuple[list[SimpleGraph], list[SimpleGraph], Provenance]:
    """Reference graphs (split 'test'), training graphs (by default split 'train'), and the reference's provenance."""
    from graphite_gen.data.dataset import split_of

    graphs, provenance = read_for_all(group, reference, simplify=simplify)
    test = marked_or_all(graphs, "test", reference)
    if train is not None:
        known, _ = read_for_all(group, train, simplify=simplify)
        return test, marked_or_all(known, "train", train), provenance
    seen = [graph for graph in graphs if split_of(graph) == "train"]
    if seen and test is not graphs:
        note(f"Training graphs: the split 'train' of '{reference}', {len(seen)} graphs.")
        return test, seen, provenance

    return test, [], provenance
