"""Members of groups: the flows that ``count`` makes of one, such as ``call-1`` to ``call-500``.

A resolved scenario and the description of its network keep groups as written. The classes here look
like all flows, and make each member when it is asked for; members share the values of their group.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

NUMBERED = re.compile(r"(.+)-([1-9][0-9]*)")
NAMES = ("from", "to", "via", "paths")
"""Keys with names of nodes, in which ``*`` stands for the number of the member."""


@dataclass(frozen=True)
class Flows(Mapping[str, Any]):
    """All flows of a resolved scenario by name.

    Attributes:
        written: the flows with groups as written.
    """

    written: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        flow = self.written.get(name)
        if flow is not None and "count" not in flow:
            return flow
        found = self._group(name)
        if flow is not None or found is None:
            raise KeyError(name)
        group, number = found
        return _member(self.written[group], group, number)

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


def _member(flow: Mapping[str, Any], group: str, number: int) -> dict[str, Any]:
    own = {key: value for key, value in flow.items() if key != "count"}
    own.update((key, _numbered(own[key], number)) for key in NAMES if key in own)
    return {**own, "group": group}


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
    """The description of a network with all flows, as of :func:`routed`; read when it is asked for.

    Attributes:
        read: returns its JSON.
    """

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
