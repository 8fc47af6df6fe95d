"""Independent random streams derived from one seed, by name.

A stream depends only on the seed and its name, so graph ``i`` of a sample is the same whatever was drawn before it,
and adding a stream does not change any other.
"""

from __future__ import annotations

import secrets
import zlib

import numpy as np

from .errors import ConfigError

__all__ = ["derive_seed", "seed_or_new", "stream"]


def _sequence(seed: int, name: tuple[str | int, ...]) -> np.random.SeedSequence:
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise ConfigError(f"'seed' is {seed!r}; it should be a non-negative integer.", seed=seed)
    # Strings hash to keys above 2³², so they never equal the key of an integer.
    keys = [part if isinstance(part, int) else (1 << 32) + zlib.crc32(part.encode()) for part in name]

    return np.random.SeedSequence(seed, spawn_key=keys)


def seed_or_new(seed: int | None) -> int:
    """The seed given, or a new one from the entropy of the system for None."""
    return secrets.randbits(32) if seed is None else seed


def stream(seed: int, *name: str | int) -> np.random.Generator:
    """The random generator for a seed and a name.

    Arguments:
        seed: The seed of the run, a non-negative integer.
        name: The name of the stream, such as ``("graph", 17)``.
    """
    return np.random.Generator(np.random.SFC64(_sequence(seed, name)))


def derive_seed(seed: int, *name: str | int) -> int:
    """A 63-bit seed for generators of other libraries, derived like :func:`stream`."""
    return int(_sequence(seed, name).generate_state(1, np.uint64)[0] >> 1)
