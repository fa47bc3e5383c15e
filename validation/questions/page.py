#!/usr/bin/env python3
"""Run the studies of a question and store the measures of their runs.

    .venv/bin/python validation/questions/page.py bucket

On two cores, ssthresh, transport and wifi take three minutes each, and bucket takes ten.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measures import STUDIES, Row

from talkspurt import api
from talkspurt.scenario import read
from talkspurt.terminal.progress import Bar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from made import ROOT, line, save, uncommitted

if TYPE_CHECKING:
    from talkspurt.result import Result

HERE = Path(__file__).resolve().parent
PAGES = ROOT / "docs" / "questions"


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
        return replace(result, _read_table={}.get, _read_audio={}.get, _tables={}, _gauges={})

    with Bar(question.plan.title) as bar:
        api.collect(question, range(len(question.plan)), on_progress=bar.on_progress, keep=keep)
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


def main() -> None:
    """Parse the command line, run the studies and store their measures."""
    ask = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    ask.add_argument("name", choices=STUDIES)
    ask.add_argument("--dirty", action="store_true", help="allow uncommitted changes")
    asked = ask.parse_args()
    data = HERE / f"{asked.name}.json.gz"
    written = (data, PAGES / f"{asked.name}*")
    changes = uncommitted(*written)
    if changes and not asked.dirty:
        sys.exit(f"{asked.name}: uncommitted changes (commit them, or use --dirty):\n{changes}")
    made = {
        "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC",
        "commit": line("git", "rev-parse", "HEAD"),
        "modified": bool(changes),
    }
    save(data, made | {"studies": {study: run(asked.name, study) for study in STUDIES[asked.name]}})


if __name__ == "__main__":
    main()
