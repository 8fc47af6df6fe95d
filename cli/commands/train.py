"""The command ``train``: train a model on a family or on graphs of a file."""

from __future__ import annotations

import os
import shlex
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from graphite_gen.distributed import group_from_environment

from .. import network_options, options
from ..command import command, flag_of, is_given
from ..console import count_of, counting, duration, note, show_facts, show_json
from ..sharing import connect_ranks, program
from ..signals import exit_code
from ..train_options import KINDS, NETWORK_SETTINGS, SETTINGS, naming_options, settings
from ..types import NAME, PATH_OR_DASH, PATH_OR_NAME

if TYPE_CHECKING:
    from graphite_gen.distributed import ProcessGroup
    from graphite_gen.families import Family
    from graphite_gen.training.checkpoint import TrainedModel
    from graphite_gen.training.runs import TrainingData
    from graphite_gen.training.trainer import Trainer

OUT = Path("checkpoints")

READING = ("format", "simplify", "ignore_weights", "directed")
"""Options that only files of graphs take."""

NAMING = ("node_label", "edge_label", "condition", "weights", "generate_features")
"""Options that name attributes of graphs."""

OF_RUN = (
    *SETTINGS,
    *READING,
    "node_label",
    "edge_label",
    "condition",
    "generate_features",
    "graphs",
    "nodes",
    "preset",
    "seed",
)
"""Options that must not change when a run is resumed."""

SINGLE = {"source", "single", *READING, "name", "out", "seed", "threads", "force", "as_json", *NETWORK_SETTINGS}
"""Options that training on one network takes."""


