"""The Rust side as Python sees it: scenario text in, Arrow tables out.

Everything here is written in Rust and releases the GIL while it simulates. Use
:func:`talkspurt.run` unless you build tools of your own.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypedDict, TypeVar

T = TypeVar("T")

class Problem(TypedDict):
    """One thing wrong with a scenario.

    ``file`` is the scenario's name, or the ``--set PATH=VALUE`` the fault came from.
    """

    file: str
    line: int | None
    path: str
    message: str
    hint: str | None

class AxisInfo(TypedDict):
    """One axis of a study as the scenario states it."""

    name: str
    path: str
    labels: list[str]
    unit: str | None
    numbers: list[float] | None
    factor: str | None

class DesignInfo(TypedDict):
    """The design of a study: see :attr:`talkspurt.Study.design`."""

    kind: str
    samples: int
    indices: bool
    points: int

class ArrowStream(Protocol):
    """Anything that exports an Arrow stream through the PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class ScenarioError(ValueError):
    """A scenario says something that cannot be; ``problems`` holds every fault found."""

    problems: list[Problem]
    def __init__(self, message: str, problems: list[Problem]) -> None: ...

class RunError(RuntimeError):
    """A run could not be finished: cancelled, a full disk, or a fault of talkspurt's own.

    ``kind`` says which, in a word: of a run ``cancelled``, ``input``, ``output``, ``account``,
    ``system`` or ``internal``; of a measurement or a call also ``stopped``, ``unreachable``,
    ``version``, ``secret``, ``refused`` or ``lost``. None where Python raised it.
    """

    kind: str | None

def load(
    text: str,
    name: str,
    base: str,
    sets: list[tuple[str, str]],
    seed: int | None,
    sample: Callable[[str, int, int, int], list[list[float]]] | None = None,
    *,
    series: bool = True,
    hosts: bool = False,
) -> Plan:
    """Read a scenario; ``base`` is the folder its files are relative to.

    ``sample`` returns the points of a design: see :func:`talkspurt.designs.unit_cube`. Without
    ``series``, none are recorded, so that their bins need not fit memory. With ``hosts``, programs
    run at nodes, so that the scenario needs no flow.
    """

def metrics() -> str:
    """The metrics that every run has, as JSON."""

def types() -> str:
    """The types of the columns of every table, as polars names them, by table and column."""

def values(resolved: str) -> str:
    """Values of a resolved scenario as JSON: see :mod:`talkspurt.resolved`."""

def lines(text: str) -> list[tuple[str, int]]:
    """The line of each key of a scenario's text."""

def recording_seconds(file: str) -> float:
    """The duration of a WAV file."""

def schema() -> str:
    """JSON Schema of a scenario."""

def version() -> str:
    """Version of talkspurt."""

def opinion(tables: Mapping[str, ArrowStream], told: str, flow: str, bin_s: float) -> str:
    """The windows of a direction of a call as JSON, with the columns of ``metrics.opinion``.

    From the tables of flows and frames; ``told`` is as in :func:`charts`.
    """

def gauge_lines() -> str:
    """What is shown of the inside of senders, as JSON.

    Of each line: the gauge that a sender has, name and title of its panel, gauge, label, colour,
    whether it is dashed, width.
    """

def charts(tables: Mapping[str, ArrowStream], told: str) -> str:
    """The charts and the bars of a run as JSON, from its tables.

    ``told`` is JSON: topology, duration_s, interval_s, flows with speech as in a resolved scenario,
    imported, and name and label of models of sound. Raises ValueError if it is wrong.
    """

def capture(file: bytes) -> tuple[ArrowStream, ArrowStream, ArrowStream, int, int]:
    """Of a capture: packets, SCTP's chunks, frames without a packet; all frames, those untimed."""

def jitter_buffer(settings: str) -> str:
    """Settings of a jitter buffer (JSON as in a scenario) with defaults; ValueError if wrong."""

def listen(
    flow: str,
    lengths: list[int],
    rows: list[
        tuple[int, int, int | None, int | None, int | None, bool, int, tuple[int, int] | None]
    ],
    end_ns: int,
    file: bytes | None,
    sounds: bool,
) -> Outcome:
    """Play a captured stream through the jitter buffer of a flow (JSON), and score it.

    A row of a packet has, in nanoseconds, its place on the media clock, the capture of its first
    sample, departure and arrival; the index of its length (None: comfort noise), its marker, the
    length of its payload, and where that is in ``file``: redundancy in it is seen, and if
    ``sounds``, it is rendered. The result has one direction, ``call``.
    """

