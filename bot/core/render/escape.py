"""Text from outside, made harmless for Mattermost's Markdown.

Mattermost parses mentions in text nodes only and splits a name at U+200B (notification.go), a backslash does not
help there. Control characters and NUL make PostgreSQL refuse a post for good (they look like a passing 500).
"""

from __future__ import annotations

import re
import unicodedata

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])")
_TURNED = dict.fromkeys(map(ord, "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"))
"""Signs that turn the direction of what follows them, beyond the text that they came with."""

_MARKDOWN = re.compile(r"([\\`*_~\[\]<>|#])")
_EMOJI = re.compile(r":(?=[A-Za-z0-9_+-]+:)")
_URL = re.compile(r"(?i)\b(https?|ftp|mailto):(?=/|\S)")
_UNESCAPED = re.compile(r"(\\[\\`*_~\[\]<>|#])|([\\`*_~\[\]<>|#])")
_MARKS = re.compile(r"\\([\\`*_~\[\]<>|#])|`|\*\*")
_MENTION_NAME = re.compile(r"[a-z0-9._-]{1,64}")
_EVERYBODY = frozenset({"all", "channel", "here"})
"""They ring a whole channel, also with a dot, a dash or a low line behind them (notification.go)."""

ZERO_WIDTH = "\u200b"


def clean(text: str) -> str:
    """Without ANSI sequences, control characters, lone surrogates and turned directions; newlines and tabs stay."""
    text = _ANSI.sub("", text).translate(_TURNED)
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in {"Cc", "Cs"})


def prose(text: str, limit: int = 300) -> str:
    """One line of outside text inside a sentence: cut, no Markdown, no mention, no emoji, no link."""
    line = " ".join(clean(text).split())
    line = line if len(line) <= limit else line[: limit - 1] + "…"
    line = _EMOJI.sub(":" + ZERO_WIDTH, line)
    line = _URL.sub(r"\1" + ZERO_WIDTH + ":", line)
    return _MARKDOWN.sub(r"\\\1", line).replace("@", "@" + ZERO_WIDTH)


def again_harmless(text: str) -> str:
    """One line that `prose` made once, and that somebody may have changed since: what is escaped stays as it is."""
    line = " ".join(clean(text).split())
    line = _EMOJI.sub(":" + ZERO_WIDTH, line)
    line = _URL.sub(r"\1" + ZERO_WIDTH + ":", line)
    line = _UNESCAPED.sub(lambda found: found[1] or "\\" + found[2], line)
    return re.sub(f"@(?!{ZERO_WIDTH})", "@" + ZERO_WIDTH, line)


def unmarked(text: str) -> str:
    """A sentence of ours for where no Markdown is read, as in the errors of a form: without its marks."""
    return _MARKS.sub(lambda found: found[1] or "", text)


def code(text: str, limit: int = 120) -> str:
    """Outside text as a code span, in which neither Markdown nor mentions are read. Never empty, never left open."""
    line = " ".join(clean(text).split()).replace("`", "'").replace("|", "¦")
    line = line if len(line) <= limit else line[: limit - 1] + "…"
    return f"`{line or ' '}`"


def fenced(text: str, limit: int = 3000) -> str:
    """Outside text as a block; the fence is longer than any run of backticks inside. The end is what is kept."""
    text = clean(text).strip("\n")
    text = text if len(text) <= limit else "…" + text[-(limit - 1) :]
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def mention(user_name: str) -> str:
    """The one way to ring somebody. A name that is none of Mattermost's, or is everybody's, rings nobody."""
    lowered = user_name.lower()
    if _MENTION_NAME.fullmatch(lowered) and lowered.strip("._-") not in _EVERYBODY:
        return f"@{lowered}"
    return prose(user_name, 64)
