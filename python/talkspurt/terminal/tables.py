"""Final tables: calls, flows and links of a run; means and intervals of a study.

Designed for 80 columns. Labels and units of the measures come from the catalogue.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from talkspurt import intervals
from talkspurt.cautions import cautions
from talkspurt.format import rate_text, time_text, verdict
from talkspurt.groups import condensed
from talkspurt.metrics.catalogue import column
from talkspurt.visible import below, visible

if TYPE_CHECKING:
    import polars as pl

    from talkspurt.ns2.crosscheck import Crosscheck
    from talkspurt.result import Result
    from talkspurt.study import Study

GRADE_STYLES = ("bold green", "green", "yellow", "yellow", "red", "bold red")
BUSY = 0.02
"""Links with less utilisation, and without drops, are omitted on a terminal."""
MOST_ROWS = 40
"""Longer tables are cut: see the report or Parquet for five hundred calls."""


class Output(Console):
    """A console whose output contains no control sequences from input text.

    A closed reader is left to the caller.
    """

    def on_broken_pipe(self) -> None:
        """By default, Rich would end the process here."""
        raise BrokenPipeError

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        # Tables escape characters before layout; this handles other output.
        parts = (
            part if part.control else part._replace(text=visible(part.text, lines=True))
            for part in buffer
        )
        return super()._render_buffer(parts)


def console() -> Console:
    """Standard output, at the terminal's width, or 110 columns without a terminal."""
    width = None if sys.stdout.isatty() else 110
    return Output(file=below(sys.stdout), width=width, highlight=False, markup=False)


def print_result(result: Result, out: Console | None = None) -> None:
    """Calls, video, flows and links of one run."""
    out = out or console()
    rows = condensed(result.flows.to_dicts())
    calls = [row for row in rows if row["r_factor"] is not None]
    videos = [row for row in rows if row["video_frames"] is not None]
    for table in (
        _calls(calls) if calls else None,
        _videos(videos) if videos else None,
        _flows(rows),
        _links(result.links.to_dicts()),
    ):
        if table is not None:
            out.print(table)
            out.print()
    _warn(result.flows, out)


def _warn(flows: pl.DataFrame, out: Console) -> None:
    for words in cautions(flows):
        out.print(Text(f"Warning: {words}", style="yellow"))
    if cautions(flows):
        out.print()


def _table(title: str, left: Sequence[str], right: Sequence[str]) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        title=Text(visible(title), style="bold"),
        title_justify="left",
        pad_edge=False,
        collapse_padding=True,
        show_edge=False,
    )
    for header in map(visible, left):
        table.add_column(header, overflow="fold", min_width=len(header))
    for header in right:
        table.add_column(header, justify="right", no_wrap=True)
    return table


def _fill(table: Table, rows: Sequence[Sequence[str | Text]], more: int = 0) -> Table:
    for row in rows[:MOST_ROWS]:
        table.add_row(
            *(visible(cell, lines=True) if isinstance(cell, str) else cell for cell in row)
        )
    more += max(0, len(rows) - MOST_ROWS)
    if more:
        table.caption = f"and {more} more, in the Parquet files"
        table.caption_justify = "left"
    return table


def _calls(rows: list[dict[str, Any]]) -> Table:
    headers = ("not heard", "mouth\nto ear", "R", "MOS", "lost to\ndelay", "\nloss", "\ncodec")
    table = _table("Calls", ("call", "over"), headers)
    table.add_column("users", no_wrap=True)
    return _fill(table, [_call(row) for row in rows])


def _call(row: dict[str, Any]) -> list[str | Text]:
    found = verdict(row["r_factor"])
    words = Text(found.short, style=GRADE_STYLES[found.grade]) if found else Text("–")
    lost = [
        column(f"mos_lost_to_{cause}").show(row[f"mos_lost_to_{cause}"])
        for cause in ("delay", "loss", "codec")
    ]
    return [
        row["name"],
        row["transport"],
        column("loss_ratio").show(row["loss_ratio"], unit=True),
        time_text(row["mouth_to_ear_p50_s"]),
        column("r_factor").show(row["r_factor"]),
        column("mos").show(row["mos"]),
        *lost,
        words,
    ]


