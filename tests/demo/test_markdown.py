"""Markdown of the chat page: what Mattermost makes of a text."""

from __future__ import annotations

import pytest

from bot.demo.markdown import Markdown

MARKDOWN = Markdown(lambda name: name in ("dev", "a.b"), lambda name: name == "gpu-tests")
DEV = '<span class="mention" data-user="dev">@dev</span>'
LINK = 'target="_blank" rel="noopener noreferrer"'


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("one\ntwo", "<p>one<br>\ntwo</p>"),
        ("**k7m2** _x_ ~~y~~", "<p><strong>k7m2</strong> <em>x</em> <s>y</s></p>"),
        ("hi @dev.", f"<p>hi {DEV}.</p>"),
        ("@nobody mail@dev.org", '<p>@nobody <a href="mailto:mail@dev.org" ' + LINK + ">mail@dev.org</a></p>"),
        ("@\u200bdev", "<p>@\u200bdev</p>"),
        ("`@dev :tada:`", "<p><code>@dev :tada:</code></p>"),
        ("**@dev**", f"<p><strong>{DEV}</strong></p>"),
        ("@all", '<p><span class="mention" data-user="all">@all</span></p>'),
        (":tada: :no-such-thing: 10:20:30", "<p>🎉 :no-such-thing: 10:20:30</p>"),
        ("#gpu #1", '<p><span class="hashtag">#gpu</span> #1</p>'),
        ("~nowhere", "<p>~nowhere</p>"),
        ("[x](http://h/ 'title')", f'<p><a href="http://h/" title="title" {LINK}>x</a></p>'),
        ("www.h.org", f'<p><a href="http://www.h.org" {LINK}>www.h.org</a></p>'),
        ("[@dev](http://h/)", f'<p><a href="http://h/" {LINK}>@dev</a></p>'),
        ("![pixel](http://h/p.png)", f'<p><a href="http://h/p.png" {LINK}>🖼 pixel</a></p>'),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
        ("<b onclick=x>&amp;</b>", "<p>&lt;b onclick=x&gt;&amp;&lt;/b&gt;</p>"),
        ("```\n<i>\n```", "<pre><code>&lt;i&gt;\n</code></pre>"),
    ],
)
def test_texts(text: str, html: str) -> None:
    """Breaks, mentions, emoji and links as Mattermost has them; nothing of the author's becomes HTML."""
    assert MARKDOWN.render(text).strip() == html


def test_channels() -> None:
    """A channel that there is becomes a link to it."""
    assert MARKDOWN.render("in ~gpu-tests").strip() == (
        '<p>in <a class="channel-link" href="/channels/gpu-tests" data-channel="gpu-tests">~gpu-tests</a></p>'
    )


def test_tables() -> None:
    """A table scrolls by itself and can be reached by keyboard; its columns keep their sides without a style."""
    html = MARKDOWN.render("|a|b|\n|-|-:|\n|1|2|")

    assert html.startswith('<div class="table" role="region" aria-label="Table" tabindex="0"><table>')
    assert '<td class="align-right">2</td>' in html
    assert "style=" not in html
