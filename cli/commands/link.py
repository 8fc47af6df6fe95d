"""Link prediction in one large network."""

from pathlib import Path
from typing import Any

import click

from .. import network_options, options
from ..command import command
from ..console import count_of, counting, note

CHEAP = ("pagerank", "common-neighbours", "resource-allocation", "adamic-adar", "katz", "spectral")
"""Baselines that are always scored; the strongest is shown."""
BASELINES = (*CHEAP, "deepwalk", "node2vec")
METRICS = {
    "auc": "AUC, %",
    "ap": "AP, %",
    "hits@20": "Hits@20, %",
    "hits@50": "Hits@50, %",
    "hits@100": "Hits@100, %",
    "mrr": "MRR, %",
}


@command(
    short_help="Predict edges of a network.",
    groups={
        "Model": "kinds baselines compare pair_features features node_features",
        "Evaluation": "runs split negatives metrics seed",
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
    help="A baseline to show; may be repeated. 'deepwalk' and 'node2vec' need gensim. With '--predict' it ranks the "
    "missing edges instead of a model.  [default: the strongest but for these two]",
)
@options.flag("--compare", help="Score all four models, and show all baselines that need no extra package.")
@options.choice(
    "--pair-features",
    of=("heuristics", "none"),
    default="heuristics",
    help="Combine the model's logits with features of pairs, such as personalised PageRank and common neighbours, or "
    "not, as in the paper.",
)
@options.number("--runs", default=3, help="Number of random splits, over which the scores are averaged.")
@options.choice(
    "--split",
    of=("connected", "random"),
    default="connected",
    help="Hold out edges that keep components connected, as in the paper, or any edges.",
)
@options.choice(
    "--negatives",
    of=("random", "hard"),
    default="random",
    help="Rank test edges among random non-edges, or each among its own that heuristics rank high (HeaRT).",
)
@options.number("--hard", low=2, default=500, help="Hard non-edges per test edge.")
@options.choice(
    *("--metric", "metrics"),
    of=METRICS,
    multiple=True,
    help="A metric to show; may be repeated. The first one decides which baseline is the strongest.  [default: auc, "
    "ap, hits@100, mrr]",
)
@options.file_or_dash(
    "--predict", help="Train on all edges, and write the most likely missing edges to a '.csv' or '.json' file."
)
@options.number("--top", high=10**7, default=100, help="Number of missing edges that '--predict' writes.")
@network_options.autoencoder
@options.all_of(options.force, options.seed, options.threads, options.as_json)
def link(
    graph: Path,
    kinds: tuple[str, ...],
    baselines: tuple[str, ...],
    compare: bool,
    predict: Path | None,
    metrics: tuple[str, ...],
    **rest: Any,
) -> None:
    """Score link prediction on held-out edges of GRAPH, by AUC, average precision (AP), Hits@K and MRR.

    85% of the edges are for training, 5% to choose the epoch and 10% for the test, with as many non-edges. The
    strongest baseline is shown beside the model.

    With '--predict' nothing is held out: the most likely missing edges are written, best first, each with its
    probability among as many edges as non-edges. Before that, some edges are hidden to estimate the precision; if a
    baseline is better than the model on validation edges, it ranks instead, with scores.

    The defaults are stronger than the models of the paper, which are:

    \b
        --width 32 --latent 16 --hops 1 --teleport 0 --head inner
        --edge-dropout 0 --targets all --subsample 0 --pair-features none

    \b
    Example:
        graphite-gen link cora.h5 --runs 10
        graphite-gen link cora.h5 --no-features --compare
        graphite-gen link friends.graphml --predict missing.csv --top 50
        graphite-gen link friends.graphml --predict missing.csv --baseline pagerank
    """
    names = ("runs", "split", "negatives", "hard", "top", "force", "seed", "as_json")
    runs, split, negatives, hard, top, force, seed, as_json = map(rest.pop, names)
    if predict is not None and (compare or len(kinds) + len(set(baselines)) > 1):
        raise click.UsageError("'--predict' takes one '--kind' or '--baseline', and no '--compare'.")
    options.refuse_without_effect(("node_labels", "label_attribute"), "links")
    if predict is None:
        options.refuse_without_effect(("top",), "held-out scores")
        if negatives == "random":
            options.refuse_without_effect(("hard",), "random non-edges")
    else:
        options.refuse_without_effect(("runs", "negatives", "hard", "metrics", "as_json"), "'--predict'")
        if baselines:
            network_options.refuse_settings(f"'{baselines[0]}', which is not trained")
            options.refuse_without_effect(("pair_features",), f"'{baselines[0]}'")
    chosen = network_options.KINDS if compare else tuple(dict.fromkeys(kinds)) or network_options.KINDS[:1]
    network_options.refuse_idle(chosen)

    from graphite_gen.network.baselines import check_baseline
    from graphite_gen.network.link_prediction import run_split
    from graphite_gen.network.tasks import score_links

    from ..writing import check_scores

    check_scores(predict, force)
    asked = tuple(dict.fromkeys([*baselines, *(CHEAP if compare else ())]))
    for name in asked:
        check_baseline(name)
    found, features, given = network_options.read(graph, rest)
    if predict is not None:
        about = {"seed": seed, "split": split, "features": features, **given}
        _predict(found, predict, top, force, (*baselines, chosen[0])[0], not (baselines or kinds), about)
        return
    network_options.note_split("Edges of each run", run_split(found, split, seed, 0), "test edge")
    about = {"runs": runs, "seed": seed, "split": split, "negatives": negatives, "hard": hard}

    def score(name: str, **own: Any) -> Any:
        with counting(name) as count:
            return score_links(found, name, progress=count, **about, **own)

    figures = {METRICS[name]: name for name in metrics or ("auc", "ap", "hits@100", "mrr")}
    rows = [score(name, features=features, **given) for name in chosen]
    others = {name: score(name, features=False) for name in dict.fromkeys([*asked, *CHEAP])}
    # Hits@K is not known if there are not more than K non-edges to rank among.
    unknown = [name for name in figures.values() if _value(rows[0], name) is None]
    by = next((name for name in figures.values() if name not in unknown), "auc")
    strongest = max(others.values(), key=lambda row: _value(row, by))
    rows += [row for name, row in others.items() if name in asked or row is strongest]
    network_options.show_scores(rows, figures, f"{split} split", as_json)
    if negatives == "hard":
        note("Edges are ranked among hard non-edges.")
    if unknown:
        note(f"{' and '.join(METRICS[name].removesuffix(', %') for name in unknown)}: too few non-edges to rank among.")
    if _value(strongest, by) > max(_value(row, by) for row in rows[: len(chosen)]):
        note(
            f"The baseline '{strongest.model}' is better than the model: '--predict FILE --baseline {strongest.model}'."
        )


def _value(row: Any, metric: str) -> Any:
    """A score; None if it is not known."""
    table, _, key = metric.partition("@")
    value = getattr(row, table)

    return value[int(key)] if key else value


def _predict(found: Any, target: Path, top: int, force: bool, kind: str, compare: bool, about: dict[str, Any]) -> None:
    """Estimate the precision on hidden edges, choose what ranks, and write the missing edges."""
    from graphite_gen.errors import DatasetError
    from graphite_gen.network.link_prediction import check_misses_links
    from graphite_gen.network.tasks import choose_ranking, predict_links

    from ..advice import explain
    from ..writing import write_scores

    check_misses_links(found)
    settings = about
    try:
        with counting("Hiding edges to estimate the precision"):
            ranking = choose_ranking(found, top, kind, compare=compare, **about)
    except DatasetError as error:
        note(f"The precision is not known. {explain(error)}")
    else:
        if ranking.model != kind:
            best, own = (100 * ranking.validation_auc[name] for name in (ranking.model, kind))
            note(f"'{ranking.model}' ranks instead of '{kind}': validation AUC {best:.1f} against {own:.1f}.")
            kind = ranking.model
        note(
            f"With {count_of(ranking.hidden, 'edge')} hidden, {ranking.precision:.1%} of its first "
            f"{count_of(ranking.count, 'pair')} were hidden edges (precision at {ranking.count})."
        )
    if kind in BASELINES:
        settings = {"seed": about["seed"]}
    with counting("Ranking" if kind in BASELINES else f"Training {kind}") as count:
        links = predict_links(found, top, kind, progress=count, **settings)
    if len(links) < top:
        note(f"Only {count_of(len(links), 'pair')} can be ranked.")

    write_scores(links, target, force)
