"""What is said of an evaluation: tables of a terminal, a page, and Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from talkspurt._terminal.console import say
from talkspurt._terminal.layout import Cell, Column, Table, name
from talkspurt.evaluate import cases
from talkspurt.evaluate.cases import Case
from talkspurt.evaluate.judging import (
    HELD,
    MISSED,
    NO_WORSE,
    OPEN,
    REPORTED,
    UNABLE,
    WORSE,
    Measured,
)
from talkspurt.evaluate.running import Evaluation

MARKS = {MISSED: ("!", "red"), WORSE: ("!", "red"), OPEN: ("?", "yellow")}
GRADES = {HELD: "0", NO_WORSE: "0", OPEN: "3", MISSED: "5", WORSE: "5"}
"""Colours of verdicts, like the report's grades; others have none."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A4B00")
FILE = "results.json"


def band_text(band: Mapping[str, Any]) -> str:
    """A band in signs, as in ``0.75 to 1`` or ``≤ 150 ms``; of differences, what is better."""
    if "better" in band:
        return ", ".join(filter(None, (band["better"], band.get("unit"))))
    least, most = band.get("least"), band.get("most")
    unit = f" {band['unit']}" if "unit" in band else ""
    if least is not None and most is not None:
        return f"{least:g} to {most:g}{unit}"
    return f"≥ {least:g}{unit}" if most is None else f"≤ {most:g}{unit}"


def value_text(one: Measured) -> str:
    """A mean and half of its interval; a difference with its sign."""
    if one.mean is None:
        return "–"
    half = "" if one.half is None else f" ±{float(f'{one.half:.1g}'):g}"
    mean = f"{float(f'{one.mean:.3g}'):{'+' if one.is_difference else ''}g}"
    return mean.replace("inf", "∞") + half


def _grid(measured: Iterable[Measured]) -> dict[tuple[str, str], dict[str, Measured]]:
    """Measures by variant and name, and by candidate."""
    found: dict[tuple[str, str], dict[str, Measured]] = {}
    for one in measured:
        found.setdefault((one.variant, one.name), {})[one.candidate] = one
    return found


def _cell(one: Measured | None) -> Cell:
    if one is None:
        return ""
    if one.verdict == UNABLE:
        return Text(UNABLE, style="dim")
    mark, style = MARKS.get(one.verdict, ("", ""))
    return Text(f"{value_text(one)}{mark}", style=style)


def print_case(evaluation: Evaluation, case: Case, out: Console) -> None:
    """Every measure of a case: a row for each of a variant, a column for each candidate."""
    names = [one.name for one in evaluation.plan.candidates]
    last = "band" if evaluation.plan.baseline is None else "better"
    columns = [name("variant"), name("measure"), *map(Column, names), Column(last, 1, "text")]
    rows: list[list[Cell]] = []
    above = ""
    for (variant, measure), its in _grid(evaluation.measured[case.id]).items():
        band = next(iter(its.values())).band
        cells = [_cell(its.get(who)) for who in names]
        rows.append(["" if variant == above else variant, measure, *cells, band_text(band)])
        above = variant
    worse = evaluation.plan.baseline and f"! worse than {evaluation.plan.baseline}."
    legend = (
        worse or "! the band is missed: the interval lies outside.",
        "? open: too few seeds to tell.",
    )
    Table(f"{case.section}: {case.title}", columns, rows, FILE, legend=legend).print(out)
    _say_notes(evaluation.measured[case.id], out)


def print_all(evaluation: Evaluation, out: Console) -> None:
    """The verdicts of every case, and what was missed; of a single case, every measure."""
    plan = evaluation.plan
    if len(plan.cases) == 1:
        print_case(evaluation, plan.cases[0], out)
    else:
        columns = [name("case"), *(Column(one.name) for one in plan.candidates)]
        rows: list[list[Cell]] = []
        for case in plan.cases:
            cells = [_verdicts(evaluation.measured[case.id], one.name) for one in plan.candidates]
            rows.append([case.id, *cells])
        baseline = plan.baseline
        what = "differences" if baseline else "bands"
        Table(f"Verdicts on {what}", columns, rows, FILE).print(out)
        every = [one for its in evaluation.measured.values() for one in its]
        columns = [
            *map(name, ("case", "variant", "candidate", "measure")),
            Column("value"),
            Column("better" if baseline else "band", 0, "text"),
        ]
        missed = [
            [one.case, one.variant, one.candidate, one.name, value_text(one), band_text(one.band)]
            for one in every
            if one.verdict in (MISSED, WORSE)
        ]
        title = f"Worse than {baseline}" if baseline else "Bands missed"
        Table(title, columns, missed, FILE).print(out)
        _say_notes(every, out)
    say(summary(evaluation), out)


def _verdicts(measured: Iterable[Measured], candidate: str) -> Cell:
    verdicts = [one.verdict for one in measured if one.candidate == candidate]
    lines = []
    for verdict in (HELD, MISSED, NO_WORSE, WORSE, OPEN, REPORTED):
        count = verdicts.count(verdict)
        lines += [f"{count} {verdict}"] if count else []
    return "\n".join(lines) or Text(UNABLE, style="dim")


def _say_notes(measured: Iterable[Measured], out: Console) -> None:
    """Why candidates cannot run variants, and the like, each once."""
    notes: dict[tuple[str, str], dict[str, None]] = {}
    for one in measured:
        if one.note:
            notes.setdefault((one.candidate, one.note), {})[f"{one.case} {one.variant}"] = None
    for (candidate, note), where in notes.items():
        say(f"{candidate}: {note} ({'; '.join(where)})", out)


