"""What `/gpu cost` answers: amounts with their arithmetic, and what was not seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from bot.core.cost import Use
from bot.core.cost_view import Away, CostView, PoolCost, Spent
from bot.core.render.escape import prose
from bot.core.render.money import hours, money
from bot.core.render.post import fit
from bot.core.settings import Settings

_WORDS = {
    Use.MANUAL: "manual",
    Use.PUSH: "push",
    Use.NIGHTLY: "nightly",
    Use.OTHER: "other pods",
    Use.WARM: "kept warm",
    Use.IDLE: "idle",
    Use.UNSEEN: "not seen whose",
}


_HOW = (
    "_From the creation of a node to its end; pods that share a node share its time. Idle: while it starts, between"
    " pods, after the last._"
)


def cost(view: CostView, settings: Settings, now: float) -> str:
    """The answer: all pools, each pool, each trigger, and what is missing in it."""
    return _Answer(view, settings, now).text()


class _Answer:
    def __init__(self, view: CostView, settings: Settings, now: float) -> None:
        self._view = view
        self._settings = settings
        self._now = now
        self._zone = ZoneInfo(settings.timezone)
        names = [pool.gpu for pool in view.pools]
        self._twice = {gpu for gpu in names if names.count(gpu) > 1}

    def text(self) -> str:
        """All of it."""
        view = self._view
        month, last = f"{view.month:%B}", f"{view.month - timedelta(days=1):%B}"
        used = [pool for pool in view.pools if pool.month or pool.last]
        title = f"**GPU cost, {self._local(self._now):%a %-d %b, %H:%M %Z}**"
        if not used:
            return fit([title, self._none(month, last), *self._notes(used=False)])
        sums = [
            f"Today **{self._all(pool.today for pool in used)}**",
            f"{month} **{self._all(pool.month for pool in used)}**",
            *([f"{last} {self._all(pool.last for pool in used)}"] if any(pool.last for pool in used) else []),
        ]
        lines = [title, " · ".join(sums), *(self._pool(pool, month, last) for pool in used)]
        return fit([*lines, *self._triggers(used, month), *self._notes()])

    def _none(self, month: str, last: str) -> str:
        """No node was up, as far back as anybody looked."""
        if self._view.since is None:
            return f"⚪ No node was up in {month}, nor in {last}."
        since = f"{self._local(self._view.since):%-d %b %H:%M}"
        return f"⚪ No node seen since {since}, when the counting began; of what was before I know nothing."

    def _all(self, spent: Iterable[Spent]) -> str:
        """The amount of several pools; hours where no pool has a price, and a plus where some have none."""
        pools = [pool for pool in self._view.pools if pool.month or pool.last]
        parts = list(zip(pools, spent, strict=True))
        priced = [pool.price * sum(s.values()) / 3600 for pool, s in parts if pool.price is not None]
        without = sum(sum(s.values()) for pool, s in parts if pool.price is None)
        if not priced:
            return hours(without)
        amount = money(sum(priced), self._settings.currency)
        return f"{amount} and {hours(without)} without a price" if without else amount

    def _pool(self, pool: PoolCost, month: str, last: str) -> str:
        name = f"**{prose(pool.gpu, 40) or 'Pools that config.yaml does not name'}**"
        if pool.gpu in self._twice:
            name += f" ({prose(pool.name, 60)})"
        price = "no price" if pool.price is None else f"{money(pool.price, self._settings.currency)} a node and hour"
        parts = [f"today {self._amount(pool, pool.today)}", f"{month} {self._amount(pool, pool.month)}"]
        parts += [f"{last} {self._amount(pool, pool.last)}"] if pool.last else []
        return f"{name}, {price}: {' · '.join(parts)}"

    def _amount(self, pool: PoolCost, spent: Spent) -> str:
        seconds = sum(spent.values())
        if pool.price is None:
            return hours(seconds)
        amount = money(pool.price * seconds / 3600, self._settings.currency)
        return f"{amount} ({hours(seconds)})" if seconds else amount

    def _triggers(self, pools: Sequence[PoolCost], month: str) -> list[str]:
        """What the time of this month went to, over all pools."""
        parts = []
        for use in Use:
            spent = [{use: pool.month.get(use, 0.0)} for pool in pools]
            seconds = sum(each[use] for each in spent)
            if seconds >= 0.5 or use in {Use.MANUAL, Use.PUSH, Use.NIGHTLY, Use.IDLE}:
                parts.append(f"{_WORDS[use]} {self._all(spent)}" + (f" ({hours(seconds)})" if seconds else ""))
        return [f"{month} by trigger: {' · '.join(parts)}", _HOW]

    def _notes(self, *, used: bool = True) -> list[str]:
        """What is not in it. Where nothing is, since when that was counted has been said."""
        view, notes = self._view, []
        if view.since is not None and used:
            notes.append(f"👁 Counted since {self._local(view.since):%-d %b %H:%M}; of what was before I know nothing.")
        if view.blind is not None:
            until = "" if self._now - view.blind < 1 else f" until {self._local(view.blind):%-d %b %H:%M}"
            notes.append(
                f"👁 I could not see nodes{until}: only the time of pods that I see is counted, and starting and idle"
                " time comes on top. `deploy/bot/rbac-cluster.yaml` is the right to see them."
            )
        if view.away is not None:
            notes.append(self._away(view.away))
        if not view.kept:
            notes.append("👁 There is no record that I may read and write, so this is what I have seen since my start.")
        return notes

    def _away(self, away: Away) -> str:
        times = "once" if away.times == 1 else f"{away.times} times"
        text = (
            f"👁 Nobody watched {times} this month, {hours(away.seconds)} in all: nodes that came and went then are"
            " missing"
        )
        if away.lost:
            nodes = "one node that went meanwhile" if away.lost == 1 else f"{away.lost} nodes that went meanwhile"
            most = "" if away.at_most is None else f" up to {money(away.at_most, self._settings.currency)}"
            text += f", and {nodes} cost{most} more than is shown"
        return f"{text}."

    def _local(self, at: float) -> datetime:
        return datetime.fromtimestamp(at, UTC).astimezone(self._zone)
