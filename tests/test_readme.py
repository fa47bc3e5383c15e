"""The README shows what the first call prints, and the first page of the documentation all others."""

import re
from pathlib import Path

from command import talkspurt

ROOT = Path(__file__).parent.parent


def table(text):
    """The lines from a table's head to the next blank line or fence, without trailing spaces."""
    lines = iter(text.splitlines())
    found = [next(line for line in lines if line.startswith("call "))]
    for line in lines:
        if not line.strip() or line.startswith("```"):
            break
        found.append(line)
    return [line.rstrip() for line in found]


def test_the_table_of_the_first_call_is_what_it_prints(tmp_path):
    first_call = ROOT / "scenarios" / "first-call.toml"
    done = talkspurt("run", first_call, "--no-report", "--out", tmp_path / "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = next(block for block in readme.split("```\n") if block.startswith("call "))
    assert table(block) == table(done.stdout)


def test_the_first_page_leads_to_every_other():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("nav:", 1)[1].split("hooks:")[0]
    pages = set(re.findall(r": (\S+\.md)$", nav, re.MULTILINE)) - {"index.md"}
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert len(pages) > 20
    assert pages - set(re.findall(r"\]\((\S+\.md)\)", index)) == set()
