"""config.yaml and the secrets: the only reader of files and of the environment.

Secrets come from the environment (`GPUTEST_MATTERMOST_TOKEN`) or from a file that it names
(`GPUTEST_MATTERMOST_TOKEN_FILE`), never from config.yaml.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from bot.core.commands.meant import BETWEEN, EVERY, WORDS
from bot.core.fitting import fitting_models
from bot.core.settings import Alerts, Settings

PREFIX = "GPUTEST_"


_CLOCK = re.compile(r"(?:(?:[01][0-9]|2[0-3]):[0-5][0-9])?")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_TAKEN = frozenset({*WORDS, *BETWEEN, *EVERY, "all"})
"""Words that mean something else in a command."""

_EXPECTED = {
    "mattermost.url": "give its address with http:// or https://, such as https://mattermost.example.com",
    "mattermost.commands_url": "give an address that ends in /commands, such as http://gputest-bot.gputest.svc:8080/commands",
    "bot.url": "give an address without ? or #, such as http://gputest-bot.gputest.svc:8080",
    "runs.wait_until": 'give a time of day in quotes, such as "07:00"',
    "bot.log_level": "give DEBUG, INFO, WARNING or ERROR",
}
"""What a field takes whose pattern would tell nobody anything."""


MAX_WARM_MINUTES = 240
"""What the policy of deploy/bot/rbac-warm.yaml takes at most."""


class ConfigError(Exception):
    """The configuration can't be used; the text tells people where and what to write instead."""


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ChatConfig(Section):
    """Where Mattermost is and where cards go."""

    url: str = Field(default="http://localhost:8065", pattern=r"^https?://[^/\s]+")
    """Address of the server as the bot reaches it."""
    ca_file: str = ""
    """CA bundle for a private certificate; empty for the system's."""
    team: str = "ml"
    """Name of the team as in its address."""
    channel: str = "gpu-tests"
    """Name of the channel for every run that no other rule places."""
    nightly_channel: str = ""
    push_channel: str = ""
    alerts_channel: str = ""
    """Name of the channel for alerts; empty for `channel`."""
    also: tuple[str, ...] = ()
    """Channels in which the card of a run stays where the run was asked for."""
    commands_url: str = Field(default="", pattern=r"^(https?://[^/\s]+(/[^?#\s]+)?/commands)?$")
    """Address by which Mattermost reaches the bot's `/commands`, so that the slash commands register themselves.

    Empty: they don't. Whether there are any or not, `@gputest …` as a post does the same.
    """


class ClusterConfig(Section):
    """How to reach the Kubernetes API: by kubeconfig, else by the pod's service account."""

    kubeconfig: str = ""


class BotConfig(Section):
    """The bot's own objects and its address."""

    namespace: str = "gputest"
    """Namespace of the Lease and the ConfigMap; not that of the workflows."""
    lease: str = "gputest-bot"
    config_map: str = "gputest-bot"
    history: str = "gputest-bot-history"
    """Name of the ConfigMap that keeps how long starts took."""
    costs: str = "gputest-bot-costs"
    """Name of the ConfigMap that keeps what nodes cost."""
    url: str = Field(default="", pattern="^(https?://[^/]+(/[^?#]*)?)?$")
    """Address by which Mattermost reaches the bot, e.g. `http://gputest-bot.gputest.svc:8080`.

    Buttons and forms call back there. Empty: where `mattermost.commands_url` leads, and where there is none either,
    cards have none.
    """
    host: str = "0.0.0.0"
    port: int = Field(default=8080, ge=0, le=65535)
    log_level: str = Field(default="INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$")


