"""Summaries of graph files and of models."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphite_gen.api import LOCAL
from graphite_gen.data.properties import is_acyclic, reciprocity
from graphite_gen.errors import GraphiteError
from graphite_gen.io import read_graphs
from graphite_gen.network.network import count_features
from graphite_gen.network.storage import load_network
from graphite_gen.training import checkpoint
from graphite_gen.training.checkpoint import is_network_model, load_checkpoint, read_config
from graphite_gen.training.model_card import describe_model, model_facts, origin_in_words

from .advice import explain
from .console import count_of, nats, note, show_facts, show_json, show_rows, track


def summarise_graphs(path: Path, format: str | None, simplify: bool) -> dict[str, Any]:
    """Summary of the graphs of a file, in one pass."""
    sizes: list[tuple[int, int, float]] = []
    weighted, named, acyclic = 0, 0, 0
    reciprocities: list[float] = []
    features: set[int] = set()
    splits: Counter[str] = Counter()
    attributes: dict[str, dict[str, None]] = {"graph": {}, "node": {}, "edge": {}}
    with read_graphs(path, format=format, simplify=simplify) as reader:
        for graph in track(reader, None, "Reading"):
            pairs = graph.nodes * (graph.nodes - 1) // (1 if graph.directed else 2)
            sizes.append((graph.nodes, len(graph.edges), len(graph.edges) / pairs if pairs else 0.0))
            weighted += graph.weights is not None
            named += graph.names is not None
            if graph.directed:
                reciprocities.append(reciprocity(graph))
                acyclic += is_acyclic(graph)
            features.add(0 if graph.features is None else graph.features.shape[1])
            if "split" in graph.attributes:
                splits[str(graph.attributes["split"])] += 1
            attributes["graph"].update(dict.fromkeys(graph.attributes))
            attributes["node"].update(dict.fromkeys(graph.node_attributes))
            attributes["edge"].update(dict.fromkeys(graph.edge_attributes))
    ranges = [_range(values) for values in zip(*sizes, strict=True)]
    if reader.format == "h5" and features == {0}:
        features = {count_features(path, int(ranges[0]["max"]))}

    return {
        "file": str(path),
        "format": reader.format,
        "graphs": len(sizes),
        **dict(zip(("nodes", "edges", "density"), ranges, strict=True)),
        "directed": len(reciprocities),
        "reciprocity": _range(reciprocities) if reciprocities else None,
        "acyclic": acyclic,
        "weighted": weighted,
        "named": named,
        "features": sorted(features),
        "attributes": {kind: list(names) for kind, names in attributes.items()},
        "splits": dict(splits),
        "provenance": reader.provenance.to_json(),
    }


def _range(values: Sequence[float]) -> dict[str, float]:
    return {"min": min(values), "max": max(values), "mean": sum(values) / len(values)}


def is_model(thing: str) -> bool:
    """Whether an argument is a checkpoint or the name of one, rather than a file of graphs."""
    path = Path(thing)
    if path.exists():
        return (path / "config.json").exists() or (path / "model.safetensors").exists()

    return thing != "-" and not path.suffix


def summarise_model(folder: Path) -> dict[str, Any]:
    """Summary of a checkpoint."""
    if not is_network_model(read_config(folder)):
        return describe_model(load_checkpoint(folder), folder)
    model = load_network(folder)

    return {
        "name": model.name,
        "folder": str(folder),
        "scope": "single graph",
        "kind": model.settings.kind,
        "parameters": sum(parameter.numel() for parameter in model.decoder.parameters()),
        "nodes": {"min": model.nodes, "max": model.nodes},
        "edges": model.edges,
        "mean_degree": model.mean_degree,
        "config": model.settings.to_json(),
        "seed": model.seed,
        "provenance": model.provenance.to_json(),
        "results": {},
    }


def show_summary(summary: Mapping[str, Any], as_json: bool) -> None:
    """Print the summary of a file or a model."""
    if as_json:
        show_json(summary)
    else:
        facts = network_facts if "scope" in summary else model_facts if "kind" in summary else _graph_facts
        show_facts(facts(summary))


def _graph_facts(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    def span(values: Mapping[str, float], form: str = "g", mean: str = ".1f") -> str:
        return f"{values['min']:{form}} to {values['max']:{form}}, mean {values['mean']:{mean}}"

    def part(count: int, total: int = facts["graphs"]) -> str:
        return "no" if not count else "yes" if count == total else f"{count} of {total} graphs"

    directions = []
    if facts["directed"]:
        directions = [
            ("directed", part(facts["directed"])),
            ("reciprocity", span(facts["reciprocity"], ".3f", ".3f")),
            ("acyclic", part(facts["acyclic"], facts["directed"])),
        ]

    return [
        ("file", facts["file"]),
        ("format", facts["format"]),
        ("graphs", str(facts["graphs"])),
        ("nodes", span(facts["nodes"])),
        ("edges", span(facts["edges"])),
        ("density", span(facts["density"], ".3f", ".3f")),
        *directions,
        ("weighted", part(facts["weighted"])),
        ("features", ", ".join(f"{width} per node" for width in facts["features"] if width) or "none"),
        ("node names", part(facts["named"])),
        *((f"{kind} attributes", ", ".join(names)) for kind, names in facts["attributes"].items()),
        ("splits", ", ".join(f"{name} {number}" for name, number in facts["splits"].items())),
        ("from", origin_in_words(facts["provenance"])),
    ]


def network_facts(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The summary of a model of one network in words."""
    config = facts["config"]
    rounds = f"{count_of(config['rounds'], 'round')}, {config['skip']} skip, λ = {config['skip_weight']:g}"

    return [
        ("model", facts["name"]),
        ("folder", facts["folder"]),
        ("kind", f"{facts['kind']} of one network"),
        ("parameters", f"{facts['parameters']:_} of the decoder".replace("_", " ")),
        ("latents", f"{config['latent']} per node"),
        ("decoder", f"{rounds if facts['kind'].startswith('graphite') else 'no rounds'}, {config['head']} head"),
        ("trained on", f"a network from {origin_in_words(facts['provenance'])}"),
        ("nodes", str(facts["nodes"]["max"])),
        ("edges", f"{facts['edges']}, mean degree {facts['mean_degree']:.3g}"),
        ("training", f"{count_of(config['epochs'], 'epoch')}, seed {facts['seed']}"),
    ]


