"""Implements ``talkspurt export --to ns2-script`` and ``talkspurt crosscheck``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from talkspurt._commands.running import sets_of
from talkspurt._storage import file_access
from talkspurt._storage.output_folder import refuse_file
from talkspurt._terminal.progress import Bar, say_news
from talkspurt._text.escaping import print_json, visible
from talkspurt.errors import BadInputError
from talkspurt.ns2 import crosscheck as both
from talkspurt.ns2 import script
from talkspurt.scenarios.source import read


def export(
    scenario: Path, *, out: Path | None, sets: list[str], seed: int | None, overwrite: bool = False
) -> None:
    """Write a scenario as a script for ns-2."""
    made = script.write(read(scenario, set=sets_of(sets), seed=seed))
    if out is None:
        sys.stdout.write(made.text)
    else:
        ours = rb"for ns-2\.35, written by talkspurt"
        _refuse(out, scenario, ours, "script of ours", overwrite)
        out.write_text(made.text, encoding="utf-8")
        print(f"{out}: its trace may become {file_access.size(made.trace_bytes)} long")
    say_news(made.notes)


SEEDS = 5
"""Runs in each simulator, unless the scenario has replications."""


def crosscheck(
    scenario: Path,
    *,
    sets: list[str],
    seed: int | None,
    seeds: int | None,
    as_json: bool,
    trace: Path | None,
    overwrite: bool = False,
) -> None:
    """Run a scenario in both simulators and print their measurements."""
    if seeds is not None and seeds < 1:
        raise BadInputError(f"--seeds {seeds}: expected 1 or more")
    if trace is not None:
        if seeds is not None and seeds > 1:
            raise BadInputError(f"--trace: keeps the trace of one run, and --seeds {seeds} asks "
                                "for more")  # fmt: skip
        seeds = 1
        _refuse(trace, scenario, rb"\A[-+rdhv] ", "trace of ns-2", overwrite)
    changes = sets_of(sets)
    question = read(scenario, set=changes, seed=seed)
    if seeds is None and question.plan.replications == 1 and not question.plan.axes:
        seeds = SEEDS
    if seeds is not None:
        changes = [*changes, ("replications.count", str(seeds))]
        question = read(scenario, set=changes, seed=seed)
    with Bar(question.plan.title) as bar:
        found = both.crosscheck(
            question, trace=trace, say=lambda words: say_news([words]), on_progress=bar.on_progress
        )
    if as_json:
        print_json(found.to_json())
        return
    from talkspurt._terminal import tables

    tables.print_crosscheck(found)
    say_news(found.notes)


def _refuse(file: Path, scenario: Path, like: bytes, what: str, overwrite: bool) -> None:
    """Refuse to replace another file than an earlier output, whose first bytes look like this."""
    if overwrite and file.exists() and file.samefile(scenario):
        raise BadInputError(visible(f"{file}: is the scenario itself; choose another name"))

    def is_earlier(there: Path) -> bool:
        return re.search(like, file_access.first_bytes(there, 2000)) is not None

    refuse_file(file, is_earlier, what, overwrite=overwrite)
