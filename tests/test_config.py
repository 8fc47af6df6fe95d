import json
import math
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphite_gen.config import KINDS, ORDERINGS, PRESETS, ModelConfig, TrainConfig, current_names, preset
from graphite_gen.errors import ConfigError


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("kind", KINDS)
def test_settings_that_are_used_survive_json(name: str, kind: str) -> None:
    model, training = preset(name, kind=kind, seed=7, learning_rate=0.1 + 0.2)
    written = json.loads(json.dumps(model.to_json()))
    read = ModelConfig.from_json(written)
    default = {key: getattr(ModelConfig(), key) for key in model.unused if hasattr(model, key) and key != "latent"}

    assert not default.keys() & written.keys()
    assert read == replace(model, **default)
    assert read.to_json() == model.to_json()
    # Earlier files have all settings.
    everything = {field.name: getattr(model, field.name) for field in fields(model)}
    listed = {key: list(value) if isinstance(value, tuple) else value for key, value in everything.items()}
    assert ModelConfig.from_json(listed) == model
    assert set(training.to_json()) - set(training.to_json(model.unused)) == set(vars(training)) & set(model.unused)
    assert TrainConfig.from_json(json.loads(json.dumps(training.to_json()))) == training


def change(**changes: Any) -> ModelConfig:
    return ModelConfig().changed(**changes)


@pytest.mark.parametrize("make", [change, partial(preset, "default")])
@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"colour": 1}, r"^Unknown setting 'colour'\. Known: "),
        ({"rounds": 2.5}, "'rounds' should be int, not 2.5"),
        ({"latent": 0}, "'latent' is 0"),
    ],
)
def test_wrong_changes_are_refused(make: Callable[..., object], settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        make(**settings)


@pytest.mark.parametrize("value", [[], None, "latent", 3])
def test_other_json_than_an_object_is_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match="should be a JSON object"):
        ModelConfig.from_json(value)


scalars = st.none() | st.booleans() | st.integers() | st.integers(10**300, 10**310) | st.floats() | st.text(max_size=5)
lists = st.lists(st.integers() | st.text(max_size=3), max_size=3)
json_values = scalars | lists | st.dictionaries(st.text(max_size=2), st.integers(), max_size=2)


@given(config=st.sampled_from([ModelConfig, TrainConfig]), data=st.data())
def test_arbitrary_values_are_refused_or_have_the_right_type(config: type[Any], data: st.DataObject) -> None:
    field = data.draw(st.sampled_from(fields(config)))
    value = data.draw(json_values)

    try:
        made = getattr(config.from_json({field.name: value}), field.name)
    except ConfigError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert type(made) is type(field.default)
        assert made == (tuple(value) if isinstance(value, list) else value)


BAD = [
    *[
        (ModelConfig, name, "best")
        for name in ("kind", "observation", "encoder", "decoder", "refinement", "skip", "head")
    ],
    *[(ModelConfig, f"{name}_features", ("colour",)) for name in ("encoder", "decoder")],
    *[(ModelConfig, name, 0) for name in ("width", "latent", "head_rank", "max_nodes")],
    *[(ModelConfig, name, -1) for name in ("rounds", "encoder_layers", "random_features", "node_features")],
    *[(ModelConfig, "skip_weight", value) for value in (-0.1, math.nan)],
    *[(ModelConfig, "dropout", value) for value in (-0.1, 0.95)],
    *[(TrainConfig, name, 0) for name in ("epochs", "validate_every", "validation_samples", "samples")],
    *[(TrainConfig, name, -1) for name in ("batch_size", "epoch_graphs", "warmup_steps", "patience", "weight_decay")],
    *[(TrainConfig, name, value) for name, value in (("learning_rate", 0.0), ("kl_warmup", 1.5), ("clip", 0.0))],
]


@pytest.mark.parametrize(("config", "name", "bad"), BAD)
def test_values_out_of_range_are_refused_by_name(config: type[Any], name: str, bad: Any) -> None:
    with pytest.raises(ConfigError, match=f"^'{name}' is "):
        config(**{name: bad})


def test_an_encoder_without_input_is_refused() -> None:
    for nothing in ({"encoder_features": ()}, {"encoder_features": ("random",), "random_features": 0}):
        with pytest.raises(ConfigError, match="no input"):
            ModelConfig(**nothing)
        assert ModelConfig(**nothing, node_features=1).node_features == 1


