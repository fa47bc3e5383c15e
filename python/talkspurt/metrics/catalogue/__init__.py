"""The metric catalogue: meaning, unit, formula and source of each metric.

The report, the documentation, the figures, the terminal tables and ``talkspurt metrics`` all read
it, so that each metric has one name and one explanation. Columns of the tables in every run come
from the engine, which defines each next to its column; ``computed`` lists the metrics computed from
these tables on request.
"""

from __future__ import annotations

import functools
import json
import math

from talkspurt import _core
from talkspurt._text.format import nearest, words
from talkspurt.metrics.catalogue.computed import COMPUTED
from talkspurt.metrics.catalogue.kinds import (
    BY_COLUMN,
    OVER_TIME,
    Column,
    Computed,
    Metric,
    Quantity,
    Shown,
)
from talkspurt.scores.kinds import MODELS

__all__ = [
    "ALL", "COLUMNS", "COMPUTED", "FLOWS", "GAUGES", "LINKS", "SATISFACTION", "SOUND", "VIEWS",
    "Column", "Computed", "Metric", "Quantity", "column", "metric", "near_names", "number",
    "of_a_flow", "over_time", "quantity",
]  # fmt: skip

COLUMNS: tuple[Column, ...] = tuple(
    Column(
        **{
            **one,
            "most": math.inf if one["most"] is None else one["most"],
            "shown": tuple(Shown(*each) for each in one["shown"]),
        }
    )
    for one in json.loads(_core.metrics())
)
SOUND: tuple[Column, ...] = tuple(
    Column(
        name=one.name,
        table="scores",
        label=one.label,
        unit="1",
        shown_unit="",
        scale=1.0,
        digits=2,
        meaning=f"{one.meaning[0].upper()}{one.meaning[1:]} {one.misses}",
        formula="mean over the segments of about 8 s of the aligned recording",
        source=one.source,
        better="higher",
        least=1.0,
        most=5.0,
        shown=(Shown("study_sound", place),),
    )
    for place, one in enumerate(MODELS.values())
)
"""Scores of the sound, by models on request; the table has PESQ's in two columns, of which a call
has one."""
FLOWS = tuple(one for one in COLUMNS if one.table == "flows")
LINKS = tuple(one for one in COLUMNS if one.table == "links")
GAUGES = tuple(one for one in COLUMNS if one.table == "gauges")
ALL: tuple[Metric, ...] = (*COLUMNS, *SOUND, *COMPUTED)
NUMBERS: tuple[Metric, ...] = (*FLOWS, *SOUND, *(one for one in COMPUTED if one.shape == "flows"))

VIEWS: dict[str, dict[str, Shown]] = {}
"""By view: the metrics that it shows, in the order of its columns."""
for _place, _one in sorted(
    ((it, one) for one in ALL for it in one.shown), key=lambda it: it[0].place
):
    VIEWS.setdefault(_place.view, {})[_one.name] = _place

# If flows and links share a column name, that of flows.
_COLUMNS = {column.name: column for column in reversed((*COLUMNS, *SOUND))}


def metric(name: str, *, of_links: bool = False) -> Metric:
    """The metric with this name, or with this letter in the study of voice over transports.

    If several share a name, the order is: computed metrics, columns of flows, columns of links,
    gauges; ``links.sent_packets`` or ``gauges.loss_event_rate`` selects one. Capitals do not
    matter, and the title of a column on the terminal stands for its metric, as in ``Longest gap``.

    Args:
        name: name, optionally with its table's, or letter, or title.
        of_links: whether to prefer the metric of links.

    Raises:
        KeyError: if there is none; suggests near names.
    """
    every: tuple[Metric, ...] = (*COMPUTED, *COLUMNS, *SOUND)
    found = [one for one in every if name in one.names]
    if found:
        return next((one for one in found if one.of_links == of_links), found[0])
    if (meant := _titled().get(words(name))) is not None:
        return metric(meant, of_links=of_links)
    near = [repr(one) for one in near_names(name)]
    close = " or ".join(filter(None, [", ".join(near[:-1]), *near[-1:]]))
    hint = f"; did you mean {close}?" if near else "; `talkspurt metrics` lists them"
    raise KeyError(f"no metric {name!r}{hint}")