VIDEO_COLUMNS = ("video_frames", "video_frames_complete", "video_frames_late")
FRAME_DELAYS = ("frame_delay_p50_s", "frame_delay_p95_s", "frame_delay_max_s")


def _videos(rows: list[dict[str, Any]]) -> Table:
    headers = ("frames", "complete", "late", "delay p50", "p95", "longest")
    table = _table("Video", ("flow", "over"), headers)
    return _fill(table, [_video(row) for row in rows])


def _video(row: dict[str, Any]) -> list[str | Text]:
    return [
        row["name"],
        row["transport"],
        *(column(k).show(row[k]) for k in VIDEO_COLUMNS),
        *(time_text(row[k]) for k in FRAME_DELAYS),
    ]


def _flows(rows: list[dict[str, Any]]) -> Table:
    headers = ("goodput", "delay p50", "p95", "jitter", "sent", "lost", "late")
    table = _table("Flows", ("flow", "over"), headers)
    return _fill(table, [_flow(row) for row in rows])


def _flow(row: dict[str, Any]) -> list[str | Text]:
    return [
        row["name"],
        row["transport"],
        rate_text(row["goodput_bps"]),
        *(time_text(row[k]) for k in ("delay_p50_s", "delay_p95_s", "jitter_s")),
        *(column(k).show(row[k]) for k in ("sent_packets", "lost_packets", "late_packets")),
    ]


def _links(rows: list[dict[str, Any]]) -> Table:
    busy = [row for row in rows if row["drops"] or row["utilisation"] >= BUSY]
    shown = busy or rows[:8]
    headers = ("rate", "busy", "queue mean", "longest", "dropped")
    table = _table("Links", ("link",), headers)
    return _fill(table, [_one_link(row) for row in shown], more=len(rows) - len(shown))


def _one_link(row: dict[str, Any]) -> list[str | Text]:
    return [
        row["name"],
        rate_text(row["rate_bps"]),
        column("utilisation").show(row["utilisation"], unit=True),
        *(column(k).show(row[k]) for k in ("queue_mean_packets", "queue_max_packets", "drops")),
    ]


CALL_COLUMNS = ("mouth_to_ear_p50_s", "loss_ratio", "longest_gap_s", "mos")
UNBROKEN = 18
"""Settings and names up to this length stay on one line."""
FLOW_COLUMNS = ("goodput_bps", "delay_p50_s", "delay_p95_s", "jitter_s")

Row = dict[str, Any]


def print_study(study: Study, out: Console | None = None) -> None:
    """Means and intervals of every setting, then paired differences along each axis."""
    out = out or console()
    shown: list[Table | str] = [_about(study)]
    calls = _named(study, "r_factor")
    summary = study.summary([*CALL_COLUMNS, "r_factor", *FLOW_COLUMNS]).to_dicts()
    if calls:
        of_calls = [row for row in summary if row["flow"] in calls]
        shown.append(_wide(study, "Calls", of_calls, CALL_COLUMNS, verdicts=True))
    videos = _named(study, "video_frames")
    if videos:
        of_frames = (*VIDEO_COLUMNS, *FRAME_DELAYS)
        of_videos = [r for r in study.summary(of_frames).to_dicts() if r["flow"] in videos]
        shown.append(_wide(study, "Video", of_videos, of_frames))
    shown.append(_wide(study, "Flows", summary, FLOW_COLUMNS))
    columns = CALL_COLUMNS if calls else FLOW_COLUMNS
    for axis, frame in study.comparisons(columns).items():
        rows = [row for row in frame.to_dicts() if not calls or row["flow"] in calls]
        title = f"Paired differences along {axis}: value − {study.axis(axis).labels[0]}"
        shown.append(_wide(study, title, rows, columns))
    for part in shown:
        out.print(part)
        out.print()
    _warn(study.flows, out)


def _named(study: Study, column: str) -> set[str]:
    """The flows and groups of flows with a value in a column, named as in summaries."""
    rows = study.flows.drop_nulls(column).iter_rows(named=True)
    return {row.get("group") or row["name"] for row in rows}


def _about(study: Study) -> str:
    runs = f"{len(study.runs)} runs, {study.replications} of every setting"
    if study.replications < 2:
        return f"{runs}: no intervals (replications.count gives some)"
    return f"{runs}; means ± half of Student's {study.confidence * 100:g} % interval"


