"""Plausible mistakes: each ends in one or two lines that name the thing and the remedy, and writes nothing."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

from graphite_gen.io import write_graphs

from .conftest import invoke, run, write_groups, write_molecules

# A command line, its exit code, and words of its error: the thing that is wrong, then the remedy.
MISTAKES: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    # The program.
    ("smaple -n 10", 2, ("smaple", "sample")),
    ("sample -n 10", 2, ("--output", "-o")),
    ("sample -n 10 --ouput a.g6", 2, ("--ouput", "--output")),
    ("sample -n ten -o a.g6", 2, ("'ten'", "whole number")),
    ("sample -n 0 -o a.g6", 2, ("--count", "at least 1")),
    ("sample -n -5 -o a.g6", 2, ("-5", "at least 1")),
    # Models.
    ("sample -n 2 --model barabassi -o a.g6", 1, ("'barabassi'", "barabasi")),
    ("sample -n 2 --model checkpoints/mine -o a.g6", 1, ("'checkpoints/mine'", "graphite-gen train")),
    ("sample -n 2 --model ego.h5 -o a.g6", 1, ("'ego.h5'", "graphite-gen train")),
    ("sample -n 2 --model folder -o a.g6", 1, ("'folder'", "graphite-gen train")),
    ("nll ego.h5 --model folder", 1, ("'folder'", "graphite-gen train")),
    ("inspect barabassi", 1, ("'barabassi'", "barabasi")),
    ("report nothing -o a.html", 1, ("'nothing'", "graphite-gen train")),
    ("encode ego.h5 --model nothing -o z.h5", 1, ("'nothing'", "graphite-gen train")),
    # Families.
    ("generate --family barabassi -o a.h5", 1, ("'barabassi'", "'barabasi'")),
    ("generate --family small-world -o a.h5", 1, ("'small-world'", "graphite-gen families")),
    ("generate --family barabasi --param k=3 -o a.h5", 1, ("'k'", "graphite-gen families")),
    ("generate --family barabasi --param m -o a.h5", 2, ("'m'", "KEY=VALUE")),
    ("generate --family barabasi --param m=many -o a.h5", 1, ("many", "integer")),
    ("generate --family barabasi --param m=30 -o a.h5", 1, ("m", "--nodes")),
    ("generate --family labelled-sbm --param p=0.5 -o a.h5", 1, ("'p_in'", "graphite-gen families")),
    ("generate --family weighted-barabasi --param sigma=-1 -o a.h5", 1, ("sigma=-1", "0.001")),
    ("generate --family regular --param d=3 --nodes 7 -o a.h5", 1, ("7", "--nodes")),
    ("generate --family ego --nodes 20-30 -o a.h5", 2, ("'20-30'", "10:20")),
    ("generate --family ego --nodes 30:20 -o a.h5", 2, ("'30:20'", "20:30")),
    ("generate --family ego --nodes 0 -o a.h5", 2, ("'0'", "smallest number is 1")),
    ("generate --family ego --nodes 100000 -o a.h5", 1, ("100000", "--nodes")),
    ("generate --family ego --seed -1 -o a.h5", 2, ("'-1'", "whole number")),
    ("generate --family ego --seed today -o a.h5", 2, ("'today'", "whole number")),
    ("train --param m=3 ego.h5", 2, ("--param", "--family")),
    # Files to read.
    ("inspect missing.h5", 1, ("'missing.h5'", "graphite-gen generate")),
    ("nll missing.g6", 1, ("'missing.g6'", "graphite-gen generate")),
    ("train missing.graphml", 1, ("missing.graphml'", "graphite-gen generate")),
    ("convert missing.g6 a.h5", 1, ("'missing.g6'", "graphite-gen generate")),
    ("inspect empty.g6", 1, ("'empty.g6'", "no graphs")),
    ("inspect folder", 1, ("'folder'", ".graphml")),
    ("inspect notes.txt", 1, ("'notes.txt'", "--format")),
    ("inspect notes.txt --format graphml", 1, ("'notes.txt'", "--format")),
    ("inspect ego.h5 --format g6", 1, ("'ego.h5'", "--format")),
    ("inspect graphs.pkl", 1, ("'graphs.pkl'", "GraphML")),
    ("train directed.h5 --preset one-shot", 1, ("autoregressive decoder", "--simplify")),
    ("nll directed.h5", 1, ("Graph 0 is directed", "--simplify")),
    ("encode directed.h5 -o z.h5", 1, ("Graph 0 is directed", "--simplify")),
    ("reconstruct directed.h5 -o a.g6", 1, ("Graph 0 is directed", "--simplify")),
    ("interpolate directed.h5 ego.h5 -o a.g6", 1, ("Graph 0 is directed", "--simplify")),
    ("sample -n 2 --features directed.h5 -o a.g6", 1, ("'directed.h5', graph 0", "directed", "--simplify")),
    ("evaluate directed.h5 --reference ego.h5", 1, ("samples are directed", "--simplify")),
    ("evaluate ego.h5 --reference directed.h5", 1, ("reference graphs directed", "--simplify")),
    ("complete directed.graphml -o a.g6", 1, ("The graph is directed", "--simplify")),
    ("plot latents directed.h5 -o a.png", 1, ("Graph 0 is directed", "--simplify")),
    ("report ego --samples directed.h5 -o a.html", 1, ("Sample 0 is directed", "--simplify")),
    # Attributes and conditions.
    ("train mixed.jsonl", 1, ("Some graphs are directed", "--simplify")),
    ("train molecules.jsonl --node-label elment", 1, ("'elment'", "'element'")),
    ("train molecules.jsonl --edge-label element", 1, ("no attribute 'element'", "bond")),
    ("train molecules.jsonl --node-label place", 1, ("place", "text or an integer")),
    ("train molecules.jsonl --condition size", 1, ("'size'", "clustering")),
    ("train molecules.jsonl --node-label element --preset one-shot", 1, ("autoregressive", "--preset")),
    ("train molecules.jsonl --weights thin", 2, ("'thin'", "'sparse'")),
    ("train --family ego --node-label x --graphs 10", 1, ("no attribute 'x'", "nor any other")),
    ("sample --given class=2 -o a.h5", 1, ("no condition 'class'", "--condition")),
    ("sample --given class -o a.h5", 2, ("'class'", "NAME=VALUE")),
    ("sample --dag -o a.h5", 1, ("undirected graphs", "never directed")),
    ("link directed.graphml", 1, ("directed.graphml', graph 0", "directed", "--simplify")),
    ("embed directed.graphml -o z.csv", 1, ("directed.graphml', graph 0", "directed", "--simplify")),
    ("train --single directed.graphml", 1, ("directed.graphml', graph 0", "directed", "--simplify")),
    ("convert directed.h5 a.g6", 1, ("Graph 0 is directed", "graphml")),
    ("convert mixed.jsonl a.h5 --union", 1, ("directed and undirected",)),
    ("inspect loops.edgelist", 1, ("self-loop", "--simplify")),
    ("inspect names.csv", 1, ("'alice', 'bob'", "'source' and 'target'")),
    ("inspect mixed.csv", 1, ("not consecutive", "sort the rows")),
    ("inspect mixed.edgelist", 1, ("'c,d'", "'.csv'")),
    ("nll ego.h5 --split dev", 2, ("'dev'", "test")),
    ("plot gallery missing.g6 -o a.png", 1, ("'missing.g6'", "graphite-gen generate")),
    ("evaluate ego.g6 --reference missing.h5", 1, ("'missing.h5'", "graphite-gen generate")),
    ("complete ego.h5 -o a.graphml", 1, ("12 graphs", "--graph")),
    ("sample -n 2 --latents ego.h5 -o a.g6", 1, ("'ego.h5'", "graphite-gen encode")),
    ("interpolate ego.h5 ego.h5 --last 99 -o a.g6 --model ego-one-shot", 1, ("99", "11")),
    # Files to write.
    ("sample -n 2 -o a.xyz", 1, ("'a.xyz'", "--format")),
    ("sample -n 2 -o graphs", 1, ("'graphs'", "--format")),
    ("sample -n 2 -o folder", 1, ("'folder'", "{index:04d}")),
    ("sample -n 2 -o no/where.g6", 1, ("'no'", "another file")),
    ("sample -n 2 -o ego.g6", 1, ("'ego.g6' exists", "--force")),
    ("sample -n 2 -o a.pkl", 1, ("'a.pkl'", "HDF5")),
    ("sample -n 2 -o -", 1, ("'-'", "--format")),
    ("sample -n 2 -o - --format h5", 1, ("HDF5", "--format")),
    ("sample -n 2 -o a.h5.gz", 1, ("'a.h5.gz'", "compressed")),
    ("sample -n 2 -o a.edgelist", 1, ("one graph", "{index:04d}")),
    ("sample -n 2 -o out/{i}.graphml", 1, ("{i}", "{index:04d}")),
    ("sample -n 2 -o a.g6 --union", 1, ("'g6'", "graphml")),
    ("convert ego.h5 a.g6 --union", 1, ("'g6'", "graphml")),
    ("reconstruct ego.h5 -o a.g6 --union --model nothing", 1, ("'g6'", "graphml")),
    ("complete one.graphml -o a.edgelist --model nothing", 1, ("one graph", "{index:04d}")),
    ("convert ego.h5 ego.g6", 1, ("'ego.g6' exists", "--force")),
    ("plot gallery ego.h5 -o a.gif", 1, ("'a.gif'", "'.png'")),
    ("report ego -o a.pdf", 2, ("'a.pdf'", "'.html'")),
    ("encode ego.h5 -o z.txt --model ego-one-shot", 1, ("'z.txt'", "'.h5'")),
    ("plot gallery ego.h5", 2, ("-o", "--terminal")),
    # Sampling.
    ("sample -n 2 --nodes ten -o a.g6", 2, ("'ten'", "10:20")),
    ("sample -n 2 --nodes 12 --regular 12 -o a.g6", 1, ("regular 12", "--nodes")),
    ("sample -n 2 --nodes 12 --tree --edges 20 -o a.g6", 1, ("tree", "--nodes")),
    ("sample -n 2 --degrees 3,1 -o a.g6", 1, ("degree", "--nodes")),
    ("sample -n 2 --degrees three -o a.g6", 2, ("'three'", "3,2,2,1")),
    ("sample -n 2 --connected --largest-component -o a.g6", 2, ("--connected", "--largest-component")),
    # Training.
    ("train", 2, ("GRAPHS", "--family")),
    ("train ego.h5 --family ego", 2, ("GRAPHS", "--family")),
    ("train --family ego --budget 10", 2, ("'10'", "10m")),
    ("train --family ego --resume", 1, ("'ego'", "--resume")),
    ("train --family ego --epochs 0", 2, ("--epochs", "at least 1")),
    ("train --family ego --decoder one-step", 2, ("'--decoder': 'one-step'", "'one-shot'")),
    ("train --family ego --preset small", 2, ("small", "paper")),
    ("train --family ego --name a/b", 2, ("'a/b'", "slashes")),
    ("train --family ego --device gpu", 2, ("gpu", "cuda")),
    ("train --family ego --graphs 20 --ordering bfs --decoder one-shot", 2, ("--ordering", "Leave it out")),
    ("train --family ego --encoder-features colour", 2, ("'colour'", "spectral")),
    # Evaluation.
    ("evaluate ego.g6", 2, ("Missing", "--reference")),
    ("evaluate one.graphml --reference ego.h5", 1, ("1 sample", "at least 2")),
    ("evaluate ego.g6 --reference one.graphml --fail-above ratio=3", 2, ("--fail-above", "Leave it out")),
    ("evaluate ego.g6 --reference ego.h5 --fail-above ratio", 2, ("'ratio'", "ratio=3")),
    ("evaluate ego.g6 --reference ego.h5 --family ego --valid-if tree", 2, ("--family", "--valid-if")),
    ("evaluate molecules.jsonl --reference molecules.jsonl --node-label elemnt", 1, ("'elemnt'", "'element'")),
    ("evaluate molecules.jsonl --reference molecules.jsonl --node-label place", 1, ("'place'", "strings")),
    ("evaluate molecules.jsonl --reference molecules.jsonl --edge-label kind", 1, ("'kind'", "every edge")),
    ("evaluate molecules.jsonl --reference molecules.jsonl --given-attribute clas", 1, ("'clas'", "'class'")),
    ("evaluate molecules.jsonl --reference ego.h5 --given-attribute class", 1, ("reference graphs", "'class'")),
    ("evaluate molecules.jsonl --reference one.graphml --given-attribute class", 2, ("--given-attribute", "network")),
    ("plot gallery molecules.jsonl --node-label elemnt -o a.png", 1, ("'elemnt'", "'element'")),
    ("plot gallery molecules.jsonl --node-label element --terminal", 2, ("--node-label", "--terminal")),
    ("plot adjacency molecules.jsonl --node-label element -o a.png", 2, ("--node-label", "gallery")),
    ("report ego-one-shot --samples molecules.jsonl --node-label elemnt -o a.html", 1, ("'elemnt'", "'element'")),
    # One network.
    ("link ego.h5", 1, ("more than one graph", "graphite-gen convert")),
    ("classify one.graphml", 1, ("labels", "--node-labels")),
    ("classify groups.graphml --node-labels missing.csv", 1, ("'missing.csv' does not exist", "'.npz'")),
    ("classify groups.graphml --label-attribute colour", 1, ("'colour'", "'label'")),
    ("embed groups.graphml", 2, ("-o FILE", "--plot")),
    ("embed groups.graphml -o z.txt", 1, ("'z.txt'", "'.csv'")),
    ("link groups.graphml --features", 1, ("no node features", "--node-features")),
    ("train --single ego.h5", 1, ("more than one graph", "graphite-gen convert")),
    ("train one.graphml", 2, ("only one graph", "--single")),
    ("inspect villages.csv", 1, ("repeated", "'graph'", "--simplify")),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files of graphs, good and bad."""
    folder = tmp_path_factory.mktemp("mistakes")
    ego = ("generate", "--family", "ego", "--graphs", 12, "--nodes", "5:8", "-o")
    run(*ego, folder / "ego.h5")
    run(*ego, folder / "ego.g6")
    write_groups(folder / "groups.graphml")
    write_molecules(folder / "molecules.jsonl")
    nx.write_graphml(nx.path_graph(4), folder / "one.graphml")
    nx.write_graphml(nx.DiGraph([(0, 1), (1, 2)]), folder / "directed.graphml")
    write_graphs([nx.DiGraph([(0, 1), (1, 2)])] * 3, folder / "directed.h5")
    write_graphs([nx.DiGraph([(0, 1)]), nx.path_graph(3)], folder / "mixed.jsonl")
    texts = {
        "empty.g6": "",
        "notes.txt": "some notes\n",
        "graphs.pkl": "x",
        "loops.edgelist": "0 0\n",
        "names.csv": "alice,bob\nbob,carol\n",
        "mixed.csv": "graph,source,target\na,0,1\nb,0,1\na,1,2\n",
        "mixed.edgelist": "a b\nc,d\n",
        "villages.csv": "village,source,target\na,0,1\nb,0,1\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "folder").mkdir()

    return folder


def contents(folder: Path) -> Iterator[tuple[str, int]]:
    return ((str(path), path.stat().st_mtime_ns) for path in sorted(folder.rglob("*")))


@pytest.mark.parametrize(("line", "code", "words"), MISTAKES, ids=[line for line, *_ in MISTAKES])
def test_a_mistake_ends_in_a_line_and_writes_nothing(
    line: str, code: int, words: tuple[str, ...], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    before = list(contents(place))

    result = invoke(*shlex.split(line))

    *notes, message = result.stderr.splitlines()
    assert (result.exit_code, result.stdout) == (code, "")
    assert message.startswith("Error: ")
    assert len(message) < 400
    assert all(word in message for word in words), message
    assert "Traceback" not in result.stderr
    # What precedes the error is how to get help, or which graphs and which model are used, and for what.
    assert sum(bool(note) for note in notes) <= 3, notes
    assert list(contents(place)) == before
