"""The values of a resolved scenario, parsed by Rust.

A resolved scenario is TOML with every default written out. :func:`values` returns it as dicts and
lists in which each quantity is a :class:`Quantity`: a number of seconds, bit/s or bytes with its
original text. It keeps groups of flows as written, as does the description of its network:
:class:`Flows` and :class:`Routed` look like all flows, such as ``call-1`` to ``call-500``, and make
each when it is asked for; the members of a group share its values.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from talkspurt import _core


class Quantity(float):
    """A number of seconds, bit/s or bytes.

    Attributes:
        text: as written, such as ``20ms``; also returned by ``str()``.
        unit: ``s``, ``bit/s`` or ``B``.
    """

    __slots__ = ("text", "unit")
    text: str
    unit: str

    def __new__(cls, value: float, text: str, unit: str) -> Quantity:
        """A quantity of this value."""
        made = super().__new__(cls, value)
        made.text, made.unit = text, unit
        return made

    def __str__(self) -> str:
        return self.text

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else self.text


def values(text: str, *, untyped: bool = False) -> dict[str, Any]:
    """A resolved scenario's values, with all flows; the dict is owned by the caller.

    That of an imported trace is ``untyped``: none that Rust knows, so its durations are found by
    the names of their keys.
    """
    found = written(text, untyped=untyped)
    if isinstance(flows := found.get("flows"), dict):
        found["flows"] = Flows(flows)
    return found


def written(text: str, *, untyped: bool = False) -> dict[str, Any]:
    """The same with groups of flows as written."""
    found: dict[str, Any] = json.loads(_values(text), object_hook=_quantity)
    return _with_durations(found) if untyped else found


def recordings(told: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The sources of calls with a recording, of the values of a scenario."""
    flows = told.get("flows", {}).values()
    sources = (flow.get(side) or {} for flow in flows for side in ("source", "reverse"))
    return [it for it in sources if it.get("kind") == "speech" and it.get("file")]


SEED = re.compile(r"^seed = \d+$", re.MULTILINE)


def apart_from_seed(text: str) -> str:
    """What replications of a run have in common, as a key to what was found in one of them."""
    return SEED.sub("seed = 0", text)


DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|min)")
UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}


def duration_s(text: str) -> float | None:
    """A duration in seconds; None if the text is none."""
    found = DURATION.fullmatch(text)
    return float(found[1]) * UNITS_S[found[2]] if found else None


def _with_durations(value: Any, key: str = "") -> Any:
    """The durations in the scenario of an imported trace as quantities."""
    if isinstance(value, dict):
        return {inner: _with_durations(value[inner], inner) for inner in value}
    # Of a capture of nothing but known calls, they are quantities already.
    if isinstance(value, str) and key in ("duration", "interval", "start", "packet", "buffer"):
        seconds = duration_s(value)
        return value if seconds is None else Quantity(seconds, value, "s")
    return value


def plain(value: Any) -> Any:
    """The same with quantities as written."""
    if isinstance(value, Quantity):
        return value.text
    if isinstance(value, Flows):
        return Flows(plain(value.written))
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value


_values = functools.lru_cache(maxsize=8)(_core.values)


def _quantity(table: dict[str, Any]) -> Any:
    if table.keys() == {"quantity", "value", "unit"}:
        return Quantity(table["value"], table["quantity"], table["unit"])
    return table


NUMBERED = re.compile(r"(.+)-([1-9][0-9]*)")
NAMES = ("from", "to", "via", "paths")
"""Keys with names of nodes, in which ``*`` stands for the number of the member."""