def _wide(
    study: Study, title: str, rows: Iterable[Row], columns: Sequence[str], *, verdicts: bool = False
) -> Table:
    """One row per setting and flow, one column per metric."""
    axes = [axis.column for axis in study.axes]
    table = _table(
        title, (*(axis.name for axis in study.axes), "flow"), [_headed(name) for name in columns]
    )
    if verdicts:
        table.add_column("users", no_wrap=True)
    cells: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in rows:
        key = (*(row[axis] for axis in axes), intervals.flow(row))
        cells.setdefault(key, {})[row["measure"]] = row
    for head, words in zip(table.columns, zip(*cells, strict=True), strict=False):
        # Do not wrap the columns that identify rows, if they are short.
        head.min_width = max(head.min_width or 0, min(max(map(len, words)), UNBROKEN))
    _fill(table, [_cells(key, found, columns, verdicts) for key, found in cells.items()])
    shown = [row for found in list(cells.values())[:MOST_ROWS] for row in found.values()]
    marks = intervals.legend(row for row in shown if row["measure"] in columns)
    if marks:
        table.caption = "\n".join([str(table.caption), *marks] if table.caption else marks)
        table.caption_justify = "left"
    return table


def _headed(name: str) -> str:
    shown = column(name)
    return shown.label + (f"\n{shown.shown_unit}" if shown.shown_unit else "")


def _cells(
    key: tuple[str, ...], found: dict[str, Row], columns: Sequence[str], verdicts: bool
) -> list[str | Text]:
    shown: list[str | Text] = [*key, *(_cell(found.get(name)) for name in columns)]
    if verdicts:
        said = verdict(found["r_factor"]["mean"]) if "r_factor" in found else None
        shown.append(Text(said.short, style=GRADE_STYLES[said.grade]) if said else Text("–"))
    return shown


def _cell(row: Row | None) -> str:
    """A mean with half its interval; clipped intervals show their ends below, to save width."""
    mean, spread = intervals.texts(row)
    spread = spread.replace(" {", "\n{").replace("] (", "]\n(")
    between = "\n" if spread.startswith(("[", "{")) else " "
    return f"{mean}{between}{spread}".rstrip()


BOTH = {
    "sent_packets": ("sent", 1, 0, ""),
    "received_packets": ("received", 1, 0, ""),
    "lost_packets": ("lost", 1, 0, ""),
    "sent_bytes": ("sent", 1, 0, "B"),
    "throughput_bps": ("throughput", 1e-3, 3, "kbit/s"),
    "delay_min_s": ("delay, least", 1e3, 3, "ms"),
    "delay_mean_s": ("delay, mean", 1e3, 3, "ms"),
    "delay_p50_s": ("delay, median", 1e3, 3, "ms"),
    "delay_p95_s": ("delay, 95 %", 1e3, 3, "ms"),
    "delay_max_s": ("delay, longest", 1e3, 3, "ms"),
    "drops": ("dropped", 1, 0, ""),
    "utilisation": ("utilisation", 100, 3, "%"),
    "queue_mean_packets": ("queue, mean", 1, 3, ""),
}
"""Display of measures that ns-2 was also asked for: label, scale, digits and unit."""


def print_crosscheck(found: Crosscheck, out: Console | None = None) -> None:
    """Both simulators side by side, flows first; links without traffic are omitted."""
    out = out or console()
    used = {row.name for row in found.links if row.measure == "sent_packets" and row.here}
    links = [row for row in found.links if row.name in used]
    for title, rows in (("Flows", found.flows), ("Links", links)):
        table = _table(f"{title} here and in ns-2", (title.lower()[:-1], "measure"),
                       ("here", "ns-2", "difference", "share"))  # fmt: skip
        last = ""
        for row in rows:
            label, scale, digits, unit = BOTH[row.measure]
            cells = [
                "–" if value is None else f"{round(value * scale, digits) + 0.0:.{digits}f}"
                for value in (row.here, row.ns2, row.difference)
            ]
            share = "–" if row.relative is None else f"{row.relative * 100:+.2f} %"
            name, last = ("" if row.name == last else row.name), row.name
            table.add_row(visible(name), f"{label}, {unit}" if unit else label, *cells, share)
        out.print(table)
        out.print()
