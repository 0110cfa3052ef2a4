"""The documentation of deploy/ names tests, files and numbers that are there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.deploy.deploy_files import DEPLOY, ROOT

PAGES = [DEPLOY / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CRITERIA = (ROOT / "docs/criteria.md").read_text()


def test_each_of_the_eight_criteria_has_its_row() -> None:
    """With a test beside each."""
    rows = re.findall(r"^\| (\d) \| .*$", CRITERIA, flags=re.MULTILINE)
    lines = [line for line in CRITERIA.splitlines() if re.match(r"\| \d \|", line)]

    assert rows == list("12345678")
    assert all("::test_" in line for line in lines)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(tests/\S+\.py::test_\w+)`", CRITERIA))))
def test_a_test_that_is_named_is_there(name: str) -> None:
    """Renamed or removed, it would have to be replaced in the page."""
    file, _, function = name.partition("::")

    assert re.search(rf"^(async )?def {function}\(", (ROOT / file).read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Files that a page links to exist."""
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_gpu_record_is_that_of_its_results() -> None:
    """The page tells what the results file holds."""
    page = (ROOT / "docs/gpu-record.md").read_text()
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", page, flags=re.MULTILINE))
    results = json.loads((DEPLOY / "argo/runner/samples/results_on_h200.json").read_text())
    statuses = [suite["status"] for suite in results["suites"]]
    counts = f"{len(statuses)}: {statuses.count('passed')} passed, {statuses.count('skipped')} skipped"

    assert rows["GPU"] == results["gpu"]["name"]
    assert rows["driver"] == results["gpu"]["driver"]
    assert rows["compute capability"].split(",")[0] == results["gpu"]["compute_capability"]
    assert rows["suites"].startswith(counts)
    assert rows["first build"] == f"{results['build']['seconds']} s"
    assert rows["all suites together"] == f"{sum(suite['seconds'] for suite in results['suites']):.1f} s"
