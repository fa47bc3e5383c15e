"""Conversations, apps and calls: their pages are made from the stored results."""

import sys

import pytest

from command import output
from conftest import ROOT

sys.path.insert(0, str(ROOT / "validation"))

import harness

PAGES = {"apps": ["apps/page.py"], "calls": ["emulate/calls_page.py"]}
for peer in ("linux-dccp", "linux-sctp", "linux-tcp", "usrsctp"):
    PAGES[peer] = [f"{peer}/run.py", "--judge", "--copy"]


@pytest.mark.parametrize("page", PAGES)
def test_the_results_hold_and_the_page_is_made_from_them(page, tmp_path):
    script, *options = PAGES[page]
    made = tmp_path / "page.md"
    output(sys.executable, ROOT / "validation" / script, *options, made)
    assert made.read_text() == (ROOT / "docs" / "validation" / f"{page}.md").read_text()


class Silent(harness.Peer):
    """Another implementation, with a conversation that is right."""

    name, cases, versions = "none", [harness.Case("a", "A")], ()

    def converse(self, case, number, capture, result):
        """Says nothing."""

    def judge(self, case, result):
        """Finds nothing."""
        return []

    def parts(self, found):
        """Has no tables."""
        return {}


@pytest.mark.parametrize(
    ("before", "now", "kept"), [("", "", True), ("changes", "", False), ("", "changes", False)]
)
def test_a_run_resumes_only_what_its_very_code_held(before, now, kept, tmp_path):
    old = {"made": {"commit": "c", "modified": before}, "conversations": {"a": {"old": True}}}
    harness.save(tmp_path / "results.json.gz", old)
    results = {"made": {"commit": "c", "modified": now}, "conversations": {}}
    harness.hold(Silent(), [(0, Silent.cases[0])], results, tmp_path, True, 1)
    assert ("old" in results["conversations"]["a"]) == kept


@pytest.mark.parametrize("changes", ["", "a file"])
def test_a_page_that_was_judged_with_uncommitted_changes_says_so(changes, monkeypatch):
    pages = []
    monkeypatch.setattr(harness, "uncommitted", lambda *_: changes)
    monkeypatch.setattr(harness, "save", lambda *_: None)
    monkeypatch.setattr(harness, "fill", lambda page, parts, to: pages.append(parts["made"]))
    told = dict.fromkeys(("date", "modified", "tshark", "rustc"), "") | {"commit": "before"}
    one = {"wrong": [], "tshark": {}}
    assert harness.publish(Silent(), {"made": told, "conversations": {"a": one}}) == 0
    assert "; judged, and this page written, with `" in pages[0]
    assert ("with uncommitted changes" in pages[0]) == bool(changes)
