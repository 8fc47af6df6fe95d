from __future__ import annotations

from pathlib import Path

import pytest

from .graphs import assert_refused


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"# only a comment\n", "no-graphs"),
        (b"graph [ node [ id 0 ]", "ends within a list"),
        (b'graph [ node [ id 0 label "x ] ]', "ends within a string"),
        (b"graph 7", "without '\\['"),
        (b"]", "unmatched"),
        (b"graph [ node ]", "expected a value"),
        (b"graph [ node 3 ]", "'node' without"),
        (b"graph [ node edge ]", "key 'edge' after the key 'node'"),
        (b"graph [ 7 8 ]", "expected a key"),
        (b"graph [ node [ id -1 ] ]", "id -1"),
        (b"graph [ node [ id 0.0 ] ]", "id 0.0"),
        (b"graph [ node [ label 3 ] ]", "id None"),
        (b"graph [ node [ id 1 id 2 ] ]", "id \\[1, 2\\]"),
        (b"graph [ node [ id 1 ] node [ id 1 ] ]", "two nodes have the id 1"),
        (b"graph [ node [ id 1 ] edge [ source 1 target 99999999999 ] ]", "unknown node"),
        (b"graph [ node [ id 1 ] edge [ source 1 ] ]", "unknown node"),
        (b"graph [ node [ id 1 ] edge [ source 1 target 1 ] ]", "needs-simplify"),
        (b"graph [ directed 1 node [ id 1 ] ]", "needs-simplify"),
        (b"graph [ node [ id 1 ] node [ id 2 ] edge [ source 1 target 2 weight NAN ] ]", "not a finite number"),
        (b'graph [ node [ id 1 ] node [ id 2 ] edge [ source 1 target 2 weight "a" ] ]', "not a finite number"),
        (b"graph [ " + b"a [ " * 100, "nested deeper"),
        (b"graph [ a \xff ]", "line 1: not UTF-8"),
        (b"graph [ a ? ]", "file-damaged"),
        (b"graph [ a " + b"9" * 6000 + b" ]", "6000 characters"),
    ],
)
def test_invalid_files_are_refused_in_one_line(body: bytes, expected: str, tmp_path: Path) -> None:
    assert_refused(tmp_path / "bad.gml", expected, body)
