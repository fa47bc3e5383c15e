"""What a result says of itself: the documents that a folder's ``manifest.json`` holds.

`validation` checks their shapes when they are read; from then on, mypy knows every key.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NotRequired, TypedDict, Unpack, cast

from talkspurt import _core


class Origin(StrEnum):
    """How a result came about."""

    SIMULATED = "simulated"
    """A run in virtual time. Only these can be repeated."""
    EMULATED = "emulated"
    """Programs over a scenario's network, in real time."""
    MEASURED = "measured"
    """Traffic over a real path."""
    CALLED = "called"
    """A voice call over a real path."""
    IMPORTED = "imported"
    """A capture, or a trace of another simulator."""

    @property
    def is_over_real_path(self) -> bool:
        """Whether two machines measured it, of which each knows a part."""
        return self in (Origin.MEASURED, Origin.CALLED)


class MadeOf(TypedDict):
    """Hashes of the inputs of a run, by :mod:`talkspurt.scenarios.provenance`."""

    scenario: str
    engine: NotRequired[str]
    files: NotRequired[Mapping[str, str]]


class Excerpt(TypedDict):
    """The packets that an emulation kept for its animation."""

    begins: str
    from_s: float
    to_s: float


class Ran(TypedDict):
    """A command of an emulation."""

    node: str
    command: list[str]
    status: int | None
    stopped: bool


class RealTime(TypedDict):
    """The account of an emulation. It has more counters, named ``…_packets``."""

    hosts: list[dict[str, Any]]
    lateness: Mapping[str, Any]
    window_s: NotRequired[Sequence[float]]
    commands: list[Ran]
    priority: str
    uncaptured_packets: int


class Measured(TypedDict):
    """The facts of a measurement or a call, as `measure::merge` gives them."""

    server: NotRequired[str]
    complete: bool
    clock_offset_s: float | None
    clock_offset_bound_s: float | None
    clock_drift_ppm: float | None
    clock_jump_s: float | None
    rtt_min_s: float | None
    rtt_p50_s: float
    rtt_max_s: float
    rtt_samples: int
    flows: Mapping[str, Mapping[str, Any]]
    ends: Mapping[str, Mapping[str, Any] | None]
    call: NotRequired[Mapping[str, Any]]


class Imported(TypedDict):
    """What was read of a trace, and what was assumed. Captures have more facts."""

    format: str
    files: list[Mapping[str, Any]]
    notes: list[str]
    not_imported: Mapping[str, int]
    unknown: list[str]
    flows: Mapping[str, Any]
    clock_offset_s: NotRequired[float]
    clock_offset_estimate_s: NotRequired[float]
    clock_offset_bound_s: NotRequired[float]


class Figures(TypedDict):
    """The numbers of a result that has just ended."""

    seed: int
    digest: str | None
    machine_dependent: list[str] | bool
    duration_s: float
    hops: int
    events: int
    cpu_s: float
    wall_s: float


class Manifest(Figures):
    """The manifest of one run; of an imported trace, a measurement or an emulation, with its facts.

    A saved one also has the title, what the run was made of, and the columns of empty tables.
    """

    talkspurt: str
    kind: str
    python: str
    platform: str
    created: str
    scenario: str
    file: str | None
    set: Mapping[str, str]
    settings: Mapping[str, str]
    replicate: int
    name: NotRequired[str]
    title: NotRequired[str]
    description: NotRequired[str]
    made_of: NotRequired[MadeOf]
    empty_tables: NotRequired[Mapping[str, Mapping[str, str]]]
    speech_start_s: NotRequired[Mapping[str, float | None]]
    excerpt: NotRequired[Excerpt]
    real_time: NotRequired[RealTime]
    measured: NotRequired[Measured]
    imported: NotRequired[Imported]


def made(scenario: str, file: str | None = None, **figures: Unpack[Figures]) -> Manifest:
    """The manifest of a run that ends now, without settings."""
    found = {
        "talkspurt": _core.version(), "kind": "result", "scenario": scenario, "file": file,
        "set": {}, "settings": {}, "replicate": 0, **figures,
        **where_and_when(),
    }  # fmt: skip
    return cast("Manifest", found)


def where_and_when() -> dict[str, str]:
    """The end of every manifest: the machine and the time."""
    return {
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def origin(manifest: Manifest) -> Origin:
    """How the result of this manifest came about."""
    if "imported" in manifest:
        return Origin.IMPORTED
    if "measured" in manifest:
        return Origin.CALLED if "call" in manifest["measured"] else Origin.MEASURED
    return Origin.EMULATED if "real_time" in manifest else Origin.SIMULATED


class StudyRun(TypedDict):
    """A run of a study or shard in its folder."""

    folder: str
    settings: NotRequired[Mapping[str, str]]
    seed: NotRequired[int]
    digest: NotRequired[str]
    run: NotRequired[int]


class StudyManifest(TypedDict):
    """The manifest of a study."""

    talkspurt: str
    name: str
    title: str
    description: str
    file: NotRequired[str | None]
    axes: list[Mapping[str, Any]]
    design: NotRequired[Mapping[str, Any] | None]
    replications: int
    confidence: float
    set: Mapping[str, str]
    runs: list[StudyRun]


class ShardManifest(StudyManifest):
    """The manifest of a shard of a study."""

    engine: str
    study: str
    shard: int
    shards: int
    total: int
