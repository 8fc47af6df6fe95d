"""What to do about an error of the library, in options of the command line.

The library states facts in the terms of its Python API; every key below is the ``reason`` of a
:class:`graphite_gen.errors.GraphiteError`. A text may use the facts of the error, and two placeholders:
``{input_format}`` and ``{output_format}`` are the options for the format of files read and written. A command without
such an option gives no advice, or leaves out the part in square brackets that needs it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from .command import Option

if TYPE_CHECKING:
    from graphite_gen.errors import GraphiteError

OPTIONAL = re.compile(r"\[(.*?)\]")

ADVICE: dict[str, str] = {
    # Files.
    "directed-graph": "Pass '--simplify' to ignore edge directions.",
    "embedding-not-graphs": "'graphite-gen embed' wrote it: pass the file of the graph instead.",
    "latents-missing": "Make one with 'graphite-gen encode GRAPHS -o FILE'.",
    "latents-not-graphs": "Decode them with 'graphite-gen sample --latents FILE'.",
    "file-damaged": "Write the file again.[ If its suffix does not match its content, pass '{input_format}'.]",
    "format-mismatch": "Pass '{input_format}' with the right format.",
    "format-unknown": "Rename the file, or pass '{input_format}'.",
    "output-format-unknown": "Pass another name[, or '{output_format}'].",
    "folder-locked": "Wait for it or stop it, or train under another '--name'.",
    "folder-not-writable": "Choose another folder with '--out'.",
    "h5-not-seekable": "Pass a file, or another '{output_format}'.",
    "input-missing": "Pass an existing file, or make one with 'graphite-gen generate --family NAME -o FILE'.",
    "model-not-graphs": "Pass it with '--model', and a file of graphs here.",
    "needs-simplify": "Pass '--simplify' to ignore edge directions and drop self-loops and repeated edges.",
    "no-graphs": "Pass another file, or make one with 'graphite-gen generate --family NAME -o FILE'.",
    "output-not-writable": "Check the folder, or pass another file.",
    "output-exists": "Pass '--force' to replace it, or another name.",
    # Data and families.
    "family-size": "Change '--nodes' or '--param'.",
    "unknown-family": "'graphite-gen families' lists them.",
    "unknown-parameter": "'graphite-gen families' lists the parameters.",
    # Models and training.
    "training-diverged": "Start again with a lower '--learning-rate' (now {learning_rate:g}).",
    "few-cuda-devices": "Lower '--nproc-per-node' of torchrun, or use '--device cpu'.",
    "folder-exists": "Pass '--force' to replace it, or another '--name'.",
    "folder-exists-resume": "Pass '--resume' to continue its run, '--force' to replace it, or another '--name'.",
    "identity-is-one-shot": "Pass '--decoder one-shot', or another '--preset'.",
    "kind-is-one-shot": "Pass '--decoder one-shot', or '--kind graphite-vae'.",
    "no-cuda": "Use '--device cpu'.",
    "empty-dataset": "Check the file with 'graphite-gen inspect'.",
    "no-run": "Start one without '--resume'.",
    "no-run-but-model": "Start one without '--resume', with '--force'.",
    "folder-not-a-model": "Pass another '--name' or '--out'.",
    "other-run": "Resume it with its own settings and graphs, or start again with '--force'.",
    "resume-other-graphs": "Restore them to resume, or start another run with a new '--name'.",
    "resume-other-setting": "Omit that option to resume, or start another run with a new '--name'.",
    "run-unfinished": "Pass '--resume --name {name}' to continue it, '--force --name {name}' to replace it, or another "
    "'--name'.",
    "extension-too-short": "Pass more '--epochs', or a longer '--budget'.",
    "initial-model": "Omit that option to fine-tune it, or train a new model without '--from'.",
    "run-damaged": "Restore the file, or start again with '--force'.",
    "training-memory": "Pass '--batch-size {fitting}'.",
    "weighted-is-one-shot": "Pass '--decoder one-shot', or '--ignore-weights'.",
    "attributes-one-shot": "Leave out '--preset', '--kind' and '--decoder', or pass '--simplify'.",
    "no-generated-features": "Leave out '--generate-features'.",
    "too-many-features": "Name some of them with '--node-feature'.",
    "feature-missing": "Name features that all nodes have with '--node-feature'.",
    "no-condition": "Conditions are those of '--condition' in 'graphite-gen train'.",
    "mixed-directions-training": "Pass '--simplify' to ignore edge directions.",
    "model-unknown": "Pass a folder that 'graphite-gen train' wrote, or a bundled name.",
    "no-encoder": "Pass a model that has one, such as 'bundled:barabasi-one-shot'.",
    "network-model": "Pass a model of many graphs, such as 'bundled:barabasi'.",
    "old-decoder": "Train it again with 'graphite-gen train', on the same '--family' or file of graphs.",
    "not-a-model": "Pass a folder that 'graphite-gen train' wrote.",
    # Sampling and completion.
    "constraints-not-met": "Relax the constraints, or try another number of nodes with '--nodes'.",
    "features-required": "Pass graphs that have them with '--features FILE'.",
    "no-observed-edges": "Train it again with 'graphite-gen train --single', or leave out '--novelty'.",
    "identity-features": "Use smaller graphs, or a model trained with '--preset default'.",
    "impossible-enumeration": "Use a model of such graphs, or more '--steps'.",
    "impossible-particles": "Use a model of such graphs, or more '--particles'.",
    "infeasible-constraints": "Change the constraints, or the number of nodes with '--nodes'.",
    "no-prior": "Train with '--kind graphite-vae'.",
    "nothing-unknown": "Mark edges as unknown, or pass '--unlisted unknown' or '--add-nodes N'.",
    "sampling-memory": "Pass smaller '--nodes'.",
    "sampling-memory-threads": "Pass smaller '--nodes', or '--threads 1'.",
    "sampling-memory-workers": "Pass smaller '--nodes', or fewer '--workers'.",
    "weighted-graph": "Pass '--ignore-weights'.",
    "weighted-model": "Train with '--ignore-weights'.",
    # Likelihood.
    "entropy-unknown": "Estimate it with 'graphite-gen families --entropy {family}{parameters} --nodes {nodes}'.",
    "identity-too-small": "Train with '--preset default', or on graphs of that size.",
    "no-annealing": "Omit '--method', and raise '--samples'.",
    "needs-pairs": "Use '--convention pairs'.",
    "no-likelihood": "Train with '--kind graphite-vae'.",
    "nll-memory": "Pass '--samples {fitting}'.",
    "weighted-unlike-model": "Train on such graphs with 'graphite-gen train FILE', or pass '--ignore-weights'.",
    # Evaluation and pictures.
    "mixed-directions": "Pass '--simplify' to ignore directions.",
    "graph-too-large-to-draw": "'graphite-gen plot distributions' has no such limit.",
    # Networks.
    "step-memory": "Pass a smaller '--latent'.",
    "diverged": "Pass a lower '--learning-rate'.",
    "few-non-neighbours": "Pass a smaller '--hard'.",
    "more-than-one-graph": "Write each to its own file, as in 'graphite-gen convert FILE out/{{index:04d}}.graphml'.",
    "no-features": "Pass a file with '--node-features', or '--no-features'.",
    "no-hidden-edges": "Pass '--targets all', or an '--edge-dropout' above 0.",
    "no-labels": "Pass a file with '--node-labels', or a node attribute with '--label-attribute'.",
    "split-disconnects": "Pass '--split random'.",
    "uninformative-features": "Pass '--no-features', or others with '--node-features'.",
    # Distributed runs.
    "not-connected": "Start all of them with torchrun, or use '--workers'.",
    "worker-died": "No output file was written.",
}


def advice(error: GraphiteError) -> str:
    """What to pass to fix an error; empty if its message says all, or if the command has no such option."""
    known = {**_placeholders(), **error.facts}
    if "parameters" in known:
        pairs = known["parameters"].items()
        known["parameters"] = "".join(f" --param {name}={str(value).lower()}" for name, value in pairs)
    text = OPTIONAL.sub(lambda part: _filled(part[1], known), ADVICE.get(error.reason, ""))

    return _filled(text, known)


def _filled(text: str, known: Mapping[str, Any]) -> str:
    """A text with its placeholders filled in; empty if one of them is not known."""
    try:
        return text.format_map(known)
    except KeyError:
        return ""


def explain(error: GraphiteError) -> str:
    """The message of an error and the advice."""
    return f"{error} {advice(error)}".rstrip()


def _placeholders() -> dict[str, str]:
    context = click.get_current_context(silent=True)
    if context is None:
        return {}
    command = context.command
    if isinstance(command, click.Group) and context.invoked_subcommand is not None:
        command = command.get_command(context, context.invoked_subcommand) or command

    return {option.role: option.opts[0] for option in command.params if isinstance(option, Option) and option.role}
