from __future__ import annotations

from typing import Any

import pytest

from graphite_gen.errors import ConfigError
from graphite_gen.network.hyperparameters import ClassifierSettings, LinkSettings


@pytest.mark.parametrize(
    "change",
    [{"latent": 0}, {"latent": 10**9}, {"decoder_width": 10**9}, {"rounds": 10**9}, {"hops": -1}, {"skip_weight": 1e9}],
)
def test_settings_out_of_range_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(change))):
        LinkSettings.from_json({**LinkSettings().to_json(), **change})


@pytest.mark.parametrize(
    "change",
    [
        *({name: 0} for name in ("width", "latent", "epochs")),
        *({name: -1} for name in ("reconstruction", "weight_decay", "learning_rate", "patience")),
        {"learning_rate": float("nan")},
        {"weight_decay": 2.0},
    ],
)
def test_classifier_settings_out_of_range_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(change))):
        ClassifierSettings(**change)


@pytest.mark.parametrize("settings", [LinkSettings(), ClassifierSettings(), ClassifierSettings(weight_decay=0.1)])
def test_settings_round_trip_through_json(settings: LinkSettings | ClassifierSettings) -> None:
    assert type(settings).from_json(settings.to_json()) == settings


def test_weight_decay_is_optional() -> None:
    assert ClassifierSettings().changed(weight_decay=None) == ClassifierSettings()
    assert ClassifierSettings().changed(weight_decay=1).weight_decay == 1.0
    with pytest.raises(ConfigError, match="weight_decay"):
        ClassifierSettings().changed(weight_decay="much")
