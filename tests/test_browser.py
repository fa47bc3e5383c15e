"""The report in a real browser: it draws, it plays, and it asks the network for nothing."""

import os
import shutil
import time

import pytest

REQUIRED = bool(os.environ.get("TALKSPURT_REQUIRE_BROWSER"))
CHROMIUM = (
    os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
]

pytestmark = pytest.mark.browser

if not REQUIRED:
    pytest.importorskip("playwright", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium here", allow_module_level=True)


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def reports(result, study, tmp_path_factory):
    place = tmp_path_factory.mktemp("reports")
    return {"run": result.report(place / "run.html"), "study": study.report(place / "study.html")}


def until(true, seconds=10.0):
    """Wait for something on the page. (The page itself forbids the evaluation of text.)"""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.05)


class Visit:
    """A page opened, with everything it said and asked for."""

    def __init__(self, browser, file, **context):
        self.context = browser.new_context(**context)
        self.page = self.context.new_page()
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("html[data-players=ready][data-charts=ready]", state="attached")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()


PAGES = ("run", "study")


@pytest.mark.parametrize("which", PAGES)
def test_nothing_goes_wrong_and_nothing_is_fetched(browser, reports, which):
    with Visit(browser, reports[which]) as visit:
        visit.page.wait_for_timeout(300)
        assert visit.said == []
        elsewhere = [url for url in visit.asked if not url.startswith(("file:", "blob:", "data:"))]
        assert elsewhere == []
        assert [url for url in visit.asked if url.startswith("file:")] == [reports[which].as_uri()]


PAINTED = """canvas => {
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const seen = new Set();
  for (let i = 0; i < pixels.length; i += 4)
    if (pixels[i + 3] > 0) seen.add((pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2]);
  return seen.size;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("which", PAGES)
def test_waveforms_and_charts_are_painted(browser, reports, which, scheme):
    with Visit(browser, reports[which], color_scheme=scheme) as visit:
        canvases = visit.page.query_selector_all("canvas")
        assert len(canvases) >= (2 + 4 if which == "run" else 4)
        for canvas in canvases:
            assert canvas.evaluate(PAINTED) >= 3


def test_legends_are_dashed_as_their_lines(browser, reports):
    with Visit(browser, reports["run"]) as visit:
        chart = visit.page.query_selector("#chart-delay")
        rows = chart.query_selector_all(".u-legend .u-series")[1:]
        names = [row.inner_text().split("\n")[0].strip(": ") for row in rows]
        dashes = [row.query_selector("line").get_attribute("stroke-dasharray") for row in rows]
        assert dashes == ["none", "none", "6 2.5"], names


def test_a_silent_call_has_its_strip(browser, silent, tmp_path):
    with Visit(browser, silent.report(tmp_path / "silent.html")) as visit:
        strip = visit.page.query_selector(".strip canvas")
        assert strip.evaluate(PAINTED) >= 1
        assert strip.bounding_box()["width"] > 100
        assert visit.said == []


def test_what_was_said_and_heard_can_be_played(browser, reports, result):
    with Visit(browser, reports["run"]) as visit:
        audios = visit.page.query_selector_all("audio")
        assert len(audios) == 2 * len(result.calls)
        for audio in audios:
            audio.evaluate("a => a.readyState >= 1 || new Promise(r => a.onloadedmetadata = r)")
            assert audio.evaluate("a => a.duration") == pytest.approx(4.0, abs=0.1)
            assert audio.evaluate("a => a.error") is None
        said = audios[0]
        said.evaluate("a => a.play()")
        until(lambda: said.evaluate("a => a.currentTime") > 0.3)
        assert "said" in visit.page.inner_text(".now")
        assert visit.page.evaluate("parseFloat(document.querySelector('.head').style.left)") > 0


def test_the_other_side_goes_on_from_the_same_place(browser, reports):
    with Visit(browser, reports["run"]) as visit:
        said, heard = visit.page.query_selector_all("audio")[:2]
        said.evaluate("a => a.play()")
        until(lambda: said.evaluate("a => a.currentTime") > 0.6)
        heard.evaluate("a => a.play()")
        until(lambda: heard.evaluate("a => a.currentTime > 0.6 && !a.paused"))
        assert said.evaluate("a => a.paused")
        assert heard.evaluate("a => a.currentTime") < 2.5


def test_a_click_on_the_waveform_moves_the_place(browser, reports):
    with Visit(browser, reports["run"]) as visit:
        scope = visit.page.query_selector(".scope")
        audios = visit.page.query_selector_all("audio")[:2]
        until(lambda: all(audio.evaluate("a => a.readyState >= 1") for audio in audios))
        box = scope.bounding_box()
        scope.click(position={"x": box["width"] / 2, "y": 20})
        for audio in audios:
            until(lambda a=audio: abs(a.evaluate("a => a.currentTime") - 2.0) < 0.2)


@pytest.mark.parametrize("which", PAGES)
def test_a_telephone_shows_it_without_scrolling_sideways(browser, reports, which):
    with Visit(browser, reports[which], viewport={"width": 360, "height": 740}) as visit:
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 360
        assert visit.page.inner_text("h1") == "Small"
