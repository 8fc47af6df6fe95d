"""Streaming samples from the prior, through the decoder."""

from __future__ import annotations

import itertools
import operator
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..autoregressive.heads import AttributeNoise
from ..data.batch import node_mask
from ..data.encoded import EncodedGraph
from ..data.properties import largest_component
from ..data.sizes import SizeDistribution
from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..errors import SamplingError
from ..graph import SimpleGraph
from ..memory import available_memory, check_memory
from ..nn.distributions import EdgeBernoulli, NodeNormal
from ..rng import stream
from ..training.checkpoint import TrainedModel
from .conditional import exact_sampler, sample_constrained
from .constraints import AllOf, Connected, Constraint, Dag, Edges
from .feasibility import NodePermutation

__all__ = ["Sampler", "check_model"]

# Graphs are sampled in blocks of fixed size with one random stream each: graph i is the same graph for any number of
# graphs and workers. A block is halved while its padded matrices exceed the budget.
BLOCK, AUTOREGRESSIVE_BLOCK = 128, 512
BLOCK_CELLS = 1 << 23
# Blocks of few large graphs are decoded together, up to these numbers of graphs and cells: the time of a row hardly
# depends on the number of graphs as long as they are few.
TOGETHER, TOGETHER_CELLS = 64, 1 << 25
# The most blocks sampled in parallel, each with its own matrices, however many threads there are.
MAX_PARALLEL = 8
# Measured peak bytes per cell, and per node of autoregressive decoding, which also holds the states of all nodes and
# activations for one row. Random numbers are those of a whole block, however few graphs are sampled.
ONE_SHOT_BYTES = 24
NODE_BYTES = 5000
RANDOM_BYTES = 4
# If at least this fraction of the first graphs of a block satisfy the constraints, rejection sampling goes on for up to
# MAX_REDRAWS rounds. These first graphs are sampled even if fewer are requested, so that no graph depends on the count.
MIN_ACCEPTANCE = 0.05
PILOT = 16
MAX_REDRAWS = 50
# Unconstrained samples whose numbers of edges tell which sizes go with a given one.
EDGE_SAMPLES = 256
# The time of large samples is estimated from samples this many times smaller, by the growth between such sizes.
LARGE, SMALLER, ONE_SHOT_GROWTH, AUTOREGRESSIVE_GROWTH = 60, 4, 2.0, 1.6
# The number of consecutive failures under masks after which constraints are considered infeasible.
MAX_FAILURES = 200


# The graphs of a block, and the counts of the sampler and why graphs are missing, if any are.
_Block = tuple[list[SimpleGraph], list[Any]]


