"""Every call by which the bot changes another system: where it stands in the code, and how it looks on the wire.

The list is held against the code: `sites` finds the places that change something, `Effect` and `Purpose` name what
the core can ask for. A new one fails a test until a case here kills the bot at it.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args

from bot.core.effects import (
    CheckPosts,
    EditAlert,
    EditCard,
    Effect,
    KeepCosts,
    KeepStart,
    MakePlaceholder,
    OpenDialog,
    PatchWorkflow,
    PostAlert,
    PostCard,
    Purpose,
    ReadAlerts,
    RemovePlaceholders,
    SayInThread,
    SetSuspend,
    SubmitWorkflow,
)
from bot.core.memory import CANCEL_ANNOTATION, RUN_ANNOTATION
from bot.core.waiting import GAVE_UP_ANNOTATION, WAIT_ANNOTATION
from tests.real.bots import CONFIG_MAPS, LEASES, WORKFLOWS
from tests.real.proxy import Seen
from tests.real.rig.kube_client import ARGO

BOT = Path(__file__).parents[2] / "bot"
PODS = "/api/v1/namespaces/foxhunt/pods"
CRONS = f"{ARGO}/namespaces/foxhunt/cronworkflows/"


@dataclass(frozen=True)
class Call:
    """One kind of call. `sites`: where in the code it is made; `asked`: the effect or purpose that asks for it."""

    name: str
    wire: str
    matches: Callable[[Seen], bool]
    sites: tuple[str, ...]
    asked: tuple[type | Purpose, ...] = ()


def _request(method: str, path: str, **props: str) -> Callable[[Seen], bool]:
    """A request by method and path; `props`: what the post's props hold, as a pattern."""

    def matches(seen: Seen) -> bool:
        if seen.method != method or not re.fullmatch(path, seen.path):
            return False
        body = seen.body
        held = (body.get("props") or {}) if isinstance(body, dict) else {}
        return all(re.fullmatch(pattern, str(held.get(key, ""))) for key, pattern in props.items())

    return matches


def _made(name: str) -> Callable[[Seen], bool]:
    """The creation of a ConfigMap of the bot's own."""
    post = _request("POST", CONFIG_MAPS)
    return lambda seen: post(seen) and seen.body["metadata"]["name"] == name


def _holder(held: bool) -> Callable[[Seen], bool]:
    put = _request("PUT", f"{LEASES}/.+")
    return lambda seen: put(seen) and bool(seen.body["spec"]["holderIdentity"]) is held


def purpose_of(seen: Seen) -> Purpose | None:
    """What a patch of a Workflow is for, told from its operations alone."""
    if seen.method != "PATCH" or not seen.path.startswith(WORKFLOWS) or not isinstance(seen.body, list):
        return None
    ops: list[dict[str, Any]] = seen.body
    added = {op["path"] for op in ops if op["op"] == "add"}
    removed = {op["path"] for op in ops if op["op"] == "remove"}
    if "/spec/shutdown" in added and GAVE_UP_ANNOTATION.replace("/", "~1") in str(ops):
        return Purpose.GIVE_UP
    if "/metadata/annotations/" + WAIT_ANNOTATION.replace("/", "~1") in added:
        return Purpose.WAIT_LONGER
    if "/spec/shutdown" in added:
        return Purpose.CANCEL if CANCEL_ANNOTATION.replace("/", "~1") in str(ops) else Purpose.SHUT_DOWN
    old, new = _memories(ops)
    if any(path.startswith("/metadata/finalizers/") for path in removed):
        return Purpose.RELEASE if new else Purpose.LET_GO
    if old is None:
        return Purpose.CLAIM
    if any(path.startswith("/metadata/finalizers") for path in added):
        return Purpose.CLAIM_AGAIN
    if new["gen"] > old["gen"]:
        return Purpose.FORGET_CARD
    if len(new["journal"]) > len(old["journal"]) or new["journal"] != old["journal"]:
        return Purpose.JOURNAL
    return Purpose.REMEMBER if new["post"] != old["post"] else Purpose.SEE


def _memories(ops: list[dict[str, Any]]) -> tuple[Any, Any]:
    path = "/metadata/annotations/" + RUN_ANNOTATION.replace("/", "~1")
    old = next((op["value"] for op in ops if op["op"] == "test" and op["path"] == path), None)
    new = next((op["value"] for op in ops if op["op"] == "add" and op["path"] == path), None)
    whole = next((op["value"] for op in ops if op["op"] == "add" and op["path"] == "/metadata/annotations"), {})
    new = new or whole.get(RUN_ANNOTATION)
    return (json.loads(old) if old else None), (json.loads(new) if new else None)


