"""Who may do what, where, within which limits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.core.commands.gputest import StartRun, parameters, parse
from bot.core.errors import UserError
from bot.core.policy import check, check_run, may_ref, roles_of
from bot.core.settings import Right, Role, Settings
from tests.phrases import SETTINGS

LEAD = Role("leads", users=("ben", "chloe"), user_ids=("id-ben", "id-chloe"), may=tuple(Right))
INTERN = Role(
    "interns",
    users=("ian",),
    user_ids=("id-ian",),
    may=(Right.RUN,),
    max_epochs=10,
    pools=("ci-training",),
    refs=("main",),
)
EVERYBODY = Role("everybody")
OPS = Role("ops", users=("*",), channels=("ops",), channel_ids=("OPS",), may=(Right.CANCEL,))


def with_roles(*roles: Role) -> Settings:
    """Settings with these roles."""
    return replace(SETTINGS, roles=roles)


def refused(settings: Settings, user: str, channel: str = "C", **asked: object) -> UserError:
    """Why a run is refused."""
    with pytest.raises(UserError) as caught:
        check_run(settings, user, channel, parameters(StartRun(**asked), settings))  # type: ignore[arg-type]
    return caught.value


def test_the_roles_of_a_person_in_a_channel() -> None:
    """By user id and channel id, never by name; `*` is everybody."""
    settings = with_roles(LEAD, INTERN, EVERYBODY, OPS)

    assert ["leads", "everybody"] == [r.name for r in roles_of(settings, "id-ben", "C")]
    assert ["everybody", "ops"] == [r.name for r in roles_of(settings, "ben", "OPS")]
    assert ["everybody"] == [r.name for r in roles_of(settings, "", "ops")]


def test_a_right_of_any_role_is_enough() -> None:
    """Roles add up, as far as rights go."""
    settings = with_roles(EVERYBODY, LEAD, OPS)

    check(settings, Right.LOOK, "id-zoe", "C")
    check(settings, Right.CANCEL, "id-zoe", "OPS")
    check(settings, Right.NIGHTLY, "id-ben", "C")


@pytest.mark.parametrize(
    ("roles", "right", "text"),
    [
        ((EVERYBODY, LEAD), Right.RUN, "You may not start runs here. Ask ben or chloe."),
        ((EVERYBODY, LEAD, INTERN), Right.RUN, "You may not start runs here. Ask ben, chloe or ian."),
        ((EVERYBODY, LEAD), Right.NIGHTLY, "You may not switch the nightly run here. Ask ben or chloe."),
        ((OPS,), Right.CANCEL, "You may not cancel runs here. It goes in ~ops."),
        ((OPS,), Right.LOOK, "You may not look at runs here. Nobody may, as config.yaml stands."),
        ((), Right.RUN, "You may not start runs here. Nobody may, as config.yaml stands."),
        (
            (replace(LEAD, users=tuple("abcdefg")),),
            Right.RUN,
            "You may not start runs here. Ask a, b, c, d, e or others.",
        ),
        ((replace(LEAD, users=tuple("abcde")),), Right.RUN, "You may not start runs here. Ask a, b, c, d or e."),
    ],
)
def test_a_missing_right_names_who_has_it(roles: tuple[Role, ...], right: Right, text: str) -> None:
    """People of a role that holds here, else the channels in which it would."""
    with pytest.raises(UserError) as caught:
        check(with_roles(*roles), right, "id-zoe", "C")

    assert (text, "") == (caught.value.text, caught.value.suggestion)


def test_a_run_within_the_limits_is_allowed() -> None:
    """To the last of each."""
    settings = with_roles(INTERN)

    check_run(settings, "id-ian", "C", parameters(StartRun(epochs=10, pool="ci-training", ref="main"), settings))


@pytest.mark.parametrize(
    ("asked", "text", "best"),
    [
        (
            {"epochs": 11, "pool": "ci-training", "ref": "main"},
            "epochs=11 is over your limit of 10. Ask ben or chloe.",
            "/gputest models=dqn,ppo,tft epochs=10 ref=main pool=ci-training",
        ),
        (
            {"models": ("dqn",), "ref": "main", "scope": "lib", "notify": False},
            "Pool `ci-training-h100` is not for you; yours: ci-training. Ask ben or chloe.",
            "/gputest models=dqn scope=lib epochs=3 ref=main pool=ci-training notify=false",
        ),
        (
            {"pool": "ci-training", "ref": "v1"},
            (
                "Ref `v1` is not among those you may run, since GPU pods hold data and keys. You may run `main`."
                " Ask ben or chloe."
            ),
            "/gputest models=dqn,ppo,tft epochs=3 ref=main pool=ci-training",
        ),
    ],
)
def test_beyond_a_limit_there_is_a_line_within_all_of_them(asked: dict[str, object], text: str, best: str) -> None:
    """What was asked for stays as far as it may; the line itself is allowed."""
    settings = with_roles(INTERN, LEAD)
    error = refused(settings, "id-ian", **asked)
    again = parse(error.suggestion.removeprefix("/gputest "), settings)

    assert (text, best) == (error.text, error.suggestion)
    assert isinstance(again, StartRun)
    check_run(settings, "id-ian", "C", parameters(again, settings))


@pytest.mark.parametrize(
    "role",
    [
        replace(INTERN, refs=("release/*",)),
        replace(INTERN, refs=()),
        replace(INTERN, pools=()),
        replace(INTERN, pools=("gone",)),
        replace(INTERN, max_epochs=0),
    ],
)
def test_without_a_line_within_the_limits_there_is_none(role: Role) -> None:
    """Patterns are no refs, and a pool that does not exist is no pool."""
    error = refused(with_roles(role), "id-ian", pool="ci-compile")

    assert "" == error.suggestion
    assert error.text.endswith("Nobody may, as config.yaml stands.")


def test_an_empty_limit_is_said() -> None:
    """Nothing is a word."""
    assert "yours: none." in refused(with_roles(replace(INTERN, pools=())), "id-ian").text
    assert "You may run nothing." in refused(with_roles(replace(INTERN, refs=(), pools=("*",))), "id-ian").text


def test_one_role_has_to_allow_all_of_it() -> None:
    """Two roles don't add up to a third: many epochs here, any ref there."""
    many = Role("many", user_ids=("id-ian",), may=(Right.RUN,), refs=("HEAD",))
    free = Role("free", user_ids=("id-ian",), may=(Right.RUN,), max_epochs=5, refs=("*",))
    settings = with_roles(replace(many, users=("ian",)), replace(free, users=("ian",)))

    check_run(settings, "id-ian", "C", parameters(StartRun(epochs=50), settings))
    check_run(settings, "id-ian", "C", parameters(StartRun(epochs=5, ref="feature/x"), settings))
    error = refused(settings, "id-ian", epochs=50, ref="feature/x")

    assert "epochs=50 is over your limit of 5. Nobody may, as config.yaml stands." == error.text
    assert "/gputest models=dqn,ppo,tft epochs=5 ref=feature/x" == error.suggestion


