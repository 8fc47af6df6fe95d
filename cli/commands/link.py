"""Link prediction in one large network."""

from pathlib import Path
from typing import Any

import click

from .. import network_options, options
from ..command import command
from ..console import count_of, counting, note

BASELINES = ("spectral", "deepwalk", "node2vec", "adamic-adar", "pagerank")
RANKER = "pagerank"
"""The baseline that can rank missing edges."""


@command(
    short_help="Predict edges of a network.",
    groups={
        "Model": "kinds baselines compare features node_features",
        "Evaluation": "runs split seed",
        "Prediction": "predict top force",
        "Output": "as_json",
    },
)
@network_options.graph
@options.choice(
    *("--kind", "kinds"),
    of=network_options.KINDS,
    multiple=True,
    help="A model to train; may be repeated.  [default: graphite-vae]",
)
@options.choice(
    *("--baseline", "baselines"),
    of=BASELINES,
    multiple=True,
    help="A baseline to score on the same splits; may be repeated. 'deepwalk' and 'node2vec' need gensim. With "
    "'--predict', 'pagerank' ranks the missing edges instead of a model.",
)
@options.flag("--compare", help="Score all four models, and the baselines that need no extra package.")
@options.number("--runs", default=3, help="Number of random splits, over which the scores are averaged.")
@options.choice(
    "--split",
    of=("connected", "random"),
    default="connected",
    help="Hold out edges that keep components connected, as in the paper, or any edges.",
)
@options.file_or_dash(
    "--predict", help="Train on all edges, and write the most likely missing edges to a '.csv' or '.json' file."
)
@options.number("--top", high=10**7, default=100, help="Number of missing edges that '--predict' writes.")
@network_options.autoencoder
@options.all_of(options.force, options.seed, options.threads, options.as_json)
def link(
    graph: Path, kinds: tuple[str, ...], baselines: tuple[str, ...], compare: bool, predict: Path | None, **rest: Any
) -> None:
    """Score link prediction on held-out edges of GRAPH, by AUC and average precision (AP).

    85% of the edges are for training, 5% to choose the epoch and 10% for the test, with as many non-edges. With
    '--predict' nothing is held out: the most likely missing edges are written, best first, each with its probability
    among as many edges as non-edges.

    The defaults are stronger than the models of the paper, which are:

    \b
        --width 32 --latent 16 --hops 1 --teleport 0 --head inner
        --edge-dropout 0 --targets all --subsample 0

    \b
    Example:
        graphite-gen link cora.h5 --runs 10
        graphite-gen link cora.h5 --no-features --compare
        graphite-gen link friends.graphml --predict missing.csv --top 50
        graphite-gen link friends.graphml --predict missing.csv --baseline pagerank
    """
    names = ("runs", "split", "top", "force", "seed", "as_json")
    runs, split, top, force, seed, as_json = map(rest.pop, names)
    by_baseline = set(baselines) == {RANKER}
    if predict is not None and (compare or len(kinds) + by_baseline > 1 or (baselines and not by_baseline)):
        raise click.UsageError(f"'--predict' takes one '--kind', or '--baseline {RANKER}', and no '--compare'.")
    options.refuse_without_effect(("node_labels", "label_attribute"), "links")
    if predict is None:
        options.refuse_without_effect(("top",), "held-out scores")
    else:
        options.refuse_without_effect(("runs", "split", "as_json"), "'--predict'")
        if by_baseline:
            network_options.refuse_settings(f"'{RANKER}', which is not trained")
    chosen = network_options.KINDS if compare else tuple(dict.fromkeys(kinds)) or network_options.KINDS[:1]
    network_options.refuse_idle(chosen)

    from graphite_gen.network.baselines import check_baseline
    from graphite_gen.network.link_prediction import run_split
    from graphite_gen.network.tasks import predict_links, score_links

    from ..writing import check_scores, write_scores

    check_scores(predict, force)
    others = tuple(dict.fromkeys([*baselines, *(("spectral", "adamic-adar", "pagerank") if compare else ())]))
    for name in others:
        check_baseline(name)
    found, features, given = network_options.read(graph, rest)
    if predict is not None:
        kind = RANKER if by_baseline else chosen[0]
        with counting("Ranking" if by_baseline else f"Training {kind}") as count:
            links = predict_links(found, top, kind, seed=seed, features=features, progress=count, **given)
        if len(links) < top:
            note(f"Only {count_of(len(links), 'pair')} can be ranked.")
        return write_scores(links, predict, force)
    network_options.note_split("Edges of each run", run_split(found, split, seed, 0), "test edge")
    rows = []
    for name in (*chosen, *others):
        own = {"features": False} if name in others else {"features": features, **given}
        with counting(name) as count:
            rows.append(score_links(found, name, runs=runs, seed=seed, split=split, progress=count, **own))

    return network_options.show_scores(rows, {"AUC, %": "auc", "AP, %": "ap"}, f"{split} split", as_json)
