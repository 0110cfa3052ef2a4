"""Alerts in the chat: one post for each, which is edited when it is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bot.clients.errors import WireError
from bot.clients.mattermost import Mattermost
from bot.core.alerts import AlertPost, read_key
from bot.core.effects import EditAlert, PostAlert, ReadAlerts
from bot.core.events import EffectDone, EffectFailed
from bot.metrics import Metrics
from bot.sinks.posts import edit_post, oldest_first, remove_doubles
from bot.sinks.trouble import failure

ALERT_KEY = "gputest_alert"
"""Prop of an alert: `kind:subject:since`."""

OVER_KEY = "gputest_alert_over"
"""Prop of an alert that is over: when, in whole Unix seconds."""


class AlertSink:
    """Writes them. `may` is the lease; it is asked right before each write."""

    def __init__(self, chat: Mattermost, metrics: Metrics, may: Callable[[], bool]) -> None:
        self._chat = chat
        self._metrics = metrics
        self._may = may

    async def read(self, effect: ReadAlerts) -> EffectDone | EffectFailed:
        """Those that are not over, oldest first. A younger one of the same kind and subject is a double, as is one
        whose own key is over.
        """
        found: dict[tuple[str, str], AlertPost] = {}
        try:
            posts = [post for post in await self._chat.roots(effect.channel, effect.since) if ALERT_KEY in post.props]
            over = {str(post.props[ALERT_KEY]) for post in posts if OVER_KEY in post.props}
            for post in oldest_first(posts):
                key = read_key(str(post.props[ALERT_KEY]))
                if key is None or OVER_KEY in post.props:
                    continue
                kind, subject, since = key
                if (kind, subject) in found or post.props[ALERT_KEY] in over:
                    await remove_doubles(self._chat, [post], self._metrics, self._may)
                else:
                    found[kind, subject] = AlertPost(post.id, kind, subject, since, post.message)
        except WireError as error:
            return failure(effect.id, error)
        return EffectDone(effect.id, tuple(found.values()))

    async def post(self, effect: PostAlert) -> EffectDone | EffectFailed:
        """Say it. The server answers a repetition within 30 s with the post it already has (post.go)."""
        body: dict[str, Any] = {
            "channel_id": effect.channel,
            "message": effect.text,
            "pending_post_id": f"{self._chat.user_id}:{effect.key}",
            "props": {ALERT_KEY: effect.key},
        }
        try:
            return EffectDone(effect.id, await self._chat.post(body, self._may))
        except WireError as error:
            return failure(effect.id, error)

    async def edit(self, effect: EditAlert) -> EffectDone | EffectFailed:
        """Say that it is over; the server replaces props whole (Post.Patch)."""
        body = {"message": effect.text, "props": {ALERT_KEY: effect.key, OVER_KEY: str(int(effect.over))}}
        return await edit_post(self._chat, effect.id, effect.post, body, self._may)
