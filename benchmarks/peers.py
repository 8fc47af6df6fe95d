"""PyTorch Geometric's graph autoencoders, as in its example 'autoencoder.py', and tuned.

The example has 32 hidden and 16 latent units, trains for 400 epochs at a learning rate of 0.01, and scores each edge
once together with as many negative samples. ``benchmarks.reproduce.peer_tuning`` chose the other settings, by the
validation edges of splits that no table uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from graphite_gen.network.network import Network

__all__ = ["PEERS", "TUNED", "Peer", "PeerSettings", "build_peer", "peer_settings"]

PEERS = {"pyg-vgae": "VGAE of PyTorch Geometric", "pyg-gae": "GAE of PyTorch Geometric"}
PEERS |= {f"{model}:tuned": f"{label}, tuned" for model, label in PEERS.items()}


@dataclass(frozen=True)
class PeerSettings:
    """Widths, Adam's learning rate, dropout of inputs and hidden units, and the fraction of edges dropped in a step."""

    hidden: int = 32
    latent: int = 16
    learning_rate: float = 0.01
    dropout: float = 0.0
    edge_dropout: float = 0.0
    epochs: int = 400


# By model, and whether it uses node features.
TUNED = {
    ("pyg-vgae", False): PeerSettings(64, 32, learning_rate=0.003),
    ("pyg-vgae", True): PeerSettings(64, 32),
    ("pyg-gae", False): PeerSettings(),
    ("pyg-gae", True): PeerSettings(64, 32, dropout=0.5, edge_dropout=0.5),
}


def peer_settings(model: str, features: bool) -> PeerSettings:
    """Return the settings of a model by its name in ``PEERS``: those of the example, or tuned ones."""
    base, _, tuned = model.partition(":")

    return TUNED[base, features] if tuned else PeerSettings()


@dataclass(frozen=True)
class Peer:
    """A model of PyTorch Geometric and its training edges.

    Attributes:
        network: The model.
        optimiser: The optimiser of its weights.
        edges: Each edge once, with shape (2, E).
        both: The edges in both directions, for message passing.
        edge_dropout: The fraction of edges that message passing leaves out in a training step.
    """

    network: Any
    optimiser: torch.optim.Optimizer
    edges: Tensor
    both: Tensor
    edge_dropout: float = 0.0

    def step(self) -> None:
        """Take one training step."""
        from torch_geometric.utils import dropout_edge

        self.network.train()
        z = self.network.encode(dropout_edge(self.both, self.edge_dropout, force_undirected=True)[0])
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


def build_peer(
    model: str, graph: Network, edges: Tensor, features: bool, seed: int, settings: PeerSettings | None = None
) -> Peer:
    """Build an untrained model.

    Arguments:
        model: One of ``PEERS``.
        graph: The network.
        edges: The training edges, each once, with shape (2, E).
        features: Whether node features are used.
        seed: The seed of all random generators.
        settings: Its settings; None for those of its name.
    """
    from torch_geometric import seed_everything
    from torch_geometric.nn import GAE, VGAE

    # Negative sampling uses global generators; NumPy's takes seeds of 32 bits.
    seed_everything(seed % 2**32)
    own = settings or peer_settings(model, features)
    variational = model.startswith("pyg-vgae")
    network = (VGAE if variational else GAE)(_Encoder(graph, features, variational, own))
    optimiser = torch.optim.Adam(network.parameters(), lr=own.learning_rate)

    return Peer(network, optimiser, edges, torch.cat([edges, edges.flip(0)], dim=1), own.edge_dropout)


class _Encoder(nn.Module):
    """The example's encoder; without features the first layer is an embedding table (one-hot features)."""

    def __init__(self, graph: Network, features: bool, variational: bool, settings: PeerSettings) -> None:
        super().__init__()
        from torch_geometric.nn import GCNConv

        if features:
            assert graph.features is not None
            x = torch.from_numpy(graph.features.toarray()).float()
            # The example's 'NormalizeFeatures'.
            self.x = x / x.sum(1, keepdim=True).clamp_min(1)
            self.hidden = GCNConv(x.shape[1], settings.hidden)
        else:
            self.x = nn.Parameter(nn.init.xavier_uniform_(torch.empty(graph.nodes, settings.hidden)))
            self.hidden = GCNConv(settings.hidden, settings.hidden)
            self.hidden.lin = _Identity()
        self.dropout = nn.Dropout(settings.dropout)
        self.out = nn.ModuleList(GCNConv(settings.hidden, settings.latent) for _ in range(1 + variational))

    def forward(self, edges: Tensor) -> Tensor | tuple[Tensor, ...]:
        h = self.dropout(torch.relu(self.hidden(self.dropout(self.x), edges)))
        found = tuple(layer(h, edges) for layer in self.out)

        return found if len(found) > 1 else found[0]


class _Identity(nn.Identity):
    def reset_parameters(self) -> None:
        """Do nothing: there are no parameters."""
