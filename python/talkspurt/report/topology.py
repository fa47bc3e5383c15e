"""The network as a picture: nodes in columns in the order packets pass them, links, and routes.

No layout library: a node's column is its place on the longest route that passes it, its row
follows its neighbours. Good for the dumbbells, chains and stars experiments are made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

from talkspurt import measures
from talkspurt.figures.style import FlowStyle

MOST_NODES = 40
COLUMN, ROW, MARGIN = 200.0, 98.0, 64.0
NODE_RADIUS = 8.0
LANE = 4.5


@dataclass(frozen=True)
class Place:
    """Where a node is drawn."""

    x: float
    y: float


def svg(topology: Mapping[str, Any], styles: Mapping[str, FlowStyle]) -> str | None:
    """The picture, or None when the network is too large to read as one."""
    names = [node["name"] for node in topology["nodes"]]
    if not names or len(names) > MOST_NODES:
        return None
    places = layout(
        names, topology["links"], [route for flow in topology["flows"] for route in flow["routes"]]
    )
    width = max(p.x for p in places.values()) + MARGIN
    height = max(p.y for p in places.values()) + 58
    parts = [
        f'<svg class="topology" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'style="max-width:{width * 1.15:.0f}px" aria-label="Network and routes of the flows">',
        *(_wire(link, places) for link in topology["links"]),
        *_routes(topology["flows"], places, styles),
        *(_link_words(link, places, height / 2) for link in topology["links"]),
        *(_node(name, place) for name, place in places.items()),
        "</svg>",
    ]
    return "".join(parts)


def layout(
    names: Sequence[str], links: Sequence[Mapping[str, Any]], routes: Sequence[Sequence[str]]
) -> dict[str, Place]:
    """A place for each node."""
    columns = _columns(names, links, routes)
    groups = _components(names, links)
    places: dict[str, Place] = {}
    top = 40.0
    for group in groups:
        by_column: dict[int, list[str]] = {}
        for name in group:
            by_column.setdefault(columns[name], []).append(name)
        tallest = max(len(members) for members in by_column.values())
        rows = _rows(by_column, links, tallest)
        for name in group:
            places[name] = Place(MARGIN + columns[name] * COLUMN, top + rows[name] * ROW)
        top += tallest * ROW + (14 if len(groups) > 1 else 0)
    return {name: places[name] for name in names}


def _columns(
    names: Sequence[str], links: Sequence[Mapping[str, Any]], routes: Sequence[Sequence[str]]
) -> dict[str, int]:
    """Longest way from a source along the routes; routes that go against earlier ones yield."""
    after: dict[str, set[str]] = {name: set() for name in names}
    for route in routes:
        for a, b in pairwise(route):
            if not _reaches(after, b, a):
                after[a].add(b)
    for link in links:  # nodes on no route hang behind what they are linked to
        a, b = link["from"], link["to"]
        if not (after[a] or after[b] or _reaches(after, b, a)) or not any((after[a], after[b])):
            after[a].add(b)
    column = dict.fromkeys(names, 0)
    for _ in names:
        for a in names:
            for b in after[a]:
                column[b] = max(column[b], column[a] + 1)
    _pull_sources(column, after)
    return column


def _pull_sources(column: dict[str, int], after: Mapping[str, set[str]]) -> None:
    """A node nothing leads to stands right before what it leads to, not at the far left."""
    led_to = {b for ends in after.values() for b in ends}
    for name, ends in after.items():
        if name not in led_to and ends:
            column[name] = min(column[b] for b in ends) - 1


def _reaches(after: Mapping[str, set[str]], start: str, end: str) -> bool:
    seen, todo = {start}, [start]
    while todo:
        here = todo.pop()
        if here == end:
            return True
        for name in after[here] - seen:
            seen.add(name)
            todo.append(name)
    return False


def _components(names: Sequence[str], links: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    near: dict[str, list[str]] = {name: [] for name in names}
    for link in links:
        near[link["from"]].append(link["to"])
        near[link["to"]].append(link["from"])
    seen: set[str] = set()
    groups = []
    for name in names:
        if name in seen:
            continue
        group, todo = [], [name]
        seen.add(name)
        while todo:
            here = todo.pop(0)
            group.append(here)
            fresh = [n for n in near[here] if n not in seen]
            seen.update(fresh)
            todo += list(dict.fromkeys(fresh))
        groups.append(group)
    return groups


def _rows(
    by_column: Mapping[int, list[str]], links: Sequence[Mapping[str, Any]], tallest: int
) -> dict[str, float]:
    """Rows that follow the neighbours' mean, each column centred."""
    rows: dict[str, float] = {}
    near: dict[str, list[str]] = {}
    for link in links:
        near.setdefault(link["from"], []).append(link["to"])
        near.setdefault(link["to"], []).append(link["from"])

    def spread(members: Sequence[str]) -> None:
        first = (tallest - len(members)) / 2
        for i, name in enumerate(members):
            rows[name] = first + i

    for members in by_column.values():
        spread(members)
    for _ in range(3):
        for column in sorted(by_column):

            def wish(name: str) -> float:
                around = [rows[n] for n in near.get(name, []) if n in rows]
                return sum(around) / len(around) if around else rows[name]

            by_column[column].sort(key=wish)
            spread(by_column[column])
    return rows


