"""Sampling from the prior through the iterative decoder, as a stream."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..batch import node_mask
from ..checkpoint import TrainedModel
from ..components import are_connected, largest_component
from ..errors import SamplingError
from ..graph import SimpleGraph
from ..schedule import Schedule
from ..seeding import stream

__all__ = ["Sampler"]

# Graphs are drawn in blocks of fixed size with a random stream each: graph i is the same graph however many are
# asked for and whoever draws its block. A block is halved while its padded cells pass the budget.
BLOCK = 128
BLOCK_CELLS = 1 << 23
MAX_ATTEMPTS = 1000


class Sampler:
    """Draws graphs one after another.

    Iterating gives the graphs; ``drawn`` and ``kept`` then say how many were rejected.
    """

    def __init__(
        self,
        model: TrainedModel,
        count: int,
        *,
        nodes: int | tuple[int, int] | None = None,
        seed: int = 0,
        connected: bool = False,
        largest: bool = False,
        latents: bool = False,
        evidence: Sequence[SimpleGraph] = (),
        stages: int | None = None,
    ) -> None:
        """Prepare to draw.

        Arguments:
            model: A variational model.
            count: How many graphs.
            nodes: Their number of nodes, or a range to draw it from uniformly; None for the sizes of the training
                graphs.
            seed: The run's seed.
            connected: Draw again until a graph is connected.
            largest: Keep the largest component of each graph.
            latents: Keep each node's latents as node attributes ``z0``, ``z1``, ….
            evidence: Graphs whose node features condition the model, used in turn.
            stages: In how many stages a staged model decides, 0 for one pair at a time; None for the model's default.

        Raises:
            SamplingError: The model cannot be sampled as asked.
        """
        self.model = model
        self.count = count
        self.seed = seed
        self.connected = connected
        self.largest = largest
        self.latents = latents
        self.evidence = evidence
        self.schedule = Schedule(model.config.stages if stages is None else stages)
        self.drawn = 0
        self.kept = 0
        self._range = _node_range(nodes)
        self._check()

    def _check(self) -> None:
        config = self.model.config
        if not config.is_variational:
            raise SamplingError(
                f"'{self.model.name}' is a {config.kind}: an autoencoder has no prior to sample from. "
                f"Train with '--kind graphite-vae'."
            )
        if not config.is_staged and self.schedule.stages != 1:
            raise SamplingError(
                f"'{self.model.name}' decides all pairs at once, so stages have no use. "
                f"Use a staged model: 'graphite-gen train' without '--preset one-shot'."
            )
        if config.node_features and not self.evidence:
            raise SamplingError(
                f"'{self.model.name}' draws edges given {config.node_features} node features. "
                f"Pass graphs that have them with '--features FILE' (in Python, features=graphs)."
            )
        widths = {0 if graph.features is None else graph.features.shape[1] for graph in self.evidence}
        if widths and widths != {config.node_features}:
            raise SamplingError(
                f"The features given have width {sorted(widths)}, but '{self.model.name}' was trained with "
                f"{config.node_features}. Pass graphs like those it was trained on."
            )
        if self.count < 0:
            raise SamplingError(f"{self.count} graphs were asked for. Ask for at least 0.")
        if self._range and not 1 <= self._range[0] <= self._range[1]:
            raise SamplingError(
                f"Graphs on {self._range[0]} to {self._range[1]} nodes were asked for. "
                f"Pass at least 1, the smaller number first."
            )
        identity = "identity" in config.decoder_features
        if identity and self._most_nodes() > config.max_nodes:
            raise SamplingError(
                f"{self._most_nodes()} nodes were asked for, but '{self.model.name}' tells nodes apart by number and "
                f"knows {config.max_nodes} of them. Ask for fewer, or train with '--preset default'."
            )

    def _most_nodes(self) -> int:
        if self.evidence:
            return max(graph.nodes for graph in self.evidence)
        return self._range[1] if self._range else self.model.sizes.largest

    def __iter__(self) -> Iterator[SimpleGraph]:
        self.drawn = self.kept = 0
        block = BLOCK
        while block > 1 and block * self._most_nodes() ** 2 > BLOCK_CELLS:
            block //= 2
        for number in range(-(-self.count // block)):
            yield from self._block(number, block)[: self.count - number * block]

    def _sizes(self, number: int, block: int) -> NDArray[np.int64]:
        if self.evidence:
            return np.array([self._evidence(number * block + row).nodes for row in range(block)])
        rng = stream(self.seed, "sizes", number)
        if self._range:
            return rng.integers(self._range[0], self._range[1], size=block, endpoint=True)
        return self.model.sizes.sample(block, rng)

    def _evidence(self, index: int) -> SimpleGraph:
        return self.evidence[index % len(self.evidence)]

    def _block(self, number: int, block: int) -> list[SimpleGraph]:
        """The graphs of one block, drawn again where they must be connected and are not."""
        sizes = self._sizes(number, block)
        graphs: list[SimpleGraph | None] = [None] * block
        # Rows beyond the count are drawn to keep the block's stream, but never tried again.
        wanted = min(block, self.count - number * block)
        rows = np.arange(block)
        for attempt in range(MAX_ATTEMPTS):
            drawn = self._draw(number, attempt, sizes, rows, block)
            accepted = are_connected(drawn) if self.connected else np.ones(len(rows), dtype=np.bool_)
            for row, graph, accept in zip(rows.tolist(), drawn, accepted.tolist(), strict=True):
                if accept:
                    graphs[row] = graph
            self.drawn += int((rows < wanted).sum())
            self.kept += int((rows[accepted] < wanted).sum())
            rows = rows[~accepted]
            rows = rows[rows < wanted]
            if not len(rows):
                return [graph for graph in graphs[:wanted] if graph is not None]
        raise SamplingError(
            f"No connected graph on {sizes[rows[0]]} nodes in {MAX_ATTEMPTS} draws "
            f"({self.kept} of {self.drawn} draws were connected). Use '--largest-component', or other '--nodes'."
        )

    @torch.no_grad()
    def _draw(
        self, number: int, attempt: int, sizes: NDArray[np.int64], rows: NDArray[np.int64], block: int
    ) -> list[SimpleGraph]:
        """Draw the graphs of some rows of a block, once."""
        config, device = self.model.config, self.model.device
        most = self._most_nodes()
        rng = stream(self.seed, "sample", number, attempt)
        noise = rng.standard_normal((block, most, config.latent), dtype=np.float32)[rows]
        uniform = rng.random((block, most, most), dtype=np.float32)[rows]

        mask = node_mask(torch.from_numpy(sizes[rows]), most).to(device)
        z = self.model.network.prior(mask).sample(torch.from_numpy(noise).to(device))
        x = self._features(number * block + rows, most).to(z)
        if config.is_staged:
            keys = rng.random((block, most))[rows] + 2 * (np.arange(most) >= sizes[rows, None])
            adj = self._grow(z, x, sizes[rows], np.argsort(keys, axis=1), uniform)
        else:
            law = self.model.network.decode(z, x, mask)
            adj = law.sample(torch.from_numpy(uniform).to(device)).cpu().numpy()

        graphs = _split(adj, sizes[rows], weighted=config.observation == "normal")
        if config.node_features or self.latents:
            graphs = [
                self._with_node_data(graph, row, index)
                for graph, row, index in zip(graphs, z.cpu().numpy(), number * block + rows, strict=True)
            ]

        return [largest_component(graph) for graph in graphs] if self.largest else graphs

    def _grow(
        self, z: Tensor, x: Tensor, sizes: NDArray[np.int64], orders: NDArray[np.int64], uniform: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Grow graphs whose nodes arrive in random orders, so that their numbers say nothing of it."""
        rows = torch.arange(len(z), device=z.device).unsqueeze(-1)
        order = torch.from_numpy(orders).to(z.device)
        law = self.model.network.grow(
            z[rows, order], x[rows, order], torch.from_numpy(sizes).to(z.device), self.schedule
        )
        grown = law.sample(torch.from_numpy(uniform).to(z.device))
        place = order.argsort(-1)

        return grown[rows.unsqueeze(-1), place.unsqueeze(-1), place.unsqueeze(-2)].cpu().numpy()

    def _features(self, indices: NDArray[np.int64], most: int) -> Tensor:
        width = self.model.config.node_features
        x = torch.zeros(len(indices), most, width)
        if width:
            for row, index in zip(x, indices.tolist(), strict=True):
                features = self._evidence(index).features
                assert features is not None
                row[: len(features)] = torch.from_numpy(features)

        return x

    def _with_node_data(self, graph: SimpleGraph, z: NDArray[np.float32], index: int) -> SimpleGraph:
        columns = {f"z{d}": z[: graph.nodes, d].tolist() for d in range(z.shape[1])} if self.latents else {}
        features = self._evidence(index).features if self.evidence else None

        return SimpleGraph(graph.nodes, graph.edges, graph.weights, features, node_attributes=columns)


