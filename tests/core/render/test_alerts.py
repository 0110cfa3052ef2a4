"""What alerts say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bot.core.alerts import Concern, Held
from bot.core.autoscaler import ErrorKind, ScaleError
from bot.core.render.alerts import over, said
from bot.core.settings import AlertKind, Alerts, Ring
from tests.core.render.goldens import matches
from tests.phrases import NOW, SETTINGS

QUIET = replace(SETTINGS, alerts=Alerts(ring=Ring.NOBODY))
SELECTOR = "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."
REFUSED = "pod didn't trigger scale-up: 2 node(s) had untolerated taint {a: b}"


def concern(kind: AlertKind, **more: Any) -> Concern:
    return Concern(kind, more.pop("subject", "x"), NOW - 600, more.pop("gpu", "H100"), **more)


def error(kind: ErrorKind, code: str = "CODE", text: str = "in its own words") -> ScaleError:
    return ScaleError(kind, code, text)


def test_every_alert() -> None:
    """One of each kind, as it is posted, and its end."""
    some = [
        concern(AlertKind.STOCK, error=error(ErrorKind.STOCK)),
        concern(AlertKind.QUOTA, error=error(ErrorKind.QUOTA)),
        concern(AlertKind.BACKOFF, error=error(ErrorKind.OTHER, "", "")),
        concern(AlertKind.BACKOFF, subject="7be2f9d4-aaaa-4bbb-8ccc-ddddeeeeffff", gpu=""),
        concern(AlertKind.NO_PLACE, gpu="ci-trainign", names=("k7m2",), why="no_pool", words=SELECTOR),
        concern(AlertKind.NO_PLACE, gpu="ci-training", names=("a", "b", "c", "d", "e"), why="taint", words="gpu=x"),
        concern(AlertKind.NO_PLACE, gpu="ci-training", names=("research/train_7",), why="taint", words=REFUSED),
        concern(AlertKind.NO_PLACE, gpu="", names=("k7m2",), why="selector", words="?"),
        concern(AlertKind.NO_PLACE, gpu="L4", names=("k7m2",), why="capability", words="90 89"),
        concern(AlertKind.IDLE, gpu="L40S", names=("l40s-a",)),
        concern(AlertKind.IDLE, gpu="L40S", names=("l40s-a", "l40s-b", "l40s-c", "l40s-d")),
        concern(AlertKind.SLOW, names=("k7m2",), usual=420.0, words=REFUSED),
        concern(AlertKind.SLOW, gpu="@all `|` H100", names=("k7m2",)),
        concern(AlertKind.NODE_LOST, names=("k7m2", "h100-a"), why="gone"),
        concern(AlertKind.NODE_LOST, names=("k7m2", "h100-a"), why="silent"),
    ]
    texts = [said(each, each.since, QUIET) for each in some]
    held = Held(some[0], NOW, NOW - 600, gone=NOW + 120, text=said(some[0], NOW - 600, SETTINGS))
    texts += [over(held, QUIET), over(replace(held, seen=float("inf")), QUIET), over(replace(held, gone=None), QUIET)]

    matches("alerts", "\n\n".join(texts))
