import networkx as nx
import numpy as np
import pytest
import torch
from tiny import random_graph

from graphite_gen.data.batch import collate
from graphite_gen.graph import SimpleGraph
from graphite_gen.sampling import Acyclic, Connected, Constraint, Edges, MaxDegree, Planar, Regular, Tree
from graphite_gen.sampling.conditional import sample_rows
from graphite_gen.sampling.constraints import AllOf
from graphite_gen.sampling.feasibility import FeasibleEdges, PlanarRow

SETS: list[tuple[Constraint, ...]] = [
    (Tree(),),
    (Connected(),),
    (Acyclic(),),
    (Acyclic(), Edges(5)),
    (Planar(),),
    (Planar(), Edges(18)),
    (Planar(), Connected(), Edges(14)),
    (Regular(4),),
    (Edges(11),),
    (MaxDegree(3), Connected()),
]


@pytest.mark.parametrize("constraints", SETS)
def test_the_result_for_a_pair_does_not_depend_on_later_edges(constraints: tuple[Constraint, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    count, nodes, row = 40, 9, 6
    adj = collate([random_graph(row, seed, density=0.3) for seed in range(count)]).adj
    constraint = FeasibleEdges([AllOf(constraints).requirements(nodes)] * count)
    rows, sizes = torch.full((count,), row), torch.full((count,), nodes)
    bounds = constraint(torch.arange(count), adj, rows, sizes)
    for planar in bounds.planar:
        planar.is_strict = True
    sampled, row_edges = (torch.rand(count, row, generator=generator) < 0.5 for _ in range(2))

    enforced = bounds(torch.arange(count), sampled, row_edges)

    for i in range(row):
        other = torch.where(torch.arange(row) >= i, torch.rand(count, row, generator=generator) < 0.5, row_edges)
        # Planarity is tested up to the next new edge only, whose place depends on the number of edges.
        other = row_edges if bounds.planar else other
        changed = torch.where(torch.arange(row) > i, ~sampled, sampled)
        assert torch.equal(enforced[:, i], bounds(torch.arange(count), changed, other)[:, i])


@pytest.mark.parametrize("constraints", SETS)
def test_rows_are_the_same_as_if_every_pair_were_tested(constraints: tuple[Constraint, ...]) -> None:
    generator = torch.Generator().manual_seed(1)
    count, nodes = 30, 8
    logits = torch.randn(count, nodes, nodes, generator=generator)
    uniform = torch.rand(count, nodes, nodes, generator=generator)
    sizes = torch.full((count,), nodes)
    constraint = FeasibleEdges([AllOf(constraints).requirements(nodes)] * count)

    found = sample_rows(logits, sizes, uniform, constraint)

    adj = torch.zeros(count, nodes, nodes)
    every = torch.arange(count)
    for row in range(1, nodes):
        bounds = constraint(every, adj[:, :row, :row], torch.full((count,), row), sizes)
        for planar in bounds.planar:
            planar.is_strict = True
        sampled = (uniform < torch.sigmoid(logits))[:, row, :row]
        row_edges = torch.zeros(count, row, dtype=torch.bool)
        for i in range(row):
            row_edges[:, i] = bounds(every, sampled, row_edges)[:, i]
        adj[:, row, :row] = adj[:, :row, row] = row_edges.to(adj)
    assert torch.equal(found, adj)


@pytest.mark.parametrize(
    "constraints", [(Tree(),), (Edges(13),), (Regular(4),), (Connected(), Regular(3)), (Acyclic(), Edges(6))]
)
def test_there_are_few_dead_ends(constraints: tuple[Constraint, ...]) -> None:
    generator = torch.Generator().manual_seed(2)
    count, nodes = 200, 10
    logits = 2 * torch.randn(count, nodes, nodes, generator=generator)
    uniform = torch.rand(count, nodes, nodes, generator=generator)
    requirements = [AllOf(constraints).requirements(nodes)] * count

    graphs = sample_rows(logits, torch.full((count,), nodes), uniform, FeasibleEdges(requirements))

    holds = [AllOf(constraints).holds(SimpleGraph.from_adjacency(graph.numpy())) for graph in graphs]
    assert np.mean(holds) > 0.97


def test_a_planar_row_keeps_the_edges_accepted_one_by_one() -> None:
    rng = np.random.default_rng(0)
    for seed in range(20):
        graph = nx.random_labeled_tree(9, seed=seed)
        graph.add_edges_from([(i, (i + 2) % 9) for i in range(0, 9, 2)])
        if not nx.check_planarity(graph)[0]:
            continue
        sampled = np.flatnonzero(rng.random(9) < 0.8).tolist()
        kept = PlanarRow(nx.to_numpy_array(graph, nodelist=range(9)) > 0).keep(
            [node in sampled for node in range(9)], [True] * 9
        )

        expected = []
        for node in sampled:
            graph.add_edge(9, node)
            if nx.check_planarity(graph)[0]:
                expected.append(node)
            else:
                graph.remove_edge(9, node)
        assert kept == expected


def test_a_planar_row_has_the_required_number_of_edges_where_possible() -> None:
    rng = np.random.default_rng(0)
    octahedron = nx.octahedral_graph()
    row = PlanarRow(nx.to_numpy_array(octahedron, nodelist=range(6)) > 0)

    for min_edges in (0, 1, 2, 3) * 20:
        kept = row.keep((rng.random(6) < 0.3).tolist(), [True] * 6, min_edges)
        assert nx.check_planarity(nx.Graph([*octahedron.edges, *((6, node) for node in kept)]))[0]
        assert len(kept) >= min_edges
    # Every face is a triangle: no four nodes share one.
    assert len(row.keep([True] * 6, [True] * 6, 4)) == 3
    assert row.keep([False] * 6, [False, True, False, True, False, False], 2) == [1, 3]
