"""Baselines of link prediction: walks, common neighbours, and embeddings that are not trained on pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from ..errors import ConfigError
from .pair_logits import PairLogits
from .pair_scores import CommonNeighbours, PairScores, adjacency_of, katz, pagerank
from .splits import Pairs, contains_pairs

__all__ = ["BASELINES", "CHEAP", "baseline_scores", "check_baseline", "spectral_embedding"]

# More dimensions are worse; chosen by validation edges of Cora and Citeseer.
SPECTRAL_DIMENSIONS = 32
# The eigenvalues of paths and roads are dense: the relative accuracy of vectors, and restarts after which those that
# have not reached it are left out.
ACCURACY, RESTARTS = 1e-4, 200
# As published for DeepWalk and node2vec.
WALK_DIMENSIONS = 128
WALKS, LENGTH, CONTEXT = 10, 80, 10
# The return and in-out parameters p and q of node2vec.
RETURN, IN_OUT = 1.0, 2.0
TELEPORT = 0.1
CHEAP = ("pagerank", "common-neighbours", "resource-allocation", "adamic-adar", "katz", "spectral")
"""Baselines that need no extra package and no training."""
BASELINES = (*CHEAP, "deepwalk", "node2vec")


def baseline_scores(name: str, nodes: int, edges: Pairs, seed: int) -> PairScores:
    """The scores of all pairs by a baseline, given edges of shape :math:`(E, 2)`."""
    draw = np.random.default_rng(seed)
    methods: dict[str, Callable[[], PairScores]] = {
        "pagerank": lambda: pagerank(nodes, edges, TELEPORT),
        "katz": lambda: katz(nodes, edges),
        "spectral": lambda: _products(spectral_embedding(nodes, edges)),
        "deepwalk": lambda: _products(walk_embedding(nodes, edges, draw)),
        "node2vec": lambda: _products(walk_embedding(nodes, edges, draw, RETURN, IN_OUT)),
    }

    return methods[name]() if name in methods else CommonNeighbours.from_edges(nodes, edges, name)


def _products(z: NDArray[np.float64]) -> PairLogits:
    return PairLogits.inner_product(torch.from_numpy(z).to(torch.get_default_dtype()))


def check_baseline(name: str) -> None:
    """Raise ConfigError if a baseline needs a package that is not installed."""
    if name in ("deepwalk", "node2vec"):
        _skip_gram()


def _skip_gram() -> Any:
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise ConfigError("DeepWalk and node2vec need gensim: 'pip install graphite-gen[walks]'.") from None

    return Word2Vec


def spectral_embedding(nodes: int, edges: Pairs, dimensions: int = SPECTRAL_DIMENSIONS) -> NDArray[np.float64]:
    r"""Regularised spectral embedding (Amini et al., 2013), scaled by roots of eigenvalues, with shape :math:`(n, d)`.

    .. math:: D_\tau^{-1/2} (A + \tau 11^T / n) D_\tau^{-1/2}, \quad D_\tau = D + \tau, \quad \tau = \text{mean degree}

    Without :math:`\tau` every component has a leading eigenvector of its own. In a graph with hundreds of components
    those fill the embedding, in a basis that depends on the solver; with :math:`\tau` the embedding is unique.
    """
    adjacency = adjacency_of(nodes, edges)
    degrees = adjacency.sum(axis=1)
    tau = max(float(degrees.mean()), np.finfo(np.float64).tiny) if nodes else 1.0
    scale = 1 / np.sqrt(degrees + tau)

    def multiply(v: NDArray[np.float64]) -> NDArray[np.float64]:
        scaled = scale * v.ravel()
        return np.asarray(scale * (adjacency @ scaled + tau * scaled.mean()))

    if nodes <= 2 * dimensions:
        dense = scale[:, None] * (adjacency.toarray() + tau / nodes) * scale
        values, vectors = np.linalg.eigh(dense)
        values, vectors = values[-dimensions:], vectors[:, -dimensions:]
    else:
        # A fixed start vector makes the result reproducible.
        start = np.random.default_rng(0).random(nodes)
        operator = LinearOperator((nodes, nodes), matvec=multiply, dtype=np.float64)
        try:
            values, vectors = eigsh(operator, k=dimensions, which="LA", v0=start, tol=ACCURACY, maxiter=RESTARTS)
        except ArpackNoConvergence as error:
            values, vectors = np.zeros(dimensions), np.zeros((nodes, dimensions))
            found = len(error.eigenvalues)
            values[:found], vectors[:, :found] = error.eigenvalues, error.eigenvectors

    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


def random_walks(
    nodes: int, edges: Pairs, generator: np.random.Generator, length: int, back: float = 1.0, away: float = 1.0
) -> NDArray[np.int64]:
    r"""One random walk from every node, with shape :math:`(n, T)`; walks from isolated nodes stay there.

    The second-order walk of node2vec (Grover & Leskovec, 2016) moves from :math:`t` over :math:`v` to a neighbour
    :math:`x` of :math:`v` with weight :math:`1/p` if :math:`x = t`, :math:`1` if :math:`x` is a neighbour of :math:`t`,
    else :math:`1/q`, by rejection from uniform proposals. ``back`` is :math:`p`, ``away`` is :math:`q`; at 1 and 1 it
    is the walk of DeepWalk.
    """
    adjacency = adjacency_of(nodes, edges)
    starts, degrees = adjacency.indptr[:-1], np.diff(adjacency.indptr)
    walks = np.empty((nodes, length), dtype=np.int64)
    walks[:, 0] = np.arange(nodes)
    most = max(1 / back, 1, 1 / away)
    for step in range(1, length):
        here = walks[:, step - 1]
        walks[:, step] = here
        moving = np.flatnonzero(degrees[here] > 0)
        while len(moving):
            at = here[moving]
            proposed = adjacency.indices[starts[at] + generator.integers(0, degrees[at])]
            if step > 1 and (back, away) != (1, 1):
                before = walks[moving, step - 2]
                near = contains_pairs(nodes, edges, np.sort(np.stack([before, proposed], axis=1), axis=1))
                odds = np.where(proposed == before, 1 / back, np.where(near, 1, 1 / away))
                accepted = generator.random(len(moving)) * most < odds
            else:
                accepted = np.ones(len(moving), dtype=np.bool_)
            walks[moving[accepted], step] = proposed[accepted]
            moving = moving[~accepted]

    return walks


def walk_embedding(
    nodes: int,
    edges: Pairs,
    generator: np.random.Generator,
    back: float = 1.0,
    away: float = 1.0,
    *,
    walks: int = WALKS,
    length: int = LENGTH,
    dimensions: int = WALK_DIMENSIONS,
) -> NDArray[np.float64]:
    """DeepWalk (Perozzi et al., 2014) or node2vec: skip-grams over random walks, with shape :math:`(n, d)`."""
    words = [str(node) for node in range(nodes)]
    sentences: list[list[str]] = []
    for seed in generator.integers(2**63, size=walks):
        draw = np.random.default_rng(seed)
        rows = draw.permutation(random_walks(nodes, edges, draw, length, back, away))
        sentences += ([words[node] for node in row] for row in rows.tolist())
    model: Any = _skip_gram()(
        sentences,
        vector_size=dimensions,
        window=CONTEXT,
        min_count=0,
        sg=1,
        workers=1,
        epochs=1,
        seed=int(generator.integers(2**31)),
    )
    order = [model.wv.key_to_index[word] for word in words]

    return np.asarray(model.wv.vectors[order], dtype=np.float64)
