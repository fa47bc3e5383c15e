"""Final tables: calls, flows and links of a run; means and intervals of a study.

Labels and units of the measures come from the catalogue. ``layout`` fits a table into the terminal.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from talkspurt import intervals, scores
from talkspurt._storage.file_access import file_name
from talkspurt._terminal import layout
from talkspurt._terminal.console import console, height, say
from talkspurt._terminal.layout import Cell, Column, Table, name
from talkspurt._text.format import rate_text, time_text, verdict
from talkspurt.analysis.answer import ESTIMATE, Answer, answer, shown
from talkspurt.analysis.cautions import cautions
from talkspurt.metrics import metric, sheet
from talkspurt.metrics.catalogue import SATISFACTION, VIEWS, column, number, quantity
from talkspurt.metrics.catalogue.kinds import Shown
from talkspurt.metrics.computing import without_packets
from talkspurt.results.groups import condensed
from talkspurt.results.run_data import RunData
from talkspurt.scores import MODELS, saying

if TYPE_CHECKING:
    from talkspurt.figures.values import Part
    from talkspurt.ns2.crosscheck import Crosscheck
    from talkspurt.results.study_data import StudyData

GRADE_STYLES = ("bold green", "green", "yellow", "yellow", "red", "bold red")
BUSY = 0.02
"""Links with less utilisation, and without drops, are omitted on a terminal."""
MAX_LINES = 6
"""Lines of the answer."""
UNRANKED = "Not ranked by "
"""How the sentence of ``crates/answer`` begins that names what is outside the range of a model."""
MAX_ROWS = 40
"""Longer tables are cut: see the report or Parquet for five hundred calls."""


def print_result(result: RunData, out: Console | None = None) -> None:
    """Calls with the answer below them, video, flows and links of one run."""
    out = out or console()
    rows = condensed(result.flows.to_dicts())
    calls = [row for row in rows if row["concealed_ratio"] is not None]
    found = answer(result)
    if calls:
        _calls(calls, found.judged_by).print(out)
    if result.is_scored:
        _sound(result, out)
    videos = [row for row in rows if row["video_frames"] is not None]
    _of_view("Video", "video", videos).print(out)
    _flows(rows).print(out)
    _links(result.links.to_dicts()).print(out)
    _say_all([f"Warning: {words}" for words in cautions(result.flows)], out, "yellow")
    _print_answer(found, out)


def _print_answer(found: Answer, out: Console) -> None:
    """What to know about the scores, and last the answer."""
    # Above the answer there is room for it.
    unranked = [words for words in found.sentences if words.startswith(UNRANKED)]
    rest = [words for words in found.sentences if words not in unranked]
    last = _fitting(replace(found, sentences=rest), out)
    about = [found.about] if found.about not in ("", *last) else []
    _say_all([*unranked, *found.notes, *about], out)
    for line in last:
        say(line, out)
    if found.about:
        out.print()


def print_answer(found: Answer, out: Console | None = None) -> None:
    """The first sentences of the answer, and what their intervals mean, on ``MAX_LINES`` lines.

    No sentence is cut: the first is there, whatever its length.
    """
    out = out or console()
    for line in _fitting(found, out):
        say(line, out)


def _fitting(found: Answer, out: Console) -> list[str]:
    about = [found.about] if found.about else []
    heights = [height(words, out) for words in found.sentences]
    left = MAX_LINES - sum(heights[:1])
    # The second, such as that on sound after that on pictures, is more than what intervals mean.
    second = sum(heights[1:2]) + (len(heights) > 2)
    second = second if second <= left else 0
    if about and left - second >= height(found.about, out):
        left -= height(found.about, out)
    else:
        about = []
    count = len(heights[:1])
    # A line is kept for the number of those that are left out.
    while count < len(heights) and heights[count] <= left - (count + 1 < len(heights)):
        left -= heights[count]
        count += 1
    more = len(heights) - count
    words = f"{more} more {'sentence' if more == 1 else 'sentences'} in the report."
    return [*found.sentences[:count], *([words] if more and left > 0 else []), *about]


def _say_all(sentences: Sequence[str], out: Console, style: str = "") -> None:
    """Sentences below a table, each with a hanging indent."""
    for words in sentences:
        say(words, out, style)
    if sentences:
        out.print()


def _cut(rows: Sequence[Sequence[Cell]], file: str, more: int = 0) -> dict[str, Any]:
    """The rows of a table that are shown, and the note on the others."""
    total, shown = len(rows) + more, rows[:MAX_ROWS]
    # Of results that are written, one command prints all.
    how = "; `talkspurt export --to table` makes a CSV file of them" if "." in file else ""
    notes = [f"{len(shown)} of {total} rows; all are in {file}{how}"] if total > len(shown) else []
    return {"rows": shown, "file": file, "notes": notes}


FLOWS, LINKS, SUMMARY = "flows.parquet", "links.parquet", "summary.parquet"
SCORES = "scores.parquet"
"""Where results are written: tables name them for what they omit."""


def _rank(measure: str, usual: int, judged_by: Sequence[str]) -> int:
    """The rank of a column: what judges calls is always shown, before other scores."""
    if measure in judged_by:
        return 0
    return max(usual, 1) if judged_by and measure in SCORES_OF_CALLS else usual


def _heads(view: str, hidden: Collection[str] = (), judged_by: Sequence[str] = ()) -> list[Column]:
    """The columns of a view of a run: names, then its metrics but the hidden ones."""
    row = "call" if view == "calls" else "flow"
    first = [name("link")] if view == "links" else [name(row), name("over")]
    for measure, it in VIEWS[view].items():
        if measure not in hidden:
            one, rank = column(measure), _rank(measure, it.rank, judged_by)
            first.append(Column(one.title, rank, full=one.long_title))
    return first


def _users(rank: int) -> Column:
    head, full = SATISFACTION
    return Column(head, rank, "text", full=full)


def _values(row: Mapping[str, Any], names: Iterable[str]) -> list[Cell]:
    return [_value(name, row) for name in names]


def _value(measure: str, row: Mapping[str, Any]) -> str:
    one, value = column(measure), row[measure]
    if one.unit == "s":
        return time_text(value)
    return rate_text(value) if one.unit == "bit/s" else one.of(row, unit=True)


def _of_view(
    title: str,
    view: str,
    rows: Iterable[Mapping[str, Any]],
    hidden: Collection[str] = (),
    judged_by: Sequence[str] = (),
) -> Table:
    """Flows of a run with the metrics of a view."""
    names = [measure for measure in VIEWS[view] if measure not in hidden]
    cells = [[row["name"], row["transport"] or "–", *_values(row, names)] for row in rows]
    return Table(title, _heads(view, hidden, judged_by), **_cut(cells, FLOWS))


def _calls(rows: list[dict[str, Any]], judged_by: Sequence[str] = ()) -> Table:
    columns = shown(VIEWS["calls"], rows, judged_by)
    table = _of_view("Calls", "calls", rows, set(VIEWS["calls"]) - set(columns), judged_by)
    if "r_factor" not in columns:
        return table
    grade, cells = column("r_factor"), zip(table.rows, rows, strict=False)
    table.rows = [[*it, _satisfaction(row["r_factor"], grade.outside(row))] for it, row in cells]
    return replace(table, columns=[*table.columns, _users(2)])


def _sound(of: RunData | StudyData, out: Console) -> None:
    """Scores of the sound, what they mean, and whether they contradict each other."""
    axes, legend = [], []
    if isinstance(of, RunData):
        runs, rows, file = [of], saying.of_result(of), SCORES
    else:
        runs, rows, file = list(of.runs), saying.of_study(of), SUMMARY
        axes = [axis.name for axis in of.axes]
        legend = intervals.legend(of.summary(tuple(scores.MODELS)).to_dicts())
    heads = [*map(name, axes), name("call"), *(Column(m.label) for m in scores.MODELS.values())]
    cells: list[list[Cell]] = [
        [*row.settings, row.name, *(_spaced(*texts) for texts in row.texts)] for row in rows
    ]
    Table("Scores of the sound", heads, **_cut(cells, file), legend=legend).print(out)
    said = [*saying.apart(rows), *scores.said(runs)]
    _say_all([saying.judged(runs), *said, *(saying.meanings(runs) if rows else ())], out)


def _spaced(mean: str, spread: str) -> str:
    """A mean with half its interval; clipped intervals show their ends below, to save width."""
    spread = spread.replace(" {", "\n{").replace("] (", "]\n(")
    between = "\n" if spread.startswith(("[", "{")) else " "
    return f"{mean}{between}{spread}".rstrip()


def _satisfaction(r_factor: float | None, bound: float | None) -> Text:
    if bound is not None:
        return Text("out of range", style="dim")
    found = verdict(r_factor)
    return Text(found.short, style=GRADE_STYLES[found.grade]) if found else Text("–")


def _flows(rows: list[dict[str, Any]]) -> Table:
    recovered = any(row.get("recovered_packets") for row in rows)
    return _of_view("Flows", "flows", rows, () if recovered else ("recovered_packets",))


def _links(rows: list[dict[str, Any]]) -> Table:
    busy = [row for row in rows if row["drops"] or (row["utilisation"] or 0.0) >= BUSY]
    shown = busy or rows[:8]
    cells = [[row["name"], *_values(row, VIEWS["links"])] for row in shown]
    return Table("Links", _heads("links"), **_cut(cells, LINKS, more=len(rows) - len(shown)))


CALL_COLUMNS = tuple(VIEWS["study_calls"])
FLOW_COLUMNS = tuple(VIEWS["study_flows"])
VIDEO = tuple(VIEWS["video"])
USERS, LAST = 3, 18
"""Rank of the users' satisfaction in a study, and of metrics that no table shows unasked."""

