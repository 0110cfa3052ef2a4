"""No call that changes something is left out: the code's own list, held against the cases that kill the bot."""

from __future__ import annotations

from tests.real.calls import CALLS, READ_SITES, asked_for, sites, unlisted_writers
from tests.real.test_kill_at_every_call import CASES


def test_every_place_that_writes_is_a_call_we_know() -> None:
    """Whoever adds a write adds its call here, and a case that kills the bot at it."""
    known = {site for call in CALLS for site in call.sites} | set(READ_SITES)

    assert sites() == known


def test_no_wire_has_a_write_that_is_not_looked_for() -> None:
    """A new method of a client that sends more than a GET has a name that the search knows."""
    assert unlisted_writers() == set()


def test_everything_the_core_can_ask_for_is_a_call_we_know() -> None:
    """Each effect that has an end, and each purpose of a patch."""
    assert asked_for() == {asked for call in CALLS for asked in call.asked}


def test_every_call_has_a_case_that_kills_the_bot() -> None:
    """Before the server hears of it, and after it has committed."""
    assert {call.name for call in CALLS} == {case.call for case in CASES}
