"""The report in a real browser: it draws, it plays, and it asks the network for nothing."""

import json
import os
import random
import shutil
from collections import Counter
from itertools import pairwise

import polars as pl
import pytest

import talkspurt
from command import until
from talkspurt.report.page import asset

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
def reports(result, study, tmp_path_factory):
    place = tmp_path_factory.mktemp("reports")
    return {"run": result.report(place / "run.html"), "study": study.report(place / "study.html")}


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
        self.page.wait_for_selector(
            "html[data-players=ready][data-charts=ready][data-animation=ready]", state="attached"
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()


@pytest.fixture
def page(browser, reports):
    """The report of a run, opened."""
    with Visit(browser, reports["run"]) as visit:
        yield visit.page


@pytest.fixture
def stage(browser, moving):
    """The animation of a report, opened."""
    with Visit(browser, moving[1]) as visit:
        yield visit.page.query_selector(".stage")


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
        assert len(canvases) >= (3 + 4 if which == "run" else 5)
        for canvas in (one for one in canvases if one.is_visible()):
            assert canvas.evaluate(PAINTED) >= 3


@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("which", PAGES)
def test_what_is_wider_than_the_page_is_scrolled_by_keyboard(browser, reports, which, width):
    with Visit(browser, reports[which], viewport={"width": width, "height": 800}) as visit:
        assert visit.page.evaluate("document.documentElement.scrollWidth") == width
        regions = visit.page.query_selector_all(".wide[role=region]")
        wider = [r for r in regions if r.evaluate("r => r.scrollWidth > r.clientWidth")]
        labels = [region.get_attribute("aria-label") for region in wider]
        assert all(labels)
        # In a page of 1200, only a study's tables of every metric are wider.
        every = ("All flows and metrics", "Differences along")
        if width == 1200:
            assert all(which == "study" and label.startswith(every) for label in labels)
        else:
            assert wider
        for region in wider:
            assert "gradient" in region.evaluate("r => getComputedStyle(r).backgroundImage")
        if wider:
            wider[0].focus()
            visit.page.keyboard.press("ArrowRight")
            until(lambda: wider[0].evaluate("r => r.scrollLeft") > 0)


def test_legends_are_dashed_as_their_lines(page):
    buttons = page.query_selector_all("#chart-delay .legend button")
    assert [button.inner_text() for button in buttons] == ["call", "tcp-call", "upload"]
    dashes = [b.query_selector("line").get_attribute("stroke-dasharray") for b in buttons]
    assert dashes == ["none", "none", "none"]
    assert len({b.query_selector("line").get_attribute("stroke") for b in buttons}) == 3


CUT = """element => {
  const { left, right } = element.getBoundingClientRect();
  return element.scrollWidth > element.clientWidth + 1 || left < 0 || right > innerWidth;
}"""


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("which", [*PAGES, "many"])
def test_no_legend_and_no_interval_of_the_answer_is_cut(browser, reports, many, which, width):
    file = many if which == "many" else reports[which]
    with Visit(browser, file, viewport={"width": width, "height": 800}) as visit:
        legends = visit.page.query_selector_all(".legend, .legend button, .key, .panel, .plot")
        assert len(legends) >= 3
        cut = [one.inner_text() for one in legends if one.evaluate(CUT)]
        assert cut == []
        for cell in visit.page.query_selector_all("#answer td small"):
            assert not cell.evaluate(CUT.replace(" || right > innerWidth", "")), cell.inner_text()


@pytest.fixture(scope="module")
def many(folder, tmp_path_factory):
    """A report of sixteen flows."""
    text = (folder / "silent.toml").read_text(encoding="utf-8")
    text = text.replace("[flows.call]\n", "[flows.call]\ncount = 14\n")
    text = text.replace("256kbit/s", "4Mbit/s")
    (folder / "sixteen.toml").write_text(text, encoding="utf-8")
    result = talkspurt.run(folder / "sixteen.toml")
    return result.report(tmp_path_factory.mktemp("many") / "run.html")


def test_many_lines_are_in_panels_of_six(browser, many):
    with Visit(browser, many) as visit:
        titles = visit.page.eval_on_selector_all(
            "#chart-delay .panel", "all => all.map(e => e.innerText)"
        )
        assert titles == [
            "voice: call-1 … call-5",
            "voice: call-6 … call-10",
            "voice: call-11 … tcp-call",
            "bulk",
        ]
        for canvas in visit.page.query_selector_all("#chart-delay canvas"):
            assert canvas.evaluate(PAINTED) >= 3


STATIC = """<!doctype html><html><head><meta charset="utf-8"><title>Static</title>
<style>:root {{ --paper: #fff; --card: #fff; --ink: #111; --quiet: #555; --rule: #ddd; --accent: #00f;
--field: #888; --bad: #b00; }} {css}</style></head>
<body><talkspurt-chart></talkspurt-chart><script>{plotter}</script><script type="module">{charts}</script>
<script type="module">
const table = {table};
const lines = Object.entries({{ delay_mean_s: "#1F76D2", delay_max_s: "#2A8664" }}).map(([name, colour]) => (
  {{ label: name, colour, x: table.time_s, values: table[name] }}));
document.querySelector("talkspurt-chart").chart = {{ title: "Delay", unit: "s", panels: [{{ title: "", lines }}] }};
</script></body></html>"""


def test_a_page_without_a_server_draws_charts_from_the_columns_of_a_table(
    browser, result, tmp_path
):
    table = result.series("call").drop_nulls("delay_mean_s")
    columns = table.select("time_s", "delay_mean_s", "delay_max_s").to_dict(as_series=False)
    text = STATIC.format(
        css=asset("vendor/uPlot.min.css") + asset("charts.css"),
        plotter=asset("vendor/uPlot.iife.min.js"),
        charts=asset("charts.js"),
        table=json.dumps(columns),
    )
    (tmp_path / "static.html").write_text(text, encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((tmp_path / "static.html").as_uri())
    page.wait_for_selector("talkspurt-chart canvas")
    assert page.query_selector("talkspurt-chart canvas").evaluate(PAINTED) >= 3
    words = page.get_attribute("talkspurt-chart .plot", "aria-label")
    assert words == "Delay over time: delay_mean_s, delay_max_s"
    page.hover("talkspurt-chart .u-over", position={"x": 150, "y": 60})
    until(lambda: page.is_visible(".tip"))
    assert "delay_max_s" in page.inner_text(".tip")
    assert said == []
    context.close()


def test_a_stack_tells_its_sum_and_closes_where_a_part_is_hidden(page):
    page.hover("#chart-mouth-to-ear .u-over >> nth=0", position={"x": 150, "y": 60})
    tip = "#chart-mouth-to-ear .tip >> nth=0"
    until(lambda: page.is_visible(tip))

    def told():
        lines = [line.rsplit(" ", 1) for line in page.inner_text(tip).splitlines()[1:]]
        return {words: float(value) for words, value in lines}

    values = told()
    total = values.pop("sum")
    assert len(values) == 4 and sum(values.values()) == pytest.approx(total, abs=1.5)
    plot = "document.querySelector('#chart-mouth-to-ear canvas').toDataURL()"
    before = page.evaluate(plot)
    page.click("#chart-mouth-to-ear .legend button >> nth=0")
    until(lambda: page.evaluate(plot) != before)
    page.click("#chart-mouth-to-ear .legend button >> nth=0")
    until(lambda: page.evaluate(plot) == before)


STEPS = """async stepped => {
  const chart = document.querySelector("main").appendChild(document.createElement("talkspurt-chart"));
  const line = { label: "steps", colour: "#ff0000", width: 3, x: [0, 5, 10, 15], values: [1, 1, null, 1], stepped };
  chart.chart = { title: "Steps", unit: "", range: [0, 2], panels: [{ title: "", lines: [line] }] };
  await new Promise((resolve) => setTimeout(resolve, 100));
  const [canvas, over] = ["canvas", ".u-over"].map((part) => chart.querySelector(part));
  const [whole, box] = [canvas, over].map((part) => part.getBoundingClientRect());
  const scale = canvas.width / whole.width;
  return [2.5, 7.5, 12.5].map((time) => {
    const x = (box.x - whole.x + (box.width * time) / 15) * scale;
    const y = (box.y - whole.y + box.height / 2) * scale;
    const { data } = canvas.getContext("2d").getImageData(x, y - 1, 1, 3);
    return data[4] > 200 && data[5] < 50;
  });
}"""


@pytest.mark.parametrize(("stepped", "drawn"), [(-1, [1, 0, 1]), (1, [1, 1, 0])])
def test_a_step_is_drawn_for_as_long_as_its_value_holds(page, stepped, drawn):
    """Also beside a place without a value."""
    assert page.evaluate(STEPS, stepped) == drawn


def test_what_a_metric_means_is_folded_until_a_link_leads_to_it(page):
    metric = "#m-goodput_bps"
    assert not page.is_visible(f"{metric} p")
    page.click("#numbers th a[href='#m-goodput_bps'] >> nth=0")
    page.wait_for_selector(f"{metric} p", state="visible")
    page.click(f"{metric} summary")
    assert not page.is_visible(f"{metric} p")


def test_a_name_in_a_legend_hides_its_line(page):
    button = page.query_selector("#chart-delay .legend button")
    plot = "document.querySelector('#chart-delay canvas').toDataURL()"
    before = page.evaluate(plot)
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "false"
    until(lambda: page.evaluate(plot) != before)
    page.keyboard.press("Enter")
    until(lambda: page.evaluate(plot) == before)


def test_the_chart_under_the_pointer_tells_its_values(page):
    page.hover("#chart-delay .u-over", position={"x": 150, "y": 60})
    until(lambda: page.is_visible("#chart-delay .tip"))
    assert "tcp-call" in page.inner_text("#chart-delay .tip")
    assert not page.is_visible("#chart-goodput .tip")


def test_the_contents_follow_the_reader(browser, reports):
    for width in (400, 1400):
        with Visit(browser, reports["run"], viewport={"width": width, "height": 800}) as visit:
            page = visit.page
            assert page.inner_text(".contents a[aria-current]") == "Result"
            page.click(".contents a[href='#network']")
            page.wait_for_selector(".contents a[href='#network'][aria-current]")
            top = page.query_selector(".contents").bounding_box()["y"]
            assert 0 <= top < 60, "it stays visible"
            heading = page.query_selector("#network h2").bounding_box()["y"]
            assert heading > (40 if width == 400 else 0), "it is not hidden below the contents"


def test_on_a_telephone_the_score_is_first(browser, reports):
    for which in PAGES:
        with Visit(browser, reports[which], viewport={"width": 400, "height": 800}) as visit:
            cells = visit.page.query_selector_all("#answer tbody tr:first-child > *")
            assert float(cells[0].inner_text().split()[0].removeprefix("<")) >= 1
            assert cells[0].bounding_box()["x"] < 40
            assert cells[0].bounding_box()["y"] < 800, "without scrolling"


def test_a_silent_call_has_its_strip(browser, silent, tmp_path):
    with Visit(browser, silent.report(tmp_path / "silent.html")) as visit:
        strip = visit.page.query_selector(".scope.silent canvas")
        assert strip.evaluate(PAINTED) >= 1
        assert strip.bounding_box()["width"] > 100
        assert visit.said == []


PLAYER = "document.querySelector('.player').player"


def position(page):
    return page.evaluate(f"{PLAYER}.time_s")


def test_a_call_is_played_with_its_position_and_frames(browser, reports):
    with Visit(browser, reports["run"]) as visit:
        page = visit.page
        page.click("[data-part=play]")
        until(lambda: position(page) > 0.3)
        assert "call · frame" in page.inner_text("[data-part=now]")
        assert page.evaluate("parseFloat(document.querySelector('.head').style.left)") > 0
        page.click("[data-part=play]")
        still = position(page)
        page.wait_for_timeout(150)
        assert position(page) == still > 0.3
        assert visit.said == []


# Two signals from the 1000th sample, with a switch to the second after half a second.
SWITCHED = f"""async () => {{
  const player = {PLAYER};
  const [first, second] = player.shown.slice(1);
  const context = new OfflineAudioContext(1, 8000, first.rate);
  const buffers = await Promise.all([first, second].map((one) => player.buffer(context, one.recording)));
  const deck = new player.Deck(context);
  deck.start(buffers, 0, 1000 / first.rate, null);
  context.suspend(0.512).then(() => {{ deck.select(1); context.resume(); }});
  const heard = (await context.startRendering()).getChannelData(0);
  const wrong = (from, to, samples) => {{
    let most = 0;
    for (let i = from; i < to; i++) most = Math.max(most, Math.abs(heard[i] - samples[1000 + i] / 32768));
    return most;
  }};
  const differ = first.samples.some((value, i) => value !== second.samples[i]);
  return {{ differ, before: wrong(0, 4096, first.samples), after: wrong(4096 + 64, 8000, second.samples) }};
}}"""


def test_a_switch_continues_at_the_same_sample(page):
    found = page.evaluate(SWITCHED)
    assert found["differ"], "or nothing was compared"
    assert found["before"] < 1e-4
    assert found["after"] < 1e-4


def test_keys_play_and_select(page):
    page.focus(".signal input:checked")
    page.keyboard.press("Space")
    until(lambda: position(page) > 0.2)
    before = position(page)
    page.keyboard.press("3")
    assert page.inner_text("[data-part=now]").startswith("tcp-call")
    assert page.is_checked(".signal[data-name=tcp-call] input")
    assert 0 <= position(page) - before < 1.5
    page.focus(".signal input:checked")
    page.keyboard.press("ArrowUp")
    assert page.inner_text("[data-part=now]").startswith("call")
    page.keyboard.press("Space")
    assert page.inner_text("[data-part=play]") == "Play"
    page.focus("[data-part=slider]")
    page.keyboard.press("Home")
    assert position(page) == 0


def test_a_click_on_the_waveform_moves_the_position(page):
    scope = page.query_selector(".scope")
    box = scope.bounding_box()
    scope.click(position={"x": box["width"] / 2, "y": 20})
    half = page.evaluate(f"{PLAYER}.duration / 2")
    assert position(page) == pytest.approx(half, abs=0.1)


def test_a_part_can_be_repeated(page):
    page.select_option("[data-part=repeat]", "2")
    page.evaluate(f"{PLAYER}.seek(1)")
    page.click("[data-part=play]")
    deck = f"{PLAYER}.deck"
    until(lambda: page.evaluate(f"{deck}.context.currentTime - {deck}.began") > 3.2)
    assert 1 <= position(page) < 3


def test_signals_are_chosen(page):
    assert page.is_visible(".signal[data-name=tcp-call]")
    page.click(".choice-of summary")
    page.uncheck("[data-part=choose] input[aria-label='show tcp-call']")
    assert not page.is_visible(".signal[data-name=tcp-call]")
    assert page.inner_text("[data-part=count]") == "2 of 3"
    assert page.evaluate(f"{PLAYER}.shown.length") == 2


@pytest.mark.parametrize("right", [True, False])
def test_a_blind_test_counts_and_tells_the_odds(page, right):
    page.select_option("[data-part=repeat]", label="all")  # a slow machine plays to the end
    page.click(".blind summary")
    page.select_option("[data-blind=trials]", "8")
    page.click("[data-blind=begin]")
    until(lambda: position(page) > 0)
    seen = set()
    for trial in range(8):
        assert page.inner_text("[data-blind=trial]") == f"Trial {trial + 1} of 8"
        assert not page.is_visible(".signals"), "it is blind"
        page.keyboard.press("x")
        assert page.get_attribute("[data-hear=x]", "aria-pressed") == "true"
        assert page.inner_text("[data-part=now]") == ""
        x = page.evaluate(f"{PLAYER}.test.x")
        seen.add(x)
        audible = page.evaluate(f"{PLAYER}.deck.voices.map((voice) => voice.level)")
        assert audible == [float(x == "a"), float(x == "b")]
        page.click(f"[data-answer={x if right else 'ba'['ab'.index(x)]}]")
    score = page.inner_text("[data-blind=score]")
    assert score.startswith(f"call and tcp-call: {8 if right else 0} of 8 correct.")
    assert score.endswith("p = 0.0039." if right else "p = 1.0.")
    assert page.is_visible(".signals")


def test_x_is_each_of_both_about_as_often(page):
    test = f"{PLAYER}.test"
    begun = f"{test}.answers = []; {test}.count = 400"
    drawn = page.evaluate(
        f"() => {{ {begun}; return Array.from({{ length: 400 }}, () => ({test}.next(), {test}.x)) }}"
    )
    assert 140 < drawn.count("a") < 260


@pytest.mark.parametrize("which", PAGES)
def test_a_telephone_shows_it_without_scrolling_sideways(browser, reports, which):
    with Visit(browser, reports[which], viewport={"width": 360, "height": 740}) as visit:
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 360
        assert visit.page.inner_text("h1") == "Small"


@pytest.fixture(scope="module")
def moving(folder, tmp_path_factory):
    """A report of two networks, and the table of every packet in them."""
    result = talkspurt.run(folder / "controlled.toml", set={"record.packets": True})
    return result, result.report(tmp_path_factory.mktemp("moving") / "run.html")


ASK = "(stage, [what, ...about]) => stage.animation[what](...about)"
BAD = (0xB3, 0x40, 0x0A)
STAGE_PIXELS = "stage => stage.querySelector('.moving canvas').toDataURL()"


def test_packets_stand_where_the_table_says(stage, moving):
    result, _ = moving
    packets = result.packets()
    begin, end = stage.evaluate("stage => [stage.animation.from, stage.animation.to]")
    rng = random.Random(5)
    flew = waited = 0
    for _ in range(60):
        t = rng.uniform(begin, end)
        for link in ("sky", "sky.back", "ground", "ground.back"):
            here = packets.filter(pl.col("link") == link, pl.col("enqueued_s") <= t)
            left = here.filter(pl.col("dequeued_s") <= t)
            flying = left.filter(~(pl.col("received_s") <= t).fill_null(False)).height
            waiting = here.filter(
                ~(pl.col("dequeued_s") <= t).fill_null(False), pl.col("fate") != "full"
            ).height
            found = stage.evaluate(ASK, ["on", link, t])
            assert found == {"waiting": waiting, "flying": flying}, (link, t)
            flew, waited = flew + flying, waited + waiting
    assert flew > 300 and waited > 300, "or nothing was compared"


INKED = """(stage, [colour, box]) => {
  const canvas = stage.querySelector(".moving canvas");
  const whole = stage.querySelector(".ground-of:not([hidden]) svg").viewBox.baseVal;
  const [left, top, right, bottom] = box ?? [0, whole.y, whole.width, whole.y + whole.height];
  const scale = canvas.height / whole.height;
  const place = [left - whole.x, top - whole.y, right - left, bottom - top];
  const pixels = canvas.getContext("2d").getImageData(...place.map((v) => Math.round(v * scale))).data;
  let count = 0;
  for (let i = 0; i < pixels.length; i += 4) {
    const same = !colour || colour.every((value, k) => Math.abs(value - pixels[i + k]) < 3);
    if (pixels[i + 3] > 200 && same) count++;
  }
  return count;
}"""


WHOLE = """stage => {
  const { x, y, width, height } = stage.querySelector(".ground-of:not([hidden]) svg").viewBox.baseVal;
  return [x, y, x + width, y + height];
}"""


def stack_of(page, link):
    """The middle of a link's queue along the page and the height it stands on."""
    shown = json.loads(page.inner_text("#animation"))
    number = next(one["stack"] for one in shown["links"] if one["name"] == link)
    lane = shown["lanes"][number]
    (ax, ay), (bx, _) = lane["points"][:2]
    assert bx > ax, "it is above its link"
    return ax + lane["stack"], ay - 10


def test_a_queue_stands_as_high_as_packets_wait(stage, moving):
    page = stage.owner_frame().page
    result, _ = moving
    packets = result.packets().filter(pl.col("link") == "sky", pl.col("fate") != "full")
    page.select_option("[data-part=world]", "0")
    begin, end = stage.evaluate("stage => [stage.animation.from, stage.animation.to]")
    seen = {}
    _, foot = stack_of(page, "sky")
    left, top, right, _ = stage.evaluate(WHOLE)
    rng = random.Random(6)
    for t in (rng.uniform(begin, end) for _ in range(300)):
        entered = packets.filter(pl.col("enqueued_s") <= t)
        waiting = entered.filter(~(pl.col("dequeued_s") <= t).fill_null(False)).height
        stage.evaluate(ASK, ["show", t])
        said = page.inner_text("[data-part=now]")
        back = stage.evaluate(ASK, ["on", "sky.back", t])["waiting"]
        assert said.startswith(f"{waiting + back} waiting, ")
        # Above the link stands its queue, and nothing else.
        seen[waiting] = stage.evaluate(INKED, [None, [left, top, right, foot]])
        assert stage.evaluate(INKED, [None, [left, top, right, top + 2]]) == 0, "it has room"
    assert len(seen) > 5
    assert seen.pop(0) == 0
    heights = [seen[waiting] for waiting in sorted(seen)]
    assert heights[-1] > 4 * heights[0]
    assert all(b > a - 30 for a, b in pairwise(heights)), "numbers take their ink too"


def test_drops_appear_at_their_instants(stage, moving):
    page = stage.owner_frame().page
    result, _ = moving
    begin, end = stage.evaluate("stage => [stage.animation.from, stage.animation.to]")
    every = []
    for world, link in enumerate(("sky", "ground")):
        page.select_option("[data-part=world]", str(world))
        told = stage.evaluate(ASK, ["drops"])
        names = [link, f"{link}.back"]
        full = result.packets().filter(pl.col("link").is_in(names), pl.col("fate") == "full")
        full = full.filter(pl.col("enqueued_s").is_between(begin, end))
        assert told == pytest.approx(sorted(full["enqueued_s"]), abs=1e-8)
        every += told
    assert len(every) > 5
    # Step by step through those of the network shown.
    stage.evaluate(ASK, ["show", begin])
    for instant in sorted(set(told))[:5]:
        page.click("[data-part=next]")
        assert stage.evaluate(ASK, ["time"]) == pytest.approx(instant, abs=1e-9)
        after = stage.evaluate(STAGE_PIXELS)
        stage.evaluate(ASK, ["show", instant - 1e-6])
        assert stage.evaluate(STAGE_PIXELS) != after
        stage.evaluate(ASK, ["show", instant])
    # A cross is drawn at the instant, and not before.
    stage.evaluate(ASK, ["show", told[0]])
    assert stage.evaluate(INKED, [BAD, None]) > 5
    stage.evaluate(ASK, ["show", told[0] - 1e-6])
    assert stage.evaluate(INKED, [BAD, None]) == 0
    stage.evaluate(ASK, ["show", instant])
    page.click("[data-part=before]")
    assert stage.evaluate(ASK, ["time"]) == pytest.approx(sorted(set(told))[3], abs=1e-9)


def test_what_waits_is_hidden_by_no_cross_and_touches_no_name(stage):
    page = stage.owner_frame().page
    for world, link in enumerate(("sky", "ground")):
        page.select_option("[data-part=world]", str(world))
        middle, foot = stack_of(page, link)
        _, top, right, _ = stage.evaluate(WHOLE)
        stage.evaluate(ASK, ["show", stage.evaluate(ASK, ["drops"])[0]])
        stack = [middle - 6.5, top, middle + 6.5, foot]
        assert stage.evaluate(INKED, [None, stack]) > 100, "packets wait"
        assert stage.evaluate(INKED, [BAD, stack]) == 0
        assert stage.evaluate(INKED, [BAD, [middle + 6.5, top, right, foot]]) > 5
        ends = stage.evaluate(NAMES)
        assert min(abs(middle - 6.5 - end) for end in ends) > 4
        assert not any(middle - 10.5 < end < middle + 6.5 for end in ends)


NAMES = """stage => [...stage.querySelectorAll(".ground-of:not([hidden]) .node-name")].map((name) => {
  const { x, width } = name.getBBox();
  return x + width;
})"""
WORDS_TO_SLIDER = """stage => {
  const words = [...stage.querySelectorAll(".ground-of:not([hidden]) text")];
  const bottom = Math.max(...words.map((text) => text.getBoundingClientRect().bottom));
  return stage.querySelector("[data-part=course]").getBoundingClientRect().top - bottom;
}"""


def test_the_slider_stands_right_below_the_network(stage):
    for world in ("0", "1"):
        stage.owner_frame().select_option("[data-part=world]", world)
        assert 0 < stage.evaluate(WORDS_TO_SLIDER) < 45


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_animation_moves_with_slider_clock_and_keys(browser, moving, scheme):
    with Visit(browser, moving[1], color_scheme=scheme) as visit:
        page = visit.page
        stage = page.query_selector(".stage")
        pictures = []
        slider = page.query_selector("[data-part=slider]")
        for place in (200, 900, 1700):
            slider.evaluate(
                "(s, v) => { s.value = v; s.dispatchEvent(new Event('input')); }", place
            )
            pictures.append(stage.evaluate(STAGE_PIXELS))
        assert len(set(pictures)) == 3
        slider.focus()
        before = stage.evaluate(ASK, ["time"])
        page.keyboard.press("ArrowLeft")
        assert stage.evaluate(ASK, ["time"]) < before
        page.keyboard.press("Space")
        before = stage.evaluate(ASK, ["time"])
        until(lambda: stage.evaluate(ASK, ["time"]) > before)
        page.keyboard.press("Space")
        page.wait_for_timeout(50)
        still = stage.evaluate(ASK, ["time"])
        page.wait_for_timeout(200)
        assert stage.evaluate(ASK, ["time"]) == still
        page.keyboard.press("n")
        assert stage.evaluate(ASK, ["time"]) in stage.evaluate(ASK, ["drops"])
        assert visit.said == []


@pytest.fixture(scope="module")
def air(pytestconfig, tmp_path_factory):
    """A report of a cell whose queues drop nobody, and the table of every packet in it."""
    sets = {"axes": [], "replications.count": 1, "duration": "8s", "record.packets": True}
    sets |= {"record.animation.from": "6s", "record.animation.packets": 3000}
    result = talkspurt.run(pytestconfig.rootpath / "scenarios/wireless-cell.toml", set=sets)
    return result, result.report(tmp_path_factory.mktemp("air") / "run.html")


def test_packets_cross_the_air_from_whom_to_whom(browser, air):
    result, file = air
    packets = result.packets().filter(~pl.col("fate").is_in(["full", "retries"]))
    with Visit(browser, file) as visit:
        stage = visit.page.query_selector(".stage")
        begin, end = stage.evaluate("stage => [stage.animation.from, stage.animation.to]")
        rng = random.Random(7)
        waited = Counter()
        for t in (rng.uniform(begin, end) for _ in range(100)):
            for link in ("cafe.ap", "cafe.laptop", "cafe.phone", "line.back"):
                here = packets.filter(pl.col("link") == link, pl.col("enqueued_s") <= t)
                left = here.filter(pl.col("dequeued_s") <= t)
                flying = left.filter(~(pl.col("received_s") <= t).fill_null(False)).height
                found = stage.evaluate(ASK, ["on", link, t])
                assert found == {"waiting": here.height - left.height, "flying": flying}, (link, t)
                waited[link] += found["waiting"] + found["flying"]
        assert waited["cafe.ap"] > 500 and waited["cafe.laptop"] > 5, "or nothing was compared"
        assert visit.said == []


def test_the_animation_does_not_start_by_itself(browser, moving):
    with Visit(browser, moving[1], reduced_motion="reduce") as visit:
        stage = visit.page.query_selector(".stage")
        stage.scroll_into_view_if_needed()
        before = stage.evaluate(ASK, ["time"])
        visit.page.wait_for_timeout(300)
        assert stage.evaluate(ASK, ["time"]) == before


def test_without_scripts_the_network_is_a_still_picture(browser, moving):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(moving[1].as_uri())
    assert page.is_visible("#network svg.topology")
    assert not page.is_visible(".stage")
    assert page.is_visible("#packets noscript p")
    context.close()


def test_a_study_shows_packets_of_its_first_run(browser, reports):
    with Visit(browser, reports["study"]) as visit:
        assert visit.page.is_visible(".stage canvas")
        assert "Of the first run, delay = 20ms." in visit.page.inner_text("#packets .lead")
