"""The packets of an excerpt of the run, as data for the page's animation.

Nothing is recorded for it: a run is determined by its scenario and seed, and is repeated up to the
excerpt's end (``record.animation``). Only an emulation keeps an excerpt in its folder. The page
gets one row per packet and link, as columns of numbers, and the lanes of the packets: one per
direction between two drawn nodes.
"""

from __future__ import annotations

import base64
import math
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from markupsafe import Markup

from talkspurt import _core
from talkspurt.figures.style import BACKGROUND, REAL
from talkspurt.figures.time import styles_of
from talkspurt.report import topology
from talkspurt.report.layout import components
from talkspurt.report.topology import Picture
from talkspurt.results.manifest import Origin
from talkspurt.results.run_data import RunData
from talkspurt.scenarios.source import read

WIDTH = 940.0
"""Minimum width of the picture, so that packets have space to move."""
STACK = 56.0
"""Space for a queue next to its link."""
STEP = 4.0
"""Height of a queued packet, if there is space for all."""
CLEAR = 20.0
"""From the end of a node's name to a queue's middle; names may be 10 % wider than estimated."""
ABOVE, BELOW = 36.0, 20.0
"""Space for a node and its name."""
NEVER = 2**32 - 1
MAX_NAMES = 3
ASKED = "as the scenario asks"
LOSSLESS = "from the beginning of the window of measurement, in which none was dropped"
AROUND_DROP = "around the first that is dropped in the window of measurement"
KEPT = {
    "asked": ASKED,
    "drop": "around the first packet of a program that is dropped in the window of measurement",
    "packet": (
        "from the first packet of a program in the window of measurement, in which none of them "
        "was dropped"
    ),
}
"""Why the excerpt of an emulation begins where it does."""


@dataclass(frozen=True)
class World:
    """One of several disjoint networks.

    Attributes:
        words: its title, from its flows.
        ground: its picture, the background for packets.
        drops: packets dropped in it during the excerpt.
        hops: its packets, counted on each link.
    """

    words: str
    ground: Markup
    drops: int
    hops: int


@dataclass(frozen=True)
class Animation:
    """The data for the page.

    Attributes:
        worlds: the networks with traffic.
        first: index of the initial one: that with the most drops.
        lead: which excerpt it is, and why.
        data: the script's input.
    """

    worlds: Sequence[World]
    first: int
    lead: str
    data: Mapping[str, Any]

    @property
    def size(self) -> int:
        """Its approximate number of characters in the page."""
        return sum(len(part) for part in self.data.values() if isinstance(part, str))


def animation(result: RunData, picture: Picture | None) -> Animation | str:
    """The animation, or why there is none: no packets, or the run cannot be repeated."""
    if result.origin is Origin.IMPORTED:
        return "an imported trace cannot be run again."
    if result.origin.is_over_real_path:
        return "a measurement of a real path cannot be run again."
    asked = result.recorded.get("animation", {})
    most = asked.get("packets", 0)
    if not most:
        return "the scenario asks for none (record.animation.packets = 0)."
    found = (
        _kept(result) if result.origin is Origin.EMULATED else _repeated(result, "from" in asked)
    )
    if isinstance(found, str):
        return found
    begin, end, hops, why = found
    if end <= begin and not hops.is_empty():
        return f"more packets are on their way at once than can be shown, which is {most:,}."
    shown = _Shown(result, picture, hops) if picture and not hops.is_empty() else None
    if shown is None or not shown.worlds:
        return "no packet was on a link in the excerpt that would be shown."
    first = max(range(len(shown.worlds)), key=lambda n: (shown.worlds[n].drops, -n))
    data = {
        **shown.data,
        "from": begin,
        "to": end,
        "room": STACK,
        "step": STEP,
        **_columns(shown.rows),
    }
    many = f"{shown.rows.height:,}".replace(",", "\u202f")
    lead = f"{many} packets, counted on each link, from {begin:.5g} s to {end:.5g} s: {why}."
    return Animation(shown.worlds, first, lead, data)


def _kept(result: RunData) -> tuple[float, float, pl.DataFrame, str] | str:
    """The excerpt that an emulation kept: begin, end, packets, and why it begins there."""
    hops = result.excerpt
    if hops is None:
        return "the emulation kept no packet of a program in the window of measurement."
    said = result.manifest["excerpt"]
    return said["from_s"], said["to_s"], hops, KEPT[said["begins"]]


def _repeated(result: RunData, asked: bool) -> tuple[float, float, pl.DataFrame, str] | str:
    """The same of a run, which is repeated; ``asked``: the scenario says where it begins."""
    made_by = result.manifest["talkspurt"]
    if made_by != _core.version():
        return (
            f"the run was made by talkspurt {made_by}, and cannot be done again by this one, "
            f"{_core.version()}."
        )
    lossless = not _drops(result)
    try:
        begin, end, hops = _excerpt(result, lossless)
        if not lossless and not asked and hops["dropped_s"].is_null().all():
            lossless = True
            begin, end, hops = _excerpt(result, lossless)
    except _core.ScenarioError:
        return (
            "a file that the scenario names is no longer there, and the run cannot be done again."
        )
    return begin, end, hops, ASKED if asked else LOSSLESS if lossless else AROUND_DROP


