"""The scenario editor of the playground, in a real browser, and its build from sources."""

import json
import re
import shutil
from pathlib import Path

import pytest

from command import process

ROOT = Path(__file__).parent.parent
EDITOR = ROOT / "playground" / "editor"
VENDOR = ROOT / "playground" / "vendor"
SCHEMA = (ROOT / "schema" / "scenario.schema.json").read_text(encoding="utf-8")
browsing = pytest.mark.browser

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; script-src 'self' file:; style-src 'unsafe-inline'">
<title>Editor</title>
<style>{style} #editor {{ height: 30rem; }}</style>
<button id="before">Before</button>
<div id="editor"></div>
<button id="after">After</button>
<script src="editor.js"></script>
<script src="schema.js"></script>
<script src="page.js"></script>
</html>
"""
SCRIPT = """
globalThis.violations = [];
document.addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective));
globalThis.changes = [];
globalThis.made = TalkspurtEditor.editor(document.querySelector("#editor"), {
  text: "", schema, label: "Scenario", changed: (text) => changes.push(text), files: () => ["my trace.csv"],
});
"""
SCENARIO = '''# A call.
title = "One [call]"
description = """
[flows.not_a_header]
"""
duration = "10s"
seed = 7

[links.path]
from = "a"
to = "b"
rate = "1Mbit/s"
delay = "20ms"
queue = { kind = "droptail", packets = 25 }

[flows.call]
from = "a"
to = "b"
transport = { kind = "tcp", controller = "cubic" }
source = { kind = "speech", codec = "pcmu" }

[[axes]]
path = "flows.call.transport"
values = [
  { kind = "udp" }, # plain
  { kind = "tcp" },
]
'''


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    place = tmp_path_factory.mktemp("editor")
    style = (ROOT / "python/talkspurt/web/report.css").read_text(encoding="utf-8")
    shutil.copy(VENDOR / "editor.js", place)
    (place / "schema.js").write_text(f"globalThis.schema = {SCHEMA};", encoding="utf-8")
    (place / "page.js").write_text(SCRIPT, encoding="utf-8")
    for name, css in (("page", style), ("bare", ":root { color-scheme: light dark; }")):
        (place / f"{name}.html").write_text(PAGE.format(style=css), encoding="utf-8")
    return place


class Editor:
    """The editor of a page, and what the page said."""

    def __init__(self, page):
        self.page, self.said = page, []
        page.set_default_timeout(5000)
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))

    @property
    def text(self):
        return self.page.evaluate("made.text")

    def put(self, text):
        """Replaces the text; the cursor stands where `|` is."""
        before, _, after = text.partition("|")
        self.page.evaluate("text => { made.replace(text); made.focus(); }", before + after)
        self.page.keyboard.press("Control+Home")
        for _ in before:
            self.page.keyboard.press("ArrowRight")

    def offered(self):
        """Asks for completions; returns their labels with their details."""
        self.page.keyboard.press("Control+Space")
        self.page.wait_for_selector(".cm-tooltip-autocomplete > ul > li")
        read = """items => items.map(item => [
          item.querySelector(".cm-completionLabel").textContent,
          item.querySelector(".cm-completionDetail")?.textContent ?? "",
        ])"""
        return dict(self.page.eval_on_selector_all(".cm-tooltip-autocomplete > ul > li", read))

    def take(self, label):
        items = self.page.locator(".cm-tooltip-autocomplete > ul > li")
        items.filter(has_text=re.compile(f"^{re.escape(label)}")).first.click()
        self.page.wait_for_timeout(100)


@pytest.fixture
def editor(browser, site):
    with browser.new_context() as context:
        made = Editor(context.new_page())
        made.page.goto((site / "page.html").as_uri())
        made.page.wait_for_function("globalThis.made")
        yield made
        assert made.said == []
        assert made.page.evaluate("violations") == []


@browsing
def test_typed_text_is_the_text(editor):
    editor.page.evaluate("made.focus()")
    editor.page.keyboard.type("seed = 7\n# it's [a] note\nmeasure = { from = ")
    expected = "seed = 7\n# it's [a] note\nmeasure = { from = }"
    assert editor.text == expected
    assert editor.page.evaluate("changes.at(-1)") == expected
    content = editor.page.locator(".cm-content")
    assert content.get_attribute("aria-label") == "Scenario"
    assert content.get_attribute("aria-multiline") == "true"


@browsing
def test_a_replaced_text_comes_back_by_undo_and_is_no_change_by_the_user(editor):
    editor.page.evaluate("made.focus()")
    editor.page.keyboard.type("seed = 7")
    changes = editor.page.evaluate("changes.length")
    editor.page.evaluate("text => made.replace(text)", SCENARIO)
    assert editor.text == SCENARIO
    assert editor.page.evaluate("changes.length") == changes
    editor.page.keyboard.press("Control+z")
    assert editor.text == "seed = 7"
    assert editor.page.evaluate("changes.at(-1)") == "seed = 7"
    editor.page.keyboard.press("Control+y")
    assert editor.text == SCENARIO


PROBLEMS = [
    {"line": 13, "path": "links.path.delay", "message": "is too long", "hint": "at most 1s"},
    {"line": None, "path": "flows", "message": "is missing", "hint": None},
    {"line": 999, "path": None, "message": "ends too soon"},
]


@browsing
def test_problems_are_shown_at_their_lines(editor):
    editor.put(SCENARIO)
    editor.page.evaluate("problems => made.show(problems)", PROBLEMS)
    underlined = editor.page.locator(".cm-lintRange-error")
    assert underlined.all_text_contents() == ["# A call.", 'delay = "20ms"']
    assert editor.page.locator(".cm-lint-marker-error").count() == 3
    underlined.nth(1).hover()
    shown = editor.page.wait_for_selector(".cm-tooltip .cm-diagnostic")
    assert shown.text_content() == "links.path.delay: is too long (at most 1s)"
    editor.page.evaluate("made.show([])")
    assert underlined.count() == 0


@browsing
def test_a_line_is_gone_to(editor):
    editor.put("\n" * 300 + "  seed = 1")
    editor.page.evaluate("made.goTo(301)")
    editor.page.keyboard.type("x")
    assert editor.text.endswith("\n  xseed = 1")
    assert editor.page.locator(".cm-activeLine").is_visible()


COMPLETED = {
    "keys of a flow": ("[flows.call]\n|", {"from", "to", "transport", "source"}, {"title", "kind"}),
    "keys that are not there": (
        '[flows.call]\nfrom = "a" # from\n|\nto = "b"\n', {"transport"}, {"from", "to"},
    ),
    "keys of the whole": ("|", {"title", "duration", "flows", "axes"}, {"from"}),
    "keys of an inline table": (
        '[flows.call]\ntransport = { kind = "tcp", | }', {"controller"}, {"kind", "ccid"},
    ),
    "keys of every kind": ("[flows.call]\ntransport = { | }", {"kind", "controller", "ccid"}, {"from"}),
    "keys by a dot": ('[flows.call]\ntransport.kind = "dccp"\ntransport.|', {"ccid"}, {"controller", "kind"}),
    "keys below a header": (
        '[flows.call.transport]\nkind = "dccp"\n|\n', {"ccid"}, {"controller", "from"},
    ),
    "keys of a list's table": ("[[axes]]\nname = 'x'\n\n[[axes]]\n|", {"name", "path", "values"}, {"from"}),
    "keys of a definition": ('[links.a]\nqueue = { kind = "red", | }', {"min_threshold"}, {"kind"}),
    "no header in a text": ('[flows.call]\ntransport = """\n[links.a]\n"""\n|', {"source"}, {"rate"}),
    "after a list without its end": ("[[axes]]\nvalues = [\n  1,\n\n[flows.call]\n|", {"source"}, {"values"}),
    "kinds": (
        "[flows.call]\ntransport = { kind = | }", {'"udp"', '"tcp"', '"dccp"', '"beritelli"'}, {'"cubic"'},
    ),
    "other kinds": ('[flows.call]\ntransport = { kind = "tc|p" }', {'"tcp"'}, set()),
    "values": (
        '[flows.call]\nsource = { kind = "speech", codec = | }', {'"pcmu"', '"opus"', '"g722"'}, {'"speech"'},
    ),
    "values in quotes": (
        '[flows.call]\nsource = { kind = "speech", codec = "|" }', {'"pcmu"', '"opus"'}, {'"speech"'},
    ),
    "numbers": ('[flows.call]\ntransport = { kind = "dccp", ccid = |}', {"2", "3", "4"}, set()),
    "yes or no": ("[record]\npackets = |", {"true", "false"}, set()),
    "headers": ("[|]", {"flows", "links", "axes", "record"}, {"title", "duration"}),
    "headers in headers": (
        "[flows.call]\n[flows.call.|]", {"transport", "source"}, {"from", "call"},
    ),
    "names": ("[flows.call]\n[flows.other]\n[flows.|]", {"call", "other"}, {"transport"}),
}  # fmt: skip


@browsing
@pytest.mark.parametrize("case", COMPLETED)
def test_what_the_schema_allows_is_offered(editor, case):
    text, some, others = COMPLETED[case]
    editor.put(text)
    offered = set(editor.offered())
    assert some <= offered
    assert not others & offered


@browsing
def test_the_default_is_named(editor):
    editor.put("[record]\npackets = |")
    assert editor.offered() == {"false": "default", "true": ""}
    editor.put("|")
    offered = editor.offered()
    assert offered["title"] == "text, required"
    assert offered["seed"] == "whole number, 1"
    assert offered["flows"] == "tables by name, required"


@browsing
@pytest.mark.parametrize(
    "text", ["# |", 'title = "[|"', '[flows.call]\nfrom = "|"', "[nothing]\n|"]
)
def test_nothing_is_offered_where_nothing_is_known(editor, text):
    editor.put(text)
    editor.page.keyboard.press("Control+Space")
    editor.page.wait_for_timeout(200)
    assert editor.page.locator(".cm-tooltip-autocomplete").count() == 0


@browsing
@browsing
@pytest.mark.parametrize(
    "text",
    [
        '[links.a]\ntrace = { kind = "table", file = "|" }',
        '[links.a]\ntrace = { kind = "table", file = | }',
        '[flows.a.source]\nkind = "speech"\nfile = "m|',
    ],
)
def test_files_that_were_added_are_offered(editor, text):
    editor.put(text)
    assert editor.offered() == {'"my trace.csv"': "your file"}
    editor.take('"my trace.csv"')
    assert 'file = "my trace.csv"' in editor.text and editor.text.count('"') % 2 == 0


def test_a_table_is_written_by_completions(editor):
    editor.put("[flows.call]\n|")
    editor.page.keyboard.type("tran")
    for label in ("transport", "kind", '"dccp"'):
        editor.page.wait_for_selector(".cm-tooltip-autocomplete > ul > li")
        editor.take(label)
    assert editor.text == '[flows.call]\ntransport = { kind = "dccp" }'
    editor.page.keyboard.type(", cci")
    editor.page.wait_for_selector(".cm-tooltip-autocomplete > ul > li")
    editor.page.wait_for_timeout(150)  # until an Enter is taken for the list
    editor.page.keyboard.press("Enter")
    editor.page.wait_for_timeout(100)
    assert "ccid = " in editor.text


@browsing
@pytest.mark.parametrize(
    ("typed", "label", "text"),
    [
        ("[fl", "flows", "[flows.]"),
        ("[ax", "axes", "[[axes]]"),
        ("[[ax", "axes", "[[axes]]"),
        ("[rec", "record", "[record]"),
        ("dur", "duration", 'duration = ""'),
        ("flo", "flows", "[flows.]"),
    ],
)
def test_what_follows_a_name_is_written_with_it(editor, typed, label, text):
    editor.put("|")
    editor.page.keyboard.type(typed)
    editor.page.wait_for_selector(".cm-tooltip-autocomplete > ul > li")
    editor.take(label)
    assert editor.text == text


def word(editor, line, text):
    """Moves the mouse over a word of a line."""
    found = editor.page.locator(".cm-line").nth(line - 1)
    box = found.evaluate(
        """(line, text) => {
          const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
          while (walker.nextNode()) {
            const at = walker.currentNode.data.indexOf(text);
            if (at < 0) continue;
            const range = document.createRange();
            range.setStart(walker.currentNode, at);
            range.setEnd(walker.currentNode, at + text.length);
            const { x, y, width, height } = range.getBoundingClientRect();
            return { x: x + width / 2, y: y + height / 2 };
          }
        }""",
        text,
    )
    editor.page.mouse.move(box["x"] - 2, box["y"])
    editor.page.mouse.move(box["x"], box["y"])
    return editor.page.wait_for_selector(".cm-tooltip-hover .cm-about").text_content()


@browsing
def test_a_key_is_explained(editor):
    editor.put(SCENARIO)
    properties = json.loads(SCHEMA)["properties"]
    said = word(editor, 7, "seed")
    assert "whole number" in said
    assert properties["seed"]["description"] in said
    assert re.search(r"minimum: 0maximum: \d+default: 1$", said)
    editor.page.mouse.move(0, 0)
    editor.page.wait_for_selector(".cm-tooltip-hover", state="detached")
    said = word(editor, 13, "delay")
    assert "duration" in said
    assert "units: h, min, s, ms, us, ns" in said


@browsing
@pytest.mark.parametrize(
    ("line", "text", "expected"),
    [
        (14, "queue", "table"),
        (14, "kind", '"fq_codel"'),
        (19, "controller", 'values: "tahoe"'),
        (19, '"tcp"', "Transmission Control Protocol"),
        (22, "axes", "list of tables"),
        (16, "flows", "tables by name"),
    ],
)
def test_a_key_of_any_table_is_explained(editor, line, text, expected):
    editor.put(SCENARIO)
    assert expected in word(editor, line, text)


@browsing
def test_tab_leaves_the_editor(editor):
    editor.put(SCENARIO)
    editor.page.keyboard.press("Tab")
    assert editor.page.evaluate("document.activeElement.id") == "after"
    editor.page.keyboard.press("Shift+Tab")
    assert editor.page.evaluate("document.activeElement.className").startswith("cm-content")
    editor.page.keyboard.press("Shift+Tab")
    assert editor.page.evaluate("document.activeElement.id") == "before"
    assert editor.text == SCENARIO


@browsing
def test_text_is_searched(editor):
    editor.put(SCENARIO)
    editor.page.keyboard.press("Control+f")
    editor.page.wait_for_selector(".cm-search input[name=search]")
    editor.page.keyboard.type("kind")
    assert editor.page.locator(".cm-searchMatch").count() == SCENARIO.count("kind")
    editor.page.keyboard.press("Escape")
    assert editor.page.locator(".cm-search").count() == 0


CONTRASTS = """() => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const luminance = (...colours) => {
    for (const colour of colours) { context.fillStyle = colour; context.fillRect(0, 0, 1, 1); }
    const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = getComputedStyle(document.querySelector(".cm-editor")).backgroundColor;
  const active = getComputedStyle(document.querySelector(".cm-activeLine")).backgroundColor;
  const found = {};
  for (const part of document.querySelectorAll(".cm-line, .cm-line span, .cm-lineNumbers .cm-gutterElement")) {
    const ink = getComputedStyle(part).color;
    for (const ground of [[paper], [paper, active]]) {
      const [one, other] = [luminance(...ground, ink), luminance(...ground)];
      const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
      found[ink] = Math.min(found[ink] ?? Infinity, ratio);
    }
  }
  return found;
}"""


@browsing
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["page", "bare"])
def test_text_has_contrast_in_both_schemes(browser, site, name, scheme):
    with browser.new_context(color_scheme=scheme) as context:
        page = context.new_page()
        page.goto((site / f"{name}.html").as_uri())
        page.evaluate("text => { made.replace(text); made.goTo(7); }", SCENARIO)
        contrasts = page.evaluate(CONTRASTS)
        assert len(contrasts) >= 5
        assert min(contrasts.values()) >= 4.5, contrasts


def test_the_lock_names_no_host():
    lock = (EDITOR / "package-lock.json").read_text(encoding="utf-8")
    assert "resolved" not in lock
    assert "http" not in lock
    assert "integrity" in lock


def test_every_package_has_its_licence():
    packages = json.loads((EDITOR / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    licences = (VENDOR / "LICENSES").read_text(encoding="utf-8")
    missing = [
        name
        for name, version in packages.items()
        if name not in ("axe-core", "esbuild") and f"{name} {version} (MIT)\n" not in licences
    ]
    assert missing == []


def test_the_sources_build_the_same_bytes(packages):
    built = process("npm", "run", "build", cwd=packages)
    assert built.returncode == 0, built.stderr
    for name in ("editor.js", "markdown.js", "tables.js", "LICENSES"):
        made = packages.parent / "vendor" / name
        assert made.read_bytes() == (VENDOR / name).read_bytes(), name
