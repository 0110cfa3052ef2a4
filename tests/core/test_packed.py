"""Workflows and CronWorkflows from bytes: packed nodes, nulls, what can't be read."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import msgspec
import pytest

from bot.core import packed
from bot.core.card import Stage, card_of
from bot.core.packed import read_cron, read_workflow
from bot.core.render.card import render_card
from bot.core.verdict import Verdict, judge
from bot.core.workflow import Workflow
from tests.phrases import SETTINGS, green, node, outputs, workflow_json

TWO = {"models": "dqn,ppo"}
TESTED = [node("gpu-warmup", "Succeeded"), node("compile-and-test", "Succeeded", outputs=outputs(green("dqn,ppo")))]
ZSTD = b"\x28\xb5\x2f\xfd" + bytes(40)


def with_packed(text: str, phase: str = "Succeeded") -> Workflow:
    """A run whose status holds this in place of its nodes."""
    body = workflow_json(phase=phase, parameters=TWO, compressedNodes=text)
    del body["status"]["nodes"]
    return read_workflow(json.dumps(body).encode())


def zipped(nodes: Any) -> str:
    """As Argo packs them (packer.go)."""
    return base64.b64encode(gzip.compress(json.dumps(nodes).encode(), mtime=0)).decode()


def test_packed_nodes_are_read_as_if_they_were_not() -> None:
    """A status above a megabyte: the verdict is that of the same nodes."""
    run = with_packed(zipped({each["id"]: each for each in TESTED}))

    assert Verdict.PASSED is judge(run, SETTINGS).verdict
    assert "" == run.hidden
    assert "" == with_packed(zipped({})).hidden


def test_nodes_beside_packed_ones_count() -> None:
    """Argo leaves one of the two; whoever leaves both means the ones that can be seen."""
    body = workflow_json(phase="Succeeded", nodes=TESTED, parameters=TWO, compressedNodes=zipped({}))

    assert Verdict.PASSED is judge(read_workflow(json.dumps(body).encode()), SETTINGS).verdict


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(ZSTD).decode(),  # Argo 4.1 can be told so
        "not base64",
        "é",
        base64.b64encode(gzip.compress(b"{}", mtime=0)[:-9]).decode(),
        zipped([1]),
        base64.b64encode(gzip.compress(b"no json", mtime=0)).decode(),
    ],
)
def test_nodes_that_can_not_be_unpacked_are_said_to_be_out_of_reach(text: str) -> None:
    """Neither queued while it runs, nor without tests at its end."""
    ended = render_card(card_of(with_packed(text), SETTINGS), SETTINGS)
    running = card_of(with_packed(text, "Running"), SETTINGS)
    post = render_card(running, SETTINGS)

    assert "no verdict" in ended.message
    assert "packed this run's nodes in a way that I can't read" in ended.text
    assert "no test ran" not in ended.text
    assert Stage.UNSEEN is running.stage
    assert post.message.startswith("🔵 **k7m2 under way** · ")
    assert post.text.startswith("Argo packed this run's nodes in a way that I can't read")


def test_what_unpacks_to_too_much_is_left_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten kilobytes of zeros can be ten megabytes."""
    monkeypatch.setattr(packed, "LARGEST", 1000)

    assert with_packed(zipped({"x": {"message": " " * 10_000}})).hidden


@pytest.mark.parametrize(
    "nulls",
    [
        {"message": None, "hostNodeName": None, "outputs": None, "inputs": None, "nodeFlag": None, "children": None},
        {"templateRef": None, "boundaryID": None, "displayName": None, "outputs": {"parameters": [None]}},
    ],
)
def test_null_is_absent_at_any_place(nulls: dict[str, Any]) -> None:
    """One that is not expected does not make the whole run unreadable."""
    body = workflow_json(phase="Failed", nodes=[node("compile-and-test", "Failed", **nulls)], parameters=TWO)
    body["status"]["nodes"]["gone"] = None
    run = read_workflow(memoryview(json.dumps(body).encode()))

    assert "Argo says Failed, but no results came" == judge(run, SETTINGS).reason
    cron = read_cron(b'{"metadata":{"name":null},"spec":{"schedules":[null,"@daily"]}}')
    assert ("@daily",) == cron.schedules


@pytest.mark.parametrize(("levels", "name"), [(5000, '"x"'), (700, "null"), (5000, "null")])
def test_what_nobody_reads_may_be_nested_without_end(levels: int, name: str) -> None:
    """With a null beside it, which takes the long way."""
    deep = "[" * levels + "]" * levels
    raw = f'{{"metadata":{{"uid":"u","name":{name}}},"spec":{{"templates":{deep}}},"status":{{"phase":"Failed"}}}}'

    assert ("u", "Failed") == (read_workflow(raw.encode()).metadata.uid, read_workflow(raw.encode()).phase)
    nested = gzip.compress(f'{{"x":{{"y":{deep}}}}}'.encode(), mtime=0)
    assert bool(with_packed(base64.b64encode(nested).decode()).hidden) is (levels > 1000)


def test_what_is_no_workflow_stays_none() -> None:
    """A name that is a number is not mended."""
    with pytest.raises(msgspec.ValidationError):
        read_workflow(b'{"metadata":{"name":5}}')
    with pytest.raises(msgspec.ValidationError):
        read_cron(b'{"metadata":[]}')
