"""Output of ``talkspurt metrics``: the catalogue, or the dictionary of tables."""

from __future__ import annotations

import dataclasses
import sys
import textwrap
from collections.abc import Iterable

from talkspurt._terminal.console import known_width
from talkspurt._terminal.layout import wrapped
from talkspurt._text.escaping import print_json
from talkspurt.metrics import dictionary
from talkspurt.metrics.catalogue import ALL, COLUMNS, COMPUTED, SOUND
from talkspurt.results.run_data import finite


def print_list(*, as_json: bool) -> None:
    """All metrics: recorded ones, and those computed on request."""
    if as_json:
        # Which end knows a value is a property of flows.
        plain = [
            {"full_name": one.full_name}
            | {
                key: finite(value)
                for key, value in dataclasses.asdict(one).items()
                if key != "display" and (key != "known" or getattr(one, "table", "") == "flows")
            }
            for one in ALL
        ]
        print_json({"metrics": plain})
        return
    width = known_width() or sys.maxsize
    _print("Any of them: talkspurt metrics RUN NAME [--flow FLOW | --link LINK]", width)
    _print(
        "(of two with one name the first, or --link's; flows.NAME, links.NAME, gauges.NAME say)",
        width,
    )
    print()
    _print("In every result, by table (docs: Metrics has formulas and sources):", width)
    for table in ("flows", "links", "gauges"):
        print(f"\n{table}")
        for one in (one for one in COLUMNS if one.table == table):
            unit = "" if one.unit == "1" else f" ({one.unit})"
            _print(f"  {one.name:<24} ", width, f"{one.label}{unit}")
    print("\nscores")
    _print("(of `talkspurt run --scores`; of other results computed when asked for)", width)
    for one in SOUND:
        _print(f"  {one.name:<24} ", width, f"{one.label}: {one.meaning}")
    print("\nComputed when asked for")
    _print(
        "(P: of a run with --set record.packets=true; letters are those of the study of voice)",
        width,
    )
    print()
    for metric in COMPUTED:
        needs = "P" if metric.needs_packets else " "
        unit = f" ({metric.unit})" if metric.unit not in ("", "1") else ""
        what = f"{metric.y} against {metric.x}" if metric.x else "a number of each flow"
        if metric.of_links:
            what += ", of links"
        _print(f"  {metric.study:<2} {needs} {metric.name:<30} ", width, f"{what}{unit}")
        _print("", width, metric.formula)


def _print(head: str, width: int, words: str = "") -> None:
    """A line; if it is too long, the words after the head are wrapped below it."""
    if head and len(head + words) <= width:
        print(head + words)
        return
    lines = [head.rstrip()] if head and words else wrapped(head, width) if head else []
    for line in (*lines, *(wrapped(words, width, 7) if words else ())):
        print(line)


def print_dictionary(*, as_json: bool) -> None:
    """Unit and meaning of every column of every table."""
    if as_json:
        print_json(dictionary.document())
        return
    print("Tables of a run, and their columns (Parquet files have the same as metadata)")
    for name, fields in dictionary.TABLES.items():
        _print_fields(f"{name}.parquet", fields)
    print("\nTables of a study: each begins with a column axis.NAME for each axis")
    for name, fields in dictionary.OF_STUDIES.items():
        known = dictionary.TABLES.get(name, ())
        ending = ", and the columns of a run" if known else ""
        _print_fields(f"{name}.parquet", [one for one in fields if one not in known], ending)


def _print_fields(title: str, fields: Iterable[dictionary.Field], ending: str = "") -> None:
    print(f"\n{title}{ending}")
    for one in fields:
        unit = "" if one.unit in ("", "1") else f" ({one.unit})"
        words = f"{' '.join(one.meaning.split())}{unit}"
        head = f"  {one.name:<24} "
        print(textwrap.fill(words, 80, initial_indent=head, subsequent_indent=" " * 27))
