"""PyTorch Geometric's graph autoencoders, as in its example 'autoencoder.py'.

The example has 32 hidden and 16 latent units, trains for 400 epochs at a learning rate of 0.01, and scores each edge
once together with as many negative samples. Its settings were not tuned.
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
    """A model of PyTorch Geometric and its training edges.

    Attributes:
        network: The model.
        optimiser: The optimiser of its weights.
        edges: Each edge once, with shape (2, E).
        both: The edges in both directions, for message passing.
    """

    network: Any
    optimiser: torch.optim.Optimizer
    edges: Tensor
    both: Tensor

    def step(self) -> None:
        """Take one training step."""
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
        """Return the latents in evaluation mode, with shape (N, D)."""
        self.network.eval()
        z: Tensor = self.network.encode(self.both)

        return z


def build_peer(model: str, graph: Network, edges: Tensor, features: bool, seed: int) -> Peer:
    """Build an untrained model.

    Arguments:
        model: One of ``PEERS``.
        graph: The network.
        edges: The training edges, each once, with shape (2, E).
        features: Whether node features are used.
        seed: The seed of all random generators.
    """
    from torch_geometric import seed_everything
    from torch_geometric.nn import GAE, VGAE

    # Negative sampling uses global generators; NumPy's takes seeds of 32 bits.
    seed_everything(seed % 2**32)
    variational = model == "pyg-vgae"
    network = (VGAE if variational else GAE)(_Encoder(graph, features, variational))
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE)

    return Peer(network, optimiser, edges, torch.cat([edges, edges.flip(0)], dim=1))


class _Encoder(nn.Module):
    """The example's encoder; without features the first layer is an embedding table (one-hot features)."""

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
            self.hidden.lin = _Identity()
        self.out = nn.ModuleList(GCNConv(HIDDEN, LATENT) for _ in range(1 + variational))

    def forward(self, edges: Tensor) -> Tensor | tuple[Tensor, ...]:
        h = torch.relu(self.hidden(self.x, edges))
        found = tuple(layer(h, edges) for layer in self.out)

        return found if len(found) > 1 else found[0]


class _Identity(nn.Identity):
    def reset_parameters(self) -> None:
        """Do nothing: there are no parameters."""
