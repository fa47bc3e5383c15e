#!/usr/bin/env python3
"""Write the page of a question and its figures, from stored measures or from new runs.

    .venv/bin/python validation/questions/page.py bucket [--run]

The text of docs/questions/NAME.md is NAME.md beside this file. Its names are those of measures.py
and NAME.py, and the variables of `values`, from NAME.json.gz, which has a row for each run:

* `{fifo.wait_max:.0f*1e3}` is replaced by a value. The format is one of Python, and may end with a
  factor if the unit shown is not that of the measure.
* Lines `? step.lost.high == 0` before a paragraph or an item are its conditions. If one does not
  hold, or if a paragraph has numbers and no condition, no page is written.
* A row of a table that begins with `{each queues}` is repeated for each item of a mapping: the
  first cell is the `key`, and the other cells show its value, `row`.

With `--run`, the studies in scenarios/questions are run first: on two cores, ssthresh, transport
and wifi take three minutes each, and bucket takes ten.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import re
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import measures
import polars as pl
from measures import STUDIES, Row
from rows import Rows, shown

from talkspurt import api
from talkspurt._terminal.progress import Bar
from talkspurt.scenarios.source import read

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from made import ROOT, line, load, now, save, uncommitted
from tables import table

if TYPE_CHECKING:
    from talkspurt.results.result import Result

HERE = Path(__file__).resolve().parent
PAGES = ROOT / "docs" / "questions"


class UntrueError(AssertionError):
    """A statement of a page is contradicted by the runs, or has no condition."""


# Runs.


def run(name: str, study: str) -> dict[str, Any]:
    """Run a study on all cores; return a column for each axis and each measure."""
    question = read(ROOT / "scenarios" / "questions" / f"{study}.toml")
    rows: dict[int, Row] = {}
    digests: dict[int, str] = {}

    def keep(i: int, result: Result) -> Result:
        given = {**result.settings, "replicate": result.replicate, "seed": result.seed}
        rows[i] = given | STUDIES[name][study](result)
        digests[i] = result.digest
        # Another reference to the run would keep all its tables in memory.
        return replace(result, _read_table={}.get, _read_audio={}.get, _tables={})

    with Bar(question.plan.title) as bar:
        api.collect(
            question,
            range(len(question.plan)),
            on_progress=bar.on_progress,
            keeping=api.Keeping(keep),
        )
    digest = hashlib.sha256("".join(digests[i] for i in sorted(digests)).encode())
    columns = dict.fromkeys(key for row in rows.values() for key in row)
    return {
        "settings": len(rows) // question.plan.replications,
        "seeds": question.plan.replications,
        "digest": digest.hexdigest()[:16],
        "rows": {key: [_short(rows[i].get(key)) for i in sorted(rows)] for key in columns},
    }


def _short(value: Any) -> Any:
    """Round to eight significant digits, more than any table shows."""
    return float(f"{value:.8g}") if isinstance(value, float) else value


def run_all(name: str, *, dirty: bool) -> None:
    """Run the studies of a page and store their measures; exit if there are other changes."""
    data = HERE / f"{name}.json.gz"
    changes = uncommitted(HERE / "*.json.gz", PAGES)
    if changes and not dirty:
        sys.exit(f"{name}: uncommitted changes (commit them, or use --dirty):\n{changes}")
    made = {
        "date": now(),
        "commit": line("git", "rev-parse", "HEAD"),
        "modified": bool(changes),
    }
    save(data, made | {"studies": {study: run(name, study) for study in STUDIES[name]}})


# Pages.

FIELD = re.compile(r"\{([^{}]+?)(?::([+]?(?:\.\d)?[fg](?:\*[\de-]+)?))?\}")
"""An expression in braces, with its format."""
WRAP: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}


def stored(name: str) -> tuple[dict[str, Any], list[Rows]]:
    """Return what is stored for a page, and the rows of its studies."""
    data = load(HERE / f"{name}.json.gz")
    studies = data["studies"].values()
    return data, [Rows(pl.DataFrame(one["rows"], infer_schema_length=None)) for one in studies]


def page(name: str) -> tuple[str, int]:
    """Return the text of a page from stored measures, and the number of its conditions.

    Raises:
        UntrueError: A condition does not hold, or a paragraph with numbers has none.
    """
    data, studies = stored(name)
    module = importlib.import_module(name)
    template = (HERE / f"{name}.md").read_text(encoding="utf-8")
    return write(
        template,
        {**vars(measures), **vars(module), **module.values(*studies), "made": _made(name, data)},
    )


def write(template: str, names: dict[str, Any]) -> tuple[str, int]:
    """Check the conditions of a text and replace its fields; return the number of conditions."""
    written = [_block(block, names) for block in template.strip().split("\n\n")]
    count = len(re.findall(r"^\? ", template, re.MULTILINE))
    return "\n\n".join(written) + "\n", count


def _block(block: str, names: dict[str, Any]) -> str:
    if block.startswith("|"):
        return "\n".join(row for line in block.split("\n") for row in _rows(line, names))
    if block.startswith(("#", "!", "<", "```", "{made}")):
        return fill(block, names)
    written, conditions = [], []
    for part in _parts(block):
        if part.startswith("? "):
            conditions.append(part[2:])
            continue
        if untrue := [one for one in conditions if not eval(one, names)]:
            raise UntrueError(f"condition fails: {'; '.join(untrue)}: {part}")
        if not conditions and any(spec for _, spec in FIELD.findall(part)):
            raise UntrueError(f"no condition: {part}")
        indent = "  " if part.startswith("* ") else ""
        written.append(textwrap.fill(fill(part, names), 100, subsequent_indent=indent, **WRAP))
        conditions = []
    if conditions:
        raise UntrueError(f"conditions without a statement: {conditions}")
    return "\n".join(written)


def _parts(block: str) -> list[str]:
    """Split into conditions, and a paragraph or items."""
    parts: list[str] = []
    for each in block.split("\n"):
        ends = parts and parts[-1].startswith("? ") and not each.startswith("  ")
        if not parts or ends or each.startswith(("? ", "* ")):
            parts.append(each)
        else:
            parts[-1] += " " + each.strip(" ")
    return parts


def _rows(line: str, names: dict[str, Any]) -> list[str]:
    """Replace the fields of a row of a table; repeat it for each item of a mapping."""
    if not (found := re.match(r"\| \{each ([^}]+)\}", line)):
        return [fill(line, names)]
    items = eval(found[1], names).items()
    rest = line[found.end() :]
    return [f"| {key}{fill(rest, {**names, 'key': key, 'row': row})}" for key, row in items]


def fill(text: str, names: dict[str, Any]) -> str:
    """Replace the fields of a text."""
    return FIELD.sub(lambda field: shown(eval(field[1], names), field[2]), text)


def _made(name: str, data: Mapping[str, Any]) -> str:
    """Format the date, the commit and the studies of the runs as a table."""
    modified = " **and changes that are in no commit** (`--dirty`)" if data["modified"] else ""
    rows = [("made", data["date"]), ("talkspurt", f"commit `{data['commit']}`{modified}")]
    for study, one in data["studies"].items():
        what = f"`scenarios/questions/{study}.toml`: {one['settings']} settings, {one['seeds']} "
        what += f"seeds each; SHA-256 of the runs' digests in order {one['digest']}…"
        rows.append(("study", what))
    rows.append(("command", f"`.venv/bin/python validation/questions/page.py {name} --run`"))
    return table(("", ""), rows)


def main() -> None:
    """Parse the command line and write a page."""
    ask = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    ask.add_argument("name", choices=STUDIES)
    ask.add_argument("--run", action="store_true", help="run the studies first")
    ask.add_argument("--dirty", action="store_true", help="allow uncommitted changes")
    asked = ask.parse_args()
    if asked.run:
        run_all(asked.name, dirty=asked.dirty)
    text, count = page(asked.name)
    figures = importlib.import_module(asked.name).figures(*stored(asked.name)[1])
    for figure, data in figures.items():
        (PAGES / f"{asked.name}-{figure}.png").write_bytes(data)
    file = PAGES / f"{asked.name}.md"
    file.write_text(text, encoding="utf-8")
    print(f"wrote {file.relative_to(ROOT)} ({count} conditions hold)")


if __name__ == "__main__":
    main()