def _drops(result: RunData) -> int:
    """Packets dropped in the measure window, except those of contenders."""
    contenders = [link["name"] for link in result.topology["links"] if link.get("contends")]
    drops = result.links.filter(~pl.col("name").is_in(contenders))["drops"].sum()
    return int(drops or 0)


def _excerpt(result: RunData, lossless: bool) -> tuple[float, float, pl.DataFrame]:
    job = read(result.scenario).plan.excerpt(0, lossless)
    try:
        while not job.wait(0.05):
            pass
    except BaseException:
        job.cancel()
        job.wait(60.0)
        raise
    begin, end, table = job.result()
    return begin, end, pl.DataFrame(table)


def _wide(picture: Picture) -> topology.Frame:
    """Its layout with longer links, if there is space."""
    frame = picture.frame
    room = (WIDTH - 2 * frame.margin) / max(frame.columns, 1)
    return topology.Frame(frame.laid, picture.drawn, picture.key, max(topology.COLUMN, room))


class _Shown:
    """Worlds, lanes and links of the drawn packets."""

    def __init__(self, result: RunData, picture: Picture, hops: pl.DataFrame) -> None:
        self._drawn, frame = picture.drawn, picture.frame
        self._frame = _wide(picture)
        where = picture.drawn.where
        net = result.topology
        parts = components([node["name"] for node in net["nodes"]], net["links"])
        part = {name: n for n, names in enumerate(parts) for name in names}
        lanes: dict[tuple[str, str], int] = {}
        links: dict[tuple[str, tuple[str, str]], dict[str, Any]] = {}
        stacks: dict[str, int] = {}
        entries: list[tuple[str, str, str, int]] = []
        here = hops.select("link", "flow", "side").unique(maintain_order=True)
        busy = {link: group.rows() for (link,), group in here.group_by("link", maintain_order=True)}
        for at, receivers in _transmitters(net):
            for _, flow, side in busy.get(at["name"], []):
                to = receivers.get((flow, side), at["to"])
                way = (where[at["from"]], where[to])
                if part[way[0]] != part[at["from"]]:
                    continue  # in a network represented by another
                lane = lanes.setdefault(way, len(lanes))
                shown = links.setdefault((at["name"], way), {"number": len(links)})
                # All packets of one transmitter wait in one queue.
                shown |= {"lane": lane, "stack": stacks.setdefault(at["name"], lane)}
                shown |= {key: at[key] for key in ("name", "rate_bps", "delay_s")}
                entries.append((at["name"], flow, side, shown["number"]))
        colours = _colours(result)
        flows = {f["name"]: colours[f["name"]] for f in net["flows"] if f["name"] in colours}
        key = ["link", "flow", "side"]
        known = pl.DataFrame(entries, schema=[*key, "link_index"], orient="row")
        self.rows = (
            hops.filter(pl.col("flow").is_in(list(flows)))
            .join(known, on=key, how="inner", maintain_order="left")
            .with_columns(
                flow_index=pl.col("flow").replace_strict({n: i for i, n in enumerate(flows)})
            )
        )
        self.worlds: list[World] = []
        places: list[dict[str, Any]] = [{} for _ in lanes]
        for names in frame.laid.worlds:
            self._world(names, lanes, links, places)
        self.data = {
            "lanes": places,
            "links": list(links.values()),
            "flows": [{"name": name, "colour": colour} for name, colour in flows.items()],
        }

    def _world(
        self,
        names: Sequence[str],
        lanes: Mapping[tuple[str, str], int],
        links: Mapping[Any, Mapping[str, Any]],
        places: list[dict[str, Any]],
    ) -> None:
        inside = {number: way for way, number in lanes.items() if way[0] in names}
        mine = [link["number"] for link in links.values() if link["lane"] in inside]
        rows = self.rows.filter(pl.col("link_index").is_in(mine))
        if rows.is_empty():
            return
        heights = self._heights(names)
        stacks = {link["number"]: link["stack"] for link in links.values()}
        most = _longest(rows.with_columns(pl.col("link_index").replace_strict(stacks)))
        for number, way in inside.items():
            corners = self._frame.way(*way)
            words = self._drawn.nodes[way[0]]["words"]
            stack = self._beside(words, corners)
            places[number] = {
                "world": len(self.worlds),
                "points": [[round(x, 1), round(y, 1)] for x, y in corners],
                "stack": stack,
            }
            heights += [y for _, y in corners]
            heights.append(_top(corners, stack, most.get(number, 0)))
        top, bottom = min(heights), max(heights)
        box = (0.0, top, self._frame.width, bottom - top)
        ground = Markup(topology.ground(self._drawn, self._frame, set(names), box))
        drops = rows["dropped_s"].count()
        said = rows["flow"].unique(maintain_order=True).to_list()
        words = ", ".join(said[:MAX_NAMES]) + (" …" if len(said) > MAX_NAMES else "")
        self.worlds.append(World(f"{words} ({drops} dropped)", ground, drops, rows.height))

    def _heights(self, names: Sequence[str]) -> list[float]:
        """Extents above and below of nodes, their names and link labels."""
        nodes = [self._frame.node(name)[1] for name in names]
        heights = [y - ABOVE for y in nodes] + [y + BELOW for y in nodes]
        if self._frame.worded:
            for link in self._drawn.links:
                if link["from"] in names and not link.get("air"):
                    heights += topology.words_span(link, self._frame)
        return heights

    def _beside(self, words: str, corners: Sequence[tuple[float, float]]) -> float:
        """Position of a queue along a link: clear of the node and, above it, of its name."""
        (ax, ay), (bx, by) = corners[:2]
        name = topology.LETTER * len(words) / 2 + CLEAR if bx > ax else 0.0
        return round(min(max(22.0, name), 0.4 * math.hypot(bx - ax, by - ay)), 1)


