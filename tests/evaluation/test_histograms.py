from collections import Counter

import numpy as np
import pytest

from graphite_gen.errors import DatasetError
from graphite_gen.evaluation.histograms import distributions
from graphite_gen.families.simulate import generate
from graphite_gen.graph import SimpleGraph


def test_proportions_are_those_of_networkx() -> None:
    own, known = generate("barabasi", 9, seed=0).graphs, generate("powerlaw-tree", 9, seed=1).graphs
    found = {each.name: each for each in distributions(own, known)}

    for side, proportions in ((own, found["degree"].samples), (known, found["degree"].reference)):
        degrees = Counter(d for graph in side for _, d in graph.to_networkx().degree())
        assert dict(zip(found["degree"].places, proportions, strict=True)) == pytest.approx(
            {place: degrees[int(place)] / degrees.total() for place in found["degree"].places}
        )
    # Trees have no triangles.
    assert found["clustering"].reference[0] == 1
    for name in ("degree", "clustering", "spectrum", "size", "path length"):
        assert np.sum(found[name].samples) == pytest.approx(1)
        assert np.sum(found[name].reference) == pytest.approx(1)


def test_degenerate_graphs_have_distributions() -> None:
    for graph in (SimpleGraph.from_pairs(1, []), SimpleGraph.from_pairs(4, [])):
        assert all(each.reference is None for each in distributions([graph]))
    wide = distributions([SimpleGraph.from_pairs(200, [(0, other) for other in range(1, 200)])])
    assert len(wide[0].places) == 20
    with pytest.raises(DatasetError, match="no graphs"):
        distributions([])
    with pytest.raises(DatasetError, match="no nodes"):
        distributions([SimpleGraph.from_pairs(0, [])])
