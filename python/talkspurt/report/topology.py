"""The network as a picture: nodes, links with their properties, and coloured routes of flows.

``layout`` selects what is drawn, and places it. The picture takes its colours from the page;
``file`` makes a standalone one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise
from typing import Any

from talkspurt._text.format import rate_text, time_text
from talkspurt.figures.style import Style
from talkspurt.report.layout import Drawn, Plan, gather, plan
from talkspurt.report.page import asset

COLUMN, ROW, MARGIN, TOP, GAP = 210.0, 102.0, 72.0, 44.0, 22.0
LOW_ROW = 26.0
"""Height of a row without space for labels."""
MAX_ROWS_WITH_WORDS = 24
NODE_RADIUS = 8.0
LANE = 4.5
MIN_WIDTH = 0.6
"""Minimum width of a picture; a page scrolls it."""
LETTER = 7.6
"""Approximate width of a letter of a name."""
LOOP = 26
"""Width and height of a link from a node to itself, which is a triangle below the node."""
FAN = 0.12
"""Distance of labels from the middle of fanned-out links, in link lengths."""
MAX_LINES = 12
"""Maximum flows with individual lines; beyond, flows with equal transport and route share one,
except that calls and video do not share one with other traffic."""

Box = tuple[float, float, float, float]
"""Left, top, width and height."""


@dataclass(frozen=True)
class Line:
    """One line of the picture: a flow, or several with the same transport and route."""

    flows: tuple[str, ...]
    transport: str
    ends: str
    routes: tuple[tuple[str, ...], ...]
    style: Style

    @property
    def words(self) -> str:
        """The label of the line."""
        if len(self.flows) == 1:
            return self.flows[0]
        return f"{len(self.flows)} flows: {self.flows[0]} … {self.flows[-1]}"


@dataclass(frozen=True)
class Picture:
    """A picture, its legend, and its input."""

    svg: str
    key: tuple[Line, ...]
    drawn: Drawn
    frame: Frame


def picture(topology: Mapping[str, Any], styles: Mapping[str, Style]) -> Picture | None:
    """The picture; None for a network without nodes."""
    if not topology["nodes"]:
        return None
    drawn = gather(topology)
    lines = lines_of(topology["flows"], drawn, styles)
    laid = plan(list(drawn.nodes), drawn.links, [r for line in lines for r in line.routes])
    frame = Frame(laid, drawn, lines)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="topology" '
        f'viewBox="0 0 {frame.width:.0f} {frame.height:.0f}" role="img" '
        f'style="max-width:{frame.width * 1.15:.0f}px;min-width:{frame.width * MIN_WIDTH:.0f}px" '
        f'aria-label="Network and routes of the flows">',
        *_parts(drawn, frame, drawn.nodes, _routes(lines, frame)),
        *_alike(drawn, frame),
        "</svg>",
    ]
    return Picture("".join(parts), tuple(lines), drawn, frame)


def ground(drawn: Drawn, frame: Frame, world: Collection[str], box: Box) -> str:
    """One of the networks without routes, as the background of the animation."""
    x, y, width, height = box
    head = (
        f'<svg class="topology" viewBox="{x:.0f} {y:.0f} {width:.0f} {height:.0f}" '
        f'style="min-width:{width * MIN_WIDTH:.0f}px" aria-hidden="true">'
    )
    return "".join([head, *_parts(drawn, frame, world), "</svg>"])


def _parts(
    drawn: Drawn, frame: Frame, world: Collection[str], routes: Iterable[str] = ()
) -> Iterator[str]:
    """Links, routes above them, and nodes with their names."""
    links = [link for link in drawn.links if link["from"] in world]
    yield from (_wire(link, frame) for link in links)
    yield from routes
    yield from (_link_words(link, frame) for link in links)
    yield from (_node(name, node, frame) for name, node in drawn.nodes.items() if name in world)


def file(picture: Picture) -> str:
    """The picture with its colours and a legend, standalone."""
    head, rest = picture.svg.split(">", 1)
    style = (
        ".topology{--paper:#fcfcfa;--card:#fff;--ink:#24292e;--quiet:#646c75;--rule:#e2e4e6;"
        "font-family:system-ui,'Noto Sans','DejaVu Sans',sans-serif}"
        "@media (prefers-color-scheme:dark){.topology{--paper:#16191c;--card:#1d2125;"
        "--ink:#e3e6e8;--quiet:#98a1aa;--rule:#33393f}}" + asset("topology.css")
    )
    box = head.split('viewBox="0 0 ')[1].split('"')[0]
    width, height = map(float, box.split())
    key = []
    for place, line in enumerate(picture.key):
        y = height + 6 + 18 * place
        dashes = _dashes(line.style)
        key.append(
            f'<line class="route" x1="{MARGIN / 2}" y1="{y}" x2="{MARGIN / 2 + 26}" y2="{y}" '
            f'stroke="{line.style.colour}"{dashes}/><text class="key" x="{MARGIN / 2 + 34}" '
            f'y="{y + 4}">{escape(line.words)} – {escape(line.transport)}, '
            f"{escape(line.ends)}</text>"
        )
    tall = height + 18 * len(key) + 6
    head = head.replace(f"0 0 {box}", f"0 0 {width:.0f} {tall:.0f}")
    head += f' width="{width:.0f}" height="{tall:.0f}"'
    ground = f'<rect class="ground" width="{width:.0f}" height="{tall:.0f}"/>'
    body = rest.removesuffix("</svg>")
    return f"{head}><style>{style}</style>{ground}{body}{''.join(key)}</svg>\n"


def lines_of(
    flows: Sequence[Mapping[str, Any]], drawn: Drawn, styles: Mapping[str, Style]
) -> list[Line]:
    """The lines to draw, with many flows merged."""
    lines: dict[Any, Line] = {}
    names: dict[Any, list[str]] = {}
    for flow in flows:
        name = flow["name"]
        if name not in styles or not flow["routes"]:
            continue
        routes = tuple(tuple(drawn.where[node] for node in route) for route in flow["routes"])
        ends = " → ".join(drawn.nodes[drawn.where[flow[end]]]["words"] for end in ("from", "to"))
        style = styles[name]
        alone = len(flows) <= MAX_LINES
        same = (name,) if alone else (flow["transport"], routes, style.in_background)
        names.setdefault(same, []).append(name)
        if same not in lines:
            if not alone:
                style = replace(style, dashes=())
            lines[same] = Line((name,), flow["transport"], ends, routes, style)
    return [replace(line, flows=tuple(names[same])) for same, line in lines.items()]


class Frame:
    """Maps columns and rows to the picture's units."""

    def __init__(
        self, laid: Plan, drawn: Drawn, lines: Sequence[Line], column: float = COLUMN
    ) -> None:
        self.laid = laid
        self.column = column
        ends = [end for link in drawn.links for end in (link["from"], link["to"])]
        self._degree = {name: ends.count(name) for name in laid.spots}
        self._lines: dict[frozenset[str], list[int]] = {}
        lanes = _lanes(lines)
        for number in sorted(range(len(lines)), key=lanes.__getitem__):
            passed = {frozenset(p) for route in lines[number].routes for p in pairwise(route)}
            for pair in passed:
                self._lines.setdefault(pair, []).append(number)
        widest = max(len(node["words"]) for node in drawn.nodes.values())
        self.margin = max(MARGIN, LETTER * widest / 2 + 8)
        spots = list(laid.spots.values()) + [s for chain in laid.bends.values() for s in chain]
        self.rows = max(spot.row for spot in spots) + 1
        self.worded = self.rows <= MAX_ROWS_WITH_WORDS
        self.row = ROW if self.worded else LOW_ROW
        self._world = {name: n for n, world in enumerate(laid.worlds) for name in world}
        self.columns = max(spot.column for spot in spots)
        self.width = self.columns * column + 2 * self.margin
        last = max(self.node(name)[1] for name in laid.spots)
        self.height = max(last, max((y for link in laid.bends for _, y in self.way(*link)))) + 66

    def node(self, name: str) -> tuple[float, float]:
        """The position of a node."""
        return self._at(self.laid.spots[name], self._world[name])

    def _at(self, spot: tuple[float, float], world: int) -> tuple[float, float]:
        column, row = spot
        return self.margin + column * self.column, TOP + row * self.row + world * GAP

    def host(self, name: str) -> bool:
        """Whether a node has a single link."""
        return self._degree[name] == 1

    def fan(self, link: Mapping[str, Any]) -> bool:
        """Whether a link is one of several host links that fan out."""
        ends = (link["from"], link["to"])
        return any(map(self.host, ends)) and any(self._degree[name] > 2 for name in ends)

    def middle(self, name: str) -> float:
        """The vertical middle of a node's network."""
        heights = [self.node(n)[1] for n in self.laid.worlds[self._world[name]]]
        return (min(heights) + max(heights)) / 2

    def lines_on(self, a: str, b: str) -> list[int]:
        """The lines along a link, by number, in the order of their lanes."""
        return self._lines.get(frozenset((a, b)), [])

    def way(self, a: str, b: str) -> list[tuple[float, float]]:
        """The corners of a link, from one end to the other."""
        if a == b:
            x, y = self.node(a)
            return [(x, y), (x - LOOP / 2, y + LOOP), (x + LOOP / 2, y + LOOP), (x, y)]
        chain = self.laid.bends.get((a, b))
        if chain is None:
            chain = list(reversed(self.laid.bends.get((b, a), [])))
        world = self._world[a]
        return [self.node(a), *(self._at(spot, world) for spot in chain), self.node(b)]


