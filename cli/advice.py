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

_NETWORKS: dict[str, str] = {}

_DISTRIBUTED: dict[str, str] = {
    "not-connected": "Start all of them with torchrun, or use '--workers'.",
    "worker-died": "No output file was written.",
}

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
