"""A watch in everything that can happen to it on the way."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from bot.clients.errors import Conflict, Gone, NotFound, ServerFault, WireError
from bot.clients.kube import READ_TRIES, Kube
from bot.clients.kube_watch import Backoff, Listed, Seen, Selection, Watch
from bot.core.packed import read_workflow
from bot.core.workflow import Workflow
from bot.metrics import Metrics
from tests.clients.wire import CASES, Reply, Wire, replies_of, wire

PATH = "/apis/argoproj.io/v1alpha1/namespaces/ml-ci/workflows"


def page(*names: str, version: str = "4", token: str = "") -> Reply:
    """One page of a list."""
    items = [{"metadata": {"name": n, "resourceVersion": "1"}} for n in names]
    body = {"metadata": {"resourceVersion": version, **({"continue": token} if token else {})}, "items": items}
    return Reply(chunks=[json.dumps(body).encode()])


def event(kind: str, name: str, version: str, phase: str = "Running") -> bytes:
    """One line of a watch."""
    body = {
        "type": kind,
        "object": {"metadata": {"name": name, "resourceVersion": version}, "status": {"phase": phase}},
    }
    return json.dumps(body, ensure_ascii=False).encode() + b"\n"


@asynccontextmanager
async def watching(*replies: Reply) -> AsyncIterator[tuple[Wire, Any, list[str]]]:
    """A watch on a server with these answers; yields the server, the iterator of events, and the complaints."""
    complaints: list[str] = []
    async with wire(*replies) as script:
        metrics = Metrics()
        kube = await Kube.connect(metrics, url=script.url, token="t", first_wait=0.001)
        watch = Watch(
            kube,
            metrics,
            PATH,
            read_workflow,
            on_trouble=complaints.append,
            selection=Selection(backoff=Backoff(0.001, 0.01)),
        )
        events = watch.events()
        try:
            yield script, events, complaints
        finally:
            await events.aclose()
            await kube.close()


def names(listed: Listed[Workflow]) -> list[str]:
    return [item.metadata.name for item in listed.items]


async def until_waiting(script: Wire, events: Any) -> list[Any]:
    """Everything the watch yields until the server has no more answers."""
    seen: list[Any] = []

    async def read() -> None:
        async for found in events:
            seen.append(found)

    reader = asyncio.get_running_loop().create_task(read())
    await asyncio.wait_for(script.exhausted.wait(), 10)
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)
    return seen


async def test_it_lists_page_by_page_and_watches_from_there() -> None:
    """All pages are one list; the watch begins at the version of the last page, with bookmarks."""
    async with watching(page("a", token="next"), page("b", version="7"), Reply(chunks=[event("ADDED", "c", "8")])) as (
        script,
        events,
        _,
    ):
        seen = await until_waiting(script, events)

    assert (["a", "b"], "7") == (names(seen[0]), seen[0].version)
    assert ("ADDED", "c") == (seen[1].type, seen[1].object.metadata.name)
    assert "continue=next" in script.requests[1]
    assert "resourceVersion=7" in script.requests[2]
    assert "allowWatchBookmarks=true" in script.requests[2]
    assert "resourceVersion=8" in script.requests[3]


async def test_bookmarks_only_move_the_place() -> None:
    """A bookmark has no name and null containers: no event, no complaint, and the next watch goes on from it."""
    async with watching(page(), Reply(chunks=[(CASES / "g02.txt").read_bytes()])) as (script, events, complaints):
        seen = await until_waiting(script, events)

    assert ["p1"] == [s.object.metadata.name for s in seen if isinstance(s, Seen)]
    assert "resourceVersion=261" in script.requests[2]
    assert [] == complaints


async def test_a_character_cut_in_two_is_whole_and_half_a_line_is_dropped() -> None:
    """Chunks end within a character; the second line never ends: it is read again from the first one's version."""
    case = json.loads((CASES / "g04.json").read_text())
    chunks = [base64.b64decode(chunk) for chunk in case["chunks_base64"]]
    async with watching(page(), Reply(chunks=chunks, cut=True)) as (script, events, complaints):
        seen = await until_waiting(script, events)

    (first,) = [s for s in seen if isinstance(s, Seen)]
    assert "修复" in first.object.annotations["commit"]
    assert "🚀" in first.object.annotations["commit"]
    assert "Running" == first.object.phase
    assert "resourceVersion=5" in script.requests[2]
    assert [] == complaints


