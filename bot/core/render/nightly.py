"""What `/nightly` answers."""

from __future__ import annotations

from datetime import datetime

from bot.core.nightly import NightlyView, Switched
from bot.core.render.answers import MAX_NAMED
from bot.core.render.escape import code, prose
from bot.core.schedule import zone


def status(view: NightlyView) -> str:
    """On or off, when it comes next, who switched it."""
    lines = [f"🌙 Nightly ({prose(view.name, 60)}) is **{'on' if view.enabled else 'off'}**{_next(view)}"]
    if view.stopped:
        failures = f" ({view.failures} failures)" if view.failures else ""
        lines.append(
            f"⚠️ Argo stopped it{failures}: its stop strategy fired. Switching it on starts nothing until it is reset."
        )
    if not view.schedules:
        lines.append("⚠️ It has no schedule.")
    lines += _no_start(view)
    if view.catches_up and not view.dead:
        when = "" if view.enabled else " when it is switched on"
        lines.append(f"A due time went by not long ago: it is started at once{when} (`startingDeadlineSeconds`).")
    if view.when:
        lines.append(f"A due time starts it only where {code(view.when, 200)} holds.")
    if view.complaint:
        lines.append(f"⚠️ Argo says: {prose(view.complaint, 300)}")
    if view.running:
        lines.append("Running: " + ", ".join(code(name, 80) for name in view.running[:MAX_NAMED]))
    if view.switched:
        lines.append(_who(view, view.switched))
    return "\n".join(lines)


def _who(view: NightlyView, last: Switched) -> str:
    """Who switched it last from the chat, and whether it is still so."""
    reason = f": {prose(last.reason, 200)}" if last.reason else ""
    when = f"{datetime.fromtimestamp(last.at, zone(view.timezone)):%-d %b %H:%M %Z}"
    line = f"Switched {'off' if last.suspend else 'on'} by {prose(last.user, 64)}, {when}{reason}"
    if last.suspend is not view.enabled:
        return line
    return f"⚠️ {line}. Since then something else switched it {'on' if view.enabled else 'off'} (GitOps?)."


def _no_start(view: NightlyView) -> list[str]:
    """Why Argo starts nothing by some of its schedules, or by any."""
    lines = []
    if view.strange_zone:
        lines.append(f"⚠️ There is no time zone {code(view.timezone, 60)}, so Argo starts nothing.")
    elif view.unreadable:
        shown = ", ".join(code(s, 60) for s in view.unreadable[:MAX_NAMED])
        zones = " Beside `timezone` it takes no `TZ=`." if view.timezone and "TZ=" in "".join(view.unreadable) else ""
        lines.append(
            f"⚠️ Argo starts nothing by {shown}: it wants five fields, with weekdays from 0 (Sunday) to 6.{zones}"
        )
    if view.never:
        lines.append(f"⚠️ The day of {', '.join(code(s, 60) for s in view.never[:MAX_NAMED])} never comes.")
    if view.in_both_fields:
        lines.append(
            "⚠️ It has both `schedule` and `schedules`: Argo up to 3.7 starts nothing then,"
            " from 4.0 on it reads `schedules`."
        )
    return lines


def _next(view: NightlyView) -> str:
    schedules = ", ".join(code(s, 60) for s in view.schedules[:MAX_NAMED])
    where = prose(view.timezone, 60) or "UTC, assumed"
    text = f" · {schedules} ({where})" if schedules else ""
    if view.enabled and view.upcoming and not view.stopped:
        local = view.upcoming.astimezone(zone(view.timezone))
        elsewhere = "" if local.tzname() == "UTC" else f" ({view.upcoming:%H:%M} UTC)"
        text += f" · next {local:%a %-d %b %H:%M %Z}{elsewhere}"
    return text


def switched(view: NightlyView, *, wanted: bool) -> str:
    """The flag as it was read back after the change."""
    if view.enabled is not wanted:
        now = "on" if view.enabled else "off"
        return f"⚠️ I set it, but read back that nightly is **{now}**. Something else sets it too (GitOps?)."
    if wanted and (view.dead or view.in_both_fields):
        return f"⚠️ The flag is set, but it {'will' if view.dead else 'may'} not run.\n" + status(view)
    return f"✅ {status(view)}"


def unknown(name: str, *, listed: bool) -> str:
    """There is no such CronWorkflow, or nobody has looked yet."""
    if not listed:
        return "I have just started and do not see the cluster yet. Ask again in a moment."
    return f"⚠️ There is no CronWorkflow {code(name, 60)} in the cluster, so there is nothing to switch. Apply it first."


def without_schedule() -> str:
    """Enabling would look like success and start nothing."""
    return "⚠️ The nightly CronWorkflow has no schedule, so switching it on would start nothing. Nothing was changed."


def failed(reason: str) -> str:
    """The cluster did not take the change, or did not say."""
    return f"⚠️ I could not switch nightly: {prose(reason, 300)}. See how it is with `/nightly status`."
