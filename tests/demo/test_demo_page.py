"""The newcomer's first minutes, in a real browser: the three commands, the buttons, the forms."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Route, expect

from .browser import DESKTOP, PHONE, WHOLE_RUN, newcomer

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
ENDED = re.compile(r"min, ended \d\d:\d\d")
FAST = ("--speed", "160", "--seed", "3")


async def test_the_three_commands() -> None:
    """Start a run and cancel it, see another through to the verdict for ten models, see the night come early."""
    async with newcomer(*FAST) as (me, _):
        await me.type("/gputest models=all epochs=5")
        card = await me.sees("all models, 5 epochs")
        await me.button("Cancel", within=card)
        await expect(me.page.get_by_role("dialog")).to_contain_text("Stop ")
        await me.button("Stop it")
        await me.sees("cancelled by dev")
        await expect(me.page.get_by_role("dialog")).to_be_hidden()

        await me.type("/gputest models=all epochs=5 ref=main")
        await me.sees("waiting for an H100")
        await me.sees("of 10", within=WHOLE_RUN)
        card = me.page.locator("#posts article").last
        await expect(card.get_by_role("button", name="Cancel")).to_be_visible()
        await expect(card).to_contain_text(ENDED, timeout=WHOLE_RUN)
        words = await card.inner_text()
        assert any(end in words for end in ("all 10 green", "of 10 failed", "shared suites failed"))
        await expect(me.page.locator(".toast")).to_contain_text("gputest mentioned you")
        assert await me.toast_is_clear_of_messages()
        await me.page.set_viewport_size(PHONE)
        assert await me.toast_is_clear_of_messages()
        await me.page.set_viewport_size(DESKTOP)
        await card.locator(".replies").click()
        notice = me.page.locator("#thread article").last
        await expect(notice.locator(".mention.is-me")).to_have_text("@dev")
        await me.button("Close the thread")

        await me.type("/nightly enable")
        answer = await me.sees("Nightly (gpu-test-nightly) is on")
        await expect(answer).to_contain_text("(Only visible to you)")
        await me.button("Skip to 01:59")
        await me.sees("By the schedule gpu-test-nightly", within=20_000)

        assert me.complaints == []


async def test_the_form() -> None:
    """`/gputest` alone opens a form; what is wrong stands at its field, and what is right starts a run."""
    async with newcomer(*FAST) as (me, _):
        await me.type("/gputest")
        form = me.page.get_by_role("dialog")
        await expect(form.get_by_label("Models")).to_be_focused()
        await form.get_by_label("Models").fill("")
        await form.get_by_role("button", name="Start").click()
        await expect(form).to_contain_text("This field is required.")
        await form.get_by_label("Models").fill("dqn,mamba")
        await form.get_by_label("Epochs").fill("0")
        await form.get_by_role("button", name="Start").click()
        await expect(form.get_by_label("Models")).to_have_attribute("aria-invalid", "true")
        await expect(form).to_contain_text("Did you mean mamba2?")
        await expect(form).to_contain_text("epochs=0 is outside 1 to 100.")
        assert await me.violations() == []
        await form.get_by_label("Models").fill("dqn,mamba2")
        await form.get_by_label("Epochs").fill("2")
        await form.get_by_label("Scope").select_option("lib")
        await form.get_by_role("button", name="Start").click()
        await expect(form).to_be_hidden()
        await expect(me.field).to_be_focused()
        await me.sees("dqn, mamba2, lib tests, 2 epochs")

        assert me.complaints == []


async def test_everybody_can_use_it() -> None:
    """axe finds nothing in light and dark: a channel with cards, a thread, the panel on a phone."""
    async with newcomer(*FAST) as (me, _):
        await me.type("/gputest help")
        await me.type("/gputest models=mamba")
        await me.type("**Look** at ~gpu-tests @viewer :tada: #gpu\n\n|a|b|\n|-|-:|\n|1|2|")
        await me.type("/nightly enable")
        await me.type("/gpu")
        await me.type("/gputest models=all epochs=5")
        await me.sees("of 10", within=WHOLE_RUN)
        assert await me.violations() == []
        await me.page.locator("#posts article").last.hover()
        await me.page.locator("#posts article").last.get_by_role("button", name="Reply", exact=True).click()
        await expect(me.page.locator("#thread-composer-text")).to_be_focused()
        assert await me.violations() == []
        await me.page.keyboard.press("Escape")
        await me.page.set_viewport_size(PHONE)
        await me.field.press_sequentially("/g")
        await expect(me.page.get_by_role("listbox")).to_be_visible()
        assert await me.violations() == []
        await me.page.keyboard.press("Escape")
        await me.button("Cluster")
        assert await me.violations() == []
        await me.page.keyboard.press("Escape")
        await me.button("Channels")
        assert await me.violations() == []
        width = await me.page.evaluate("document.documentElement.scrollWidth")

        assert width == PHONE["width"]
        assert me.complaints == []


async def test_by_keyboard_alone() -> None:
    """Suggestions by arrow and Tab; a card's button keeps the focus while the card changes; Escape leads back."""
    async with newcomer(*FAST) as (me, _):
        press = me.page.keyboard.press
        await me.page.keyboard.type("/gpu")
        await expect(me.page.get_by_role("listbox").get_by_role("option")).to_have_count(2)
        await press("ArrowDown")
        await press("Tab")
        await expect(me.field).to_have_value("/gputest ")
        await me.page.keyboard.type("dqn ppo epochs=1")
        await press("Enter")
        card = await me.sees("dqn, ppo, 1 epoch")
        await card.get_by_role("button", name="Cancel").focus()
        await me.sees("of 2", within=WHOLE_RUN)
        await expect(card.get_by_role("button", name="Cancel")).to_be_focused()
        await press("Enter")
        form = me.page.get_by_role("dialog")
        await expect(form.get_by_role("button", name="Stop it")).to_be_focused()
        await press("Escape")
        await expect(form).to_be_hidden()
        await expect(card.get_by_role("button", name="Cancel")).to_be_focused()
        await press("Shift+Tab")
        await expect(card.get_by_role("button", name="Reply", exact=True)).to_be_focused()
        await press("Enter")
        await me.page.keyboard.type("why so **slow**?")
        await press("Enter")
        await expect(me.page.locator("#thread article strong", has_text="slow")).to_be_visible()
        await press("Escape")
        await expect(me.page.locator("#thread")).to_be_hidden()
        await expect(card.get_by_role("button", name="Reply", exact=True)).to_be_focused()

        assert me.complaints == []


