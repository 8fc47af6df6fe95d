"""Descriptions of models and of the origin of graphs, for the command line and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..data.schema import AttributeSchema
from ..records import count_of
from .checkpoint import TrainedModel

__all__ = ["describe_model", "latents_in_words", "model_facts", "origin_in_words"]

SHOWN = 8
"""The most values of a label that are listed."""
KINDS = {"positive": "positive", "real": "real", "count": "counts", "integer": "integers"}


def describe_model(model: TrainedModel, folder: Path) -> dict[str, Any]:
    """The contents of a checkpoint as plain JSON values."""
    return {
        "name": model.name,
        "folder": str(folder),
        "kind": model.config.kind,
        "parameters": sum(parameter.numel() for parameter in model.network.parameters()),
        "exchangeable": model.config.is_exchangeable,
        "nodes": {"min": min(model.sizes.graphs), "max": model.sizes.largest},
        "config": model.config.to_json(),
        "training": model.training.to_json(model.config.unused),
        "provenance": model.provenance.to_json(),
        "results": dict(model.results),
        "attributes": _attributes(model.schema),
    }


def _attributes(schema: AttributeSchema) -> dict[str, str]:
    """What graphs carry, and what they are given."""
    found = {}
    if schema.node_label is not None:
        found["node label"] = f"{schema.node_label}: {_some(schema.node_values)}"
    if schema.edge_label is not None:
        found["edge label"] = f"{schema.edge_label}: {_some(schema.edge_values)}"
    if schema.features.names:
        pairs = zip(schema.features.labels, schema.features.kinds, strict=True)
        found["generated features"] = _some([f"{name} ({KINDS[kind]})" for name, kind in pairs])
    conditions = [
        f"{one.name} ({_some(one.classes) if one.classes else f'{one.low:.4g} to {one.high:.4g}'})"
        for one in schema.conditions.each
    ]
    if conditions:
        found["conditions"] = ", ".join(conditions)

    return found


def _some(values: Sequence[Any]) -> str:
    return ", ".join(map(str, values[:SHOWN])) + (", …" if len(values) > SHOWN else "")


def _graphs(config: Mapping[str, Any]) -> str:
    """The kind of graphs in words."""
    weights = config.get("weights") or ("real" if config["observation"] == "normal" else "")
    words = ["directed"] * bool(config.get("directed")) + ["weighted" if weights else "unweighted", "graphs"]
    kinds = {"positive": "positive weights", "real": "real weights", "count": "counts"}

    return " ".join(words) + (f" ({kinds[weights]})" if config.get("weights") else "")


def model_facts(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A description for people of :func:`describe_model`, as pairs of a name and a value."""
    config, training, results = facts["config"], facts["training"], facts["results"]
    trained_on = count_of(results.get("training_graphs", "?"), "graph")
    done = results.get("epochs", "?")
    # A budget may have changed the number of epochs.
    epochs = count_of(done, "epoch") if training["budget"] else f"{done} of {count_of(training['epochs'], 'epoch')}"
    best = "-" if results.get("validation") is None else f"{results['validation']:.2f}"

    return [
        ("model", facts["name"]),
        ("folder", facts["folder"]),
        ("kind", f"{facts['kind']} for {_graphs(config)}"),
        *facts["attributes"].items(),
        ("parameters", f"{facts['parameters']:,}".replace(",", " ")),
        ("encoder", _encoder(config)),
        ("decoder", _decoder(config)),
        ("node features", str(config["node_features"] or "none")),
        ("exchangeable", "yes" if facts["exchangeable"] else "no: the NLL depends on the numbering of the nodes"),
        ("trained on", f"{trained_on} from {origin_in_words(facts['provenance'])}"),
        ("nodes", f"{facts['nodes']['min']} to {facts['nodes']['max']}"),
        ("training", f"{epochs}, seed {training['seed']}"),
        ("validation", f"{best} nats per graph (epoch {results.get('best_epoch', '?')})"),
        ("latents", latents_in_words(results, config["latent"], facts["provenance"]["family"])),
    ]


def latents_in_words(results: Mapping[str, Any], latent: int, family: str | None = None) -> str:
    """Whether latents carry information, from results with the keys of :class:`.LatentActivity`; empty if unknown.

    What the decoder gains from them is told if the results have it.
    """
    if any(results.get(key) is None for key in ("kl", "active_units", "mutual_information")):
        return ""
    active, gain = results["active_units"], results.get("gain")
    figures = f"KL {results['kl']:.2f} nats per graph, {active} of {latent} units active"
    if gain is not None:
        figures += f", log p(A|Z) {gain:.2f} nats higher than with latents of other nodes"
    if active:
        return f"{figures}, mutual information at most {results['mutual_information']:.2f} nats per graph"
    expected = ", as it should be: edges are independent" if family == "erdos-renyi" else ""

    return f"The latents carry no information: {figures}{expected}."


def _encoder(config: Mapping[str, Any]) -> str:
    if config["encoder"] == "none":
        return "none: latents are noise"
    features = ", ".join(config["encoder_features"])

    return f"{config['encoder']}, {config['encoder_layers']} layers of {config['width']}, reads {features}"


def _decoder(config: Mapping[str, Any]) -> str:
    latent = f"latent {config['latent']}"
    if config["decoder"] == "one-shot":
        # VGAE and GAE have no refinement.
        rounds = (
            f"{config['refinement']}, {count_of(config['rounds'], 'round')}, {config['skip']} skip, "
            f"λ = {config['skip_weight']:g}, "
            if "rounds" in config
            else ""
        )
        return f"one-shot, {latent}, {rounds}{config['head']} head"

    return (
        f"autoregressive, node ordering '{config['ordering']}', states of {config['width']}, {latent}, "
        f"{count_of(config['rounds'], 'round')}, λ = {config['skip_weight']:g}"
    )


def origin_in_words(provenance: Mapping[str, Any]) -> str:
    """A description of the origin of graphs, from the JSON of their provenance."""
    family, parameters, seed = provenance["family"], provenance["parameters"], provenance["seed"]
    if family is not None:
        settings = ", ".join(f"{key}={value}" for key, value in parameters.items())
        words = f"family {family}" + (f" ({settings})" if settings else "")
    elif provenance["model"] is not None:
        words = f"model {provenance['model']}"
    else:
        return provenance["source"] or "unknown"

    return words if seed is None else f"{words}, seed {seed}"
