"""Limits are causal: what is asked at once comes out as what is asked one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny import random_graph

from graphite_gen.autoregressive.distribution import AutoregressiveGraphs
from graphite_gen.data.batch import collate, node_mask
from graphite_gen.sampling.conditional import GivenOdds
from graphite_gen.sampling.constraints import (
    Acyclic,
    AllOf,
    Connected,
    Constraint,
    Edges,
    MaxDegree,
    Planar,
    Regular,
    Tree,
)
from graphite_gen.sampling.feasibility import DemandLimits
from graphite_gen.sampling.planarity import PlanarRow

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
def test_what_is_said_of_a_pair_reads_no_later_answer(constraints: tuple[Constraint, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    count, nodes, row = 40, 9, 6
    adj = collate([random_graph(row, seed, density=0.3) for seed in range(count)], row + 1).adj
    limits = DemandLimits([AllOf(constraints).demands(nodes)] * count)
    rows, sizes = torch.full((count,), row), torch.full((count,), nodes)
    bounds = limits(torch.arange(count), adj, rows, sizes)
    wanted, answers = (torch.rand(count, row + 1, generator=generator) < 0.5 for _ in range(2))

    settled = bounds.settle(torch.arange(count), wanted, answers.double())

    for i in range(row):
        later = torch.arange(row + 1) >= i
        other = torch.where(later, torch.rand(count, row + 1, generator=generator) < 0.5, answers)
        hidden = torch.where(torch.arange(row + 1) > i, ~wanted, wanted)
        again = bounds.settle(torch.arange(count), hidden, other.double())
        assert torch.equal(settled[:, i], again[:, i])


@pytest.mark.parametrize("constraints", SETS)
def test_the_fixed_point_is_asking_one_by_one(constraints: tuple[Constraint, ...]) -> None:
    generator = torch.Generator().manual_seed(1)
    count, nodes = 30, 8
    logits = torch.randn(count, nodes, nodes, generator=generator)
    uniform = torch.rand(count, nodes, nodes, generator=generator)
    sizes = torch.full((count,), nodes)
    limits = DemandLimits([AllOf(constraints).demands(nodes)] * count)

    found = AutoregressiveGraphs(GivenOdds(), logits, logits[..., :0], sizes).sample(uniform, limits)

    adj = torch.zeros(count, nodes, nodes)
    everyone = torch.arange(count)
    for row in range(1, nodes):
        seen = adj[:, : row + 1, : row + 1]
        bounds = limits(everyone, seen, torch.full((count,), row), sizes)
        wanted = (uniform < torch.sigmoid(logits))[:, row, : row + 1] & node_mask(torch.tensor([row]), row + 1)
        answers = torch.zeros(count, row + 1)
        for i in range(row):
            answers[:, i] = bounds.settle(everyone, wanted, answers)[:, i].to(answers)
        adj[:, row, : row + 1] = adj[:, : row + 1, row] = answers
    assert torch.equal(found, adj)


@pytest.mark.parametrize(
    "constraints", [(Tree(),), (Edges(13),), (Regular(4),), (Connected(), Regular(3)), (Acyclic(), Edges(6))]
)
def test_counting_ahead_leaves_few_dead_ends(constraints: tuple[Constraint, ...]) -> None:
    generator = torch.Generator().manual_seed(2)
    count, nodes = 200, 10
    logits = 2 * torch.randn(count, nodes, nodes, generator=generator)
    uniform = torch.rand(count, nodes, nodes, generator=generator)
    demands = [AllOf(constraints).demands(nodes)] * count

    graphs = AutoregressiveGraphs(GivenOdds(), logits, logits[..., :0], torch.full((count,), nodes)).sample(
        uniform, DemandLimits(demands)
    )

    from graphite_gen.graph import SimpleGraph

    held = [AllOf(constraints).holds(SimpleGraph.from_adjacency(graph.numpy())) for graph in graphs]
    assert np.mean(held) > 0.97


def test_a_planar_row_keeps_what_asking_one_by_one_keeps() -> None:
    import networkx as nx

    rng = np.random.default_rng(0)
    for seed in range(20):
        graph = nx.random_labeled_tree(9, seed=seed)
        graph.add_edges_from([(i, (i + 2) % 9) for i in range(0, 9, 2)])
        if not nx.check_planarity(graph)[0]:
            continue
        wanted = np.flatnonzero(rng.random(9) < 0.8).tolist()
        kept = PlanarRow(nx.to_numpy_array(graph, nodelist=range(9)) > 0).keep(
            [node in wanted for node in range(9)], [True] * 9
        )

        expected = []
        for node in wanted:
            graph.add_edge(9, node)
            if nx.check_planarity(graph)[0]:
                expected.append(node)
            else:
                graph.remove_edge(9, node)
        assert kept == expected


def test_a_planar_row_has_as_many_edges_as_it_must_where_they_fit() -> None:
    import networkx as nx

    rng = np.random.default_rng(0)
    octahedron = nx.octahedral_graph()
    row = PlanarRow(nx.to_numpy_array(octahedron, nodelist=range(6)) > 0)

    for least in (0, 1, 2, 3):
        for _ in range(20):
            wanted = (rng.random(6) < 0.3).tolist()
            kept = row.keep(wanted, [True] * 6, least)
            grown = octahedron.copy()
            grown.add_edges_from((6, node) for node in kept)
            assert nx.check_planarity(grown)[0]
            assert len(kept) >= least
    # Every face is a triangle: no four nodes share one.
    assert len(row.keep([True] * 6, [True] * 6, 4)) == 3
    assert row.keep([False] * 6, [False, True, False, True, False, False], 2) == [1, 3]
