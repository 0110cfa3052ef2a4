"""Who and what is meant in a text: people, channels, hashtags.

mattermost-server 6.7.2 `app/notification.go` (getExplicitMentions), `app/post.go` (FillInPostProps),
`model/utils.go` (ParseHashtags).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]

MAX_HASHTAGS = 1000
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_LETTER = r"[^\W\d_]"
_HASHTAG = re.compile(rf"#{_LETTER}[\w\-.]*(?:{_LETTER}|\d)")


def names_in(text: str) -> set[str]:
    """The names behind @ outside code, in lower case."""
    found = re.findall(r"(?<![\w@])@([A-Za-z0-9._-]+)", _CODE.sub("", text))
    return {name.rstrip(".-_").lower() for name in found}


def channels_in(text: str) -> set[str]:
    """The names behind ~."""
    return set(re.findall(r"(?<!\w)~([a-z0-9_-]+)", text))


def hashtags_in(text: str) -> str:
    """The hashtags, as they are kept beside the message."""
    words = []
    for word in text.split():
        bare = re.sub(r"[\W_]+$", "", re.sub(r"^[^\w#]+", "", word))
        bare = re.sub(r"^#{2,}", "#", bare)
        if _HASHTAG.fullmatch(bare):
            words.append(bare)
    joined = " ".join(words)
    return joined if len(joined) < MAX_HASHTAGS else joined[: MAX_HASHTAGS - 1].rpartition(" ")[0]


def mentioned_in(post: Json, members: Iterable[Json]) -> list[str]:
    """Ids of the members of its channel that a post mentions, its author apart: in the message and in the texts of
    its attachments, but not in their titles and fields.
    """
    texts = [post["message"]]
    for attachment in (post["props"].get("attachments") if isinstance(post["props"], dict) else None) or ():
        texts += [attachment["pretext"], attachment["text"]]
    names = set().union(*map(names_in, texts))
    everybody = bool(names & {"all", "channel", "here"})
    others = [one for one in members if one["id"] != post["user_id"]]
    return [one["id"] for one in others if everybody or one["username"] in names]
