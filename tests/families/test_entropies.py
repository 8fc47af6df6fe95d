import math
from itertools import pairwise

import numpy as np
import pytest
from tiny import all_graphs

from graphite_gen.errors import ConfigError, FamilyError
from graphite_gen.families import FAMILIES, Family, base
from graphite_gen.families import family as family_of
from graphite_gen.families.entropies import EntropyEstimate, draw_nats, known_entropy, mean_entropy
from graphite_gen.rng import stream


@pytest.mark.parametrize(
    ("family", "n"),
    [
        (family_of("barabasi", m=2), 4),
        (family_of("erdos-renyi", p=0.4, largest_component=True), 4),
        *((family_of("ego", p=p), 12) for p in (0.05, 0.99)),
        (family_of("tree"), 14),
    ],
    ids=repr,
)
def test_the_mean_over_samples_is_the_entropy(family: Family, n: int) -> None:
    exact = family.entropy(n)
    if exact is None:
        exact = sum(-math.exp(p) * p for graph in all_graphs(n) if (p := family.log_prob(graph)) > -math.inf)

    found = EntropyEstimate.of(list(draw_nats(family, n, 2000, seed=0)))

    assert found.nats == pytest.approx(exact, abs=4 * found.standard_error + 1e-9)
    assert found.standard_error < 0.15
    assert (found.gap, found.graphs) == (0, 2000)


def test_an_estimate_is_the_midpoint_of_the_bounds_with_its_standard_error() -> None:
    found = EntropyEstimate.of([(1.0, 2.0), (4.0, 4.0), (2.0, 6.0)])

    assert (found.lower, found.upper, found.gap, found.graphs) == pytest.approx((7 / 3, 4, 5 / 3, 3))
    assert found.nats == pytest.approx(np.mean([1.5, 4, 4]))
    assert found.standard_error == pytest.approx(np.std([1.5, 4, 4], ddof=1) / math.sqrt(3))
    assert found.gap_standard_error == pytest.approx(np.std([1, 0, 4], ddof=1) / math.sqrt(3))
    alone = EntropyEstimate.of([(1.0, 2.0)])
    assert (alone.standard_error, alone.gap_standard_error) == (None, None)


def test_a_mean_over_sizes_weights_errors_by_frequency() -> None:
    entropies = {
        3: EntropyEstimate(1.0, 2.0, 0.3, 10, 0.1),
        4: EntropyEstimate(5.0, 5.0, 0.4, 20, 0.2),
        5: EntropyEstimate.exact(9.0),
    }

    mean = mean_entropy(entropies, [4, 3, 4, 5])

    assert (mean.lower, mean.upper, mean.graphs) == (5.0, 5.25, 30)
    # The two graphs on four nodes have the same error, which does not average out.
    assert mean.standard_error == pytest.approx(math.hypot(0.3 / 4, 0.4 / 2))
    assert mean_entropy(entropies, [3, 4]).gap_standard_error == pytest.approx(math.hypot(0.1 / 2, 0.2 / 2))
    # A closed form adds no error; an unknown error makes that of the mean unknown.
    assert mean.gap_standard_error == pytest.approx(math.hypot(0.1 / 4, 0.2 / 2))
    assert mean_entropy({**entropies, 6: EntropyEstimate(1.0, 1.0, 0.1, 9)}, [3, 6]).gap_standard_error is None
    assert mean_entropy({3: EntropyEstimate(1.0, 1.0, None, 1)}, [3]).standard_error is None


def test_samples_depend_only_on_seed_size_and_index() -> None:
    family = family_of("barabasi")
    few, many, other = (list(draw_nats(family, 9, count, seed)) for count, seed in ((2, 3), (4, 3), (2, 4)))

    assert many[:2] == few != other
    with pytest.raises(ConfigError, match="'graphs' is 0"):
        draw_nats(family, 7, 0, seed=0)
    with pytest.raises(FamilyError, match="no graphs with n=2"):
        draw_nats(family, 2, 1, seed=0)


