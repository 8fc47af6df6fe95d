"""Valid HDF5 files with invalid graphs."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

__all__ = ["spoil_h5"]

_CORE = ("node_counts", "edge_counts", "edges", "weights", "node_features", "split", "directed", "node_names")
_SINGLE = ("edge_index", "labels", "features", "train_idx", "val_idx", "test_idx", "features/data", "features/indptr")
_LATENTS = ("mean", "std", "position", "graph_vectors")
_FACTS = ("format", "version", "family", "parameters", "seed", "source", "model", "num_nodes")


def spoil_h5(rng: random.Random, seed: Path, target: Path) -> str:
    """Copy a file and change one thing in it, and the name of what was done."""
    shutil.copyfile(seed, target)
    with h5py.File(target, "r+") as file:
        change = rng.choice(_CHANGES)
        change(rng, file)

    return change.__name__.strip("_").replace("_", " ")


def _name(rng: random.Random, file: Any) -> str:
    names = [name for name in (*_CORE, *_SINGLE, *_LATENTS) if name in file]
    names += [
        f"{group}/{name}" for group in ("node_attributes", "graph_attributes") if group in file for name in file[group]
    ]

    return rng.choice(names)


def _remove(rng: random.Random, file: Any) -> str:
    name = _name(rng, file)
    del file[name]

    return name


def _deleted(rng: random.Random, file: Any) -> None:
    _remove(rng, file)


def _of_another_type(rng: random.Random, file: Any) -> None:
    name = _name(rng, file)
    old = file[name][()] if isinstance(file[name], h5py.Dataset) else np.arange(3)
    del file[name]
    kind = rng.choice(
        ("f8", "f2", "u8", "i1", "c16", "S5", "?", "str", "compound", "reference", "enum", "big", "opaque")
    )
    shape = np.shape(old)
    if kind == "str":
        file.create_dataset(name, shape=shape, dtype=h5py.string_dtype())
    elif kind == "compound":
        file.create_dataset(name, shape=shape, dtype=[("a", "i4"), ("b", "f8")])
    elif kind == "reference":
        file.create_dataset(name, shape=shape, dtype=h5py.ref_dtype)
    elif kind == "enum":
        file.create_dataset(name, shape=shape, dtype=h5py.enum_dtype({"A": 0, "B": 1}, basetype="i4"))
    elif kind == "opaque":
        file.create_dataset(name, shape=shape, dtype=h5py.opaque_dtype(np.dtype("M8[s]")))
    elif kind == "big":
        file[name] = np.zeros(shape, dtype=">i8")
    else:
        with np.errstate(all="ignore"):
            file[name] = np.asarray(old).astype(kind) if np.asarray(old).dtype.kind in "biuf" else np.zeros(shape, kind)


def _of_another_shape(rng: random.Random, file: Any) -> None:
    name = _remove(rng, file)
    shape = rng.choice(((), (0,), (1,), (2, 3), (3, 2), (0, 2), (5, 1), (2, 2, 2), (7,), (1, 0)))
    file[name] = np.zeros(shape, dtype=rng.choice(("i4", "i8", "f4", "u1")))


def _empty(rng: random.Random, file: Any) -> None:
    file[_remove(rng, file)] = h5py.Empty("i4")


def _huge_and_not_stored(rng: random.Random, file: Any) -> None:
    name = _remove(rng, file)
    rows = rng.choice((10**6, 10**9, 10**12, 2**40))
    shape = rng.choice(((rows,), (rows, 2), (2, rows), (2, 10**9), (5, 10**9)))
    file.create_dataset(
        name, shape=shape, chunks=tuple(min(64, each) for each in shape), dtype=rng.choice(("i4", "f8", "u1"))
    )


def _huge_chunks(rng: random.Random, file: Any) -> None:
    name = _remove(rng, file)
    chunk = rng.choice((2**20, 2**27, 2**29))
    file.create_dataset(
        name, shape=(16,), maxshape=(None,), chunks=(chunk,), dtype="i4", compression=rng.choice((None, "gzip"))
    )


def _a_packed_bomb(rng: random.Random, file: Any) -> None:
    name = _remove(rng, file)
    rows = rng.choice((10**5, 2 * 10**6))
    width = rng.choice(((), (2,)))
    file.create_dataset(
        name, data=np.zeros((rows, *width), dtype="i4"), chunks=(10**5, *width), compression="gzip", compression_opts=1
    )


def _linked(rng: random.Random, file: Any) -> None:
    name = _remove(rng, file)
    kind = rng.choice(("soft loop", "soft", "dangling", "external", "external device", "self", "hard loop"))
    if kind == "external":
        file[name] = h5py.ExternalLink(file.filename, "/edges")
    elif kind == "external device":
        file[name] = h5py.ExternalLink("/dev/zero", "/edges")
    elif kind == "hard loop":
        file[name] = file["/"]
    else:
        file[name] = h5py.SoftLink(
            {"soft loop": f"/{name}", "soft": "/edges", "dangling": "/nowhere", "self": "."}[kind]
        )


def _stored_elsewhere(rng: random.Random, file: Any) -> None:
    name = _remove(rng, file)
    if rng.random() < 0.5:
        file.create_dataset(name, shape=(8,), dtype="i4", external=[("/dev/zero", 0, h5py.h5f.UNLIMITED)])
    else:
        layout = h5py.VirtualLayout(shape=(8,), dtype="i4")
        layout[:4] = h5py.VirtualSource(file.filename, "node_counts", shape=(4,))
        file.create_virtual_dataset(name, layout)


def _a_group(rng: random.Random, file: Any) -> None:
    file.create_group(_remove(rng, file)).attrs["shape"] = rng.choice(([1, 1], [10**12, 10**12], "x", [1], [-1, 3]))


def _numbers_changed(rng: random.Random, file: Any) -> None:
    name = _name(rng, file)
    data = file[name]
    if not isinstance(data, h5py.Dataset) or not data.size or data.dtype.kind not in "iuf":
        return
    values = data[()]
    limits = (0, 1, 3, 7, 250) if data.dtype.kind == "u" else (-1, 0, 1, 3, 7, 2**31 - 1, -(2**31))
    values.flat[rng.randrange(values.size)] = (
        rng.choice((np.nan, np.inf, -np.inf, 1e30, 0.5)) if data.dtype.kind == "f" else rng.choice(limits)
    )
    data[...] = values


def _resized(rng: random.Random, file: Any) -> None:
    data = file[_name(rng, file)]
    if isinstance(data, h5py.Dataset) and data.chunks and None in data.maxshape:
        data.resize(max(0, len(data) + rng.choice((-3, -1, 1, 5, 1000, 10**9))), axis=data.maxshape.index(None))


def _facts(rng: random.Random, file: Any) -> None:
    values: tuple[Any, ...] = (
        *(
            "",
            "x",
            "graphite-gen",
            "{",
            "[" * 50_000,
            '{"m": NaN}',
            "\U0001f4a5",
            "x" * 60_000,
            2,
            -1,
            1.5,
            2**63,
            True,
        ),
        *(
            np.nan,
            np.array([1, 1]),
            np.zeros((3, 3)),
            h5py.Empty("f4"),
            b"\xff\xfe",
            file["/"].ref,
            np.array(["a", "b"], "S1"),
        ),
    )
    owner = file["features"] if "features" in file and rng.random() < 0.3 else file
    owner.attrs[rng.choice((*_FACTS, "shape"))] = rng.choice(values)


def _an_unknown_filter(rng: random.Random, file: Any) -> None:
    name = _remove(rng, file)
    file.create_dataset(name, data=np.zeros(16, "i4"), chunks=(16,), compression=rng.choice(("lzf", "gzip")))
    if rng.random() < 0.5:
        del file[name]
        file.create_dataset(name, data=np.zeros(16, "i4"), chunks=(16,), scaleoffset=0, shuffle=True, fletcher32=False)


def _texts(rng: random.Random, file: Any) -> None:
    groups = ("node_attributes", "edge_attributes", "graph_attributes")
    name = rng.choice(("node_names", *(f"{group}/new" for group in groups)))
    if name in file:
        del file[name]
    counted = "edges" if name.startswith("edge") else "node_counts"
    rows = len(file[counted]) if counted in file else 3
    if not name.startswith(("graph", "edge")) and "node_counts" in file:
        rows = int(np.clip(file["node_counts"][()].sum(dtype=np.int64), 0, 1000))
    text = rng.choice(
        (b'"a"', b"{", b"[" * 5000, b"NaN", b"\xff", b"1e999", b"[[1]]", b'{"a": 1}', b'"\\ud800"', b"7" * 4400)
    )
    file.create_dataset(name, data=np.array([text] * rows, dtype=f"S{len(text)}"))


_CHANGES: tuple[Callable[[random.Random, Any], None], ...] = (
    *(_deleted, _of_another_type, _of_another_type, _of_another_type, _of_another_shape, _empty, _huge_and_not_stored),
    *(_huge_chunks, _a_packed_bomb, _linked, _linked, _stored_elsewhere, _a_group, _numbers_changed, _numbers_changed),
    *(_resized, _facts, _facts, _an_unknown_filter, _texts, _texts),
)