@pytest.mark.parametrize(
    "gone",
    [
        Reply(status=410, chunks=[b'{"kind":"Status","code":410,"reason":"Expired","message":"too old"}']),
        Reply(
            chunks=[b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n']
        ),
        Reply(chunks=[b'{"type":"ERROR","object":{"kind":"Status","reason":"Gone","message":"too old"}}\n']),
        Reply(chunks=[b'{"kind":"Status","status":"Failure","reason":"Expired","message":"too old","code":410}\n']),
    ],
    ids=["as a status", "as an event", "without its code", "without the event around it"],
)
async def test_a_lost_place_is_a_new_list(gone: Reply) -> None:
    """410 in either form: list again, and let the reader compare."""
    async with watching(page("a"), gone, page("b", version="9")) as (script, events, _):
        seen = await until_waiting(script, events)

    assert [["a"], ["b"]] == [names(s) for s in seen if isinstance(s, Listed)]
    assert "resourceVersion=9" in script.requests[3]


async def test_an_empty_200_is_backed_off_and_then_listed_anew() -> None:
    """A server that ends each watch at once: three times is enough, then the place itself is doubted."""
    empty = replies_of("g05.txt")["1"]
    async with watching(page("a"), empty, empty, empty, page("b")) as (script, events, complaints):
        seen = await until_waiting(script, events)

    assert [["a"], ["b"]] == [names(s) for s in seen if isinstance(s, Listed)]
    assert 6 == len(script.requests), "no busy loop: three watches, the two lists, and the watch that waits"
    assert [] == complaints


@pytest.mark.parametrize("case", ["2", "4"])
async def test_a_slow_etcd_and_a_proxy_in_html_are_waited_out(case: str) -> None:
    """A read is repeated, so that nobody hears of what went by."""
    async with watching(replies_of("g05.txt")[case], page("a")) as (script, events, complaints):
        seen = await until_waiting(script, events)

    assert ["a"] == names(seen[0])
    assert [] == complaints


@pytest.mark.parametrize("case", ["2", "3", "4"])
async def test_what_stays_broken_is_told_in_plain_words(case: str) -> None:
    """The server's own words, or ours where it had none; never a page of HTML."""
    bad = replies_of("g05.txt")[case]
    async with watching(*[bad] * READ_TRIES, page("a")) as (script, events, complaints):
        seen = await until_waiting(script, events)

    assert ["a"] == names(seen[0])
    told = {"2": "etcdserver: request timed out", "3": "etcdserver: leader changed"}
    assert [told.get(case, "the cluster answered 502 without a reason")] == complaints


@pytest.mark.parametrize("body", [b"", b"<html>please log in</html>", b"[]", b'{"metadata":', b'{"metadata":[]}'])
async def test_a_200_that_is_no_list_is_waited_out(body: bytes) -> None:
    """A proxy's log-in page, an empty body, half an object: the watcher lives, and lists again."""
    bad = Reply(chunks=[body] if body else [])
    async with watching(*[bad] * READ_TRIES, page("a")) as (script, events, complaints):
        seen = await until_waiting(script, events)

    assert ["a"] in [names(s) for s in seen if isinstance(s, Listed)]
    assert complaints


async def test_an_error_event_other_than_410_is_told_and_survived() -> None:
    """An ERROR in the stream ends the watch, not the watcher."""
    error = Reply(chunks=[b'{"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd is away"}}\n'])
    async with watching(page("a"), error, Reply(chunks=[event("MODIFIED", "a", "9")])) as (script, events, complaints):
        seen = await until_waiting(script, events)

    assert "a" == seen[-1].object.metadata.name
    assert ["the watch reported: etcd is away"] == complaints


async def test_an_object_nested_without_end_hides_no_other() -> None:
    """Whoever may create Workflows may store one: in a list and in a watch it is read but for what lies too deep."""
    deep = b'"spec":{"templates":' + b"[" * 5000 + b"]" * 5000 + b"}"
    listed = (
        b'{"metadata":{"resourceVersion":"4"},"items":[{"metadata":{"name":"d"},'
        + deep
        + b'},{"metadata":{"name":"a"}}]}'
    )
    seen_later = b'{"type":"ADDED","object":{"metadata":{"name":"e","resourceVersion":"5"},' + deep + b"}}\n"
    async with watching(Reply(chunks=[listed]), Reply(chunks=[seen_later + event("ADDED", "b", "8")])) as (
        script,
        events,
        complaints,
    ):
        seen = await until_waiting(script, events)

    assert ["d", "a"] == names(seen[0])
    assert ["e", "b"] == [s.object.metadata.name for s in seen[1:]]
    assert [] == complaints


FAILURE = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"etcd is away","code":500}'