@command(
    short_help="Train a model on a family or on your own graphs.",
    groups={
        "Training graphs": "family parameters graphs nodes single",
        "Attributes": "node_label edge_label generate_features node_feature condition weights directed",
        "Model": "preset kind decoder ordering latent width",
        "Training": "budget epochs batch_size learning_rate seed resume initial",
        "Output": "name out force as_json",
    },
    needs={"parameters": "family", "subsample": "single"},
)
@click.argument("source", metavar="[GRAPHS]", type=PATH_OR_DASH, required=False)
@options.flag("--single", help="Train on GRAPHS as one large network, to sample networks like it.")
@options.family(help="Random graph family to train on; 'graphite-gen families' lists them.")
@options.parameters
@options.number("--graphs", help="Number of training graphs of the family.  [default: 24000; paper: 100]")
@options.nodes(default="10:20", help="Nodes per graph of the family, or a range of sizes to draw uniformly.")
@options.all_of(options.input_format(), options.simplify, options.ignore_weights)
@click.option("--node-label", metavar="NAME", help="Node attribute to generate with the graphs.")
@click.option("--edge-label", metavar="NAME", help="Edge attribute to generate with the graphs.")
@options.flag(
    "--generate-features",
    help="Generate all numeric node attributes, and the file's node features, instead of conditioning on the latter.",
)
@click.option(
    "--node-feature",
    metavar="NAME",
    multiple=True,
    help="Numeric node attribute to generate, instead of all; 'features' for the file's. May be repeated.",
)
@click.option(
    "--condition",
    metavar="NAME",
    multiple=True,
    help="Attribute or property of graphs, such as clustering, that samples can be given; may be repeated.",
)
@options.choice(
    "--weights",
    of=("sparse", "dense"),
    help="Weights on edges, or normally distributed ones on all pairs as in the paper.  [default: sparse]",
)
@options.flag("--directed", help="Read edge lists and tables as directed graphs.")
@options.choice(
    "--preset",
    of=("default", "one-shot", "paper"),
    default="default",
    help="Defaults of all other settings: an autoregressive decoder, a one-shot decoder, or the settings of the paper.",
)
@click.option("--name", type=NAME, help="Name of the model.  [default: that of the family or file]")
@options.file(
    "--out",
    metavar="FOLDER",
    default=OUT,
    show_default=True,
    help="Folder of models; the model is saved in OUT/NAME.",
)
@settings
@options.all_of(options.seed, options.device)
@options.number("--threads", high=4096, help="Number of CPU threads.  [default: 1; all with '--single']")
@options.flag("--resume", help="Continue the run in OUT/NAME; without '--name', the last run on the family or file.")
@click.option(
    *("--from", "initial"),
    type=PATH_OR_NAME,
    metavar="MODEL",
    shell_complete=options.complete_models,
    help="Folder or name of a model to fine-tune: a new run starts with its weights.",
)
@options.all_of(options.force, options.as_json)
@click.pass_context
def train(ctx: click.Context, /, **values: Any) -> None:
    """Train a model on a family, or on GRAPHS: a file of any format, or a folder of files.

    The model with the best validation NLL is kept. A run can be stopped and resumed; with '--epochs', to
    bit-identical results. A file may mark its graphs as 'train' and 'validation'; otherwise a random 10% are used for
    validation.

    '--resume' with more '--epochs' or a larger '--budget' extends a run, finished or not: the learning rate returns to
    its value at that part of the longer schedule. '--from' fine-tunes a model on other graphs.

    With '--single' the model is trained on the edges of one large network, and 'sample' generates networks like it, of
    any size. Such a run cannot be resumed, and takes only some of the settings; others are refused.

    'torchrun --nproc-per-node 2 -m graphite_gen train' trains data-parallel with two processes, on one host or more,
    to the same result up to rounding. A run can be resumed with another number of processes.

    \b
    Example:
        graphite-gen train --family barabasi
        graphite-gen train --family ba --param m=3 --nodes 20:40 --name ba3
        graphite-gen train my_graphs.graphml --budget 1h
        graphite-gen train my_graphs.graphml --resume --budget 2h
        graphite-gen train my_graphs.graphml --from barabasi --name tuned
        graphite-gen train --single cora.h5
    """
    values["generate_features"] = values["node_feature"] or values["generate_features"] or None
    given, started = SimpleNamespace(**values), time.monotonic()
    if given.single:
        return _train_network(ctx, given)
    _check_usage(given)

    from graphite_gen.errors import DistributedError, OutputError
    from graphite_gen.families import family as family_of
    from graphite_gen.io.locks import locked
    from graphite_gen.training.runs import resume_run, start_run
    from graphite_gen.training.trainer import RUN, read_run

    from ..advice import explain
    from ..progress import show_plan, show_results, train_with_progress

    # One thread is as fast as two on a quiet machine, and much faster on a busy one.
    default = None if "OMP_NUM_THREADS" in os.environ else 1
    options.use_threads(given.threads or default)
    family = None if given.family is None else family_of(given.family, **dict(given.parameters))
    group = connect_ranks()
    folder, resumes = _choose_folder(group, given, given.name or (family.name if family else _stem(given.source)))
    trainer: Trainer | None = None
    try:
        if group.is_rank_zero:
            ctx.with_resource(locked(folder))
        with naming_options():
            if resumes:
                if group.world_size == 1:
                    # Floating-point sums depend on the number of threads: a resumed run keeps its number.
                    given.threads = given.threads or read_run(folder).get("threads")
                    options.use_threads(given.threads or default)
                changes = {key: values[key] for key in OF_RUN if is_given(key)}
                if given.node_feature:
                    changes["generate_features"] = given.node_feature
                if family is not None:
                    changes |= {"family": family.name}
                    changes |= {"parameters": family.parameters()} if given.parameters else {}
                file = None if given.source is None else str(given.source)
                trainer = resume_run(folder, changes, file=file, device=given.device, group=group)
            else:
                changes = {key: values[key] for key in (*SETTINGS, *NAMING) if values[key] not in (None, ())}
                initial = group.broadcast(_initial(given) if group.is_rank_zero else None)
                how = {"device": given.device, "force": given.force, "initial": initial, "group": group}
                trainer = start_run(folder.name, folder, _data(given, family), changes, **how)
        if trainer.is_finished:
            note(
                f"The run in '{folder}' is already finished. To extend it, pass more '--epochs' or a longer '--budget'."
            )
        else:
            if trainer.training.budget:
                trainer.count_seconds(time.monotonic() - started)
            _announce(trainer, folder, resumes, given.source is not None)
            show_plan(trainer)
            train_with_progress(trainer)
    except OutputError as error:
        if trainer is None or not (trainer.has_saved and (folder / RUN).exists()):
            raise
        # With the advice for the error before the command, which comes last so that it can be copied.
        text = f"{explain(error)} The last save is intact; continue with: {_resume_command(given, folder)}"
        raise OutputError(text) from error
    except (KeyboardInterrupt, DistributedError) as error:
        # An interrupt may come while graphs are read, before there is a run.
        saved = resumes or (trainer is not None and trainer.has_saved)
        command = f"Continue with: {_resume_command(given, folder)}"
        if isinstance(error, DistributedError):
            raise DistributedError(f"{error} {command if saved else 'Start it again.'}") from error
        note(f"Interrupted. {command}" if saved else "Interrupted before anything was saved.")
        ctx.exit(exit_code(error))

    if group.is_rank_zero:
        show_results(trainer, folder, given.as_json, _resume_command(given, folder))

    return None


