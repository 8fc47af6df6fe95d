"""Generation of graphs like one observed network, of the same or another size."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..config import require_count, require_range
from ..data.properties import largest_component
from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..errors import SamplingError
from ..graph import SimpleGraph
from ..nn.distributions import NodeNormal
from ..records import Provenance, count_of
from ..rng import derive_seed, seed_or_new, stream
from .autoencoder import PairDecoder
from .calibration import density_shift, fit_biases
from .degree_matching import match_degrees
from .edge_sampler import BlockTree, sample_edges
from .hyperparameters import GENERATION, LARGE_GENERATION, LinkSettings
from .lift import lift
from .link_prediction import train_on_all
from .lookalikes import rewire
from .network import Network
from .pair_logits import PairLogits
from .reconnection import component_sizes
from .rewiring import Observed

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["NOVELTY", "NetworkModel", "fit_network_model", "generation_settings", "sample_networks"]

NOVELTY = 0.8
"""The default least proportion of edges that are not copied from the observed network."""

# Iterations of the degree calibration; for more than MOST_NODES nodes visiting all pairs that often is too slow.
ROUNDS = 12
MOST_NODES = 50_000
# The largest fraction of the present nodes that a node is calibrated to have as neighbours.
MOST_ADJACENT = 0.95
# The density is calibrated for this many copies, or copies of this many nodes; the others use their mean shift.
SHIFTS, SHIFTED_NODES = 4, 50_000
# Nodes in a block of similar nodes, whose free ends of edges are joined.
_BLOCK = 8


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """A generative model of one network: the posterior of its nodes and a decoder.

    Attributes:
        settings: The model and its training.
        posterior: The posterior of the observed nodes, with shape :math:`(N, D)`.
        evidence: Node features of the decoder, with shape :math:`(N, W)`; a key of saved models.
        degrees: The observed degrees, with shape :math:`(N,)`.
        biases: Biases of the logits that reproduce these degrees, with shape :math:`(N,)`.
        provenance: The source of the network.
        pairs: The observed edges i < j, with shape :math:`(2, E)`; None in models saved by earlier versions, whose
            samples have independent edges.
    """

    name: str
    settings: LinkSettings
    decoder: PairDecoder
    posterior: NodeNormal
    evidence: Tensor
    degrees: Tensor
    biases: Tensor
    seed: int
    provenance: Provenance
    pairs: Tensor | None = None
    # Biases for a fraction 2**-k of the nodes, by k.
    _fraction_biases: dict[int, Tensor] = field(default_factory=dict, init=False, repr=False)

    def __repr__(self) -> str:
        graph = f"{count_of(self.nodes, 'node')}, {count_of(self.edges, 'edge')}"

        return f"NetworkModel('{self.name}', {self.settings.kind}, {graph})"

    @property
    def nodes(self) -> int:
        """The number of nodes of the observed network."""
        return len(self.degrees)

    @property
    def edges(self) -> int:
        """The number of its edges."""
        return int(self.degrees.sum()) // 2

    @property
    def mean_degree(self) -> float:
        """The mean degree of the observed network, and of the generated graphs."""
        return 2 * self.edges / self.nodes

    @torch.no_grad()
    def draw(self, generator: torch.Generator, like: Tensor | None = None) -> tuple[Tensor, PairLogits]:
        """Sample latents, with shape :math:`(n, D)`, and decode them to log-odds of pairs, without the biases.

        ``like`` has the observed node whose posterior each new node uses, :math:`(n,)`; None for all in order.
        """
        each = torch.arange(self.nodes) if like is None else like
        z = self.posterior.mu[each]
        if self.settings.is_variational:
            noise = torch.randn(z.shape, generator=generator, dtype=z.dtype)
            z = z + self.posterior.sigma[each] * noise

        return z, self.decoder(z, self.evidence[each])

    def biases_for(self, nodes: int) -> Tensor:
        """Biases of the observed nodes in a graph of another size (at least 2), with shape :math:`(N,)`.

        With fewer nodes, each must be adjacent to a larger fraction of them to keep its degree. Calibration visits all
        pairs many times, so it is done for fractions 1/2, 1/4, … of the nodes only. In between, biases are interpolated
        in the logarithm of the size, in which they are linear as long as edges are rare.
        """
        if nodes == self.nodes or self.nodes > MOST_NODES:
            return self.biases
        power = math.log2((self.nodes - 1) / (nodes - 1))
        low = math.floor(power)

        return torch.lerp(self._biases_of_fraction(low), self._biases_of_fraction(math.ceil(power)), power - low)

    def _biases_of_fraction(self, power: int) -> Tensor:
        if power and power not in self._fraction_biases:
            self._fraction_biases[power] = self._fit_biases(0.5**power)

        return self._fraction_biases[power] if power else self.biases

    def _fit_biases(self, fraction: float = 1.0) -> Tensor:
        generator = torch.Generator().manual_seed(derive_seed(self.seed, "biases"))
        degrees = self.degrees
        if fraction < 1:
            # The bias of a node that is adjacent to all others is infinite.
            degrees = degrees.clamp_max(MOST_ADJACENT * fraction * (self.nodes - 1))

        return fit_biases((self.draw(generator)[1] for _ in range(ROUNDS)), degrees, fraction)

    def sample(
        self,
        count: int,
        *,
        nodes: int | tuple[int, int] | None = None,
        seed: int | None = None,
        largest_component: bool = False,
        with_latents: bool = False,
        novelty: float | None = None,
    ) -> list[nx.Graph]:
        """Sample graphs that resemble the observed network, by default of its size, as networkx graphs.

        The arguments are those of :meth:`graphite_gen.Model.sample`, and ``novelty``, the least proportion of edges
        that are not copied from the observed network. An edge is copied if its ends are copies of adjacent nodes; node
        i is a copy of node i in samples of the same size. The graph attribute ``copied_edges`` has the proportion of
        copied edges, which is larger if the degrees leave no other choice, as in a complete graph.

        Raises:
            SamplingError: The mean degree is impossible for so few nodes, or the model has no edges to compare with.
        """
        how: dict[str, Any] = {"nodes": nodes, "largest": largest_component, "latents": with_latents}
        how["novelty"] = novelty
        graphs = sample_networks(self, count, seed=seed_or_new(seed), **how)

        return [graph.to_networkx() for graph in graphs]


def generation_settings(nodes: int) -> LinkSettings:
    """The default settings of a model of a network with so many nodes."""
    return GENERATION if nodes <= MOST_NODES else LARGE_GENERATION


def fit_network_model(
    graph: Network,
    settings: LinkSettings | None = None,
    *,
    name: str = "model",
    seed: int = 0,
    provenance: Provenance | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> NetworkModel:
    """Train a generative model of a network from its edges; node features are not used."""
    settings = settings or generation_settings(graph.nodes)
    trained = train_on_all(graph, settings, seed, features=False, progress=progress)
    with torch.no_grad():
        posterior = trained.network.encode(trained.graph, trained.inputs)
        evidence = trained.inputs @ trained.network.evidence
    degrees = torch.from_numpy(graph.graph.degrees()).to(posterior.mu)
    model = NetworkModel(
        name,
        settings,
        trained.network.decoder.requires_grad_(False),
        NodeNormal(posterior.mu, posterior.log_sigma.expand_as(posterior.mu).contiguous(), posterior.mask),
        evidence,
        degrees,
        torch.zeros_like(degrees),
        seed,
        provenance or Provenance(),
        torch.from_numpy(graph.edges.T.astype(np.int64)),
    )

    return model if model.nodes > MOST_NODES else replace(model, biases=model._fit_biases())


def sample_networks(
    model: NetworkModel,
    count: int,
    *,
    nodes: int | tuple[int, int] | None = None,
    seed: int = 0,
    largest: bool = False,
    latents: bool = False,
    novelty: float | None = None,
    group: ProcessGroup = SINGLE_PROCESS,
) -> Iterator[SimpleGraph]:
    """Graphs from a model of one network; see :meth:`NetworkModel.sample` for the arguments.

    The processes of a group share the work, and rank 0 gets all graphs.
    """
    low, high = nodes if isinstance(nodes, tuple) else (model.nodes if nodes is None else nodes,) * 2
    for size in (low, high):
        require_count("nodes", size, 1)
    if count < 0 or low > high:
        raise SamplingError(f"The request is for {count} graphs of {low} to {high} nodes; sizes start at 1.")
    if low - 1 < model.mean_degree:
        raise SamplingError(
            f"The mean degree of '{model.name}' is {model.mean_degree:.3g}, which is impossible with {low} nodes: "
            f"use at least {int(np.ceil(model.mean_degree)) + 1}."
        )
    if novelty is not None:
        require_range("novelty", novelty, 0, 1)
    if model.pairs is None and novelty is not None:
        raise SamplingError(
            f"'{model.name}' was saved without the edges of its network, so copied edges are not known.",
            reason="no-observed-edges",
        )
    bound = 1 - (NOVELTY if novelty is None else novelty)
    observed = None if model.pairs is None else Observed.of(model.pairs.numpy(), model.nodes)

    def draw(index: int) -> SimpleGraph:
        rng = stream(seed, "graph", index)
        generator = torch.Generator().manual_seed(derive_seed(seed, "latents", index))
        graph = _sample_network(model, int(rng.integers(low, high + 1)), generator, rng, latents, observed, bound)
        return largest_component(graph) if largest else graph

    return group.gather_in_order(count, draw)


def _sample_network(
    model: NetworkModel,
    nodes: int,
    generator: torch.Generator,
    rng: np.random.Generator,
    with_latents: bool,
    observed: Observed | None,
    bound: float,
) -> SimpleGraph:
    # Nodes of a copy have distinct originals, since no edge between copies of one node was observed; unless copies
    # would then be so small that the mean degree exceeds half of their nodes.
    count = -(-nodes // model.nodes)
    while count > 1 and nodes // count < model.nodes and nodes // count - 1 < 2 * model.mean_degree:
        count -= 1
    sizes = [(nodes + place) // count for place in range(count)]
    latents, decoded, originals, copies = zip(*_copies(model, sizes, generator, rng), strict=True)
    edges = lift(originals, copies, rng)
    attributes = {}
    if observed is not None:
        like, logits = np.concatenate(originals), _joined(decoded)
        if nodes != model.nodes:
            edges = _with_degrees_of(model, edges, like, logits, rng)
        edges, copied = rewire(edges, logits, like, observed, _expected_sizes(model, nodes), bound, rng)
        attributes = {"copied_edges": round(copied, 6)}
    columns = {f"z{k}": column.tolist() for k, column in enumerate(torch.cat(latents).T)} if with_latents else {}

    return SimpleGraph(
        nodes, np.ascontiguousarray(edges.T, dtype=np.int32), node_attributes=columns, attributes=attributes
    )


def _copies(
    model: NetworkModel, sizes: list[int], generator: torch.Generator, rng: np.random.Generator
) -> Iterator[tuple[Tensor, PairLogits, NDArray[np.int64], NDArray[np.int64]]]:
    """Latents, logits, originals and edges of each copy; its nodes have distinct originals as far as possible.

    The edges of a copy of all nodes are those of the network, if they are known: swaps replace them later.
    """
    shifts: list[float] = []
    for nodes in sizes:
        like = torch.arange(nodes)
        if nodes != model.nodes:
            rounds = -(-nodes // model.nodes)
            like = torch.cat([torch.randperm(model.nodes, generator=generator) for _ in range(rounds)])[:nodes]
        z, logits = model.draw(generator, like)
        if model.pairs is not None and nodes == model.nodes:
            yield z, logits, like.numpy(), model.pairs.numpy()
            continue
        logits = replace(logits, bias=logits.bias + model.biases_for(nodes)[like])
        # Sizes differ by at most one, so the mean shift of some copies fits the others.
        if len(shifts) < max(SHIFTS, SHIFTED_NODES // nodes):
            shifts.append(density_shift(logits, model.mean_degree * nodes / 2, rng))
            shift = shifts[-1]
        else:
            shift = sum(shifts) / len(shifts)
        yield z, logits, like.numpy(), sample_edges(replace(logits, shift=logits.shift + shift), rng)


def _joined(parts: tuple[PairLogits, ...]) -> PairLogits:
    """The logits of all copies, also of pairs of nodes in different ones."""
    return replace(parts[0], factor=torch.cat([p.factor for p in parts]), bias=torch.cat([p.bias for p in parts]))


def _with_degrees_of(
    model: NetworkModel, edges: NDArray[np.int64], like: NDArray[np.int64], logits: PairLogits, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Edges with which each node has the degree of its original, as far as possible."""
    degrees = np.minimum(model.degrees.numpy().astype(np.int64)[like], len(like) - 1)
    if degrees.sum() % 2:
        several = np.flatnonzero(degrees > 1)
        node = rng.choice(several if len(several) else np.flatnonzero(degrees))
        degrees[node] += 1 if rng.random() < 0.5 and degrees[node] < len(like) - 1 else -1
    places = BlockTree.of(logits, _BLOCK).nodes
    order = np.empty(len(places), dtype=np.int64)
    order[places] = np.arange(len(places))

    return match_degrees(edges, degrees, order[: len(like)], rng)


def _expected_sizes(model: NetworkModel, nodes: int) -> Counter[int]:
    """The numbers of components by size in a graph of so many nodes, without the largest."""
    assert model.pairs is not None
    found = Counter(component_sizes(model.pairs.numpy(), model.nodes)[1:].tolist())
    if nodes == model.nodes:
        return found

    return Counter({size: round(count * nodes / model.nodes) for size, count in found.items()})
