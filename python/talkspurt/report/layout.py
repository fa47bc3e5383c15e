"""Layout of the network picture: columns in packet order, rows close to neighbours.

Uses no layout library. A node's column is its position on the longest route through it. Within a
column, pure senders are above forwarding nodes, pure receivers below; each node is placed near the
mean row of its neighbours, at least one row apart (isotonic regression by pooling adjacent
violators), with the greatest weight on forwarding nodes. A link across several columns has a bend
in each, so that it avoids nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from talkspurt.report.gather import components

SWEEPS = 12
HEAVY, BEND, LIGHT = 1e6, 1e3, 1.0
"""Weights of nodes that forward, of bends, and of hosts."""

Link = tuple[str, str]


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
    for _ in names:
        moved = False
        for a in names:
            for b in after[a]:
                if column[b] <= column[a]:
                    column[b], moved = column[a] + 1, True
        if not moved:
            break
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
