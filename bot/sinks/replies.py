"""Answers to commands that were typed as posts: one reply in the thread of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bot.clients.mattermost import Mattermost

ANSWER_KEY = "gputest_answer"
"""Prop of an answer: the id of the request."""


class Replies:
    """Writes them once. `may` is the lease; it is asked right before the write."""

    def __init__(self, chat: Mattermost, may: Callable[[], bool]) -> None:
        self._chat = chat
        self._may = may

    async def has(self, root: str, request: str) -> bool:
        """Whether the thread holds our answer to that request.

        Raises:
            WireError: NotFound where the thread was deleted.
        """
        ours = [post for post in await self._chat.thread(root) if post.user_id == self._chat.user_id]
        return any(post.props.get(ANSWER_KEY) == request for post in ours)

    def request_of(self, post: Mapping[str, Any]) -> str:
        """The id of the request that a post answers, as the server has it, deleted or not; "" for any other post."""
        props = post.get("props")
        if post.get("user_id") != self._chat.user_id or not isinstance(props, dict):
            return ""
        return str(props.get(ANSWER_KEY, ""))

    async def say(self, channel: str, root: str, request: str, text: str) -> None:
        """Answer, unless it is answered: another replica or an earlier process may have done it.

        Raises:
            WireError: not answered, or not known whether it was.
        """
        if await self.has(root, request):
            return
        body = {
            "channel_id": channel,
            "root_id": root,
            "message": text,
            # the server answers a repetition within 30 s with the post it already has (post.go)
            "pending_post_id": f"{self._chat.user_id}:{request}",
            "props": {ANSWER_KEY: request},
        }
        await self._chat.post(body, self._may)
