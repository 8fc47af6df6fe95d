"""The readers under test, with valid inputs to mutate and checks of the result."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import random
import re
import shutil
import struct
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from graphite_gen.data.encoded import EncodedGraph
from graphite_gen.families.simulate import generate
from graphite_gen.graph import SimpleGraph
from graphite_gen.io import read_graphs, write_graphs
from graphite_gen.io.latents import read_latents, write_latents
from graphite_gen.network.generation import fit_network_model
from graphite_gen.network.hyperparameters import GENERATION
from graphite_gen.network.network import Network, read_network
from graphite_gen.network.storage import load_network, save_network
from graphite_gen.records import Provenance
from graphite_gen.training.checkpoint import TrainedModel, load_checkpoint
from graphite_gen.training.model_card import describe_model, model_facts
from graphite_gen.training.runs import TrainingData, find_training_graphs, resume_run, start_run
from graphite_gen.training.trainer import read_history, read_run

from .h5 import spoil_h5
from .mutations import CUT, VALUES, packed, spoil_bytes, spoil_json, spoil_text, spoil_xml
from .oracles import PLAIN_READERS, plain_h5, plain_of, whole_of
from .supervision import Reader

__all__ = ["readers"]

Trial = tuple[str, Callable[[], Any], Callable[[Any], str | None]]
Spoil = Callable[[random.Random, bytes], tuple[str, bytes]]

_SPOILS: dict[str, Spoil] = {"graphml": spoil_xml, "jsonl": spoil_json}
# A file of these that ends between two lines or lists is a shorter file: nothing in it could tell.
_OPEN_ENDED = ("g6", "s6", "jsonl", "edgelist", "gml", "csv", "tsv")
# Expands to 64 MB; what its beginning says makes each format go on reading.
_BOMBS = {"graphml": b"<graphml><graph>" + b" " * 48, "gml": b"graph [ ", "jsonl": b'{"nodes": [', "edgelist": b"0 1 {"}


def _seeds(format: str) -> list[list[SimpleGraph]]:
    """Small sets of graphs: bare ones, and some with all that the format holds."""
    bare = generate("barabasi", 3, nodes=(4, 7), seed=1).graphs
    edges = np.array([[0, 1], [0, 2], [1, 3], [2, 3]], dtype=np.int32)
    rich = SimpleGraph(
        4,
        edges,
        np.array([0.5, 2.0, -1.25, 1e-3]),
        np.arange(8, dtype=np.float32).reshape(4, 2) / 4,
        ("a", "b", 3, "d é"),
        {"colour": ["red", None, "blue", "green"], "size": [1, 2, 3, 4]},
        {"kind": ["x", "y", None, "x"]},
        {"family": "barabasi", "split": "test", "note": [1, {"a": None}]},
    )
    arcs = np.array([[0, 1], [1, 0], [2, 3], [3, 1]], dtype=np.int32)
    directed = [] if format in ("g6", "s6") else [replace(rich, edges=arcs, directed=True)]
    sets = [list(bare), [rich, *bare[:2]], [*bare[:1], rich], [*directed, *bare[:1]]]

    return [graphs[:1] for graphs in ([rich], bare, directed)] if format == "edgelist" else sets


class GraphFile:
    """A text format, or the same packed."""

    def __init__(self, format: str, weight: float, *, gz: bool, root: Path) -> None:
        self.name = f"{format}.gz" if gz else format
        self.weight = weight
        self._format, self._gz = format, gz
        self._spoil = _SPOILS.get(format, spoil_text)
        self._seeds: list[tuple[bytes, list[Any], list[Any]]] = []
        for number, graphs in enumerate(_seeds(format)):
            path = root / f"{number}.{format}"
            write_graphs(graphs, path)
            found = list(read_graphs(path))
            self._seeds.append((path.read_bytes(), list(map(whole_of, found)), list(map(plain_of, found))))
        pattern = _BOMBS.get(format, b"")
        self._bomb = gzip.compress(pattern + b"a 1 0\t" * (1 << 23), 1) if gz else b""

    def trial(self, rng: random.Random, folder: Path) -> Trial:
        data, whole, plain = rng.choice(self._seeds)
        if self._gz and rng.random() < 0.001:
            what, spoilt = "a gzip bomb", self._bomb
        elif self._gz:
            what, spoilt = packed(rng, data, self._spoil)
        else:
            what, spoilt = self._spoil(rng, data)
        if rng.random() < 0.1:
            again, spoilt = spoil_bytes(rng, spoilt)
            what = f"{what}, {again}"
        path = folder / f"x.{self.name}"
        path.write_bytes(spoilt)

        def fault(graphs: list[SimpleGraph]) -> str | None:
            if list(map(whole_of, graphs)) == whole:
                return None
            if what == f"gzip: {CUT}":
                return "a file that was cut short was read"
            # Under gzip's checksum only what was packed can be read.
            contents = gzip.decompress(spoilt) if spoilt[:2] == b"\x1f\x8b" else spoilt
            return _fault(self._format, contents, what.removeprefix("inside gzip: ") == CUT, graphs, plain)

        return what, lambda: list(read_graphs(path)), fault


def _fault(format: str, data: bytes, was_cut: bool, graphs: Sequence[SimpleGraph], plain: list[Any]) -> str | None:
    try:
        expected = PLAIN_READERS[format](data)
    except Exception as error:
        return f"read, though another reader says {type(error).__name__}: {str(error)[:80]}"
    if expected is None:
        return None
    found = list(map(plain_of, graphs))
    if found != expected:
        return f"read as {str(found)[:200]}, by another reader {str(expected)[:200]}"
    if was_cut and found != plain:
        return "cut" if format in _OPEN_ENDED else "a file that was cut short was read"

    return None


class H5File:
    """Our HDF5, spoilt as bytes; its checksums must find it out."""

    name = "h5, bytes"

    def __init__(self, weight: float, root: Path) -> None:
        self.weight = weight
        self._seeds = []
        for number, graphs in enumerate(_seeds("h5")):
            path = root / f"{number}.h5"
            write_graphs(graphs, path, provenance=Provenance(family="barabasi", parameters={"m": 2}, seed=1))
            self._seeds.append((path.read_bytes(), list(map(whole_of, read_graphs(path)))))

    def trial(self, rng: random.Random, folder: Path) -> Trial:
        data, whole = rng.choice(self._seeds)
        what, spoilt = spoil_bytes(rng, data)
        path = folder / "x.h5"
        path.write_bytes(spoilt)

        def fault(graphs: list[SimpleGraph]) -> str | None:
            return None if list(map(whole_of, graphs)) == whole else "other graphs than were written"

        return what, lambda: list(read_graphs(path)), fault


class H5Structure:
    """HDF5 files whose parts are not what they should be, ours and those of others."""

    name = "h5, structure"

    def __init__(self, weight: float, root: Path) -> None:
        self.weight = weight
        sets = _seeds("h5")
        self._seeds = [root / f"{number}.h5" for number in range(len(sets))]
        for path, graphs in zip(self._seeds, sets, strict=True):
            write_graphs(graphs, path)
        self._seeds.append(root / "foreign.h5")
        _write_foreign(self._seeds[-1], sets[0])

    def trial(self, rng: random.Random, folder: Path) -> Trial:
        path = folder / "x.h5"
        what = spoil_h5(rng, rng.choice(self._seeds), path)
        if rng.random() < 0.2:
            again, spoilt = spoil_bytes(rng, path.read_bytes())
            path.write_bytes(spoilt)
            what = f"{what}, {again}"

        def fault(graphs: list[SimpleGraph]) -> str | None:
            return _compared(lambda: plain_h5(path), list(map(plain_of, graphs)))

        return what, lambda: list(read_graphs(path)), fault


def _compared(other: Callable[[], Any], found: Any) -> str | None:
    try:
        expected = other()
    except Exception as error:
        return f"read, though another reader says {type(error).__name__}: {str(error)[:80]}"

    return None if found == expected else f"read as {str(found)[:200]}, by another reader {str(expected)[:200]}"


def _write_foreign(path: Path, graphs: Sequence[SimpleGraph]) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file["node_counts"] = np.array([graph.nodes for graph in graphs])
        file["edge_counts"] = np.array([len(graph.edges) for graph in graphs])
        file["edges"] = np.concatenate([graph.edges for graph in graphs])


class SingleH5:
    """A node classification set in HDF5."""

    name = "network, h5"

    def __init__(self, weight: float, root: Path) -> None:
        import h5py

        self.weight = weight
        self._seeds = [root / "csr.h5", root / "dense.h5"]
        graph = generate("barabasi", 1, nodes=(9, 9), seed=2).graphs[0]
        x = sparse.csr_array(np.random.default_rng(0).random((9, 4)).round(1).astype(np.float32))
        for path in self._seeds:
            with h5py.File(path, "w") as file:
                file["edge_index"] = graph.edges.T
                file["labels"] = np.arange(9) % 3
                for name, part in (("train_idx", [0, 1, 2]), ("val_idx", [3, 4]), ("test_idx", [5, 6, 7])):
                    file[name] = np.array(part)
                if path.stem == "dense":
                    file["features"] = x.toarray()
                    continue
                group = file.create_group("features")
                group["data"], group["indices"], group["indptr"] = x.data, x.indices, x.indptr
                group.attrs["shape"] = x.shape

    def trial(self, rng: random.Random, folder: Path) -> Trial:
        path, seed = folder / "x.h5", rng.choice(self._seeds)
        if rng.random() < 0.5:
            what = spoil_h5(rng, seed, path)
        else:
            what, spoilt = spoil_bytes(rng, seed.read_bytes())
            path.write_bytes(spoilt)

        def fault(found: Any) -> str | None:
            return _compared(lambda: plain_h5(path), [plain_of(found.graph)]) or _node_fault(found)

        return what, lambda: read_network(path), fault


def _node_fault(found: Any) -> str | None:
    """What cannot be of nodes, their features, labels and split."""
    n = found.nodes
    if found.features is not None and (found.features.shape[0] != n or not np.isfinite(found.features.data).all()):
        return "features that are not one finite row for each node"
    if found.labels is not None and (len(found.labels) != n or not (found.labels >= -1).all()):
        return "labels that are not one for each node"
    parts = () if found.split is None else (found.split.train, found.split.validation, found.split.test)
    if any(len(part) and not 0 <= part.min() <= part.max() < n for part in parts):
        return "a split of other nodes"

    return None


class Annotations:
    """Features or labels beside a graph."""

    def __init__(self, kind: str, suffix: str, weight: float, root: Path) -> None:
        self.name = f"{kind}, {suffix}"
        self.weight = weight
        self._kind, self._suffix = kind, suffix
        self._graph = root / "graph.edgelist"
        self._graph.write_text("a b\nb c\nc d\nd a\n")
        ids, x, labels = np.array(list("abcd")), np.arange(12).reshape(4, 3) / 8, ["u", "v", "u", "w"]
        parts = ["train", "train", "val", "test"]
        text, arrays = io.StringIO(), io.BytesIO()
        if kind == "features":
            text.write(
                "id,x,y,z\n" + "".join(f"{name},{','.join(map(str, row))}\n" for name, row in zip(ids, x, strict=True))
            )
            self._variants = [{"features": x, "ids": ids}, {"features": x.astype(np.float32)}]
        else:
            text.write("id,label,split\n" + "".join(map("{},{},{}\n".format, ids, labels, parts)))
            self._variants = [
                {"labels": np.array(labels), "ids": ids, "split": np.array(parts)},
                {"labels": np.arange(4)},
            ]
        self._seeds = [text.getvalue().encode()]
        if suffix == "npz":
            self._seeds = []
            for variant in self._variants:
                for save in (np.savez, np.savez_compressed):
                    arrays = io.BytesIO()
                    save(arrays, **variant)
                    self._seeds.append(arrays.getvalue())
            if kind == "features":
                arrays = io.BytesIO()
                sparse.save_npz(arrays, sparse.csr_array(x))
                self._seeds.append(arrays.getvalue())
        path = root / f"sound.{suffix}"
        self._sound = []
        for data in self._seeds:
            path.write_bytes(data)
            self._sound.append(_described(self._read(path)))

    def _read(self, path: Path) -> Any:
        return read_network(self._graph, **{self._kind: path})

    def trial(self, rng: random.Random, folder: Path) -> Trial:
        path = folder / f"x.{self._suffix}"
        which = rng.randrange(len(self._seeds))
        exact = False
        if self._suffix == "csv":
            what, spoilt = spoil_text(rng, self._seeds[which])
        elif rng.random() < 0.5:
            what, spoilt = spoil_npz(rng, rng.choice(self._variants))
        else:
            what, spoilt = spoil_bytes(rng, self._seeds[which])
            # A zip file has a checksum of each of its members.
            exact = True
        path.write_bytes(spoilt)

        def fault(found: Any) -> str | None:
            if exact and _described(found) != self._sound[which]:
                return "other values than were written"
            if what == CUT and _described(found) != self._sound[which]:
                return "cut"
            return _node_fault(found)

        return what, lambda: self._read(path), fault


def _described(found: Any) -> Any:
    x = None if found.features is None else found.features.toarray().tolist()
    parts = (
        None
        if found.split is None
        else [p.tolist() for p in (found.split.train, found.split.validation, found.split.test)]
    )

    return x, None if found.labels is None else found.labels.tolist(), list(map(str, found.classes)), parts


def spoil_npz(rng: random.Random, arrays: dict[str, Any]) -> tuple[str, bytes]:
    """An npz file that is a sound archive of unsound members."""
    stream = io.BytesIO()
    victim = rng.choice(list(arrays))
    what = rng.choice(
        ("a huge shape", "another type", "another shape", "objects", "a bomb", "a header replaced", "twice", "no array")
    )
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            data = _npy(array)
            if name == victim:
                data = _spoilt_npy(rng, what, array)
            archive.writestr(f"{name}.npy", data)
            if name == victim and what == "twice":
                archive.writestr(f"{rng.choice(('features', 'ids', '../ids'))}.npy", _npy(np.arange(7)))

    return f"npz: {what}", stream.getvalue()


def _npy(array: Any, **header: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **header)

    return stream.getvalue()


def _spoilt_npy(rng: random.Random, what: str, array: Any) -> bytes:
    data = _npy(array)
    if what == "a huge shape":
        shape = rng.choice(
            (b"(10**9,)", b"(999999999999, 4)", b"(99999999,)", b"(4, 99999999)", b"(-1, 3)", b"(4, 0)", b"()")
        )
        return re.sub(rb"\([^)]*\)", shape, data, count=1)
    if what == "another type":
        kind = rng.choice(
            ("<U3", "<c16", "?", "<i8", "<f2", "<M8[s]", "S4", [("a", "<i4"), ("b", "<f8")], ">f8", "<u8")
        )
        return _npy(np.zeros(np.shape(array), dtype=kind))
    if what == "another shape":
        return _npy(np.zeros(rng.choice(((), (0,), (4,), (3, 3), (5, 3), (4, 0), (2, 2, 2), (4, 3), (4, 1)))))
    if what == "objects":
        return _npy(np.array([{"a": 1}] * 4, dtype=object), allow_pickle=True)
    if what == "a bomb":
        return _npy(np.zeros((4, 10**4 if rng.random() < 0.97 else 4 * 10**6), dtype=np.float32))
    if what == "no array":
        return rng.randbytes(64)
    if what == "a header replaced":
        return spoil_text(rng, data[:128])[1] + data[128:]

    return data


class Latents:
    """Files of latents, as 'encode' writes them; only npz has checksums."""

    def __init__(self, suffix: str, weight: float, root: Path) -> None:
        self.name = f"latents, {suffix}"
        self.weight = weight
        self._suffix = suffix
        rng = np.random.default_rng(3)

        def encoded(nodes: int, **rest: Any) -> EncodedGraph:
            mean, std = rng.normal(size=(2, nodes, 2)).astype(np.float32)
            return EncodedGraph(mean, abs(std), **rest)

        names = ("a", 2, "c é", "d")
        rich = {"position": np.array([2, 0, 1, 3], np.int32), "features": np.ones((4, 3), np.float32), "names": names}
        self._seeds = []
        for number, graphs in enumerate(([encoded(3), encoded(5)], [encoded(4, **rich)])):
            path = root / f"{number}.{suffix}"
            write_latents(graphs, path, model="m")
            self._seeds.append((path, list(map(_latents_of, read_latents(path)))))

    def trial(self, rng: random.Random, folder: Path) -> Trial:
        seed, sound = rng.choice(self._seeds)
        path, exact = folder / f"x.{self._suffix}", False
        if self._suffix == "h5" and rng.random() < 0.7:
            what = spoil_h5(rng, seed, path)
        else:
            if self._suffix == "npz" and rng.random() < 0.5:
                with np.load(seed) as arrays:
                    what, spoilt = spoil_npz(rng, dict(arrays))
            else:
                spoil = {"csv": spoil_text, "jsonl": spoil_json}.get(self._suffix, spoil_bytes)
                what, spoilt = spoil(rng, seed.read_bytes())
                exact = self._suffix == "npz"
            path.write_bytes(spoilt)

        def fault(found: list[EncodedGraph]) -> str | None:
            own = list(map(_latents_of, found))
            if own == sound:
                return None
            if exact:
                return "other values than were written"
            if what == CUT:
                return "cut"
            return _compared(lambda: _plain_latents(path), [mean for mean, *_ in own])

        return what, lambda: read_latents(path), fault


def _latents_of(one: EncodedGraph) -> Any:
    parts = (one.mean, one.std, one.position, one.features)

    return *(None if part is None else part.tolist() for part in parts), one.names


def _plain_latents(path: Path) -> Any:
    """The means of each graph, read without any checks."""
    if path.suffix == ".jsonl":
        rows = [json.loads(line)["mean"] for line in path.read_bytes().split(b"\n") if line.strip()]
        return [np.array(row, dtype=np.float32).tolist() for row in rows]
    if path.suffix == ".csv":
        table = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
        columns = [name for name in table[0] if re.fullmatch(r"z\d+", name)]
        return [
            np.array([[row[name] for name in columns] for row in rows]).astype(np.float64).astype(np.float32).tolist()
            for _, rows in groupby(table, key=lambda row: row["graph"])
        ]
    import h5py

    with h5py.File(path) if path.suffix == ".h5" else np.load(path) as file:
        counts, mean = file["node_counts"][()], file["mean"][()].astype(np.float32)

    return [part.tolist() for part in np.split(mean, np.cumsum(counts)[:-1])]


# Checkpoints --------------------------------------------------------------------------------------------------

_TINY = {
    "width": 4,
    "rounds": 1,
    "epochs": 1,
    "epoch_graphs": 0,
    "batch_size": 8,
}


def _train(folder: Path) -> None:
    graphs = folder.parent / "graphs.g6"
    write_graphs(generate("powerlaw-tree", 8, nodes=(4, 6), seed=3).graphs, graphs)
    for _ in start_run("tiny", folder, TrainingData(file=str(graphs)), _TINY):
        pass


def _spoil_safetensors(rng: random.Random, data: bytes) -> tuple[str, bytes]:
    """Spoil the header of a safetensors file, or any of its bytes."""
    if rng.random() < 0.4:
        return spoil_bytes(rng, data)
    size = struct.unpack("<Q", data[:8])[0]
    header, body = data[8 : 8 + size], data[8 + size :]
    way = rng.choice(("json", "length", "offsets", "dtype", "shape", "metadata", "state", "text"))
    if way == "length":
        return "a header of another length", struct.pack(
            "<Q", rng.choice((0, 1, size - 1, size + 8, 2**27, 2**40, 2**63, 2**64 - 1))
        ) + data[8:]
    if way == "text":
        what, header = spoil_text(rng, header)
        return f"header: {what}", struct.pack("<Q", len(header)) + header + body
    tree = json.loads(header)
    name = rng.choice([each for each in tree if each != "__metadata__"])
    if way == "offsets":
        tree[name]["data_offsets"] = rng.choice(
            (
                [0, 4],
                [0, 2**62],
                [-1, 4],
                [8, 4],
                [0],
                tree[rng.choice([k for k in tree if k != "__metadata__"])]["data_offsets"],
            )
        )
    elif way == "dtype":
        tree[name]["dtype"] = rng.choice(
            ("F64", "I32", "F16", "BF16", "U32", "I64", "BOOL", "C64", "F8_E4M3", "X", 5, None)
        )
    elif way == "shape":
        tree[name]["shape"] = rng.choice(
            ([], [0], [2**40, 2**40], [-1], [2**62], tree[name]["shape"][::-1], [1, *tree[name]["shape"]])
        )
    elif way == "state":
        # Without the digest, as a file that means it would be.
        state = tree.get("__metadata__", {}).get("state", "{}")
        tree["__metadata__"] = {"state": spoil_json(rng, state.encode())[1].decode("utf-8", "replace")}
    elif way == "metadata":
        tree["__metadata__"] = rng.choice(
            ({}, None, {"state": "{}"}, {"state": "[" * 10_000}, {"state": 5}, {"a": "b" * 9999})
        )
    else:
        return_value = rng.choice(VALUES)
        tree[rng.choice((name, "x", ""))] = return_value
    header = json.dumps(tree).encode("utf-8", "surrogatepass")

    return f"header: {way}", struct.pack("<Q", len(header)) + header + body


def _spoil_config(rng: random.Random, data: bytes) -> tuple[str, bytes]:
    """Spoil a config, now and then with its checksum put right, as someone would who means it."""
    tree = json.loads(data)
    part = rng.choice(
        [each for each in ("model", "sizes", "training", "provenance", "results", "graph") if each in tree]
    )
    huge = rng.choice((2**12, 10**6, 10**9, 2**40, -1, 0, 10**30))
    if isinstance(tree[part], dict) and tree[part] and rng.random() < 0.4:
        tree[part][rng.choice(list(tree[part]))] = rng.choice((huge, huge, [huge, huge], *VALUES))
        tree.pop("checksum", None)
        return f"{part} changed", json.dumps(tree).encode("utf-8", "surrogatepass")

    return spoil_json(rng, data)


class Checkpoint:
    """A model of many graphs or of one, one part of it spoilt."""

    def __init__(self, part: str, weight: float, root: Path, *, single: bool = False) -> None:
        self.name = f"{'network ' if single else ''}checkpoint, {part}"
        self.weight = weight
        self._part, self._root = part, root / "model"
        self._load: Callable[[Path], Any] = load_network if single else load_checkpoint
        if single:
            graph = Network(generate("barabasi", 1, nodes=(8, 8), seed=2).graphs[0])
            save_network(fit_network_model(graph, replace(GENERATION, epochs=2, latent=3), name="tiny"), self._root)
        else:
            _train(self._root)
        self._names = [path.name for path in self._root.iterdir() if path.is_file()]
        self._sound = self._tell(self._root)
        self._data = (self._root / part).read_bytes()
        self._spoil = (
            _spoil_safetensors
            if part.endswith("safetensors")
            else _spoil_config
            if part == "config.json"
            else spoil_json
        )

    def _tell(self, folder: Path) -> Any:
        """All that the part says, as the program reads it."""
        if self._part == "optimizer.safetensors":
            trainer = resume_run(folder, {})
            states = map(trainer._optimiser.moments, trainer.network.parameters())
            moments = [{key: value.tolist() for key, value in each.items()} for each in states]
            return read_run(folder), find_training_graphs(folder).fingerprint, vars(trainer._progress), moments
        if self._part == "history.jsonl":
            return [record.to_json() for record in read_history(folder)]
        model = self._load(folder)
        if isinstance(model, TrainedModel):
            model_facts(describe_model(model, folder))
        network = getattr(model, "network", None) or model.decoder
        weights = {name: value.numpy().tobytes() for name, value in network.state_dict().items()}
        if hasattr(model, "posterior"):
            nodes = (model.posterior.mu, model.posterior.log_sigma, model.evidence, model.degrees, model.biases)
            return (
                model.name,
                model.settings,
                weights,
                model.seed,
                model.provenance,
                *(each.numpy().tobytes() for each in nodes),
            )

        return (
            model.name,
            model.config,
            model.sizes,
            model.training,
            model.provenance,
            sorted(model.results.items()),
            weights,
        )

    def trial(self, rng: random.Random, folder: Path) -> Trial:
        for name in self._names:
            if name != self._part:
                (folder / name).symlink_to(self._root / name)
        what, spoilt = self._spoil(rng, self._data)
        (folder / self._part).write_bytes(spoilt)

        def fault(found: Any) -> str | None:
            if repr(found) == repr(self._sound):
                return None
            if self._part == "history.jsonl":
                rows = [json.loads(line) for line in spoilt.decode().splitlines()]
                if repr(found) != repr(rows):
                    return "other records than the lines say"
                return "cut" if what == CUT else None
            # Someone who changes settings and takes the checksum away means it, as long as the weights fit.
            if (b'"checksum"' if self._part == "config.json" else b"sha256") not in spoilt:
                return None
            return "another model than was written"

        return what, lambda: self._tell(folder), fault


# Folders and files that are none ------------------------------------------------------------------------------


class Places:
    """Folders of graphs, links that lead nowhere or to themselves, pipes, devices, names that cannot be."""

    name = "folders and links"

    def __init__(self, weight: float, root: Path) -> None:
        self.weight = weight
        self._seeds = {}
        for format in ("g6", "jsonl", "graphml", "h5"):
            path = root / f"a.{format}"
            write_graphs(_seeds(format)[0], path)
            self._seeds[format] = path
        self._plain = list(map(plain_of, read_graphs(self._seeds["g6"])))

    def trial(self, rng: random.Random, folder: Path) -> Trial:
        format = rng.choice(list(self._seeds))
        kind = rng.choice(_PLACES)
        shutil.copyfile(self._seeds[format], folder / f"a.{format}")
        path = _place(rng, kind, folder, format)

        def fault(graphs: list[SimpleGraph]) -> str | None:
            found = list(map(plain_of, graphs))
            wanted = {
                "nothing wrong": 2,
                "a link to a file": 2,
                "hidden files": 1,
                "a folder inside": 1,
                "a link to a device": 1,
                "a pipe inside": 1,
            }
            if kind == "a file cut short" and format in ("g6", "jsonl") and found[:3] == self._plain:
                return "cut"
            return None if found == self._plain * wanted.get(kind, 0) else f"{len(found)} graphs of '{kind}'"

        return kind, lambda: list(read_graphs(path, simplify=rng.random() < 0.5)), fault


_PLACES = (
    *(
        "nothing wrong",
        "a link to a file",
        "a dangling link",
        "a link to itself",
        "a link to a device",
        "a pipe inside",
    ),
    *("a folder inside", "hidden files", "a file cut short", "an empty file", "a long name", "a null in the name"),
    *(
        "a surrogate in the name",
        "a file as a folder",
        "a loop of folders",
        "a device",
        "a null device",
        "no such folder",
    ),
)


def _place(rng: random.Random, kind: str, folder: Path, format: str) -> Path:
    other, first = folder / f"b.{format}", folder / f"a.{format}"
    if kind == "nothing wrong":
        shutil.copyfile(first, other)
    elif kind == "a link to a file":
        other.symlink_to(first)
    elif kind == "a dangling link":
        other.symlink_to(folder / "nowhere")
    elif kind == "a link to itself":
        other.symlink_to(other)
    elif kind == "a link to a device":
        other.symlink_to("/dev/null")
    elif kind == "a pipe inside":
        os.mkfifo(other)
    elif kind == "a folder inside":
        other.mkdir()
    elif kind == "hidden files":
        shutil.copyfile(first, folder / f".b.{format}")
    elif kind == "a file cut short":
        data = first.read_bytes()
        other.write_bytes(data[: len(data) * 2 // 3 - (format == "jsonl")])
    elif kind == "an empty file":
        other.touch()
    elif kind == "a loop of folders":
        (folder / "loop").symlink_to(folder / "loop")
    strange = {
        "a long name": folder / f"{'x' * rng.choice((300, 5000))}.{format}",
        "a null in the name": folder / f"a\0.{format}",
        "a surrogate in the name": folder / f"\ud800.{format}",
        "a file as a folder": first / f"x.{format}",
        "a loop of folders": folder / "loop" / f"x.{format}",
        "a device": Path("/dev/null"),
        "a null device": Path(f"/dev/null/x.{format}"),
        "no such folder": folder / ".." / ".." / ".." / "nowhere" / f"x.{format}",
    }

    return strange.get(kind, folder)


class Endless:
    """Devices without an end where a file was wanted."""

    name = "endless devices"

    def __init__(self, weight: float, root: Path) -> None:
        self.weight = weight
        self._graph = root / "graph.edgelist"
        self._graph.write_text("a b\nb c\n")
        self._formats = ("g6", "s6", "jsonl", "gml", "edgelist", "graphml", "h5")

    def trial(self, rng: random.Random, folder: Path) -> Trial:
        kind = rng.choice((*self._formats, "features", "labels", "npz", "config.json", "model.safetensors"))
        device = rng.choice(("/dev/zero", "/dev/urandom", "/dev/full"))
        what = f"{device} as {kind}"

        def read() -> Any:
            path = folder / f"x.{kind}"
            path.symlink_to(device)
            if kind in self._formats:
                return list(read_graphs(path))
            if kind in ("features", "labels"):
                return read_network(self._graph, **{kind: path})
            if kind == "npz":
                return read_network(self._graph, features=path)
            for name in ("config.json", "model.safetensors"):
                (folder / name).symlink_to(device)
            return load_checkpoint(folder)

        return what, read, lambda found: "something was read from a device"


class Targets:
    """Output files and templates that cannot be, or lead elsewhere: all is written as asked for, or nothing."""

    name = "output templates"

    def __init__(self, weight: float, root: Path) -> None:
        self.weight = weight
        self._graphs = _seeds("g6")[0]

    def trial(self, rng: random.Random, folder: Path) -> Trial:
        suffix = rng.choice(("g6", "graphml", "h5", "jsonl", "gml.gz", "edgelist", "s6", "txt", "gz", ""))
        inside = folder / "inside"
        inside.mkdir()
        (inside / "file").write_text("kept")
        (inside / "loop").symlink_to(inside / "loop")
        (inside / "link").symlink_to(inside)
        stem = "".join(rng.choice(_PIECES) for _ in range(rng.choice((1, 2, 3))))
        target = f"{inside}/{stem}.{suffix}"
        before = _tree(folder)

        def read() -> Any:
            return write_graphs(self._graphs, target, force=rng.random() < 0.5)

        def fault(count: int) -> str | None:
            after = _tree(folder)
            if any(after.get(name) != content for name, content in before.items()):
                return "another file was changed"
            new = [name for name in after if name not in before]
            if any(re.search(r"\.tmp$", name) for name in new):
                return "something half-written was left"
            if "{index" not in target:
                again = len(list(read_graphs(target)))
                return None if again == count == len(self._graphs) else f"{again} graphs were written"
            files = [name for name in new if (folder / name).is_file()]
            return None if len(files) == count == len(self._graphs) else f"{len(files)} files"

        return f"{stem!r}.{suffix}", read, fault


_PIECES = (
    *(
        "{index}",
        "{index:04d}",
        "{index:99999d}",
        "{index:x}",
        "{index!r}",
        "{index.real}",
        "{index[0]}",
        "{}",
        "{0}",
        "{other}",
    ),
    *(
        "{",
        "}",
        "{{",
        "}}",
        "{{index}}",
        "{index:{index}}",
        "../",
        "../inside/",
        "./",
        "/",
        "//",
        "a",
        "x" * 300,
        "é",
        "\U0001f4a5",
    ),
    *(
        "\0",
        "\ud800",
        "\n",
        " ",
        "~",
        "$HOME",
        "*",
        "file/",
        "loop/",
        "link/",
        "new/deep/",
        "%s",
        "\\",
        ":",
        "-",
        "\x1b[31m",
    ),
)


def _tree(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder, links not followed."""
    return {
        str(Path(place, name).relative_to(folder)): Path(place, name).read_bytes()
        if Path(place, name).is_file()
        else None
        for place, folders, names in os.walk(folder)
        for name in (*folders, *names)
        if not Path(place, name).is_symlink()
    }


