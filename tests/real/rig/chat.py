"""The chat: a PostgreSQL cluster of its own, and Mattermost on it.

Making a database and having Mattermost migrate it takes most of a cold start, and the outcome is the same each time.
So that is done once, with the first administrator signed up; the data folder then goes into the cache, and each rig
starts on a copy of it.
"""

import asyncio
import json
import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import aiohttp

from .build import binaries
from .cache import cache_lock, cache_root, digest, new_entry
from .cluster import answers
from .folder import rig_folder
from .mattermost_client import MattermostClient, log_in
from .ports import free_ports
from .process import Service, ServiceError

_DATA = "postgres-data"
_ROLE, _DATABASE = "mmuser", "mattermost"
_ADMIN_NAME = "rig-admin"
_TEMPLATE_REVISION = "1"
"""Part of the template's name in the cache: raise it when the way it is made changes."""

# All of it is thrown away at the end, so nothing need be safe on the disk.
_POSTGRES_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_connections": "60",
    "shared_buffers": "32MB",
    "listen_addresses": "127.0.0.1",
    "timezone": "UTC",
}

_MATTERMOST_SETTINGS = {
    "SqlSettings_DriverName": "postgres",
    "SqlSettings_MaxOpenConns": "20",
    "SqlSettings_MaxIdleConns": "5",
    # The web app is not part of the server's module, and without this the working folder is served in its place.
    "ServiceSettings_WebserverMode": "disabled",
    "ServiceSettings_EnableBotAccountCreation": "true",
    "ServiceSettings_EnableUserAccessTokens": "true",
    "ServiceSettings_AllowedUntrustedInternalConnections": "127.0.0.1 localhost 127.0.0.0/8 ::1/128",
    "ServiceSettings_EnableSecurityFixAlert": "false",
    "TeamSettings_EnableOpenServer": "true",
    "TeamSettings_MaxUsersPerTeam": "500",
    "PluginSettings_Enable": "false",
    "PluginSettings_EnableMarketplace": "false",
    "PluginSettings_AutomaticPrepackagedPlugins": "false",
    "LogSettings_EnableDiagnostics": "false",
    "LogSettings_EnableSentry": "false",
    "LogSettings_EnableFile": "false",
    "LogSettings_ConsoleLevel": "INFO",
    "NotificationLogSettings_EnableFile": "false",
    "AnnouncementSettings_AdminNoticesEnabled": "false",
    "AnnouncementSettings_UserNoticesEnabled": "false",
    "EmailSettings_SendEmailNotifications": "false",
    "EmailSettings_SendPushNotifications": "false",
    "BleveSettings_EnableIndexing": "false",
}


@dataclass(frozen=True)
class Mattermost:
    """The chat server's address and its administrator's token."""

    url: str
    admin_token: str
    session: aiohttp.ClientSession
    database: str = ""
    """Its own store, as psql takes it."""

    def client(self, token: str | None = None) -> MattermostClient:
        """Return a client: the administrator's, or that of the token's user."""
        return MattermostClient(self.session, self.url, token or self.admin_token)


class Chat:
    """The services of the chat, ready to be started."""

    def __init__(self, session: aiohttp.ClientSession, folder: Path, settings: Mapping[str, str]) -> None:
        self._session = session
        self._folder = folder
        self._settings = settings
        self._data = folder / _DATA
        self._postgres_port, self._port = free_ports(2)
        self.url = f"http://127.0.0.1:{self._port}"
        self.database = f"postgresql://{_ROLE}@127.0.0.1:{self._postgres_port}/{_DATABASE}"

    async def copy_template(self, template: Path) -> None:
        """Put a copy of the cached data folder in place."""
        await _copy(template / _DATA, self._data)

    def postgres(self) -> Service:
        """Return the database server; it refuses to run as root, so there it runs as Debian's user for it."""
        settings = _POSTGRES_SETTINGS | {"port": str(self._postgres_port), "unix_socket_directories": str(self._data)}
        command: list[str | Path] = [_postgres_program("postgres"), "-D", self._data]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        return Service(
            "postgres",
            command,
            self._folder,
            self._accepts_connections,
            user=_postgres_user(),
            stop_signal=signal.SIGINT,  # The fast way down: sessions are cut, nothing is lost.
            farewell=signal.SIGQUIT,  # Everything is dropped at once, but its shared memory is freed.
        )

    def mattermost(self) -> Service:
        """Return the chat server."""
        files = binaries("mattermost")
        data = self._folder / "mattermost-data"
        data.mkdir(exist_ok=True)
        settings = _MATTERMOST_SETTINGS | {
            "SqlSettings_DataSource": (
                f"postgres://{_ROLE}@127.0.0.1:{self._postgres_port}/{_DATABASE}"
                "?sslmode=disable&connect_timeout=10&binary_parameters=yes"
            ),
            "ServiceSettings_ListenAddress": f"127.0.0.1:{self._port}",
            "ServiceSettings_SiteURL": self.url,
            "FileSettings_Directory": f"{data}/",
        }
        environment = {f"MM_{name.upper()}": value for name, value in (settings | dict(self._settings)).items()}
        environment |= {"MM_SERVER_PATH": str(files), "MM_CONFIG": str(self._folder / "mattermost.json")}
        ping = f"{self.url}/api/v4/system/ping"
        return Service(
            "mattermost",
            [files / "bin" / "mattermost", "server"],
            self._folder,
            lambda: answers(self._session, ping),
            environment,
            grace=5.0,
        )

    async def make_database(self) -> None:
        """Make an empty data folder."""
        self._data.mkdir(mode=0o700)
        if user := _postgres_user():
            shutil.chown(self._data, user, user)
        await _as_postgres(
            _postgres_program("initdb"),
            *("-D", str(self._data), "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8"),
            # The segments of its log are never full; the smallest make the copy cheap.
            *("--wal-segsize=1", "--no-sync", "--no-instructions"),
        )

    async def make_role(self) -> None:
        """Make the role and the database that it owns: since PostgreSQL 15 only an owner may create in public."""
        for statement in (
            f"CREATE ROLE {_ROLE} LOGIN",
            f"CREATE DATABASE {_DATABASE} OWNER {_ROLE} ENCODING 'UTF8' TEMPLATE template0",
        ):
            await _as_postgres(
                _postgres_program("psql"),
                *("-h", "127.0.0.1", "-p", str(self._postgres_port), "-U", "postgres", "-d", "postgres"),
                *("--no-psqlrc", "--quiet", "--command", statement),
            )

    async def _accepts_connections(self) -> bool:
        # An open port is not enough: sessions are refused while it recovers or starts up.
        probe = await asyncio.create_subprocess_exec(
            _postgres_program("pg_isready"),
            *("--quiet", "-h", "127.0.0.1", "-p", str(self._postgres_port)),
        )
        return await probe.wait() == 0


