"""Sampling from the prior through the iterative decoder, as a stream."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..autoregressive.distribution import DRAWN_CELLS, Schedule
from ..data.batch import node_mask
from ..data.properties import largest_component
from ..data.sizes import SizeDistribution
from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..errors import SamplingError
from ..graph import SimpleGraph
from ..memory import check_memory
from ..nn.distributions import EdgeBernoulli
from ..rng import stream
from ..training.checkpoint import TrainedModel
from .conditional import draw_held, exact_draw
from .constraints import AllOf, Connected, Constraint
from .permutation import Arrival
from .requirements import Demands

__all__ = ["Sampler"]

# Graphs are drawn in blocks of fixed size with a random stream each: graph i is the same graph however many are
# asked for and whoever draws its block. A block is halved while its padded cells pass the budget.
BLOCK = 128
BLOCK_CELLS = 1 << 23
# The most blocks drawn at once, each with matrices of its own, however many threads there are.
AT_ONCE = 8
# Bytes per cell of all that is at work at once, as measured: a staged model has many matrices, on some graphs of a
# block at a time; others have few, on all of them. Random numbers are those of a whole block, however few are drawn.
AUTOREGRESSIVE_BYTES = 900
ONE_SHOT_BYTES = 24
RANDOM_BYTES = 4
# Where at least this part of a block's first graphs do what they must, the rest is drawn again so many times before it
# is made to. Those first graphs are drawn even if fewer are asked for: what becomes of a graph may not depend on that.
COMMON = 0.05
FIRST = 16
MAX_REDRAWS = 50
# So many draws in a row that were held to what they must be, and are not, say that it is as good as impossible.
IN_VAIN = 200


class Sampler:
    """Draws graphs one after another.

    Iterating gives the graphs. What must hold of them is first waited for: plain draws that do it follow exactly the
    model's law given that they do. Where such draws are rare, graphs are made to while their pairs are decided. Each
    graph says in its attributes ``constraints`` and ``enforced`` what held of it, and by which of these ways:

    - ``exact``: it is a plain draw.
    - ``exact given latents``: a model that decides all pairs at once drew it exactly, given latents from the prior;
      for trees, and for a number of edges.
    - ``masks``: pairs that would have broken a constraint were not asked about.

    ``drawn`` then says how many plain draws there were, ``kept`` how many of them were kept, and ``made`` how many
    graphs came by the other ways.

    On a CPU a staged model draws some blocks of graphs at once, on as many threads as ``torch.get_num_threads()`` says.
    While it does, that number is 1 for the calling thread and for threads that begin meanwhile; it is given back before
    any graph of these blocks is given, and also where a draw fails.
    """

    def __init__(
        self,
        model: TrainedModel,
        count: int,
        *,
        nodes: int | tuple[int, int] | None = None,
        seed: int = 0,
        connected: bool = False,
        constraints: Sequence[Constraint] = (),
        largest: bool = False,
        latents: bool = False,
        evidence: Sequence[SimpleGraph] = (),
        decoding_steps: int | None = None,
        group: ProcessGroup = SINGLE_PROCESS,
    ) -> None:
        """Prepare to draw.

        Arguments:
            model: A variational model.
            count: How many graphs.
            nodes: Their number of nodes, or a range to draw it from uniformly; None for the sizes of the training
                graphs.
            seed: The run's seed.
            connected: Whether ``Connected()`` is one of the constraints.
            constraints: What must hold of every graph. Sizes for which it cannot are not drawn, and the nodes of a
                staged model then arrive one at a time, in however few stages it decides otherwise.
            largest: Keep the largest component of each graph.
            latents: Keep each node's latents as node attributes ``z0``, ``z1``, ….
            evidence: Graphs whose node features condition the model, used in turn.
            stages: In how many stages a staged model decides, 0 for one pair at a time; None for the model's default.
            group: The processes that divide the blocks; graphs and counts are gathered on rank 0.

        Raises:
            SamplingError: The model cannot be sampled as asked, or no graph does what it must.
        """
        self.model = model
        self.count = count
        self.seed = seed
        self.constraint = AllOf((*constraints, Connected()) if connected else tuple(constraints))
        self.largest = largest
        self.latents = latents
        self.evidence = evidence
        self.schedule = Schedule(model.config.decoding_steps if decoding_steps is None else decoding_steps)
        self.drawn = self.kept = self.made = 0
        self._group = group
        self._range = _node_range(self.constraint.nodes if nodes is None and not evidence else nodes)
        self._check()
        self._demands: dict[int, Demands] = {}
        self._possible = self._possible_sizes()
        if self.constraint.constraints and self.schedule.decoding_steps:
            self.schedule = Schedule(max(self.schedule.decoding_steps, self._most_nodes()))

    def _check(self) -> None:
        config = self.model.config
        if not config.is_variational:
            raise SamplingError(
                f"'{self.model.name}' is a {config.kind}: an autoencoder has no prior to sample from. "
                f"Train with '--kind graphite-vae'."
            )
        if not config.is_autoregressive and self.schedule.decoding_steps != 1:
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
        self._check_memory()
        identity = "identity" in config.decoder_features
        if identity and self._most_nodes() > config.max_nodes:
            raise SamplingError(
                f"{self._most_nodes()} nodes were asked for, but '{self.model.name}' tells nodes apart by number and "
                f"knows {config.max_nodes} of them. Ask for fewer, or train with '--preset default'."
            )

        constrained = self.constraint.constraints
        if constrained and self.largest:
            raise SamplingError(
                f"What is cut out of a graph need not be '{self.constraint.label}' as the graph is. "
                f"Ask for the largest component or for constraints, not for both."
            )
        if config.observation == "normal" and any(not isinstance(part, Connected) for part in constrained):
            raise SamplingError(
                f"'{self.model.name}' draws a weight for every pair, so its graphs are complete and never "
                f"'{self.constraint.label}'. Train with '--ignore-weights'."
            )

    def _check_memory(self) -> None:
        """Refuse graphs whose matrices over all pairs of nodes cannot fit."""
        if self.model.device.type != "cpu" or not self.count:
            return
        shared = self._group.world_size > 1
        most, workers = self._most_nodes(), self._group.local_world_size if shared else self._workers()
        block = self._block_size()
        drawn = min(block, self.count) * most**2
        needed = block * most**2 * RANDOM_BYTES + drawn * ONE_SHOT_BYTES
        if self.model.config.is_autoregressive:
            needed += max(most**2, min(drawn, DRAWN_CELLS)) * AUTOREGRESSIVE_BYTES
        fewer = "" if workers == 1 else ", or use fewer processes" if shared else ", or pass '--threads 1'"
        what = f"Drawing graphs on {most} nodes from '{self.model.name}', with matrices over all pairs of nodes,"
        check_memory(needed * workers, what, f"Ask for fewer nodes with '--nodes'{fewer}.", SamplingError)

    def _block_size(self) -> int:
        """How many graphs are drawn together."""
        block = BLOCK
        while block > 1 and block * self._most_nodes() ** 2 > BLOCK_CELLS:
            block //= 2

        return block

    def _possible_sizes(self) -> list[int]:
        """The sizes in question for which nothing speaks against the constraints."""
        if self.evidence:
            sizes = sorted({graph.nodes for graph in self.evidence})
        else:
            sizes = list(range(self._range[0], self._range[1] + 1)) if self._range else list(self.model.sizes.graphs)
        if not self.constraint.constraints:
            return sizes
        possible = [size for size in sizes if self.constraint.obstacle(size) is None]
        if not possible or (self.evidence and len(possible) < len(sizes)):
            size = next(size for size in sizes if size not in possible)
            others = f", nor on any of {len(sizes)} sizes up to {sizes[-1]}" if len(sizes) > 1 and not possible else ""
            raise SamplingError(
                f"No graph on {size} nodes can be '{self.constraint.label}'{others}: "
                f"{self.constraint.obstacle(size)}. Change the constraints or the number of nodes."
            )

        return possible

    def _demands_on(self, size: int) -> Demands:
        """What is asked of graphs of one size."""
        if size not in self._demands:
            self._demands[size] = self.constraint.demands(size)

        return self._demands[size]

    def _most_nodes(self) -> int:
        if self.evidence:
            return max(graph.nodes for graph in self.evidence)
        return self._range[1] if self._range else self.model.sizes.largest

    def __iter__(self) -> Iterator[SimpleGraph]:
        self.drawn = self.kept = self.made = 0
        block = self._block_size()
        for drawn in self._blocks(range(-(-self.count // block)), lambda number: self._block(number, block)):
            self.drawn += drawn.drawn
            self.kept += drawn.kept
            self.made += drawn.made
            if drawn.missing is not None:
                raise SamplingError(f"{self.kept + self.made} of {self.count} graphs were found {drawn.missing}")
            yield from drawn.graphs

    def _blocks(self, numbers: range, draw: Callable[[int], _Block]) -> Iterator[_Block]:
        """The blocks in order, drawn by several processes or on several threads."""
        if self._group.world_size > 1:
            yield from self._group.gather_in_order(len(numbers), draw)
            return
        workers = self._workers()
        for start in range(0, len(numbers), workers):
            yield from _at_once(draw, numbers[start : start + workers])

    def _workers(self) -> int:
        """How many blocks to draw at once: the steps of a staged model are too small to share among threads."""
        alone = not self.model.config.is_autoregressive or self.model.device.type != "cpu"

        return 1 if alone else min(AT_ONCE, torch.get_num_threads())

    def _sizes(self, number: int, block: int) -> NDArray[np.int64]:
        if self.evidence:
            return np.array([self._evidence(number * block + row).nodes for row in range(block)])
        rng = stream(self.seed, "sizes", number)
        if self._range:
            return np.array(self._possible)[rng.integers(0, len(self._possible), size=block)]
        seen = self.model.sizes
        law = SizeDistribution({n: seen.graphs[n] for n in self._possible}, {n: seen.edges[n] for n in self._possible})

        return law.sample(block, rng)

    def _evidence(self, index: int) -> SimpleGraph:
        return self.evidence[index % len(self.evidence)]

    def _block(self, number: int, block: int) -> _Block:
        """The graphs of one block, drawn again, and in the end made, where they are not what they must be."""
        sizes = self._sizes(number, block)
        graphs: list[SimpleGraph | None] = [None] * block
        wanted = min(block, self.count - number * block)
        first = min(block, FIRST) if self.constraint.constraints else 0
        rows = np.arange(max(wanted, first))
        redraws, in_vain = 1, 0
        plain_draws = kept = made = 0
        for attempt in itertools.count():
            plain = attempt < redraws
            drawn = self._draw(number, attempt, sizes, rows, block, plain)
            holds = np.array([self.constraint.holds(graph) for graph in drawn], dtype=np.bool_)
            for k in np.flatnonzero(holds):
                graphs[rows[k]] = self._labelled(drawn[k], plain)
            counted = rows < wanted
            found = int((counted & holds).sum())
            if plain:
                plain_draws += int(counted.sum())
                kept += found
            else:
                made += found
            if not attempt and first and holds[:first].mean() >= COMMON:
                redraws = MAX_REDRAWS
            in_vain = 0 if plain or holds.any() else in_vain + len(rows)
            rows = rows[~holds & counted]
            if not len(rows):
                break
            if in_vain >= IN_VAIN:
                missing = (
                    f"that are '{self.constraint.label}': the last {in_vain} draws that were held to it, on "
                    f"{_listed(sizes[rows])} nodes, are not. Ask for less, or for another number of nodes."
                )
                return _Block([], plain_draws, kept, made, missing)

        return _Block([graph for graph in graphs[:wanted] if graph is not None], plain_draws, kept, made)

    def _labelled(self, graph: SimpleGraph, plain: bool) -> SimpleGraph:
        if not self.constraint.constraints:
            return graph
        if plain:
            way = "exact"
        else:
            known = not self.model.config.is_autoregressive and exact_draw(self._demands_on(graph.nodes)) is not None
            way = "exact given latents" if known else "masks"

        return replace(graph, attributes={**graph.attributes, "constraints": self.constraint.label, "enforced": way})

    @torch.inference_mode()
    def _draw(
        self,
        number: int,
        attempt: int,
        sizes: NDArray[np.int64],
        rows: NDArray[np.int64],
        block: int,
        plain: bool = True,
    ) -> list[SimpleGraph]:
        """Draw the graphs of some rows of a block, once: plainly, or held to what they must be."""
        config, device = self.model.config, self.model.device
        most = self._most_nodes()
        rng = stream(self.seed, "sample", number, attempt)
        noise = rng.standard_normal((block, most, config.latent), dtype=np.float32)[rows]
        uniform = torch.from_numpy(rng.random((block, most, most), dtype=np.float32)[rows]).to(device)
        keys = rng.random((block, most))[rows]

        mask = node_mask(torch.from_numpy(sizes[rows]), most).to(device)
        z = self.model.network.prior(mask).sample(torch.from_numpy(noise).to(device))
        x = self._features(number * block + rows, most).to(z)
        demands = None if plain else [self._demands_on(size) for size in sizes[rows].tolist()]
        # Orders that lead into dead ends differ from degrees to degrees: every other attempt tries another kind.
        by_degree = attempt % 2 == 0
        if config.is_autoregressive:
            # Nodes arrive in random orders, so that their numbers say nothing of it.
            arrival = Arrival(sizes[rows], keys, device, demands, by_degree=by_degree)
            grown = self.model.network.decode_autoregressive(
                arrival.nodes(z), arrival.nodes(x), arrival.sizes, self.schedule
            )
            adj = arrival.back(grown.sample(uniform, arrival.limits))
        else:
            law = self.model.network.decode(z, x, mask)
            if demands is None:
                adj = law.sample(uniform)
            else:
                assert isinstance(law, EdgeBernoulli)
                streams = [stream(self.seed, "conditional", number, attempt, row) for row in rows.tolist()]
                adj = draw_held(law.logits, demands, keys, uniform, streams, by_degree)

        graphs = _split(adj.cpu().numpy(), sizes[rows], weighted=config.observation == "normal")
        if config.node_features or self.latents:
            graphs = [
                self._with_node_data(graph, row, index)
                for graph, row, index in zip(graphs, z.cpu().numpy(), number * block + rows, strict=True)
            ]

        return [largest_component(graph) for graph in graphs] if self.largest else graphs

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


@dataclass(frozen=True)
class _Block:
    """The graphs of a block, how they came about, and which are missing, if they are, as the rest of a sentence."""

    graphs: list[SimpleGraph]
    drawn: int
    kept: int
    made: int
    missing: str | None = None


def _at_once(draw: Callable[[int], _Block], numbers: Sequence[int]) -> Iterator[_Block]:
    """What is drawn for each number, a thread each.

    Each thread would have torch share its steps among as many threads again, unless told otherwise before it begins.
    """
    if len(numbers) == 1:
        yield draw(numbers[0])
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(len(numbers)) as pool:
            drawn = [pool.submit(draw, number) for number in numbers]
    finally:
        torch.set_num_threads(threads)
    # What came before a draw that failed is given first, as one thread would.
    for each in drawn:
        yield each.result()


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


def _listed(sizes: NDArray[np.int64]) -> str:
    """The smallest and the largest of some sizes."""
    low, high = int(sizes.min()), int(sizes.max())

    return str(low) if low == high else f"{low} to {high}"


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