async def test_the_viewer_may_only_look() -> None:
    """Another user sees the same channel, not the answers that were for dev, and is refused."""
    async with newcomer(*FAST) as (me, _):
        await me.type("/gputest status")
        answer = await me.sees("(Only visible to you)")
        await me.page.get_by_label("You are").select_option("viewer")
        await expect(answer).to_have_count(0)
        await me.type("/gputest all")
        await me.sees("You may not start runs here.")
        await me.page.get_by_label("You are").select_option("dev")
        await me.sees("(Only visible to you)")

        assert me.complaints == []


async def test_things_break_and_are_mended() -> None:
    """No stock, a chat that is away, a bot that is killed: the page says so, and all goes on with one card."""
    async with newcomer(*FAST) as (me, _):
        panel = me.page.locator("#panel")
        await panel.get_by_label("No H100 in stock").check()
        await me.type("/gputest dqn scope=lib")
        await me.sees("waiting for an H100")
        await expect(panel).to_contain_text("out of stock")
        await panel.get_by_label("No H100 in stock").uncheck()
        await panel.get_by_label("Bot killed").check()
        await expect(panel.locator(".switch", has_text="Bot killed")).to_contain_text("killed")
        await me.type("/gputest status")
        await expect(me.page.locator(".composer-error").first).to_contain_text("failed")
        await me.field.fill("")
        await panel.get_by_label("Bot killed").uncheck()
        await panel.get_by_label("Chat down").check()
        await expect(me.page.locator("#connection")).to_contain_text("The chat does not answer")
        await panel.get_by_label("Chat down").uncheck()
        await expect(me.page.locator("#connection")).to_be_hidden(timeout=15_000)
        await panel.get_by_role("button", name="API answers 410").click()
        await me.sees(ENDED, within=WHOLE_RUN)

        assert await me.page.locator("#posts article", has_text="dqn").count() == 1


async def test_a_switch_stays_where_it_was_put() -> None:
    """What the cluster looked like before does not turn it back; where the demo does not answer, it goes back and says so."""
    async with newcomer(*FAST) as (me, _):
        answered = asyncio.Event()

        async def hold(route: Route) -> None:
            await answered.wait()
            await route.continue_()

        await me.page.route("**/demo/panel", hold)
        switch = me.page.locator("#panel").get_by_label("No H100 in stock")
        await switch.check()
        await me.type("/gputest dqn scope=lib")
        await expect(me.page.locator("#runs")).to_contain_text("gpu-test-")
        await expect(switch).to_be_checked()
        async with me.page.expect_response("**/demo/panel"):
            answered.set()
        await expect(switch).to_be_checked()
        await me.page.route("**/demo/panel", lambda route: route.abort())
        await switch.click()
        await expect(me.page.locator("#panel-said")).to_have_text("The demo does not answer.")
        await expect(switch).to_be_checked()


async def test_screenshots() -> None:
    """As the documentation shows it, on a desk and on a phone; small enough to be kept in the repository."""
    async with newcomer(*FAST) as (me, _):
        await me.page.get_by_label("40×").check()
        await me.type("/gputest models=all epochs=5")
        await me.page.get_by_label("480×").check()
        await me.sees(ENDED, within=WHOLE_RUN)
        await me.type("/nightly enable")
        # so slow that nobody misses the moment
        await me.page.get_by_label("40×").check()
        await me.type("/gputest dqn ppo tft kan")
        await me.sees("⏳ tft", within=WHOLE_RUN)
        await me.page.get_by_label("stop").check()
        await me.page.locator("#toasts > *").first.wait_for(state="detached", timeout=15_000)
        desktop = await me.screenshot("chat-desktop")
        await me.page.set_viewport_size(PHONE)
        phone = await me.screenshot("chat-phone")

    assert max(desktop.stat().st_size, phone.stat().st_size) < 300_000
