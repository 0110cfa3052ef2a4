"""Posts as they are read: one, a thread, a page of a channel, those that are pinned.

Rules follow mattermost-server 6.7.2 `store/sqlstore/post_store.go`, `app/post.go` (AddCursorIdsForPostList).
"""

from __future__ import annotations

import re

from bot.demo import chat_errors
from bot.demo.chat_state import ChatState, Json, without_integrations

SINCE_LIMIT = 1000


class Reading:
    """What may be read, and in which shape."""

    def __init__(self, state: ChatState) -> None:
        self.state = state
        self._by_root: dict[str, list[str]] = {}

    def get(self, user: str, identity: str) -> Json:
        """One post. Raises ChatError: 404, 403."""
        return self.view(self._readable(user, identity))

    def _readable(self, user: str, identity: str) -> Json:
        post = self.state.posts.get(identity)
        if post is None or post["delete_at"]:
            raise chat_errors.no_post()
        if not self.state.may_read(post["channel_id"], user):
            raise chat_errors.no_permission()
        return post

    def some(self, user: str, ids: list[str]) -> list[Json]:
        """POST /posts/ids: those of them that one may read. Raises ChatError 404 where there is none."""
        found = [self.state.posts[one] for one in dict.fromkeys(ids) if one in self.state.posts]
        if not found:
            raise chat_errors.no_post()
        shown = [one for one in found if self.state.may_read(one["channel_id"], user)]
        return [{**self.view(one), **({"message": ""} if one["delete_at"] else {})} for one in _newest_first(shown)]

    def thread(self, user: str, identity: str, query: dict[str, str]) -> Json:
        """A post with its root and all replies, or a part of them. Raises ChatError: 404, 403.

        The post itself stands first, and again in its place among the others; these come without an order of their
        own, unless a direction is asked for: mostly as they were written last, which a root is with each reply.
        """
        post = self._readable(user, identity)
        root = self.state.posts[post["root_id"] or post["id"]]
        found = [*self._replies(root["id"]), *([] if root["delete_at"] else [root])]
        if direction := query.get("direction"):
            found.sort(key=lambda one: (one["create_at"], one["id"]), reverse=direction == "up")
        at = _number(query.get("fromCreateAt"))
        if query.get("fromPost") and at:
            mark = (at, query["fromPost"])
            newer = direction == "down"
            found = [one for one in found if ((one["create_at"], one["id"]) > mark) == newer and one["id"] != mark[1]]
        size = _number(query.get("perPage"))
        has_next = 0 < size < len(found)
        shown = found[:size] if size > 0 else found
        if query.get("collapsedThreads") == "true":
            shown = [one for one in shown if one["id"] != identity]
        return self._listed([post, *shown], [post, *shown]) | {"has_next": has_next}

    def _replies(self, root: str) -> list[Json]:
        found = [self.state.posts[one] for one in self._by_root.get(root, ())]
        return [one for one in found if not one["delete_at"]]

    def pinned(self, channel: str) -> Json:
        """GET /channels/ID/pinned: the oldest first."""
        found = [one for one in self._of(channel) if one["is_pinned"] and not one["delete_at"]]
        return self._listed(found[::-1], found)

    def _of(self, channel: str) -> list[Json]:
        return _newest_first([one for one in self.state.posts.values() if one["channel_id"] == channel])

    def page(self, channel: str, query: dict[str, str], page: int, size: int) -> Json:
        """GET /channels/ID/posts: a page by creation, newest first, or what changed since a time."""
        posts = self._of(channel)
        if query.get("collapsedThreads") == "true":
            # Beside their threads: roots alone, and what is gone is not among them.
            posts = [one for one in posts if not one["root_id"] and not one["delete_at"]]
        since = _number(query.get("since"))
        if since > 0:
            return self._since(posts, since, query)
        posts = [one for one in posts if not one["delete_at"]]
        start = page * size
        if after := query.get("after", ""):
            later = [one for one in posts if one["create_at"] > self._time_of(after, 2**63)]
            shown = later[::-1][start : start + size][::-1]
        else:
            before = query.get("before", "")
            older = [one for one in posts if not before or one["create_at"] < self._time_of(before, 0)]
            shown = older[start : start + size]
        counts = bool(after or query.get("before")) or _counts(query)
        listed = self._listed(shown, self._with_threads(shown, query), counts=counts)
        return listed | self._cursors(posts, shown, query, page, size)

    def _since(self, posts: list[Json], since: int, query: dict[str, str]) -> Json:
        # Deleted posts are among them, so that a client can take them away; and roots that did not change.
        changed = [one for one in posts if one["update_at"] > since][:SINCE_LIMIT]
        roots = [self.state.posts[one["root_id"]] for one in changed if one["root_id"]]
        found = {one["id"]: one for one in [*changed, *(one for one in roots if not one["delete_at"])]}
        shown = _newest_first(list(found.values()))
        return self._listed(shown, shown, counts=_counts(query))

    def _time_of(self, identity: str, unknown: int) -> int:
        found = self.state.posts.get(identity)
        return unknown if found is None else int(found["create_at"])

    def _with_threads(self, posts: list[Json], query: dict[str, str]) -> list[Json]:
        """What comes beside the posts of a page: their roots, and all replies to these where they are wanted."""
        if query.get("collapsedThreads") == "true":
            return posts
        roots = [self.state.posts[one] for one in dict.fromkeys(post["root_id"] or post["id"] for post in posts)]
        beside = [one for one in roots if not one["delete_at"]]
        if query.get("skipFetchThreads") != "true":
            beside += [reply for root in roots for reply in self._replies(root["id"])]
        return [*posts, *beside]

    def _cursors(
        self, posts: list[Json], shown: list[Json], query: dict[str, str], page: int, size: int
    ) -> dict[str, str]:
        """The posts next to the page on either side, as far as the server says them."""
        found = {"next_post_id": "", "prev_post_id": ""}
        if shown:
            places = {one["id"]: place for place, one in enumerate(posts)}
            first, last = places[shown[0]["id"]], places[shown[-1]["id"]]
            found["next_post_id"] = posts[first - 1]["id"] if first else ""
            found["prev_post_id"] = posts[last + 1]["id"] if last + 1 < len(posts) else ""
        after, before = query.get("after", ""), query.get("before", "")
        if after:
            found |= {"prev_post_id": after} if page == 0 else {}
            found |= {"next_post_id": ""} if len(shown) < size else {}
        elif before:
            found |= {"next_post_id": before} if page == 0 else {}
            found |= {"prev_post_id": ""} if len(shown) < size else {}
        return found

    def _listed(self, order: list[Json], posts: list[Json], *, counts: bool = True) -> Json:
        shown = {one["id"]: self.view(one) for one in posts}
        for one in shown.values():
            if one["delete_at"]:
                one["message"] = ""
            if not counts:
                one["reply_count"] = 0
        ids = [one["id"] for one in order]
        return {"order": ids, "posts": shown, "next_post_id": "", "prev_post_id": "", "has_next": False}

    def view(self, post: Json) -> Json:
        """A post as the API gives it."""
        shown = dict(without_integrations(post))
        if not shown.get("has_reactions"):
            shown.pop("has_reactions", None)
        replies = self._replies(post["root_id"] or post["id"])
        shown |= {"reply_count": len(replies), "last_reply_at": 0, "participants": None}
        shown["metadata"] = self._metadata(post)
        return shown

    def _metadata(self, post: Json) -> Json:
        metadata: Json = {}
        if "attachments" in post["props"]:
            metadata["embeds"] = [{"type": "message_attachment"}]
        if post.get("file_ids"):
            metadata["files"] = [self.state.files[one][0] for one in post["file_ids"] if one in self.state.files]
        if self.state.reactions.get(post["id"]):
            metadata["reactions"] = self.state.reactions[post["id"]]
        return metadata


def _counts(query: dict[str, str]) -> bool:
    """Whether the replies of a page are counted: the server leaves it to clients that get them anyway."""
    return "true" in (query.get("skipFetchThreads"), query.get("collapsedThreads"))


def _newest_first(posts: list[Json]) -> list[Json]:
    return sorted(posts, key=lambda one: int(one["create_at"]), reverse=True)


def _number(text: str | None) -> int:
    return int(text) if text and re.fullmatch(r"-?[0-9]{1,18}", text) else 0