def _wire(link: Mapping[str, Any], frame: Frame) -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in frame.way(link["from"], link["to"]))
    kind = "wire air" if link.get("air") else "wire"
    return f'<polyline class="{kind}" points="{points}"/>'


def words_of(link: Mapping[str, Any]) -> list[str]:
    """The label of a link, in lines: rate and delay, queue, impairments."""
    if link["rate_bps"] is None:
        return ["rate and delay not known"]
    numbers = f"{_span(link['rate_bps'], rate_text)}"
    back = link.get("back") or {}
    if "rate_bps" in back:
        numbers = f"{numbers} ⇄ {rate_text(back['rate_bps'])}"
    numbers += f", {_span(link['delay_s'], time_text)}"
    if "delay_s" in back:
        numbers += f" ⇄ {time_text(back['delay_s'])}"
    queue = link["queue"]
    if "queue" in back:
        queue += f" ⇄ {back['queue']}"
    return [numbers, *filter(None, [queue, _happens(link)])]


def _happens(link: Mapping[str, Any]) -> str:
    """Impairments of a link, in either direction, in a few words."""
    ways = (link, {**link, **link.get("back", {})})
    words = []
    if jitter := max(way.get("jitter_s", 0.0) for way in ways):
        words.append(f"jitter {time_text(jitter)}")
    if any(way.get("bursts") for way in ways):
        words.append("loss in bursts")
    elif loss := max(way.get("loss", 0.0) for way in ways):
        words.append(f"loss {100 * loss:g} %")
    if any(way.get("bit_error_rate") for way in ways):
        words.append("bit errors")
    if any(way.get("changes") for way in ways):
        words.append("changes")
    if link.get("fails"):
        words.append("fails")
    return ", ".join(words)


