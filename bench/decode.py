"""Bytes of the watch to an event in the core, beside msgspec decoding the same bytes into the same struct."""

from __future__ import annotations

import time
from functools import partial
from typing import cast

import msgspec

from bench.figures import PAIRS, Figure
from bench.samples import line
from bot.clients.kube import Kube
from bot.clients.kube_watch import Watch
from bot.core.react import react
from bot.core.settings import Settings
from bot.core.state import State
from bot.core.workflow import Workflow
from bot.metrics import Metrics
from bot.sources.workflows import decode_run, workflow_event

LINES = 400


class _Whole(msgspec.Struct):
    type: str
    object: Workflow


def measure() -> Figure:
    """MB/s of ours may be half of the floor's: the seconds for the same bytes may be twice as many."""
    lines = [line(number) for number in range(LINES)]
    decoder = msgspec.json.Decoder(_Whole)
    ours, floor = [], []
    for _ in range(PAIRS):
        began = time.perf_counter()
        for raw in lines:
            decoder.decode(raw)
        floor.append((time.perf_counter() - began) * 1000)
        ours.append(_ours(lines))
    allowed = sorted(floor)[len(floor) // 2]
    megabytes = sum(map(len, lines)) / 1e6
    return Figure(f"watch bytes to core, {megabytes:.1f} MB", "ms", tuple(ours), tuple(floor), allowed)


def _ours(lines: list[bytes]) -> float:
    state = State(Settings())
    of_template = partial(decode_run, template="gpu-test-pipeline")
    watch = Watch(cast("Kube", None), Metrics(), "/workflows", of_template, on_trouble=print)
    began = time.perf_counter()
    for raw in lines:
        seen = watch.of_line(raw)
        if seen is not None:
            react(state, workflow_event(seen), 0.0)
    return (time.perf_counter() - began) * 1000
