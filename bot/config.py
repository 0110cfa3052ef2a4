"""config.yaml and the secrets: the only reader of files and of the environment.

Secrets come from the environment (`GPUTEST_MATTERMOST_TOKEN`) or from a file that it names
(`GPUTEST_MATTERMOST_TOKEN_FILE`), never from config.yaml.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from bot.core.settings import Settings

PREFIX = "GPUTEST_"


class ConfigError(Exception):
    """The configuration can't be used; the text tells people where and what to write instead."""


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ChatConfig(Section):
    """Where Mattermost is and where cards go."""

    url: str = "http://localhost:8065"
    """Address of the server as the bot reaches it."""
    ca_file: str = ""
    """CA bundle for a private certificate; empty for the system's."""
    team: str = "ml"
    """Name of the team as in its address."""
    channel: str = "gpu-tests"
    """Name of the channel for every run that no other rule places."""
    nightly_channel: str = ""
    push_channel: str = ""
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
    url: str = Field(default="", pattern="^(https?://[^/]+(/[^?#]*)?)?$")
    """Address by which Mattermost reaches the bot, e.g. `http://gputest-bot.gputest.svc:8080`.

    Buttons and forms call back there; without it cards have none.
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

    @field_validator("runs")
    @classmethod
    def _consistent(cls, runs: Settings) -> Settings:
        names = runs.model_names
        if not names or len(set(names)) != len(names):
            raise ValueError("models: at least one, each name once")
        unknown = [name for name in runs.defaults.models if name not in names]
        if unknown:
            raise ValueError(f"defaults.models: {', '.join(unknown)} not among models")
        if runs.pool(runs.defaults.pool) is None:
            raise ValueError(f"defaults.pool: {runs.defaults.pool} not among pools")
        if runs.defaults.scope not in runs.scopes:
            raise ValueError(f"defaults.scope: {runs.defaults.scope} not among scopes")
        ZoneInfo(runs.timezone)
        groups = [group for pool in runs.pools for group in pool.groups]
        if len(set(groups)) != len(groups):
            raise ValueError("pools: a group of the autoscaler belongs to one pool")
        if runs.autoscaler_status.count("/") != bool(runs.autoscaler_status):
            raise ValueError("autoscaler_status: give namespace/name of the ConfigMap, or nothing")
        return runs


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
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}. Give another file with --config.") from error
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
    except OSError as error:
        raise ConfigError(f"{PREFIX}{name}_FILE names {path}, which cannot be read: {error.strerror}.") from error


def _complaint(location: tuple[int | str, ...], kind: str, message: str) -> str:
    where = ".".join(str(part) for part in location)
    if kind in {"extra_forbidden", "unexpected_keyword_argument"}:
        known = [*Config.model_fields, *_names_below(location[:-1])]
        near = difflib.get_close_matches(str(location[-1]), known, n=1, cutoff=0.5)
        return f"{where}: there is no such key" + (f"; did you mean {near[0]}?" if near else "")
    return f"{where}: {message}"


def _names_below(location: tuple[int | str, ...]) -> list[str]:
    sections: dict[str, type[BaseModel]] = {"mattermost": ChatConfig, "kubernetes": ClusterConfig, "bot": BotConfig}
    if location and str(location[0]) in sections:
        return list(sections[str(location[0])].model_fields)
    return [f.name for f in fields(Settings)]
