"""Runs are read anew, past a watch that may be behind."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from bot.clients.errors import NotFound, ServerFault
from bot.clients.kube_watch import Listed
from bot.core.events import Event, WorkflowDeleted, WorkflowsListed, WorkflowsSeen
from bot.sources.workflows import look_again, workflow_event
from tests.phrases import workflow, workflow_json


@dataclass
class Shelf:
    """An API server that gives what stands on it."""

    objects: dict[str, bytes] = field(default_factory=dict)
    broken: bool = False

    def put(self, body: dict[str, Any]) -> None:
        self.objects[body["metadata"]["name"]] = json.dumps(body).encode()

    async def read(self, path: str) -> bytes:
        if self.broken:
            raise ServerFault("broken")
        assert path.startswith("/apis/argoproj.io/v1alpha1/namespaces/foxhunt/workflows/")
        try:
            return self.objects[path.rpartition("/")[2]]
        except KeyError:
            raise NotFound("gone") from None


async def test_each_is_handed_on_as_it_is_now() -> None:
    """One has ended, one is gone, one was made anew under its name, and one can't be read and stays as it was known."""
    shelf, came = Shelf(), list[Event]()
    names = ("ended", "gone", "anew", "strange")
    held = [workflow(name=name, phase="Running") for name in names]
    shelf.put(workflow_json(name="ended", phase="Succeeded"))
    other = workflow_json(name="anew", phase="Running")
    other["metadata"]["uid"] = "another"
    shelf.put(other)
    shelf.objects["strange"] = b"{"

    await look_again(shelf, held, came.append)  # type: ignore[arg-type]  # as much of it as is asked for

    ended, gone, anew, strange = came
    assert isinstance(ended, WorkflowsSeen)
    assert ["Succeeded"] == [one.phase for one in ended.workflows]
    assert [WorkflowDeleted(held[1]), WorkflowDeleted(held[2])] == [gone, anew]
    assert WorkflowsSeen((held[3],)) == strange


async def test_where_one_could_not_be_read_nothing_is_handed_on() -> None:
    """It is for the caller to try again, before anything is said."""
    came = list[Event]()
    with pytest.raises(ServerFault):
        await look_again(Shelf(broken=True), [workflow()], came.append)  # type: ignore[arg-type]  # as above

    assert [] == came


def test_a_list_tells_of_which_moment_it_is() -> None:
    """What was written after it may be there, though it is not in it."""
    assert WorkflowsListed(frozenset({"a"}), "7") == workflow_event(Listed((), frozenset({"a"}), "7"))
