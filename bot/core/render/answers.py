"""What a person reads who typed a command: answers and refusals, seen by nobody else."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.card import Card, Stage
from bot.core.commands.spec import CommandSpec
from bot.core.errors import UserError
from bot.core.render.card import queue_words
from bot.core.render.escape import code, prose
from bot.core.render.outcome import headline
from bot.core.render.post import apart, fit
from bot.core.render.scheduling import waiting_words
from bot.core.render.words import clock, models_words, origin_words
from bot.core.schedule import zone
from bot.core.settings import Settings
from bot.core.state import EndedRun
from bot.core.verdict import Verdict
from bot.core.workflow import instant

MAX_RUNS = 30
"""Runs listed by `status`."""

_STAGES = {
    Stage.QUEUED: "🕓 queued",
    Stage.PAUSED: "⏸️ suspended",
    Stage.UNSEEN: "🔵 under way",
    Stage.WAITING: "🟡 waiting for a GPU",
    Stage.WARMING: "🟡 warming up",
    Stage.TESTING: "🔵 compiling and testing",
    Stage.FINISHING: "🔵 finishing",
    Stage.ENDED: "⚪ being reported",
}


MAX_NAMED = 10
"""Schedules, runs and the like that one sentence names."""

MAX_COPIED = 300
"""Characters of a line to copy."""


def copied(line: str) -> str:
    """A line to copy as it is read in its code span; "" for one that is too long to be shown whole."""
    shown = code(line, MAX_COPIED + 1)[1:-1].strip()
    return shown if len(shown) <= MAX_COPIED else ""


def refusal(error: UserError, *, started: bool = False) -> str:
    """Why not, that nothing happened, and a line to copy."""
    text = f"🤔 {error.text}"
    if not started:
        text += " Nothing was started."
    return f"{text}\n{code(error.suggestion, MAX_COPIED)}" if error.suggestion else text


def nothing_changed(error: UserError) -> str:
    """The same for commands that switch instead of start."""
    text = f"🤔 {error.text} Nothing was changed."
    return f"{text}\n{code(error.suggestion, MAX_COPIED)}" if error.suggestion else text


def no_such_command(trigger: str, known: Sequence[CommandSpec]) -> str:
    """A trigger that was pointed at this bot by mistake."""
    return f"🤔 I do not know {code('/' + trigger, 60)}. I know {', '.join(f'`/{spec.trigger}`' for spec in known)}."


def help_text(spec: CommandSpec, settings: Settings) -> str:
    """How a command is used; made from its SPEC."""
    lines = [f"**/{spec.trigger}** {spec.summary}: `/{spec.trigger} {spec.usage}`"]
    lines += [f"- `/{spec.trigger} {line}` · {what}" for line, what in spec.examples]
    if spec.trigger == "gputest":
        defaults = settings.defaults
        lines += [
            f"Models: {', '.join(prose(m, 30) for m in settings.model_names)}",
            (
                f"Scopes: {', '.join(settings.scopes)} · pools: {', '.join(prose(p.name, 40) for p in settings.pools)}"
                f" · epochs: 1 to {settings.max_epochs}"
            ),
            (
                f"Without a word on it: {','.join(defaults.models)}, {defaults.epochs} epochs, scope {defaults.scope},"
                f" {'the default branch' if defaults.ref == 'HEAD' else code(defaults.ref)}"
            ),
        ]
    return "\n".join(apart(lines))


def started(short: str, channel: str, *, posts: bool) -> str:
    """A run was created and its card is elsewhere, or there will be none."""
    if not posts:
        name = prose(short, 40)
        return f"🕓 **{name}** is started without a post. Ask for it with `/gputest status {name}`."
    where = f" in ~{channel}" if channel else ""
    return f"🕓 **{prose(short, 40)}** is started; its card is{where or ' on its way'}."


def started_before(short: str) -> str:
    """A click that was made before: what it started is over, and it starts nothing more."""
    name = prose(short, 40)
    return f"That button has started **{name}** before, and it has ended. For another: `/gputest rerun {name}`."


def being_stopped(short: str) -> str:
    """The stop is on its way; the card shows when it has ended."""
    return f"🚫 **{prose(short, 40)}** is being stopped."


def cancel_failed(reason: str, short: str) -> str:
    """The cluster did not take the stop, or did not say."""
    return f"⚠️ I could not stop {code(short, 40)}: {prose(reason, 300)}. Its card shows how it is."


def ended_already(card: Card) -> str:
    """Too late for a cancel."""
    return f"**{prose(card.short, 40)}** has ended already." if card.outcome is None else f"Too late: {headline(card)}."


def tests_are_over(short: str) -> str:
    """A stop changes nothing any more, though the Workflow still runs."""
    return f"The tests of **{prose(short, 40)}** have ended; only its exit step runs, which reports them."


def ended_meanwhile(*, stopping: bool = True) -> str:
    """It ended, or waited no more, while what was asked was on its way."""
    if not stopping:
        return "It waits for no GPU any more; its card shows how it is."
    return "It ended while I was about to stop it; its card has the verdict."


def nothing_to_rerun(short: str, verdict: Verdict | None) -> str:
    """Why no model of that run can be run again alone."""
    name = f"**{prose(short, 40)}**"
    return {
        Verdict.PASSED: f"Nothing failed in {name}, so there is nothing to rerun of it alone.",
        Verdict.FAILED: f"In {name} only shared suites failed, which run with every selection.",
        Verdict.BROKEN: f"{name} did not build, so no model failed by itself.",
        Verdict.CANCELLED: f"{name} was cancelled before any model had a result.",
        Verdict.TIMED_OUT: f"{name} was out of time before any model had a result.",
        Verdict.NO_GPU: f"{name} never got a GPU, so no model has a result.",
    }.get(verdict or Verdict.UNKNOWN, f"Of {name} no results are known, so nobody knows what failed.")


def run_unknown(run: str | None, known: Sequence[str], *, ended: bool = False) -> str:
    """No run of that name, for commands that need one; `ended`: one that has ended."""
    names = ", ".join(code(name, 40) for name in known[:10])
    none = "I know none that has ended." if ended else "None is under way."
    hint = f"I know {names}." if names else none
    return f"No run is called {code(run, 60)}. {hint}" if run else f"No run to do that with. {hint}"


def click_refused(error: UserError) -> str:
    """Why a click, or a command that starts nothing, did nothing."""
    text = f"🤔 {error.text} Nothing was done."
    return f"{text}\n{code(error.suggestion, MAX_COPIED)}" if error.suggestion else text


def bad_click(*, expired: bool) -> str:
    """A click whose context is not ours, or too old."""
    if expired:
        return "That button is too old; nothing was done. `/gputest list` names the runs, `/gputest help` what I take."
    return (
        "🔒 That button is none of mine, or from before I got another token, so I did nothing. `/gputest list` names"
        " the runs; `/gputest rerun` and `/gputest cancel` with such a name do what their buttons do."
    )


def bad_form(*, expired: bool) -> str:
    """A dialog whose state is not ours, or too old."""
    if expired:
        return "This form is too old. Close it and open it again; nothing was done."
    return (
        "This form is none of mine, or from before I got another token. Close it and open it again; nothing was done."
    )


def no_dialog(short: str) -> str:
    """The form that asks once more could not be opened: the trigger lives for three seconds."""
    return f"I could not open the form that asks once more. To stop it: `/gputest cancel {prose(short, 40)}`."


def run_list(cards: Sequence[Card], ended: Sequence[tuple[str, EndedRun]], settings: Settings, *, listed: bool) -> str:
    """Runs under way and those that ended, one a line."""
    if not listed or (not cards and not ended):
        return status(cards, ended, settings, listed=listed)
    lines = [run_line(card, settings) for card in cards[:MAX_RUNS]]
    lines += [ended_line(short, run, settings) for short, run in ended]
    return fit(lines)


def submit_failed(reason: str, name: str) -> str:
    """The cluster did not take the run, or did not say."""
    return (
        f"⚠️ I could not start the run: {prose(reason, 300)}. It is called {code(name)} in case it was"
        f" created after all: look with `/gputest status` before you try again."
    )


def submit_refused(reason: str) -> str:
    """The cluster said no."""
    return f"⚠️ The cluster refused the run: {prose(reason, 400)}. Nothing was started."


def status(cards: Sequence[Card], ended: Sequence[tuple[str, EndedRun]], settings: Settings, *, listed: bool) -> str:
    """What runs, what waits, and what ended last."""
    if not listed:
        return "I have just started and do not see the cluster yet. Ask again in a moment."
    if not cards and not ended:
        return "No run is under way, and I have seen none end. `/gputest help` shows how to start one."
    lines = [run_line(card, settings) for card in cards[:MAX_RUNS]]
    if len(cards) > MAX_RUNS:
        lines.append(f"and {len(cards) - MAX_RUNS} more")
    if not cards:
        lines.append("No run is under way.")
    if ended:
        lines += ["Ended last:", *(_ended(short, run, settings) for short, run in ended)]
    return fit(lines)


def run_line(card: Card, settings: Settings) -> str:
    """One run under way."""
    since = f", since {clock(card.since, settings)}" if card.since else ""
    models = models_words(card.asked)
    words = queue_words(card) or waiting_words(card.detail)
    why = words[:1].lower() + words[1:] or prose(card.detail, 160)
    detail = f" · {why}" if why else ""
    return f"{_STAGES[card.stage]}{since}: **{prose(card.short, 40)}** · {models} · {origin_words(card.origin)}{detail}"


def run_not_found(run: str, known: Sequence[str]) -> str:
    """No run of that short name."""
    names = ", ".join(code(name, 40) for name in known[:10])
    hint = f" I know {names}." if names else " I know none at the moment."
    return f"🤔 No run is called {code(run, 60)}.{hint}"


def several(run: str, names: Sequence[str]) -> str:
    """A short name that several runs have."""
    listed = ", ".join(code(name, 80) for name in names[:MAX_NAMED])
    return f"{code(run, 60)} may be any of {listed}. Give the whole name."


def ended_line(short: str, run: EndedRun, settings: Settings) -> str:
    """One run that was reported."""
    return f"{_ended(short, run, settings)} (`{prose(run.name, 80)}`)"


def _ended(short: str, run: EndedRun, settings: Settings) -> str:
    """What came of it, when, and who asked, without ringing anybody."""
    words = {
        "passed": "✅", "failed": "❌", "broken": "🧱", "cancelled": "🚫", "timed_out": "⌛", "no_gpu": "💤",
        "unknown": "❔",
    }  # fmt: skip
    verdict = run.verdict.value if run.verdict else "unknown"
    said = "never got a GPU" if run.verdict is Verdict.NO_GPU else verdict.replace("_", " ")
    head = f"**{run.headline}**" if run.headline else f"**{prose(short, 40)}** {said}"
    finished = instant(run.finished)
    when = f"ended {finished.astimezone(zone(settings.timezone)):%-d %b %H:%M %Z}" if finished else ""
    who = origin_words(run.origin) if run.origin else ""
    return " · ".join(part for part in (f"{words[verdict]} {head}", when, who) if part)


def working() -> str:
    """The answer takes longer than a slash command may; it follows."""
    return "⏳ Working on it; the answer follows."


def internal_error(incident: str) -> str:
    """Something is broken in the bot; the log has it under this name."""
    return f"⚠️ That went wrong inside the bot, nothing was started. Its log has it as {code(incident, 20)}."


def too_slow() -> str:
    """A click or a form that is still worked on when the server does not wait any longer."""
    return "⏳ The cluster takes its time; what you asked for goes on. `/gputest list` shows what came of it."


def unknown_token() -> str:
    """A slash command whose token the bot was not given: an admin has to act."""
    return (
        "🔒 I do not know the token that this slash command sends, so I did nothing. An admin has to put the command's"
        " token (Integrations → Slash Commands) into the bot's secret `GPUTEST_COMMAND_TOKENS`."
    )


def not_ready(missing: str) -> str:
    """The bot has just started."""
    return f"⏳ I have just started and wait for {prose(missing, 100)}. Nothing was started; try again in a moment."
