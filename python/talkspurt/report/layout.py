"""What the network picture shows, and where.

Similar hosts and similar networks are drawn once. Hosts are similar if a single link connects each
to the same node and their names differ in a numeric suffix; networks, if they are disjoint and have
equal links between nodes in the same order. A few are drawn individually; of many, one represents
all.

The layout uses no library. A node's column is its position on the longest route through it. Within
a column, pure senders are above forwarding nodes, pure receivers below; each node is placed near
the mean row of its neighbours, at least one row apart (isotonic regression by pooling adjacent
violators), with the greatest weight on forwarding nodes. A link across several columns has a bend
in each, so that it avoids nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import Any, NamedTuple

MAX_ALIKE = 4
"""Similar hosts up to this number are drawn individually."""
MAX_WORLDS = 4
"""Similar networks up to this number are drawn individually."""

NUMBERED = re.compile(r"^(.*?)(\d+)$")

SWEEPS = 12
HEAVY, BEND, LIGHT = 1e6, 1e3, 1.0
"""Weights of nodes that forward, of bends, and of hosts."""

Link = tuple[str, str]


@dataclass
class Drawn:
    """The drawn part of a topology.

    Attributes:
        nodes: name to label, colour and number of nodes represented.
        links: links between drawn nodes, as in the topology, with ``count`` and ``last_delay_s`` if
            one represents several.
        where: the drawn node that stands for each node (itself or its representative).
        alike: number of networks that one represents, by its nodes.
    """

    nodes: dict[str, dict[str, Any]]
    links: list[dict[str, Any]]
    where: dict[str, str] = field(default_factory=dict)
    alike: dict[tuple[str, ...], int] = field(default_factory=dict)


def gather(topology: Mapping[str, Any]) -> Drawn:
    """The nodes and links to draw."""
    nodes = {
        n["name"]: {"words": n["name"], "colour": n.get("colour"), "count": 1}
        for n in topology["nodes"]
    }
    links = [{**link, "words": link["name"], "count": 1} for link in topology["links"]]
    links += _air(topology)
    drawn = Drawn(nodes, links, {name: name for name in nodes})
    _hosts(drawn)
    _worlds(drawn)
    return drawn


def _air(topology: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Hops of routes without a link: radio transmissions."""
    wired = {frozenset((link["from"], link["to"])) for link in topology["links"]}
    hops = {
        frozenset(pair): pair
        for flow in topology["flows"]
        for route in flow["routes"]
        for pair in pairwise(route)
    }
    return [
        {"from": a, "to": b, "words": "", "count": 1, "air": True, "rate_bps": 0, "delay_s": 0}
        | {"name": "", "queue": ""}
        for hop, (a, b) in hops.items()
        if hop not in wired
    ]


def _hosts(drawn: Drawn) -> None:
    """Merge many similar hosts into one."""
    ends: dict[str, list[dict[str, Any]]] = {name: [] for name in drawn.nodes}
    for link in drawn.links:
        ends[link["from"]].append(link)
        ends[link["to"]].append(link)
    groups: dict[tuple[str, str, bool, str | None], list[str]] = {}
    for name, node in drawn.nodes.items():
        numbered = NUMBERED.match(name)
        if len(ends[name]) != 1 or not numbered:
            continue
        (link,) = ends[name]
        leads = link["from"] == name
        other = link["to"] if leads else link["from"]
        groups.setdefault((numbered[1], other, leads, node["colour"]), []).append(name)
    for members in groups.values():
        if len(members) > MAX_ALIKE:
            _one_for_all(drawn, members, [ends[name][0] for name in members])


def _one_for_all(drawn: Drawn, members: Sequence[str], links: Sequence[dict[str, Any]]) -> None:
    first, last = members[0], members[-1]
    drawn.nodes[first] |= {"words": f"{first} … {last}", "count": len(members)}
    for name in members[1:]:
        drawn.where[name] = first
        del drawn.nodes[name]
    for key in ("rate_bps", "delay_s"):
        found = [link[key] for link in links]
        # Of imported traces: not known.
        links[0][key] = None if None in found else (min(found), max(found))
    links[0] |= {
        "words": f"{links[0]['name']} … {links[-1]['name']}",
        "count": len(members),
        "queue": links[0]["queue"] if len({link["queue"] for link in links}) == 1 else "",
    }
    gone = {id(link) for link in links[1:]}
    drawn.links = [link for link in drawn.links if id(link) not in gone]


