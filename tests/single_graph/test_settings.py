from __future__ import annotations

from typing import Any

import pytest

from graphite_gen.errors import ConfigError
from graphite_gen.single_graph.settings import LinkSettings


@pytest.mark.parametrize(
    "change",
    [{"latent": 0}, {"latent": 10**9}, {"decoder_width": 10**9}, {"rounds": 10**9}, {"hops": -1}, {"skip_weight": 1e9}],
)
def test_settings_out_of_range_are_refused_before_anything_is_built(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="should lie between"):
        LinkSettings.from_json({**LinkSettings().to_json(), **change})


def test_the_settings_come_back_from_json() -> None:
    assert LinkSettings.from_json(LinkSettings().to_json()) == LinkSettings()
