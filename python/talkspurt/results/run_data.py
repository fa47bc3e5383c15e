"""The data of one run: tables, recordings and manifest, fresh or read from disk.

:class:`talkspurt.Result` adds what is drawn and saved of it.

Tables become polars frames on first access, and stay in Arrow (or in their Parquet file) until
then. This module is independent of how tables are computed.
"""

from __future__ import annotations

import json
import math
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, Self, cast

from talkspurt import _core, scores
from talkspurt._lazy import pl
from talkspurt._storage.file_access import reading
from talkspurt._text.format import offered
from talkspurt.results import manifest as manifests
from talkspurt.results import validation
from talkspurt.results.audio import Audio
from talkspurt.results.manifest import Manifest, Origin
from talkspurt.scenarios.resolved import Network, apart_from_seed, values, written
from talkspurt.scenarios.source import Question
from talkspurt.scores.kinds import Segments

TABLES = tuple(json.loads(_core.types()))
"""Tables of every run; ``packets`` exists if the scenario requests it, ``scores`` on request."""

SUMMARIES = ("flows", "links")
"""Tables that are always in memory after a run."""

BYTES = (
    "payload_bytes",
    "media_header_bytes",
    "transport_header_bytes",
    "network_header_bytes",
)
"""The components of the bytes sent, from the inside out; their sum is ``sent_bytes``."""


