"""Link prediction in one large network."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import network_options, options
from ..command import Command
from ..types import PATH_OR_DASH

if TYPE_CHECKING:
    from graphite_gen.network.hyperparameters import LinkSettings
    from graphite_gen.network.link_prediction import LinkResult, PredictedLink, ScoredLink
    from graphite_gen.network.network import Network

BASELINES = ("spectral", "deepwalk", "node2vec", "adamic-adar", "pagerank")
RANKER = "pagerank"
"""The baseline that can rank missing edges."""
HELD_OUT = {"runs": "--runs", "split": "--split", "as_json": "--json"}


@click.command(
    cls=Command,
    short_help="Predict edges of a network.",
    groups={
        "Model": "kinds baselines compare features node_features",
        "Evaluation": "runs split seed",
        "Prediction": "predict top force",
        "Output": "as_json",
    },
)
@network_options.graph
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(network_options.KINDS),
    multiple=True,
    help="A model to train; may be repeated.  [default: graphite-vae]",
)
@click.option(
    "--baseline",
    "baselines",
    type=click.Choice(BASELINES),
    multiple=True,
    help="A baseline to score on the same splits; may be repeated. DeepWalk and node2vec need gensim. With '--predict' "
    "only 'pagerank', instead of a model.",
)
@click.option("--compare", is_flag=True, help="All four models, and the baselines that need no extra package.")
@click.option("--runs", type=click.IntRange(1), metavar="N", default=3, show_default=True, help="Number of splits.")
@click.option(
    "--split",
    type=click.Choice(("connected", "random")),
    default="connected",
    show_default=True,
    help="Hold out edges that keep components connected, as in the paper, or any edges.",
)
@click.option(
    "--predict",
    type=PATH_OR_DASH,
    metavar="FILE",
    help="Train on all edges instead, and write the most likely missing edges as '.csv' or '.json'.",
)
@click.option(
    "--top",
    type=click.IntRange(1, 10**7),
    metavar="N",
    default=100,
    show_default=True,
    help="Number of edges '--predict' writes.",
)
@network_options.autoencoder
@options.force
@options.seed
@options.threads
@options.as_json
def link(
    graph: Path,
    kinds: tuple[str, ...],
    baselines: tuple[str, ...],
    compare: bool,
    runs: int,
    split: str,
    predict: Path | None,
    top: int,
    force: bool,
    seed: int,
    threads: int | None,
    as_json: bool,
    **rest: Any,
) -> None:
    """Score link prediction on held-out edges of GRAPH, by AUC and average precision (AP).

    85 % of the edges are for training, 5 % for the choice of the epoch and 10 % for the test, with as many non-edges.
    With '--predict' nothing is held out: the most likely missing edges are written, best first, each with its
    probability among as many edges as non-edges.

    The defaults are stronger than the models of the paper, which are '--width 32 --latent 16 --hops 1 --teleport 0
    --head inner --edge-dropout 0 --targets all --subsample 0'.

    \b
    Example:
        graphite-gen link cora.h5 --runs 10
        graphite-gen link cora.h5 --no-features --compare
        graphite-gen link friends.graphml --predict missing.csv --top 50
        graphite-gen link friends.graphml --predict missing.csv --baseline pagerank
    """
    by_baseline = set(baselines) == {RANKER}
    if predict is not None and (compare or len(kinds) + by_baseline > 1 or (baselines and not by_baseline)):
        raise click.UsageError(f"'--predict' takes one '--kind', or '--baseline {RANKER}', and no '--compare'.")
    options.refuse_without_effect({"node_labels": "--node-labels"}, "links")
    if predict is None:
        options.refuse_without_effect({"top": "--top"}, "held-out scores")
    else:
        options.refuse_without_effect(HELD_OUT, "'--predict'")
        if by_baseline:
            network_options.refuse_settings(f"'{RANKER}', which is not trained")
    chosen = network_options.KINDS if compare else tuple(dict.fromkeys(kinds)) or network_options.KINDS[:1]
    network_options.refuse_idle(chosen)

    from ..model_choice import use_threads

    use_threads(threads)
    if predict is not None:
        from ..writing import check_scores

        check_scores(predict, force)
    others = tuple(dict.fromkeys([*baselines, *(("spectral", "adamic-adar", "pagerank") if compare else ())]))
    if others:
        from graphite_gen.network.baselines import check_baseline

        for name in others:
            check_baseline(name)
    found, features = network_options.read(graph, rest)
    if predict is not None:
        settings = None if by_baseline else network_options.link_settings(chosen[0], rest)
        _predict(found, features, settings, predict, top, force, seed)
        return
    _note_split(found, split, seed)
    rows = [_score(found, features, network_options.link_settings(kind, rest), runs, seed, split) for kind in chosen]
    rows += [_score(found, False, name, runs, seed, split) for name in others]
    _show(rows, as_json)


def _note_split(graph: Network, split: str, seed: int) -> None:
    from graphite_gen.network.link_prediction import run_split

    from ..console import note

    parts = run_split(graph, split, seed, 0)
    note(
        f"Edges of each run: {len(parts.train)} for training, {len(parts.validation)} for validation, "
        f"{len(parts.test)} for test."
    )
    network_options.warn_few(len(parts.test), "test edge")


def _score(graph: Network, features: bool, method: LinkSettings | str, runs: int, seed: int, split: str) -> LinkResult:
    """The result of a model, given by its settings, or of a baseline, given by its name."""
    from graphite_gen.network.link_prediction import run_baseline, run_link, summarise_links

    from ..console import track

    if isinstance(method, str):
        name, score = method, partial(run_baseline, graph, method)
    else:
        name, score = method.kind, partial(run_link, graph, method, features=features)
    scores = (score(run, seed, split=split) for run in range(runs))

    return summarise_links(name, features, split, list(track(scores, runs, name)))


def _show(rows: list[LinkResult], as_json: bool) -> None:
    from ..console import note, show_json, show_rows

    if as_json:
        show_json([row.to_json() for row in rows])
        return
    percent = network_options.percent
    cells = [
        (row.model, "yes" if row.features else "no", percent(row.auc, row.auc_se), percent(row.ap, row.ap_se))
        for row in rows
    ]
    show_rows(("model", "features", "AUC, %", "AP, %"), cells, numbers=("AUC, %", "AP, %"))
    note(network_options.runs_caption(rows[0].runs, f"{rows[0].split} split"))


def _predict(
    graph: Network, features: bool, settings: LinkSettings | None, target: Path, top: int, force: bool, seed: int
) -> None:
    """Write the most likely missing edges by a model, or by PageRank without settings."""
    from graphite_gen.network.link_prediction import check_misses_links, rank_by_pagerank, rank_missing_links

    from ..console import count_of, counting, note
    from ..writing import write_scores

    links: list[PredictedLink] | list[ScoredLink]
    if settings is None:
        with counting("Ranking") as count_nodes:
            links = rank_by_pagerank(graph, top, progress=count_nodes)
    else:
        check_misses_links(graph)
        trained = network_options.train_on_all(graph, settings, seed, features)
        links = rank_missing_links(graph, trained.logits(), top)
    if len(links) < top:
        note(f"Only {count_of(len(links), 'pair')} can be ranked.")
    write_scores(links, target, force)
