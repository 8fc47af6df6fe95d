import networkx as nx
import pytest

import graphite_gen as gg
from graphite_gen.errors import DatasetError

from .attributed import attributed


def test_statistics_are_those_of_networkx_and_a_network_resembles_itself() -> None:
    club = nx.karate_club_graph()

    found = gg.compare_networks([club], club)

    rows = {row.name: row for row in found.statistics}
    assert all(row.reference == row.samples for row in found.statistics)
    assert rows["assortativity"].reference == pytest.approx(nx.degree_assortativity_coefficient(club))
    assert rows["clustering"].reference == pytest.approx(nx.average_clustering(club))
    assert rows["maximum degree"].reference == 17
    assert (found.degree_distance, found.edge_overlap) == (0, 1)


def test_another_network_differs_and_one_of_another_size_has_no_edge_overlap() -> None:
    club = nx.karate_club_graph()
    other = nx.gnm_random_graph(34, 78, seed=0)

    found = gg.compare_networks([other, nx.star_graph(33)], club)

    assert found.degree_distance > 0.1
    assert found.edge_overlap is not None
    assert found.edge_overlap < 0.5
    assert gg.compare_networks([nx.path_graph(5)], club).edge_overlap is None
    assert next(row for row in found.statistics if row.name == "assortativity").deviation is not None
    for samples, reference in (([], club), ([nx.empty_graph(0)], club)):
        with pytest.raises(DatasetError, match="nothing to compare"):
            gg.compare_networks(samples, reference)


def test_a_directed_network_with_labels_is_compared_by_its_skeleton_and_by_its_attributes() -> None:
    network = attributed(0, directed=True)
    fewer = nx.DiGraph(network)
    fewer.remove_edges_from(list(network.edges)[:3])

    found = gg.compare_networks([fewer], network)
    rows = {(row.attribute, row.measure): row for row in found.attributes}

    assert found.statistics == gg.compare_networks([fewer.to_undirected()], network.to_undirected()).statistics
    assert found.edge_overlap == 1
    assert rows["direction", "reciprocity"].samples == pytest.approx(nx.overall_reciprocity(fewer))
    assert rows["weight", "mean"].half is None