Row = dict[str, Any]


def print_study(study: StudyData, out: Console | None = None, found: Answer | None = None) -> None:
    """Means and intervals of every setting, paired differences along each axis, and the answer.

    ``found`` is the answer, if it has been computed.
    """
    out = out or console()
    say(_about(study), out)
    out.print()
    calls = _named(study, "concealed_ratio")
    found = found or answer(study)
    scored = study.flows.drop_nulls("concealed_ratio").to_dicts()
    call_columns = shown(CALL_COLUMNS, scored, found.judged_by)
    summary = study.rows(study.summary([*call_columns, "r_factor", *FLOW_COLUMNS]))
    if calls:
        of_calls = [row for row in summary if row["flow"] in calls]
        rated = "mos" in call_columns
        judges = found.judged_by
        _wide(study, "Calls", of_calls, call_columns, judges, verdicts=rated).print(out)
    if study.is_scored:
        _sound(study, out)
    videos = _named(study, "video_frames")
    if videos:
        of_videos = [r for r in study.rows(study.summary(VIDEO)) if r["flow"] in videos]
        _wide(study, "Video", of_videos, VIDEO).print(out)
    _wide(study, "Flows", summary, FLOW_COLUMNS).print(out)
    columns = call_columns if calls else FLOW_COLUMNS
    for axis, frame in study.comparisons(columns).items():
        rows = [row for row in study.rows(frame) if not calls or row["flow"] in calls]
        _difference(study, "Paired differences", axis, rows, columns).print(out)
    for axis, frame in study.comparisons(tuple(MODELS)).items() if study.is_scored else ():
        rows = [row for row in study.rows(frame) if row["mean"] is not None]
        title = "Paired differences of the scores of the sound"
        _difference(study, title, axis, rows, tuple(MODELS)).print(out)
    _say_all([f"Warning: {words}" for words in cautions(study.flows)], out, "yellow")
    _print_answer(found, out)