def test_a_size_that_is_never_sampled_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "MAX_DRAWS", 20)

    with pytest.raises(FamilyError, match="20 samples"):
        family_of("erdos-renyi", p=0.01, largest_component=True).draw_nats(9, stream(0, "test"))


@pytest.mark.slow
def test_bounds_of_geometric_graphs_enclose_the_entropy() -> None:
    family = family_of("geometric")
    lower, upper = np.mean([family.draw_nats(3, stream(0, "test", i)) for i in range(60)], axis=0)
    graphs = [family.sample(3, stream(1, "test", i)) for i in range(20_000)]
    _, counts = np.unique([graph.adjacency()[np.triu_indices(3, 1)] for graph in graphs], axis=0, return_counts=True)
    exact = -(counts / counts.sum()) @ np.log(counts / counts.sum())

    # The entropy of three points is known within some hundredths; sixty graphs are off by a tenth at most.
    assert lower == pytest.approx(exact, abs=0.35)
    assert abs(upper - lower) < 0.05
    with pytest.raises(FamilyError, match="largest_component=false"):
        family_of("geometric", largest_component=True).draw_nats(3, stream(0, "test"))


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_has_entropies_of_its_default_sizes_that_increase(name: str) -> None:
    family = family_of(name)
    sizes = family.sizes(10, 20)
    entropies = [entropy for n in sizes if (entropy := known_entropy(family, n)) is not None]

    assert len(entropies) == len(sizes)
    for a, b in pairwise(entropies):
        assert b.nats - a.nats > -3 * math.hypot(a.standard_error or 0, b.standard_error or 0)


# Mean nats per graph over n = 10 … 20, their standard error, and those of n = 10 and 20, measured independently.
@pytest.mark.parametrize(
    ("name", "published", "error", "ends"),
    [("geometric", 48.72, 0.20, (24.5, 76.1)), ("barabasi", 63.90, 0.04, (25.4, 107.2))],
)
def test_the_table_is_as_published(name: str, published: float, error: float, ends: tuple[float, float]) -> None:
    family = family_of(name)
    entropies = {n: entropy for n in range(10, 21) if (entropy := known_entropy(family, n)) is not None}
    mean = mean_entropy(entropies, list(entropies))

    assert len(entropies) == 11
    assert mean.standard_error < 0.5
    assert mean.nats == pytest.approx(published, abs=3 * math.hypot(mean.standard_error, error))
    assert -0.1 < mean.gap < 0.5
    assert all(entropy.gap >= -0.3 and entropy.graphs > 1 for entropy in entropies.values())
    for n, end in zip((10, 20), ends, strict=True):
        assert entropies[n].nats == pytest.approx(end, abs=0.1 + 3 * (entropies[n].standard_error or 0))


def test_closed_forms_come_first_and_other_parameters_and_sizes_are_not_in_the_table() -> None:
    ego = family_of("ego")

    assert known_entropy(ego, 14) == EntropyEstimate(ego.entropy(14), ego.entropy(14), 0.0, 0, 0.0)
    assert known_entropy(family_of("barabasi", m="4"), 15) is not None
    assert known_entropy(family_of("geometric"), 200) is None
    for name, parameters in (("geometric", {"r": 0.4}), ("geometric", {"largest_component": True}), ("ba", {"m": 3})):
        assert known_entropy(family_of(name, **parameters), 15) is None
    with pytest.raises(FamilyError, match="no graphs with n=3"):
        known_entropy(family_of("barabasi"), 3)


@pytest.mark.slow
@pytest.mark.parametrize("n", [12, 16, 20])
def test_the_entropy_of_barabasi_in_the_table_agrees_with_new_samples(n: int) -> None:
    family = family_of("barabasi")
    known, new = known_entropy(family, n), EntropyEstimate.of(list(draw_nats(family, n, 300, seed=99)))

    assert new.nats == pytest.approx(known.nats, abs=4 * math.hypot(known.standard_error, new.standard_error))