def _colours(result: RunData) -> dict[str, str]:
    """The colour of each flow; in an emulation, flows that are simulated are grey."""
    real = set(result.flows.filter(source=REAL)["name"])
    return {
        name: BACKGROUND if real and name not in real else style.colour
        for name, style in styles_of(result).items()
    }


def _longest(rows: pl.DataFrame) -> dict[int, int]:
    """Maximum queue length of each lane with a queue (``link_index``)."""
    came = rows.select("link_index", pl.col("enqueued_s").alias("time"), pl.lit(1).alias("by"))
    left = pl.min_horizontal("dequeued_s", "dropped_s").alias("time")
    gone = rows.select("link_index", left, pl.lit(-1).alias("by")).drop_nulls()
    length = pl.col("by").cum_sum().over("link_index")
    waiting = pl.concat([came, gone]).sort("time", "by").with_columns(length)
    most = waiting.group_by("link_index", maintain_order=True).agg(pl.col("by").max())
    return dict(most.iter_rows())


def _top(corners: Sequence[tuple[float, float]], along: float, most: int) -> float:
    """Height of a queue with ``most`` packets, including the number above it."""
    (ax, ay), (bx, by) = corners[:2]
    turned = math.atan2(by - ay, bx - ax)
    aside = 32.0 + min(STEP * most, STACK)
    return ay + along * math.sin(turned) - aside * math.cos(turned)


def _transmitters(
    net: Mapping[str, Any],
) -> Iterator[tuple[Mapping[str, Any], dict[tuple[str, str], str]]]:
    """Transmitters in one direction; for an access point with receivers, by flow and side."""
    for link in net["links"]:
        yield link, {}
        back = {**link, **link.get("back", {}), "name": f"{link['name']}.back"}
        yield {**back, "from": link["to"], "to": link["from"]}, {}
    for hop in net["access_points"]:
        receivers = {}
        for flow in net["flows"]:
            for side, ways in (("from", flow["routes"]), ("to", flow["back"])):
                for names, nodes in zip(flow["links"][side], ways, strict=True):
                    if hop["name"] in names:
                        receivers[flow["name"], side] = nodes[names.index(hop["name"]) + 1]
        yield {**hop, "to": hop["to"][0]}, receivers


def _columns(rows: pl.DataFrame) -> dict[str, Any]:
    """Columns of numbers in base64; times in ticks since the first packet."""
    times = ("enqueued_s", "dequeued_s", "received_s", "dropped_s")
    nanos = rows.select((pl.col(name) * 1e9).round().cast(pl.Int64) for name in times)
    base = int(nanos["enqueued_s"].min() or 0)  # type: ignore[arg-type]
    last = max(int(nanos[name].max() or base) for name in times)  # type: ignore[arg-type]
    tick = (last - base) // (NEVER - 1) + 1
    ticks = nanos.select(((pl.col(name) - base) // tick).fill_null(NEVER) for name in times)
    ended = ticks.select(pl.min_horizontal("received_s", "dropped_s")).to_series()
    fates = rows["fate"].unique(maintain_order=True).to_list()
    fate = rows["fate"].replace_strict({name: n for n, name in enumerate(fates)})
    return {
        "base_ns": base,
        "tick_ns": tick,
        "flow": _packed(rows["flow_index"], "H"),
        "link": _packed(rows["link_index"], "H"),
        "bytes": _packed(rows["ip_bytes"], "I"),
        "enqueued": _packed(ticks["enqueued_s"], "I"),
        "dequeued": _packed(ticks["dequeued_s"], "I"),
        "ended": _packed(ended, "I"),
        "fate": _packed(fate, "B"),
        "fates": fates,
    }


def _packed(column: pl.Series, code: str) -> str:
    # Not numpy, whose import takes longer.
    numbers = array(code, column.to_list())
    if sys.byteorder == "big":
        numbers.byteswap()
    return base64.b64encode(numbers.tobytes()).decode()
