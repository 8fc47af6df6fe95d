from typing import Any

import pytest

from graphite_gen.errors import ConfigError
from graphite_gen.network.hyperparameters import ClassifierSettings, LinkSettings


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        *((LinkSettings, {name: 10**9}) for name in ("latent", "decoder_width", "rounds", "skip_weight")),
        (LinkSettings, {"latent": 0}),
        (LinkSettings, {"hops": -1}),
        *((ClassifierSettings, {name: 0}) for name in ("width", "latent", "epochs")),
        *((ClassifierSettings, {name: -1}) for name in ("reconstruction", "weight_decay", "learning_rate", "patience")),
        (ClassifierSettings, {"learning_rate": float("nan")}),
        (ClassifierSettings, {"weight_decay": 2.0}),
        (ClassifierSettings, {"dropout": 1.0}),
    ],
)
def test_settings_out_of_range_are_refused(kind: type[LinkSettings | ClassifierSettings], change: Any) -> None:
    with pytest.raises(ConfigError, match=next(iter(change))):
        kind.from_json({**kind().to_json(), **change})


@pytest.mark.parametrize("settings", [LinkSettings(), ClassifierSettings(), ClassifierSettings(weight_decay=0.1)])
def test_settings_round_trip_through_json(settings: LinkSettings | ClassifierSettings) -> None:
    assert type(settings).from_json(settings.to_json()) == settings


def test_weight_decay_is_optional() -> None:
    assert ClassifierSettings().changed(weight_decay=None) == ClassifierSettings()
    assert ClassifierSettings().changed(weight_decay=1).weight_decay == 1.0
    with pytest.raises(ConfigError, match="weight_decay"):
        ClassifierSettings().changed(weight_decay="much")
