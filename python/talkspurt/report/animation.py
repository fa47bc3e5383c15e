"""The packets of an excerpt of the run, as data for the page's animation.

Nothing is recorded for it: a run is determined by its scenario and seed, and is repeated up to the
excerpt's end (``record.animation``). Only an emulation keeps an excerpt in its folder. The page
gets what ``crates/view`` makes of it, also for the playground: one row per packet and link, as
columns of numbers, and the lanes of the packets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from talkspurt import _core
from talkspurt.report import topology
from talkspurt.results.manifest import Origin
from talkspurt.results.run_data import RunData
from talkspurt.scenarios.source import read


@dataclass(frozen=True)
class Animation:
    """The data for the page.

    Attributes:
        worlds: the disjoint networks with traffic, each with ``words`` (its title), ``ground`` (its
            picture, the background for packets), ``drops`` and ``hops`` (its packets, counted on
            each link).
        first: index of the initial one: that with the most drops.
        lead: which excerpt it is, and why.
    """

    worlds: Sequence[Mapping[str, Any]]
    first: int
    lead: str
    data: Mapping[str, Any]

    @property
    def of_page(self) -> dict[str, Any]:
        """What ``animation.js`` takes."""
        return {**self.data, "worlds": self.worlds, "first": self.first}

    @property
    def size(self) -> int:
        """Its approximate number of characters in the page."""
        return sum(len(part) for part in self.data.values() if isinstance(part, str))


def animation(result: RunData) -> Animation | str:
    """The animation, or why there is none: no packets, or the run cannot be repeated."""
    if result.origin is Origin.IMPORTED:
        return "an imported trace cannot be run again."
    if result.origin.is_over_real_path:
        return "a measurement of a real path cannot be run again."
    most = result.recorded.get("animation", {}).get("packets", 0)
    if not most:
        return "the scenario asks for none (record.animation.packets = 0)."
    found = _kept(result) if result.origin is Origin.EMULATED else _repeated(result)
    if isinstance(found, str):
        return found
    begins, begin, end, table = found
    hops = pl.DataFrame(table)
    made = _core.animation(*topology.described(result), hops, (begin, end), most, begins)
    shown = json.loads(made)
    return shown if isinstance(shown, str) else Animation(**shown)


def _kept(result: RunData) -> _core.Packets | str:
    hops = result.excerpt
    if hops is None:
        return "the emulation kept no packet of a program in the window of measurement."
    said = result.manifest["excerpt"]
    return said["begins"], said["from_s"], said["to_s"], hops


def _repeated(result: RunData) -> _core.Packets | str:
    """The same of a run, which is repeated."""
    made_by = result.manifest["talkspurt"]
    if made_by != _core.version():
        return (
            f"the run was made by talkspurt {made_by}, and cannot be done again by this one, "
            f"{_core.version()}."
        )
    try:
        job = read(result.scenario).plan.excerpt(0, not _drops(result))
        try:
            while not job.wait(0.05):
                pass
        except BaseException:
            job.cancel()
            job.wait(60.0)
            raise
        return job.result()
    except _core.ScenarioError:
        return (
            "a file that the scenario names is no longer there, and the run cannot be done again."
        )


def _drops(result: RunData) -> int:
    """Packets dropped in the measure window, except those of contenders."""
    contenders = [link["name"] for link in result.topology["links"] if link.get("contends")]
    drops = result.links.filter(~pl.col("name").is_in(contenders))["drops"].sum()
    return int(drops or 0)