def _span(value: Any, text: Any) -> str:
    if isinstance(value, tuple):
        least, most = value
        if least != most:
            return f"{text(least)} … {text(most)}"
        value = least
    return str(text(value))


def _link_words(link: Mapping[str, Any], frame: Frame) -> str:
    if link.get("air"):
        return ""
    lines = words_of(link)
    title = f"{link['words']}: {', '.join(lines)}, MTU {link['mtu']}"
    said = f"<title>{escape(title)}</title>"
    if not frame.worded:
        return f'<g class="link-words">{said}</g>'
    x, y, angle, first = _words_at(link, lines, frame)
    turned = f' transform="translate({x:.1f} {y:.1f}) rotate({angle:.1f})"'
    words = f'<text y="{first:.1f}" class="link-name">{escape(link["words"])}</text>'
    for place, line in enumerate(lines, 1):
        words += f'<text y="{first + 13 * place:.1f}">{escape(line)}</text>'
    return f'<g class="link-words"{turned}>{said}{words}</g>'


def words_span(link: Mapping[str, Any], frame: Frame) -> tuple[float, float]:
    """The vertical extent of a link's label."""
    lines = words_of(link)
    _, y, angle, first = _words_at(link, lines, frame)
    half = LETTER / 2 * max(map(len, [link["words"], *lines]))
    tilt = half * abs(math.sin(math.radians(angle)))
    return y + first - 10 - tilt, y + first + 13 * len(lines) + 4 + tilt