def _difference(
    study: StudyData, title: str, axis: str, rows: Iterable[Row], columns: Sequence[str]
) -> Table:
    """Differences of the other values of an axis to its first."""
    where = f"{title} along {axis}: value − {study.axis(axis).labels[0]}"
    return _wide(study, where, rows, columns, file=f"differences-{file_name(axis)}.parquet")


def _named(study: StudyData, column: str) -> set[str]:
    """The flows and groups of flows with a value in a column, named as in summaries."""
    rows = study.flows.drop_nulls(column).iter_rows(named=True)
    return {row.get("group") or row["name"] for row in rows}


def _about(study: StudyData) -> str:
    runs = f"{len(study.runs)} runs, {study.replications} of every setting"
    if study.replications < 2:
        return f"{runs}: no intervals (replications.count gives some)"
    return f"{runs}; means ± half of Student's {study.confidence * 100:g} % interval"


def _wide(
    study: StudyData,
    title: str,
    rows: Iterable[Row],
    columns: Sequence[str],
    judged_by: Sequence[str] = (),
    *,
    verdicts: bool = False,
    file: str = SUMMARY,
) -> Table:
    """One row per setting and flow, one column per metric."""
    axes = [axis.column for axis in study.axes]
    heads = [*(name(axis.name) for axis in study.axes), name("flow")]
    heads += [_headed(measure, judged_by) for measure in columns]
    if verdicts:
        heads.append(_users(USERS))
    cells: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in rows:
        key = (*(row[axis] for axis in axes), intervals.flow(row))
        cells.setdefault(key, {})[row["measure"]] = row
    lines: list[list[Cell]] = []
    for key, found in cells.items():
        lines.append([*key, *(_cell(found.get(measure)) for measure in columns)])
        if verdicts:
            of = found.get("r_factor", {})
            lines[-1].append(_satisfaction(of.get("mean"), of.get("bound")))
    table = Table(title, heads, **_cut(lines, file))
    shown = [row for found in list(cells.values())[:MAX_ROWS] for row in found.values()]
    table.legend = intervals.legend(row for row in shown if row["measure"] in columns)
    return table


