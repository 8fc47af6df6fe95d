"""Importance sampling from the encoder (eq. 4), graph by graph, in blocks of bounded memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import Tensor

from ..batch import GraphBatch, collate
from ..checkpoint import TrainedModel
from ..errors import ConfigError, DatasetError
from ..graph import SimpleGraph
from ..models import GraphNetwork
from ..objectives import log_weights
from ..records import GraphNLL, NLLEstimate
from ..seeding import stream
from ..sizes import SizeLaw

__all__ = ["estimate_nll", "graph_log_weights", "iterate_nll", "summarise"]

# Proposals of one block: a mixture of MIXTURE encoders, each with its own random features. Blocks are the same
# whatever the machine, so that an estimate never depends on how it was cut.
BLOCK = 256
MIXTURE = 16
BLOCK_CELLS = 1 << 24

CONVENTIONS = ("pairs", "paper")


def _blocks(samples: int, nodes: int) -> Iterator[tuple[int, int]]:
    """Cut the proposals into blocks of M mixture components with S samples each."""
    largest = max(1, min(BLOCK, BLOCK_CELLS // max(nodes, 1) ** 2))
    left = samples
    while left:
        take = min(largest, left)
        mixture = min(MIXTURE, take)
        yield mixture, take // mixture
        left -= mixture * (take // mixture)


@torch.no_grad()
def graph_log_weights(
    network: GraphNetwork,
    batch: GraphBatch,
    samples: int,
    seed: int,
    index: int,
    convention: str = "pairs",
) -> Tensor:
    """The log-weights of one graph, in double precision, with shape :math:`(K,)`.

    Arguments:
        network: The model.
        batch: A batch of that one graph.
        samples: The number of proposals :math:`K`.
        seed: The run's seed.
        index: The number of the graph, which names its random stream.
        convention: ``pairs`` or ``paper``.
    """
    nodes = batch.mask.shape[-1]
    weights = []
    for number, (mixture, each) in enumerate(_blocks(samples, nodes)):
        rng = stream(seed, "nll", index, number)
        noise = _normal(rng, batch, mixture, 1, nodes, network.noise_features)
        epsilon = _normal(rng, batch, mixture, each, 1, nodes, network.config.latent)
        weights.append(log_weights(network, batch, noise, epsilon, convention)[:, 0].double().cpu())

    return torch.cat(weights)


def _normal(rng: np.random.Generator, batch: GraphBatch, *shape: int) -> Tensor:
    return torch.from_numpy(rng.standard_normal(shape, dtype=np.float32)).to(batch.adj)


def iterate_nll(
    model: TrainedModel,
    graphs: Iterable[SimpleGraph],
    samples: int = 1000,
    seed: int = 0,
    convention: str = "pairs",
) -> Iterator[GraphNLL]:
    r"""The NLL of each graph, in nats.

    .. math:: -\log p(A | n) \approx -\log \frac{1}{K} \sum_k w_k

    Raises:
        ConfigError: There is no such convention, or there are no samples.
        DatasetError: A graph does not suit the model.
    """
    config = model.config
    if convention not in CONVENTIONS:
        raise ConfigError(f"'convention' is '{convention}'; choose one of {', '.join(CONVENTIONS)}.")
    if samples < 1:
        raise ConfigError(f"'samples' is {samples}; it should be at least 1.")
    if not config.is_variational:
        raise DatasetError(
            f"'{model.name}' is a {config.kind}: an autoencoder has no likelihood. Train with '--kind graphite-vae'."
        )
    if convention == "paper" and config.observation == "normal":
        raise DatasetError("Convention 'paper' is for unweighted graphs. Use '--convention pairs'.")
    for index, graph in enumerate(graphs):
        check_suits(model, graph, index)
        width = max(graph.nodes, model.sizes.largest) if convention == "paper" else graph.nodes
        batch = collate([graph], width).to(model.device)
        weights = graph_log_weights(model.network, batch, samples, seed, index, convention)
        yield _estimate(graph, weights, model.sizes, convention)


def check_suits(model: TrainedModel, graph: SimpleGraph, index: int) -> None:
    """Refuse a graph that the model cannot score.

    Raises:
        DatasetError: It is weighted or has features where the model has none (or the reverse), or is too large.
    """
    config = model.config
    weighted = graph.weights is not None
    features = 0 if graph.features is None else graph.features.shape[1]
    if graph.nodes < 1:
        raise DatasetError(f"Graph {index} has no nodes; a model needs at least one. Remove it from the file.")
    # Without edges there is nothing to weigh: such a graph is of either kind.
    if len(graph.edges) and weighted != (config.observation == "normal"):
        kinds = ("unweighted", "weighted")
        raise DatasetError(
            f"Graph {index} is {kinds[weighted]}, but '{model.name}' was trained on {kinds[not weighted]} graphs. "
            f"Train a model on such graphs with 'graphite-gen train FILE'."
        )
    if features != config.node_features:
        raise DatasetError(
            f"Graph {index} has {features} node features, but '{model.name}' was trained with {config.node_features}. "
            f"Use graphs like those it was trained on."
        )
    identity = "identity" in config.encoder_features + config.decoder_features
    if identity and graph.nodes > config.max_nodes:
        raise DatasetError(
            f"Graph {index} has {graph.nodes} nodes, but '{model.name}' tells nodes apart by number and knows "
            f"{config.max_nodes} of them. Train with '--preset default', or on graphs of that size."
        )


def _estimate(graph: SimpleGraph, weights: Tensor, sizes: SizeLaw, convention: str) -> GraphNLL:
    log_mean = float(weights.logsumexp(0)) - math.log(len(weights))
    size_nats = -sizes.log_prob(graph.nodes)
    plain = graph.weights is None and convention == "pairs"

    return GraphNLL(
        nodes=graph.nodes,
        edges=len(graph.edges),
        nll=-log_mean,
        elbo=float(weights.mean()),
        ess=float((2 * weights.logsumexp(0) - (2 * weights).logsumexp(0)).exp()),
        size_nats=size_nats if math.isfinite(size_nats) else None,
        baseline=sizes.baseline(graph) if plain else None,
    )


def summarise(model: str, convention: str, samples: int, rows: list[GraphNLL]) -> NLLEstimate:
    """The mean over graphs.

    Raises:
        DatasetError: There are none.
    """
    if not rows:
        raise DatasetError("There are no graphs to score. Check the file with 'graphite-gen inspect'.")
    values = np.array([row.nll for row in rows])
    error = float(values.std(ddof=1) / math.sqrt(len(rows))) if len(rows) > 1 else None

    return NLLEstimate(
        model=model,
        convention=convention,
        graphs=len(rows),
        samples=samples,
        nll=float(values.mean()),
        standard_error=error,
        elbo=float(np.mean([row.elbo for row in rows])),
        ess=float(np.median([row.ess for row in rows])),
        size_nats=_mean_or_none([row.size_nats for row in rows]),
        baseline=_mean_or_none([row.baseline for row in rows]),
        per_graph=tuple(rows),
    )


def _mean_or_none(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]

    return float(np.mean(known)) if len(known) == len(values) else None


def estimate_nll(
    model: TrainedModel,
    graphs: Iterable[SimpleGraph],
    samples: int = 1000,
    seed: int = 0,
    convention: str = "pairs",
) -> NLLEstimate:
    """The mean NLL of graphs, in nats per graph, with its standard error.

    Arguments:
        model: A variational model.
        graphs: What to score; read once, one at a time.
        samples: Proposals per graph, :math:`K`.
        seed: The run's seed.
        convention: ``pairs`` (a law over graphs) or ``paper`` (all cells of the padded matrix).
    """
    rows = list(iterate_nll(model, graphs, samples, seed, convention))

    return summarise(model.name, convention, samples, rows)
