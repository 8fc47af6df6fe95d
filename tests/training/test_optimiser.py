import pytest
import torch
from tiny import AUTOREGRESSIVE, SMALL

from graphite_gen.config import preset
from graphite_gen.training.model import build_network
from graphite_gen.training.optimiser import MUON_RATE, Optimiser

RATE = 1e-3


def updates(preset_name: str) -> dict[str, torch.Tensor]:
    """The changes of all weights by one step with random gradients."""
    settings = AUTOREGRESSIVE if preset_name == "default" else SMALL
    config, training = preset(preset_name, **(settings | {"width": 16, "weight_decay": 0.0}))
    network = build_network(config, seed=0)
    generator = torch.Generator().manual_seed(1)
    before = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    for parameter in network.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)
    Optimiser(network, training).step(RATE)

    return {name: (parameter.detach() - before[name]) / RATE for name, parameter in network.named_parameters()}


def test_updates_of_weight_matrices_are_orthogonal_in_autoregressive_models() -> None:
    found = updates("default")
    singular = torch.linalg.svdvals(found["decoder.hidden.weight"] / MUON_RATE)

    # Muon's iteration stops early, with singular values around one.
    assert singular.min() > 0.5
    assert singular.max() < 1.4


@pytest.mark.parametrize("name", ["decoder.hidden.bias", "decoder.relation.weight", "decoder.out.weight"])
def test_other_parameters_are_updated_by_adam(name: str) -> None:
    # Its first update has the sign of the gradient.
    assert updates("default")[name].abs() == pytest.approx(1, rel=1e-3)


def test_one_shot_models_are_updated_by_adam() -> None:
    assert all(
        update.abs().flatten().tolist() == pytest.approx([1] * update.numel(), rel=1e-2)
        for update in updates("one-shot").values()
    )
