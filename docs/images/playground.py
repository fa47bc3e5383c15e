"""Draws docs/images/playground.webp: a call whose uplink gets faster while a slider moves.

``.venv/bin/python docs/images/playground.py`` after ``make playground``; needs chromium.
"""

import io
import shutil
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

PAGE = Path("site/talkspurt.html")
WIDTH, HEIGHT = 1280, 800
SHOWN = 900
"""Width of the picture."""

frames: list[tuple[Image.Image, int]] = []

with sync_playwright() as playwright:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")

    def take(milliseconds: int) -> None:
        """Add what the page shows as a frame of this duration."""
        image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        frames.append((image.resize((SHOWN, SHOWN * HEIGHT // WIDTH), Image.LANCZOS), milliseconds))

    def settled() -> None:
        """Wait until nothing runs."""
        while page.evaluate("playground.busy || playground.again === true && playground.busy"):
            time.sleep(0.05)
        time.sleep(0.3)

    page.goto(PAGE.resolve().as_uri())
    page.wait_for_selector("html[data-result]", state="attached")
    settled()
    take(2500)
    page.select_option("#numbers", "links.uplink.rate")
    page.eval_on_selector("#slider", "it => it.scrollIntoView({ block: 'center' })")
    take(900)
    for value in (600, 700, 800, 900, 1000):
        page.evaluate(f"document.querySelector('#slider').value = {value}")
        page.dispatch_event("#slider", "input")
        settled()
        take(700)
    page.evaluate("scrollTo(0, 0)")
    page.eval_on_selector("talkspurt-player", "it => it.scrollIntoView()")
    take(2000)
    page.eval_on_selector("#charts", "it => it.scrollIntoView()")
    take(2000)
    page.click("#packets summary")
    page.wait_for_selector("#packets .stage")
    settled()
    page.eval_on_selector(".stage", "it => it.scrollIntoView({ block: 'center' })")
    begin = page.evaluate("document.querySelector('.stage').animation.time()")
    for step in range(12):
        page.evaluate(f"document.querySelector('.stage').animation.show({begin} + {step} * 0.01)")
        take(120 if step < 11 else 1500)
    browser.close()

images, durations = zip(*frames, strict=True)
images[0].save(
    Path(__file__).with_suffix(".webp"), save_all=True, append_images=images[1:],
    duration=list(durations), loop=0, quality=55, method=6,
)  # fmt: skip