def readers(root: Path) -> list[Reader]:
    """All of them, with their sound inputs made under a folder."""

    def under(name: str) -> Path:
        place = root / re.sub(r"\W", "-", name)
        place.mkdir()

        return place

    from .commands import Commands

    made: list[Reader] = []
    weights = {"graphml": 16, "gml": 12, "jsonl": 14, "edgelist": 12, "csv": 8, "tsv": 4, "g6": 8, "s6": 8}
    for format, weight in weights.items():
        made.append(GraphFile(format, weight, gz=False, root=under(format)))
        made.append(GraphFile(format, weight / 4, gz=True, root=under(f"{format}.gz")))
    made.append(H5File(10, under("h5")))
    made.append(H5Structure(9, under("structure")))
    made.append(SingleH5(5, under("single")))
    for kind in ("features", "labels"):
        for suffix in ("csv", "npz"):
            made.append(Annotations(kind, suffix, 6, under(f"{kind}{suffix}")))
    for suffix in ("h5", "npz", "csv", "jsonl"):
        made.append(Latents(suffix, 3, under(f"latents {suffix}")))
    for part, weight in (
        ("config.json", 6),
        ("model.safetensors", 6),
        ("optimizer.safetensors", 4),
        ("history.jsonl", 3),
    ):
        made.append(Checkpoint(part, weight, under(part)))
    for part in ("config.json", "model.safetensors"):
        made.append(Checkpoint(part, 4, under(f"single {part}"), single=True))
    made.append(Places(4, under("places")))
    made.append(Endless(0.05, under("endless")))
    made.append(Targets(6, under("targets")))
    made.append(Commands(6, under("commands")))

    return made
