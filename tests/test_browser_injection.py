"""No text of a result is executed in a browser: in its report, in its pictures, in a notebook."""

from __future__ import annotations

import dataclasses

import polars as pl
import pytest

from captures import media, written
from talkspurt import import_trace as imported

pytestmark = pytest.mark.browser
HARM = "document.documentElement.dataset.harmed=1"
HOSTILE = (
    f"</script></style></title></svg><img src=x onerror={HARM}><svg onload={HARM}>"
    f"\" onmouseover=\"{HARM}\" ' autofocus onfocus='{HARM}' `${{{HARM}}}` {{{{ 7 * 7 }}}} \\u003cimg>"
)
LINKS = (
    f"[a](javascript:{HARM}) ![b](http://192.0.2.1/b.png) <img src=x onerror={HARM}> "
    "[c](data:text/html,x)"
)
WORDS = ("transport", "source", "quality_note", "quality_limits", "stand_in", "event", "gauge")


def hostile(result):
    """The result, with hostile text wherever a saved result has text of others."""
    topology = {key: [dict(one) for one in value] for key, value in result.topology.items()}
    for link in topology["links"]:
        link["queue"] = HOSTILE
    topology["flows"] = type(result.topology["flows"])(topology["flows"])
    manifest = {**result.manifest, "file": HOSTILE, "talkspurt": HOSTILE}

    def table(name):
        found = result._read_table(name)
        if found is None:
            return None
        of = dict.fromkeys(WORDS, HOSTILE) | {"stand_in": f"{HOSTILE}: {HOSTILE}".replace(";", ",")}
        words = [c for c in found.columns if c in WORDS and found.schema[c] == pl.String]
        return found.with_columns(
            pl.when(pl.col(c) == "speech").then(pl.col(c)).otherwise(pl.lit(of[c])).alias(c)
            for c in words
        )

    return dataclasses.replace(
        result, title=HOSTILE, description=LINKS + "\n\n" + HOSTILE, manifest=manifest,
        topology=topology, _read_table=table, _tables={}, _outcome=None,
    )  # fmt: skip


def harmless(browser, file):
    """Nothing on the page is executed, and nothing is asked for."""
    context = browser.new_context()
    page = context.new_page()
    asked, dialogs = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(file.as_uri())
    page.wait_for_timeout(500)
    for selector in ("h1", "h4", "svg text", "td", "summary", "figure"):
        for found in page.locator(selector).all()[:5]:
            if found.is_visible():
                found.hover(force=True, timeout=2000)
    assert page.locator("html[data-harmed]").count() == 0
    assert page.locator('img[src="x"], [onload], [onerror], [onmouseover], [onfocus]').count() == 0
    assert page.locator('a[href^="javascript:"], a[href^="data:"]').count() == 0
    assert dialogs == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    context.close()


@pytest.fixture(scope="module")
def places(folder, result, study, tmp_path_factory):
    place = tmp_path_factory.mktemp("hostile")
    bad = hostile(result)
    runs = [hostile(run) for run in study.runs]
    several = dataclasses.replace(study, title=HOSTILE, description=LINKS, runs=runs)
    call = [(i / 50, media(i, 160 * i)) for i in range(100)]
    capture = imported([written(place / f"{HOSTILE.replace('/', '|')[:200]}.pcap", call)])
    pages = {
        "run": bad.report(place / "run.html"),
        "study": several.report(place / "study.html"),
        "import": capture.report(place / "import.html"),
    }
    for name, one in (("notebook", bad), ("notebook of a study", several)):
        pages[name] = place / f"{name}.html"
        pages[name].write_text(f"<!doctype html><meta charset=utf-8>{one._repr_html_()}")
    return pages


@pytest.mark.parametrize("name", ["run", "study", "import", "notebook", "notebook of a study"])
def test_no_text_is_executed(browser, places, name):
    harmless(browser, places[name])