def _node_range(nodes: int | tuple[int, int] | None) -> tuple[int, int] | None:
    """The smallest and the largest number of nodes, whichever way and with whichever integers it was said."""
    if nodes is None:
        return None
    try:
        low, high = nodes if isinstance(nodes, tuple | list) else (nodes, nodes)
        return operator.index(low), operator.index(high)
    except (TypeError, ValueError) as error:
        raise SamplingError(
            f"'nodes' is {nodes!r}; it should be a number such as 15 or a pair such as (10, 20)."
        ) from error


def _split(adj: NDArray[np.float32], sizes: NDArray[np.int64], weighted: bool) -> list[SimpleGraph]:
    """The graphs of symmetric matrices, with shape :math:`(B, N, N)`."""
    b, i, j = np.nonzero(np.triu(adj, 1))
    edges = np.stack([i, j], axis=1).astype(np.int32)
    ends = np.cumsum(np.bincount(b, minlength=len(adj))).tolist()
    starts = [0, *ends[:-1]]
    if not weighted:
        return [
            SimpleGraph(size, edges[start:end]) for size, start, end in zip(sizes.tolist(), starts, ends, strict=True)
        ]
    weights = adj[b, i, j].astype(np.float64)

    return [
        SimpleGraph(size, edges[start:end], weights[start:end])
        for size, start, end in zip(sizes.tolist(), starts, ends, strict=True)
    ]
