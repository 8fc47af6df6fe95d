"""The picture in the README: graphs of each family above graphs sampled from its bundled model."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import networkx as nx

from graphite_gen.families import PAPER_FAMILIES, family
from graphite_gen.graph import SimpleGraph
from graphite_gen.rng import stream
from graphite_gen.sampling import Sampler
from graphite_gen.training.checkpoint import bundled_folder, load_checkpoint

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

TARGET = Path(__file__).resolve().parents[2] / "docs" / "images" / "gallery.png"
EACH = 2
NODES = 16


def draw(axes: Axes, graph: SimpleGraph) -> None:
    """Draw one graph; darker nodes have higher degree."""
    networkx = graph.to_networkx()
    components = sorted(nx.connected_components(networkx), key=len, reverse=True)
    # The layout needs one component; the other components are drawn in a row below it.
    places = nx.kamada_kawai_layout(networkx.subgraph(components[0]))
    loose = [node for component in components[1:] for node in component]
    places |= {node: (-1 + 0.25 * k, -1.3) for k, node in enumerate(loose)}
    degrees = [networkx.degree[node] for node in networkx]
    nx.draw_networkx_edges(networkx, places, ax=axes, edge_color="#8a8f98", width=0.8)
    nx.draw_networkx_nodes(
        networkx,
        places,
        ax=axes,
        node_size=38,
        node_color=degrees,
        cmap="viridis_r",
        edgecolors="white",
        linewidths=0.6,
    )
    axes.set_axis_off()
    axes.margins(0.08)


def main() -> None:
    names = list(PAPER_FAMILIES)
    figure, grid = plt.subplots(2 * EACH, len(names), figsize=(2 * len(names), 4 * EACH), dpi=110)
    for column, name in enumerate(names):
        model = load_checkpoint(bundled_folder() / name)
        true = [family(name).sample(NODES, stream(7, "gallery", name, k)) for k in range(EACH)]
        drawn = list(Sampler(model, EACH, nodes=NODES, seed=7))
        for row, graph in enumerate([*true, *drawn]):
            draw(grid[row, column], graph)
        grid[0, column].set_title(name, fontsize=12)
    for row, text in ((0, "true"), (EACH, "sampled")):
        grid[row, 0].annotate(
            text, (-0.12, -0.05), xycoords="axes fraction", rotation=90, fontsize=12, ha="right", va="center"
        )
    figure.tight_layout(rect=(0.015, 0, 1, 1), h_pad=0.4, w_pad=0.2)
    TARGET.parent.mkdir(exist_ok=True)
    figure.savefig(TARGET)
    print(TARGET.name)


if __name__ == "__main__":
    main()
