"""`/gputest`: what is parsed, and what is allowed of it. What people read is in tests/core/command_lines.tsv."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.commands.gputest import (
    CancelRun,
    GpuTest,
    ListRuns,
    RerunRun,
    ShowStatus,
    StartRun,
    from_form,
    parameters,
    parse,
    starts_a_run,
)
from bot.core.commands.spec import ShowHelp
from bot.core.errors import UserError
from bot.core.settings import Defaults, Model, ParameterNames, Pool
from tests.phrases import SETTINGS

TEAM = replace(
    SETTINGS,
    models=(Model("ResNet-50", "vision"), Model("BERT", "text")),
    pools=(Pool("Pool-A", "A100", "80"), Pool("pool-b", "L4", "89")),
    scopes=("Smoke", "full"),
    defaults=Defaults(models=("BERT",), scope="full", epochs=1, ref="trunk", pool="Pool-A", notify=False),
    parameters=ParameterNames(models="which", epochs="rounds"),
)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("", ShowHelp("gputest")),
        ("help me", ShowHelp("gputest")),
        ("dqn", StartRun(models=("dqn",))),
        ("ref=main", StartRun(ref="main")),
        ("notify=no scope=lib pool=l4 cap=8.9", StartRun(notify=False, scope="lib", pool="ci-compile", cap="89")),
        ("status", ShowStatus()),
        ("status K7M2", ShowStatus("k7m2")),
        ("list", ListRuns()),
        ("cancel", CancelRun()),
        ("Cancel k7m2", CancelRun("k7m2")),
        ("rerun", RerunRun()),
        ("rerun k7m2", RerunRun("k7m2")),
        ("rerun failed", RerunRun(None, failed=True)),
        ("rerun failed k7m2", RerunRun("k7m2", failed=True)),
        ("rerun k7m2 failed", RerunRun("k7m2", failed=True)),
    ],
)
def test_what_is_asked_for(text: str, asked: GpuTest) -> None:
    """None of what nobody said is filled in."""
    assert asked == parse(text, SETTINGS)


def test_another_team_names_its_own_models_pools_and_parameters() -> None:
    """In whatever case they are written in config.yaml, and in whatever case they are typed."""
    asked = parse("resnet-50,bert pool=a100 scope=SMOKE", TEAM)
    by_name = parse("-bert pool=POOL-A", TEAM)

    assert StartRun(models=("ResNet-50", "BERT"), pool="Pool-A", scope="Smoke") == asked
    assert StartRun(models=("ResNet-50",), pool="Pool-A") == by_name
    assert {
        "which": "BERT",
        "test-scope": "full",
        "rounds": "1",
        "commit-ref": "trunk",
        "gpu-pool": "Pool-A",
        "cuda-compute-cap": "80",
        "notify": "false",
    } == parameters(StartRun(), TEAM)


@pytest.mark.parametrize(
    ("text", "best"),
    [
        ("resnet5", "/gputest models=ResNet-50"),
        ("bert|resnet-50", "/gputest models=bert,resnet-50"),
        ("bert pool=polo-b", "/gputest bert pool=pool-b"),
        ("bert scope=smok", "/gputest bert scope=Smoke"),
        ("bert scope=zzz", "/gputest bert scope=full"),
        ("bert pool=zzz", "/gputest bert pool=Pool-A"),
        ("bert notify=zzz", "/gputest bert notify=false"),
    ],
)
def test_lines_to_copy_of_another_team(text: str, best: str) -> None:
    """The nearest of its own names, or its own default; each is understood."""
    with pytest.raises(UserError) as caught:
        parse(text, TEAM)

    assert best == caught.value.suggestion
    assert isinstance(parse(best.removeprefix("/gputest "), TEAM), StartRun)


def test_a_pool_that_is_not_configured_has_the_default_capability() -> None:
    """The configuration may name a default pool that is not listed; its capability is the H100's, or what was said."""
    bare = replace(SETTINGS, pools=())

    assert "90" == parameters(StartRun(), bare)["cuda-compute-cap"]
    assert "75" == parameters(StartRun(cap="75"), bare)["cuda-compute-cap"]


