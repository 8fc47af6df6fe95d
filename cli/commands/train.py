"""The command ``train``: train a model on a family or on graphs of a file."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import options
from ..command import Command
from ..signals import exit_code
from ..train_options import NETWORK_SETTINGS, SETTINGS, naming_options, settings
from ..types import NAME, PATH, PATH_OR_DASH

if TYPE_CHECKING:
    from graphite_gen.distributed import ProcessGroup
    from graphite_gen.training.trainer import Trainer

OUT = Path("checkpoints")


@click.command(
    cls=Command,
    short_help="Train a model on a family or on your own graphs.",
    groups={
        "Training graphs": "family parameters graphs nodes single",
        "Model": "preset kind decoding_steps ordering latent width",
        "Training": "epochs batch_size learning_rate seed resume",
        "Output": "name out force as_json",
    },
)
@click.argument("source", metavar="[GRAPHS]", type=PATH_OR_DASH, required=False)
@click.option(
    "--single",
    is_flag=True,
    help="GRAPHS is one large network: learn to generate networks like it.  [default: many graphs]",
)
@options.family("Train on this family; 'graphite-gen families' lists them.")
@options.parameters
@click.option(
    "--graphs", type=click.IntRange(1), metavar="N", help="Training graphs of a family.  [default: 24000; paper: 100]"
)
@options.nodes("10:20", "Nodes per graph of a family.")
@options.input_format()
@options.simplify
@options.ignore_weights
@click.option(
    "--preset",
    type=click.Choice(("default", "one-shot", "paper")),
    default="default",
    show_default=True,
    help="Defaults of all settings: autoregressive decoder, one-shot decoder, or those of the paper.",
)
@click.option("--name", type=NAME, metavar="NAME", help="The model's name.  [default: the family's or the file's]")
@click.option(
    "--out",
    type=PATH,
    metavar="FOLDER",
    default=OUT,
    show_default=True,
    help="Folder of models; this one goes to OUT/NAME.",
)
@settings
@options.seed
@options.device
@click.option(
    "--threads",
    type=click.IntRange(1, 4096),
    metavar="N",
    help="CPU threads.  [default: 1; all with '--single']",
)
@click.option("--resume", is_flag=True, help="Continue the run in OUT/NAME, or the last one of that family or file.")
@options.force
@options.as_json
@click.pass_context
def train(
    ctx: click.Context,
    /,
    source: Path | None,
    single: bool,
    family: str | None,
    parameters: tuple[tuple[str, str], ...],
    name: str | None,
    out: Path,
    device: str,
    threads: int | None,
    resume: bool,
    force: bool,
    as_json: bool,
    **values: Any,
) -> None:
    """Train a model on a family, or on GRAPHS: a file of any format, or a folder of files.

    The model with the best validation NLL is kept. A run can be stopped and resumed with bit-identical results. A file
    may mark its graphs as 'train' and 'validation'; otherwise a random tenth is held out for validation.

    With '--single' the model is trained on the edges of one large network, and 'sample' generates networks like it, of
    any size. Such a run cannot be resumed; it takes the settings '--kind', '--epochs', '--learning-rate', '--latent',
    '--width', '--rounds', '--skip', '--skip-weight' and '--subsample'.

    'torchrun --nproc-per-node 2 -m graphite_gen train' trains data-parallel with two processes, on one host or more,
    to the same result up to rounding. A run can be resumed with another number of processes.

    \b
    Example:
        graphite-gen train --family barabasi
        graphite-gen train --family ba --param m=3 --nodes 20:40 --name ba3
        graphite-gen train my_graphs.graphml --epochs 50
        graphite-gen train my_graphs.graphml --resume
        graphite-gen train --single cora.h5
    """
    if single:
        return _train_network(ctx, source, name, out, threads, force, as_json, values)
    given = {key: value for key, value in values.items() if options.is_given(key)}
    _check_usage(source, family, bool(parameters), name, resume, force, given)

    from graphite_gen.errors import DistributedError, OutputError
    from graphite_gen.io.locks import locked
    from graphite_gen.training.runs import resume_run, start_run
    from graphite_gen.training.trainer import RUN, read_run

    from ..console import note
    from ..model_choice import use_threads
    from ..progress import show_plan, show_results, train_with_progress
    from ..sharing import connect_ranks

    # One thread is as fast as two on a quiet machine, and much faster on a busy one.
    default = None if "OMP_NUM_THREADS" in os.environ else 1
    use_threads(threads or default)
    origin = _family(family, parameters)
    group = connect_ranks()
    folder, resumes = _choose_folder(group, out, name, name or origin.get("family") or _stem(source), resume, force)
    trainer: Trainer | None = None
    try:
        if group.is_rank_zero:
            ctx.with_resource(locked(folder))
        if resumes:
            if group.world_size == 1:
                # Floating-point sums depend on the number of threads: a resumed run keeps its number.
                threads = threads or read_run(folder).get("threads")
                use_threads(threads or default)
            file = None if source is None else str(source)
            with naming_options():
                trainer = resume_run(folder, given | origin, file=file, device=device, group=group)
        else:
            data = _data(source, origin, values)
            changes = {key: values[key] for key in SETTINGS if values[key] is not None}
            with naming_options():
                trainer = start_run(folder.name, folder, data, changes, device=device, force=force, group=group)
        if trainer.is_finished:
            note(f"The run in '{folder}' is already finished.")
        else:
            _announce(trainer, folder, resumes, source is not None)
            show_plan(trainer.plan())
            train_with_progress(trainer)
    except OutputError as error:
        if trainer is None or not (trainer.has_saved and (folder / RUN).exists()):
            raise
        command = _resume_command(source, family, folder, device, threads)
        text = f"{error} The last save is intact; continue with: {command}"
        raise OutputError(text, reason=error.reason, **error.facts) from error
    except (KeyboardInterrupt, DistributedError) as error:
        # An interrupt may come while graphs are read, before there is a run.
        saved = resumes or (trainer is not None and trainer.has_saved)
        command = _resume_command(source, family, folder, device, threads)
        if isinstance(error, DistributedError):
            raise DistributedError(f"{error} {f'Continue with: {command}' if saved else 'Start it again.'}") from error
        note(f"Interrupted. Continue with: {command}" if saved else "Interrupted before anything was saved.")
        ctx.exit(exit_code(error))

    return show_results(trainer, folder, as_json) if group.is_rank_zero else None


def _choose_folder(
    group: ProcessGroup, out: Path, name: str | None, base: str, resume: bool, force: bool
) -> tuple[Path, bool]:
    """The folder of the run and whether to resume the run in it, chosen by rank 0."""
    from graphite_gen.training.runs import find_run, free_folder, lost_run

    folder, resumes = out, resume
    if group.is_rank_zero:
        lost = None if resume else lost_run(out, base)
        if resume:
            folder = out / name if name else find_run(out, base)
        else:
            folder = lost or (out / base if name or force else free_folder(out, base))
        resumes = resume or lost is not None

    return group.broadcast((folder, resumes))


def _announce(trainer: Trainer, folder: Path, resume: bool, is_file: bool) -> None:
    """Print what is trained, on stderr."""
    from ..console import count_of, note

    after = f"Resuming '{folder.name}' after {count_of(trainer.epoch, 'epoch')}"
    begin = after if resume else f"Training '{folder.name}'"
    note(f"{begin} on {count_of(len(trainer.graphs), 'graph')}, validating on {len(trainer.validation)}.")
    if is_file and not resume and len(trainer.graphs) == 1 and not trainer.validation:
        note("There is only one graph: to train on one network, pass '--single'.")
    if trainer.config.observation == "normal":
        note("The graphs are weighted: normal weights on all pairs are learned. To drop them, pass '--ignore-weights'.")


# Options that apply to training on one network.
SINGLE = {
    *("source", "single", "format", "simplify", "ignore_weights", "name", "out", "seed", "threads", "force", "as_json"),
    *NETWORK_SETTINGS,
}


def _train_network(
    ctx: click.Context,
    source: Path | None,
    name: str | None,
    out: Path,
    threads: int | None,
    force: bool,
    as_json: bool,
    values: dict[str, Any],
) -> None:
    for parameter in ctx.command.params:
        if options.is_given(str(parameter.name)) and parameter.name not in SINGLE:
            raise click.UsageError(f"'{parameter.opts[0]}' has no effect with '--single'.")
    if source is None:
        raise click.UsageError("Pass the file of the graph: 'graphite-gen train --single GRAPH'.")

    from graphite_gen.distributed import group_from_environment

    if group_from_environment().world_size > 1:
        raise click.UsageError("'--single' trains in one process. Run 'graphite-gen train --single' without torchrun.")

    from graphite_gen.io.locks import locked
    from graphite_gen.training.runs import claim_folder, free_folder

    from ..model_choice import use_threads
    from ..network_options import KINDS, refuse_idle, train_network

    refuse_idle([values["kind"] or KINDS[0]])
    use_threads(threads)
    base = name or _stem(source)
    folder = out / base if name or force else free_folder(out, base)
    ctx.with_resource(locked(folder))
    claim_folder(folder, force, resumes=False)
    settings = {key: values[key] for key in NETWORK_SETTINGS if values[key] is not None}

    return train_network(source, folder, values["format"], values["simplify"], settings, values["seed"], as_json)


def _check_usage(
    source: Path | None,
    family: str | None,
    has_parameters: bool,
    name: str | None,
    resume: bool,
    force: bool,
    given: dict[str, Any],
) -> None:
    if resume and force:
        raise click.UsageError("'--resume' and '--force' exclude each other: continue the run, or replace it.")
    if source is not None and family is not None:
        raise click.UsageError("Pass either GRAPHS or '--family', not both.")
    if source is None and family is None and not (resume and name):
        raise click.UsageError("Pass a file of GRAPHS, or '--family NAME' as in '--family barabasi'.")
    if "subsample" in given:
        raise click.UsageError("'--subsample' needs '--single'.")
    if family is None and has_parameters:
        raise click.UsageError("'--param' needs '--family'.")
    if source is not None:
        for key in ("graphs", "nodes"):
            if key in given:
                raise click.UsageError(f"'--{key}' is for '--family', not for a file.")
    if family is not None:
        for key in ("format", "simplify", "ignore_weights"):
            if key in given:
                option = key.replace("_", "-")
                raise click.UsageError(f"'--{option}' is for a file of GRAPHS, not for '--family'.")


def _family(family: str | None, parameters: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """The full name of the family, and its parameters if any were given."""
    if family is None:
        return {}
    from graphite_gen.families import family as family_of

    found = family_of(family, **dict(parameters))

    return {"family": found.name} | ({"parameters": found.parameters()} if parameters else {})


def _data(source: Path | None, family: dict[str, Any], values: dict[str, Any]) -> Any:
    from graphite_gen.families import family as family_of
    from graphite_gen.training.runs import TrainingData

    common = {"preset": values["preset"], "seed": values["seed"]}
    if source is not None:
        file = "-" if str(source) == "-" else str(source.resolve())
        reading = {key: values[key] for key in ("format", "simplify", "ignore_weights")}
        return TrainingData(file=file, **reading, **common)
    parameters = family.get("parameters") or family_of(family["family"]).parameters()

    return TrainingData(
        family=family["family"], parameters=parameters, graphs=values["graphs"], nodes=values["nodes"], **common
    )


def _stem(source: Path | None) -> str:
    if source is None or str(source) == "-":
        return "stdin"
    path = source.resolve()

    return path.name if path.is_dir() else Path(path.name.removesuffix(".gz")).stem or "graphs"


def _resume_command(source: Path | None, family: str | None, folder: Path, device: str, threads: int | None) -> str:
    from ..sharing import program

    words = ["train"]
    words += [str(source)] if source is not None else ["--family", family] if family is not None else []
    words += ["--out", str(folder.parent)] if folder.parent != OUT else []
    words += ["--name", folder.name, "--resume"]
    words += ["--device", device] if device != "auto" else []
    words += ["--threads", str(threads)] if threads is not None else []

    return f"{program()} {shlex.join(words)}"