@dataclass(frozen=True)
class RunData:
    """The tables, recordings and manifest of one run.

    Attributes:
        name: name of the scenario.
        title: its title.
        description: its description, in Markdown.
        settings: the label of each axis, if the run is part of a study.
        replicate: its replication, from 0.
        seed: seed of the run.
        scenario: the resolved scenario: TOML with every default written out.
        topology: nodes, links and routes, for drawing.
        manifest: version, digest, times and counts of the run.
    """

    name: str
    title: str
    description: str
    settings: Mapping[str, str]
    replicate: int
    seed: int
    scenario: str
    topology: Mapping[str, Any]
    manifest: Manifest
    _read_table: Callable[[str], pl.DataFrame | None] = field(repr=False)
    _read_audio: Callable[[str], Audio | None] = field(repr=False)
    _written: Path | Scratch | None = field(default=None, repr=False)
    _outcome: _core.Outcome | None = field(default=None, repr=False, compare=False)
    """The run, if it has just ended."""
    _file_of: Callable[[str], Path | None] = field(default=lambda _: None, repr=False)
    """The file of a table, if it has one."""
    _known: validation.Known | None = field(default=None, repr=False, compare=False)
    """What its tables can name, if they were saved."""
    _tables: dict[str, pl.DataFrame] = field(default_factory=dict, repr=False, compare=False)
    # A copy with other tables (`dataclasses.replace`) has a cache of its own.
    _gauges: dict[str, pl.DataFrame] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __repr__(self) -> str:
        settings = "".join(f", {axis} = {label}" for axis, label in self.settings.items())
        digest = self.digest or "none"
        return f"<Result of {self.name!r}{settings}: seed {self.seed}, digest {digest}>"

    @classmethod
    def of_outcome(
        cls,
        question: Question,
        i: int,
        outcome: _core.Outcome,
        *,
        wall_s: float,
        written: Path | Scratch | None,
    ) -> Self:
        """The result of run ``i`` of a plan that has just ended."""
        plan = question.plan
        resolved = plan.resolved(i)
        place: dict[str, Any] = {"settings": plan.settings(i), "replicate": plan.replicate(i)}
        made = manifests.made(
            question.name,
            question.absolute,
            seed=plan.seed(i),
            digest=outcome.digest,
            machine_dependent=plan.machine_dependent(i),
            duration_s=outcome.duration_s,
            hops=outcome.hops,
            events=outcome.events,
            cpu_s=outcome.cpu_s,
            wall_s=wall_s,
        )

        def read_audio(name: str) -> Audio | None:
            found = outcome.audio(name)
            return None if found is None else Audio(name, *found)

        return cls(
            name=question.name,
            title=plan.title,
            description=plan.description,
            **place,
            seed=plan.seed(i),
            scenario=resolved,
            topology=Network(partial(plan.topology, i)),
            manifest=cast("Manifest", {**made, "set": dict(question.sets), **place}),
            _read_table=partial(_table, outcome, resolved, written),
            _file_of=partial(_file, outcome, written),
            _read_audio=read_audio,
            _written=written,
            _outcome=outcome,
        )

    def read_by(self, read_table: Callable[[str], pl.DataFrame | None]) -> Self:
        """A result without sound that has just ended, whose tables are kept elsewhere."""
        return replace(
            self,
            _read_table=read_table,
            _file_of=lambda _: None,
            _read_audio=lambda _: None,
            _outcome=None,
        )

    def moved(self, folder: Path) -> Self:
        """A result that has just ended, after its folder was renamed."""
        assert self._outcome is not None
        read_table = partial(_table, self._outcome, self.scenario, folder)
        file_of = partial(_file, self._outcome, folder)
        return replace(self, _read_table=read_table, _file_of=file_of, _written=folder)

    @cached_property
    def origin(self) -> Origin:
        """How it came about."""
        return manifests.origin(self.manifest)

    @property
    def resolved(self) -> dict[str, Any]:
        """The values of its resolved scenario, with all flows; owned by the caller."""
        return values(self.scenario, untyped=self.origin is Origin.IMPORTED)

    @property
    def recorded(self) -> Mapping[str, Any]:
        """The settings of what it records; see :func:`recorded`."""
        return recorded(self.scenario, untyped=self.origin is Origin.IMPORTED)

    # Numbers of the whole run.

    @property
    def digest(self) -> str:
        """Digest of the event records: equal runs have equal digests.

        Empty for an emulation and for a measurement.
        """
        return str(self.manifest["digest"] or "")

    @property
    def hops(self) -> int:
        """Packets times links crossed."""
        return int(self.manifest["hops"])

    @property
    def duration_s(self) -> float:
        """Length of the run in simulated seconds."""
        return float(self.manifest["duration_s"])

    # Tables.

    def table(self, name: str) -> pl.DataFrame:
        """The table of this name.

        Raises:
            KeyError: if the run has no such table.
        """
        if name == "scores":
            return self.scores
        if name not in (*TABLES, "packets"):
            known = (*TABLES, "packets", "scores")
            raise KeyError(f"no table {name!r}; {offered(name, known)}")
        found = self._kept(name)
        if found is None:
            raise KeyError(f"no table {name!r}: the scenario does not set record.packets = true")
        return found

    def _kept(self, name: str) -> pl.DataFrame | None:
        """A table, read on first access; None if there is none."""
        if name not in self._tables:
            found = self._read_table(name)
            if found is None:
                return None
            self._tables[name] = found
        return self._tables[name]

    @property
    def flows(self) -> pl.DataFrame:
        """One row per flow (two when both ends send): counts, delays, quality."""
        return self.table("flows")

    @property
    def links(self) -> pl.DataFrame:
        """One row per link and direction: utilisation, drops, queue."""
        return self.table("links")

    def series(self, flow: str | None = None) -> pl.DataFrame:
        """Time series of all flows, or of one flow."""
        return self._of("series", flow=flow)

    def link_series(self, link: str | None = None) -> pl.DataFrame:
        """Time series of all links, or of one link."""
        return self._of("link_series", link=link)

    def gauges(self, flow: str | None = None, gauge: str | None = None) -> pl.DataFrame:
        """Changes of values inside the endpoints: cwnd, ssthresh, srtt, rto, jitter."""
        if gauge is None:
            return self._of("gauges", flow=flow)
        if gauge not in self._gauges:
            self._gauges[gauge] = self._one_gauge(gauge)
        if flow is None:
            return self._gauges[gauge]
        self._check_name("flow", flow)
        return self._gauges[gauge].filter(flow=flow)

    def _one_gauge(self, gauge: str) -> pl.DataFrame:
        """The rows of one gauge. Only these are read from a file: a whole table can take 1 GB."""
        if (file := self._gauge_file) is None:
            return self._of("gauges", gauge=gauge)
        with reading(file):
            found = pl.scan_parquet(file, glob=False).filter(gauge=gauge).collect()
            return found if self._known is None else validation.table("gauges", found, self._known)

    @property
    def _gauge_file(self) -> Path | None:
        """The file to read gauges from; None if they are in memory."""
        return None if "gauges" in self._tables else self._file_of("gauges")

    @property
    def gauge_names(self) -> list[str]:
        """The gauges that some endpoint of the run has, sorted."""
        if (file := self._gauge_file) is None:
            return sorted(self.table("gauges")["gauge"].unique())
        with reading(file):
            names = pl.scan_parquet(file, glob=False).select(pl.col("gauge").unique()).collect()
            if names.schema["gauge"] != pl.String or names["gauge"].has_nulls():
                raise ValueError("the column 'gauge' has a row without a name")
        return sorted(names["gauge"])

    def frames(self, flow: str | None = None) -> pl.DataFrame:
        """The times and outcome of each voice frame: captured, handed over, delivered, played."""
        return self._of("frames", flow=flow)

    def video_frames(self, flow: str | None = None) -> pl.DataFrame:
        """Each video frame: capture time, its packets, and delivery time of the last."""
        return self._of("video_frames", flow=flow)

    def events(self, flow: str | None = None) -> pl.DataFrame:
        """Events with times: connections opened and closed, timeouts."""
        return self._of("events", flow=flow)

    def packets(self, flow: str | None = None) -> pl.DataFrame:
        """One row per packet and hop, if the scenario sets ``record.packets = true``."""
        return self._of("packets", flow=flow)

    @property
    def excerpt(self) -> pl.DataFrame | None:
        """The packets of an emulation that its report animates, one row per packet and hop.

        ``manifest["excerpt"]`` has its start and end. None for a run, whose packets of any interval
        are found by repeating it.
        """
        return self._kept("excerpt") if "excerpt" in self.manifest else None

    def _of(self, table: str, **wanted: str | None) -> pl.DataFrame:
        frame = self.table(table)
        for column, value in wanted.items():
            if value is not None:
                self._check_name(column, value)
                frame = frame.filter(**{column: value})
        return frame

    def _check_name(self, column: str, value: str) -> None:
        if column not in ("flow", "link"):
            return
        names = self.table(column + "s")["name"].to_list()
        if value not in names:
            raise KeyError(f"no {column} {value!r}; {offered(value, names)}")

    # Speech.

    @property
    def calls(self) -> list[str]:
        """Names of the flows that carry speech, with or without a recording."""
        flows = self.flows
        return flows.filter(flows["source"] == "speech")["name"].to_list()

    @cached_property
    def heard(self) -> list[str]:
        """Names of the calls with audio: those whose source names a recording."""
        return [call for call in self.calls if self._read_audio(call) is not None]

    def audio(self, flow: str) -> Audio:
        """The reference and degraded recordings of a speech flow.

        Raises:
            KeyError: if the flow does not exist or has no recording.
        """
        self._check_name("flow", flow)
        found = self._read_audio(flow)
        if found is None:
            why = "has a source without a file" if flow in self.calls else "carries no speech"
            there = ", ".join(self.heard) or "none"
            raise KeyError(f"flow {flow!r} {why}; those that can be heard: {there}")
        return found

    @property
    def scores(self) -> pl.DataFrame:
        """PESQ, ViSQOL and PLCMOS of each call with a recording, and of its segments of 8 s.

        Columns: ``flow``, ``segment`` (null for the call), ``start_s``, ``duration_s``,
        ``judged_segments`` of ``speech_segments``, ``pesq_nb`` or ``pesq_wb``, ``visqol``,
        ``plcmos``, ``reason``. They are computed on first access, of at most three segments of each
        call, unless they were saved with the result; :meth:`score` computes those of all segments.
        Needs ``pip install 'talkspurt[scores]'``.

        Raises:
            talkspurt.errors.MissingExtraError: if the models are not installed.
        """
        return self._tables["scores"] if self.is_scored else self.score()

    def score(self, segments: Segments = "three") -> pl.DataFrame:
        """Compute :attr:`scores` unless those of as many segments are there; returns the table.

        Args:
            segments: how many segments of each call are judged: ``"three"`` at most, or ``"all"``.

        Raises:
            talkspurt.errors.MissingExtraError: if the models are not installed.
        """
        if not scores.is_enough(self, segments):
            self._tables["scores"] = scores.table(self, segments)
        return self._tables["scores"]

    @property
    def is_scored(self) -> bool:
        """Whether ``scores`` are already there, in memory or in the result's folder."""
        return self._kept("scores") is not None

    def _files(self) -> list[Path]:
        """Captures and packets, written during the run."""
        if self._written is None:
            return []
        files = sorted(Path(self._written).iterdir())
        return [f for f in files if f.suffix == ".pcapng" or f.name == "packets.parquet"]

    def to_json(self) -> dict[str, Any]:
        """The document of ``talkspurt run --json``: plain values, null where there is none."""
        return self._document(*map(self._rows, SUMMARIES))

    def _document(
        self, flows: Iterable[Mapping[str, Any]], links: Iterable[Mapping[str, Any]]
    ) -> dict[str, Any]:
        scored: dict[str, Any] = {}
        if self.is_scored:
            scored = {"scores": scores.document(self)}
        return {
            "scenario": self.name,
            "seed": self.seed,
            "duration_s": self.duration_s,
            "digest": self.digest or None,
            "hops": self.hops,
            **({"real_time": real_time} if (real_time := self.manifest.get("real_time")) else {}),
            "flows": _by_name(flows),
            "links": _by_name(links),
            **scored,
        }

    def _rows(self, table: str) -> Sequence[Mapping[str, Any]]:
        """Rows without polars, which takes longer to start than a short run to end."""
        outcome = self._outcome
        return self.table(table).to_dicts() if outcome is None else outcome.rows(table)


