"""Which Argo the rig starts."""

from __future__ import annotations

import pytest

from tests.real.rig.argo import argo_of_environment


@pytest.mark.parametrize(
    ("asked", "version", "crds"),
    [(None, "3.7", "minimal"), ("", "3.7", "minimal"), ("3", "3.7", "minimal"), ("4", "4.0", "full")],
)
def test_argo_by_the_environment(monkeypatch: pytest.MonkeyPatch, asked: str | None, version: str, crds: str) -> None:
    """3.7 by itself; each with the definitions that it ships."""
    monkeypatch.delenv("ARGO", raising=False)
    if asked is not None:
        monkeypatch.setenv("ARGO", asked)

    assert argo_of_environment() == {"argo": version, "crds": crds}


def test_an_argo_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is misspelt must not pass for the other."""
    monkeypatch.setenv("ARGO", "4.0.5")

    with pytest.raises(ValueError, match="there are 3 and 4"):
        argo_of_environment()
