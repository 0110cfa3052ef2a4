"""One server process: started, waited for, paused, stopped, and never left behind.

A server gets a process group of its own, so Ctrl-C in a terminal reaches only the test run, which then stops the
servers in order. ``setpriv --pdeathsig`` has the kernel end the server if the test run dies without doing so.
"""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_POLL_SECONDS = 0.05
_TAIL_LINES = 30
_FREEZE_LIMIT_SECONDS = 2.0


class ServiceError(Exception):
    """A server did not start, or ended by itself; the message holds the tail of its log."""


@dataclass
class Service:
    """A server: how to start it, and how to know that it answers."""

    name: str
    command: Sequence[str | Path]
    folder: Path
    """Where it runs, and where its log goes (``<name>.log``)."""
    ready: Callable[[], Awaitable[bool]]
    """Asked again and again until it says yes; connection errors are for it to catch."""
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    """Run as this user instead of the own one."""
    stop_signal: signal.Signals = signal.SIGTERM
    farewell: signal.Signals = signal.SIGKILL
    """Sent by the kernel if the test run dies without stopping the server."""
    grace: float = 10.0
    """Seconds from the stop signal to SIGKILL."""
    start_limit: float = 60.0
    """Seconds from the start to the first ready."""
    _process: asyncio.subprocess.Process | None = field(default=None, init=False)
    _log_before: int = field(default=0, init=False)

    @property
    def log(self) -> Path:
        """Return the file with all that the server printed, restarts included."""
        return self.folder / f"{self.name}.log"

    @property
    def running(self) -> bool:
        """Tell whether the process is there (it may be paused)."""
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int:
        """Return the id of the running process."""
        return self._live().pid

    async def start(self) -> None:
        """Start the server and wait until it is ready."""
        if self.running:
            raise ServiceError(f"{self.name} is running already")
        with self.log.open("ab") as log:
            self._log_before = log.tell()
            self._process = await asyncio.create_subprocess_exec(
                *self._wrapped(),
                cwd=self.folder,
                env=self._clean_environment(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            await self._until_ready()
        except BaseException:
            await self.kill()
            raise

    async def stop(self, grace: float | None = None) -> None:
        """Ask the server to end, and end it if it does not within its grace or the given one."""
        if not self.running:
            return
        self._signal(signal.SIGCONT)  # A paused process would not see the other signal.
        self._signal(self.stop_signal)
        try:
            await asyncio.wait_for(self._live().wait(), self.grace if grace is None else grace)
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        """End the server at once, as a crash or a lost machine would."""
        if self._process is not None:
            self._signal(signal.SIGKILL)
            await self._process.wait()

    def pause(self) -> None:
        """Freeze the server: connections stay open and nothing is answered."""
        threads = Path("/proc", str(self._live().pid), "task")
        self._signal(signal.SIGSTOP)
        # The signal takes a moment to reach every thread, and in it a request could still be answered.
        give_up = time.monotonic() + _FREEZE_LIMIT_SECONDS
        while not all(_stopped(thread) for thread in threads.iterdir()):
            if time.monotonic() > give_up:
                raise ServiceError(f"{self.name} does not stop for SIGSTOP")
            time.sleep(0.001)

    def resume(self) -> None:
        """Let a paused server go on."""
        self._live()
        self._signal(signal.SIGCONT)

    def printed(self) -> str:
        """Return what the server printed since its last start."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(self._log_before)
            return log.read().decode(errors="replace")

    def tail(self) -> str:
        """Return the last lines that the server printed since its last start."""
        return "\n".join(self.printed().splitlines()[-_TAIL_LINES:])

    def _live(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            raise ServiceError(f"{self.name} is not running")
        return self._process

    def _signal(self, number: signal.Signals) -> None:
        if self.running:
            try:
                os.killpg(self._live().pid, number)
            except ProcessLookupError:
                pass  # It ended a moment ago and its exit status has not been read yet.

    def _wrapped(self) -> list[str]:
        become = ["--reuid", self.user, "--regid", self.user, "--init-groups"] if self.user else []
        last = self.farewell.name.removeprefix("SIG")
        return ["setpriv", "--pdeathsig", last, *become, "--", *map(str, self.command)]

    def _clean_environment(self) -> dict[str, str]:
        # The caller's environment stays out: a proxy set there would catch the servers' own loopback requests.
        base = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.folder), "LANG": "C.UTF-8", "TZ": "UTC"}
        return base | dict(self.environment)

    async def _until_ready(self) -> None:
        give_up = time.monotonic() + self.start_limit
        while not await self.ready():
            if not self.running:
                raise ServiceError(f"{self.name} ended with {self._exit_status()} while starting:\n{self.tail()}")
            if time.monotonic() > give_up:
                raise ServiceError(f"{self.name} was not ready after {self.start_limit:g} s:\n{self.tail()}")
            await asyncio.sleep(_POLL_SECONDS)

    def _exit_status(self) -> int | None:
        return self._process.returncode if self._process else None


def _stopped(thread: Path) -> bool:
    try:
        return (thread / "stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return True  # It ended a moment ago.
