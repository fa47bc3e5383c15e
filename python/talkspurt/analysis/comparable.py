"""Whether two calls of one run meet the same conditions, so that their scores can be compared.

Scenarios compare transports on one network, or on separate copies of it. The names of a copy's
nodes, links and flows differ, so copies are recognised by their structure: links and flows are
described by their settings, then repeatedly by the descriptions of what they share links with
(Weisfeiler and Leman 1968). Two calls with equal descriptions have the same network and the same
competing traffic.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from talkspurt.results.run_data import RunData
from talkspurt.scenarios.resolved import plain

NAMES = ("from", "to", "group", "paths", "association")
"""Settings that contain names of nodes and flows."""
TIMES = ("start", "start_spread", "stop")
MAX_FLOWS = 300
"""In larger scenarios only calls on the same route are compared."""
ROUNDS = 4
"""Refinements of the descriptions: as many links as may lie between what differs."""


@dataclass(frozen=True)
class Conditions:
    """The flows of a run, their settings and their routes.

    Attributes:
        flows: settings of each flow.
        links: settings of each link and direction, as named in routes.
        routes: per flow the links of each path, forward and back.
    """

    flows: Mapping[str, Mapping[str, Any]]
    links: Mapping[str, str]
    routes: Mapping[str, Mapping[str, Sequence[Sequence[str]]]]

    @classmethod
    def of(cls, run: RunData) -> Conditions:
        """Those of a run."""
        told = plain(run.resolved)
        links: dict[str, str] = {}
        for name, link in told.get("links", {}).items():
            there = {k: v for k, v in link.items() if k not in (*NAMES, "back")}
            links[name] = _text(there)
            links[f"{name}.back"] = _text({**there, **link.get("back", {})})
        routes = {flow["name"]: flow["links"] for flow in run.topology["flows"]}
        return cls(told.get("flows", {}), links, routes)

    def comparable(self, one: Sequence[str], other: Sequence[str]) -> bool:
        """Whether two calls, or groups of calls, differ only in their own settings.

        They carry the same speech in the same directions, at the same times, over the same route or
        over equal networks with equal competing traffic; and they do differ in some setting.
        """
        back = {name.endswith(".reverse") for name in (*one, *other)}
        one, other = ([n.removesuffix(".reverse") for n in names] for names in (one, other))
        a, b = self.flows[one[0]], self.flows[other[0]]
        same = len(back) == 1 and len(one) == len(other) and _speech(a) == _speech(b)
        if not same or self._settings(one[0]) == self._settings(other[0]):
            return False
        if self.routes[one[0]] == self.routes[other[0]]:
            return True
        return len(self.flows) <= MAX_FLOWS and self._around(one) == self._around(other)

    def _settings(self, flow: str) -> str:
        if flow not in self.flows:  # packets of a program in an emulation: equal only to themselves
            return f"only {flow}"
        return _text({k: v for k, v in self.flows[flow].items() if k not in NAMES})

    def _around(self, calls: Sequence[str]) -> str:
        """The description of a call's network and competing traffic, without its own settings."""
        flows = {
            flow: "the call" if flow in calls else self._settings(flow) for flow in self.routes
        }
        # A hop of a wireless cell has no settings here: it is equal only to itself.
        places = [
            (flow, link, (side, path, hop))
            for flow, sides in self.routes.items()
            for side, paths in sides.items()
            for path, hops in enumerate(paths)
            for hop, link in enumerate(hops)
        ]
        links = {link: self.links.get(link, f"only {link}") for _, link, _ in places}
        for _ in range(ROUNDS):
            on: dict[str, list[Any]] = {link: [] for link in links}
            along: dict[str, list[Any]] = {flow: [] for flow in flows}
            for flow, link, place in places:
                on[link].append((flows[flow], place))
                along[flow].append((links[link], place))
            links = {link: _digest(links[link], on[link]) for link in links}
            flows = {flow: _digest(flows[flow], along[flow]) for flow in flows}
        return flows[calls[0]]


def _speech(flow: Mapping[str, Any]) -> str:
    """What a call says, and when."""
    sources = [flow.get(side) for side in ("source", "reverse")]
    said = [source and (source["kind"], source.get("file")) for source in sources]
    return _text([said, [flow.get(key) for key in TIMES]])


def _text(document: Any) -> str:
    return json.dumps(document, sort_keys=True)


def _digest(own: str, others: Iterable[Any]) -> str:
    return hashlib.sha256(repr((own, sorted(others))).encode()).hexdigest()
