"""Conversations with other implementations: their pages are made from the stored results."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("peer", ["linux-dccp", "linux-sctp", "linux-tcp", "usrsctp"])
def test_the_results_hold_and_the_page_is_made_from_them(peer, tmp_path):
    page, script = tmp_path / "page.md", ROOT / "validation" / peer / "run.py"
    subprocess.run([sys.executable, str(script), "--judge", "--copy", str(page)], check=True)
    assert page.read_text() == (ROOT / "docs" / "validation" / f"{peer}.md").read_text()