def _choose_folder(group: ProcessGroup, given: SimpleNamespace, base: str) -> tuple[Path, bool]:
    """The folder of the run and whether to resume the run in it, chosen by rank 0."""
    from graphite_gen.training.runs import find_run, lost_run

    out, folder, resumes = given.out, given.out, given.resume
    if group.is_rank_zero:
        if resumes:
            folder = out / given.name if given.name else find_run(out, base)
        elif lost := lost_run(out, base):
            folder, resumes = lost, True
        else:
            folder = _new_folder(given, base)

    return group.broadcast((folder, resumes))


def _new_folder(given: SimpleNamespace, base: str) -> Path:
    """The folder of a new run; without a name, one that does not exist."""
    from graphite_gen.training.runs import free_folder

    if given.name or given.force:
        return Path(given.out / base)
    folder = free_folder(given.out, base)
    if folder.name != base:
        note(f"'{given.out / base}' exists, so this model is called '{folder.name}'.")

    return folder


def _initial(given: SimpleNamespace) -> TrainedModel | None:
    """The model to fine-tune."""
    if given.initial is None:
        return None

    from ..model_choice import choose_model

    return choose_model(given.initial, "cpu")


def _announce(trainer: Trainer, folder: Path, resumes: bool, is_file: bool) -> None:
    """Print what is trained, on stderr."""
    from ..reading import unused_attributes

    if is_file and not resumes and len(trainer.graphs) == 1 and not trainer.validation:
        raise click.UsageError("There is only one graph: to train on one network, pass '--single'.")
    after = f"Resuming '{folder.name}' after {count_of(trainer.epoch, 'epoch')}"
    begin = after if resumes else f"Training '{folder.name}'"
    note(f"{begin} on {count_of(len(trainer.graphs), 'graph')}.")
    if is_file and (ignored := unused_attributes(trainer.graphs)):
        note(f"Not learned: {ignored}. To generate labels, name them by '--node-label' and '--edge-label'.")
    if trainer.config.observation == "normal" or trainer.config.weights:
        weights = f"{trainer.config.weights} weights of edges" if trainer.config.weights else "weights on all pairs"
        kind = weights.replace("count weights", "counts as weights")
        note(f"The graphs are weighted: {kind} are learned. To drop them, pass '--ignore-weights'.")