async def chat_template() -> Path:
    """Return the cached data folder of a migrated database, made now if it is not there."""
    entry = _template_entry()
    if not entry.exists():
        with cache_lock():
            if not entry.exists():
                await _make_template(entry)
    return entry


def template_token(template: Path) -> str:
    """Return the administrator's token that a template's database knows."""
    return str(json.loads((template / "admin.json").read_text())["token"])


async def _make_template(entry: Path) -> None:
    print("preparing the chat's database, once", flush=True)
    with rig_folder() as folder:
        token = await _fill(folder)
        with new_entry(entry) as made:
            await _copy(folder / _DATA, made / _DATA)
            (made / "admin.json").write_text(json.dumps({"token": token}))


async def _fill(folder: Path) -> str:
    """Make the database in a folder, let Mattermost migrate it, and return its administrator's token."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        chat = Chat(session, folder, {})
        await chat.make_database()
        postgres, mattermost = chat.postgres(), chat.mattermost()
        try:
            await postgres.start()
            await chat.make_role()
            await mattermost.start()
            return await _sign_up_admin(session, chat.url)
        finally:
            await mattermost.stop()
            await postgres.stop()


async def _sign_up_admin(session: aiohttp.ClientSession, url: str) -> str:
    """Make the first user, who becomes the administrator of the system, and a token that does not expire."""
    password = f"Rig-{secrets.token_hex(12)}"
    body = {"email": f"{_ADMIN_NAME}@rig.example", "username": _ADMIN_NAME, "password": password}
    nobody = MattermostClient(session, url, "")
    await nobody.post("/users", body)
    admin = MattermostClient(session, url, await log_in(session, url, _ADMIN_NAME, password))
    answer = await admin.post("/users/me/tokens", {"description": "the rig"})
    return str(answer["token"])


def _template_entry() -> Path:
    settings = json.dumps([_POSTGRES_SETTINGS, _MATTERMOST_SETTINGS])
    built = binaries("mattermost").name
    return cache_root() / f"chat-database-{digest(_TEMPLATE_REVISION, settings, built, _postgres_version())}"


@cache
def _postgres_folder() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parent.parent.name))
    if not found:
        raise ServiceError("PostgreSQL is not installed: run tests/real/install.sh")
    return found[-1].parent


def _postgres_program(name: str) -> str:
    return str(_postgres_folder() / name)


@cache
def _postgres_version() -> str:
    return subprocess.run(
        [_postgres_program("postgres"), "--version"], check=True, capture_output=True, text=True
    ).stdout


def _postgres_user() -> str | None:
    return "postgres" if os.geteuid() == 0 else None


async def _as_postgres(*command: str) -> None:
    user = _postgres_user()
    await _run(*(["runuser", "-u", user, "--"] if user else []), *command)


async def _copy(source: Path, target: Path) -> None:
    # The owner must stay the database's user, and a file system that can share blocks makes it free.
    await _run("cp", "--archive", "--reflink=auto", str(source), str(target))


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, cwd="/", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    if process.returncode != 0:
        raise ServiceError(f"{' '.join(command)} failed:\n{output.decode(errors='replace')}")
