"""The report of one run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from talkspurt import figures
from talkspurt._terminal.tables import BUSY
from talkspurt.analysis.cautions import cautions
from talkspurt.figures import charts
from talkspurt.figures.media import BEST_MOS
from talkspurt.figures.style import FAMILIES, Drawn
from talkspurt.metrics.catalogue import ALL, COLUMNS, VIEWS, Metric, column, number
from talkspurt.report import answer, calls, page, topology
from talkspurt.report.animation import animation
from talkspurt.results.groups import condensed
from talkspurt.results.run_data import BYTES, RunData
from talkspurt.scores import MODELS

FLOW_COLUMNS = tuple(VIEWS["report_flows"])
VIDEO = tuple(VIEWS["video"])
CHARTED = {"delay": "delay_mean_s", "cwnd": "cwnd", "sojourn": "sojourn_max_s"}
"""Information in charts that is in no table, by chart."""
MAX_ROWS = 60
MAX_LINKS = 200


def html(result: RunData, drawn: Iterable[Drawn] | None = None) -> str:
    """The page; ``drawn`` are the figures of the result, if they have been drawn."""
    styles = charts.styles_of(result)
    network, size = network_of(result)
    drawings, bars = charts.of_result(result)
    found = answer.of_result(result)
    return page.render(
        "single.html.j2",
        result=result,
        title=result.title,
        description=page.markdown(result.description),
        answer=found,
        player=calls.of_result(result, size, answer.score_of(found)),
        real_time=_real_time(result),
        sound=answer.sound_of_result(result),
        **network,
        styles=styles,
        kinds={
            kind: its for kind, its in FAMILIES.items() if kind in {s.kind for s in styles.values()}
        },
        flows=condensed(result.flows.to_dicts())[:MAX_ROWS],
        video_columns=[column(name) for name in VIDEO],
        links=_links(result),
        most_links=MAX_LINKS,
        flow_columns=[column(name) for name in FLOW_COLUMNS],
        byte_columns=[column(name) for name in BYTES],
        link_columns=[column(name) for name in _link_columns(result)],
        charts=drawings,
        metrics=_explained(result, drawings),
        bars=bars,
        best_mos=BEST_MOS,
        figures=_stills(result, drawn),
        cautions=cautions(result.flows),
        notes=notes([result]),
    )


def network_of(result: RunData) -> tuple[dict[str, Any], int]:
    """The picture of the network and the animation in it, and the size of this."""
    picture = topology.of_result(result)
    moving = animation(result)
    network = {
        "topology": Markup(picture.svg) if picture else None,
        "key": picture.key if picture else (),
        "animation": moving,
    }
    return network, 0 if isinstance(moving, str) else moving.size


def _real_time(result: RunData) -> dict[str, Any] | None:
    real_time = result.manifest.get("real_time")
    if not real_time:
        return None
    from talkspurt.emulating import account

    words = [account.summary(real_time), *account.findings(real_time)]
    return {**real_time, "words": words}


def _explained(result: RunData, drawings: Sequence[Mapping[str, Any]]) -> list[Metric]:
    """The metrics shown on the page, in tables, cards of calls and charts."""
    names = [*FLOW_COLUMNS, *BYTES, "rate_bps", *_link_columns(result)]
    if result.calls:
        names += ("mos", *answer.RUN_COLUMNS)
    if result.is_scored:
        names += MODELS
    if result.flows["video_frames"].is_not_null().any():
        names += VIDEO
    names += [CHARTED[chart["name"]] for chart in drawings if chart["name"] in CHARTED]
    names += [part["name"] for chart in drawings for part in chart["explained"]]
    return in_order(names)


def in_order(names: Iterable[str]) -> list[Metric]:
    """Metrics, each once, in catalogue order."""
    columns = {one.name for one in COLUMNS}
    shown = {column(name) if name in columns else number(name) for name in names}
    return [one for one in ALL if one in shown]


def _link_columns(result: RunData) -> list[str]:
    """The columns of links; some are shown only if one has a value other than 0."""
    there = result.links
    return [
        name
        for name, shown in VIEWS["report_links"].items()
        if not shown.rank or (name in there.columns and there[name].drop_nulls().ne(0).any())
    ]


def _links(result: RunData) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Relevant links, and the idle ones."""
    rows = result.links.head(MAX_LINKS).to_dicts()
    busy = [row for row in rows if row["drops"] or (row["utilisation"] or 0.0) >= BUSY]
    return (busy, [row for row in rows if row not in busy]) if busy else (rows, [])


def _stills(result: RunData, drawn: Iterable[Drawn] | None) -> list[tuple[Markup, bool]]:
    if drawn is None:
        drawn = (Drawn.of(*one) for one in figures.every(result, only_of_report=True))
    kinds = {name: kind for name, kind in figures.KINDS.items() if kind.in_report}
    return [
        (Markup(figures.inline_svg(one.svg, kinds[one.name].alt)), True)
        for one in drawn
        if one.name in kinds
    ]


def notes(results: list[RunData]) -> list[tuple[str, list[str]]]:
    """Each assumption once, with its flows, the most common first."""
    said: dict[str, list[str]] = {}
    for result in results:
        for flow, note in result.flows.select("name", "quality_note").drop_nulls().iter_rows():
            for part in note.split("; "):
                flows = said.setdefault(part, [])
                if flow not in flows:
                    flows.append(flow)
    return sorted(said.items(), key=lambda entry: -len(entry[1]))