def summary(evaluation: Evaluation) -> str:
    """A sentence on all verdicts."""
    baseline, seeds = evaluation.plan.baseline, evaluation.plan.seeds
    verdicts = (HELD, MISSED, OPEN) if baseline is None else (NO_WORSE, WORSE, OPEN)
    counts = ", ".join(f"{evaluation.count(verdict)} {verdict}" for verdict in verdicts)
    how = (
        f"means over {seeds} seeds, ± half of a 95 % interval; verdicts of each case by Holm"
        if seeds > 1
        else "of one seed, without intervals every verdict is open"
    )
    if baseline is not None:
        return f"Against {baseline}: {counts}. Other values: differences from it, {how}."
    return f"Bands: {counts}. Values: {how}. The bands are talkspurt's, not the RFCs'."


def print_list(chosen: Sequence[Case], out: Console) -> None:
    """The cases, their variants, and what a variant needs."""
    rows: list[list[Cell]] = []
    for case in chosen:
        for number, variant in enumerate(v for v in case.variants if v not in case.references):
            need = case.variants[variant].get("needs")
            head = [case.id, case.title] if not number else ["", ""]
            rows.append([*head, variant, f"only with {need}" if need else ""])
    columns = [
        Column("case", 0, "id"),
        Column("title", 0, "prose"),
        Column("variant", 0, "prose"),
        Column("needs", 1, "prose"),
    ]
    Table("Cases of RFC 8867 and RFC 8869", columns, rows, "--json").print(out)
    say(f"Controllers: {', '.join(cases.CONTROLLERS)}, or a table of a scenario.", out)
    say(f"Transports: {', '.join(cases.TRANSPORTS)}, or a table of a scenario.", out)
    for why in NOT_HERE:
        say(why, out)


NOT_HERE = (
    "Not here: RFC 8869 §2 (cellular networks), which asks for a simulator of 3GPP radio: a trace "
    "of a network makes another test.",
    "Not here: RFC 8869 §3.3, for which it gives no numbers.",
    "6.1 needs priorities, coupling or a shared session, and 6.2 ECN: others cannot run them.",
)


def page(evaluation: Evaluation) -> str:
    """The page: of each case its table, its bands with their reasons, and what its authors draw."""
    from talkspurt.report import page as pages

    charts: list[dict[str, Any]] = []
    sections = []
    for case in evaluation.plan.cases:
        measured = evaluation.measured[case.id]
        drawn = _charts(evaluation, case)
        charts += drawn
        sections.append(
            {
                "case": case,
                "about": pages.markdown(case.about),
                "anchor": f"case-{case.id.replace('.', '-')}",
                "charts": [chart["name"] for chart in drawn],
                "rows": _rows(measured, [one.name for one in evaluation.plan.candidates]),
                "bands": {one.band["of"]: one.band for one in measured}.values(),
                "notes": sorted(
                    {f"{m.candidate}, {m.variant}: {m.note}" for m in measured if m.note}
                ),
            }
        )
    return pages.render(
        "evaluation.html.j2",
        title="RFC 8867 and RFC 8869",
        summary=summary(evaluation),
        candidates=[one.name for one in evaluation.plan.candidates],
        sections=sections,
        charts=charts,
        band_text=band_text,
        sets=[f"{path}={value}" for path, value in evaluation.plan.sets],
    )


def _rows(measured: Sequence[Measured], names: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            "variant": variant,
            "measure": measure,
            "band": band_text(next(iter(its.values())).band),
            "cells": [
                (value_text(its[who]), its[who].verdict, GRADES.get(its[who].verdict, "none"))
                if who in its
                else ("", "", "none")
                for who in names
            ],
        }
        for (variant, measure), its in _grid(measured).items()
    ]


def _charts(evaluation: Evaluation, case: Case) -> list[dict[str, Any]]:
    """Rates of flows with the capacity, and queueing delay, of the first seed."""
    charts = []
    for number, variant in enumerate(case.variants):
        its = {
            one.name: evaluation.curves[key]
            for one in evaluation.plan.candidates
            if (key := (case.id, variant, one.name)) in evaluation.curves
        }
        if not its:
            continue
        place = f"{case.id}-{number}"
        rates = [{"title": who, "lines": _rates(case, of)} for who, of in its.items()]
        waits = [{"title": who, "lines": [_waits(of)]} for who, of in its.items()]
        what = f"{case.id}, {variant}"
        longest = "longest queueing delay of a media packet in a second"
        charts += [
            _chart(f"rates-{place}", f"{what}: rates", "Mbit/s", rates),
            _chart(f"waits-{place}", f"{what}: {longest}", "ms", waits),
        ]
    return charts


def _chart(name: str, title: str, unit: str, panels: list[dict[str, Any]]) -> dict[str, Any]:
    """A chart, as charts.js documents it."""
    return {"name": name, "title": title, "unit": unit, "panels": panels, "explained": []}


def _rates(case: Case, of: Mapping[str, Any]) -> list[dict[str, Any]]:
    lines = [
        {
            "label": who,
            "colour": COLOURS[n % len(COLOURS)] if who.startswith("media") else "quiet",
            "x": [second + 0.5 for second in range(len(values))],
            "values": values,
        }
        for n, (who, values) in enumerate(of["rates"].items())
    ]
    if not math.isfinite(case.end) or not case.capacity:
        return lines
    steps = case.phases()
    capacity = {
        "label": "capacity",
        "colour": "quiet",
        "x": [begin for begin, _, _ in steps] + [case.end],
        "values": [rate for _, _, rate in steps] + [steps[-1][2]],
        "stepped": 1,
        "dashes": [4, 3],
    }
    return [*lines, capacity]


def _waits(of: Mapping[str, Any]) -> dict[str, Any]:
    values = of["waits"]
    x = [second + 0.5 for second in range(len(values))]
    return {"label": "queueing delay", "colour": COLOURS[0], "x": x, "values": values}
