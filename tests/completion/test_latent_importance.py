from itertools import product

import numpy as np
import pytest
from tiny import exact_nll, mild_model

from graphite_gen.completion import PartialGraph
from graphite_gen.completion.latent_importance import decode_completions
from graphite_gen.graph import SimpleGraph

WEDGE = SimpleGraph.from_pairs(3, [(0, 1), (1, 2)])


def test_probabilities_agree_with_those_of_all_completions() -> None:
    model = mild_model(latent=1)
    partial = PartialGraph.from_pairs(WEDGE, [(0, 2), (1, 2)])
    edges = np.array(list(product((False, True), repeat=2)))
    joint = np.array([np.exp(-exact_nll(model, partial.completed(row))) for row in edges])

    posterior = decode_completions(model, partial, runs=4, particles=2000, rng=np.random.default_rng(0))
    means, errors = posterior.edge_probabilities()

    assert posterior.log_evidence == pytest.approx(np.log(joint.sum()), abs=0.03)
    assert means == pytest.approx(joint @ edges / joint.sum(), abs=0.02)
    assert (errors < 0.02).all()
