"""CITATION.cff says what the package says about itself."""

import re
import tomllib
from pathlib import Path

import talkspurt

ROOT = Path(__file__).parent.parent
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def field(name):
    found = re.search(rf"^{name}: (.+)$", CITATION, re.MULTILINE)
    return found and found[1]


def test_it_has_what_the_format_requires():
    """Citation File Format 1.2.0: cff-version, message, title and at least one author."""
    assert (field("cff-version"), field("type")) == ("1.2.0", "software")
    assert field("message") and field("title") == "talkspurt"
    assert "\nauthors:\n  - name: talkspurt contributors\n" in CITATION


def test_version_and_licence_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert field("version") == talkspurt.__version__
    licences = re.search(r"^license:\n((?:  - .+\n)+)", CITATION, re.MULTILINE)[1]
    assert re.findall(r"- (.+)", licences) == project["license"].split(" OR ")
