from __future__ import annotations

import pytest

from graphite_gen.records import so_many


@pytest.mark.parametrize(
    ("number", "what", "words"),
    [
        (0, "edge", "0 edges"),
        (1, "edge", "1 edge"),
        (2, "edge", "2 edges"),
        (1, "class", "1 class"),
        (3, "class", "3 classes"),
    ],
)
def test_one_of_a_thing_is_no_plural(number: int, what: str, words: str) -> None:
    assert so_many(number, what) == words
