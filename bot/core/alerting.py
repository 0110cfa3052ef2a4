"""Speaking up unasked: when to look at what is wrong, and what comes of it.

Only the holder of the Lease looks and speaks. It looks a moment after something was seen, however much that was, and
when something gets wrong or is over for long enough. First it reads which alerts stand open in the chat, as soon as no
request of an earlier holder can be under way; after a request that was never answered it reads again.
"""

from __future__ import annotations

from bot.core import alerts
from bot.core.alerts import AlertPost, Pending
from bot.core.concerns import Look, concerns
from bot.core.effects import EditAlert, Effect, PostAlert, ReadAlerts, WakeAt
from bot.core.events import EffectDone, EffectFailed, Trouble
from bot.core.render import alerts as words
from bot.core.state import State

WAKE_ALERTS = "alerts"
"""Key of the wake-up at which is looked for what is wrong."""

LOOK_SECONDS = 5.0
"""After something was seen; whatever else is seen until then is looked at together with it."""

WINDOW_SECONDS = 14 * 86400.0
"""How far back an alert that is not over is looked for in the chat."""

REFUSED_SECONDS = 600.0
"""Until it is tried again where the chat refused it."""


def won(state: State, now: float) -> list[Effect]:
    """The Lease was won: whoever held it before may have spoken, and may still be doing so."""
    alerts.doubt(state.alerts, now + state.settings.settle_seconds)
    state.wakes.pop(WAKE_ALERTS, None)
    return plan(state, now)


def lost(state: State) -> None:
    """The Lease was lost: somebody else speaks."""
    state.alerts.pending = None
    state.wakes.pop(WAKE_ALERTS, None)


def plan(state: State, now: float) -> list[Effect]:
    """Something was seen: look soon."""
    if not state.leader or not state.pools.sights:
        return []
    return _wake(state, now + LOOK_SECONDS)


def swept(state: State, now: float) -> list[Effect]:
    """Look for doubles of what stands open, or stood so a while ago."""
    ledger = state.alerts
    if ledger.read and ledger.pending is None:
        ledger.read = not (any(held.post for held in ledger.held.values()) or now < ledger.look_until)
    return plan(state, now)


def woke(state: State, now: float) -> list[Effect]:
    """Look at what is wrong now, and take the next step."""
    if not state.leader:
        return []
    ledger = state.alerts
    look = Look(state.pools, state.runs, state.history, state.settings, ledger, now, state.listed)
    found = concerns(look)
    alerts.observe(ledger, found, now)
    effect = _next(state, now)
    if effect is not None or ledger.pending is not None:
        return [effect] if effect is not None else []
    if now < ledger.not_before or not ledger.read:
        return _wake(state, max(ledger.not_before, ledger.ready if not ledger.read else 0.0))
    times = [at for at in (found.later, alerts.due(ledger, state.settings.alerts)) if at is not None]
    return _wake(state, min(times)) if times else []


def _next(state: State, now: float) -> Effect | None:
    """Read what stands in the chat, then say ends, then what is new."""
    ledger, settings = state.alerts, state.settings
    if ledger.pending is not None or now < ledger.not_before:
        return None
    if not ledger.read:
        if now < ledger.ready:
            return None
        ledger.pending = Pending(state.new_id(), "read")
        return ReadAlerts(ledger.pending.id, settings.alerts_channel, now - WINDOW_SECONDS)
    over = alerts.to_end(ledger, settings.alerts, now)
    if over is not None:
        text = words.over(over, settings)
        ledger.pending = Pending(state.new_id(), "end", over.concern.key)
        return EditAlert(ledger.pending.id, over.post, over.key, text, over.gone or now)
    new = alerts.to_say(ledger, settings.alerts, now)
    if new is None:
        return None
    text = words.said(new.concern, new.since, settings)
    ledger.pending = Pending(state.new_id(), "say", new.concern.key, text)
    return PostAlert(ledger.pending.id, settings.alerts_channel, new.key, text)


def answered(state: State, pending: Pending, event: EffectDone | EffectFailed, now: float) -> list[Effect]:
    """The step that was under way came to its end."""
    ledger = state.alerts
    ledger.pending = None
    if isinstance(event, EffectFailed):
        _failed(state, pending, event, now)
    else:
        ledger.failures, ledger.not_before = 0, 0.0
        _done(state, pending, event, now)
    return woke(state, now)


def _done(state: State, pending: Pending, event: EffectDone, now: float) -> None:
    ledger = state.alerts
    if pending.about is None:
        posts = event.value if isinstance(event.value, tuple) else ()
        alerts.adopt(ledger, [post for post in posts if isinstance(post, AlertPost)])
    elif pending.step == "say":
        alerts.said(ledger, pending.about, str(event.value), pending.text)
    else:
        _close(state, pending.about, now)


def _failed(state: State, pending: Pending, event: EffectFailed, now: float) -> None:
    ledger, settings = state.alerts, state.settings
    ledger.failures += 1
    backoff = min(settings.retry_seconds * 2 ** min(ledger.failures - 1, 16), settings.retry_max_seconds)
    ledger.not_before = now + max(event.retry_after or 0.0, backoff)
    if event.trouble is Trouble.UNCERTAIN:
        alerts.doubt(ledger, now + max(settings.settle_seconds, backoff))
    elif pending.step == "end" and pending.about is not None and event.trouble in {Trouble.GONE, Trouble.FINAL}:
        _close(state, pending.about, now)  # a person deleted it, or the server lets nobody edit it any more
    elif event.trouble in {Trouble.REFUSED, Trouble.GONE}:
        ledger.not_before = now + max(event.retry_after or 0.0, REFUSED_SECONDS)


def _close(state: State, about: alerts.Subject, now: float) -> None:
    alerts.ended(state.alerts, about, now)
    state.alerts.look_until = now + state.settings.linger_seconds


def _wake(state: State, when: float) -> list[Effect]:
    planned = state.wakes.get(WAKE_ALERTS)
    if planned is not None and planned <= when:
        return []
    state.wakes[WAKE_ALERTS] = when
    return [WakeAt(WAKE_ALERTS, when)]
