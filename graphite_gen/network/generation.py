"""New graphs that resemble one large graph, of its size or another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ..config import require_count
from ..data.properties import largest_component
from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..errors import SamplingError
from ..graph import SimpleGraph
from ..nn.distributions import NodeNormal
from ..records import Provenance, so_many
from ..rng import derive_seed, stream
from .autoencoder import PairDecoder
from .calibration import density_shift, fit_biases
from .edge_sampler import sample_edges
from .lift import Copy, lift
from .link_prediction import train_on_all
from .network import Network
from .pair_logits import PairLogits
from .settings import GENERATION, LinkSettings

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["LargeGraphSampler", "NetworkModel", "fit_network_model"]

# Rounds in which degrees settle; of more nodes than that, all pairs would take too long to visit so often.
ROUNDS = 12
MOST_NODES = 50_000
# Among a part of the nodes, a node is fitted to be tied to no more of them than this.
MOST_TIED = 0.95
# So many copies, or those of so many nodes, have their density fitted; the others share what these need.
SHIFTS, SHIFTED_NODES = 4, 50_000


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """What was learned from one graph: its nodes, and a decoder that makes graphs of such nodes.

    Attributes:
        name: What to call it.
        settings: The model and its training.
        decoder: The decoder.
        posterior: The latents of the observed nodes, with shape :math:`(N, D)`.
        evidence: What the decoder is told of them besides, with shape :math:`(N, W)`.
        degrees: Their observed degrees, with shape :math:`(N,)`.
        biases: What is added to their logits for them to have these degrees again, with shape :math:`(N,)`.
        seed: The seed of the training.
        provenance: Where the graph comes from.
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
    # The biases where one over two to some power of the nodes are there, by that power.
    _of_parts: dict[int, Tensor] = field(default_factory=dict, init=False, repr=False)

    def __repr__(self) -> str:
        graph = f"{so_many(self.nodes, 'node')}, {so_many(self.edges, 'edge')}"

        return f"SingleGraphModel('{self.name}', {self.settings.kind}, {graph})"

    @property
    def nodes(self) -> int:
        """The number of nodes of the observed graph."""
        return len(self.degrees)

    @property
    def edges(self) -> int:
        """The number of its edges."""
        return int(self.degrees.sum()) // 2

    @property
    def mean_degree(self) -> float:
        """The mean degree of its nodes, which new graphs have, too."""
        return 2 * self.edges / self.nodes

    @torch.no_grad()
    def draw(self, generator: torch.Generator, like: Tensor | None = None) -> tuple[Tensor, PairLogits]:
        """Latents of new nodes, with shape :math:`(n, D)`, and the log-odds of their pairs but for the biases.

        Arguments:
            generator: The randomness.
            like: The observed node that each takes after, with shape :math:`(n,)`; None for one each.
        """
        each = torch.arange(self.nodes) if like is None else like
        z = self.posterior.mu[each]
        if self.settings.is_variational:
            noise = torch.randn(z.shape, generator=generator, dtype=z.dtype)
            z = z + self.posterior.sigma[each] * noise
        logits: PairLogits = self.decoder(z, self.evidence[each])

        return z, logits

    def biases_for(self, nodes: int) -> Tensor:
        """The biases of the observed nodes where so many of them are there, with shape :math:`(N,)`.

        Where there are fewer, each must be tied to a larger part of them to have as many neighbours. A fit visits all
        pairs again and again, so there is one for few parts of the nodes, every one half of the one before. Between
        them biases are interpolated in the logarithm, in which they are straight lines as long as edges are rare;
        elsewhere, too, that adds little to what draws of the latents leave open.

        Arguments:
            nodes: How many, at least 2; more than all of them if some are there more than once.
        """
        if nodes == self.nodes or self.nodes > MOST_NODES:
            return self.biases
        power = math.log2((self.nodes - 1) / (nodes - 1))
        low = math.floor(power)

        return torch.lerp(self._biases_of_part(low), self._biases_of_part(math.ceil(power)), power - low)

    def _biases_of_part(self, power: int) -> Tensor:
        if power == 0:
            return self.biases
        if power not in self._of_parts:
            self._of_parts[power] = self._fit_biases(0.5**power)

        return self._of_parts[power]

    def _fit_biases(self, part: float = 1.0) -> Tensor:
        generator = torch.Generator().manual_seed(derive_seed(self.seed, "biases"))

        degrees = self.degrees
        if part < 1:
            # No node can have more neighbours than there are, and one that has nearly all of them has no bias.
            degrees = degrees.clamp_max(MOST_TIED * part * (self.nodes - 1))

        return fit_biases((self.draw(generator)[1] for _ in range(ROUNDS)), degrees, part)

    def sample(
        self,
        count: int,
        *,
        nodes: int | tuple[int, int] | None = None,
        seed: int = 0,
        largest_component: bool = False,
        with_latents: bool = False,
    ) -> list[nx.Graph]:
        """New graphs like the observed one, with its mean degree, for networkx.

        Arguments:
            count: How many.
            nodes: Their number of nodes, or a range to draw it from; None for that of the observed graph.
            seed: Graph i is the same for a seed, however many are drawn.
            largest_component: Keep the largest component of each graph.
            with_latents: Keep each node's latents as node attributes ``z0``, ``z1``, ….

        Raises:
            SamplingError: No graph is so small and has the mean degree of the observed one.
        """
        sampler = LargeGraphSampler(
            self, count, nodes=nodes, seed=seed, largest=largest_component, latents=with_latents
        )

        return [graph.to_networkx() for graph in sampler]

    def with_biases(self) -> NetworkModel:
        """The same with the biases of the observed size, unless there are too many pairs to visit."""
        return self if self.nodes > MOST_NODES else replace(self, biases=self._fit_biases())