class Config(Section):
    """The whole of config.yaml."""

    mattermost: ChatConfig = ChatConfig()
    kubernetes: ClusterConfig = ClusterConfig()
    bot: BotConfig = BotConfig()
    runs: Settings = Settings()

    @property
    def callback_url(self) -> str:
        """Where buttons and forms call back, without a slash at its end; empty where nothing can."""
        return (self.bot.url or self.mattermost.commands_url.removesuffix("/commands")).rstrip("/")

    @field_validator("runs")
    @classmethod
    def _consistent(cls, runs: Settings) -> Settings:
        names = runs.model_names
        if not names or len({name.lower() for name in names}) != len(names):
            raise ValueError("models: at least one, each name once")
        strange = [name for name in names if not _NAME.fullmatch(name) or name.lower() in _TAKEN]
        if strange:
            raise ValueError(f"models: {', '.join(strange)} can't be typed as a word of a command")
        if len({pool.name for pool in runs.pools}) != len(runs.pools):
            raise ValueError("pools: each name once")
        unknown = [name for name in runs.defaults.models if name not in names]
        if unknown:
            raise ValueError(f"defaults.models: {', '.join(unknown)} not among models")
        if runs.pool(runs.defaults.pool) is None:
            raise ValueError(f"defaults.pool: {runs.defaults.pool} not among pools")
        if runs.defaults.scope not in runs.scopes:
            raise ValueError(f"defaults.scope: {runs.defaults.scope} not among scopes")
        if not 1 <= runs.defaults.epochs <= runs.max_epochs:
            raise ValueError(f"defaults.epochs: {runs.defaults.epochs} not within 1 to max_epochs, {runs.max_epochs}")
        _check_times(runs)
        if not 1 <= runs.warm.minutes <= runs.warm.max_minutes <= MAX_WARM_MINUTES or runs.warm.max_pools < 1:
            raise ValueError(
                f"warm: minutes and max_minutes within 1 to {MAX_WARM_MINUTES}, the first not above the second, and"
                " max_pools at least 1"
            )
        _check_alerts(runs.alerts)
        _check_families(runs)
        groups = [group for pool in runs.pools for group in pool.groups]
        if len(set(groups)) != len(groups):
            raise ValueError("pools: a group of the autoscaler belongs to one pool")
        if runs.autoscaler_status.count("/") != bool(runs.autoscaler_status):
            raise ValueError("autoscaler_status: give namespace/name of the ConfigMap, or nothing")
        return runs


def _check_times(runs: Settings) -> None:
    try:
        ZoneInfo(runs.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # a folder of zones is none
        raise ValueError(f"timezone: {runs.timezone} is no zone; write an IANA name such as Europe/Paris") from error
    if not _CLOCK.fullmatch(runs.wait_until):
        raise ValueError(f'wait_until: {runs.wait_until} is no time; write one such as "07:00", or nothing')
    if min(runs.wait_seconds, runs.warmup_late_seconds) < 0:
        raise ValueError("wait_seconds and warmup_late_seconds can't be below 0")


def _check_families(runs: Settings) -> None:
    names = [family.name for family in runs.families]
    if len(set(names)) != len(names):
        raise ValueError("families: each name once")
    unknown = [name for family in runs.families for name in family.pools if runs.pool(name) is None]
    if unknown:
        raise ValueError(f"families: {', '.join(unknown)} not among pools")
    if any(family.min_cap and not family.min_cap.isdecimal() for family in runs.families):
        raise ValueError('families: min_cap is a compute capability without its dot, such as "89"')
    pool = runs.pool(runs.defaults.pool)
    unfit = set(runs.defaults.models) - set(fitting_models(runs, runs.defaults.models, pool)) if pool else set()
    if unfit:
        raise ValueError(f"defaults: {', '.join(sorted(unfit))} can't run in {runs.defaults.pool}, by families")


def _check_alerts(alerts: Alerts) -> None:
    if min(alerts.say_after_seconds, alerts.over_after_seconds, alerts.slow_factor) < 0:
        raise ValueError("alerts: say_after_seconds, over_after_seconds and slow_factor can't be below 0")
    if min(alerts.idle_minutes, alerts.slow_minutes) <= 0:
        raise ValueError("alerts: idle_minutes and slow_minutes above 0; `silent: [idle, slow]` says neither")


@dataclass(frozen=True)
class Secrets:
    """What must not be seen. `repr` does not show it."""

    mattermost_token: str = ""
    command_tokens: tuple[str, ...] = ()
    """Tokens that Mattermost made for the slash commands, one a command and team."""
    exit_token: str = ""
    """Secret of the workflow's exit call; without it the endpoint refuses everything."""

    def __repr__(self) -> str:
        return "Secrets(***)"


def load(path: Path | None) -> Config:
    """Read config.yaml; without a path everything has its default.

    Raises:
        ConfigError: it can't be read, is no YAML, or says something that does not exist or does not fit.
    """
    if path is None:
        return Config()
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {_why(error)}. Give another file with --config.") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {error}") from error
    return parse(content, str(path))


