"""Condenses the network picture: similar hosts and similar networks are drawn once.

Hosts are similar if a single link connects each to the same node and their names differ in a
numeric suffix; networks, if they are disjoint and have equal links between nodes in the same order.
A few are drawn individually; of many, one represents all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

MOST_ALIKE = 4
"""Similar hosts up to this number are drawn individually."""
MOST_WORLDS = 4
"""Similar networks up to this number are drawn individually."""

NUMBERED = re.compile(r"^(.*?)(\d+)$")


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
        if len(members) > MOST_ALIKE:
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
        if len(worlds) <= MOST_WORLDS:
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