def _patch(purpose: Purpose) -> Call:
    return Call(
        purpose.value,
        "kube",
        lambda seen: purpose_of(seen) is purpose,
        ("sinks.workflows.WorkflowSink.patch",),
        (PatchWorkflow, purpose),
    )


POSTS = "/api/v4/posts"
HISTORY_SITE = ("sinks.history.HistorySink._once",)
SAY = ("sinks.cards.CardSink.say",)
REMOVE = ("sinks.posts.remove_doubles",)

CALLS = (
    *map(_patch, Purpose),
    Call("submit", "kube", _request("POST", WORKFLOWS), ("sinks.workflows.WorkflowSink.submit",), (SubmitWorkflow,)),
    Call(
        "suspend",
        "kube",
        _request("PATCH", f"{CRONS}.+"),
        ("sinks.cronworkflows.CronWorkflowSink.suspend",),
        (SetSuspend,),
    ),
    Call("warm", "kube", _request("POST", PODS), ("sinks.placeholders.PlaceholderSink.make",), (MakePlaceholder,)),
    Call(
        "cool",
        "kube",
        _request("DELETE", f"{PODS}/.+"),
        ("sinks.placeholders.PlaceholderSink._delete",),
        (RemovePlaceholders,),
    ),
    Call("lease-create", "kube", _request("POST", LEASES), ("clients.kube_lease.Lease._create",)),
    Call("lease-hold", "kube", _holder(True), ("clients.kube_lease.Lease._write",)),
    Call("lease-give-back", "kube", _holder(False), ("clients.kube_lease.Lease._write",)),
    Call("installation", "kube", _made("gputest-bot"), ("sources.installation.installed_at",)),
    Call("cursor", "kube", _request("PATCH", f"{CONFIG_MAPS}/gputest-bot"), ("sources.cursor.CursorStore._write",)),
    Call("history-create", "kube", _made("gputest-bot-history"), HISTORY_SITE, (KeepStart,)),
    Call("history", "kube", _request("PATCH", f"{CONFIG_MAPS}/gputest-bot-history"), HISTORY_SITE, (KeepStart,)),
    Call("costs-create", "kube", _made("gputest-bot-costs"), ("sinks.costs.CostSink._create",), (KeepCosts,)),
    Call(
        "costs",
        "kube",
        _request("PATCH", f"{CONFIG_MAPS}/gputest-bot-costs"),
        ("sinks.costs.CostSink._patch",),
        (KeepCosts,),
    ),
    Call("farewell", "kube", lambda seen: purpose_of(seen) is Purpose.LET_GO, ("app.release_finalizers",)),
    Call("card", "chat", _request("POST", POSTS, gputest_card=".+"), ("sinks.cards.CardSink.post",), (PostCard,)),
    Call(
        "edit",
        "chat",
        _request("PUT", f"{POSTS}/[a-z0-9]+/patch"),
        ("sinks.posts.edit_post", "sinks.cards.CardSink._correct"),
        (EditCard, CheckPosts),
    ),
    Call("alert", "chat", _request("POST", POSTS, gputest_alert=".+"), ("sinks.alerts.AlertSink.post",), (PostAlert,)),
    Call(
        "alert-over",
        "chat",
        _request("PUT", f"{POSTS}/[a-z0-9]+/patch", gputest_alert_over=".+"),
        ("sinks.posts.edit_post",),
        (EditAlert,),
    ),
    Call("failure", "chat", _request("POST", POSTS, gputest_reply=".+:failure:.+"), SAY, (SayInThread,)),
    Call("notice", "chat", _request("POST", POSTS, gputest_reply=".+:notice"), SAY, (SayInThread,)),
    Call("double", "chat", _request("DELETE", f"{POSTS}/[a-z0-9]+"), REMOVE, (CheckPosts, ReadAlerts)),
    Call("answer", "chat", _request("POST", POSTS, gputest_answer=".+"), ("sinks.replies.Replies.say",)),
    Call(
        "dialog",
        "chat",
        _request("POST", "/api/v4/actions/dialogs/open"),
        ("sinks.dialogs.DialogSink.open",),
        (OpenDialog,),
    ),
    Call("late-answer", "chat", _request("POST", "/hooks/commands/.+"), ("runtime.http.Handlers._follow_up",)),
    Call(
        "command-create",
        "chat",
        _request("POST", "/api/v4/commands"),
        ("clients.mattermost_commands.CommandRegister.create", "sinks.slash_commands.SlashCommands._create"),
    ),
    Call(
        "command-correct",
        "chat",
        _request("PUT", "/api/v4/commands/[a-z0-9]+"),
        ("clients.mattermost_commands.CommandRegister.correct", "sinks.slash_commands.SlashCommands._register_once"),
    ),
    Call(
        "command-remove",
        "chat",
        _request("DELETE", "/api/v4/commands/[a-z0-9]+"),
        ("clients.mattermost_commands.CommandRegister.remove", "sinks.slash_commands.SlashCommands._register_once"),
    ),
)