def parse(content: Any, name: str = "config.yaml") -> Config:
    """The configuration from what YAML made of the file.

    Raises:
        ConfigError: each thing that is wrong, with its place and, for a misspelt key, the nearest one.
    """
    try:
        return Config.model_validate(content)
    except ValidationError as error:
        lines = [_complaint(e["loc"], e["type"], e["msg"]) for e in error.errors()]
        raise ConfigError(f"{name} cannot be used:\n" + "\n".join(f"  {line}" for line in lines)) from error


def secrets(environ: Mapping[str, str] = os.environ) -> Secrets:
    """The secrets from the environment or the files it names.

    Raises:
        ConfigError: a named file can't be read.
    """
    return Secrets(
        mattermost_token=_secret("MATTERMOST_TOKEN", environ),
        command_tokens=tuple(_secret("COMMAND_TOKENS", environ).replace(",", " ").split()),
        exit_token=_secret("EXIT_TOKEN", environ),
    )


def _secret(name: str, environ: Mapping[str, str]) -> str:
    path = environ.get(f"{PREFIX}{name}_FILE")
    if path is None:
        return environ.get(PREFIX + name, "").strip()
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{PREFIX}{name}_FILE names {path}, which cannot be read: {_why(error)}.") from error


def _why(error: OSError | UnicodeDecodeError) -> str:
    """In a few words, and nothing of what is in the file."""
    return str(error.strerror) if isinstance(error, OSError) else "it is not UTF-8 text"


def _complaint(location: tuple[int | str, ...], kind: str, message: str) -> str:
    where = ".".join(str(part) for part in location)
    if kind in {"extra_forbidden", "unexpected_keyword_argument"}:
        near = _nearest_key(location)
        return f"{where}: there is no such key" + (f"; did you mean {near}?" if near else "")
    if not location:
        return "at its top a configuration has keys, such as `runs:`"
    ours = message.removeprefix("Value error, ")
    if ours != message:
        return f"{where}.{ours}"
    plain = re.sub("valid dictionary or instance of .*", "set of keys", message.replace("valid tuple", "list"))
    return f"{where}: {_EXPECTED.get(where, plain)}"


def _nearest_key(location: tuple[int | str, ...]) -> str | None:
    """The key that was probably meant: of the same section, or of the same name in another."""
    *above, key = location
    near = difflib.get_close_matches(str(key), _names_below(tuple(above)), n=1, cutoff=0.5)
    if near:
        return near[0]
    return next((f"{section}.{key}" for section in Config.model_fields if str(key) in _names_below((section,))), None)


def _names_below(location: tuple[int | str, ...]) -> list[str]:
    kind: Any = Config
    for part in location:
        if isinstance(part, str):
            kind = get_type_hints(kind).get(part, str)
            kind = next(iter(get_args(kind)), kind)  # of a tuple of them, one
    if issubclass(kind, BaseModel):
        return list(kind.model_fields)
    return [f.name for f in fields(kind)] if is_dataclass(kind) else []
