"""Writes the counts of docs/studies.md and docs/checked.md from a re-run of the studies.

    talkspurt reproduce all --out runs/reproduce-all
    python validation/studies.py runs/reproduce-all/rows.json

Sentences with a count are located by their text; a missing one aborts the script.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from talkspurt.reproduce import NAMES
from talkspurt.reproduce.rows import CLASSES

DOCS = Path(__file__).parent.parent / "docs"


def table(rows: list[dict[str, Any]]) -> str:
    """The rows of the table: one per study, and the total."""
    lines = []
    for name in (*NAMES, "all"):
        verdicts = [row["verdict"] for row in rows if name in ("all", row["id"].partition("/")[0])]
        counted = Counter(verdicts)
        cells = [name, len(verdicts), *(counted[verdict] for verdict in CLASSES)]
        lines.append("| " + " | ".join(map(str, cells)) + " |\n")
    return "".join(lines)


def replaced(pattern: str, new: str, text: str) -> str:
    """The text with the pattern's only match replaced; there must be exactly one."""
    text, count = re.subn(pattern, lambda _: new, text, flags=re.MULTILINE)
    if count != 1:
        raise SystemExit(f"found {count} times: {pattern}")
    return text


def main(file: Path) -> None:
    """Rewrite both pages."""
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    changed = sum(bool(row["changed_after_runs"]) for row in rows)
    page = DOCS / "studies.md"
    text = page.read_text(encoding="utf-8")
    names = "|".join((*NAMES, "all"))
    text = replaced(rf"(^\| (?:{names}) \|(?: \d+ \|){{{len(CLASSES) + 1}}}\n)+", table(rows), text)
    text = replaced(r"of \d+ of the \d+ rows", f"of {changed} of the {len(rows)} rows", text)
    page.write_text(text, encoding="utf-8")
    page = DOCS / "checked.md"
    text = page.read_text(encoding="utf-8")
    counted = f"five studies: {len(rows)} values and claims"
    text = replaced(r"five studies: \d+ values and claims", counted, text)
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
