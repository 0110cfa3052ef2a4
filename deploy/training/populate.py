"""Fills the test data volume from the training data: ES.FUT, second quarter of 2025, in three schemas.

    populate.py SOURCE TARGET

Each file is copied beside its place and checked whole (size, every zstd frame to its end, DBN header and schema).
Only when all three are good do they take their places, by rename, with a checksum manifest. Whatever goes wrong before
that leaves the old data as it was, and ends with one line that says what.

Python 3.14 brings zstd; on an older one the package backports.zstd does.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

try:
    from compression import zstd
except ImportError:
    from backports import zstd

FILE = "ES.FUT/ES.FUT_2025-Q2.dbn.zst"
SCHEMAS = {"ohlcv": (5, 6, 7, 8), "mbp10": (2,), "trades": (4,)}
"""The folders and the schema codes that a DBN header may have there (ohlcv in seconds, minutes, hours or days)."""
MANIFEST = "MANIFEST.sha256"
LOCK = ".populate.lock"
CHUNK = 1 << 20
PRELUDE = 8
"""`DBN`, the version, the metadata's length."""
SCHEMA_AT = PRELUDE + 16
"""The schema's code stands behind the dataset's name in the metadata."""
VERSIONS = (1, 2, 3)
LEAST_METADATA, MOST_METADATA = 100, 64 << 20
SPARE_BYTES = 64 << 20
"""Left free on the target beside what is copied."""


class RefusedError(Exception):
    """Why nothing was changed."""


@dataclass(frozen=True)
class Staged:
    """A file that lies checked beside its place."""

    beside: Path
    place: Path
    digest: str
    size: int


def check_header(head: bytes, schema: str) -> None:
    """Refuse what does not begin like a DBN file of the folder's schema."""
    if len(head) < SCHEMA_AT + 2 or head[:3] != b"DBN":
        raise RefusedError("no DBN header")
    if head[3] not in VERSIONS:
        raise RefusedError(f"DBN version {head[3]} is not known")
    (length,) = struct.unpack_from("<I", head, 4)
    if not LEAST_METADATA <= length <= MOST_METADATA:
        raise RefusedError(f"DBN metadata of {length} bytes")
    (code,) = struct.unpack_from("<H", head, SCHEMA_AT)
    if code not in SCHEMAS[schema]:
        raise RefusedError(f"DBN schema {code} is not {schema}")


def check_content(path: Path, schema: str) -> None:
    """Read a file to its end: whole zstd frames, a DBN header, the metadata that it promises and records behind it."""
    head, size = bytearray(), 0
    try:
        decoder = zstd.ZstdDecompressor()
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                while chunk:
                    if decoder.eof:  # databento writes one frame; more of them are allowed
                        decoder = zstd.ZstdDecompressor()
                    text = decoder.decompress(chunk)
                    size += len(text)
                    head += text[: max(0, SCHEMA_AT + 2 - len(head))]
                    chunk = decoder.unused_data if decoder.eof else b""
    except zstd.ZstdError as error:
        raise RefusedError(f"not zstd: {error}") from error
    if not decoder.eof:
        raise RefusedError("truncated: the last zstd frame has no end")
    check_header(bytes(head), schema)
    if size <= PRELUDE + struct.unpack_from("<I", head, 4)[0]:
        raise RefusedError("no records behind the metadata")


def copy(source: Path, beside: Path) -> str:
    """Copy to a temporary name, onto the disk, and return the checksum of what was read."""
    digest = hashlib.sha256()
    with source.open("rb") as reader, beside.open("wb") as writer:
        while chunk := reader.read(CHUNK):
            digest.update(chunk)
            writer.write(chunk)
        writer.flush()
        os.fsync(writer.fileno())
    return digest.hexdigest()


def checksum(path: Path) -> str:
    """Checksum of a file as it lies on the disk."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def stage(source: Path, place: Path, schema: str) -> Staged:
    """Copy one file beside its place and check the copy."""
    if not source.is_file():
        raise RefusedError("not in the training data")
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.with_name(f".{place.name}.part")
    digest = copy(source, beside)
    size = beside.stat().st_size
    if size != source.stat().st_size or checksum(beside) != digest:
        raise RefusedError("the copy differs from its source")
    check_content(beside, schema)
    return Staged(beside, place, digest, size)


@contextmanager
def alone(target: Path) -> Iterator[None]:
    """Hold the target volume against another populate job."""
    with (target / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RefusedError("held: another job fills this volume right now") from error
        yield


def check_room(source: Path, target: Path) -> None:
    """Refuse before copying what would not fit beside the old data."""
    needed = sum((source / schema / FILE).stat().st_size for schema in SCHEMAS if (source / schema / FILE).is_file())
    free = shutil.disk_usage(target).free
    if free < needed + min(SPARE_BYTES, needed):
        raise RefusedError(f"disk full: {needed >> 20} MiB to copy, {free >> 20} MiB free")


def publish(staged: list[Staged], target: Path) -> None:
    """Move the checked files to their places, then say what they are."""
    for file in staged:
        file.beside.replace(file.place)
    lines = [f"{file.digest}  {file.place.relative_to(target)}\n" for file in staged]
    beside = target / f".{MANIFEST}.part"
    with beside.open("w") as writer:
        writer.writelines(lines)
        writer.flush()
        os.fsync(writer.fileno())
    beside.replace(target / MANIFEST)


def populate(source: Path, target: Path) -> list[Staged]:
    """Refresh the target, or raise and leave it as it was."""
    for folder, name in ((source, "training data"), (target, "test data")):
        if not folder.is_dir():
            raise RefusedError(f"{name}: {folder} is not mounted")
    with alone(target):
        staged: list[Staged] = []
        try:
            check_room(source, target)
            for schema in SCHEMAS:
                try:
                    staged.append(stage(source / schema / FILE, target / schema / FILE, schema))
                except (RefusedError, OSError) as error:
                    text = error if isinstance(error, RefusedError) else f"{error.strerror or error}"
                    raise RefusedError(f"{schema}/{FILE}: {text}") from error
            publish(staged, target)
        finally:
            for schema in SCHEMAS:
                place = target / schema / FILE
                place.with_name(f".{place.name}.part").unlink(missing_ok=True)
        return staged


def main(arguments: list[str]) -> int:
    """Run, and report in one line a file or one line of refusal."""
    source, target = (Path(argument) for argument in arguments)
    try:
        staged = populate(source, target)
    except RefusedError as refusal:
        print(f"test data not refreshed, the old data is in place: {refusal}", file=sys.stderr)
        return 1
    for file in staged:
        print(f"{file.place.relative_to(target)}  {file.size} bytes  sha256 {file.digest}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
