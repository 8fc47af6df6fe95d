import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from graphite_gen.errors import ConfigError
from graphite_gen.rng import derive_seed, stream

GRAPHS: list[tuple[str | int, ...]] = [("graph",), ("graph", 0), ("graph", 1), ("graph", 0, 0)]
NAMES = [*GRAPHS, (), ("sizes",), ("sizes", 0), (0,), (1,), (0, "graph")]


def test_streams_of_different_names_and_seeds_are_different() -> None:
    draws = {stream(seed, *name).bytes(16) for name in NAMES for seed in (0, 1, 2**63 - 1)}
    seeds = {derive_seed(seed, *name) for name in NAMES for seed in (0, 1, 2**63 - 1)}

    assert len(draws) == len(seeds) == 3 * len(NAMES)


def test_neighbouring_streams_are_uncorrelated() -> None:
    draws = np.stack([stream(0, "graph", i).standard_normal(4000) for i in range(12)])

    correlations = np.corrcoef(draws) - np.eye(12)

    assert np.abs(correlations).max() < 5 / 4000**0.5


def test_streams_are_the_same_in_another_process() -> None:
    code = "from graphite_gen.rng import *; print(derive_seed(5, 'x', 2), stream(5, 'x', 2).integers(10**9))"

    for hash_seed in ("1", "2"):
        out = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": hash_seed}
        ).stdout.split()
        assert out == [str(derive_seed(5, "x", 2)), str(stream(5, "x", 2).integers(10**9))]


def test_streams_are_the_same_in_every_version() -> None:
    assert derive_seed(0, "weights") == 2476272640724632838
    assert stream(0, "sample", 3).bytes(8).hex() == "1382caf861822da1"


def test_derived_seeds_fit_generators_of_other_libraries() -> None:
    assert all(0 <= derive_seed(seed, "x") < 2**63 for seed in range(200))
    assert max(derive_seed(seed, "x") for seed in range(200)) > 2**62


@pytest.mark.parametrize("seed", [-1, "x", 1.5, None, True])
def test_a_seed_must_be_a_non_negative_integer(seed: Any) -> None:
    with pytest.raises(ConfigError, match=f"'seed' is {seed!r}"):
        stream(seed, "graph")


def test_numpy_integers_are_seeds() -> None:
    assert derive_seed(np.int64(5), "x") == derive_seed(5, "x")
