"""Final tables: calls, flows and links of a run; means and intervals of a study.

Labels and units of the measures come from the catalogue. ``layout`` fits a table into the terminal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from talkspurt import comparing, intervals, leading
from talkspurt.cautions import cautions
from talkspurt.disk import file_name
from talkspurt.format import rate_text, time_text, verdict
from talkspurt.groups import condensed
from talkspurt.metrics.catalogue import column, quantity, titles
from talkspurt.terminal.console import console, say
from talkspurt.terminal.layout import Cell, Column, Table, name

if TYPE_CHECKING:
    import polars as pl

    from talkspurt.figures.values import Part
    from talkspurt.ns2.crosscheck import Crosscheck
    from talkspurt.result import Result
    from talkspurt.study import Study

GRADE_STYLES = ("bold green", "green", "yellow", "yellow", "red", "bold red")
BUSY = 0.02
"""Links with less utilisation, and without drops, are omitted on a terminal."""
MOST_ROWS = 40
"""Longer tables are cut: see the report or Parquet for five hundred calls."""


def print_result(result: Result, out: Console | None = None) -> None:
    """Calls with the answer below them, video, flows and links of one run."""
    out = out or console()
    rows = condensed(result.flows.to_dicts())
    calls = [row for row in rows if row["concealed_ratio"] is not None]
    videos = [row for row in rows if row["video_frames"] is not None]
    if calls:
        _calls(calls).print(out)
        notes = comparing.notes(result.flows)
        said = [*leading.of_result(result), *comparing.of_result(result).sentences()]
        _answer([*said, *notes], out)
    if result.is_scored:
        _sound(result, out)
    if videos:
        _videos(videos).print(out)
    _flows(rows).print(out)
    _links(result.links.to_dicts()).print(out)
    _warn(result.flows, out)


def _answer(sentences: Sequence[str], out: Console) -> None:
    """The sentences below a table, each with a hanging indent."""
    for words in sentences:
        say(words, out)
    if sentences:
        out.print()


def _warn(flows: pl.DataFrame, out: Console) -> None:
    for words in cautions(flows):
        say(f"Warning: {words}", out, "yellow")
    if cautions(flows):
        out.print()


def _cut(rows: Sequence[Sequence[Cell]], file: str, more: int = 0) -> dict[str, Any]:
    """The rows of a table that are shown, and the note on the others."""
    more += max(0, len(rows) - MOST_ROWS)
    notes = [f"and {more} more, in {file}"] if more else []
    return {"rows": rows[:MOST_ROWS], "file": file, "notes": notes}


FLOWS, LINKS, SUMMARY = "flows.parquet", "links.parquet", "summary.parquet"
SCORES = "scores.parquet"
"""Where results are written: tables name them for what they omit."""


def _shown(measure: str, rank: int = 0) -> Column:
    """The column of a metric in a table of a run."""
    head, full = titles.OF_RUNS[measure]
    return Column(head, rank, full=full)


def _users(rank: int) -> Column:
    head, full = titles.SATISFACTION
    return Column(head, rank, "text", full=full)


CALLS = (
    name("call"),
    name("over"),
    _shown("flows.concealed_ratio"),
    _shown("flows.mouth_to_ear_p50_s", 1),
    _shown("flows.r_factor", 5),
    _shown("flows.mos"),
    _shown("flows.mos_lost_to_delay", 4),
    _shown("flows.mos_lost_to_loss", 3),
    _shown("flows.mos_lost_to_codec", 6),
    _users(2),
)


def _calls(rows: list[dict[str, Any]]) -> Table:
    return Table("Calls", CALLS, **_cut([_call(row) for row in rows], FLOWS))


def _sound(of: Result | Study, out: Console) -> None:
    """Scores of the sound, what they mean, and whether they contradict each other."""
    from talkspurt import scores
    from talkspurt.result import Result
    from talkspurt.scores import saying

    one = isinstance(of, Result)
    runs = [of] if isinstance(of, Result) else list(of.runs)
    rows = saying.of_result(of) if isinstance(of, Result) else saying.of_study(of)
    axes = [] if isinstance(of, Result) else [axis.name for axis in of.axes]
    heads = [*map(name, axes), name("call"), *(Column(m.label) for m in scores.MODELS.values())]
    cells: list[list[Cell]] = [
        [*row.settings, row.name, *(_spaced(*texts) for texts in row.texts)] for row in rows
    ]
    table = Table("Scores of the sound", heads, **_cut(cells, SCORES if one else SUMMARY))
    if not isinstance(of, Result):
        found = of.summary(tuple(scores.MODELS)).to_dicts()
        table.legend = intervals.legend(found)
    table.print(out)
    said = [*saying.apart(rows), *scores.said(runs)]
    _answer([*said, *(saying.meanings(runs) if rows else ())], out)


def _spaced(mean: str, spread: str) -> str:
    """A mean with half its interval; clipped intervals show their ends below, to save width."""
    spread = spread.replace(" {", "\n{").replace("] (", "]\n(")
    between = "\n" if spread.startswith(("[", "{")) else " "
    return f"{mean}{between}{spread}".rstrip()


def _satisfaction(r_factor: float | None) -> Text:
    found = verdict(r_factor)
    return Text(found.short, style=GRADE_STYLES[found.grade]) if found else Text("–")


def _call(row: dict[str, Any]) -> list[Cell]:
    lost = [
        column(f"mos_lost_to_{cause}").show(row[f"mos_lost_to_{cause}"])
        for cause in ("delay", "loss", "codec")
    ]
    return [
        row["name"],
        row["transport"] or "–",
        column("concealed_ratio").show(row["concealed_ratio"], unit=True),
        time_text(row["mouth_to_ear_p50_s"]),
        column("r_factor").show(row["r_factor"]),
        column("mos").show(row["mos"]),
        *lost,
        _satisfaction(row["r_factor"]),
    ]


VIDEO_COLUMNS = ("video_frames", "video_frames_complete", "video_frames_late")
FRAME_DELAYS = ("frame_delay_p50_s", "frame_delay_p95_s", "frame_delay_max_s")
VIDEO = (*VIDEO_COLUMNS, *FRAME_DELAYS)
"""The measures of a flow of video."""
VIDEOS = (
    name("flow"),
    name("over"),
    _shown("flows.video_frames", 1),
    _shown("flows.video_frames_complete"),
    _shown("flows.video_frames_late"),
    _shown("flows.frame_delay_p50_s", 2),
    _shown("flows.frame_delay_p95_s", 3),
    _shown("flows.frame_delay_max_s", 4),
)


def _videos(rows: list[dict[str, Any]]) -> Table:
    return Table("Video", VIDEOS, **_cut([_video(row) for row in rows], FLOWS))


def _video(row: dict[str, Any]) -> list[Cell]:
    return [
        row["name"],
        row["transport"] or "–",
        *(column(k).show(row[k]) for k in VIDEO_COLUMNS),
        *(time_text(row[k]) for k in FRAME_DELAYS),
    ]


FLOW_HEADS = (
    name("flow"),
    name("over"),
    _shown("flows.goodput_bps"),
    _shown("flows.delay_p50_s", 1),
    _shown("flows.delay_p95_s", 4),
    _shown("flows.jitter_s", 6),
    _shown("flows.sent_packets", 3),
    _shown("flows.lost_packets", 2),
    _shown("flows.late_packets", 5),
)
RECOVERED = _shown("flows.recovered_packets", 5)
"""Only where redundancy recovered something."""


def _flows(rows: list[dict[str, Any]]) -> Table:
    recovers = any(row.get("recovered_packets") for row in rows)
    heads = (*FLOW_HEADS, *([RECOVERED] if recovers else []))
    return Table("Flows", heads, **_cut([_flow(row, recovers) for row in rows], FLOWS))


def _flow(row: dict[str, Any], recovers: bool) -> list[Cell]:
    counts = ("sent_packets", "lost_packets", "late_packets", "recovered_packets")
    return [
        row["name"],
        row["transport"] or "–",
        rate_text(row["goodput_bps"]),
        *(time_text(row[k]) for k in ("delay_p50_s", "delay_p95_s", "jitter_s")),
        *(column(k).show(row[k]) for k in counts[: 4 if recovers else 3]),
    ]


LINK_HEADS = (
    name("link"),
    _shown("links.rate_bps", 1),
    _shown("links.utilisation"),
    _shown("links.queue_mean_packets", 2),
    _shown("links.queue_max_packets", 3),
    _shown("links.drops"),
)


def _links(rows: list[dict[str, Any]]) -> Table:
    busy = [row for row in rows if row["drops"] or (row["utilisation"] or 0.0) >= BUSY]
    shown = busy or rows[:8]
    cells = [_one_link(row) for row in shown]
    return Table("Links", LINK_HEADS, **_cut(cells, LINKS, more=len(rows) - len(shown)))


def _one_link(row: dict[str, Any]) -> list[Cell]:
    return [
        row["name"],
        rate_text(row["rate_bps"]),
        column("utilisation").show(row["utilisation"], unit=True),
        *(column(k).show(row[k]) for k in ("queue_mean_packets", "queue_max_packets", "drops")),
    ]


CALL_COLUMNS = ("mouth_to_ear_p50_s", "concealed_ratio", "longest_gap_s", "mos")
FLOW_COLUMNS = (
    "goodput_bps", "delivery_ratio", "network_loss", "delay_mean_s", "delay_p50_s", "delay_p95_s",
    "jitter_s",
)  # fmt: skip
RANKS = ("mos", "concealed_ratio", "mouth_to_ear_p50_s", "users", "longest_gap_s",
         "goodput_bps", "network_loss", "delay_mean_s", "jitter_s", "delivery_ratio",
         "delay_p50_s", "delay_p95_s",
         "video_frames_complete", "video_frames_late", "video_frames",
         "frame_delay_p50_s", "frame_delay_p95_s", "frame_delay_max_s")  # fmt: skip
"""Measures of a study, the most important first."""
ALWAYS = ("mos", "goodput_bps", "video_frames_complete", "pesq", "visqol", "plcmos")
"""Measures that are never dropped."""
BELOW = ("delivery_ratio", "network_loss", "delay_mean_s", "jitter_s")
"""Measures that every table of flows has, below the others if there is no room beside them."""

Row = dict[str, Any]


def print_study(
    study: Study,
    out: Console | None = None,
    sentences: Mapping[str | None, Sequence[str]] | None = None,
) -> None:
    """What is best, means and intervals of every setting, then paired differences along each axis.

    ``sentences`` are those of :func:`comparing.sentences`, if they have been made.
    """
    out = out or console()
    say(_about(study), out)
    out.print()
    _answer(leading.sentences(study), out)
    calls = _named(study, "concealed_ratio")
    answers = dict(comparing.sentences(study) if sentences is None else sentences)
    summary = study.rows(study.summary([*CALL_COLUMNS, "r_factor", *FLOW_COLUMNS]))
    if calls:
        of_calls = [row for row in summary if row["flow"] in calls]
        _wide(study, "Calls", of_calls, CALL_COLUMNS, verdicts=True).print(out)
        _answer([*answers.pop(None, ()), *comparing.notes(study.flows)], out)
    if study.is_scored:
        _sound(study, out)
    videos = _named(study, "video_frames")
    if videos:
        of_videos = [r for r in study.rows(study.summary(VIDEO)) if r["flow"] in videos]
        _wide(study, "Video", of_videos, VIDEO).print(out)
    _wide(study, "Flows", summary, FLOW_COLUMNS).print(out)
    columns = CALL_COLUMNS if calls else FLOW_COLUMNS
    for axis, frame in study.comparisons(columns).items():
        rows = [row for row in study.rows(frame) if not calls or row["flow"] in calls]
        title = f"Paired differences along {axis}: value − {study.axis(axis).labels[0]}"
        _wide(study, title, rows, columns, file=f"differences-{file_name(axis)}.parquet").print(out)
        if axis in answers:
            _answer(answers.pop(axis), out)
    if study.is_scored:
        _sound_differences(study, out)
    for along, answer in answers.items():  # without replications there are no paired differences
        if along and answer:
            say(f"Along {along}:", out)
            _answer(answer, out)
    _warn(study.flows, out)


def _sound_differences(study: Study, out: Console) -> None:
    """Paired differences of the scores of the sound along each axis."""
    from talkspurt.scores import MODELS

    for axis, frame in study.comparisons(tuple(MODELS)).items():
        rows = [row for row in study.rows(frame) if row["mean"] is not None]
        there = f"along {axis}: value − {study.axis(axis).labels[0]}"
        title = f"Paired differences of the scores of the sound {there}"
        file = f"differences-{file_name(axis)}.parquet"
        _wide(study, title, rows, tuple(MODELS), file=file).print(out)


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
    study: Study,
    title: str,
    rows: Iterable[Row],
    columns: Sequence[str],
    *,
    verdicts: bool = False,
    file: str = SUMMARY,
) -> Table:
    """One row per setting and flow, one column per metric."""
    axes = [axis.column for axis in study.axes]
    heads = [*(name(axis.name) for axis in study.axes), name("flow"), *map(_headed, columns)]
    if verdicts:
        heads.append(_users(RANKS.index("users")))
    cells: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in rows:
        key = (*(row[axis] for axis in axes), intervals.flow(row))
        cells.setdefault(key, {})[row["measure"]] = row
    table = Table(title, heads, **_cut([_cells(k, f, columns, verdicts) for k, f in cells.items()],
                                       file))  # fmt: skip
    shown = [row for found in list(cells.values())[:MOST_ROWS] for row in found.values()]
    table.legend = intervals.legend(row for row in shown if row["measure"] in columns)
    return table


WITHOUT = "CSV without --table"
"""Where what a table of ``talkspurt metrics`` omits can be read."""


def print_sheet(study: Study, out: Console | None = None) -> None:
    """Counts, sizes, rates, delays and loss of every flow, and the nodes that send and receive."""
    from talkspurt.metrics import sheet

    out = out or console()
    found = sheet.nodes(study)
    counts = []
    for kind in sheet.NODES:
        least, most = min(one[kind] for one in found), max(one[kind] for one in found)
        counts.append(f"{kind} {least if least == most else f'{least} to {most}'}")
    lengths = sorted({run.duration_s for run in study.runs})
    counts.append(f"simulated {' or '.join(time_text(one) for one in lengths)}")
    say("; ".join(counts), out)
    out.print()
    names = sheet.measures(study)
    rows = study.rows(study.summary(names))
    _wide(study, "Flows", rows, names, file=WITHOUT).print(out)
    if len(names) == len(sheet.MEASURES):
        from talkspurt.metrics.computing import without_packets

        why = without_packets(study.runs[0])
        say(f"Packet sizes need the packet table: {why}.", out)


def print_metric(
    study: Study,
    name: str,
    flow: str | None,
    link: str | None,
    bin_s: float | None,
    out: Console | None = None,
) -> None:
    """A metric per setting and flow or link: mean and interval, or the range of its values.

    Raises:
        KeyError: if the metric, flow or link does not exist, or the packet table is missing.
        ValueError: if there is no value.
    """
    from talkspurt.figures.values import against, missing, parts, place_of, sample_note
    from talkspurt.metrics import metric

    one = metric(name, of_links=link is not None)
    wanted, other = (link, flow) if one.of_links else (flow, link)
    if other is not None:
        raise ValueError(f"{one.full_name} is of {'links' if one.of_links else 'flows'}")
    found = parts(study, one, wanted, bin_s)
    if not found:
        raise missing(study, one, wanted)
    place = place_of(study, one)
    heads = [*(Column(axis.name, 0, "name") for axis in study.axes), Column(place, 0, "name")]
    keys = [*(axis.name for axis in study.axes), place]
    cells: dict[tuple[str, ...], list[Part]] = {}
    for part in found:
        cells.setdefault(tuple(part.told[key] for key in keys), []).append(part)
    shown = one.quantity
    unit = f"\n{shown.unit}" if shown.unit else ""
    quantity = against(one)
    rows: list[list[Cell]] = []
    if quantity is None:
        heads.append(Column(f"{shown.label}{unit}"))
        made = {key: study._row_of(one, its) for key, its in cells.items()}
        rows = [[*key, _cell(row)] for key, row in made.items()]
        legend = intervals.legend(made.values())
    else:
        heads += [
            Column("values"),
            *(Column(f"{word}{unit}") for word in ("minimum", "mean", "maximum")),
        ]
        legend = []
        for key, its in cells.items():
            values = [float(value) for part in its for value in part.y if math.isfinite(value)]
            mean = study._row_of(one, its)
            ends = shown.show(min(values)), shown.show(max(values))
            rows.append([*key, str(len(values)), ends[0], _cell(mean), ends[1]])
            legend = intervals.legend([mean]) or legend
    title = shown.label[:1].upper() + shown.label[1:]
    table = Table(title, heads, **_cut(rows, WITHOUT))
    table.legend = [*legend, *filter(None, [sample_note(study, one, found)])]
    table.print(out or console())


def print_sensitivity(
    study: Study, measure: str, rows: Sequence[Row], out: Console | None = None
) -> None:
    """The indices of each factor with their intervals, by setting and flow."""
    from talkspurt.sensitivity import INDICES

    out = out or console()
    assert study.design is not None
    lists = [axis for axis in study.axes if not axis.factor]
    keys = [*(axis.column for axis in lists), "flow"]
    kinds = [one for one in INDICES if any(r["index"] == one and r["factor"] for r in rows)]
    wholes = [one for one in INDICES if any(r["index"] == one and not r["factor"] for r in rows)]
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    notes: dict[str, None] = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        where = ", ".join(key)
        if row["note"]:
            notes[f"{where}: not defined: {row['note']}."] = None
        elif row["missing"]:
            there = f"{row['missing']} of {row['points']} points have no value and are left out"
            notes[f"{where}: {there}."] = None
        if row["factor"] is None:
            notes[f"{where}: {INDICES[row['index']]} {_index(row)}."] = None
        else:
            cells.setdefault((*key, row["factor"]), {})[row["index"]] = _index(row)
    heads = [
        *(Column(axis.name, 0, "name") for axis in lists),
        Column("flow", 0, "name"),
        Column("factor", 0, "name"),
        *(Column(INDICES[one]) for one in kinds),
    ]
    made = [[*key, *(its.get(one, "–") for one in kinds)] for key, its in cells.items()]
    title = f"Sensitivity of {quantity(measure).label}, {study.design['points']} points"
    table = Table(title, heads, made, "--json")
    table.print(out)
    for words in notes:
        say(words, out)
    if any(row["value"] is not None for row in rows):
        say(f"[…]: bootstrap interval of {study.confidence * 100:g} %", out)
    if wholes:
        say("SRC and R² are of a linear model: R² says how well it fits.", out)


def _index(row: Row) -> str:
    if row["value"] is None:
        return "–"

    def text(number: float) -> str:
        return f"{round(number, 2) + 0.0:.2f}"  # no negative zero

    ends = "" if row["low"] is None else f" [{text(row['low'])} … {text(row['high'])}]"
    return f"{text(row['value'])}{ends}"


def _headed(measure: str) -> Column:
    shown = quantity(measure)
    head = titles.OF_STUDIES.get(measure, shown.label)
    known = RANKS.index(measure) if measure in RANKS else len(RANKS)
    rank = 0 if measure in ALWAYS else known
    unit = f"\n{shown.unit}" if shown.unit else ""
    return Column(head + unit, rank, full=head, below=measure in BELOW)


def _cells(
    key: tuple[str, ...], found: dict[str, Row], columns: Sequence[str], verdicts: bool
) -> list[Cell]:
    shown: list[Cell] = [*key, *(_cell(found.get(name)) for name in columns)]
    if verdicts:
        shown.append(_satisfaction(found["r_factor"]["mean"] if "r_factor" in found else None))
    return shown


def _cell(row: Row | None) -> str:
    """A mean with its interval."""
    return _spaced(*intervals.texts(row))


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
        heads = (
            name(title.lower()[:-1]),
            Column("measure", 0, "prose"),
            Column("here"),
            Column("ns-2"),
            Column("difference", 1),
            Column("share", 2, full="difference in %"),
        )
        cells: list[list[Cell]] = []
        last = ""
        for row in rows:
            label, *_, unit = BOTH[row.measure]
            numbers = [_both(row.measure, *mean) for mean in row.means]
            share = "–" if row.relative is None else f"{row.relative * 100:+.2f} %"
            said, last = ("" if row.name == last else row.name), row.name
            cells.append([said, f"{label}, {unit}" if unit else label, *numbers, share])
        table = Table(f"{title} here and in ns-2", heads, cells, "--json")
        if len(found.seeds) > 1:
            share = f"{rows[0].confidence * 100:g} %" if rows else ""
            table.notes = [f"Means over {len(found.seeds)} seeds; ±: half of Student's {share} "
                           "interval, where the seeds differ"]  # fmt: skip
        table.print(out)


def _both(measure: str, mean: float | None, half: float | None) -> str:
    """A mean, and half its interval below."""
    if mean is None:
        return "–"
    _, scale, digits, _ = BOTH[measure]
    text = f"{round(mean * scale, digits) + 0.0:.{digits}f}"
    return f"{text}\n±{half * scale:.{digits}f}" if half else text
