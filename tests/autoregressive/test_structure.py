"""The structure of growing graphs agrees with networkx."""

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from graphite_gen.autoregressive import structure
from graphite_gen.autoregressive.structure import (
    FAR,
    MOST_ADJACENT,
    MOST_SHARED,
    NO_RELATION,
    SHAPE,
    PartialGraphs,
    block_sizes,
    block_starts,
    relation_code,
)


def padded_rows(graphs: list[nx.Graph], t: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The earlier neighbours of node t of each graph, padded, and their numbers."""
    rows = [sorted(node for node in graph[t] if node < t) for graph in graphs]
    counts = np.array([len(row) for row in rows])
    neighbours = np.zeros((len(rows), counts.max(initial=0)), dtype=np.int64)
    for place, row in enumerate(rows):
        neighbours[place, : len(row)] = row

    return neighbours, counts


def distances(graph: nx.Graph) -> NDArray[np.int64]:
    lengths = dict(nx.all_pairs_shortest_path_length(graph))

    return np.array([[min(lengths[u].get(v, FAR), FAR) for v in graph] for u in graph])


@pytest.mark.parametrize("scattered_cost", [0, 1000])
@pytest.mark.parametrize("density", [0.08, 0.2, 0.5])
def test_paths_common_neighbours_triangles_and_degrees_agree_with_networkx(
    density: float, scattered_cost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(structure, "SCATTERED_COST", scattered_cost)
    # Sizes are descending, so that some graphs are complete before others.
    sizes = [18, 18, 15, 9, 2]
    graphs = [nx.gnp_random_graph(n, density, seed=seed) for seed, n in enumerate(sizes)]
    partial = PartialGraphs(len(graphs), 18)
    for t in range(18):
        live = [graph for graph in graphs if len(graph) > t]
        partial.add(t, *padded_rows(live, t))
        for place, whole in enumerate(live):
            graph = nx.induced_subgraph(whole, range(t + 1))
            adj = nx.to_numpy_array(graph, nodelist=range(t + 1), dtype=np.int64)
            common = adj @ adj
            off = ~np.eye(t + 1, dtype=np.bool_)
            assert (partial.distance[place, : t + 1, : t + 1] == distances(graph)).all()
            assert (partial.common[place, : t + 1, : t + 1] == common)[off].all()
            assert partial.degrees[place, : t + 1].tolist() == [graph.degree[node] for node in range(t + 1)]
            assert partial.triangles[place, : t + 1].tolist() == [nx.triangles(graph, node) for node in range(t + 1)]
            assert partial.edges[place] == graph.number_of_edges()


@pytest.mark.parametrize(
    "graph", [nx.complete_graph(135), nx.complete_bipartite_graph(2, 140)], ids=["complete", "hubs"]
)
def test_numbers_of_common_neighbours_saturate(graph: nx.Graph) -> None:
    nodes = len(graph)
    partial = PartialGraphs(1, nodes)
    for t in range(nodes):
        partial.add(t, *padded_rows([graph], t))

    adj = nx.to_numpy_array(graph, nodelist=range(nodes), dtype=np.int64)
    common = adj @ adj
    off = ~np.eye(nodes, dtype=np.bool_)
    assert (partial.common[0] == np.minimum(common, MOST_SHARED))[off].all()
    assert partial.paths[0].tolist() == np.tril(common, -1).sum(1).tolist()


def test_codes_of_a_row_depend_on_the_neighbours_before_each_candidate() -> None:
    graphs = [nx.gnp_random_graph(12, 0.3, seed=seed) for seed in range(6)]
    partial = PartialGraphs(6, 12)
    for t in range(12):
        neighbours, counts = padded_rows(graphs, t)
        relations = partial.relations(t, neighbours, counts, np.arange(t))
        codes, adjacent, paths = relations.codes, relations.adjacent, relations.paths
        for place, whole in enumerate(graphs):
            graph = nx.induced_subgraph(whole, range(t))
            lengths = distances(graph) if t else np.zeros((0, 0), dtype=np.int64)
            for i in range(t):
                shared_with = [len(list(nx.common_neighbors(graph, i, node))) for node in range(i)]
                assert partial.earlier[place, i] == sum(graph.has_edge(i, node) for node in range(i))
                assert partial.paths[place, i] == sum(shared_with)
                chosen = [node for node in neighbours[place, : counts[place]] if node < i]
                if not chosen:
                    assert codes[place, i] == NO_RELATION
                    continue
                assert adjacent[place, i] == sum(graph.has_edge(i, int(node)) for node in chosen)
                assert paths[place, i] == sum(shared_with[node] for node in chosen)
                shared = shared_with[chosen[-1]]
                expected = relation_code(
                    np.int8(lengths[i, chosen[-1]]),
                    np.int8(shared),
                    np.int8(min(lengths[i, node] for node in chosen)),
                    np.int8(adjacent[place, i]),
                )
                assert codes[place, i] == expected
        partial.add(t, neighbours, counts)


def test_codes_are_distinct_and_below_the_size_of_their_table() -> None:
    found = {}
    for distance in range(1, FAR + 1):
        for common in range(4):
            for nearest in range(1, FAR):
                for adjacent in range(MOST_ADJACENT + 1):
                    code = int(relation_code(*map(np.int8, (distance, common, nearest, adjacent))))
                    # Common neighbours are counted at distances 1 and 2, where there is at least one at distance 2.
                    shared = common if distance == 1 else max(common, 1) if distance == 2 else 0
                    found.setdefault(code, set()).add((distance, shared, nearest, adjacent))

    assert all(len(values) == 1 for values in found.values())
    assert NO_RELATION not in found
    assert max([*found, NO_RELATION]) < np.prod(SHAPE)


def test_selected_graphs_replace_the_others() -> None:
    partial = PartialGraphs(3, 4)
    for t in range(3):
        partial.add(t, np.array([[0], [0], [0]]), np.array([0, 0, t > 0], dtype=np.int64))

    partial.select(np.array([2, 2, 0]))

    assert partial.edges.tolist() == [2, 2, 0]
    assert partial.distance[:, 0, 2].tolist() == [1, 1, FAR]


def test_blocks_have_the_relations_of_their_closest_node_and_mean_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structure, "BLOCK", 3)
    graphs, t = [nx.gnp_random_graph(12, 0.3, seed=seed) for seed in range(6)], 11
    partial = PartialGraphs(6, 12)
    for node in range(t):
        partial.add(node, *padded_rows(graphs, node))
    relations = partial.relations(t, *padded_rows(graphs, t), np.arange(t))
    parts = [slice(start, min(start + 3, t)) for start in (0, 3, 6, 9)]
    reductions = {"distance": np.min, "nearest": np.min, "common": np.max, "adjacent": np.max, "paths": np.max}

    blocks, means = relations.of_blocks(), partial.block_means(t)

    for name, reduce in reductions.items():
        expected = [reduce(getattr(relations, name)[:, part], axis=1) for part in parts]
        assert (getattr(blocks, name) == np.stack(expected, 1)).all()
        assert (getattr(relations, name) != getattr(relations, name)[:1]).any()
    for name, values in partial.node_counts.items():
        expected = np.stack([values[:, part].mean(1) for part in parts], 1)
        assert (np.abs(means[name] - expected) <= 0.5).all()
        assert means[name].any()


@pytest.mark.parametrize("t", [1, 15, 16, 17, 100])
def test_blocks_contain_every_candidate_once(t: int) -> None:
    blocks = [np.arange(start, start + size) for start, size in zip(block_starts(t), block_sizes(t), strict=True)]

    assert np.concatenate(blocks).tolist() == list(range(t))
    assert all(len(block) == structure.BLOCK for block in blocks[:-1])
