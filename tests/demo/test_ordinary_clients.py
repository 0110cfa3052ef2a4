"""Clients that were not made for the embedded world, against it: they find what they expect."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import websockets
from kubernetes import aio as kubernetes
from mattermostdriver import Driver
from mattermostdriver.websocket import Websocket

from bot.demo import EmbeddedWorld

GROUP = ("argoproj.io", "v1alpha1", "foxhunt")


@pytest.fixture
async def api(world: EmbeddedWorld) -> Any:
    """The official client."""
    configuration = kubernetes.client.Configuration(host=world.kube_url)
    configuration.api_key = {"authorization": f"Bearer {world.admin_token}"}
    async with kubernetes.client.ApiClient(configuration) as client:
        yield client


async def test_kubernetes_client_reads_and_writes(world: EmbeddedWorld, api: Any) -> None:
    """Typed and custom objects, patches, deletion, errors."""
    core, custom = kubernetes.client.CoreV1Api(api), kubernetes.client.CustomObjectsApi(api)
    nodes = await core.list_node()
    patch = {"spec": {"suspend": False}}
    cron = await custom.patch_namespaced_custom_object(
        *GROUP, "cronworkflows", "gpu-test-nightly", patch, _content_type="application/merge-patch+json"
    )
    body = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"generateName": "run-"}, "spec": {}}
    made = await custom.create_namespaced_custom_object(*GROUP, "workflows", body)
    await custom.delete_namespaced_custom_object(*GROUP, "workflows", made["metadata"]["name"])
    with pytest.raises(kubernetes.client.ApiException) as caught:
        await custom.get_namespaced_custom_object(*GROUP, "workflows", made["metadata"]["name"])

    assert nodes.items[0].status.conditions[0].type == "Ready"
    assert cron["spec"]["suspend"] is False
    assert caught.value.status == 404


async def test_kubernetes_client_watches(world: EmbeddedWorld, api: Any) -> None:
    """Its Watch yields typed events of pods."""
    world.cluster.hang()
    core, watch = kubernetes.client.CoreV1Api(api), kubernetes.watch.Watch()
    name = world.cluster.submit("run-1")
    await world.clock.advance(0)
    async with watch.stream(core.list_namespaced_pod, "foxhunt", timeout_seconds=5) as stream:
        async for event in stream:
            pod = event["object"]
            break

    assert (event["type"], pod.metadata.labels["workflows.argoproj.io/workflow"]) == ("ADDED", name)
    assert pod.status.conditions[0].reason == "Unschedulable"


@pytest.fixture
def driver(world: EmbeddedWorld) -> Iterator[Driver]:
    """mattermostdriver, as the bot."""
    host, port = world.chat_url.removeprefix("http://").split(":")
    options = {"url": host, "port": int(port), "scheme": "http", "token": world.bot_token, "request_timeout": 5}
    yield Driver(options)


async def test_mattermostdriver(world: EmbeddedWorld, driver: Driver) -> None:
    """Login, look-ups, a post with its edit and thread, a reaction, a file, an error."""

    def use() -> tuple[Any, ...]:
        me = driver.login()
        team = driver.teams.get_team_by_name("foxhunt")
        channel = driver.channels.get_channel_by_name(team["id"], "gpu-tests")
        post = driver.posts.create_post({"channel_id": channel["id"], "message": "one"})
        driver.posts.patch_post(post["id"], {"message": "two"})
        driver.posts.create_post({"channel_id": channel["id"], "message": "reply", "root_id": post["id"]})
        driver.reactions.create_reaction({"user_id": me["id"], "post_id": post["id"], "emoji_name": "eyes"})
        files = {"files": ("log.txt", b"hello")}
        uploaded = driver.files.upload_file(channel_id=channel["id"], files=files)
        try:
            driver.posts.get_post("z" * 26)
        except Exception as error:  # its exceptions say too little to be told apart
            return me, driver.posts.get_thread(post["id"]), uploaded, type(error).__name__
        return ()

    me, thread, uploaded, error = await asyncio.to_thread(use)

    assert me["username"] == "gputest"
    assert [thread["posts"][one]["message"] for one in dict.fromkeys(thread["order"])] == ["two", "reply"]
    assert uploaded["file_infos"][0]["name"] == "log.txt"
    assert error == "ResourceNotFound"


async def test_mattermostdrivers_websocket(world: EmbeddedWorld, driver: Driver) -> None:
    """It answers the challenge, and hears of a post, of its edit, and of a button that is pressed."""
    await asyncio.to_thread(driver.login)
    heard: asyncio.Queue[Any] = asyncio.Queue()

    async def hear(message: str) -> None:
        await heard.put(json.loads(message))

    async def event(name: str) -> Any:
        while (seen := await heard.get()).get("event") != name:
            pass
        return seen

    line = Websocket(driver.options, driver.client._token)
    listening = asyncio.get_running_loop().create_task(line.connect(hear))
    async with asyncio.timeout(10):
        hello = await event("hello")
        said = await world.chat.say("dev", "gpu-tests", "hello @gputest")
        posted = await event("posted")
        world.chat.edit("dev", said.response["id"], "hello again")
        edited = await event("post_edited")
    line.disconnect()
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)

    assert hello["seq"] == 0
    assert json.loads(posted["data"]["post"])["message"] == "hello @gputest"
    assert posted["data"]["sender_name"] == "@dev"
    assert json.loads(edited["data"]["post"])["message"] == "hello again"


async def test_websockets(world: EmbeddedWorld) -> None:
    """The usual library: signed in by a header, pings are answered, an action has its reply, and a close is clean."""
    address = world.chat_url.replace("http://", "ws://") + "/api/v4/websocket"
    headers = {"Authorization": f"Bearer {world.tokens['dev']}"}
    async with asyncio.timeout(10), websockets.connect(address, additional_headers=headers) as line:
        hello = json.loads(await line.recv())
        await (await line.ping())
        await line.send(json.dumps({"seq": 1, "action": "ping"}))
        reply = json.loads(await line.recv())
        await world.chat.say("viewer", "gpu-tests", "hello")
        posted = json.loads(await line.recv())

    assert (hello["event"], hello["seq"]) == ("hello", 0)
    assert (reply["status"], reply["seq_reply"]) == ("OK", 1)
    assert (posted["event"], posted["seq"]) == ("posted", 1)
    assert line.close_code == 1000


async def test_websockets_without_a_token(world: EmbeddedWorld) -> None:
    """The line opens, and nothing is said on it."""
    address = world.chat_url.replace("http://", "ws://") + "/api/v4/websocket"
    async with websockets.connect(address) as line:
        await world.chat.say("dev", "gpu-tests", "hello")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await line.recv()


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
async def test_kubectl(world: EmbeddedWorld, tmp_path: Path) -> None:
    """get, patch, logs -f, delete by the kubeconfig that the demo prints."""
    config = tmp_path / "kubeconfig"
    config.write_text(world.kubeconfig())
    environment = {**os.environ, "KUBECONFIG": str(config), "HOME": str(tmp_path)}

    async def kubectl(*arguments: str) -> str:
        process = await asyncio.create_subprocess_exec(
            "kubectl", *arguments, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        output, _ = await process.communicate()
        return output.decode()

    world.cluster.hang()
    name = world.cluster.submit("run-1")
    await world.cluster.until_running(name)
    world.cluster.log(name, "first line")
    pod = world.cluster.pod(name)
    assert pod is not None

    assert "run-1   Running" in await kubectl("get", "wf")
    assert (await kubectl("get", "nodes")).split()[:5] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    patched = await kubectl("patch", "cwf", "gpu-test-nightly", "--type", "merge", "-p", '{"spec":{"suspend":false}}')
    assert patched == "cronworkflow.argoproj.io/gpu-test-nightly patched\n"
    refused = await kubectl("patch", "cwf", "gpu-test-nightly", "-p", '{"spec":{"suspend":false}}')
    assert "application/strategic-merge-patch+json is not supported" in refused

    async def go_on() -> None:
        async with asyncio.timeout(10):
            while not world.cluster.logs.is_followed(pod["metadata"]["uid"]):
                await asyncio.sleep(0)
        world.cluster.log(name, "last line")
        world.cluster.finish(name)

    followed, _ = await asyncio.gather(kubectl("logs", "-f", pod["metadata"]["name"]), go_on())
    assert followed == "first line\nlast line\n"
    assert "deleted" in await kubectl("delete", "wf", "run-1")
    assert "Forbidden" in await kubectl("--server", world.kube_url, "get", "wf")
