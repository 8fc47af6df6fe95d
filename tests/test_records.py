import math
from dataclasses import fields
from typing import Any

import pytest

from graphite_gen.records import Provenance, TrainRecord, count_of, mean_with_error, typed

VALUES = (1, 2, 3, 0.5, None, 1.5, 1, 2, 0.9, {"kl": 1.0})
RECORD = dict(zip((field.name for field in fields(TrainRecord)), VALUES, strict=True))


def test_a_json_object_becomes_a_record() -> None:
    assert typed(TrainRecord, RECORD).to_json() == RECORD
    assert typed(Provenance, {"family": "ego", "parameters": {"m": 4}}) == Provenance("ego", {"m": 4})


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        *(
            (TrainRecord, {**RECORD, **change})
            for change in ({"epoch": 1.5}, {"epoch": True}, {"best": "x"}, {"latents": [1]}, {"new": 1})
        ),
        *((TrainRecord, values) for values in ({}, [], None)),
        *((Provenance, values) for values in ({"parameters": []}, {"seed": 1.0}, {"family": 5})),
    ],
)
def test_values_of_the_wrong_type_and_unknown_keys_are_refused(kind: type, values: Any) -> None:
    with pytest.raises(TypeError):
        typed(kind, values)


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [(0, "edge", "0 edges"), (1, "edge", "1 edge"), (1, "class", "1 class"), (3, "class", "3 classes")],
)
def test_nouns_are_in_the_plural_unless_there_is_one(number: int, noun: str, text: str) -> None:
    assert count_of(number, noun) == text


def test_the_mean_has_the_standard_error_of_its_values() -> None:
    # The variance of 3, 1 and 2 is 1, that of their mean a third of it.
    assert mean_with_error([3.0, 1.0, 2.0]) == pytest.approx((2.0, 1 / math.sqrt(3)))


@pytest.mark.parametrize("values", [[2.5], [math.inf, 1.0], [-math.inf, 1.0, 2.0]])
def test_one_value_and_an_infinite_mean_have_no_standard_error(values: list[float]) -> None:
    assert mean_with_error(values) == (sum(values) / len(values), None)