def _table(
    outcome: _core.Outcome, scenario: str, written: Path | Scratch | None, name: str
) -> pl.DataFrame | None:
    """A table of a run that has just ended: from memory, or from a file that the run wrote."""
    if name == "scores" or (name == "packets" and not recorded(scenario).get("packets")):
        return None
    if not _is_in_file(outcome, name):
        return pl.DataFrame(outcome.table(name))
    file = _file(outcome, written, name)
    if file is None:
        return None
    with reading(file):
        return pl.read_parquet(file, glob=False)


def _file(outcome: _core.Outcome, written: Path | Scratch | None, name: str) -> Path | None:
    if written is None or not _is_in_file(outcome, name):
        return None
    return Path(written) / f"{name}.parquet"


def _is_in_file(outcome: _core.Outcome, name: str) -> bool:
    return name == "packets" or (name in outcome.stored and name not in SUMMARIES)


def _by_name(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        row["name"]: {name: finite(value) for name, value in row.items() if name != "name"}
        for row in rows
    }


def finite(value: Any) -> Any:
    """The value, or None if JSON cannot represent it."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def recorded(resolved: str, *, untyped: bool = False) -> Mapping[str, Any]:
    """The record settings of a resolved scenario, read once for all replications."""
    return _recorded(apart_from_seed(resolved), untyped)


@lru_cache(maxsize=256)
def _recorded(resolved: str, untyped: bool) -> Mapping[str, Any]:
    record: dict[str, Any] = written(resolved, untyped=untyped).get("record", {})
    return record


class Scratch:
    """A folder for captures and packets with the lifetime of their result."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="talkspurt-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def __fspath__(self) -> str:
        return str(self.path)
