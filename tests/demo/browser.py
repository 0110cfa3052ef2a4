"""A newcomer with a browser: the demo as its own process, and a headless Chromium at the address that it prints.

Debian's Chromium, found by CHROMIUM or at its usual place; Playwright's own browsers are not needed.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, ConsoleMessage, Locator, Page, async_playwright, expect

ROOT = Path(__file__).parents[2]
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 360, "height": 740}
WHOLE_RUN = 60_000
"""Milliseconds in which a run of ten models ends at the speed of these tests."""

SCREENSHOTS = ROOT / ("docs/screenshots" if os.environ.get("SCREENSHOTS") == "write" else "build/screenshots")
"""`SCREENSHOTS=write` makes those of the documentation anew; look at them before you commit them."""


@asynccontextmanager
async def demo(*options: str) -> AsyncIterator[str]:
    """`python -m bot demo` for as long as the block lasts; yields the address that it printed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", "demo", *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=ROOT,
    )
    assert process.stdout is not None
    printed = ""
    try:
        async with asyncio.timeout(20):
            while not (found := re.search(r"^ +(http://\S+/)$", printed, flags=re.MULTILINE)):
                line = await process.stdout.readline()
                assert line, f"the demo ended: {printed}"
                printed += line.decode()
        yield found[1]
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        try:
            async with asyncio.timeout(10):
                await process.communicate()
        except TimeoutError:
            process.kill()
            raise


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """The browser."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield browser
        finally:
            await browser.close()


@dataclass
class Newcomer:
    """Somebody at the page: what they do, and what their browser complained about."""

    page: Page
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    async def open(self, address: str) -> None:
        """Load the page and wait until it can be typed in."""
        await self.page.goto(address)
        await expect(self.field).to_be_focused()

    @property
    def field(self) -> Locator:
        """The message field of the channel."""
        return self.page.locator("#composer-text")

    async def type(self, text: str) -> None:
        """Type a line and send it, key by key."""
        await self.field.press_sequentially(text)
        await self.field.press("Enter")

    def post(self, text: str | re.Pattern[str]) -> Locator:
        """The last post of the channel that shows a text."""
        return self.page.locator("#posts article", has_text=text).last

    async def sees(self, text: str | re.Pattern[str], *, within: int = 10_000) -> Locator:
        """Wait for a post with a text."""
        found = self.post(text)
        await expect(found).to_be_visible(timeout=within)
        return found

    async def button(self, name: str, *, within: Locator | None = None) -> None:
        """Click a button."""
        await (within or self.page).get_by_role("button", name=name).click()

    async def theme(self, scheme: Any) -> None:
        """What the system prefers."""
        await self.page.emulate_media(color_scheme=scheme)

    async def violations(self) -> list[str]:
        """What axe finds, in both colour schemes."""
        found: list[str] = []
        for scheme in ("light", "dark"):
            await self.theme(scheme)
            results = await Axe().run(self.page)
            found += [
                f"{scheme}: {one['id']}: {one['help']}: {[node['html'] for node in one['nodes']]}"
                for one in results.response["violations"]
            ]
        await self.theme("light")
        return found

    async def toast_is_clear_of_messages(self) -> bool:
        """Whether what rings lies above all messages."""
        toast = await self.page.locator(".toast").bounding_box()
        posts = await self.page.locator("#posts").bounding_box()
        assert toast is not None
        assert posts is not None
        return toast["y"] + toast["height"] <= posts["y"] + 4

    async def screenshot(self, name: str) -> Path:
        """Take one, without the caret."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        await self.page.screenshot(path=path, animations="disabled")
        return path


@asynccontextmanager
async def newcomer(*options: str, size: Any = None) -> AsyncIterator[tuple[Newcomer, str]]:
    """A demo, a browser, and somebody who has opened its page."""
    async with demo(*options) as address, chromium() as browser:
        somebody = Newcomer(await browser.new_page(viewport=size or DESKTOP))
        await somebody.open(address)
        yield somebody, address
