"""The program that fills the test data volume, on files of databento's own library."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("databento_dbn")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "deploy/training"))
populate = pytest.importorskip("populate")

from tests.deploy import market_data  # noqa: E402

FOLDERS = list(market_data.SCHEMAS)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The training data: more than the tests need."""
    root = tmp_path / "training"
    market_data.write_quarter(root, count=400)
    (root / "ohlcv/NQ.FUT").mkdir()
    return root


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """The test data volume, with the data of an earlier time."""
    root = tmp_path / "test-data"
    market_data.write_quarter(root, count=3)
    (root / populate.MANIFEST).write_text("the old manifest\n")
    return root


def content(root: Path) -> dict[str, bytes]:
    """Everything below a folder that is not the lock."""
    files = (file for file in root.rglob("*") if file.is_file() and file.name != populate.LOCK)
    return {str(file.relative_to(root)): file.read_bytes() for file in files}


def refused(source: Path, target: Path, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Run the program on something that it has to refuse, and see that nothing changed."""
    before = content(target)

    assert populate.main([str(source), str(target)]) == 1

    error = capsys.readouterr().err
    assert reason in error
    assert len(error.splitlines()) == 1
    assert content(target) == before


def test_three_schemas_are_copied_with_a_manifest(source: Path, target: Path) -> None:
    """The files are the source's, to the byte; the manifest is what sha256sum checks."""
    assert populate.main([str(source), str(target)]) == 0

    found = content(target)
    expected = {f"{folder}/{market_data.NAME}" for folder in FOLDERS} | {populate.MANIFEST}
    assert set(found) == expected
    for folder in FOLDERS:
        name = f"{folder}/{market_data.NAME}"
        assert found[name] == (source / name).read_bytes()
        assert f"{hashlib.sha256(found[name]).hexdigest()}  {name}" in found[populate.MANIFEST].decode()
    subprocess.run(["sha256sum", "--check", "--quiet", populate.MANIFEST], cwd=target, check=True)


def test_an_empty_volume_is_filled(source: Path, tmp_path: Path) -> None:
    """The first run has nothing to fall back on and needs nothing."""
    (tmp_path / "empty").mkdir()

    assert populate.main([str(source), str(tmp_path / "empty")]) == 0


def test_a_second_run_changes_nothing(source: Path, target: Path) -> None:
    """It can be run again at any time."""
    populate.main([str(source), str(target)])
    first = content(target)

    assert populate.main([str(source), str(target)]) == 0
    assert content(target) == first


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("kept", [0.999, 0.5, 0.0])
def test_a_truncated_file_is_refused(
    source: Path, target: Path, folder: str, kept: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """Be it by a byte or whole: a copy that broke off once must not become the test data."""
    file = source / folder / market_data.NAME
    raw = file.read_bytes()
    file.write_bytes(raw[: int(len(raw) * kept)])

    refused(source, target, f"{folder}/{market_data.NAME}: ", capsys)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda raw: b"XYZ" + raw[3:], "no DBN header"),
        (lambda raw: raw[:3] + bytes([9]) + raw[4:], "DBN version 9"),
        (lambda raw: raw[:4] + b"\xff\xff\xff\xff" + raw[8:], "DBN metadata of 4294967295 bytes"),
        (lambda raw: raw[:8] + b"\0" * 20 + raw[28:], "DBN schema 0 is not"),
        (lambda raw: raw[: 8 + int.from_bytes(raw[4:8], "little")], "no records behind the metadata"),
        (lambda raw: raw[:10], "no DBN header"),
        (lambda raw: b"", "no DBN header"),
    ],
)
def test_a_wrong_header_is_refused(
    source: Path, target: Path, change: object, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A whole zstd frame with something else in it than DBN of that schema."""
    file = source / "trades" / market_data.NAME
    file.write_bytes(populate.zstd.compress(change(populate.zstd.decompress(file.read_bytes()))))  # type: ignore[operator]

    refused(source, target, f"trades/{market_data.NAME}: {reason}", capsys)


def test_what_is_no_zstd_is_refused(source: Path, target: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A page of an error in place of the file."""
    (source / "mbp10" / market_data.NAME).write_text("<html>403</html>" * 100)

    refused(source, target, f"mbp10/{market_data.NAME}: not zstd", capsys)


def test_a_file_of_several_frames_is_taken(source: Path, target: Path) -> None:
    """zstd files may be put together of frames."""
    file = source / "ohlcv" / market_data.NAME
    raw = populate.zstd.decompress(file.read_bytes())
    file.write_bytes(populate.zstd.compress(raw[:1000]) + populate.zstd.compress(raw[1000:]))

    assert populate.main([str(source), str(target)]) == 0


def test_a_missing_file_is_refused(source: Path, target: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two good files do not make a refresh."""
    (source / "trades" / market_data.NAME).unlink()

    refused(source, target, f"trades/{market_data.NAME}: not in the training data", capsys)


def test_a_volume_that_is_not_there_is_named(target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing mount is an empty place, not an empty training set."""
    refused(tmp_path / "nowhere", target, "is not mounted", capsys)


def test_a_volume_that_another_job_fills_is_refused(
    source: Path, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two jobs on one node may mount the volume together; the second ends with a clear word."""
    with (target / populate.LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        refused(source, target, "held: another job fills this volume", capsys)


@pytest.mark.parametrize("size", ["64k", "120k"])
def test_a_full_disk_is_refused(source: Path, tmp_path: Path, size: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Said before the copy where it can be seen coming; in any case the old data stays."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a small disk needs root")
    try:
        market_data.write_quarter(disk, count=3)
        for folder in FOLDERS:  # does not compress, and is refused for room before it is read
            (source / folder / market_data.NAME).write_bytes(bytes(range(256)) * 400)
        refused(source, disk, "disk full", capsys)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_fills_up_while_copying_leaves_the_old_data(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The system's own word for it is passed on."""

    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(populate, "copy", full)

    refused(source, target, "No space left on device", capsys)