@dataclass(frozen=True)
class Flows(Mapping[str, Any]):
    """All flows of a resolved scenario by name; those that are `written` have their groups."""

    written: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        flow = self.written.get(name)
        if flow is not None and "count" not in flow:
            return flow
        found = self._group(name)
        if flow is not None or found is None:
            raise KeyError(name)
        group, number = found
        own = {key: value for key, value in self.written[group].items() if key != "count"}
        own.update((key, _numbered(own[key], number)) for key in NAMES if key in own)
        return {**own, "group": group}

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @cached_property
    def _names(self) -> list[str]:
        names: list[str] = []
        for name, flow in self.written.items():
            if "count" in flow:
                names += (f"{name}-{number}" for number in range(1, flow["count"] + 1))
            elif not self._replaces(name, flow):
                names.append(name)
        return names

    def _replaces(self, name: str, flow: Mapping[str, Any]) -> bool:
        """Whether a flow takes the place of the member of a group."""
        found = self._group(name) if "group" in flow else None
        return found is not None and found[0] == flow["group"]

    def _group(self, name: str) -> tuple[str, int] | None:
        """The group and the number of the member with this name."""
        numbered = NUMBERED.fullmatch(name)
        if numbered is None:
            return None
        group, number = numbered[1], int(numbered[2])
        count = self.written.get(group, {}).get("count", 0)
        return (group, number) if number <= count else None


def _numbered(value: Any, number: int) -> Any:
    if isinstance(value, str):
        return value.replace("*", str(number))
    return [_numbered(inner, number) for inner in value]


@dataclass(frozen=True)
class Routed(Sequence[Mapping[str, Any]]):
    """All flows of a network's description, with their routes.

    Attributes:
        written: the flows; of those that differ only in their names, the first, with the name of
            their group and their first and last number in ``members``.
    """

    written: Sequence[Mapping[str, Any]]

    def __getitem__(self, index: Any) -> Any:
        return self._all[index]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @property
    def names(self) -> Iterator[str]:
        """Their names."""
        for flow in self.written:
            group, first, last = flow.get("members", ("", 0, -1))
            yield from (f"{group}-{n}" for n in range(first, last + 1))
            if "members" not in flow:
                yield flow["name"]

    @cached_property
    def _all(self) -> list[Mapping[str, Any]]:
        every: list[Mapping[str, Any]] = []
        for flow in self.written:
            if "members" not in flow:
                every.append(flow)
                continue
            group, first, last = flow["members"]
            alike = {key: value for key, value in flow.items() if key != "members"}
            every += ({**alike, "name": f"{group}-{n}"} for n in range(first, last + 1))
        return every


@dataclass(frozen=True, eq=False)
class Network(Mapping[str, Any]):
    """The description of a network with all flows, as of :func:`routed`; its JSON is read late."""

    read: Callable[[], str]

    def __getitem__(self, key: str) -> Any:
        return self._whole[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._whole)

    def __len__(self) -> int:
        return len(self._whole)

    @cached_property
    def _whole(self) -> dict[str, Any]:
        return routed(json.loads(self.read()))


def routed(topology: Mapping[str, Any]) -> dict[str, Any]:
    """The description of a network, with all flows."""
    return {**topology, "flows": Routed(topology["flows"])}


def as_written(topology: Mapping[str, Any]) -> dict[str, Any]:
    """The opposite of :func:`routed`, for JSON."""
    flows = topology["flows"]
    return {**topology, "flows": flows.written if isinstance(flows, Routed) else flows}


def unknown_network(
    nodes: Iterable[str], links: Mapping[str, tuple[str, str]], flows: list[dict[str, Any]]
) -> dict[str, Any]:
    """The description of a network as of a run, of which only names and routes are known."""
    return {
        "nodes": [{"name": name, "colour": None} for name in dict.fromkeys(nodes)],
        "links": [
            {"name": name, "from": here, "to": there, "mtu": None, "fails": False, "back": {},
             "rate_bps": None, "delay_s": None, "jitter_s": None, "queue": None, "loss": None,
             "bursts": False, "bit_error_rate": None, "changes": False}
            for name, (here, there) in links.items()
        ],
        "access_points": [],
        "flows": flows,
    }  # fmt: skip