BY_NAME = {call.name: call for call in CALLS}

READS = (
    _request("POST", "/api/v4/users/usernames"),
    _request("POST", "/api/v4/users/ids"),
    _request("POST", "/api/v4/roles/names"),
    _request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
)
"""Requests that carry a question in their body and change nothing."""


def unknown(seen: list[Seen]) -> list[str]:
    """Requests that change something and are none of the calls."""
    return sorted(
        {
            f"{one.method} {one.path}"
            for one in seen
            if one.mutates and not any(read(one) for read in READS) and not any(call.matches(one) for call in CALLS)
        }
    )


READ_SITES = ("clients.mattermost_survey.Survey.permissions", "doctor._Cluster._may")
"""Where they are made."""


def asked_for() -> set[type | Purpose]:
    """Everything that the core can ask for and that has an end: the effects with an id, and each purpose of a patch."""
    return {effect for effect in get_args(Effect) if "id" in {f.name for f in fields(effect)}} | set(Purpose)


# the code itself

_WRITES = {
    *("create", "replace", "patch", "update", "post", "put", "edit", "delete", "remove", "correct"),
    *("open_dialog", "respond", "request", "make_request", "create_post", "patch_post", "delete_post"),
}
"""Names of methods that may change another system, at whatever they are called on."""

_WIRES = re.compile(r"(^|\.)_?(kube|chat|register|driver|client|session|rooms|survey|posts|http)$")
"""Names of what leads to another system."""

_WITHIN = ("clients/mattermost.py", "clients/kube.py")
"""The wires themselves: what is below them is the library's."""


def sites() -> set[str]:
    """The places of the code at which another system may be changed, as `module.Class.function`."""
    found: set[str] = set()
    for path in sorted(BOT.rglob("*.py")):
        relative = path.relative_to(BOT).as_posix()
        if relative.startswith("demo/") or relative in _WITHIN:
            continue
        module = relative.removesuffix(".py").replace("/", ".")
        found |= {f"{module}.{where}" for where in _sites_in(ast.parse(path.read_text(encoding="utf-8")))}
    return found


def unlisted_writers() -> set[str]:
    """Public methods of the wires that send more than a GET and whose name `sites` does not look for."""
    found: set[str] = set()
    for relative in _WITHIN:
        for kind in ast.parse((BOT / relative).read_text(encoding="utf-8")).body:
            for method in kind.body if isinstance(kind, ast.ClassDef) else []:
                if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and _sends(method):
                    found.add(method.name)
    return {name for name in found if not name.startswith("_")} - _WRITES


def _sends(method: ast.AST) -> bool:
    for node in ast.walk(method):
        if isinstance(node, ast.Constant) and str(node.value).upper() in {"POST", "PUT", "PATCH", "DELETE"}:
            return True
        if isinstance(node, ast.Attribute) and re.match("(create|patch|put|update|delete|upload|remove)_", node.attr):
            return True
    return False


def _sites_in(node: ast.AST, scope: tuple[str, ...] = ()) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        inner = scope
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            inner = (*scope, child.name)
        if isinstance(child, ast.Call) and _may_write(child):
            yield ".".join(scope)
        yield from _sites_in(child, inner)


def _may_write(call: ast.Call) -> bool:
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in _WRITES:
        return False
    if not _WIRES.search(ast.unparse(function.value)):
        return False
    # `request` names its method; one that only reads is no write
    methods = {a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)}
    return not (function.attr in {"request", "make_request"} and "get" in methods)
