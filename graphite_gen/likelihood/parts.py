"""The parts of the NLL of graphs with attributes, each beside a baseline of independent values."""

from __future__ import annotations

import math

import numpy as np
import torch

from ..autoregressive.decoder import AutoregressiveDecoder
from ..autoregressive.ordering import permute_to_ordering
from ..data.batch import GraphBatch
from ..data.edge_states import arc_codes
from ..data.schema import CodedGraph
from ..graph import SimpleGraph
from ..rng import stream
from ..training.checkpoint import TrainedModel
from .proposal import standard_normal

__all__ = ["attribute_nats", "baseline_nats"]

# Orderings and latents that the parts are averaged over.
SAMPLES = 16


@torch.no_grad()
def attribute_nats(model: TrainedModel, batch: GraphBatch, seed: int, index: int) -> dict[str, float]:
    r"""The parts of the NLL of one graph that are due to ``labels``, ``types``, ``features`` and ``weights``.

    They are in nats, and means of :math:`-\log p(L | \ldots)` over node orderings and latents, by their importance
    weights; the rest of the NLL is due to the structure. The batch has no padding.
    """
    network, config = model.network, model.config
    rng = stream(seed, "parts", index)
    many = batch.each(lambda part: part.expand(SAMPLES, *part.shape[1:]))
    ordered, log_q = permute_to_ordering(many, config, rng, is_unbiased=True)
    posterior = network.encode(ordered, standard_normal(rng, batch.adj, *ordered.mask.shape, network.noise_features))
    z = posterior.sample(standard_normal(rng, batch.adj, *ordered.mask.shape, config.latent))
    parts = network.decode_autoregressive(z, ordered.x, ordered.sizes).log_probs(ordered)
    log_ratio = network.prior(ordered.mask).log_prob(z) - posterior.log_prob(z)
    weights = (torch.stack(list(parts.values())).sum(0) - log_q + log_ratio).softmax(0)

    return {name: -float(weights @ part) for name, part in parts.items() if name != "structure"}


def baseline_nats(model: TrainedModel, graph: SimpleGraph) -> dict[str, float]:
    """The baseline of each part of the NLL of an encoded graph, in nats: values that do not depend on the graph.

    Labels and types have their frequencies in the training graphs, weights and every column of node features one normal
    distribution of standardised values. Directions are part of the structure, whose edges have the ER baseline.
    """
    schema, found = model.schema, {"structure": model.sizes.baseline(graph)}
    if not isinstance(graph, CodedGraph):
        return found
    if graph.labels is not None:
        found["labels"] = _nats(graph.labels, schema.frequencies["labels"])
    arcs = graph.states
    if schema.directed and graph.states is not None:
        forward, backward = arc_codes(graph.states, len(schema.edge_values))
        arcs = np.concatenate([forward[forward > 0], backward[backward > 0]]) - 1
        is_both = (forward > 0) & (backward > 0)
        # An edge one way has two directions.
        found["structure"] += _nats(is_both.astype(np.int64), schema.frequencies["directions"])
        found["structure"] += math.log(2) * float((~is_both).sum())
    if schema.edge_label is not None and arcs is not None:
        found["types"] = _nats(arcs, schema.frequencies["types"])
    decoder = model.network.decoder
    if graph.generated is not None and isinstance(decoder, AutoregressiveDecoder) and decoder.node_feature is not None:
        found["features"] = -float(decoder.node_feature.baseline(torch.from_numpy(graph.generated)).sum())
    if graph.arc_weights is not None and isinstance(decoder, AutoregressiveDecoder) and decoder.edge_weight is not None:
        values = graph.arc_weights if schema.directed else graph.arc_weights[:, 0]
        values = values[~np.isnan(values)]
        found["weights"] = -float(decoder.edge_weight.baseline(torch.from_numpy(values)).sum())

    return found


def _nats(numbers: np.ndarray[tuple[int, ...], np.dtype[np.int64]], counts: tuple[int, ...]) -> float:
    """-log p of independent values with the frequencies of counts, to each of which a half is added."""
    weights = np.array(counts, dtype=np.float64) + 0.5

    return -float(np.log(weights / weights.sum())[numbers].sum())
