"""What to do about an error of the library, in options of the command line.

The library states facts in the terms of its Python API; every key below is the ``reason`` of a
:class:`graphite_gen.errors.GraphiteError`, and the text may use its facts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphite_gen.errors import GraphiteError

__all__ = ["advice"]

_IO: dict[str, str] = {}

_DATA_AND_FAMILIES: dict[str, str] = {}

_MODELS_AND_TRAINING: dict[str, str] = {}

_SAMPLING_AND_COMPLETION: dict[str, str] = {}

_LIKELIHOOD: dict[str, str] = {}

_EVALUATION_AND_PICTURES: dict[str, str] = {}

_NETWORKS: dict[str, str] = {
    "diverged": "Pass a lower '--learning-rate'.",
    "more-than-one-graph": "Write each to a file of its own with 'graphite-gen convert', and pass one of them.",
    "no-features": "Pass a file with '--node-features', or '--no-features'.",
    "no-hidden-edges": "Pass '--targets all', or an '--edge-dropout' above 0.",
    "no-labels": "Pass a file with '--node-labels'.",
    "split-disconnects": "Pass '--split random'.",
    "uninformative-features": "Pass '--no-features', or others with '--node-features'.",
}

_DISTRIBUTED: dict[str, str] = {}

ADVICE = (
    _IO
    | _DATA_AND_FAMILIES
    | _MODELS_AND_TRAINING
    | _SAMPLING_AND_COMPLETION
    | _LIKELIHOOD
    | _EVALUATION_AND_PICTURES
    | _NETWORKS
    | _DISTRIBUTED
)


def advice(error: GraphiteError) -> str:
    """What to pass to fix an error; empty if its message says all."""
    return ADVICE.get(error.reason, "").format_map(error.facts)