def test_of_several_roles_one_that_leaves_something_to_copy_speaks() -> None:
    """A role in which nothing is possible says less, and is of no use."""
    stuck = Role("stuck", users=("ian",), user_ids=("id-ian",), may=(Right.RUN,), max_epochs=0)
    error = refused(with_roles(stuck, INTERN), "id-ian", epochs=50)

    assert error.suggestion.startswith("/gputest models=dqn,ppo,tft epochs=10")


def test_all_models_are_called_all() -> None:
    """A line to copy is short."""
    assert "/gputest models=all epochs=10 ref=main pool=ci-training" == (
        refused(with_roles(INTERN), "id-ian", models=SETTINGS.model_names, epochs=20).suggestion
    )


@pytest.mark.parametrize(
    ("ref", "may"),
    [
        ("HEAD", True),
        ("main", True),
        ("release/1.2", True),
        ("v2.3", True),
        ("v", False),
        ("Main", False),
        ("vandal", False),
        ("feature/main", False),
        ("main/../../x", False),
    ],
)
def test_refs_by_pattern(ref: str, may: bool) -> None:
    """As a shell has them, whole and by case; the defaults are default branch, release branches and version tags."""
    assert may is may_ref(EVERYBODY, ref)


@pytest.mark.parametrize("epochs", ["many", "0", "-1", "5.0", "", "٥", "1" * 10])
def test_epochs_that_are_no_number_are_refused(epochs: str) -> None:
    """Parameters of a run that was started without the bot may be anything; the line to copy has the default."""
    wanted = parameters(StartRun(), SETTINGS) | {"epochs": epochs}
    with pytest.raises(UserError) as caught:
        check_run(SETTINGS, "id-ian", "C", wanted)

    assert "is no whole number from 1 up." in caught.value.text
    assert "/gputest models=dqn,ppo,tft epochs=3" == caught.value.suggestion


def test_what_a_run_was_started_with_stays_in_its_code_span() -> None:
    """Pool and ref of a run that was started without the bot."""
    wanted = parameters(StartRun(), SETTINGS) | {"gpu-pool": "`@all`", "commit-ref": "`@here`"}
    for role in (INTERN, replace(INTERN, pools=("*",))):
        with pytest.raises(UserError) as caught:
            check_run(with_roles(role), "id-ian", "C", wanted)

        assert "`'@all'`" in caught.value.text or "`'@here'`" in caught.value.text
