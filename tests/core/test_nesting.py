"""JSON nested deeper than Python decodes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.core.nesting import loads


def deep(levels: int, opened: str = "[", closed: str = "]", core: str = "") -> str:
    return opened * levels + core + closed * levels


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, {"b": "[["}], "c": null}', {"a": [1, {"b": "[["}], "c": None}),
        (f'{{"props": {deep(0)}"x"}}', {"props": "x"}),
    ],
)
def test_what_is_shallow_is_whole(text: str, value: Any) -> None:
    """Brackets inside of texts count for nothing."""
    assert loads(text) == value
    assert loads(text.encode()) == value


@pytest.mark.parametrize("nested", [deep(5000), deep(5000, '{"k":', "}", "1"), deep(3000, '[{"]":', "}]", '"\\\\"')])
def test_what_is_too_deep_is_cut_and_the_rest_is_kept(nested: str) -> None:
    """Whatever stands before and behind it is there."""
    found = loads(f'[{{"id": "a", "props": {nested}, "message": "]}}\\""}}, {{"id": "b"}}]')

    assert ["a", "b"] == [post["id"] for post in found]
    assert ']}"' == found[0]["message"]
    assert len(json.dumps(found)) < 10_000


@pytest.mark.parametrize("text", [b"", b"<html>", b"{", deep(5000).encode()[:-1], b"\xff"])
def test_what_is_no_json_is_none(text: bytes) -> None:
    """One error for all of them."""
    with pytest.raises(ValueError, match="^"):
        loads(text)
