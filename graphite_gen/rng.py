"""One integer becomes named, independent random streams.

A stream depends on the seed and its name alone, so graph ``i`` of a sample is the same graph whatever was drawn
before it, and adding a stream never changes another.
"""

from __future__ import annotations

import zlib

import numpy as np

from .errors import ConfigError

__all__ = ["derive_seed", "stream"]


def _sequence(seed: int, name: tuple[str | int, ...]) -> np.random.SeedSequence:
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool):
        raise ConfigError(f"'seed' is {seed!r}; it should be a whole number, at least 0.")
    if seed < 0:
        raise ConfigError(f"'seed' is {seed}; it should be at least 0.")
    # A word and a number never share a key: words hash above 2³², numbers stay as they are.
    keys = [part if isinstance(part, int) else (1 << 32) + zlib.crc32(part.encode()) for part in name]

    return np.random.SeedSequence(seed, spawn_key=keys)


def stream(seed: int, *name: str | int) -> np.random.Generator:
    """The random stream called ``name`` of a seed.

    Arguments:
        seed: The run's one seed, at least zero.
        name: What the stream is for, such as ``("graph", 17)``.
    """
    return np.random.Generator(np.random.SFC64(_sequence(seed, name)))


def derive_seed(seed: int, *name: str | int) -> int:
    """A 63-bit seed for generators of another library, with the same independence as :func:`stream`."""
    return int(_sequence(seed, name).generate_state(1, np.uint64)[0] >> 1)