def _wire(link: Mapping[str, Any], places: Mapping[str, Place]) -> str:
    a, b = places[link["from"]], places[link["to"]]
    return f'<line class="wire" x1="{a.x:.1f}" y1="{a.y:.1f}" x2="{b.x:.1f}" y2="{b.y:.1f}"/>'


def _link_words(link: Mapping[str, Any], places: Mapping[str, Place], middle: float) -> str:
    a, b = places[link["from"]], places[link["to"]]
    # A link that slants is named nearer its outer end, where its neighbours are farther away.
    share = 0.5 if a.y == b.y else 0.4 if abs(a.y - middle) > abs(b.y - middle) else 0.6
    x, y = a.x + (b.x - a.x) * share, a.y + (b.y - a.y) * share
    numbers = f"{measures.rate_text(link['rate_bps'])}, {measures.time_text(link['delay_s'])}"
    title = f"{link['name']}: {numbers}, {link['queue']}, MTU {link['mtu']}, loss {link['loss']:g}"
    return (
        f'<g class="link-words"><title>{escape(title)}</title>'
        f'<text x="{x:.1f}" y="{y + 21:.1f}" class="link-name">{escape(link["name"])}</text>'
        f'<text x="{x:.1f}" y="{y + 34:.1f}">{escape(numbers)}</text>'
        f'<text x="{x:.1f}" y="{y + 47:.1f}">{escape(link["queue"])}</text></g>'
    )


def _routes(
    flows: Sequence[Mapping[str, Any]], places: Mapping[str, Place], styles: Mapping[str, FlowStyle]
) -> list[str]:
    drawn = [flow for flow in flows if flow["name"] in styles and flow["routes"]][:12]
    passed = {flow["name"]: {node for route in flow["routes"] for node in route} for flow in drawn}
    lines = []
    for flow in drawn:
        name, style = flow["name"], styles[flow["name"]]
        # Flows that share a node run side by side; each has a lane of its own.
        beside = [other for other in drawn if passed[other["name"]] & passed[name]]
        shift = (beside.index(flow) - (len(beside) - 1) / 2) * LANE
        dashes = f' stroke-dasharray="{" ".join(map(str, style.dashes))}"' if style.dashes else ""
        for route in flow["routes"]:
            points = " ".join(f"{places[n].x:.1f},{places[n].y + shift:.1f}" for n in route)
            lines.append(
                f'<polyline class="route" points="{points}" stroke="{style.colour}"{dashes}>'
                f"<title>{escape(name)}</title></polyline>"
            )
    return lines


def _node(name: str, place: Place) -> str:
    return (
        f'<circle class="node" cx="{place.x:.1f}" cy="{place.y:.1f}" r="{NODE_RADIUS}"/>'
        f'<text class="node-name" x="{place.x:.1f}" y="{place.y - 16:.1f}">{escape(name)}</text>'
    )