@pytest.mark.parametrize("body", [FAILURE, b'{"metadata":{},"items":[]}'])
async def test_an_error_in_a_200_is_no_empty_list(body: bytes) -> None:
    """Read as one, every run would be gone. A list says of which moment it is."""
    async with watching(*[Reply(chunks=[body])] * READ_TRIES, page("a")) as (script, events, complaints):
        seen = await until_waiting(script, events)

    assert [["a"]] == [names(s) for s in seen if isinstance(s, Listed)]
    assert complaints


async def test_an_error_in_a_200_is_no_answer_to_a_write() -> None:
    """It is taken for what it says, not for an object without a name; one that succeeded is an answer."""
    found = b'{"kind":"Workflow","metadata":{"name":"a"},"status":{"message":"\\"Failure\\" "Failure""}}'
    gone = b'{"kind":"Status","status":"Failure","reason":"NotFound","message":"no such object","code":404}'
    nameless, success = b'{"kind":"Status","status":"Failure"}', b'{"kind":"Status","status":"Success"}'
    bodies = [gone, nameless, success, found, b'{"kind":["Failure"]']
    async with wire(*[Reply(chunks=[body]) for body in bodies]) as script:
        kube = await Kube.connect(Metrics(), url=script.url, token="t", first_wait=0.001)
        try:
            with pytest.raises(NotFound, match="no such object"):
                await kube.patch(f"{PATH}/a", {})
            with pytest.raises(ServerFault, match="no more than that"):
                await kube.patch(f"{PATH}/a", {})
            for body in bodies[2:]:
                assert body == await kube.patch(f"{PATH}/a", {})
        finally:
            await kube.close()


async def test_an_object_of_a_list_that_cannot_be_read_is_there_all_the_same() -> None:
    """Left out and told, but not taken for gone."""
    items = [{"metadata": {"uid": "u1"}}, {"metadata": {"uid": "u2"}, "status": {"phase": 5}}, {"metadata": 7}]
    body = json.dumps({"metadata": {"resourceVersion": "4"}, "items": items}).encode()
    async with watching(Reply(chunks=[body])) as (script, events, complaints):
        seen = await until_waiting(script, events)

    assert [{"u1", "u2"}] == [s.uids for s in seen]
    assert 1 == len(seen[0].items)
    assert 2 == len(complaints)