def fit_network_model(
    graph: Network,
    settings: LinkSettings = GENERATION,
    *,
    name: str = "model",
    seed: int = 0,
    provenance: Provenance | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> NetworkModel:
    """Learn to make graphs like the one given; node features are not read.

    Arguments:
        graph: The graph, with at least one edge.
        settings: The model and its training.
        name: What to call it.
        seed: The run's one seed.
        provenance: Where the graph comes from.
        progress: Called with how many epochs are done, and how many there are.

    Raises:
        DatasetError: The graph has no edges.
        TrainingError: The objective is no number any more.
    """
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
    )

    return model.with_biases()


class LargeGraphSampler:
    """Draws graphs like the one that a model was trained on, one after another.

    Graph i is the same graph for a seed, however many are drawn.
    """

    def __init__(
        self,
        model: NetworkModel,
        count: int,
        *,
        nodes: int | tuple[int, int] | None = None,
        seed: int = 0,
        largest: bool = False,
        latents: bool = False,
        group: ProcessGroup = SINGLE_PROCESS,
    ) -> None:
        """Prepare to draw.

        Arguments:
            model: The model.
            count: How many graphs.
            nodes: Their number of nodes, or a range to draw it from uniformly; None for that of the observed graph.
            seed: The run's seed.
            largest: Keep the largest component of each graph.
            latents: Keep each node's latents as node attributes ``z0``, ``z1``, ….
            group: The processes that divide the graphs, which are gathered on rank 0.

        Raises:
            SamplingError: No graph is so small and has the mean degree of the observed one.
        """
        self.model = model
        self.count = count
        self.seed = seed
        self.largest = largest
        self.latents = latents
        self._group = group
        low, high = nodes if isinstance(nodes, tuple) else (model.nodes if nodes is None else nodes,) * 2
        for size in (low, high):
            require_count("nodes", size, 1)
        self._range = low, high
        if count < 0 or not 1 <= low <= high:
            raise SamplingError(f"{count} graphs on {low} to {high} nodes were asked for. Ask for at least 1 node.")
        if low - 1 < model.mean_degree:
            raise SamplingError(
                f"Nodes of '{model.name}' have {model.mean_degree:.3g} neighbours on average, and in a graph on {low} "
                f"nodes they cannot: ask for at least {int(np.ceil(model.mean_degree)) + 1} nodes."
            )

    def __iter__(self) -> Iterator[SimpleGraph]:
        return self._group.gather_in_order(self.count, self.graph)

    def graph(self, index: int) -> SimpleGraph:
        """Graph ``index``."""
        rng = stream(self.seed, "graph", index)
        nodes = int(rng.integers(self._range[0], self._range[1] + 1))
        generator = torch.Generator().manual_seed(derive_seed(self.seed, "latents", index))
        # No two nodes of a copy take after the same one, since nothing could be learned of whether a node is tied to
        # itself; unless so few would have to be tied to more than half of each other to have the mean degree.
        count = -(-nodes // self.model.nodes)
        while count > 1 and nodes // count < self.model.nodes and nodes // count - 1 < 2 * self.model.mean_degree:
            count -= 1
        sizes = [(nodes + place) // count for place in range(count)]
        latents, copies = zip(*self._copies(sizes, generator, rng), strict=True)
        edges = lift(copies, rng)
        columns = {f"z{k}": column.tolist() for k, column in enumerate(torch.cat(latents).T)} if self.latents else {}
        graph = SimpleGraph(nodes, np.ascontiguousarray(edges.T, dtype=np.int32), node_attributes=columns)

        return largest_component(graph) if self.largest else graph

    def _copies(
        self, sizes: list[int], generator: torch.Generator, rng: np.random.Generator
    ) -> Iterator[tuple[Tensor, Copy]]:
        """New nodes that take after observed ones, each another as long as there are any: latents and edges."""
        model = self.model
        shifts: list[float] = []
        for nodes in sizes:
            like = torch.arange(nodes)
            if nodes != model.nodes:
                rounds = -(-nodes // model.nodes)
                like = torch.cat([torch.randperm(model.nodes, generator=generator) for _ in range(rounds)])[:nodes]
            z, logits = model.draw(generator, like)
            logits = replace(logits, bias=logits.bias + model.biases_for(nodes)[like])
            # What many draws need is what the others need on average: sizes differ by one at most.
            if len(shifts) < max(SHIFTS, SHIFTED_NODES // nodes):
                shifts.append(density_shift(logits, model.mean_degree * nodes / 2, rng))
                shift = shifts[-1]
            else:
                shift = sum(shifts) / len(shifts)
            yield z, Copy(like.numpy(), sample_edges(replace(logits, shift=logits.shift + shift), rng))
