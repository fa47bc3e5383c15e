"""Draws docs/images/animation.png: the packets of the first call's report at an instant.

``.venv/bin/python docs/images/animation.py`` after ``make demo``; needs chromium.
"""

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

REPORT = Path("runs/first-call/report.html")
WIDTH, HEIGHT = 1000, 900
LAST = "s => s.animation.show(s.animation.drops().at(-1) + 0.06)"

with sync_playwright() as playwright:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=2)
    page.goto(REPORT.resolve().as_uri())
    page.wait_for_selector("html[data-animation=ready]", state="attached")
    stage = page.query_selector(".stage")
    stage.evaluate(LAST)
    stage.screenshot(path=Path(__file__).with_suffix(".png"))
    browser.close()
