"""Running a run again: with which parameters."""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.card import Card
from bot.core.settings import Settings
from bot.core.verdict import ModelStatus, Verdict


@dataclass(frozen=True)
class Again:
    """What running it again means. `count` models; `failed`: only what failed; `ref` as it was asked for first.

    `parameters` hold the commit that was tested, where it is known: same code, same question.
    """

    parameters: dict[str, str]
    ref: str
    count: int
    failed: bool


def everything(card: Card, settings: Settings) -> Again:
    """The same run once more: same models, and the ref as it was asked for."""
    return Again(
        _parameters(card, settings, card.asked.models, card.asked.ref), _first(card), len(card.asked.models), False
    )


def what_failed(card: Card, settings: Settings) -> Again | None:
    """Only the models that failed, at the same commit; where none failed, those that have no result; None for neither.

    A build that broke is no model's failure: the same commit would break again.
    """
    outcome = card.outcome
    if outcome is None or outcome.verdict in {Verdict.PASSED, Verdict.BROKEN}:
        return None
    failed = outcome.of(ModelStatus.FAILED)
    chosen = failed or tuple(m for m in outcome.models if m.status is not ModelStatus.PASSED)
    names = tuple(m.name for m in chosen)
    if not names or (not failed and len(names) == len(outcome.models)):
        return None
    ref = card.commit or card.asked.ref
    return Again(_parameters(card, settings, names, ref), _first(card), len(names), bool(failed))


def _first(card: Card) -> str:
    return card.asked.first_ref or card.asked.ref


def _parameters(card: Card, settings: Settings, models: tuple[str, ...], ref: str) -> dict[str, str]:
    names, pool = settings.parameters, settings.pool(card.asked.pool)
    # a run that was not started from the chat may have been given anything
    epochs = card.asked.epochs if card.asked.epochs.isdecimal() else str(settings.defaults.epochs)
    wanted = {
        names.models: ",".join(models),
        names.scope: card.asked.scope,
        names.epochs: epochs,
        names.ref: ref,
        names.pool: card.asked.pool,
        names.notify: "true",
    }
    return wanted | ({names.cap: pool.cap} if pool else {})
