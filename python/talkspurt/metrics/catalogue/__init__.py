"""The catalogue of metrics: what each is, its unit, its formula and where that is from.

The report, the documentation, the figures, the tables on the terminal and ``talkspurt metrics`` all
read it from here, so that a metric has one name and is explained once, in the same words.
The columns of the tables that every run has come from the engine, which defines each beside its
column; ``computed`` holds what is computed from these tables when asked for.
"""

from __future__ import annotations

import json
import math

from talkspurt import _core
from talkspurt.metrics.catalogue.computed import COMPUTED
from talkspurt.metrics.catalogue.kinds import Column, Computed, Metric

__all__ = [
    "ALL", "COLUMNS", "COMPUTED", "FLOWS", "GAUGES", "LINKS", "Column", "Computed", "Metric",
    "column", "metric", "of_a_flow",
]  # fmt: skip

COLUMNS: tuple[Column, ...] = tuple(
    Column(**{**one, "most": math.inf if one["most"] is None else one["most"]})
    for one in json.loads(_core.metrics())
)
FLOWS = tuple(one for one in COLUMNS if one.table == "flows")
LINKS = tuple(one for one in COLUMNS if one.table == "links")
GAUGES = tuple(one for one in COLUMNS if one.table == "gauges")
ALL: tuple[Metric, ...] = (*COLUMNS, *COMPUTED)

# Of a name that columns of flows and of links share, the flows'.
_COLUMNS = {column.name: column for column in reversed(COLUMNS)}


def metric(name: str, *, of_links: bool = False) -> Metric:
    """The metric of this name, or with this letter in the study of voice over transports.

    Where several have one name, that which is computed comes first, then columns of flows, of
    links, and gauges; ``links.sent_packets`` or ``gauges.loss_event_rate`` says which.

    Args:
        name: name, name with its table's, or letter.
        of_links: whether of one name that of links is meant.

    Raises:
        KeyError: when there is none; names the nearest.
    """
    import difflib

    every: tuple[Metric, ...] = (*COMPUTED, *COLUMNS)
    found = [one for one in every if name in one.names]
    if found:
        return next((one for one in found if one.of_links == of_links), found[0])
    names = dict.fromkeys(known for one in ALL for known in sorted(one.names, key=len))
    near = difflib.get_close_matches(name, names, 1)
    hint = f"; did you mean {near[0]!r}?" if near else "; `talkspurt metrics` lists them"
    raise KeyError(f"no metric {name!r}{hint}")


def column(name: str) -> Column:
    """The column of this name that every run has.

    Raises:
        KeyError: when there is none; says what the name is, or names the nearest.
    """
    if name not in _COLUMNS:
        one = metric(name)
        raise KeyError(f"{one.name} is no column of a run: it is computed when asked for")
    return _COLUMNS[name]


def of_a_flow(name: str) -> Metric:
    """The metric of this name that is one number of each flow, as a study's summary has them.

    Raises:
        KeyError: when there is none; says what else the name is, or names the nearest.
    """
    numbers: list[Metric] = [*FLOWS, *(one for one in COMPUTED if one.shape == "flows")]
    for number in numbers:
        if name in number.names:
            return number
    one = metric(name)
    if isinstance(one, Computed):
        what = f"{one.y} against {one.x}"
    else:
        what = "of links" if one.of_links else "over time"
    raise KeyError(f"{one.full_name} is no number of a flow: it is {what}")
