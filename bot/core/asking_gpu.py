"""`/gpu`: from what was typed to what is shown, or to what keeps a pool warm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bot.core import cost_keeping, policy, pools_view, warming
from bot.core.card import Card, card_of
from bot.core.commands.gpu import SPEC, CoolPool, Gpu, ShowCost, ShowGpus, ShowWarmup, WarmPool, parse
from bot.core.commands.spec import ShowHelp
from bot.core.effects import MakePlaceholder, RemovePlaceholders
from bot.core.render import answers
from bot.core.render import pools as pool_answers
from bot.core.render import warmup as way_answers
from bot.core.render.cost import cost
from bot.core.settings import Right
from bot.core.sightings import Source
from bot.core.state import Asker, State
from bot.core.warmup import way


def decide(
    state: State, asker: Asker, text: str, cards: Sequence[Card], now: float
) -> str | MakePlaceholder | RemovePlaceholders:
    """What comes of a line: a text, or a deed whose end is answered. `cards`: the runs under way, oldest first.

    Raises:
        UserError: not well formed, not allowed, or not possible.
    """
    match asked := check(state, asker, text):
        case WarmPool():
            return warming.warm(state, asker, asked, now)
        case CoolPool():
            return warming.cool(state, asker, asked, now)
        case _:
            return _shown(state, asked, cards, now)


def check(state: State, asker: Asker, text: str) -> Gpu:
    """What was typed, if the asker may have it.

    Raises:
        UserError: not well formed, or not allowed.
    """
    asked = parse(text, state.settings.pools[0].name if state.settings.pools else "")
    match asked:
        case ShowGpus() | ShowWarmup() | ShowCost():
            policy.check(state.settings, Right.LOOK, asker.user_id, asker.channel_id)
        case WarmPool():
            warming.check_warm(state, asker, asked)
        case CoolPool():
            warming.check_cool(state, asker, asked)
        case ShowHelp():
            pass
    return asked


def _shown(state: State, asked: ShowGpus | ShowWarmup | ShowCost | ShowHelp, cards: Sequence[Card], now: float) -> str:
    settings = state.settings
    match asked:
        case ShowHelp():
            return answers.help_text(SPEC, settings)
        case ShowWarmup():
            return _warmups(state, now)
        case ShowCost():
            return cost(cost_keeping.view(state, now), settings, now)
        case ShowGpus():
            seen = pools_view.view(state.pools, cards, settings, now, state.history)
            return pool_answers.gpus(asked.part, seen, settings, now)


def _warmups(state: State, now: float) -> str:
    settings, history = state.settings, state.history
    held = sorted(state.runs.values(), key=lambda r: r.workflow.metadata.creation_timestamp or "")
    cards = [
        replace(card_of(run.workflow, settings), way=way(run.warmup, history, settings, now))
        for run in held
        if run.warmup is not None and not run.workflow.ended
    ]
    times = [
        way_answers.PoolTimes(pool.gpu, history.usual(pool.name, cold=True), history.usual(pool.name, cold=False))
        for pool in settings.pools
    ]
    sights = {source: state.pools.sight(source) for source in Source}
    return way_answers.warmups(cards, times, settings, now, sights)
