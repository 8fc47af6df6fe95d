"""Mistakes: every command ends with one line that has the facts and the option to pass, and leaves no files."""

import shutil
import sys
from pathlib import Path

import networkx as nx
import pytest
from tiny import small_model

from graphite_gen.cli.advice import advice
from graphite_gen.errors import GraphiteError
from graphite_gen.training.checkpoint import save_checkpoint

from .conftest import TINY, assert_error, invoke, run, write_groups

QUICK = "--epochs 5 --latent 4 --threads 1"
TRAIN = f"train --family ego {' '.join(map(str, TINY))}"
SAMPLE = "sample --model ego -o a.g6"
COMPLETE = "complete partial.graphml --model nobody"


@pytest.fixture(scope="session")
def prepared(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models 'ego' and, trained last, 'net' of one network; graphs, and files that are wrong in one way each."""
    folder = tmp_path_factory.mktemp("prepared")
    shutil.copytree(model, folder / "checkpoints" / "ego")
    save_checkpoint(small_model(kind="gae"), folder / "gae")
    (folder / "empty").mkdir()
    run("generate", "--family", "ego", "--graphs", 12, "--nodes", "5:8", "--seed", 1, "-o", folder / "ego.h5")
    run("convert", folder / "ego.h5", folder / "ego.g6")
    for name, graph in {
        "path": nx.path_graph(20),
        "known": nx.Graph([("a", "b")]),
        "weighted": nx.Graph([("a", "b", {"weight": 2.5})]),
        "partial": nx.Graph([("a", "b", {"state": "unknown"}), ("b", "c", {})]),
        "nodes": nx.empty_graph(6),
    }.items():
        nx.write_graphml(graph, folder / f"{name}.graphml")
    write_groups(folder / "groups.graphml")
    for name, text in {
        "broken.graphml": "no graph\n",
        "empty.jsonl": "",
        "unknown.xyz": "?",
        "loop.edgelist": "0 0\n0 1\n1 0\n1 2\n",
        "taken.html": "mine",
        "short.csv": "id,x\nn1,1\n",
        "split.csv": "id,club,split\nn1,a,somewhere\nn2,b,train\n",
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    run(
        "train", "--single", folder / "groups.graphml", *QUICK.split(), "--out", folder / "checkpoints", "--name", "net"
    )

    return folder


def contents() -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in Path().rglob("*")}


def check(prepared: Path, line: str, words: str, code: int = 1, after_notes: bool = False) -> None:
    """Assert that a command fails with these words in its last line, prints no result and writes nothing."""
    shutil.copytree(prepared, ".", dirs_exist_ok=True)
    before = contents()
    result = invoke(*line.split())

    assert_error(result, *words.split(" | "), code=code, after_notes=after_notes)
    assert result.stdout == "" or "--fail" in line
    assert contents() == before


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("generate --family regular --nodes 3 -o a.g6", "n=3 | '--nodes'"),
        ("generate --family ego -o ego.h5", "'ego.h5' | '--force'"),
        ("convert unknown.xyz a.g6", "unknown.xyz | '--input-format'"),
        ("convert loop.edgelist a.g6", "'--simplify'"),
        ("convert broken.graphml a.jsonl", "'--input-format'"),
        ("convert - a.jsonl", "'--input-format'"),
        ("convert ego.h5 a.unknown", "'--output-format'"),
        ("convert ego.h5 -", "'--output-format'"),
        ("convert empty a.g6", "'empty' | 'graphite-gen generate"),
        *((f"sample --model nobody --with-latents -o a.{format}", "latents") for format in ("g6", "s6", "edgelist")),
        ("complete partial.graphml --model ego --graph 3", "graph 3"),
        ("complete partial.graphml --model ego --scores ranking.txt", "'.json'"),
        ("complete broken.graphml --model ego", "--input-format"),
        ("complete groups.graphml --add-nodes 1 -o out.graphml", "model of one network"),
        # Outputs are checked first, before there is no such model.
        (f"{COMPLETE} -o missing/o.jsonl", "'missing'"),
        (f"{COMPLETE} -o partial.graphml", "--force"),
        (f"{COMPLETE} --scores missing/s.csv", "'missing'"),
        ("nll empty.jsonl --model ego", "graphite-gen generate"),
        ("nll ego.g6 --model ego --split test", "split"),
        ("nll ego.h5 --model ego --family nobody", "'nobody'"),
        ("evaluate ego.h5 --reference ego.g6 --fail-above ratio=3", "'--train'"),
        ("evaluate ego.h5 --reference ego.g6 --fail-below valid=1", "'--valid-if'"),
        ("report ego -o taken.html", "taken.html"),
        ("report ego --samples checkpoints/ego -o a.html", "is a model; expected graphs"),
        ("plot training ego.h5 --terminal", "is not a checkpoint"),
        ("plot training net --terminal", "'bundled:barabasi'"),
        ("train --family regular --nodes 3", "n=3 | '--nodes'"),
        ("train --family ego --resume --name never", "'checkpoints/never' | without '--resume'"),
        (f"{TRAIN} --out /proc/models", "/proc/models | '--out'"),
        (f"{TRAIN} --name ego", "'--resume' | '--force' | '--name'"),
        ("train groups.graphml --name net --resume", "'checkpoints/net'"),
        # There is no run to go on with.
        (f"train --single groups.graphml --name net {QUICK}", "Pass '--force' to replace it, or"),
        ("families --entropy nobody", "'nobody'"),
        ("families --floor nobody", "'nobody'"),
        ("classify groups.graphml --node-labels split.csv", "'somewhere'"),
        ("classify groups.graphml -o out.txt", "'.csv'"),
        ("embed groups.graphml --plot z.txt", "z.txt"),
        ("embed groups.graphml -o - --output-format h5", "HDF5"),
    ],
)
def test_an_error_before_the_work_is_one_line_with_advice(prepared: Path, line: str, words: str) -> None:
    check(prepared, line, words)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"{SAMPLE} --regular 3 --nodes 9", "27"),
        (f"{SAMPLE} --regular 9 --nodes 9", "at most 8 | 9 is"),
        (f"{SAMPLE} --regular 9", "4 sizes up to 8"),
        (f"{SAMPLE} --degrees 3,3,1,1 --nodes 4", "graphical"),
        (f"{SAMPLE} --degrees 2,2,2 --nodes 4", "on 4 | length 3"),
        (f"{SAMPLE} --nodes 10:100000", "100000 | '--nodes'"),
        (f"{SAMPLE} --model ./gae", "autoencoder | '--kind graphite-vae'"),
        ("sample --model net --nodes 2 -o a.h5", "mean degree"),
        ("complete weighted.graphml --model ego --add-nodes 3", "'--ignore-weights'"),
        # A model may know labels that the graph misses.
        ("complete known.graphml --model ego", "--unlisted"),
        ("nll weighted.graphml --model ego", "'ego' was trained on unweighted | graphite-gen train"),
        ("nll groups.graphml", "'bundled:barabasi'"),
        ("nll groups.graphml --model net", "'bundled:barabasi'"),
        ("link path.graphml", "--split random"),
        ("link groups.graphml --edge-dropout 0", "--targets all"),
        ("link nodes.graphml", "0 edges"),
        ("link nodes.graphml --predict links.csv", "no edges"),
        ("embed nodes.graphml -o z.csv", "no edges"),
        ("train --single nodes.graphml", "no edges"),
    ],
)
def test_an_error_after_notes_on_model_or_graphs_is_one_line_with_advice(prepared: Path, line: str, words: str) -> None:
    check(prepared, line, words, after_notes=True)


EGO = "train --family ego"
FILE = "train ego.g6"
NLL = "nll ego.h5"
LINK = "link groups.graphml"
PAGERANK = f"{LINK} --predict new.csv --baseline pagerank"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("generate -o a.g6", "'--family'"),
        ("sample --nodes 5 --features x -o -", "'--nodes' | '--features'"),
        ("sample --model net --tree -o a.h5", "'--tree' has no effect"),
        ("complete ego.g6 -o - --scores -", "'-o' | '--scores'"),
        ("complete ego.g6 -o a.csv --scores ./a.csv", "'-o' | '--scores' | 'a.csv'"),
        ("complete partial.graphml --model ego --steps 8", "'--steps'"),
        *(
            (f"{NLL} --{name} 9", f"'--{name}' has no effect on method 'is' without '--check'")
            for name in ("chains", "steps")
        ),
        (f"{NLL} --method ais -k 9", "'--samples' has no effect on method 'ais' without '--check'"),
        (f"{NLL} --check-graphs 9", "'--check-graphs' needs '--check'"),
        (f"{NLL} --param m=3", "'--param' needs '--family'"),
        *((f"{NLL} --convention paper {option}", "'paper'") for option in ("--method ais", "--check", "--unlabelled")),
        ("evaluate a.h5 --reference b.h5 --fail-above size=3", "'--fail-above'"),
        ("evaluate a.h5 --reference b.h5 --param m=2", "'--param'"),
        ("plot gallery a.g6 --terminal -o g.png", "'-o FILE' or '--terminal'"),
        ("plot stages bundled:ego --terminal", "'stages'"),
        (f"{EGO} --resume --force", "'--resume' and '--force'"),
        (f"{EGO} --budget 9m --epoch-graphs 9", "'--budget' and '--epoch-graphs'"),
        (f"{EGO} --simplify", "'--simplify' has no effect on '--family'"),
        (f"{EGO} --ignore-weights", "'--ignore-weights' has no effect on '--family'"),
        (f"{EGO} --skip convex", "'--skip' has no effect on an autoregressive model"),
        (f"{EGO} --no-mlp", "'--mlp/--no-mlp' has no effect on an autoregressive model"),
        (
            f"{EGO} --encoder none --encoder-features degree",
            "'--encoder-features' has no effect on a model without encoder",
        ),
        (f"{EGO} --stages 1 --order peel", "'--ordering' has no effect on a one-shot model"),
        (f"{FILE} --nodes 5", "'--nodes' has no effect on a file"),
        (f"{FILE} --graphs 5", "'--graphs' has no effect on a file"),
        (f"{FILE} --subsample 2", "'--subsample' needs '--single'"),
        ("train --single", "the file of the graph"),
        ("train --single groups.graphml --stages 3", "'--decoder' has no effect"),
        ("train --single groups.graphml --resume", "'--resume' has no effect"),
        ("train --single --family ego", "'--family' has no effect"),
        ("families --entropy ba --nodes 20:10", "smaller number first"),
        *((f"families --{name} 3", f"'--{name}' needs '--entropy'") for name in ("nodes", "graphs", "seed")),
        ("families --param m=3", "'--param' needs '--entropy'"),
        (f"{LINK} --predict out.csv --compare", "'--compare'"),
        (f"{LINK} --predict out.csv --runs 2", "'--runs'"),
        (f"{LINK} --top 3", "'--top'"),
        (f"{LINK} --node-labels short.csv", "'--node-labels'"),
        *((f"{PAGERANK} {idle}", idle.split()[0]) for idle in ("--epochs 5", "--unbalanced", "--no-features")),
        *((f"{PAGERANK} {other}", other.split()[0]) for other in ("--kind gae", "--baseline spectral", "--compare")),
        # Settings that none of the chosen kinds uses.
        (f"{LINK} --kind gae --skip-weight 0.5", "'--skip-weight' has no effect on '"),
        (f"{LINK} --kind gae --kind vgae --rounds 2", "'--rounds' has no effect on '"),
        (f"{LINK} --predict links.csv --kind vgae --skip convex", "'--skip' has no effect on '"),
        (f"{LINK} --kind gae --kind graphite-ae --kl-weight 0.5", "'--kl-weight' has no effect on '"),
        ("embed groups.graphml -o z.csv --kind gae --kl-weight 0.5", "'--kl-weight' has no effect on '"),
        ("embed groups.graphml -o z.csv --kind vgae --skip-weight 0.5", "'--skip-weight' has no effect on '"),
        ("classify groups.graphml --kind gcn --reconstruction 0.5", "'--reconstruction' has no effect on '"),
        ("classify groups.graphml --kind gcn --latent 5", "'--latent' has no effect on '"),
        ("train --single groups.graphml --kind gae --rounds 2", "'--rounds' has no effect on '"),
        ("classify a.g6 -o - --json", "'-o -' and '--json'"),
    ],
)
def test_wrong_usage_exits_with_two(prepared: Path, line: str, words: str) -> None:
    check(prepared, line, words, 2)


@pytest.mark.parametrize(
    ("package", "line", "words"),
    [
        ("matplotlib.figure", "plot gallery none.h5 -o g.png", "graphite-gen[plot]"),
        ("matplotlib.figure", "report ego -o a.html", "graphite-gen[plot]"),
        ("matplotlib.figure", "embed groups.graphml -o z.h5 --plot z.png", "graphite-gen[plot]"),
        ("sklearn.manifold", "embed groups.graphml -o z.h5 --plot z.png", "graphite-gen[tasks]"),
        ("gensim.models", "link none.graphml --baseline deepwalk", "graphite-gen[walks]"),
        ("igraph", "nll ego.h5 --model ego -k 2 --unlabelled", "pip install igraph"),
    ],
)
def test_missing_packages_are_named(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, package: str, line: str, words: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    check(prepared, line, words, after_notes=package == "igraph")


def test_advice_has_parameters_as_options_and_only_what_applies_to_the_command() -> None:
    facts = {"family": "ego", "parameters": {"connected": True, "p": 0.5}, "nodes": 9}
    error = GraphiteError("?", reason="entropy-unknown", **facts)

    assert "--entropy ego --param connected=true --param p=0.5 --nodes 9'" in advice(error)
    assert advice(GraphiteError("?", reason="file-damaged")) == "Write the file again."
    assert advice(GraphiteError("?", reason="format-unknown")) == advice(GraphiteError("?")) == ""
