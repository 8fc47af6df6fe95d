"""What to do about an error of the library, in options of the command line.

The library states facts in the terms of its Python API; every key below is the ``reason`` of a
:class:`graphite_gen.errors.GraphiteError`, and the text may use its facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphite_gen.errors import GraphiteError

__all__ = ["advice"]

_IO: dict[str, str] = {}

_DATA_AND_FAMILIES: dict[str, str] = {}

_MODELS_AND_TRAINING: dict[str, str] = {
    "diverged": "Start again with a lower '--learning-rate' (now {learning_rate:g}).",
    "few-cuda-devices": "Lower '--nproc-per-node' of torchrun, or use '--device cpu'.",
    "folder-exists": "Pass '--force' to replace it, or another '--name'.",
    "folder-exists-resume": "Pass '--resume' to continue its run, '--force' to replace it, or another '--name'.",
    "identity-is-one-shot": "Pass '--stages 1', or another '--preset'.",
    "kind-is-one-shot": "Pass '--stages 1', or '--kind graphite-vae'.",
    "no-cuda": "Use '--device cpu'.",
    "no-graphs": "Check the file with 'graphite-gen inspect'.",
    "no-run": "Start one without '--resume'.",
    "no-run-but-model": "Start one without '--resume', with '--force'.",
    "not-a-model": "Pass another '--name' or '--out'.",
    "other-run": "Resume it with its own settings and graphs, or start again with '--force'.",
    "resume-other-graphs": "Restore them to resume, or start another run with a new '--name'.",
    "resume-other-setting": "Omit that option to resume, or start another run with a new '--name'.",
    "run-damaged": "Restore the file, or start again with '--force'.",
    "weighted-is-one-shot": "Pass '--stages 1', or '--ignore-weights'.",
}

_SAMPLING_AND_COMPLETION: dict[str, str] = {}

_LIKELIHOOD: dict[str, str] = {
    "entropy-unknown": "Estimate it with 'graphite-gen families --floor {family}{parameters} --nodes {nodes}'.",
    "identity-too-small": "Train with '--preset default', or on graphs of that size.",
    "needs-pairs": "Use '--convention pairs'.",
    "no-likelihood": "Train with '--kind graphite-vae'.",
    "one-shot-decoding": "Omit '--stages'.",
    "weighted-unlike-model": "Train on such graphs with 'graphite-gen train FILE', or pass '--ignore-weights'.",
}

_EVALUATION_AND_PICTURES: dict[str, str] = {}

_NETWORKS: dict[str, str] = {}

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
    facts = {name: _as_options(fact) if isinstance(fact, Mapping) else fact for name, fact in error.facts.items()}

    return ADVICE.get(error.reason, "").format_map(facts)


def _as_options(parameters: Mapping[str, Any]) -> str:
    return "".join(f" --param {name}={str(value).lower()}" for name, value in parameters.items())
