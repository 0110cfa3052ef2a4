"""The folder of one rig: keys, logs and data, in the system's place for temporary files."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "gputest-rig-"


@contextmanager
def rig_folder() -> Iterator[Path]:
    """Give a new folder, removed at the end unless ``GPUTEST_RIG_KEEP`` is set."""
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    folder.chmod(0o711)  # The database's user must pass through to its data.
    try:
        yield folder
    finally:
        if not os.environ.get("GPUTEST_RIG_KEEP"):
            shutil.rmtree(folder, ignore_errors=True)


def _sweep() -> None:
    """Remove what a rig left whose process was killed; the owner's id is in the folder's name."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = folder.name.removeprefix(_PREFIX).split("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists() and not os.environ.get("GPUTEST_RIG_KEEP"):
            shutil.rmtree(folder, ignore_errors=True)
