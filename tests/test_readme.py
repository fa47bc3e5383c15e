"""The README shows what the first call prints, and the first page of the documentation all others."""

import re
from pathlib import Path

from command import succeed

ROOT = Path(__file__).parent.parent


def parts(text):
    """The table of calls, what to know about their scores, and the answer, which comes last."""
    table, *_, about, answer = text.split("\n\nResults:")[0].strip().split("\n\n")
    return table, about, answer


def test_the_table_of_the_first_call_is_what_it_prints(tmp_path):
    first_call = ROOT / "scenarios" / "first-call.toml"
    done = succeed(
        *("run", first_call, "--no-report", "--out", tmp_path / "out"),
        cwd=tmp_path,
        env={"COLUMNS": "80"},
    )
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = next(block for block in readme.split("```\n") if block.startswith("Calls\n"))
    assert parts(block) == parts(done.stdout)


def test_the_first_page_leads_to_every_other():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("nav:", 1)[1].split("hooks:")[0]
    pages = set(re.findall(r": (\S+\.md)(?: #.*)?$", nav, re.MULTILINE)) - {"index.md"}
    docs = ROOT / "docs"
    linked = set(re.findall(r"\]\((\S+\.md)\)", (docs / "index.md").read_text(encoding="utf-8")))
    # The reference leads to its own pages.
    for page in (docs / "reference" / "scenario.md", *(docs / "reference" / "scenario").glob("*")):
        links = re.findall(r"\]\(([^):#]+\.md)", page.read_text(encoding="utf-8"))
        linked |= {(page.parent / link).relative_to(docs).as_posix() for link in links}
    assert len(pages) > 20
    assert pages - linked == set()


def test_every_link_of_the_repository_leads_to_a_file():
    missing = []
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", text):
            if not re.match(r"https?:", link) and not (page.parent / link).exists():
                missing.append(f"{page.relative_to(ROOT)}: {link}")
    assert missing == []