def components(names: Iterable[str], links: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """Disjoint networks, each with its nodes in order of discovery."""
    near: dict[str, list[str]] = {name: [] for name in names}
    for link in links:
        near[link["from"]].append(link["to"])
        near[link["to"]].append(link["from"])
    seen: set[str] = set()
    groups = []
    for name in near:
        if name in seen:
            continue
        group, todo = [], [name]
        seen.add(name)
        while todo:
            here = todo.pop(0)
            group.append(here)
            fresh = list(dict.fromkeys(n for n in near[here] if n not in seen))
            seen.update(fresh)
            todo += fresh
        groups.append(group)
    return groups


def _worlds(drawn: Drawn) -> None:
    """Merge many similar networks into one."""
    classes: dict[str, list[list[str]]] = {}
    for world in components(drawn.nodes, drawn.links):
        classes.setdefault(_signature(drawn, world), []).append(world)
    for worlds in classes.values():
        if len(worlds) <= MAX_WORLDS:
            continue
        first = worlds[0]
        drawn.alike[tuple(first)] = len(worlds)
        for place, name in enumerate(first):
            same = [world[place] for world in worlds]
            drawn.nodes[name]["words"] = _common([drawn.nodes[n]["words"] for n in same])
            for other in same[1:]:
                del drawn.nodes[other]
            merged = dict.fromkeys(same, name)
            drawn.where = {n: merged.get(at, at) for n, at in drawn.where.items()}
        kept = set(first)
        by_place: dict[tuple[int, int, int], list[dict[str, Any]]] = {}
        for world in worlds:
            for number, link in enumerate(_links_of(drawn, world)):
                ends = (world.index(link["from"]), world.index(link["to"]), number)
                by_place.setdefault(ends, []).append(link)
        for links in by_place.values():
            links[0]["words"] = _common([link["words"] for link in links])
        others = {name for world in worlds[1:] for name in world} - kept
        drawn.links = [link for link in drawn.links if link["from"] not in others]


def _links_of(drawn: Drawn, world: Sequence[str]) -> list[dict[str, Any]]:
    inside = set(world)
    return [link for link in drawn.links if link["from"] in inside]


def _signature(drawn: Drawn, world: Sequence[str]) -> str:
    """Equal for networks that differ only in names."""
    place = {name: number for number, name in enumerate(world)}
    links = [
        sorted(
            {
                **{k: v for k, v in link.items() if k not in ("name", "words")},
                "from": place[link["from"]],
                "to": place[link["to"]],
            }.items()
        )
        for link in _links_of(drawn, world)
    ]
    nodes = [(drawn.nodes[name]["colour"], drawn.nodes[name]["count"]) for name in world]
    return repr((nodes, links))


def _common(names: Sequence[str]) -> str:
    """The common part of names, with an ellipsis for the rest."""
    if len(set(names)) == 1:
        return names[0]
    head = _beginning(names)
    tail = _beginning([name[len(head) :][::-1] for name in names])[::-1]
    return f"{head}…{tail}"


def _beginning(names: Sequence[str]) -> str:
    """The common prefix."""
    least, most = min(names), max(names)
    same = (n for n, letter in enumerate(least) if letter != most[n])
    return least[: next(same, len(least))]


class Spot(NamedTuple):
    """A column and a row; rows of one network start at 0 and may be fractional."""

    column: float
    row: float


class Plan(NamedTuple):
    """Positions of nodes, and the bends of links that cross columns, from end to end."""

    spots: dict[str, Spot]
    bends: dict[Link, list[Spot]]
    worlds: list[list[str]]


def plan(
    names: Sequence[str], links: Sequence[Mapping[str, Any]], routes: Sequence[Sequence[str]]
) -> Plan:
    """A position for each node."""
    column = columns(names, links, routes)
    worlds = components(names, links)
    spots: dict[str, Spot] = {}
    bends: dict[Link, list[Spot]] = {}
    top = 0.0
    for world in worlds:
        inside = set(world)
        ends = list(dict.fromkeys((ln["from"], ln["to"]) for ln in links if ln["from"] in inside))
        edges, bent = _bend(ends, column)
        every = world + [bend for chain in bent.values() for bend in chain]
        rows = _rows(every, edges, column, set(world))
        least, most = min(rows.values()), max(rows.values())
        here = {name: Spot(column[name], top + rows[name] - least) for name in every}
        spots |= {name: here[name] for name in world}
        bends |= {link: [here[bend] for bend in chain] for link, chain in bent.items()}
        top += most - least + 1
    return Plan({name: spots[name] for name in names}, bends, worlds)


def _bend(
    links: Sequence[Link], column: dict[str, int]
) -> tuple[list[Link], dict[Link, list[str]]]:
    """Links as edges between adjacent columns, and their bends, with columns."""
    edges: list[Link] = []
    bends: dict[Link, list[str]] = {}
    for a, b in links:
        step = 1 if column[b] > column[a] else -1
        chain = []
        for place in range(column[a] + step, column[b], step) if column[a] != column[b] else ():
            bend = f"{a}\n{b}\n{place}"  # names contain no line break
            column[bend] = place
            chain.append(bend)
        bends[a, b] = chain
        edges += pairwise([a, *chain, b])
    return edges, bends


def columns(
    names: Sequence[str], links: Sequence[Mapping[str, Any]], routes: Sequence[Sequence[str]]
) -> dict[str, int]:
    """Longest path from a source along the routes; later routes against earlier ones yield."""
    after: dict[str, set[str]] = {name: set() for name in names}
    for route in dict.fromkeys(map(tuple, routes)):
        for a, b in pairwise(route):
            if b not in after[a] and not _reaches(after, b, a):
                after[a].add(b)
    for link in links:  # nodes on no route follow their neighbours
        a, b = link["from"], link["to"]
        if a not in after[b] and b not in after[a] and not _reaches(after, b, a):
            after[a].add(b)
    column = dict.fromkeys(names, 0)
    for a in reversed([*TopologicalSorter(after).static_order()]):
        for b in after[a]:
            column[b] = max(column[b], column[a] + 1)
    # A node without incoming edges is placed directly before its successor, not at the far left.
    led_to = {b for ends in after.values() for b in ends}
    for name, ends in after.items():
        if name not in led_to and ends:
            column[name] = min(column[b] for b in ends) - 1
    return column


def _reaches(after: Mapping[str, set[str]], start: str, end: str) -> bool:
    seen, todo = {start}, [start]
    while todo:
        here = todo.pop()
        if here == end:
            return True
        fresh = after[here] - seen
        seen |= fresh
        todo += fresh
    return False


def _rows(
    names: Sequence[str], edges: Sequence[Link], column: Mapping[str, int], nodes: set[str]
) -> dict[str, float]:
    near: dict[str, list[str]] = {name: [] for name in names}
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    host = {name for name in nodes if len(near[name]) == 1}
    weight = {n: BEND if n not in nodes else LIGHT if n in host else HEAVY for n in names}
    # Hosts follow forwarding nodes, not the other way round.
    followed = {n: [m for m in near[n] if m not in host] or near[n] for n in names}

    def side(name: str) -> int:
        if name not in host:
            return 0
        return -1 if column[name] < column[near[name][0]] else 1

    by_column: dict[int, list[str]] = {}
    for name in names:
        by_column.setdefault(column[name], []).append(name)
    rows = dict.fromkeys(names, 0.0)
    for members in by_column.values():
        for place, name in enumerate(members):
            rows[name] = place - (len(members) - 1) / 2
    for sweep in range(SWEEPS):
        for place in sorted(by_column, reverse=bool(sweep % 2)):
            members = by_column[place]
            wish = {}
            for name in members:
                around = [rows[n] for n in followed[name]]
                wish[name] = sum(around) / len(around) if around else rows[name]
            mixed = len({side(name) == 0 for name in members}) > 1
            order = {n: (side(n) if mixed else 0, round(wish[n], 6)) for n in members}
            members.sort(key=order.__getitem__)
            settled = apart([wish[n] for n in members], [weight[n] for n in members])
            rows.update(zip(members, settled, strict=True))
    return rows


def apart(wishes: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Positions nearest to the wishes (weighted least squares), in this order, one apart."""
    blocks: list[tuple[float, float, int]] = []  # mean, weight, members
    for place, (wish, weight) in enumerate(zip(wishes, weights, strict=True)):
        block = (wish - place, weight, 1)
        while blocks and blocks[-1][0] > block[0]:
            mean, total, count = blocks.pop()
            both = total + block[1]
            block = ((mean * total + block[0] * block[1]) / both, both, count + block[2])
        blocks.append(block)
    means = [mean for mean, _, count in blocks for _ in range(count)]
    return [mean + place for place, mean in enumerate(means)]