def near_names(name: str) -> list[str]:
    """The metrics that an unknown name may stand for: those shown under it, or spelled like it."""
    known = _shown()
    table, _, bare = name.partition(".")
    asked = bare if bare and table in TABLES else name
    exact = known.get(words(asked), [])
    if exact:
        return exact
    close = nearest(asked, known, 3)
    return list(dict.fromkeys(one for title in close for one in known[words(title)]))[:3]


TABLES = ("flows", "links", "gauges", "scores", "series", "link_series")


SATISFACTION = ("users", "users' satisfaction")
"""Head of the verdict that ITU-T G.107 Annex B derives from R, and the longer one."""


SHORT = {
    "delay": "delay_mean_s", "loss": "network_loss", "mouth to ear": "mouth_to_ear_mean_s",
}  # fmt: skip
"""What a word means of which several titles are made."""


@functools.cache
def _titled() -> dict[str, str]:
    """The metric that a name in any letters, or a title, stands for, by lower-case words.

    Of several, names come first, then titles of the tables on the terminal in their order there.
    """
    titles = [
        *((name, one) for one in ALL for name in (one.name, one.full_name)),
        *_heads("calls", "flows", "video", "links"),
        *((one.study_title, one) for one in ALL),
        *((title, column("r_factor")) for title in SATISFACTION),
        *((one.label, one) for one in ALL),
    ]
    first = {words(title): _unique(one) for title, one in reversed(titles) if title}
    return {**first, **SHORT}


def _heads(*views: str) -> list[tuple[str, Metric]]:
    """The heads of the columns of these views of a run, with their metrics."""
    every = [column(name) for view in views for name in VIEWS[view]]
    return [(title, one) for one in every for title in (one.title, one.long_title)]


def _unique(one: Metric) -> str:
    """The name of a metric, with its table's if the name alone means another one."""
    return one.name if metric(one.name) is one else one.full_name


@functools.cache
def _shown() -> dict[str, list[str]]:
    """The names of metrics by all names and titles that are shown, as lower-case words."""
    titles = [*_heads("calls", "video", "flows", "links"), *((one.study_title, one) for one in ALL)]
    names = [
        # Letters are not spelled like anything.
        *((one.name, _unique(one)) for one in ALL),
        *((title, one.full_name if one.of_links else one.name) for title, one in titles if title),
        *((title, "r_factor") for title in SATISFACTION),
        *((one.label, _unique(one)) for one in ALL),
    ]
    found: dict[str, dict[str, None]] = {}
    for title, name in names:
        found.setdefault(words(title), {})[name] = None
    return {title: list(its) for title, its in found.items()}


def column(name: str) -> Column:
    """The column of this name: one that every run has, or a score of the sound."""
    if name not in _COLUMNS:
        one = metric(name)
        if isinstance(one, Column):
            return one
        raise KeyError(f"{one.name} is no column of a run: it is computed when asked for")
    return _COLUMNS[name]


def of_a_flow(name: str) -> Metric:
    """The metric with this name that is one number per flow, as in a study's summary."""
    one = number(name)
    if one in NUMBERS:
        return one
    if isinstance(one, Computed):
        what = f"{one.y} against {one.x}"
    else:
        what = "of links" if one.of_links else "over time"
    raise KeyError(f"{one.full_name} is no number of a flow: it is {what}")


@functools.cache
def number(name: str) -> Metric:
    """The metric with this name; a number of a flow comes first, as in a summary."""
    found = next((one for one in NUMBERS if name in one.names), None)
    return found or metric(_titled().get(words(name), name))


def quantity(name: str) -> Quantity:
    """How values of :func:`number` are shown."""
    return number(name).quantity


def over_time(one: Metric) -> Metric:
    """The metric over time that belongs to a number of a whole run; itself if it is over time."""
    if isinstance(one, Column):
        if one.table == "gauges":
            return one
        known = one.name if one.table == "flows" else one.full_name
    else:
        if one.x and BY_COLUMN[one.x].label.startswith("time") and one.x != "scale_s":
            return one
        known = "" if one.x else one.name
    if known not in OVER_TIME:
        against = isinstance(one, Computed) and one.x
        what = f"against {BY_COLUMN[against].label}" if against else "one number for the whole run"
        raise ValueError(
            f"{one.full_name} is {what}; `talkspurt metrics` lists those against time_s"
        )
    return metric(OVER_TIME[known])