def list_models(as_json: bool, parent: Path | None = None) -> None:
    """List the models in a folder, by default those under './checkpoints' and the bundled ones."""
    rows: list[dict[str, Any]] = []
    bundled = checkpoint.bundled_folder()
    parents = (LOCAL, bundled) if parent is None else (parent,)
    places: dict[Path, Path] = {}
    for folder in (path.parent for each in parents for path in sorted(each.glob("*/config.json"))):
        places.setdefault(folder.resolve(), folder)
    # In a checkout, './checkpoints' also holds the bundled models, which have no 'state.json'.
    for place, folder in places.items():
        is_local = folder.parent != bundled and (place.parent != bundled.resolve() or (folder / "state.json").exists())
        try:
            rows.append({"place": "local" if is_local else "bundled", **summarise_model(folder)})
        except GraphiteError as error:
            note(f"Skipped: {explain(error)}")
    if as_json:
        return show_json(rows)
    if not rows:
        return note("No models found. Train one with 'graphite-gen train --family barabasi'.")
    cells = [
        (
            Path(row["folder"]).name,
            row["place"],
            row["kind"],
            row["provenance"]["family"] or row["provenance"]["source"] or "",
            f"{row['nodes']['min']}:{row['nodes']['max']}",
            nats(row["results"].get("validation")),
        )
        for row in rows
    ]
    columns = ("model", "place", "kind", "trained on", "nodes", "validation")

    return show_rows(columns, cells, numbers=columns[-2:])
