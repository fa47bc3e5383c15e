"""The reference is complete: every key has an example that runs, and every public name a section."""

import importlib
import re
import sys
from pathlib import Path

import pytest

import talkspurt

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))
import examples  # noqa: E402
import hooks  # noqa: E402

FOLDER = ROOT / "docs" / "reference"
PAGES = [FOLDER / "scenario.md", *sorted((FOLDER / "scenario").glob("*.md"))]
REFERENCE = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
EVERYTHING = examples.tables()
NOT_SET = {("flows.NAME", "group"): "talkspurt sets it in the flows that a `count` creates"}
"""Keys that a scenario does not set, with the reason."""


@pytest.mark.parametrize("file", sorted(examples.FOLDER.glob("*.toml")), ids=lambda f: f.stem)
def test_an_example_runs(file):
    found = talkspurt.run(file, study=True)
    assert found.flows["generated_packets"].min() > 0


@pytest.mark.parametrize(
    "section", examples.sections(REFERENCE), ids=lambda s: f"{s.path} {s.kind or ''}".strip()
)
def test_every_key_has_an_example(section):
    assert examples.examples(section, EVERYTHING), "no example has this table"
    keys = {key for key in section.keys if (section.path, key) not in NOT_SET}
    if section.occurrence:  # the same parameters, in another transport
        keys -= {key for key, meaning in section.keys.items() if meaning.startswith("DCCP only")}
    assert keys - examples.shown(section, EVERYTHING) == set()


def test_no_key_is_missing_from_the_reference():
    # Each row of a table of keys belongs to a section.
    rows = re.findall(r"^\| `\w+` \| .* \| .* \| .* \|$", REFERENCE, re.MULTILINE)
    assert sum(len(section.keys) for section in examples.sections(REFERENCE)) == len(rows) > 400


def test_examples_are_in_the_page():
    page = examples.insert(REFERENCE, "examples")
    for table in ("[links.red.queue]", "[flows.sctp.transport]", "[replications]"):
        assert f"```toml\n{table}\n" in page


@pytest.mark.parametrize("module", ["talkspurt", "talkspurt.metrics", "talkspurt.figures"])
def test_every_public_name_is_in_the_reference_of_python(module):
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    described = set(re.findall(r"^::: (\S+)", page, re.MULTILINE))
    names = {name for name in importlib.import_module(module).__all__ if name != "__version__"}
    assert {f"{module}.{name}" for name in names} - described == set()


@pytest.mark.parametrize(
    "page",
    [
        *("../README.md", "index.md", "metrics.md", "gallery.md"),
        *(f"reference/{n}.md" for n in ("cli", "departures", "tables")),
        *(f"notebooks/{file.stem}.md" for file in hooks.NOTEBOOKS),
    ],
)
def test_a_made_page_is_what_the_program_says(page):
    there = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert there == hooks.pages()[page], "`make pages` writes it"