@pytest.mark.parametrize(
    ("asked", "best"),
    [
        (StartRun(epochs=101), "/gputest epochs=100"),
        (
            StartRun(
                models=SETTINGS.model_names,
                epochs=500,
                ref="v1",
                scope="lib",
                pool="ci-compile",
                notify=False,
                cap="89",
            ),
            "/gputest models=all scope=lib epochs=100 ref=v1 pool=ci-compile notify=false",
        ),
        (StartRun(models=("dqn",), cap="75"), "/gputest models=dqn"),
        (StartRun(cap="75"), "/gputest models=dqn,ppo,tft"),
    ],
)
def test_what_exists_and_is_not_allowed(asked: StartRun, best: str) -> None:
    """The same request within the limits, to copy."""
    with pytest.raises(UserError) as caught:
        parameters(asked, SETTINGS)

    assert best == caught.value.suggestion
    assert isinstance(parse(best.removeprefix("/gputest "), SETTINGS), StartRun)


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("dqn", True),
        ("", True),
        ("rerun failed", True),
        ("statsu", True),
        ("status x y", False),
        ("\u00a0LIST all", False),
        ("cancel", False),
        ("--help", False),
        ("help", False),
    ],
)
def test_what_would_have_started_a_run(text: str, starts: bool) -> None:
    """A refusal says what it left alone."""
    assert starts is starts_a_run(text)


def test_a_form_is_read_field_by_field() -> None:
    """What is empty or unknown says nothing; each field has its own error."""
    asked, errors = from_form({"models": "dqn", "epochs": "x", "pool": "l4", "ref": " ", "colour": "red"}, SETTINGS)

    assert StartRun(models=("dqn",), pool="ci-compile") == asked
    assert (("epochs", "epochs=`x`: I need a whole number, 1 to 100."),) == errors


WORDS = st.sampled_from(
    "dqn ppo all -dqn —kan mamba models= epochs=5 epochs=x ref=main ref=--x pool=l4 pool=? cap=9 notify=no status rerun"
    " failed k7m2 help and , = ' \" -- --epochs 5 epochs:5 run stop @all `x` | & \u00a0 🚀".split(" ")
)


@given(st.lists(WORDS, max_size=8).map(" ".join))
def test_no_line_raises_anything_but_a_user_error(text: str) -> None:
    """And each refusal has a line to copy."""
    try:
        asked = parse(text, SETTINGS)
        if isinstance(asked, StartRun):
            parameters(asked, SETTINGS)
    except UserError as error:
        assert error.text
        assert error.suggestion.startswith("/gputest")


@given(st.text(max_size=300))
def test_no_text_raises_anything_but_a_user_error(text: str) -> None:
    """Not even what nobody would type."""
    try:
        parse(text, SETTINGS)
    except UserError as error:
        assert error.suggestion.startswith("/gputest")


@given(
    st.dictionaries(
        st.sampled_from(["models", "epochs", "scope", "ref", "pool", "cap", "notify", "x"]), st.text(max_size=60)
    )
)
def test_no_form_raises(values: dict[str, str]) -> None:
    """A client may send anything."""
    asked, errors = from_form(values, SETTINGS)

    assert isinstance(asked, StartRun)
    assert {field for field, _ in errors} <= values.keys()


@given(st.text(max_size=60))
def test_a_ref_that_is_taken_is_no_option_and_no_path_out(text: str) -> None:
    """It ends in a git command."""
    try:
        asked = parse(f'dqn ref="{text}"', SETTINGS)
    except UserError:
        return
    if isinstance(asked, StartRun) and asked.ref is not None:
        assert asked.ref[0].isalnum()
        assert asked.ref.isascii()
        assert ".." not in asked.ref
        assert not set(asked.ref) & set(" ;|&$`'\"\\~^:?*[{}\n")
