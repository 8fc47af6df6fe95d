"""Write and execute ``docs/tutorials/quickstart.ipynb``: ``python docs/build_quickstart.py`` (extra ``docs``)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

TARGET = Path(__file__).parent / "tutorials" / "quickstart.ipynb"

# Markdown and code in turn.
CELLS = (
    """# Quickstart

Sample graphs from a bundled model, look at them, estimate their likelihood, and train a model of your own. Everything
runs in seconds on a laptop. Install with `make sample`, or `pip install -c constraints.txt -e '.[all]'`.""",
    """%matplotlib inline
import graphite_gen as gg

model = gg.load("bundled:barabasi")
graphs = model.sample(100, nodes=(10, 20), seed=0)
print(len(graphs), "graphs, the first:", graphs[0])""",
    """Samples are networkx graphs. The gallery shows samples of the model and graphs of the family.""",
    """true = gg.generate("barabasi", 100, seed=1).graphs
figure = gg.plot_gallery(graphs, true, count=4)
figure""",
    """## Likelihood

The NLL is −log p(A | n) in nats per graph, estimated by importance sampling over node orderings. The ER baseline has
independent edges; a useful model has a lower NLL.""",
    """estimate = model.nll(true[:20], samples=30)
print(f"NLL         {estimate.nll:.2f} ± {estimate.standard_error:.2f}")
print(f"ER baseline {estimate.baseline:.2f}")""",
    """The family is known, so we can compare with the true probability of the same graphs. The difference is the excess
NLL.""",
    """family = gg.family("barabasi")
excess = [row.nll + family.log_prob(graph) for row, graph in zip(estimate.per_graph, true[:20], strict=True)]
print(f"excess NLL  {sum(excess) / len(excess):.2f}")""",
    """## Constraints

Every sample satisfies the [constraints](../guides/constraints.md) that are given.""",
    """import networkx as nx

trees = gg.load("bundled:powerlaw-tree").sample(10, constraints=[gg.Tree(), gg.MaxDegree(4)])
all(nx.is_tree(tree) for tree in trees)""",
    """## Train a model

Stars are easy: a few epochs are enough. Other graphs need more, and the default settings train for minutes.""",
    """stars = [nx.star_graph(n) for n in range(5, 15)] * 5
mine = gg.fit(stars, epochs=4, epoch_graphs=400, batch_size=10)
samples = mine.sample(20, seed=1)
print(sum(max(dict(g.degree).values()) == g.size() == len(g) - 1 for g in samples), "of 20 are stars")""",
    """## The command line

The same steps as commands. The [reference](../reference/cli.md) lists all options.

```sh
graphite-gen sample -n 20 --model bundled:ego -o out.graphml
graphite-gen generate --family ego --graphs 20 --seed 1 -o test.h5
graphite-gen nll test.h5 --model bundled:ego --samples 30
```

## Next

- [Your own graphs](own-graphs.md): files, training, resuming.
- [One large network](network.md): link prediction, node classification, embeddings.
- [Evaluation](../guides/evaluation.md): whether samples are good.""",
)


def main() -> None:
    cells = [
        new_markdown_cell(text, id=f"cell-{i}") if i % 2 == 0 else new_code_cell(text, id=f"cell-{i}")
        for i, text in enumerate(CELLS)
    ]
    notebook = new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    nbformat.write(notebook, TARGET)


if __name__ == "__main__":
    main()
