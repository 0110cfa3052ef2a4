"""Cards, and what is said in their threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from bot.clients.errors import Forbidden, Invalid, NotFound, WireError
from bot.clients.mattermost import Mattermost, StoredPost
from bot.clients.mattermost_rooms import Rooms
from bot.core.buttons import buttons_of
from bot.core.card import Card, Origin
from bot.core.effects import CheckPosts, EditCard, ExitPost, PostCard, SayInThread
from bot.core.events import EffectDone, EffectFailed, Trouble
from bot.core.render.card import render_card
from bot.core.render.thread import NOTICE, called
from bot.core.settings import Settings
from bot.core.signing import is_exit_post
from bot.metrics import Metrics
from bot.sinks.posts import FINAL, as_gone, edit_post, oldest_first, remove_doubles
from bot.sinks.seal import Seal
from bot.sinks.trouble import failure

CARD_KEY = "gputest_card"
"""Prop of a card: `uid:gen`."""

REPLY_KEY = "gputest_reply"
"""Prop of a reply: `uid:attempt:part`."""

EXIT_UID, EXIT_ATTEMPT, EXIT_MARK = "gputest_uid", "gputest_attempt", "gputest_mark"
"""Props of the post that a run's exit step makes where the bot does not answer it."""


class CardSink:
    """Writes to the chat about runs. `may` is the lease; it is asked right before each write."""

    def __init__(
        self, chat: Mattermost, settings: Settings, metrics: Metrics, may: Callable[[], bool], seal: Seal
    ) -> None:
        self._chat = chat
        self._rooms = Rooms(chat)
        self._settings = settings
        self._metrics = metrics
        self._may = may
        self._seal = seal

    async def post(self, effect: PostCard) -> EffectDone | EffectFailed:
        """Create the card, or find the one that an earlier process created."""
        try:
            if effect.look_first:
                found = await self._find(effect)
                if found is not None:
                    return EffectDone(effect.id, found)
            body = {
                "channel_id": effect.channel,
                # the server answers a repetition within 30 s with the post it already has (post.go)
                "pending_post_id": f"{self._chat.user_id}:{effect.key}",
                **self._body(effect.card, effect.channel, effect.key),
            }
            return EffectDone(effect.id, await self._chat.post(body, self._may))
        except WireError as error:
            return failure(effect.id, error)

    async def _find(self, effect: PostCard) -> str | None:
        """The oldest card with this key; younger doubles are deleted."""
        roots = await self._chat.roots(effect.channel, effect.since)
        cards = oldest_first(p for p in roots if p.props.get(CARD_KEY) == effect.key)
        await self._remove(cards[1:])
        return cards[0].id if cards else None

    async def check(self, effect: CheckPosts) -> EffectDone | EffectFailed:
        """Compare what stands there with what should; read twice, and write only where something is wrong."""
        run = effect.key.rsplit(":", 1)[0]
        try:
            roots = await self._chat.roots(effect.channel, effect.since)
            ours = oldest_first(p for p in roots if str(p.props.get(CARD_KEY, "")).rsplit(":", 1)[0] == run)
            kept = next((p for p in ours if p.props[CARD_KEY] == effect.key), None) or await self._known(effect)
            if kept is None:
                return EffectFailed(effect.id, Trouble.GONE, "the card is not there any more")
            # a card of an earlier number is a double as well: a person deleted it, and a late request made it again
            await self._remove(p for p in ours if p is not kept)
            if effect.card is not None:
                body = self._body(effect.card, effect.channel, effect.key)
                if _looks(kept.message, kept.props) != _looks(body["message"], body["props"]):
                    await self._correct(kept.id, body)
            if kept.replies > 1:
                await self._check_thread(kept.id)
        except WireError as error:
            return failure(effect.id, as_gone(error))
        return EffectDone(effect.id, kept.id)

    async def _correct(self, post: str, body: dict[str, Any]) -> None:
        try:
            await self._chat.edit(post, body, self._may)
        except Invalid as error:
            if error.code not in FINAL:
                raise

    async def _known(self, effect: CheckPosts) -> StoredPost | None:
        """The card by its id: one that is not among the latest posts is older than clocks made us think."""
        try:
            posts = await self._chat.thread(effect.post, "checks")
        except NotFound:
            return None
        return next((p for p in self._ours(posts) if p.id == effect.post and p.props.get(CARD_KEY) == effect.key), None)

    async def _check_thread(self, post: str) -> None:
        seen: set[str] = set()
        for reply in oldest_first(self._ours(await self._chat.thread(post, "checks"))):
            key = _reply_key(reply)
            if key and key in seen:
                await self._remove([reply])
            seen.add(key)

    async def _remove(self, doubles: Iterable[StoredPost]) -> None:
        await remove_doubles(self._chat, doubles, self._metrics, self._may)

    def _ours(self, posts: Iterable[StoredPost]) -> list[StoredPost]:
        """What we ourselves wrote: anybody may give a post the props of ours."""
        return [post for post in posts if post.user_id == self._chat.user_id and not post.deleted]

    async def edit(self, effect: EditCard) -> EffectDone | EffectFailed:
        """Make the card look as it should."""
        body = self._body(effect.card, effect.channel, effect.key)
        return await edit_post(self._chat, effect.id, effect.post, body, self._may)

    async def say(self, effect: SayInThread) -> EffectDone | EffectFailed:
        """Post what the thread does not hold yet."""
        try:
            held = {_reply_key(post) for post in self._ours(await self._chat.thread(effect.post))}
            for part, text in effect.parts:
                key = f"{effect.key}:{part}"
                if key in held or (part == NOTICE and effect.unless and await self._exit_step_spoke(effect.unless)):
                    continue
                said = text if part != NOTICE or effect.asker is None else await self._called(text, effect.asker)
                await self._chat.post(self._reply(effect, key, said), self._may)
        except WireError as error:
            return failure(effect.id, as_gone(error))
        return EffectDone(effect.id)

    async def _called(self, text: str, asker: Origin) -> str:
        """The notice with the name of the one who asked, as it is today: somebody else may have the old one."""
        try:
            account = await self._rooms.account(asker.user_id)
        except (NotFound, Invalid):
            return called(text, asker.user_name, there=False)
        except WireError:
            return called(text, asker.user_name)  # nobody knows; the notice does not wait for it
        return called(text, account.name, there=account.there)

    async def _exit_step_spoke(self, wanted: ExitPost) -> bool:
        """Whether the run's own exit step has posted through its webhook (deploy/argo/notify/notify.py).

        It does not know the attempt where it could not read its Workflow.
        """
        for channel in wanted.channels:
            try:
                posts = await self._chat.webhook_posts(channel, wanted.since)
            except (Forbidden, NotFound):
                continue  # nothing of it can be seen there
            for post in posts:
                attempt, mark = str(post.props.get(EXIT_ATTEMPT, "")), post.props.get(EXIT_MARK)
                meant = post.props.get(EXIT_UID) == wanted.uid and attempt in {wanted.attempt, ""}
                if meant and is_exit_post(mark, self._seal.exit_secret, wanted.uid, attempt):
                    return True
        return False

    def _body(self, card: Card, channel: str, key: str) -> dict[str, Any]:
        """Message and props. Props are replaced whole by an edit (Post.Patch), so all of them are sent each time.

        The buttons are made anew each time as well: what the server gives back of them lacks its integration.
        """
        post = render_card(card, self._settings)
        actions = self._seal.actions(buttons_of(card, self._settings), channel)
        return {"message": post.message, "props": {CARD_KEY: key, "attachments": post.attachments(actions)}}

    def _reply(self, effect: SayInThread, key: str, text: str) -> dict[str, Any]:
        return {
            "channel_id": effect.channel,
            "root_id": effect.post,
            "message": text,
            "pending_post_id": f"{self._chat.user_id}:{key}",
            "props": {REPLY_KEY: key},
        }


def _looks(message: str, props: dict[str, Any]) -> tuple[object, ...]:
    """What people see of a card; the rest of an attachment comes back from the server changed."""
    attachments = props.get("attachments") or []
    seen = [(a.get("text"), a.get("color"), [b.get("name") for b in a.get("actions") or []]) for a in attachments]
    return message, seen


def _reply_key(post: StoredPost) -> str:
    return str(post.props.get(REPLY_KEY, ""))
