"""config.yaml and the secrets: what is read, and what is said of what can't be."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.config import Config, ConfigError, Secrets, load, parse, secrets
from bot.core.settings import Model, Pool, Right, Role, Settings

ROOT = Path(__file__).parents[1]


def complaints(content: Any) -> list[str]:
    """What is said of a configuration, line by line."""
    with pytest.raises(ConfigError) as caught:
        parse(content)
    first, *lines = str(caught.value).splitlines()
    assert "config.yaml cannot be used:" == first
    return [line.strip() for line in lines]


def test_without_a_file_everything_has_its_default() -> None:
    """The same as of an empty one."""
    assert Config() == load(None) == parse({})
    assert Settings() == load(None).runs


def test_the_file_of_the_repository_holds_the_defaults() -> None:
    """Every value in it is what holds without it."""
    assert load(ROOT / "config.yaml") == Config()


def test_the_file_of_the_repository_leaves_nothing_out() -> None:
    """But for ids that are found at the start, and for times that nobody has to change."""
    written = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))
    known = Config()
    settings = {f.name for f in fields(Settings)}

    assert set(Config.model_fields) == set(written)
    for section in ("mattermost", "kubernetes", "bot"):
        assert set(type(getattr(known, section)).model_fields) == set(written[section])
    assert set(written["runs"]) <= settings
    assert [] == [
        name for name in settings - set(written["runs"]) if not name.endswith("_seconds") and name != "channels"
    ]


def test_without_an_address_of_their_own_buttons_call_where_the_commands_go() -> None:
    """One address is enough."""
    commands = {"commands_url": "http://bot:8080/gpu/commands"}

    assert "" == Config().callback_url
    assert "http://bot:8080/gpu" == parse({"mattermost": commands}).callback_url
    assert "http://x:1" == parse({"mattermost": commands, "bot": {"url": "http://x:1/"}}).callback_url


def test_another_team_fills_in_its_own() -> None:
    """Models, pools, roles and names; what it leaves out stays."""
    config = parse(
        {
            "mattermost": {"channel": "gpu", "also": ["ml"]},
            "runs": {
                "models": [{"name": "ResNet-50", "family": "vision"}],
                "defaults": {"models": ["ResNet-50"], "pool": "a"},
                "pools": [{"name": "a", "gpu": "A100", "cap": "80", "price_per_hour": 2.5}],
                "roles": [{"name": "everybody", "may": ["run", "look"], "max_epochs": 5}],
            },
        }
    )

    assert ("gpu", ("ml",), "ml") == (config.mattermost.channel, config.mattermost.also, config.mattermost.team)
    assert (Model("ResNet-50", "vision"),) == config.runs.models
    assert (Pool("a", "A100", "80", 2.5),) == config.runs.pools
    assert (Role("everybody", may=(Right.RUN, Right.LOOK), max_epochs=5),) == config.runs.roles
    assert 3 == config.runs.defaults.epochs


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"runs": {"modles": []}}, "runs.modles: there is no such key; did you mean models?"),
        ({"mattermost": {"chanel": "x"}}, "mattermost.chanel: there is no such key; did you mean channel?"),
        ({"kubernetes": {"kubconfig": "x"}}, "kubernetes.kubconfig: there is no such key; did you mean kubeconfig?"),
        ({"botx": {}}, "botx: there is no such key; did you mean bot?"),
        ({"models": []}, "models: there is no such key; did you mean runs.models?"),
        ({"bot": {"team": "x"}}, "bot.team: there is no such key; did you mean mattermost.team?"),
        ({"zzz": 1}, "zzz: there is no such key"),
        ({"runs": {"zzz": 1}}, "runs.zzz: there is no such key"),
        ({"runs": {"defaults": {"epoch": 1}}}, "runs.defaults.epoch: there is no such key; did you mean epochs?"),
        ({"runs": {"steps": {"warmpu": "x"}}}, "runs.steps.warmpu: there is no such key; did you mean warmup?"),
        (
            {"runs": {"pools": [{"name": "ci-training-h100", "gpu": "x", "cap": "1", "price": 2}]}},
            "runs.pools.0.price: there is no such key; did you mean price_per_hour?",
        ),
        ({"runs": {"roles": [{"name": "x", "mya": []}]}}, "runs.roles.0.mya: there is no such key; did you mean may?"),
        ({"runs": {"scopes": [{"x": 1}]}}, "runs.scopes.0: Input should be a valid string"),
    ],
)
def test_a_key_that_does_not_exist(content: dict[str, Any], says: str) -> None:
    """Its place, and the nearest of the same section, or of the same name in another."""
    assert [says] == complaints(content)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "at its top a configuration has keys, such as `runs:`"),
        ([1], "at its top a configuration has keys, such as `runs:`"),
        ("x", "at its top a configuration has keys, such as `runs:`"),
        ({1: 2}, "1: Keys should be strings"),
        ({"mattermost": None}, "mattermost: Input should be a set of keys"),
        ({"bot": {"port": 99999}}, "bot.port: Input should be less than or equal to 65535"),
        ({"bot": {"port": "web"}}, "bot.port: Input should be a valid integer, unable to parse string as an integer"),
        ({"bot": {"log_level": "debug"}}, "bot.log_level: give DEBUG, INFO, WARNING or ERROR"),
        (
            {"bot": {"url": "ftp://x"}},
            "bot.url: give an address without ? or #, such as http://gputest-bot.gputest.svc:8080",
        ),
        (
            {"mattermost": {"commands_url": "http://bot:8080"}},
            (
                "mattermost.commands_url: give an address that ends in /commands,"
                " such as http://gputest-bot.gputest.svc:8080/commands"
            ),
        ),
        ({"runs": {"scopes": "lib"}}, "runs.scopes: Input should be a list"),
        ({"runs": {"roles": [{"may": []}]}}, "runs.roles.0.name: Field required"),
        (
            {"runs": {"roles": [{"name": "x", "may": ["fly"]}]}},
            "runs.roles.0.may.0: Input should be 'run', 'cancel', 'nightly', 'look' or 'warm'",
        ),
        ({"runs": {"models": []}}, "runs.models: at least one, each name once"),
        (
            {"runs": {"models": [{"name": "a", "family": "x"}, {"name": "A", "family": "x"}]}},
            "runs.models: at least one, each name once",
        ),
        (
            {
                "runs": {
                    "models": [{"name": n, "family": "x"} for n in ("all", "Status", "two words", "a,b", "-x", "ok")]
                }
            },
            "runs.models: all, Status, two words, a,b, -x can't be typed as a word of a command",
        ),
        (
            {"runs": {"pools": [{"name": "a", "gpu": "x", "cap": "1"}] * 2}},
            "runs.pools: each name once",
        ),
        ({"runs": {"models": [{"name": "a", "family": "x"}]}}, "runs.defaults.models: dqn, ppo, tft not among models"),
        ({"runs": {"defaults": {"pool": "x"}}}, "runs.defaults.pool: x not among pools"),
        ({"runs": {"scopes": ["x"]}}, "runs.defaults.scope: all not among scopes"),
        ({"runs": {"max_epochs": 2}}, "runs.defaults.epochs: 3 not within 1 to max_epochs, 2"),
        ({"runs": {"defaults": {"epochs": 0}}}, "runs.defaults.epochs: 0 not within 1 to max_epochs, 100"),
        (
            {"runs": {"timezone": "Mars/Olympus"}},
            "runs.timezone: Mars/Olympus is no zone; write an IANA name such as Europe/Paris",
        ),
        (
            {"runs": {"wait_until": "7 o'clock"}},
            'runs.wait_until: 7 o\'clock is no time; write one such as "07:00", or nothing',
        ),
        ({"runs": {"wait_until": 600}}, 'runs.wait_until: give a time of day in quotes, such as "07:00"'),
        ({"runs": {"wait_seconds": -1}}, "runs.wait_seconds and warmup_late_seconds can't be below 0"),
        ({"runs": {"timezone": "Europe"}}, "runs.timezone: Europe is no zone; write an IANA name such as Europe/Paris"),
        (
            {"runs": {"timezone": "../etc/passwd"}},
            "runs.timezone: ../etc/passwd is no zone; write an IANA name such as Europe/Paris",
        ),
    ],
)
def test_a_value_that_does_not_fit(content: Any, says: str) -> None:
    """Where, and what would."""
    assert [says] == complaints(content)


def test_all_that_is_wrong_is_said_at_once() -> None:
    """A line each."""
    assert 3 == len(complaints({"bot": {"port": -1, "prot": 1}, "runs": {"modles": []}}))


def test_a_file_is_read(tmp_path: Path) -> None:
    """Comments and nothing else are a file of defaults; its name stands in what is said of it."""
    path = tmp_path / "c.yaml"
    path.write_text("# nothing\n", encoding="utf-8")
    assert Config() == load(path)
    path.write_text(yaml.safe_dump({"runs": {"currency": "CHF"}}), encoding="utf-8")
    assert "CHF" == load(path).runs.currency
    path.write_text("runs: {x: 1}", encoding="utf-8")

    with pytest.raises(ConfigError, match=r"c\.yaml cannot be used:\n  runs\.x: there is no such key"):
        load(path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "No such file or directory. Give another file with --config."),
        (b"\xff\xfe", "it is not UTF-8 text"),
        (b"a: [", "is not YAML"),
    ],
)
def test_a_file_that_can_not_be_read(tmp_path: Path, content: bytes | None, says: str) -> None:
    """Not there, no text, no YAML."""
    path = tmp_path / "c.yaml"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(ConfigError, match=says):
        load(path)


def test_secrets_come_from_the_environment() -> None:
    """Several tokens of commands, by spaces or commas; none where none is given."""
    read = secrets(
        {
            "GPUTEST_MATTERMOST_TOKEN": " t \n",
            "GPUTEST_COMMAND_TOKENS": "a,b  c",
            "GPUTEST_EXIT_TOKEN": "e",
            "OTHER": "x",
        }
    )

    assert Secrets("t", ("a", "b", "c"), "e") == read
    assert Secrets() == secrets({})


def test_secrets_come_from_files_that_the_environment_names(tmp_path: Path) -> None:
    """The file counts before the variable."""
    path = tmp_path / "token"
    path.write_text("from-file\n", encoding="utf-8")
    read = secrets({"GPUTEST_MATTERMOST_TOKEN_FILE": str(path), "GPUTEST_MATTERMOST_TOKEN": "from-variable"})

    assert "from-file" == read.mattermost_token


@pytest.mark.parametrize(("content", "says"), [(None, "No such file"), (b"\xff\xffs3cret", "it is not UTF-8 text")])
def test_a_secret_that_can_not_be_read(tmp_path: Path, content: bytes | None, says: str) -> None:
    """The variable and the file are named, and nothing of what is in it."""
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        secrets({"GPUTEST_EXIT_TOKEN_FILE": str(path)})

    assert f"GPUTEST_EXIT_TOKEN_FILE names {path}, which cannot be read: {says}" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_secrets_are_not_shown() -> None:
    """Neither by repr nor in a text."""
    assert "Secrets(***)" == repr(Secrets("t", ("c",), "e")) == f"{Secrets('t')}"
