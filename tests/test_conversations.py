"""Conversations with other implementations: their pages are made from the stored results."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "validation"))

import harness  # noqa: E402


@pytest.mark.parametrize("peer", ["linux-dccp", "linux-sctp", "linux-tcp", "usrsctp"])
def test_the_results_hold_and_the_page_is_made_from_them(peer, tmp_path):
    page, script = tmp_path / "page.md", ROOT / "validation" / peer / "run.py"
    subprocess.run([sys.executable, str(script), "--judge", "--copy", str(page)], check=True)
    assert page.read_text() == (ROOT / "docs" / "validation" / f"{peer}.md").read_text()


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