def test_a_configuration_and_either_part_of_a_preset_can_be_changed() -> None:
    model, training = preset("paper", latent=4, epochs=3, encoder_features=["degree"])

    assert ModelConfig.from_json({"latent": 3}).changed(rounds=2) == ModelConfig(latent=3, rounds=2)
    assert model == replace(PRESETS["paper"][0], latent=4, encoder_features=("degree",))
    assert training == replace(PRESETS["paper"][1], epochs=3)
    with pytest.raises(ConfigError, match="'preset' is 'best'"):
        preset("best")
    with pytest.raises(ConfigError, match="'epochs' should be int, not '3'"):
        preset("default", epochs="3")


def test_the_preset_of_the_paper_is_the_appendix() -> None:
    model, training = preset("paper")

    sizes = {"width": 32, "latent": 16, "rounds": 3, "encoder_layers": 1}
    features = {"encoder_features": ("identity",), "decoder_features": ("identity",)}
    parts = {"encoder": "gcn", "refinement": "gcn", "head": "inner", "skip": "convex", "mlp": True}
    assert model == replace(model, **sizes, **features, **parts)
    assert training == replace(training, epochs=500, learning_rate=0.01)


def test_kinds_differ_in_posterior_and_refinement() -> None:
    made = {kind: ModelConfig(kind=kind, rounds=2) for kind in KINDS}

    assert {kind: (config.is_variational, config.refinement_rounds) for kind, config in made.items()} == {
        "graphite-vae": (True, 2),
        "graphite-ae": (False, 2),
        "vgae": (True, 0),
        "gae": (False, 0),
    }


def test_only_identity_features_of_the_decoder_break_exchangeability() -> None:
    assert not ModelConfig(decoder_features=("identity",)).is_exchangeable
    assert ModelConfig(encoder_features=("identity",)).is_exchangeable
    assert not preset("paper")[0].is_exchangeable
    assert preset("default")[0].is_exchangeable


def test_an_autoregressive_model_has_neither_convention_paper_nor_identity_features() -> None:
    with pytest.raises(ConfigError, match="no convention 'paper'"):
        preset("default", convention="paper", decoder="autoregressive", encoder="none")
    with pytest.raises(ConfigError) as error:
        preset("paper", decoder="autoregressive")
    assert error.value.reason == "identity-is-one-shot"


def test_the_default_model_has_an_encoder_and_settings_for_it() -> None:
    model, training = preset("default")

    assert (model.encoder, model.kind, training.free_bits > 0) == ("residual", "graphite-vae", True)
    assert {"kl_warmup", "free_bits", "latent"} <= preset("default", encoder="none")[0].unused.keys()
    assert not {"kl_warmup", "free_bits", "latent"} & model.unused.keys()


def test_earlier_names_of_orderings_and_settings_are_mapped() -> None:
    orderings = {"breadth": "bfs", "cardinality": "max-cardinality", "depth": "dfs", "even": "attachment"}
    orderings |= {"hub": "max-degree", "peel": "degeneracy"}

    assert set(orderings.values()) <= set(ORDERINGS)
    for earlier, current in orderings.items():
        assert current_names({"ordering": earlier}) == {"ordering": current}
    found = current_names({"order": "peel", "stages": 4, "seed": 1})
    assert found == {"ordering": "degeneracy", "decoder": "autoregressive", "seed": 1}
    assert preset("default", order="hub", stages=0) == preset("default", ordering="max-degree")
    assert preset("default", decoding_steps=1) == preset("default", decoder="one-shot") == preset("one-shot")


def test_patience_can_end_a_short_run_unless_it_is_given() -> None:
    whole, short = preset("one-shot")[1], preset("one-shot", epochs=30)[1]

    assert (whole.patience, short.patience) == (10, 3)
    assert short.patience * short.validate_every < short.epochs
    assert preset("one-shot", epochs=30, patience=10)[1].patience == 10
    assert preset("paper", epochs=30)[1].patience == 0


def test_misspelt_settings_and_values_get_a_suggestion() -> None:
    for wrong, hint in (({"epoch": 3}, "epochs"), ({"kind": "graphite-ve"}, "graphite-vae")):
        with pytest.raises(ConfigError, match=f"did you mean '{hint}'"):
            preset("default", **wrong)