def sdp(text: bytes, cut: bool) -> str | None:
    """The media (JSON) of a session description, alone or in a message of SIP or SAP.

    If ``cut``, bytes at its end are missing.
    """

def rtp_payloads() -> list[tuple[int, str, int]]:
    """The payload types of RFC 3551: number, name of the encoding, and clock rate."""

def rtcp(packet: bytes, whole: bool) -> str:
    """The reports in a compound RTCP packet, a JSON list of objects with a ``kind``.

    The kinds and their keys are those of ``Report`` in ``crates/capture/src/rtcp.rs``. A last one
    of kind ``cut`` says ``why`` others are missing. A ``whole`` packet that is not plain RTCP is
    only of the kind ``encrypted``, with the ``ssrc`` of its sender.
    """

def rtcp_round_trips(packets: list[tuple[int, bytes]]) -> str:
    """Round-trip times (JSON) by the reports of RTCP packets, with their times in nanoseconds."""

class Meanings:
    """What the columns of a run's tables mean, as JSON by table and column."""

    def __init__(self, meanings: Mapping[str, Mapping[str, str]]) -> None: ...

class Plan:
    """A scenario with its axes multiplied out: axes vary slowest first, replications fastest."""

    @property
    def title(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def notes(self) -> list[str]:
        """How files were read where that may surprise."""
    @property
    def confidence(self) -> float: ...
    @property
    def replications(self) -> int: ...
    @property
    def axes(self) -> list[AxisInfo]: ...
    @property
    def design(self) -> DesignInfo | None: ...
    def __len__(self) -> int: ...
    def settings(self, i: int) -> dict[str, str]:
        """Label of each axis in run ``i``."""
    def replicate(self, i: int) -> int: ...
    def seed(self, i: int) -> int: ...
    def machine_dependent(self, i: int) -> list[str]:
        """Flows of run ``i`` whose packets may differ between machines."""
    def resolved(self, i: int) -> str:
        """TOML of run ``i`` alone, every default written out."""
    def writes_packets(self, i: int) -> bool:
        """Whether run ``i`` writes captures or a table of packets, while it proceeds."""
    def topology(self, i: int) -> str:
        """JSON of nodes, links, and flows with their routes both ways and packets of speech."""
    def start(
        self,
        i: int,
        folder: str | None,
        tables: str | Sequence[str] = "memory",
        meanings: Meanings | None = None,
        heard: bool = True,
    ) -> Job[Outcome]:
        """Start run ``i`` in a thread of its own; captures and packets go to ``folder``.

        Tables besides those of flows and links are in "memory", in files in "folder", or there are
        "none"; or those with the given names are in memory. Without ``heard``, it has no sound.
        ``meanings`` are those of their columns.
        """
    def export(self, i: int, format: str, folder: str) -> Job[str]:
        """Start run ``i`` and write it into ``folder``; the result is the run's digest.

        As "pcapng", "ns2", "nam", "qlog" or "parquet".
        """

    def memory(self, i: int, tables: str | Sequence[str], heard: bool) -> tuple[int, int]:
        """Bytes that run ``i`` takes beside the program, an estimate; see :meth:`start`.

        Those of its flows and links, and those of what it records while it proceeds.
        """

    def count(self, i: int) -> Job[tuple[list[tuple[str, int, int, int]], int, int]]:
        """Start run ``i`` and count what it sends.

        Name, transmissions, bytes and drops of each link; packets sent; changes of gauges.
        """

    def excerpt(self, i: int, lossless: bool) -> Job[Packets]:
        """Start run ``i`` as far as the end of the excerpt that its scenario shows.

        A run that is ``lossless`` has no drop in its window of measurement.
        """

class Job(Generic[T]):
    """Work under way in a thread of its own."""

    def progress(self) -> float:
        """Share of its time that is over, 0 to 1; 0 of an end of a flow."""
    def wait(self, seconds: float) -> bool:
        """Wait at most so long; true when there is a result or an error."""
    def cancel(self) -> None:
        """Ask it to end; a run then has no result, and a measurement that of the time until now."""
    def result(self) -> T:
        """What came out, once; raises RunError, and OSError if a table could not be written."""

Packets = tuple[str, float, float, ArrowStream]
"""Packets for an animation: why they begin where they do (``asked``, ``drop``, ``packet`` or
``window``), their start and end in seconds, and a row for each packet and link."""

class Emulation(Job[tuple[Outcome, str, Packets | None]]):
    """A run under way in real time, with packets of programs; on Linux only."""

    def __init__(
        self,
        plan: Plan,
        index: int,
        devices: list[tuple[str, int]],
        folder: str | None = None,
        tables: str | Sequence[str] = "memory",
        meanings: Meanings | None = None,
    ) -> None:
        """Start run ``index``; ``devices`` are nodes with the descriptors of their TUN devices.

        Raises ValueError if no links lead from one of them to another. Otherwise like
        :meth:`Plan.start`. The result has the account of the packets as JSON, too.
        """
    def thread(self) -> int:
        """The number of its thread; 0 before it runs."""
    def end(self) -> None:
        """Ask for its end before the planned one."""
    def ended(self) -> bool:
        """Whether no packet leaves the network any more."""
    def close(self) -> None:
        """The devices are down: after the last packets, there is a result."""

FlowEnd = Job[tuple[list[tuple[float, str, float]], int]]
"""An end of a flow: changes of its gauges (s, name, value), and packets refused by the socket."""

def flow_end(
    plan: Plan,
    index: int,
    which: tuple[str, int],
    addresses: tuple[str, str],
    namespace: int,
) -> FlowEnd:
    """Start an end of a flow on a raw socket in a network namespace, in real time; on Linux only.

    ``which`` is flow and side (0 is ``from``), ``addresses`` are the local and the remote one.
    """

def nodes(plan: Plan, index: int) -> str:
    """The nodes of a run as JSON: names, addresses, and the longest packet of their links."""

def way(plan: Plan, index: int, source: str, to: str) -> tuple[list[str], list[str]]:
    """The nodes of a way between two nodes, and its links."""

class Outcome:
    """The records of a finished run."""

    @property
    def digest(self) -> str: ...
    @property
    def hops(self) -> int: ...
    @property
    def events(self) -> int: ...
    @property
    def cpu_s(self) -> float: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def stored(self) -> list[str]:
        """Names of the tables in files of the run's folder."""
    def columns(self, name: str) -> dict[str, str]:
        """Columns of a table without rows, and their types as polars names them."""
    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table that is in memory."""
    def table(self, name: str) -> ArrowStream: ...
    def audio(self, flow: str) -> tuple[bytes, bytes, int, int, float] | None:
        """Sent and received PCM (int16, little endian), the sample rate, and the channels."""

class Summaries:
    """Rows of the tables of flows and links of several runs."""

    def add(self, run: int, outcome: Outcome) -> None: ...
    def take(self, name: str) -> ArrowStream:
        """The rows that were added since the last call, behind a column ``run``."""

Way = tuple[str, int, int, str, str | None]
"""What a direction of a measurement sends: kind, bit/s, bytes per packet, codec, controller."""

class Server:
    """A server for measurements, or the end of calls that answers; only on Linux."""

    @property
    def local(self) -> str: ...
    def lines(self) -> list[str]:
        """Lines about sessions, or about calls that did not begin, since the last call."""
    def call(self) -> CallWatch | None:
        """The call in progress, if there is one."""
    def called(self) -> Called | None:
        """The results of a call that has ended, once."""
    def half(self) -> Called | None:
        """What was heard in a call that has just ended, once, before notes are exchanged."""
    def stop(self) -> None:
        """Stop listening, and ask all sessions to end."""

def serve(
    listen: str,
    secret: bytes,
    max_rate: str,
    max_duration: str,
    max_sessions: int,
    ports: tuple[int, int] | None,
    user: str | None,
    direct: bool,
) -> Server:
    """Listen on ADDRESS:PORT; with ``user``, privileges are given up, and root becomes that user.

    ``direct`` permits DCCP and SCTP directly over IP.
    """

def answer_call(sockets: CallSockets, secret: bytes, voice: CallVoice) -> Server:
    """Answer calls."""

class Session:
    """A connection to a server, or to the end of a call that answers; only on Linux."""

    def __init__(self, host: str, port: int, secret: bytes) -> None:
        """Connect; raises RunError with the reason."""
    @property
    def server(self) -> str: ...
    def measure(
        self,
        flows: list[tuple[str, str, Way | None, Way | None]],
        duration: str,
        mtu: int,
        seed: int,
    ) -> Watched[tuple[Outcome, str, str, str | None]]:
        """Start a measurement of flows (name, transport, up, down) at the same time.

        Tables, facts as JSON, the scenario, and why it ended early.
        """
    def call(
        self, voice: CallVoice, transport: str, duration: str, mtu: int, seed: int
    ) -> Watched[Called]:
        """Call, once; the result raises RunError if there was no call."""

class Watched(Job[T]):
    """A measurement or a call in progress."""

    def watch(self) -> CallWatch:
        """The call."""
    def half(self) -> T | None:
        """What this end knows, once, before the notes of the other end come."""

class CallWatch:
    """A call in progress."""

    def view(self) -> str | None:
        """The state of the call as JSON, once there is one."""
    def devices(self) -> CallDevices | None:
        """The sound devices of the call, once codecs are agreed on, if it has any."""
    def stop(self) -> None:
        """Hang up."""

class CallVoice:
    """What one end of a call says, and the codecs that it has; only on Linux."""

    def __init__(
        self, file: str | os.PathLike[str] | None, codecs: list[str], loudspeaker: bool
    ) -> None:
        """Read a WAV file, or take a microphone without one; raises RunError with the reason."""
    @property
    def duration_s(self) -> float | None: ...

class CallDevices:
    """The sound devices of one end of a call; samples have 16 bits, little endian."""

    @property
    def format(self) -> tuple[int, int]:
        """Samples per second and channel, and channels."""
    def say(self, pcm: bytes) -> None:
        """Samples of the microphone have come."""
    def hear(self) -> bytes:
        """What the loudspeaker is to play after what was returned before."""

Called = tuple[Outcome | None, str, str, tuple[bytes, int, int], str | None]
"""Tables, facts as JSON, the scenario, the sound heard (samples, rate, channels), and a failure."""

class CallSockets:
    """The sockets of the end of a call that answers; only on Linux."""

    def __init__(self, listen: str, ports: tuple[int, int] | None, user: str | None) -> None:
        """Listen on ADDRESS:PORT, for one call at a time, and give up all privileges.

        They are those of this thread, and of threads that it starts afterwards. A process of root
        becomes ``user``, if there is one.
        """

def call_codecs() -> list[str]:
    """Names of the codecs that a call can have here."""

def check_address(option: str, text: str) -> None:
    """Check text such as ``127.0.0.1:7862``; raises ValueError."""

def check_flows(flows: list[tuple[str, str, Way | None, Way | None]], mtu: int) -> None:
    """Check flows that are to be measured at the same time.

    Raises RunError with everything that is wrong.
    """

def check_length(option: str, text: str) -> None:
    """Check text such as ``2min``, from 1 s to 1 h; raises ValueError."""

def check_transport(name: str, sends: bool) -> None:
    """Check the name of a transport, and its congestion controller if this end ``sends``.

    Raises ValueError with the reason.
    """

def rate_bps(text: str) -> int:
    """Bits per second of text such as ``64kbit/s``; raises ValueError."""

def answer(input: str, details: object) -> str:
    """The answer (JSON) to an input (JSON): see ``talkspurt.analysis.answer``."""

def answer_metrics() -> list[str]:
    """The metrics of flows that an answer reads."""

def cautions(flows: Any) -> list[str]:
    """Warnings about an Arrow table of flows, of a run or a whole study."""

def picture(network: str, flows: Any) -> str | None:
    """The picture of a network: see ``talkspurt.report.topology``; None without nodes."""

def animation(
    network: str,
    flows: Any,
    hops: Any,
    interval_s: tuple[float, float],
    most: int,
    begins: str,
) -> str:
    """The animation of :data:`Packets`, or why there is none: see ``talkspurt.report.animation``.

    ``most`` packets at most, counted on each link, were to be shown.
    """
