"""No way to the other side: each cause in its own words, and nothing that could have been done."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests
from mattermostdriver import Driver

from bot.clients.errors import Unconfigured, Unreachable
from bot.clients.kube import Kube
from bot.clients.mattermost import Mattermost, PooledClient
from bot.metrics import Metrics
from tests.clients.wire import Reply, wire


@pytest.mark.parametrize(
    ("raised", "words", "uncertain"),
    [
        (requests.ConnectTimeout(), "no answer to a connection", False),
        (requests.exceptions.SSLError(), "TLS failed", False),
        (requests.ConnectionError("NameResolutionError(host)"), "there is no such host", False),
        (requests.ConnectionError("NewConnectionError(refused)"), "nothing listens there", False),
        (requests.ConnectionError("RemoteDisconnected"), "the connection broke off", True),
        (requests.ReadTimeout(), "did not answer", True),
    ],
)
def test_why_mattermost_is_out_of_reach(
    monkeypatch: pytest.MonkeyPatch, raised: Exception, words: str, *, uncertain: bool
) -> None:
    """Only where the request may have come there is it uncertain what became of it."""

    def fail(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(requests.Session, "request", fail)
    client = Driver({"url": "chat", "scheme": "http", "port": 1, "token": "t"}, client_cls=PooledClient).client

    with pytest.raises(Unreachable, match=words) as caught:
        client.make_request("get", "/users/me")
    assert uncertain is caught.value.uncertain


async def test_a_page_before_mattermost_is_not_its_answer() -> None:
    """A 404 without an error id says nothing about the post."""
    html = Reply(status=404, chunks=[b"<html>not here</html>"], headers={"Content-Type": "text/html"})
    async with wire(html) as script:
        chat = Mattermost(script.url, "t", Metrics())
        try:
            with pytest.raises(Exception, match="404") as caught:
                await chat.thread("p" * 26)
        finally:
            chat.close()
    assert "ServerFault" == type(caught.value).__name__


@pytest.mark.parametrize(("text", "words"), [(None, "there is no file"), ("{}", "current-context")])
async def test_a_kubeconfig_that_is_none(tmp_path: Path, text: str | None, words: str) -> None:
    """The file is named, and what is missing in it."""
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text)

    with pytest.raises(Unconfigured, match=words) as caught:
        await Kube.connect(Metrics(), kubeconfig=str(path))
    assert str(path) in caught.value.reason


async def test_no_cluster_at_all() -> None:
    """Neither a file nor a service account."""
    with pytest.raises(Unconfigured, match="no kubeconfig is named"):
        await Kube.connect(Metrics())