@pytest.mark.parametrize("coding", ["identity", "gzip"])
async def test_bodies_may_be_compressed_and_lines_long(coding: str) -> None:
    """Servers compress lists from 128 KiB on; a line of a watch may be longer than any buffer."""
    listed, line = page("a").chunks[0], event("ADDED", "x" * 2_000_000, "8").replace(b"\n", b"\r\n")
    if coding == "gzip":
        listed, line = gzip.compress(listed), gzip.compress(line)
    parts = [line[at : at + 50_000] for at in range(0, len(line), 50_000)]
    headers = {"Content-Encoding": coding}
    async with watching(Reply(chunks=[listed], headers=headers), Reply(chunks=parts, headers=headers)) as (
        script,
        events,
        complaints,
    ):
        seen = await until_waiting(script, events)

    assert ["a"] == names(seen[0])
    assert 2_000_000 == len(seen[1].object.metadata.name)
    assert "resourceVersion=8" in script.requests[2]
    assert [] == complaints


async def test_a_watch_that_brings_no_events_is_told_and_survived() -> None:
    """JSON of something else."""
    async with watching(
        page("a"), Reply(chunks=[b'{"hello":"world"}\n']), Reply(chunks=[event("ADDED", "b", "8")])
    ) as (
        script,
        events,
        complaints,
    ):
        seen = await until_waiting(script, events)

    assert "b" == seen[-1].object.metadata.name
    assert ["the watch brought what is no event"] == complaints


async def test_an_error_event_says_how_long_to_wait() -> None:
    """The server sheds load: at once is too soon; the wait has its limit."""
    busy = json.dumps({"kind": "Status", "code": 429, "message": "busy", "details": {"retryAfterSeconds": 7}})
    long = json.dumps({"kind": "Status", "code": 429, "message": "busy", "details": {"retryAfterSeconds": 99_999}})
    watch = Watch(cast("Kube", None), Metrics(), PATH, read_workflow, on_trouble=print)

    for status, seconds in ((busy, 7), (long, 300)):
        with pytest.raises(WireError) as told:
            watch.of_line(f'{{"type":"ERROR","object":{status}}}'.encode())
        assert seconds == told.value.retry_after


async def test_an_object_that_cannot_be_read_stops_no_other() -> None:
    """A name that is a number: left out and told; the next one is seen."""
    bad = b'{"type":"ADDED","object":{"metadata":{"name":5,"resourceVersion":"6"}}}\n'
    async with watching(page(), Reply(chunks=[bad + event("ADDED", "good", "7")])) as (script, events, complaints):
        seen = await until_waiting(script, events)

    assert ["good"] == [s.object.metadata.name for s in seen if isinstance(s, Seen)]
    assert 1 == len(complaints)


async def test_retry_after_is_honoured() -> None:
    """429 with Retry-After: 0 on a watch is waited out and the place is kept."""
    busy = Reply(status=429, headers={"Retry-After": "0"}, chunks=[b'{"message":"too many requests"}'])
    async with watching(page("a"), busy, Reply(chunks=[event("ADDED", "b", "8")])) as (script, events, complaints):
        seen = await until_waiting(script, events)

    assert 1 == len([s for s in seen if isinstance(s, Listed)])
    assert ["too many requests"] == complaints


def test_the_waits_double_up_to_their_longest() -> None:
    """0.5, 1, 2 … 30 seconds, at most, and never less than half of it."""
    backoff = Backoff()

    for failures, most in ((1, 0.5), (2, 1.0), (7, 30.0), (1000, 30.0)):
        assert most / 2 <= backoff.wait(failures) <= most


@pytest.mark.parametrize("status", [404, 409, 410])
async def test_what_a_proxy_says_of_an_object_is_not_believed(status: int) -> None:
    """Only a Status says that it is gone, or that somebody else wrote."""
    html = Reply(status=status, chunks=[b"<html>not here</html>"], headers={"Content-Type": "text/html"})
    real = Reply(status=status, chunks=[b'{"kind":"Status","reason":"NotFound","message":"no such object"}'])
    async with wire(html, real) as script:
        kube = await Kube.connect(Metrics(), url=script.url, token="t", first_wait=0.001)
        try:
            with pytest.raises(ServerFault):
                await kube.patch(f"{PATH}/a", {})
            with pytest.raises((NotFound, Conflict, Gone)):
                await kube.patch(f"{PATH}/a", {})
        finally:
            await kube.close()
