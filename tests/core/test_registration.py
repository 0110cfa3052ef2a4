"""Which slash commands there should be, and what is done to those that are there."""

from __future__ import annotations

from dataclasses import replace

from bot.core.asking import COMMANDS
from bot.core.commands.spec import CommandSpec
from bot.core.registration import Registered, Wanted, plan, wanted
from bot.core.render import setup

URL = "http://bot:8080/commands"
WISHES = wanted(COMMANDS, URL)
ONE = Wanted("gputest", URL, "[models]", "starts GPU tests", "GPU tests: gputest")


def there(wish: Wanted = ONE, *, by: str = "me", at: int = 1, **more: object) -> Registered:
    """A command as it is."""
    command = Registered(f"id-{by}-{at}", by, at, "P", "T1", True, wish)
    return replace(command, **more)  # type: ignore[arg-type]


def test_every_command_is_wanted() -> None:
    """Made from what they say of themselves."""
    assert [wish.trigger for wish in WISHES] == [spec.trigger for spec in COMMANDS]
    assert WISHES[0].hint == COMMANDS[0].usage
    assert {wish.url for wish in WISHES} == {URL}


def test_texts_fit_the_columns() -> None:
    """The server refuses names over 64 and descriptions over 128 bytes, whatever they are made of."""
    (wish,) = wanted([CommandSpec("x" * 100, "ä" * 100, "", ())], URL)

    assert len(wish.name.encode()) == 64
    assert len(wish.description.encode()) == 128


def test_none_there_all_are_made() -> None:
    """An empty team."""
    todo = plan(WISHES, [], "me")

    assert todo.create == WISHES
    assert not todo.settled


def test_all_as_it_should_be_nothing_is_done() -> None:
    """A second start changes nothing, and learns the tokens."""
    todo = plan([ONE], [there()], "me")

    assert todo.settled
    assert todo.tokens == ("T1",)
    assert "T1" not in repr(todo) + repr(there())


def test_ours_is_corrected() -> None:
    """An address, a hint or a method that is not right any more."""
    moved = there(replace(ONE, url="http://old/commands"))

    for wrong in (moved, there(method="G"), there(auto_complete=False), there(replace(ONE, hint="old"))):
        assert plan([ONE], [wrong], "me").correct == (("id-me-1", ONE),)
    assert plan([ONE], [moved], "me").tokens == ("T1",)


def test_made_by_hand_and_leading_to_us_is_as_good() -> None:
    """Its token is taken, and it is left as it is."""
    todo = plan([ONE], [there(replace(ONE, hint="by hand"), by="olga")], "me")

    assert todo.settled
    assert (todo.taken, todo.tokens) == ((), ("T1",))


def test_somebody_elses_is_named_and_left_alone() -> None:
    """A trigger that leads elsewhere: nothing is made beside it, its token is not ours."""
    theirs = there(replace(ONE, url="http://other/hook"), by="olga")
    todo = plan([ONE], [theirs, there(replace(ONE, trigger="poll"), by="olga", at=2)], "me")

    assert todo.settled
    assert (todo.taken, todo.tokens) == ((theirs,), ())


def test_a_double_of_ours_is_removed() -> None:
    """Two replicas may have made one each: the older stays, whichever comes first in the list."""
    todo = plan([ONE], [there(at=2, token="T2"), there(at=1), there(by="olga", at=3, token="T3")], "me")

    assert todo.remove == ("id-me-2",)
    assert todo.tokens == ("T1", "T3")


def test_what_an_admin_enters() -> None:
    """Trigger, address and hint of each, and what to do with the token."""
    text = setup.by_hand(WISHES, "no permission")

    assert "(no permission)" in text
    for wish in WISHES:
        assert (
            f"trigger word {wish.trigger} · request URL {URL} · method POST · autocomplete on, hint {wish.hint}" in text
        )
    assert "GPUTEST_COMMAND_TOKENS" in text
    assert "()" not in setup.by_hand(WISHES)


def test_whose_trigger_it_is() -> None:
    """The owner is named, and what they would have to change."""
    theirs = there(replace(ONE, url="http://other/hook"), by="olga")

    assert setup.taken(theirs, "olga", [ONE]) == (
        "/gputest belongs to olga and leads to http://other/hook. It is left as it is; for the bot to answer it,"
        " olga points it to http://bot:8080/commands."
    )
    assert "somebody who is gone" in setup.taken(theirs, "", [ONE])
