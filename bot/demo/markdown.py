"""Markdown as Mattermost renders it, for the chat page.

markdown-it-py does the Markdown; here are the differences: one line break is a break, there is no raw HTML, and text
outside of code knows @mentions, ~channels, #hashtags and :emoji:
(https://docs.mattermost.com/collaborate/format-messages.html). Images become links: the page loads nothing from
elsewhere. No `style` attribute comes out, since the page's policy forbids it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import emoji
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

EVERYBODY = frozenset(("all", "channel", "here"))
_WORDS = re.compile(
    r"(?<![\w@])@(?P<mention>[A-Za-z0-9][A-Za-z0-9._-]*)"
    r"|(?<![\w~])~(?P<channel>[a-z0-9][a-z0-9_-]*)"
    r"|(?<![\w#&/])#(?P<hashtag>[A-Za-z][\w-]{2,})"
    r"|(?P<emoji>:[a-z0-9_+-]+:)"
)


class Markdown:
    """Renders texts for people who know these users and channels."""

    def __init__(self, is_user: Callable[[str], bool], is_channel: Callable[[str], bool]) -> None:
        self._is_user, self._is_channel = is_user, is_channel
        self._parser = MarkdownIt("js-default", {"html": False, "linkify": True, "breaks": True})
        self._parser.core.ruler.push("chat_words", self._find_words)
        for name, rule in {
            "mention": _mention,
            "channel": _channel,
            "hashtag": _hashtag,
            "image": _image,
            "link_open": _link_open,
            "th_open": _cell_open,
            "td_open": _cell_open,
            "table_open": _table_open,
            "table_close": _table_close,
        }.items():
            self._parser.add_render_rule(name, rule)

    def render(self, text: str) -> str:
        """HTML that is safe to show."""
        return str(self._parser.render(text))

    def _find_words(self, state: StateCore) -> None:
        for block in state.tokens:
            if block.type != "inline" or block.children is None:
                continue
            found: list[Token] = []
            depth = 0
            for token in block.children:
                depth += {"link_open": 1, "link_close": -1}.get(token.type, 0)
                found += self._split(token.content, in_link=depth > 0) if token.type == "text" else [token]
            block.children = found

    def _split(self, text: str, *, in_link: bool) -> Iterator[Token]:
        end = 0
        for match in _WORDS.finditer(text):
            token = self._word(match, in_link=in_link)
            if token is None:
                continue
            yield _text(text[end : match.start()])
            yield token
            end = match.start() + len(token.markup)
        yield _text(text[end:])

    def _word(self, match: re.Match[str], *, in_link: bool) -> Token | None:
        """The token of a word, its source in `markup`; None for what is just text."""
        if name := match["emoji"]:
            shown = emoji.emojize(name, language="alias")
            return None if shown == name else _token("text", shown, name)
        if in_link:
            return None
        if name := match["mention"]:
            known = next((one for one in (name, name.rstrip("._-")) if self._rings(one.lower())), "")
            return _token("mention", known, f"@{known}") if known else None
        if name := match["channel"]:
            return _token("channel", name, f"~{name}") if self._is_channel(name) else None
        return _token("hashtag", match["hashtag"], match[0])

    def _rings(self, name: str) -> bool:
        return name in EVERYBODY or self._is_user(name)


def _token(kind: str, content: str, markup: str) -> Token:
    return Token(kind, "", 0, content=content, markup=markup)


def _text(content: str) -> Token:
    return _token("text", content, "")


# Rules of the renderer; their parameters are markdown-it's.


def _mention(_self: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    name = escapeHtml(tokens[index].content)
    return f'<span class="mention" data-user="{name.lower()}">@{name}</span>'


def _channel(_self: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    name = escapeHtml(tokens[index].content)
    return f'<a class="channel-link" href="/channels/{name}" data-channel="{name}">~{name}</a>'


def _hashtag(_self: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    return f'<span class="hashtag">#{escapeHtml(tokens[index].content)}</span>'


def _image(_self: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    address = escapeHtml(str(tokens[index].attrGet("src") or ""))
    label = escapeHtml(tokens[index].content) or address
    return f'<a href="{address}" target="_blank" rel="noopener noreferrer">🖼 {label}</a>'


def _link_open(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    tokens[index].attrSet("target", "_blank")
    tokens[index].attrSet("rel", "noopener noreferrer")
    return self.renderToken(tokens, index, options, env)


def _cell_open(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    align = str(tokens[index].attrs.pop("style", "")).removeprefix("text-align:")
    if align:
        tokens[index].attrSet("class", f"align-{align}")
    return self.renderToken(tokens, index, options, env)


def _table_open(_self: RendererHTML, _tokens: Sequence[Token], _index: int, _options: Any, _env: Any) -> str:
    return '<div class="table" role="region" aria-label="Table" tabindex="0"><table>'


def _table_close(_self: RendererHTML, _tokens: Sequence[Token], _index: int, _options: Any, _env: Any) -> str:
    return "</table></div>"
