"""The cache of what is slow to make: binaries and the migrated database.

An entry is a folder whose name ends in a hash of all that went into it, so a changed version pin or flag makes a new
entry and never a stale one. Entries appear whole: they are made beside their place and renamed into it.
"""

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_root() -> Path:
    """Return the cache folder: ``GPUTEST_RIG_CACHE``, or one below the user's home."""
    configured = os.environ.get("GPUTEST_RIG_CACHE")
    return Path(configured) if configured else Path.home() / ".cache" / "gputest-rig"


def digest(*parts: bytes | str | Path) -> str:
    """Hash texts and the contents of files; a short prefix is enough to tell entries apart."""
    hasher = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else part.encode() if isinstance(part, str) else part
        # The length keeps ("ab", "c") and ("a", "bc") apart.
        hasher.update(f"{len(data)}:".encode())
        hasher.update(data)
    return hasher.hexdigest()[:16]


@contextmanager
def cache_lock(say: Callable[[str], None] = print) -> Iterator[None]:
    """Let one process at a time make entries: two would only slow each other down."""
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is filling the cache; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def new_entry(entry: Path) -> Iterator[Path]:
    """Give a folder to fill; it becomes ``entry`` if the block succeeds and is removed if it fails."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=entry.parent))
    try:
        unfinished.chmod(0o755)
        yield unfinished
        unfinished.rename(entry)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