def _words_at(
    link: Mapping[str, Any], lines: Sequence[str], frame: Frame
) -> tuple[float, float, float, float]:
    """The reference point of a link's label, its rotation, and its first position."""
    way = frame.way(link["from"], link["to"])
    a, b = way[(len(way) - 1) // 2], way[(len(way) - 1) // 2 + 1]
    # Fanned-out links are labelled near their hosts, where they are farther apart.
    near = frame.host(link["from"]) - frame.host(link["to"])
    share = 0.5 - FAN * near if frame.fan(link) else 0.5
    if a[0] > b[0]:
        a, b, share = b, a, 1 - share
    x, y = a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share
    angle = math.degrees(math.atan2(b[1] - a[1], b[0] - a[0]))
    below = (len(frame.lines_on(link["from"], link["to"])) - 1) / 2 * LANE
    # Slanted links in the upper half have their labels above.
    first = max(21, below + 16)
    if abs(a[1] - b[1]) > 1 and y < frame.middle(link["from"]) - 1:
        first = min(-12, -below - 8) - 13 * len(lines)
    return x, y, angle, first


def _lanes(lines: Sequence[Line]) -> list[int]:
    """A lane for each line, so that no lines overlap on a link."""
    taken: dict[frozenset[str], set[int]] = {}
    lanes = []
    for line in lines:
        passed = {frozenset(pair) for route in line.routes for pair in pairwise(route)}
        used = set().union(*(taken.get(pair, set()) for pair in passed))
        lane = next(n for n in range(len(lines)) if n not in used)
        for pair in passed:
            taken.setdefault(pair, set()).add(lane)
        lanes.append(lane)
    return lanes


def _dashes(style: Style) -> str:
    return f' stroke-dasharray="{" ".join(map(str, style.dashes))}"' if style.dashes else ""


def _routes(lines: Sequence[Line], frame: Frame) -> list[str]:
    parts = []
    for number, line in enumerate(lines):
        for route in line.routes:
            corners: list[tuple[float, float]] = []
            for a, b in pairwise(route):
                beside = frame.lines_on(a, b)
                shift = (beside.index(number) - (len(beside) - 1) / 2) * LANE
                corners += _beside(frame.way(a, b), shift)
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
            parts.append(
                f'<polyline class="route" points="{points}" stroke="{line.style.colour}"'
                f"{_dashes(line.style)}><title>{escape(line.words)}</title></polyline>"
            )
    return parts


def _beside(way: Sequence[tuple[float, float]], shift: float) -> list[tuple[float, float]]:
    """A route shifted sideways, to the same side of a link in both directions."""
    moved = []
    for a, b in pairwise(way):
        left, right = sorted((a, b))
        length = math.dist(a, b)
        x, y = (right[1] - left[1]) / length * -shift, (right[0] - left[0]) / length * shift
        moved += [(a[0] + x, a[1] + y), (b[0] + x, b[1] + y)]
    return moved


def _node(name: str, node: Mapping[str, Any], frame: Frame) -> str:
    x, y = frame.node(name)
    fill = f' style="fill:{node["colour"]}"' if node["colour"] else ""
    radius = NODE_RADIUS if frame.worded else NODE_RADIUS * 0.7
    dots = ""
    for back in (2, 1, 0) if node["count"] > 1 else (0,):  # a stack represents several
        dots += (
            f'<circle class="node" cx="{x - 3 * back:.1f}" cy="{y - 3 * back:.1f}" '
            f'r="{radius}"{fill}/>'
        )
    above = 16 if frame.worded else 9
    above += 5 if node["count"] > 1 else 0
    return (
        f'<g><title>{escape(name)}</title>{dots}<text class="node-name" x="{x:.1f}" '
        f'y="{y - above:.1f}">{escape(node["words"])}</text></g>'
    )


def _alike(drawn: Drawn, frame: Frame) -> list[str]:
    """Labels with the number of networks represented."""
    parts = []
    for names, count in drawn.alike.items():
        x = min(frame.node(name)[0] for name in names) - NODE_RADIUS
        y = max(frame.node(name)[1] for name in names) + 34
        parts.append(f'<text class="count" x="{x:.1f}" y="{y:.1f}">{count} ×</text>')
    return parts
