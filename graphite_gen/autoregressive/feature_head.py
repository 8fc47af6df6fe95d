r"""Node features that are generated with a graph (beyond the paper).

They are drawn when the graph is complete, in decoding order, and a node's columns one after the other, each given the
final state of its node, the columns before it, and the features of earlier nodes and of the neighbours among them:
:math:`p(X | A) = \prod_t \prod_c p(x_{t c} | x_{t, <c}, x_{<t}, A)`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .densities import Mixture, location_and_scale, mixture, mixture_log_prob, sample_mixture, unscaled

__all__ = ["FeatureHead", "FeatureInputs", "feature_statistics", "pair_features"]

COMPONENTS = 8
MOST_DEGREE = 24
# What networks read of standardised numbers is bounded, so that errors of samples do not grow from node to node.
MOST_READ = 10.0


class FeatureInputs(NamedTuple):
    """What the features of nodes are given, each with shape (A, ...).

    Attributes:
        state: Final states of the nodes.
        degree: Their degrees in the skeleton, with shape :math:`(A,)`.
        statistics: Those of earlier nodes and neighbours (:func:`feature_statistics`), with shape
            :math:`(A, 4 C + 2)`.
        own: The standardised features of the nodes, of which each column reads those before it, :math:`(A, C)`.
    """

    state: Tensor
    degree: Tensor
    statistics: Tensor
    own: Tensor


def feature_statistics(values: Tensor, weights: Tensor) -> Tensor:
    """Means and mean squares of standardised features over some earlier nodes, and the logarithm of their number.

    Arguments:
        values: Features of the earlier nodes, with shape :math:`(*, T, C)`.
        weights: One for nodes that count and zero for others, with shape :math:`(*, A, T)`.

    Returns:
        A tensor of shape :math:`(*, A, 2 C + 1)`.
    """
    weights, values = weights.to(values), values.clamp(-MOST_READ, MOST_READ)
    counts = weights.sum(-1, keepdim=True)
    sums = weights @ torch.cat([values, values.square()], -1)

    return torch.cat([sums / counts.clamp_min(1), counts.log1p()], -1)


def pair_features(source: Tensor, target: Tensor) -> Tensor:
    """What the weight of an arc reads of the standardised features (A, C) of its ends, with shape (A, 3 C)."""
    source, target = (values.clamp(-MOST_READ, MOST_READ) for values in (source, target))

    return torch.cat([source, target, (source - target).abs()], -1)


class FeatureHead(nn.Module):
    """The densities of node features, or the probabilities of whole ones: mixtures of :mod:`.densities`."""

    location: Tensor
    scale: Tensor

    def __init__(self, kinds: tuple[str, ...], width: int) -> None:
        super().__init__()

        self.kinds, columns = kinds, len(kinds)
        self.state = nn.Linear(width, width)
        self.degree = nn.Embedding(MOST_DEGREE + 1, width)
        self.log_degree = nn.Linear(1, width, bias=False)
        self.statistics = nn.Linear(4 * columns + 2, width, bias=False)
        self.previous = nn.Linear(columns, width, bias=False)
        self.column = nn.Embedding(columns, width)
        self.hidden, self.out = nn.Linear(width, width), nn.Linear(width, 3 * COMPONENTS)
        # Linear effects on means: of the columns before, and of neighbours and earlier nodes.
        self.direct = nn.Parameter(torch.zeros(columns, 5 * columns + 2))
        nn.init.normal_(self.degree.weight, std=0.1)
        nn.init.normal_(self.column.weight, std=0.5)
        # Components start apart from each other, around the mean of all values.
        with torch.no_grad():
            self.out.weight.mul_(0.1)
            self.out.bias.zero_()
            self.out.bias[COMPONENTS : 2 * COMPONENTS] = torch.linspace(-1.5, 1.5, COMPONENTS)
        for name, value in (("location", 0.0), ("scale", 1.0)):
            self.register_buffer(name, torch.full((columns,), value, dtype=torch.float64))

    def standardise_like(self, values: Tensor) -> None:
        """Set locations and scales to those of the training graphs, given all nodes, with shape :math:`(A, C)`."""
        location, scale = location_and_scale(self._unscaled(values.double()))
        self.location.copy_(location)
        self.scale.copy_(scale)

    def _unscaled(self, values: Tensor) -> Tensor:
        return torch.stack([unscaled(kind, values[..., c]) for c, kind in enumerate(self.kinds)], -1)

    def standardised(self, values: Tensor) -> Tensor:
        """Standardised features, as those of later columns and nodes read them."""
        return (self._unscaled(values.double()) - self.location) / self.scale

    def _mixture(self, inputs: FeatureInputs, at: slice = slice(None)) -> Mixture:
        """The components of some columns, each with shape :math:`(A, C, K)`."""
        statistics, state = inputs.statistics.to(inputs.state), inputs.state
        own = inputs.own.clamp(-MOST_READ, MOST_READ).to(state)
        degree = inputs.degree.unsqueeze(-1).to(state).log1p()
        # Column c reads those before it: prefix sums of their contributions.
        before = (self.previous.weight.T * own.unsqueeze(-1)).cumsum(-2)
        before = F.pad(before, (0, 0, 1, 0))[..., :-1, :][..., at, :]
        of_node = self.state(state) + self.degree(inputs.degree.clamp(max=MOST_DEGREE)) + self.log_degree(degree)
        of_node = of_node + self.statistics(statistics)
        hidden = of_node.unsqueeze(-2) + before + self.column.weight[at]
        logits, mean, log_std = self.out(F.silu(self.hidden(F.silu(hidden)))).chunk(3, -1)
        columns = len(self.kinds)
        of_own, of_others = self.direct[:, :columns].tril(-1)[at], self.direct[at, columns:]
        shift = F.linear(own, of_own) + F.linear(statistics, of_others)

        return mixture(logits, mean + shift.unsqueeze(-1), log_std)

    def log_prob(self, inputs: FeatureInputs, values: Tensor) -> Tensor:
        """The log-density of features, or the log-probability of whole ones, with shape :math:`(A, C)`."""
        return self._log_prob(values, self._mixture(inputs))

    def baseline(self, values: Tensor) -> Tensor:
        """The same under one standard normal distribution of every standardised column."""
        zero = torch.zeros(*values.shape, 1, dtype=torch.float64, device=values.device)

        return self._log_prob(values, (zero, zero, zero + 1))

    def _log_prob(self, values: Tensor, components: Mixture) -> Tensor:
        terms = [
            mixture_log_prob(kind, self.location[c], self.scale[c], values[..., c], _of_column(components, c))
            for c, kind in enumerate(self.kinds)
        ]

        return torch.stack(terms, -1)

    def sample(
        self, state: Tensor, degree: Tensor, statistics: Tensor, uniform: Tensor, normal: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Features of nodes, column after column, from noise of shape (A, C); also return standardised ones."""
        values = torch.zeros(len(state), len(self.kinds), dtype=torch.float64, device=state.device)
        own = torch.zeros_like(values)
        for c, kind in enumerate(self.kinds):
            components = self._mixture(FeatureInputs(state, degree, statistics, own), slice(c, c + 1))
            scale, noise = (self.location[c], self.scale[c]), (uniform[:, c], normal[:, c])
            values[:, c] = drawn = sample_mixture(kind, *scale, _of_column(components, 0), *noise)
            own[:, c] = (unscaled(kind, drawn) - self.location[c]) / self.scale[c]

        return values, own


def _of_column(components: Mixture, column: int) -> Mixture:
    log_weight, mean, std = (part[..., column, :] for part in components)

    return log_weight, mean, std