SCORES_OF_CALLS = ("mos", ESTIMATE)
WITHOUT = "CSV without --table"
"""Where what a table of ``talkspurt metrics`` omits can be read."""


def print_sheet(study: StudyData, out: Console | None = None) -> None:
    """Counts, sizes, rates, delays and loss of every flow, and the nodes that send and receive."""
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
        why = without_packets(study.runs[0])
        say(f"Packet sizes need the packet table: {why}.", out)


def print_metric(
    study: StudyData,
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

    one = metric(name, of_links=link is not None)
    wanted, other = (link, flow) if one.of_links else (flow, link)
    if other is not None:
        raise ValueError(f"{one.full_name} is of {'links' if one.of_links else 'flows'}")
    found = parts(study, one, wanted, bin_s)
    if not found:
        raise missing(study, one, wanted)
    keys = [*(axis.name for axis in study.axes), place_of(study, one)]
    heads = list(map(layout.name, keys))
    cells: dict[tuple[str, ...], list[Part]] = {}
    for part in found:
        cells.setdefault(tuple(part.told[key] for key in keys), []).append(part)
    shown = one.quantity
    unit = f"\n{shown.unit}" if shown.unit else ""
    quantity = against(one)
    rows: list[list[Cell]] = []
    means = {key: study._row_of(one, its) for key, its in cells.items()}
    if quantity is None:
        heads.append(Column(f"{shown.label}{unit}"))
        rows = [[*key, _cell(mean)] for key, mean in means.items()]
    else:
        words = ("minimum", "mean", "maximum")
        heads += [Column("values"), *(Column(f"{word}{unit}") for word in words)]
        for key, its in cells.items():
            values = [float(value) for part in its for value in part.y if math.isfinite(value)]
            ends = shown.show(min(values)), shown.show(max(values))
            rows.append([*key, str(len(values)), ends[0], _cell(means[key]), ends[1]])
    legend = intervals.legend(means.values())
    title = shown.label[:1].upper() + shown.label[1:]
    table = Table(title, heads, **_cut(rows, WITHOUT))
    table.legend = [*legend, *filter(None, [sample_note(study, one, found)])]
    table.print(out or console())


def print_sensitivity(
    study: StudyData, measure: str, rows: Sequence[Row], out: Console | None = None
) -> None:
    """The indices of each factor with their intervals, by setting and flow."""
    from talkspurt.analysis.sensitivity import INDICES

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
    names = map(name, [*(axis.name for axis in lists), "flow", "factor"])
    heads = [*names, *(Column(INDICES[one]) for one in kinds)]
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


def _headed(measure: str, judged_by: Sequence[str] = ()) -> Column:
    one = number(measure)
    head = one.study_title or one.label
    unit = f"\n{one.shown_unit}" if one.shown_unit else ""
    views = (it for it in one.shown if it.view.startswith("study_"))
    shown = next(views, Shown("", 0, LAST))
    rank = _rank(measure, shown.rank, judged_by)
    return Column(head + unit, rank, full=head, below=shown.below)


def _cell(row: Row | None) -> str:
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
    if mean is None:
        return "–"
    _, scale, digits, _ = BOTH[measure]
    text = f"{round(mean * scale, digits) + 0.0:.{digits}f}"
    return f"{text}\n±{half * scale:.{digits}f}" if half else text
