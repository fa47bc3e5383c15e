"""One table for spreadsheets: a row for each run and flow, units in the header.

Parquet and ``export --to csv`` have the same columns in SI units, for programs. Here they are in
the units that tables on the terminal have, and a value outside the range of its model is a text,
such as ``below 1.71: out of range``.
"""

from __future__ import annotations

import csv
import importlib
import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from talkspurt._storage import file_access
from talkspurt._storage.output_folder import refuse_file
from talkspurt.errors import MissingExtraError
from talkspurt.metrics.catalogue import FLOWS, NUMBERS, SOUND, Column, Metric
from talkspurt.metrics.computing import RATIOS, ratio
from talkspurt.results.concatenation import RUN

if TYPE_CHECKING:
    import polars as pl

    from talkspurt.results.study_data import StudyData

Cell = str | float | int | None
TEXTS = ("transport", "source", "from", "to", "group")
"""Columns of the flows table beside its names that tell rows apart."""
NOTES = ("quality_limits", "quality_note", "estimate_limits", "redundancy_note", "stand_in")
"""Its columns that say what a score is worth."""
ENDINGS = {"s": ("_s",), "bit/s": ("_bps",), "packets": ("_packets",), "bytes": ("_bytes",)}
"""Endings of names that stand for the unit of a column of the flows table."""
DIGITS = 12
"""Significant digits: more would be those of the conversion of units."""
FORMULA = re.compile(r"[=+\-@\t\r]")
"""First characters by which a spreadsheet takes a text for a formula (OWASP)."""


def below(bound: str) -> str:
    """What stands for a value outside the range of its model."""
    return f"below {bound}: out of range"


def header(one: Metric) -> str:
    """Name and unit of a metric, as in ``delay_mean [ms]``."""
    unit = one.shown_unit or one.quantity.counted
    name = one.name
    for ending in ENDINGS.get(one.unit, ()):
        name = name.removesuffix(ending)
    return f"{name} [{unit}]" if unit else name


def cell(one: Metric, row: Mapping[str, Any]) -> Cell:
    """A value in the unit of its header."""
    value = row.get(one.name)
    if value is None:
        return None
    if isinstance(one, Column) and (bound := one.outside(row)) is not None:
        return below(one.show(bound))
    if isinstance(value, int) and one.quantity.scale == 1:
        return value
    return float(f"{value * one.quantity.scale:.{DIGITS}g}")


def table(study: StudyData) -> tuple[list[str], list[list[Cell]]]:
    """Header and rows: the axes, ``replicate``, ``seed``, ``flow``, and what is known of it."""
    flows = _flows(study)
    there = [one for one in NUMBERS if one.name in flows.columns and _has_values(flows, one.name)]
    there = [one for one in there if one.name not in BOUNDS]
    texts = [name for name in TEXTS if _has_values(flows, name)]
    notes = [name for name in NOTES if _has_values(flows, name)]
    axes = [f"{axis.column} [{axis.unit}]" if axis.unit not in (None, "1") else axis.column
            for axis in study.axes]  # fmt: skip
    head = [*axes, "replicate", "seed", "flow", *texts, *map(header, there), *notes]
    rows: list[list[Cell]] = []
    for row in flows.iter_rows(named=True):
        run = study.runs[row[RUN]]
        where = [axis.value(run.settings[axis.name]) for axis in study.axes]
        of_flow = [row["name"], *(row[name] for name in texts)]
        values = (cell(one, row) for one in there)
        said = (row[name] for name in notes)
        rows.append([*where, run.replicate, run.seed, *of_flow, *values, *said])
    return head, rows


BOUNDS = {one.bound for one in FLOWS if one.bound}
"""Columns that are only said where they differ from those that they bound."""


def _flows(study: StudyData) -> pl.DataFrame:
    """The flows of all runs, with ratios of counts, and scores of the sound if there are any."""
    flows = study._stack("flows")
    flows = flows.with_columns(ratio(flows, name) for name in RATIOS)
    if not study.is_scored:
        return flows
    columns = {one.name: study._column(one, flows) for one in SOUND}
    import polars as pl

    return flows.with_columns(pl.Series(k, list(v), dtype=pl.Float64) for k, v in columns.items())


def _has_values(flows: pl.DataFrame, name: str) -> bool:
    return name in flows.columns and flows[name].null_count() < flows.height


def write(study: StudyData, file: Path, *, overwrite: bool = False) -> None:
    """Write the table as ``.csv`` or, with XlsxWriter (extra ``xlsx``), as ``.xlsx``.

    Raises:
        talkspurt.errors.MissingExtraError: if XlsxWriter is not installed.
        talkspurt.errors.StoreError: if another file is there, or it cannot be written.
    """
    is_workbook = file.suffix.lower() == ".xlsx"
    refuse_file(file, _is_earlier, "table of talkspurt", overwrite=overwrite)
    writer: Any = _xlsxwriter() if is_workbook else None
    head, rows = table(study)
    data = _workbook(writer, head, rows) if is_workbook else _csv(head, rows)
    file_access.replace_bytes(file, data)


def _is_earlier(file: Path) -> bool:
    if file.suffix.lower() == ".xlsx":
        try:
            with zipfile.ZipFile(file) as there:
                return b">talkspurt<" in there.read("docProps/core.xml")
        except (zipfile.BadZipFile, KeyError):
            return False
    first = file_access.first_bytes(file, 64 << 10).partition(b"\n")[0]
    return re.search(rb'(\A|,)"?replicate"?,"?seed"?,"?flow"?,', first) is not None


def _csv(head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(_harmless, head))
    writer.writerows(map(_harmless, row) for row in rows)
    return out.getvalue().encode()


def _harmless(one: Cell) -> Cell:
    """A text that no spreadsheet takes for a formula; a number as it is."""
    return f"'{one}" if isinstance(one, str) and FORMULA.match(one) else one


def _xlsxwriter() -> Any:
    try:
        return importlib.import_module("xlsxwriter")
    except ImportError:
        raise MissingExtraError(
            "a .xlsx needs XlsxWriter, not installed: pip install 'talkspurt[xlsx]'"
        ) from None


def _workbook(writer: Any, head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> bytes:
    out = io.BytesIO()
    # Texts are never formulas or links.
    with writer.Workbook(out, {"in_memory": True, "strings_to_formulas": False,
                               "strings_to_urls": False}) as book:  # fmt: skip
        book.set_properties({"author": "talkspurt"})
        sheet = book.add_worksheet("runs and flows")
        sheet.write_row(0, 0, head, book.add_format({"bold": True}))
        for place, row in enumerate(rows, 1):
            sheet.write_row(place, 0, row)
        sheet.freeze_panes(1, 0)
        sheet.autofilter(0, 0, len(rows), len(head) - 1)
        sheet.autofit()
    return out.getvalue()
