"""Mutations of bytes and texts: random, and aware of numbers, words, elements and lists."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

__all__ = ["CUT", "HOSTILE", "VALUES", "packed", "spoil_bytes", "spoil_json", "spoil_text", "spoil_xml"]

CUT = "cut short"

# Replacements of numbers and names.
HOSTILE = (
    *("NaN", "nan", "Infinity", "-inf", "1e999", "-1e999", "1e-400", "-0", "-1", "0", "1", "007", "1_0", "0x1F", "+5"),
    *("2147483647", "2147483648", "-2147483649", "4294967296", "9223372036854775808", "10000001", "9" * 30),
    *(
        "7" * 4400,
        "1." + "0" * 400,
        "1e5",
        "null",
        "true",
        "False",
        "",
        " ",
        "\t",
        '"',
        "'",
        "\\",
        "%s",
        "{",
        "[",
        "<",
        "&",
    ),
    *(
        "\x00",
        "\x1b[31m",
        "\u202e",
        "é",
        "e\u0301",
        "ß",
        "\ufeff",
        "\U0001f4a5",
        "١٢",
        "\u00a0",
        "\ud800",
        "a" * 70_000,
    ),
    *(
        "../../x",
        "/dev/zero",
        "json:[",
        "json:" + "[" * 3000,
        'json:{"a": NaN}',
        "&#0;",
        "&#x110000;",
        "&lt;",
        "&bomb;",
    ),
)
# Replacements of JSON values.
VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        0.5,
        -0.0,
        1e308,
        2**31,
        2**63,
        2**64,
        10**12,
        10**30,
        1e999,
        float("nan"),
        -1e999,
    ),
    *(
        "",
        "a",
        "é",
        "\U0001f4a5",
        "\u0000",
        "\ud800",
        "x" * 70_000,
        "json:[1",
        "NaN",
        [],
        {},
        [[]],
        [1, 2],
        [None],
        {"": 0},
    ),
    *({"id": 0}, [0, "0"], "../../x", [[0] * 50] * 50, {"a": {"b": {"c": []}}}),
)
_WORD = re.compile(rb"[^\s<>\"'=\[\]{},:;/]+")
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_TAG = re.compile(rb"<[^<>]*>")
_ELEMENT = re.compile(rb"<(node|edge|data|graph|key)\b[^<>]*?(?:/>|>.*?</\1>)", re.DOTALL)

Spoilt = tuple[str, bytes]


def _flip(rng: random.Random, data: bytes) -> Spoilt:
    spoilt = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        spoilt[rng.randrange(len(spoilt))] ^= 1 << rng.randrange(8)

    return "bits flipped", bytes(spoilt)


def _set(rng: random.Random, data: bytes) -> Spoilt:
    at, length = rng.randrange(len(data)), rng.choice((1, 2, 4, 8))
    value = rng.choice((b"\x00", b"\xff", b"\x7f", b"\x80", b"\x01")) * length

    return "bytes set", data[:at] + value + data[at + length :]


def _cut(rng: random.Random, data: bytes) -> Spoilt:
    return CUT, data[: rng.randrange(len(data))]


def _cut_at_a_line(rng: random.Random, data: bytes) -> Spoilt:
    ends = [match.end() for match in re.finditer(rb"\n", data)] or [0]

    return CUT, data[: rng.choice(ends)]


def _insert(rng: random.Random, data: bytes) -> Spoilt:
    at = rng.randrange(len(data) + 1)

    return "bytes inserted", data[:at] + rng.randbytes(rng.choice((1, 2, 7, 64))) + data[at:]


def _span(rng: random.Random, data: bytes) -> tuple[int, int]:
    start = rng.randrange(len(data))

    return start, min(len(data), start + rng.choice((1, 2, 8, 64, 512)))


def _delete(rng: random.Random, data: bytes) -> Spoilt:
    start, stop = _span(rng, data)

    return "bytes deleted", data[:start] + data[stop:]


def _repeat(rng: random.Random, data: bytes) -> Spoilt:
    start, stop = _span(rng, data)

    return "bytes repeated", data[:stop] + data[start:stop] * rng.choice((1, 2, 50)) + data[stop:]


def _splice(rng: random.Random, data: bytes) -> Spoilt:
    start, stop = _span(rng, data)
    at = rng.randrange(len(data))

    return "bytes moved", data[:at] + data[start:stop] + data[at + stop - start :]


_BLIND = (_flip, _flip, _set, _cut, _insert, _delete, _repeat, _splice)


def spoil_bytes(rng: random.Random, data: bytes) -> Spoilt:
    """A mutation that knows nothing of the format, and its name."""
    return rng.choice(_BLIND)(rng, data) if data else ("bytes inserted", rng.randbytes(8))


def _replace(rng: random.Random, data: bytes, pattern: re.Pattern[bytes], word: bytes) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
        return data + word
    match = rng.choice(found)

    return data[: match.start()] + word + data[match.end() :]


def _hostile(rng: random.Random) -> bytes:
    return rng.choice(HOSTILE).encode("utf-8", "surrogatepass")


def _number(rng: random.Random, data: bytes) -> Spoilt:
    return "a number replaced", _replace(rng, data, _NUMBER, _hostile(rng))


def _word(rng: random.Random, data: bytes) -> Spoilt:
    return "a word replaced", _replace(rng, data, _WORD, _hostile(rng))


def _lines(rng: random.Random, data: bytes) -> Spoilt:
    lines = data.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    action = rng.choice(("deleted", "repeated", "swapped", "joined", "ended otherwise"))
    if action == "deleted":
        del lines[i]
    elif action == "repeated":
        lines.insert(j, lines[i])
    elif action == "swapped":
        lines[i], lines[j] = lines[j], lines[i]
    elif action == "joined":
        lines[i : i + 2] = [b" ".join(lines[i : i + 2])]
    else:
        return "lines ended otherwise", data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b"\x0b", b"\x85")))

    return f"a line {action}", b"\n".join(lines)


def _encoded(rng: random.Random, data: bytes) -> Spoilt:
    text = data.decode("utf-8", "replace")
    way = rng.choice(("utf-16", "utf-8-sig", "latin-1", "utf-32", "utf-7"))

    return f"encoded as {way}", text.encode(way, "replace")


_TEXT = (_number, _number, _number, _word, _word, _lines, _lines, _cut_at_a_line, _encoded)


def spoil_text(rng: random.Random, data: bytes) -> Spoilt:
    """A mutation that knows words, numbers and lines, or nothing."""
    return rng.choice(_TEXT)(rng, data) if rng.random() < 0.6 else spoil_bytes(rng, data)


# XML ----------------------------------------------------------------------------------------------------------


def _bomb(rng: random.Random, data: bytes) -> Spoilt:
    names = "abcdefgh"
    entities = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in pairwise(names))
    head = (
        f'<!DOCTYPE g [<!ENTITY a "boom">{entities}<!ENTITY bomb "&h;"><!ENTITY file SYSTEM "file:///etc/hostname">]>'
    )
    entity = rng.choice((b"&bomb;", b"&file;"))

    return "an entity bomb", _replace(rng, data, re.compile(rb"\?>"), b"?>" + head.encode() + b"<x>" + entity + b"</x>")


def _nest(rng: random.Random, data: bytes) -> Spoilt:
    tag = rng.choice((b"node id='x'", b"graph", b"data key='d0'", b"port", b"hyperedge", b"key id='z'", b"desc"))
    depth = rng.choice((1, 2, 100, 5000))
    name = tag.split()[0]
    at = rng.choice([match.end() for match in _TAG.finditer(data)] or [0])

    return "elements nested", data[:at] + b"<%b>" % tag * depth + b"</%b>" % name * depth + data[at:]


def _element(rng: random.Random, data: bytes) -> Spoilt:
    found = list(_ELEMENT.finditer(data))
    if not found:
        return spoil_bytes(rng, data)
    match, other = rng.choice(found), rng.choice(found)
    action = rng.choice(("deleted", "repeated", "moved"))
    if action == "deleted":
        return "an element deleted", data[: match.start()] + data[match.end() :]
    at = match.end() if action == "repeated" else other.start()

    return f"an element {action}", data[:at] + match[0] + data[at:]


def _tag(rng: random.Random, data: bytes) -> Spoilt:
    return "a tag deleted", _replace(rng, data, _TAG, b"")


def _attribute(rng: random.Random, data: bytes) -> Spoilt:
    words = (
        *(b'directed="true"', b'id="0"', b'id="0" id="1"', b'attr.type="blob"', b'attr.type="int"', b'for="port"'),
        *(
            b'edgedefault="both"',
            b'edgedefault="directed"',
            b'sourceport="a"',
            b'xmlns="urn:x"',
            b'xmlns:a=""',
            b'key="d9"',
        ),
    )
    name = rng.choice(re.findall(rb"<([a-z]+)", data) or [b"graph"])

    return "an attribute added", _replace(
        rng, data, re.compile(rb"<%b\b" % name), b"<%b %b" % (name, rng.choice(words))
    )


_XML = (_bomb, _nest, _element, _element, _element, _tag, _attribute, _attribute)


def spoil_xml(rng: random.Random, data: bytes) -> Spoilt:
    """A mutation that knows elements and attributes, or words, or nothing."""
    return rng.choice(_XML)(rng, data) if rng.random() < 0.5 else spoil_text(rng, data)


# JSON ---------------------------------------------------------------------------------------------------------


def spoil_json(rng: random.Random, data: bytes) -> Spoilt:
    """A mutation that knows objects and lists, or words, or nothing; of lines, one object is spoilt."""
    if rng.random() < 0.4:
        return spoil_text(rng, data)
    lines = data.splitlines() if data.count(b"\n}") == 0 else [data]
    at = rng.randrange(len(lines))
    if rng.random() < 0.1:
        return _nested_json(rng, lines, at)
    if rng.random() < 0.1:
        name = rng.choice(re.findall(rb'"[a-z_]+":', lines[at]) or [b'"nodes":'])
        value = json.dumps(rng.choice(VALUES)).encode()
        lines[at] = lines[at].replace(b"{", b"{%b %b, " % (name, value), 1)
        return "a key repeated", b"\n".join(lines) + b"\n"
    tree = json.loads(lines[at])
    what = _spoil_tree(rng, tree)
    lines[at] = json.dumps(tree).encode("utf-8", "surrogatepass")

    return what, b"\n".join(lines) + b"\n"


def _nested_json(rng: random.Random, lines: list[bytes], at: int) -> Spoilt:
    depth = rng.choice((50, 1000, 100_000))
    deep = rng.choice((b"[" * depth + b"]" * depth, b'{"a":' * depth + b"0" + b"}" * depth, b"[" * depth))
    lines[at] = _replace(rng, lines[at], re.compile(rb"(?<=: )(\d+|\"[^\"]*\"|\[\]|\{\})"), deep)

    return "lists nested", b"\n".join(lines) + b"\n"


def _spoil_tree(rng: random.Random, tree: Any) -> str:
    """Change one thing at a random place of the tree."""
    place, key = None, None
    while isinstance(tree, dict | list) and tree and (place is None or rng.random() < 0.8):
        place, key = tree, rng.choice(list(tree)) if isinstance(tree, dict) else rng.randrange(len(tree))
        tree = place[key]
    if place is None:
        return "nothing"
    action = rng.choice(("replaced", "replaced", "replaced", "deleted", "added", "nudged"))
    if action == "deleted":
        del place[key]
    elif action == "added" and isinstance(place, dict):
        place[rng.choice(("", "id", "x", "weight", "features", "otherAttributes", "\u0000", "directed"))] = rng.choice(
            VALUES
        )
    elif action == "added":
        place.insert(rng.randrange(len(place) + 1), rng.choice((*VALUES, place[key])))
    elif action == "nudged" and type(place[key]) in (int, float):
        place[key] += rng.choice((1, -1, 1000))
    else:
        action, place[key] = "replaced", rng.choice(VALUES)

    return f"a value {action}"


# gzip ---------------------------------------------------------------------------------------------------------


def packed(rng: random.Random, data: bytes, spoil: Callable[[random.Random, bytes], Spoilt]) -> Spoilt:
    """A gzip file spoilt outside, or a sound one whose contents are spoilt."""
    if rng.random() < 0.7:
        what, spoilt = spoil_bytes(rng, gzip.compress(data, 1, mtime=0))
        return f"gzip: {what}", spoilt
    what, spoilt = spoil(rng, data)
    if rng.random() < 0.1:
        return "members joined", gzip.compress(data, 1) + gzip.compress(spoilt, 1)

    return f"inside gzip: {what}", gzip.compress(spoilt, 1)
