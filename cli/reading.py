"""Graphs of files by split, and the family they come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphite_gen.data.dataset import split_of
from graphite_gen.distributed import SINGLE_PROCESS, ProcessGroup
from graphite_gen.errors import DatasetError, FamilyError
from graphite_gen.families import Family
from graphite_gen.families import family as family_of
from graphite_gen.graph import SimpleGraph
from graphite_gen.io import read_graphs
from graphite_gen.records import Provenance, listed

from .advice import explain
from .console import note

if TYPE_CHECKING:
    from graphite_gen.data.encoded import EncodedGraph
    from graphite_gen.data.schema import AttributeSchema
    from graphite_gen.likelihood.excess import Entropy


def read_for_all(
    group: ProcessGroup,
    source: Path,
    *,
    format: str | None = None,
    simplify: bool = False,
    directed: bool | None = None,
) -> tuple[list[SimpleGraph], Provenance]:
    """Read the graphs of a file and their provenance on rank 0, and broadcast them."""
    found: tuple[list[SimpleGraph], Provenance] = [], Provenance()
    if group.is_rank_zero:
        reader = read_graphs(source, format=format, simplify=simplify, directed=directed)
        found = list(reader), reader.provenance

    return group.broadcast(found)


def read_with_options(source: Path, given: Mapping[str, Any]) -> tuple[list[SimpleGraph], str | None]:
    """Read the graphs of a file, without weights if these are ignored, and the family recorded in it.

    The options are ``format``, ``simplify`` and ``ignore_weights``.
    """
    reader = read_graphs(source, format=given["format"], simplify=given["simplify"])
    graphs = [graph.unweighted() if given["ignore_weights"] else graph for graph in reader]

    return graphs, reader.provenance.family


def read_latents_for_all(group: ProcessGroup, source: Path) -> list[EncodedGraph]:
    """Read the latents of a file on rank 0, and broadcast them."""
    from graphite_gen.io.latents import read_latents

    return group.broadcast(read_latents(source) if group.is_rank_zero else [])


def unused_attributes(graphs: Iterable[SimpleGraph]) -> str:
    """The attributes of nodes and edges that models do not use, in words; empty if there are none."""
    found: dict[str, dict[str, None]] = {"node": {}, "edge": {}}
    for graph in graphs:
        found["node"].update(dict.fromkeys(graph.node_attributes))
        found["edge"].update(dict.fromkeys(graph.edge_attributes))

    return " and ".join(f"{kind} attributes {listed(list(names)[:10])}" for kind, names in found.items() if names)


def find_family(name: str | None, parameters: Iterable[tuple[str, str]], provenance: Provenance) -> Family | None:
    """The family of a name and parameters, else the one recorded in the file."""
    if name is not None:
        return family_of(name, **dict(parameters))
    try:
        return None if provenance.family is None else family_of(provenance.family, **provenance.parameters)
    except FamilyError as error:
        note(f"The family recorded in the file is ignored. {explain(error)}")
        return None


def find_entropy(
    family: Family | None, graphs: list[SimpleGraph], nlls: list[float], schema: AttributeSchema
) -> Entropy | None:
    """The entropy of the family and the excess of NLLs over it; None if it is not known."""
    from graphite_gen.likelihood.excess import find_entropy as entropy_of

    # That of weights on all pairs is not comparable.
    if family is None or (any(graph.is_weighted for graph in graphs) and not schema.weights):
        return None
    try:
        return entropy_of(family, graphs, nlls, schema)
    except (DatasetError, FamilyError) as error:
        note(f"No entropy: {explain(error)}")
        return None


def marked_or_all(graphs: list[SimpleGraph], split: str, path: Path) -> list[SimpleGraph]:
    """The graphs of a split, with a note on stderr; all graphs if the file has none of that split."""
    marked = [graph for graph in graphs if split_of(graph) == split]
    if marked:
        note(f"Using the split '{split}' of '{path}': {len(marked)} of {len(graphs)} graphs.")

    return marked or graphs


def read_split(path: Path, split: str, simplify: bool, group: ProcessGroup = SINGLE_PROCESS) -> list[SimpleGraph]:
    """Read the graphs of a split of a file, or all if there are none of that split."""
    return marked_or_all(read_for_all(group, path, simplify=simplify)[0], split, path)


def read_sets(
    reference: Path, train: Path | None, *, simplify: bool, group: ProcessGroup = SINGLE_PROCESS
) -> tuple[list[SimpleGraph], list[SimpleGraph], Provenance]:
    """Reference graphs (split 'test'), training graphs (by default split 'train'), and the reference's provenance."""
    graphs, provenance = read_for_all(group, reference, simplify=simplify)
    test = marked_or_all(graphs, "test", reference)
    if train is not None:
        return test, read_split(train, "train", simplify, group), provenance
    seen = [] if test is graphs else [graph for graph in graphs if split_of(graph) == "train"]
    if seen:
        note(f"Training graphs: the split 'train' of '{reference}', {len(seen)} graphs.")

    return test, seen, provenance
