"""Implements ``talkspurt export --to ns2-script`` and ``talkspurt crosscheck``."""

from __future__ import annotations

import errno
import re
import sys
from pathlib import Path

from talkspurt.errors import StoreError
from talkspurt.ns2 import crosscheck as both
from talkspurt.ns2 import script
from talkspurt.running import sets_of
from talkspurt.scenario import read
from talkspurt.terminal.progress import Bar
from talkspurt.visible import print_json, visible


def export(scenario: Path, *, out: Path | None, sets: list[str], seed: int | None) -> None:
    """Write a scenario as a script for ns-2."""
    made = script.write(read(scenario, set=sets_of(sets), seed=seed))
    if out is None:
        sys.stdout.write(made.text)
    else:
        _refuse_other(
            out, rb"for ns-2\.35, written by talkspurt", "script of ours; choose another --out"
        )
        out.write_text(made.text, encoding="utf-8")
        print(f"{out}: its trace may become {script.size_text(made.trace_bytes)} long")
    _say(made.notes)


def crosscheck(
    scenario: Path, *, sets: list[str], seed: int | None, as_json: bool, trace: Path | None
) -> None:
    """Run a scenario in both simulators and print their measurements."""
    if trace is not None:
        _refuse_other(trace, rb"\A[-+rdhv] ", "trace of ns-2; choose another --trace")
    question = read(scenario, set=sets_of(sets), seed=seed)
    with Bar(question.plan.title) as bar:
        found = both.crosscheck(
            question, trace=trace, say=lambda words: _say([words]), on_progress=bar.on_progress
        )
    if as_json:
        print_json(found.to_json())
        return
    from talkspurt.terminal import tables

    tables.print_crosscheck(found)
    _say(found.notes)


def _refuse_other(file: Path, like: bytes, what: str) -> None:
    """Raise StoreError if an existing file is not an earlier output: notes, or a scenario."""
    if not file.is_file():
        return
    with file.open("rb") as there:
        head = there.read(2000)
    if head and not re.search(like, head):
        raise StoreError(errno.EEXIST, f"exists and is no {what}", str(file))


def _say(words: list[str]) -> None:
    for line in words:
        print(f"talkspurt: {visible(line)}", file=sys.stderr)