class Sampler:
    """Iterable over sampled graphs.

    Constraints are enforced by rejection where unconstrained samples often satisfy them, which is exact, and otherwise
    while edges are sampled. The graph attributes ``constraints`` and ``enforced`` record which:

    - ``exact``: an unconstrained sample that was accepted.
    - ``exact given latents``: an exact conditional sample of a one-shot model given latents from the prior.
    - ``masks``: infeasible edges were masked.

    Under constraints, infeasible sizes are not sampled, and under a given number of edges sizes are weighted by the
    probability of that number, as estimated from unconstrained samples. The arguments are those of
    :meth:`graphite_gen.Model.sample`; of the processes of ``group``, rank 0 gets the graphs and the counts. With
    ``encoded`` graphs, latents are drawn from these posteriors in turn instead of from the prior, and nodes are decoded
    in their ordering.

    On a CPU, an autoregressive model samples several blocks in parallel, on ``torch.get_num_threads()`` threads. In the
    meantime that number is 1; it is restored before the first graph of these blocks is yielded, and after an error.

    Attributes:
        outside: Conditions that are outside the range of the training graphs.
        drawn: The number of unconstrained samples so far.
        accepted: The number of those that were accepted.
        masked: The number of graphs that were sampled in one of the other ways.
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
        features: Sequence[SimpleGraph] = (),
        encoded: Sequence[EncodedGraph] = (),
        given: Mapping[str, Any] | None = None,
        group: ProcessGroup = SINGLE_PROCESS,
    ) -> None:
        assert not encoded or (nodes is None and not features), "encoded graphs have their own sizes and features"
        self.model, self.count, self.seed = model, count, seed
        self.largest, self.latents, self.encoded = largest, latents, encoded
        # The graphs that determine sizes and node features, in turn.
        self.features: Sequence[SimpleGraph | EncodedGraph] = encoded or features
        # A single one, rightly or wrongly given, is checked like those of a sequence.
        asked: Any = (constraints,) if isinstance(constraints, Constraint | str | type) else constraints
        self.constraint = AllOf((*asked, Connected()) if connected else tuple(asked))
        self._given = model.schema.conditions.parse(given or {})
        self.outside = model.schema.conditions.outside(self._given)
        self.drawn = self.accepted = self.masked = 0
        self._group = group
        self._range = _node_range(self.constraint.nodes if nodes is None and not self.features else nodes)
        if self.features:
            self._max_nodes = max(graph.nodes for graph in self.features)
        else:
            self._max_nodes = self._range[1] if self._range else model.sizes.largest
        self._block_size = AUTOREGRESSIVE_BLOCK if model.config.is_autoregressive else BLOCK
        while self._block_size > 1 and self._block_size * self._max_nodes**2 > BLOCK_CELLS:
            self._block_size //= 2
        self._check()
        self._together = self._blocks_together()
        self._requirements = cache(self.constraint.requirements)
        self._possible = self._possible_sizes()
        self._weights = self._size_weights()

    def _check(self) -> None:
        config, name = self.model.config, self.model.name
        check_model(self.model, self._max_nodes, needs_prior=not self.encoded)
        wrong = next((graph.mean.shape[1] for graph in self.encoded if graph.mean.shape[1] != config.latent), None)
        if wrong is not None:
            raise SamplingError(f"The latents given have width {wrong}, but those of '{name}' have {config.latent}.")
        if config.node_features and not self.features:
            raise SamplingError(
                f"'{name}' is conditioned on {config.node_features} node features, and no graphs have any.",
                reason="features-required",
            )
        widths = {0 if graph.features is None else graph.features.shape[1] for graph in self.features}
        # Encoded graphs have their conditions among the features.
        if widths and widths != {config.node_features + (config.conditions if self.encoded else 0)}:
            raise SamplingError(
                f"The graphs given have {' or '.join(map(str, sorted(widths)))} node features, but '{name}' was "
                f"trained with {config.node_features}."
            )
        if self.count < 0:
            raise SamplingError(f"The number of graphs is {self.count}; it should be at least 0.")
        if self._range and not 1 <= self._range[0] <= self._range[1]:
            low, high = self._range
            raise SamplingError(f"'nodes' ranges from {low} to {high}; it should be a range of positive numbers.")
        self._check_memory()
        latents = {f"z{d}" for d in range(config.latent)} if self.latents else set()
        if self.model.schema.node_label in latents:
            raise SamplingError(f"The node label '{self.model.schema.node_label}' is the name of a latent as well.")
        if shared := latents.intersection(self.model.schema.features.names):
            raise SamplingError(f"The node feature '{min(shared)}' is the name of a latent as well.")
        if self.encoded and self._given:
            raise SamplingError("Encoded graphs have their own conditions; no others can be given.")
        if Dag() in self.constraint.constraints and not config.directed:
            raise SamplingError(f"'{name}' was trained on undirected graphs, and samples are never directed.")
        if self.constraint.constraints and self.largest:
            raise SamplingError(
                f"The largest component of a graph need not be '{self.constraint.label}': give one of the two options."
            )
        if config.observation == "normal" and set(self.constraint.constraints) - {Connected()}:
            raise SamplingError(
                f"'{name}' samples a weight for every pair, so its graphs are complete and never "
                f"'{self.constraint.label}'.",
                reason="weighted-model",
            )

    def _check_memory(self) -> None:
        """Refuse graphs whose matrices over all pairs of nodes cannot fit into memory."""
        if self.model.device.type != "cpu" or not self.count:
            return
        shared = self._group.world_size > 1
        most, workers = self._max_nodes, self._group.local_world_size if shared else self._workers()
        kind = "" if workers == 1 else "-workers" if shared else "-threads"
        what = f"Sampling graphs on {most} nodes from '{self.model.name}', with matrices over all pairs of nodes,"
        error = partial(SamplingError, reason=f"sampling-memory{kind}", nodes=most)
        check_memory(self._needed_memory(1) * workers, what, "", error)

    def _needed_memory(self, blocks: int) -> int:
        """The bytes that some blocks take together."""
        most = self._max_nodes
        drawn = min(blocks * self._block_size, self.count) * most
        needed = self._block_size * most**2 * RANDOM_BYTES + drawn * most * ONE_SHOT_BYTES

        return needed + drawn * NODE_BYTES if self.model.config.is_autoregressive else needed

    def _blocks_together(self) -> int:
        """The number of blocks that are decoded together, with at most half of the memory available."""
        if self.constraint.constraints or not self.model.config.is_autoregressive or self._group.world_size > 1:
            return 1
        block = self._block_size
        together = max(1, min(TOGETHER // block, TOGETHER_CELLS // (block * self._max_nodes**2)))
        if together == 1 or (memory := available_memory()) is None:
            return together
        while together > 1 and 2 * self._needed_memory(together) * self._workers() > memory:
            together -= 1

        return together

    def _possible_sizes(self) -> list[int]:
        """The requested numbers of nodes for which the constraints are feasible."""
        if self.features:
            sizes = sorted({graph.nodes for graph in self.features})
        else:
            sizes = list(range(self._range[0], self._range[1] + 1)) if self._range else list(self.model.sizes.graphs)
        if not self.constraint.constraints:
            return sizes
        possible = [size for size in sizes if self.constraint.conflict(size) is None]
        if not possible or (self.features and len(possible) < len(sizes)):
            size = next(size for size in sizes if size not in possible)
            others = f", nor on any of {len(sizes)} sizes up to {sizes[-1]}" if len(sizes) > 1 and not possible else ""
            raise SamplingError(
                f"No graph on {size} nodes can be '{self.constraint.label}'{others}: {self.constraint.conflict(size)}.",
                reason="infeasible-constraints",
                nodes=size,
            )

        return possible

    def _size_weights(self) -> NDArray[np.float64] | None:
        r"""The probability of each possible size given a number of edges :math:`m`; None for no such constraint.

        It is proportional to :math:`p(n) p(m | n)`, with a normal distribution of the number of edges: its mean at each
        size, and its deviation relative to the mean, are those of unconstrained samples.
        """
        counts = [part.count for part in self.constraint.constraints if isinstance(part, Edges)]
        possible = np.array(self._possible)
        if not counts or self.features or len(possible) == 1:
            return None
        samples = int(np.clip(BLOCK_CELLS // self._max_nodes**2, 16, EDGE_SAMPLES))
        graphs = list(Sampler(self.model, samples, nodes=self._range, seed=self.seed))
        nodes, edges = np.array([(graph.nodes, len(graph.edges)) for graph in graphs], dtype=np.float64).T
        sizes, groups = np.unique(nodes, return_inverse=True)
        means = np.bincount(groups, edges) / np.bincount(groups)
        spread = np.sqrt(np.mean((edges - means[groups]) ** 2) / max(np.mean(means[groups] ** 2), 1e-9))
        mean = np.interp(possible, sizes, means)
        deviation = np.maximum(spread * mean, 0.5)
        prior = [0.0 if self._range else self.model.sizes.log_prob(size) for size in self._possible]
        logits = prior - np.log(deviation) - 0.5 * ((counts[0] - mean) / deviation) ** 2
        weights = np.exp(logits - logits.max())

        return np.asarray(weights / weights.sum())

    def estimate_seconds(self) -> float:
        """A rough estimate of the time that all graphs take, from the first ones or smaller ones.

        Constraints may take longer.
        """
        graphs = min(self._block_size * self._together, self.count)
        if self.features or not graphs:
            return 0.0
        scale = SMALLER if self._max_nodes > LARGE else 1
        growth = AUTOREGRESSIVE_GROWTH if self.model.config.is_autoregressive else ONE_SHOT_GROWTH
        started = 0.0
        # The first sample also loads code.
        for count in (1, graphs):
            started = time.monotonic()
            deque(Sampler(self.model, count, nodes=self._max_nodes // scale, seed=self.seed), maxlen=0)

        return (time.monotonic() - started) * scale**growth * -(-self.count // self.at_once)

    @property
    def at_once(self) -> int:
        """The number of graphs that are sampled together: they are yielded one after the other, without delay."""
        workers = self._group.world_size if self._group.world_size > 1 else self._workers()

        return self._block_size * self._together * workers

    def __iter__(self) -> Iterator[SimpleGraph]:
        self.drawn = self.accepted = self.masked = 0
        for graphs, (drawn, accepted, masked, failure) in self._blocks(-(-self.count // self._block_size)):
            self.drawn += drawn
            self.accepted += accepted
            self.masked += masked
            if failure is not None:
                found = self.accepted + self.masked
                raise SamplingError(
                    f"Only {found} of {self.count} graphs were found: {failure}", reason="constraints-not-met"
                )
            yield from graphs

    def _blocks(self, count: int) -> Iterator[_Block]:
        """The blocks in order, sampled by several processes or on several threads."""
        if self._group.world_size > 1:
            yield from self._group.gather_in_order(count, self._block)
            return
        together, workers = self._together, self._workers()
        for start in range(0, count, together * workers):
            numbers = range(start, min(start + together * workers, count))
            size = -(-len(numbers) // workers)
            parts = [numbers[k : k + size] for k in range(0, len(numbers), size)]
            if len(parts) == 1:
                yield from self._some_blocks(numbers)
                continue
            # Each part has its own thread, with torch itself single-threaded meanwhile.
            threads = torch.get_num_threads()
            torch.set_num_threads(1)
            try:
                with ThreadPoolExecutor(len(parts)) as pool:
                    blocks = [pool.submit(self._some_blocks, part) for part in parts]
            finally:
                torch.set_num_threads(threads)
            # Blocks before one that failed are yielded first, as with a single thread.
            yield from (block for part in blocks for block in part.result())

    def _workers(self) -> int:
        """The number of threads; the operations of autoregressive decoding are too small to be parallel themselves."""
        is_parallel = self.model.config.is_autoregressive and self.model.device.type == "cpu"

        return min(MAX_PARALLEL, torch.get_num_threads()) if is_parallel else 1

    def _sizes(self, number: int) -> NDArray[np.int64]:
        block = self._block_size
        if self.features:
            return np.array([graph.nodes for graph in self.features])[
                (number * block + np.arange(block)) % len(self.features)
            ]
        rng = stream(self.seed, "sizes", number)
        if self.model.config.conditions and not self._range and self._weights is None:
            return self.model.schema.conditions.sizes(self._given, self._possible, block, rng)
        if self._weights is not None:
            return rng.choice(np.array(self._possible), size=block, p=self._weights)
        if self._range:
            return np.array(self._possible)[rng.integers(0, len(self._possible), size=block)]
        sizes = self.model.sizes
        possible = [{n: counts[n] for n in self._possible} for counts in (sizes.graphs, sizes.edges)]

        return SizeDistribution(*possible).sample(block, rng)

    def _conditioning(self, index: int) -> NDArray[np.float32] | None:
        return self.features[index % len(self.features)].features if self.features else None

    def _some_blocks(self, numbers: Sequence[int]) -> list[_Block]:
        """Sample consecutive blocks, several of them together if there are no constraints."""
        if len(numbers) == 1:
            return [self._block(numbers[0])]
        block = self._block_size
        indices = np.arange(numbers[0] * block, min((numbers[-1] + 1) * block, self.count))
        sizes = np.concatenate([self._sizes(number) for number in numbers])[: len(indices)]
        samples = self._draw(indices, 0, sizes)

        return [(samples, [len(samples), len(samples), 0, None])]

    def _block(self, number: int) -> _Block:
        """Sample the graphs of one block, again where they violate the constraints, and in the end under masks."""
        block, sizes = self._block_size, self._sizes(number)
        graphs: list[SimpleGraph | None] = [None] * block
        wanted = min(block, self.count - number * block)
        pilot = min(block, PILOT) if self.constraint.constraints else 0
        rows = np.arange(max(wanted, pilot))
        redraws, failures = 1, 0
        drawn = accepted = masked = 0
        for attempt in itertools.count():
            is_free = attempt < redraws
            samples = self._draw(number * block + rows, attempt, sizes[rows], is_free)
            holds = np.array([self.constraint.holds(graph) for graph in samples], dtype=np.bool_)
            for k in np.flatnonzero(holds):
                graphs[rows[k]] = self._labelled(samples[k], is_free)
            counted = rows < wanted
            found = int((counted & holds).sum())
            if is_free:
                drawn += int(counted.sum())
                accepted += found
            else:
                masked += found
            if not attempt and pilot and holds[:pilot].mean() >= MIN_ACCEPTANCE:
                redraws = MAX_REDRAWS
            failures = 0 if is_free or holds.any() else failures + len(rows)
            rows = rows[~holds & counted]
            if not len(rows):
                break
            if failures >= MAX_FAILURES:
                low, high = int(sizes[rows].min()), int(sizes[rows].max())
                failure = (
                    f"the last {failures} samples under masks, on {low if low == high else f'{low} to {high}'} nodes, "
                    f"violate '{self.constraint.label}'."
                )
                return [], [drawn, accepted, masked, failure]

        return [graph for graph in graphs[:wanted] if graph is not None], [drawn, accepted, masked, None]

    def _labelled(self, graph: SimpleGraph, is_free: bool) -> SimpleGraph:
        if not self.constraint.constraints:
            return graph
        method = "exact" if is_free else "masks"
        if not (is_free or self.model.config.is_autoregressive) and exact_sampler(self._requirements(graph.nodes)):
            method = "exact given latents"

        return replace(graph, attributes={**graph.attributes, "constraints": self.constraint.label, "enforced": method})

    @torch.inference_mode()
    def _draw(
        self, indices: NDArray[np.int64], attempt: int, sizes: NDArray[np.int64], is_free: bool = True
    ) -> list[SimpleGraph]:
        """Sample some graphs of given sizes, of one block or several, once, without or with constraints."""
        config, device, schema = self.model.config, self.model.device, self.model.schema
        most = self._max_nodes
        noise, uniform, keys = self._noise(indices, attempt)

        mask = node_mask(torch.from_numpy(sizes), most).to(device)
        z = self._latents(indices, mask).sample(torch.from_numpy(noise).to(device))
        self._set_orderings(keys, indices)
        x = self._feature_tensor(indices, most).to(z)
        values: list[tuple[Any, ...]] = []
        if config.conditions and not self.encoded:
            for number, rows in self._rows(indices):
                rng = stream(self.seed, "conditions", number)
                every = schema.conditions.draw(self._given, self._sizes(number), rng)
                values += [every[row] for row in rows.tolist()]
            encoded = np.stack([schema.conditions.encode(each) for each in values])
            x = torch.cat([x, torch.from_numpy(encoded).to(x).unsqueeze(1).expand(-1, most, -1)], -1)
        requirements = None if is_free else [self._requirements(size) for size in sizes.tolist()]
        # Which orders have dead ends depends on the degrees: every other attempt uses the other kind.
        by_degree = attempt % 2 == 0
        if config.is_autoregressive:
            # A random order makes node numbers uninformative.
            order = NodePermutation(sizes, keys, device, requirements, by_degree=by_degree)
            graphs = self.model.network.decode_autoregressive(order.nodes(z), order.nodes(x), order.sizes)
            own_noise = self._attribute_noise(indices, attempt)
            acyclic = not is_free and Dag() in self.constraint.constraints
            drawn = graphs.sample_graphs(uniform, order.constraints, own_noise, acyclic)
            drawn = order.inverted(drawn)
            adj = drawn.adj
        else:
            edges = self.model.network.decode(z, x, mask)
            if requirements is None:
                adj = edges.sample(uniform)
            else:
                assert isinstance(edges, EdgeBernoulli)
                streams = [
                    stream(self.seed, "conditional", number, attempt, row)
                    for number, rows in self._rows(indices)
                    for row in rows.tolist()
                ]
                adj = sample_constrained(edges.logits, requirements, keys, uniform, streams, by_degree)

        samples = _split(adj.cpu().numpy(), sizes, weighted=config.observation == "normal")
        if schema.generates:
            parts = [
                None if part is None else part.cpu().numpy()
                for part in (drawn.labels, drawn.states, drawn.weights, drawn.features)
            ]
            samples = [
                schema.decode(graph, *(None if part is None else part[row] for part in parts))
                for row, graph in enumerate(samples)
            ]
        if values:
            names = [one.name if one.classes else f"given_{one.name}" for one in schema.conditions.each]
            samples = [
                replace(graph, attributes={**graph.attributes, **dict(zip(names, own, strict=True))})
                for graph, own in zip(samples, values, strict=True)
            ]
        if config.node_features or self.latents or self.encoded:
            samples = [
                self._with_node_data(graph, row, index)
                for graph, row, index in zip(samples, z.cpu().numpy(), indices, strict=True)
            ]

        return [largest_component(graph) for graph in samples] if self.largest else samples

    def _rows(self, indices: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """The blocks of graphs in ascending order, and their places in them."""
        numbers, rows = np.divmod(indices, self._block_size)
        for number in np.unique(numbers).tolist():
            yield number, rows[numbers == number]

    def _noise(
        self, indices: NDArray[np.int64], attempt: int
    ) -> tuple[NDArray[np.float32], Tensor, NDArray[np.float64]]:
        """The noise of latents and edges, and keys of random orderings; each block has a stream of its own."""
        block, most, latent = self._block_size, self._max_nodes, self.model.config.latent
        noise = np.empty((len(indices), most, latent), dtype=np.float32)
        uniform, keys = np.empty((len(indices), most, most), dtype=np.float32), np.empty((len(indices), most))
        start = 0
        for number, rows in self._rows(indices):
            rng, part = stream(self.seed, "sample", number, attempt), slice(start, start + len(rows))
            noise[part] = rng.standard_normal((block, most, latent), dtype=np.float32)[rows]
            uniform[part] = rng.random((block, most, most), dtype=np.float32)[rows]
            keys[part] = rng.random((block, most))[rows]
            start += len(rows)

        return noise, torch.from_numpy(uniform).to(self.model.device), keys

    def _attribute_noise(self, indices: NDArray[np.int64], attempt: int) -> AttributeNoise:
        """The noise of labels, states, weights and features of some graphs."""
        parts = [self._block_attribute_noise(number, attempt, rows) for number, rows in self._rows(indices)]

        return AttributeNoise(*(None if part[0] is None else torch.cat(part) for part in zip(*parts, strict=True)))

    def _block_attribute_noise(self, number: int, attempt: int, rows: NDArray[np.int64]) -> AttributeNoise:
        """That of some graphs of a block; in a stream of its own."""
        config, block, most = self.model.config, self._block_size, self._max_nodes
        rng, device = stream(self.seed, "attributes", number, attempt), self.model.device

        def uniform(*shape: int) -> Tensor:
            return torch.from_numpy(rng.random((block, *shape), dtype=np.float32)[rows]).to(device)

        def normal(*shape: int) -> Tensor:
            return torch.from_numpy(rng.standard_normal((block, *shape), dtype=np.float32)[rows]).to(device)

        noise = AttributeNoise(
            uniform(most) if config.node_labels else None,
            uniform(most, most) if config.edge_labels or config.directed else None,
        )
        if config.weights:
            values = normal(most, most)
            noise = noise._replace(values=values, components=uniform(most, most))
        if columns := len(config.feature_kinds):
            chosen = uniform(most, columns)
            noise = noise._replace(feature_components=chosen, feature_values=normal(most, columns))

        return noise

    def _latents(self, indices: NDArray[np.int64], mask: Tensor) -> NodeNormal:
        """The distribution of the latents: the prior, or the posteriors of the encoded graphs."""
        prior = self.model.network.prior(mask)
        if not self.encoded:
            return prior
        mu, sigma = torch.zeros_like(prior.mu), torch.zeros_like(prior.mu)
        for row, index in enumerate(indices.tolist()):
            graph = self.encoded[index % len(self.encoded)]
            mu[row, : graph.nodes] = torch.from_numpy(graph.mean).to(mu)
            sigma[row, : graph.nodes] = torch.from_numpy(graph.std).to(mu)

        return NodeNormal(mu, sigma.log(), mask)

    def _set_orderings(self, keys: NDArray[np.float64], indices: NDArray[np.int64]) -> None:
        """Replace the keys of random orderings by those of the encoded graphs that have an ordering."""
        for row, index in zip(keys, indices.tolist() if self.encoded else (), strict=False):
            graph = self.encoded[index % len(self.encoded)]
            if graph.position is not None:
                row[: graph.nodes] = graph.position / graph.nodes

    def _feature_tensor(self, indices: NDArray[np.int64], most: int) -> Tensor:
        config = self.model.config
        x = torch.zeros(len(indices), most, config.node_features + (config.conditions if self.encoded else 0))
        for row, index in zip(x, indices.tolist(), strict=True):
            features = self._conditioning(index)
            if features is not None:
                row[: len(features)] = torch.from_numpy(features)

        return x

    def _with_node_data(self, graph: SimpleGraph, z: NDArray[np.float32], index: int) -> SimpleGraph:
        columns = {f"z{d}": z[: graph.nodes, d].tolist() for d in range(z.shape[1])} if self.latents else {}
        names = self.encoded[index % len(self.encoded)].names if self.encoded else None

        given = self._conditioning(index)
        own = self.model.config.node_features

        return replace(
            graph,
            features=graph.features if given is None or not own else given[:, :own],
            names=names,
            node_attributes={**graph.node_attributes, **columns},
        )


def check_model(model: TrainedModel, nodes: int, *, needs_prior: bool = True) -> None:
    """Refuse models that are not distributions over graphs with this number of nodes."""
    config, name = model.config, model.name
    if needs_prior and not config.is_variational:
        raise SamplingError(
            f"'{name}' is a {config.kind}: an autoencoder has no prior to sample from.", reason="no-prior"
        )
    if "identity" in config.decoder_features and nodes > config.max_nodes:
        raise SamplingError(
            f"The identity features of '{name}' distinguish at most {config.max_nodes} nodes, not {nodes}.",
            reason="identity-features",
        )


def _node_range(nodes: int | tuple[int, int] | None) -> tuple[int, int] | None:
    """The smallest and the largest number of nodes, from any integer types."""
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
    weights = adj[b, i, j].astype(np.float64) if weighted else None

    return [
        SimpleGraph(size, edges[start:end], None if weights is None else weights[start:end])
        for size, start, end in zip(sizes.tolist(), [0, *ends[:-1]], ends, strict=True)
    ]
