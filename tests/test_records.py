from __future__ import annotations

from typing import Any

import pytest

from graphite_gen.records import Provenance, TrainRecord, typed

RECORD = {
    "epoch": 1,
    "step": 2,
    "loss": 3,
    "kl": 0.5,
    "validation": None,
    "best": 1.5,
    "learning_rate": 1,
    "seconds": 2,
}


def test_a_json_object_becomes_the_record_it_says() -> None:
    assert typed(TrainRecord, RECORD).to_json() == RECORD
    assert typed(Provenance, {"family": "ego", "parameters": {"m": 4}}) == Provenance("ego", {"m": 4})


@pytest.mark.parametrize(
    "values",
    [
        {**RECORD, "epoch": 1.5},
        {**RECORD, "epoch": True},
        {**RECORD, "best": "x"},
        {**RECORD, "colour": 1},
        {},
        [],
        None,
    ],
)
def test_values_of_another_type_and_unknown_keys_are_refused(values: Any) -> None:
    with pytest.raises(TypeError):
        typed(TrainRecord, values)


@pytest.mark.parametrize("values", [{"parameters": []}, {"seed": 1.0}, {"family": 5}])
def test_a_provenance_is_of_texts_and_one_whole_number(values: Any) -> None:
    with pytest.raises(TypeError):
        typed(Provenance, values)
