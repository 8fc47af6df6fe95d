"""PyTorch Geometric's autoencoders of one graph, as in its example 'autoencoder.py'.

It has 32 hidden and 16 latent units, 400 epochs at a rate of 0.01, and scores each edge once, with as many pairs that
are none. Nothing of it was tuned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from graphite_gen.network.network import Network

__all__ = ["EPOCHS", "PEERS", "Peer", "build_peer"]

PEERS = {"pyg-vgae": "VGAE of PyTorch Geometric", "pyg-gae": "GAE of PyTorch Geometric"}
HIDDEN, LATENT, EPOCHS, RATE = 32, 16, 400, 0.01


@dataclass(frozen=True)
class Peer:
    """A model of the peer and the edges it learns.

    Attributes:
        network: The model.
        optimiser: What its weights are learned by.
        edges: Each edge once, with shape (2, E).
        both: The same in both directions, which messages pass over.
    """

    network: Any
    optimiser: torch.optim.Optimizer
    edges: Tensor
    both: Tensor

    def step(self) -> None:
        """One step of training."""
        self.network.train()
        z = self.network.encode(self.both)
        loss = self.network.recon_loss(z, self.edges)
        if hasattr(self.network, "kl_loss"):
            loss = loss + self.network.kl_loss() / len(z)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()

    @torch.no_grad()
    def latents(self) -> Tensor:
        """What it makes of the nodes when it is not learning, with shape (N, D)."""
        self.network.eval()
        z: Tensor = self.network.encode(self.both)

        return z


def build_peer(model: str, graph: Network, edges: Tensor, features: bool, seed: int) -> Peer:
    """A fresh model of the peer.

    Arguments:
        model: One of ``PEERS``.
        graph: The graph that nodes and features are of.
        edges: The edges to learn, each once, with shape (2, E).
        features: Whether it reads the features of the nodes.
        seed: The seed of all generators that it draws from.
    """
    from torch_geometric import seed_everything
    from torch_geometric.nn import GAE, VGAE

    # It draws pairs without an edge from generators of its own choice; NumPy's takes seeds of 32 bits.
    seed_everything(seed % 2**32)
    variational = model == "pyg-vgae"
    network = (VGAE if variational else GAE)(_Encoder(graph, features, variational))
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE)

    return Peer(network, optimiser, edges, torch.cat([edges, edges.flip(0)], dim=1))


class _Encoder(nn.Module):
    """The example's encoder; without features the first weights are looked up, as multiplying by one does."""

    def __init__(self, graph: Network, features: bool, variational: bool) -> None:
        super().__init__()
        from torch_geometric.nn import GCNConv

        if features:
            assert graph.features is not None
            x = torch.from_numpy(graph.features.toarray()).float()
            # The example's 'NormalizeFeatures'.
            self.x = x / x.sum(1, keepdim=True).clamp_min(1)
            self.hidden = GCNConv(x.shape[1], HIDDEN)
        else:
            self.x = nn.Parameter(nn.init.xavier_uniform_(torch.empty(graph.nodes, HIDDEN)))
            self.hidden = GCNConv(HIDDEN, HIDDEN)
            self.hidden.lin = _AsItIs()
        self.out = nn.ModuleList(GCNConv(HIDDEN, LATENT) for _ in range(1 + variational))

    def forward(self, edges: Tensor) -> Tensor | tuple[Tensor, ...]:
        h = torch.relu(self.hidden(self.x, edges))
        found = tuple(layer(h, edges) for layer in self.out)

        return found if len(found) > 1 else found[0]


class _AsItIs(nn.Identity):
    def reset_parameters(self) -> None:
        """Do nothing: there are none."""
