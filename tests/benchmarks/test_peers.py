"""PyTorch Geometric's models with the settings of its example and with tuned ones."""

import json

import networkx as nx
import pytest
import torch

from benchmarks import peers
from benchmarks.reproduce import peer_tuning
from benchmarks.tables import FOLDER
from graphite_gen.graph import SimpleGraph
from graphite_gen.network.network import Network

pytest.importorskip("torch_geometric")


def test_tuned_settings_are_the_best_of_the_published_grid() -> None:
    table = json.loads((FOLDER / "peer_tuning.json").read_text(encoding="utf-8"))
    for column, (model, features) in enumerate([(m, f) for m in ("pyg-vgae", "pyg-gae") for f in (False, True)], 4):
        (row,) = [row for row in table["rows"] if "chosen" in row[column]]
        assert peers.TUNED[model, features] == peer_tuning.settings_of(tuple(map(float, row[:4])))


@pytest.mark.parametrize("model", peers.PEERS)
def test_widths_and_edge_dropout_are_those_of_the_settings(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = nx.gnm_random_graph(30, 80, seed=0)
    network = Network(SimpleGraph.from_pairs(30, list(graph.edges)))
    edges = torch.tensor(list(graph.edges)).T
    own = peers.PeerSettings(8, 4, dropout=0.5, edge_dropout=0.5)
    peer = peers.build_peer(model, network, edges, False, 0, own)
    seen: list[torch.Tensor] = []
    encode = peer.network.encode
    monkeypatch.setattr(peer.network, "encode", lambda both: (seen.append(both), encode(both))[1])
    before = [weight.clone() for weight in peer.network.parameters()]
    peer.step()

    assert peer.latents().shape == (30, 4)
    # Both directions of about half of the edges in a step, of all afterwards.
    assert 40 < seen[0].shape[1] < 120
    assert seen[0].shape[1] % 2 == 0
    assert {tuple(pair) for pair in seen[0].T.tolist()} == {tuple(pair) for pair in seen[0].flip(0).T.tolist()}
    assert seen[1].shape[1] == 160
    assert any((old != new).any() for old, new in zip(before, peer.network.parameters(), strict=True))