def _train_network(ctx: click.Context, given: SimpleNamespace) -> None:
    """Train a generative model of one network and save it."""
    for name in vars(given):
        if is_given(name) and name not in SINGLE:
            raise click.UsageError(f"'{flag_of(name)}' has no effect with '--single'.")
    if given.source is None:
        raise click.UsageError("Pass the file of the graph: 'graphite-gen train --single GRAPH'.")
    if group_from_environment().world_size > 1:
        raise click.UsageError("'--single' trains in one process. Run 'graphite-gen train --single' without torchrun.")
    network_options.refuse_idle([given.kind or KINDS[0]])

    from graphite_gen.io.locks import locked
    from graphite_gen.network.generation import MOST_NODES, fit_network_model, generation_settings
    from graphite_gen.network.storage import save_network
    from graphite_gen.records import Provenance
    from graphite_gen.training.runs import claim_folder

    options.use_threads(given.threads)
    base = given.name or _stem(given.source)
    folder = _new_folder(given, base)
    ctx.with_resource(locked(folder))
    claim_folder(folder, given.force, resumes=False)
    reading = {"features": False, "node_features": None, "node_labels": None}
    graph, *_ = network_options.read(given.source, reading | {"format": given.format, "simplify": given.simplify})
    changes = {key: value for key in NETWORK_SETTINGS if (value := getattr(given, key)) is not None}
    chosen = replace(generation_settings(graph.nodes), **changes)
    if graph.nodes > MOST_NODES:
        note(f"With more than {MOST_NODES} nodes the model has fewer latents.")
    started, origin = time.monotonic(), Provenance(source=given.source.name)
    with counting(f"Training {chosen.kind}") as progress:
        about = {"name": folder.name, "seed": given.seed, "provenance": origin}
        model = fit_network_model(graph, chosen, progress=progress, **about)
    save_network(model, folder)
    if given.as_json:
        results = {"nodes": model.nodes, "edges": model.edges, "epochs": chosen.epochs}
        return show_json({"name": model.name, "folder": str(folder), "results": results})
    size = f"{count_of(model.nodes, 'node')}, {count_of(model.edges, 'edge')}, mean degree {model.mean_degree:.3g}"
    trained = f"{count_of(chosen.epochs, 'epoch')}, {duration(time.monotonic() - started)}"
    show_facts([("model", str(folder)), ("graph", size), ("trained", trained)])

    return note(f"Next: graphite-gen sample --model {shlex.quote(str(folder))} -o like-it.graphml")


def _check_usage(given: SimpleNamespace) -> None:
    if given.resume and given.force:
        raise click.UsageError("'--resume' and '--force' exclude each other: continue the run, or replace it.")
    if given.resume and given.initial is not None:
        raise click.UsageError("'--resume' and '--from' exclude each other: a run that is resumed has its own weights.")
    if given.source is not None and given.family is not None:
        raise click.UsageError("Pass either GRAPHS or '--family', not both.")
    if given.source is None and given.family is None and not (given.resume and given.name):
        raise click.UsageError("Pass a file of GRAPHS, or '--family NAME' as in '--family barabasi'.")
    if given.budget is not None and given.epoch_graphs is not None:
        raise click.UsageError(
            "'--budget' and '--epoch-graphs' exclude each other: the budget sets the length of epochs."
        )
    if given.source is not None:
        options.refuse_without_effect(("graphs", "nodes"), "a file of GRAPHS, only on '--family'")
    if given.family is not None:
        options.refuse_without_effect(READING, "'--family', only on a file of GRAPHS")


def _data(given: SimpleNamespace, family: Family | None) -> TrainingData:
    from graphite_gen.training.runs import TrainingData

    about: dict[str, Any] = {"preset": given.preset, "seed": given.seed, "initial": given.initial}
    if family is None:
        file = "-" if str(given.source) == "-" else str(given.source.resolve())
        return TrainingData(file=file, **about, **{key: getattr(given, key) for key in READING})
    about |= {"family": family.name, "parameters": family.parameters()}

    return TrainingData(graphs=given.graphs, nodes=given.nodes, **about)


def _stem(source: Path | None) -> str:
    if source is None or str(source) == "-":
        return "stdin"
    path = source.resolve()

    return path.name if path.is_dir() else Path(path.name.removesuffix(".gz")).stem or "graphs"


def _resume_command(given: SimpleNamespace, folder: Path) -> str:
    words: list[tuple[Any, ...]] = [
        ("train",),
        (given.source,),
        ("--family", given.family),
        ("--out", None if folder.parent == OUT else folder.parent),
        ("--name", folder.name),
        ("--resume",),
        ("--device", None if given.device == "auto" else given.device),
        ("--threads", given.threads),
    ]

    return f"{program()} {shlex.join(str(word) for group in words if group[-1] is not None for word in group)}"
