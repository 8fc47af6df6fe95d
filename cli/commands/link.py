"""Link prediction in one large graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import options, single
from ..command import Command
from ..types import PATH_OR_DASH

if TYPE_CHECKING:
    from graphite_gen.network.link_prediction import LinkResult, PredictedLink, ScoredLink
    from graphite_gen.network.network import Network
    from graphite_gen.network.settings import LinkSettings

BASELINES = ("spectral", "deepwalk", "node2vec", "adamic-adar", "pagerank")
RANKER = "pagerank"
"""The baseline that '--predict' can rank by."""
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
@single.graph
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(single.KINDS),
    multiple=True,
    help="A model to train; may be repeated.  [default: graphite-vae]",
)
@click.option(
    "--baseline",
    "baselines",
    type=click.Choice(BASELINES),
    multiple=True,
    help="A method to stand beside it, on the same splits; may be repeated. DeepWalk and node2vec need gensim. "
    "'--predict' can rank by 'pagerank' alone, without a model.",
)
@click.option("--compare", is_flag=True, help="All four models, and the baselines that need no other package.")
@click.option("--runs", type=click.IntRange(1), metavar="N", default=3, show_default=True, help="Splits to average.")
@click.option(
    "--split",
    type=click.Choice(("connected", "random")),
    default="connected",
    show_default=True,
    help="Whether what is left to train on stays as connected as the graph, as in the paper, or not.",
)
@click.option(
    "--predict",
    type=PATH_OR_DASH,
    metavar="FILE",
    help="Train on all edges instead, and write the most likely missing ones as '.csv' or '.json'.",
)
@click.option(
    "--top",
    type=click.IntRange(1, 10**7),
    metavar="N",
    default=100,
    show_default=True,
    help="How many '--predict' writes.",
)
@single.autoencoder
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
    """Hold out edges of GRAPH and tell them from pairs without one, by AUC and average precision (AP).

    Of the edges, 85 % are trained on; the epoch is chosen by 5 %, and 10 % are scored, beside as many non-edges. Node
    features are used where there are any. With '--predict' nothing is held out, and the pairs that most look like
    edges are written, best first, each with the probability that it would be one if half of all such pairs were.

    The defaults are stronger than the paper's models: a GCN of two layers, an inner product and all pairs to learn are
    '--width 32 --latent 16 --hops 1 --teleport 0 --head inner --edge-dropout 0 --targets all --subsample 0'.

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
        options.refuse_without_effect({"top": "--top"}, "scores of held-out edges")
    else:
        options.refuse_without_effect(HELD_OUT, "'--predict', which holds nothing out")
        if by_baseline:
            single.refuse_settings(f"'{RANKER}', which reads edges and learns nothing")
    chosen = single.KINDS if compare else tuple(dict.fromkeys(kinds)) or single.KINDS[:1]
    single.refuse_idle(chosen)

    from ..model_choice import use_threads

    use_threads(threads)
    if predict is not None:
        from ..writing import check_scores

        check_scores(predict, force)
    others = tuple(dict.fromkeys([*baselines, *(("spectral", "adamic-adar", "pagerank") if compare else ())]))
    _check_baselines(others)
    found, features = single.read(graph, rest)
    if predict is not None and by_baseline:
        return _rank(found, predict, top, force)
    if predict is not None:
        return _predict(found, features, single.link_settings(chosen[0], rest), predict, top, force, seed)
    _announce(found, split, seed)
    rows = [_score(found, features, single.link_settings(kind, rest), runs, seed, split) for kind in chosen]
    rows += [_score_baseline(found, name, runs, seed, split) for name in others]

    return _show(rows, as_json)


def _announce(graph: Network, split: str, seed: int) -> None:
    from graphite_gen.network.link_prediction import run_split

    from ..console import note, so_many

    parts = run_split(graph, split, seed, 0)
    note(
        f"Learning from {so_many(len(parts.train), 'edge')}, choosing the epoch by {len(parts.validation)}, scoring "
        f"{len(parts.test)} and as many non-edges in each run."
    )
    single.doubt_few(len(parts.test), "test edge")


def _check_baselines(names: tuple[str, ...]) -> None:
    if not names:
        return
    from graphite_gen.network.baselines import check_baseline

    for name in names:
        check_baseline(name)


def _score(graph: Network, features: bool, settings: LinkSettings, runs: int, seed: int, split: str) -> LinkResult:
    from graphite_gen.network.link_prediction import iterate_links, summarise_links

    from ..console import track

    scores = iterate_links(graph, settings, runs, seed, features=features, split=split)

    return summarise_links(settings.kind, features, split, list(track(scores, runs, settings.kind)))


def _score_baseline(graph: Network, name: str, runs: int, seed: int, split: str) -> LinkResult:
    from graphite_gen.network.link_prediction import iterate_baseline, summarise_links

    from ..console import track

    scores = iterate_baseline(graph, name, runs, seed, split=split)

    return summarise_links(name, False, split, list(track(scores, runs, name)))


def _show(rows: list[LinkResult], as_json: bool) -> None:
    from ..console import note, show_json, show_rows

    if as_json:
        return show_json([row.to_json() for row in rows])
    columns = ("model", "features", "AUC, %", "AP, %")
    cells = [
        (
            row.model,
            "yes" if row.features else "no",
            single.percent(row.auc, row.auc_se),
            single.percent(row.ap, row.ap_se),
        )
        for row in rows
    ]
    show_rows(columns, cells, numbers=("AUC, %", "AP, %"))
    note(single.averaged(rows[0].runs, f"{rows[0].split} split"))

    return None


def _predict(
    graph: Network, features: bool, settings: LinkSettings, target: Path, top: int, force: bool, seed: int
) -> None:
    from graphite_gen.network.link_prediction import check_misses_links, rank_missing_links

    check_misses_links(graph)
    trained = single.train_on_all(graph, settings, seed, features)
    _write(rank_missing_links(graph, trained.logits(), top), target, top, force)


def _rank(graph: Network, target: Path, top: int, force: bool) -> None:
    from graphite_gen.network.link_prediction import rank_by_pagerank

    from ..console import counting

    with counting("Ranking") as count_nodes:
        links = rank_by_pagerank(graph, top, progress=count_nodes)
    _write(links, target, top, force)


def _write(links: list[PredictedLink] | list[ScoredLink], target: Path, top: int, force: bool) -> None:
    from ..console import note, so_many
    from ..writing import write_scores

    if len(links) < top:
        note(f"The graph has {so_many(len(links), 'pair')} without an edge: all of them are ranked.")
    write_scores(links, target, force)
