"""Small multiples: the lines of a picture distributed over panels of at most six.

The report's charts and the figures distribute the lines of flows alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from talkspurt._text.format import rate_text
from talkspurt.figures.style import FAMILIES, Style
from talkspurt.metrics.bins import sided
from talkspurt.results.run_data import RunData

MAX_LINES = 6
MAX_FLOWS = 24


class Panel(NamedTuple):
    """Flows with a panel of their own, its title, and the link whose capacity is behind them."""

    title: str
    flows: list[str]
    link: str | None = None


def by_kind(flows: Sequence[str], styles: Mapping[str, Style]) -> list[Panel]:
    """One panel, if that is enough; otherwise those of each kind of traffic."""
    if len(flows) <= MAX_LINES:
        return [Panel("", list(flows))]
    kinds = {kind: [name for name in flows if styles[name].kind == kind] for kind in FAMILIES}
    others = [name for name in flows if styles[name].kind not in kinds]
    return [part for kind, its in (kinds | {"other": others}).items() for part in _parts(kind, its)]


def by_bottleneck(
    result: RunData, flows: Sequence[str], styles: Mapping[str, Style]
) -> list[Panel]:
    """The flows over each bottleneck, with its capacity, if that is known.

    The bottleneck of a flow is the link on its first route with the least mean capacity.
    """
    series = result.link_series()
    if "capacity_bps" not in series.columns:  # of an older version
        return by_kind(flows, styles)
    means = series.drop_nulls("capacity_bps").group_by("link").agg(pl.col("capacity_bps").mean())
    capacity: dict[str, float] = dict(means.iter_rows())
    routes = {flow["name"]: flow["links"] for flow in result.topology["flows"] if "links" in flow}
    groups: dict[str | None, list[str]] = {}
    for name in flows:
        flow, side = sided(name)
        route = next(iter(routes.get(flow, {}).get(side, ())), ())
        known = [link for link in route if link in capacity]
        groups.setdefault(min(known, key=capacity.__getitem__, default=None), []).append(name)
    panels = []
    for link, its in groups.items():
        title = f"{link}, mean {rate_text(capacity[link])}" if link else ""
        for part in by_kind(its, styles):
            words = ", ".join(filter(None, [title, part.title]))
            panels.append(Panel(words, part.flows, link))
    return panels


def _parts(title: str, flows: Sequence[str]) -> list[Panel]:
    count = -(-len(flows) // MAX_LINES)
    cuts = [len(flows) * place // max(count, 1) for place in range(count + 1)]
    parts = [list(flows[cuts[n] : cuts[n + 1]]) for n in range(count)]
    if count < 2:
        return [Panel(title, part) for part in parts]
    return [Panel(f"{title}: {part[0]} … {part[-1]}", part) for part in parts]
