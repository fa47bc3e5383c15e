"""Implements ``talkspurt reproduce``: re-runs, prints, and writes the dossiers."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from talkspurt._storage import output_folder
from talkspurt._storage.file_access import plain_name
from talkspurt._terminal.console import console
from talkspurt._terminal.layout import Column, Table, name
from talkspurt._text.escaping import print_json, visible
from talkspurt.errors import BadInputError
from talkspurt.reproduce import (
    NAMES,
    Reproduction,
    document,
    dossier,
    ns2,
    reproductions,
)
from talkspurt.reproduce.rows import CLASSES, SHORT, Row, table, tally
from talkspurt.reproduce.sample import show


def run(
    study: str,
    *,
    out: Path | None,
    as_json: bool,
    fresh_ns2: bool,
    jobs: int | None,
    sets: Sequence[str] = (),
    pdf: bool = False,
    live: bool = False,
    overwrite: bool = False,
) -> None:
    """Re-run with the command line's options."""
    if live:
        from talkspurt.reproduce import live as real_time

        for option, given in (("--set", sets), ("--ns2", fresh_ns2), ("--jobs", jobs)):
            if given:
                raise BadInputError(f"{option}: has no effect on --live")
        real_time.run(study, out=out, as_json=as_json, pdf=pdf, overwrite=overwrite)
        return
    # The tables are small and every core runs a scenario: threads for each would only wait.
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    names = NAMES if study == "all" else (study,)
    if sets and study == "all":
        raise BadInputError("--set: varies one study, not all of them")
    if sets and fresh_ns2:
        raise BadInputError("--set and --ns2: ns-2's scripts have their own parameters")
    if fresh_ns2 and not ns2.installed():
        raise BadInputError("--ns2: ns is not installed (Debian and Ubuntu: the package ns2)")
    # A variation has a folder of its own.
    name = "-".join(["reproduce", study, *(one.replace("=", "-") for one in sets)])
    folder = out if out is not None else None if as_json else Path("runs") / plain_name(name)
    coming = reproductions(names, jobs=jobs, fresh_ns2=fresh_ns2, sets=sets, step=_say)
    if folder is None:
        _print(list(coming), study, as_json=as_json)
        return
    claim = output_folder.Claim("reproduction", overwrite=overwrite)
    # Check that the folder is writable before the work, not after.
    with output_folder.Staging(folder, claim) as staging:
        found = dossier.write(coming, study, staging.folder, step=_say, pdf=pdf)
        where = staging.commit()
    _print(found, study, as_json=as_json)
    if not as_json:
        shown = folder if not folder.is_absolute() else where
        print(visible(f"Dossiers: {shown}/index.html"))


def _say(what: str) -> None:
    if sys.stderr.isatty():
        print(what, file=sys.stderr, flush=True)


def _print(found: Sequence[Reproduction], study: str, *, as_json: bool) -> None:
    if as_json:
        print_json(document(found, study))
        return
    out = console()
    if len(found) == 1:
        _print_rows(found[0].file.name, found[0].rows, out)
    _print_summary(found, out)


def _print_rows(study: str, rows: Sequence[Row], out: Console) -> None:
    values = [(row, (row.stated.show(), row.inferred.show(), show(row.ns2))) for row in rows]
    origins = {"stated": 2, "inferred": 1, "ns-2": 4}
    table(study, f"{study}/index.html", values, origins, 3).print(out)


def _print_summary(found: Sequence[Reproduction], out: Console) -> None:
    ranks = {verdict: rank for rank, verdict in enumerate(CLASSES)}
    verdicts = [Column(SHORT[verdict], ranks[verdict]) for verdict in CLASSES]
    columns = (name("study"), Column("rows"), *verdicts)
    rows = [[one.file.name, str(len(one.rows)), *map(str, tally(one.rows))] for one in found]
    if len(found) > 1:
        every = [row for one in found for row in one.rows]
        rows.append(["all", str(len(every)), *map(str, tally(every))])
    Table("Verdicts", columns, rows, "index.html").print(out)
