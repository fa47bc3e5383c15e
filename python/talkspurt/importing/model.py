"""What the readers of traces return: directions of flows with their packets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Packet:
    """One packet of a direction, end to end; None where the trace does not tell.

    Attributes:
        data: whether it has payload, or padding among those of a stream of RTP.
        ip_bytes: length of the IP packet; None for a packet that is only known to be missing.
        fate: as in the packets table; ``lost`` if only that is known.
        repaired_s: when a retransmission of it arrived, if it was lost.
        headers: bytes of the network's, the transport's and the media header.
        payload_bytes: bytes behind them.
        fresh_bytes: of these, those that no earlier packet had delivered.
        media_s: its RTP timestamp in seconds since the first packet's.
        noise: whether it is comfort noise (RFC 3389).
        payload: where in the file the media that was captured begins and ends.
    """

    number: int
    data: bool
    ip_bytes: int | None
    sent_s: float | None
    received_s: float | None
    fate: str
    headers: tuple[int, int, int] | None = None
    payload_bytes: int | None = None
    fresh_bytes: int | None = None
    media_s: float | None = None
    noise: bool = False
    marker: bool = False
    payload: tuple[int, int] | None = None
    repaired_s: float | None = None


@dataclass(slots=True)
class Hop:
    """A packet on a link; a row of the packets table."""

    number: int
    link: str
    ip_bytes: int | None
    enqueued_s: float | None
    dequeued_s: float | None
    received_s: float | None
    fate: str


@dataclass
class Speech:
    """Speech in RTP: the codec and the frame of its payload type.

    Attributes:
        codec: its name in scenarios.
        first_s: where the media clock's zero lies, in seconds of the trace: the packet with the
            least transit time was captured then plus its ``media_s``.
        delay_s: what is known of the network delay before the capture, in seconds.
        drift_ppm: by how much the capture's clock is faster than that of the sender's timestamps.
        settings: more of the source's settings in a scenario.
        is_readable: whether redundancy within its payload is seen, if there is any.
    """

    codec: str
    packet_s: float
    first_s: float
    delay_s: float | None
    drift_ppm: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    is_readable: bool = True


@dataclass
class Way:
    """One direction of a flow.

    Attributes:
        transport: as in the flows table.
        source: ``speech``, or ``unknown``.
        packets: its packets in order of time.
        hops: rows of the packets table.
        routes: the links on each way that packets took.
        sees_sent: whether the trace has the packets as they left the sender.
        sees_arrivals: whether the trace tells what arrived; not of what its own end sent.
        counts: whether numbers tell how many packets were sent, if ``sees_sent`` is false.
        facts: what no column tells, for the manifest.
        events: times and texts of events.
        gauges: times, names and values of what its ends reported.
    """

    flow: str
    side: str
    transport: str
    source: str
    sender: str
    receiver: str
    packets: list[Packet] = field(default_factory=list)
    hops: list[Hop] = field(default_factory=list)
    routes: list[list[str]] = field(default_factory=list)
    sees_sent: bool = True
    sees_arrivals: bool = True
    counts: bool = False
    speech: Speech | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    events: list[tuple[float, str]] = field(default_factory=list)
    gauges: list[tuple[float, str, float]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its name in the flows table."""
        return self.flow if self.side == "from" else f"{self.flow}.reverse"

    @property
    def has_data(self) -> bool:
        """Whether a packet has payload."""
        return any(packet.data for packet in self.packets)


@dataclass
class Trace:
    """What a reader found.

    Attributes:
        ways: directions of flows, those of one flow in succession.
        links: names of links with the nodes at their ends, in both directions.
        duration_s: time of the last event.
    """

    format: str
    ways: list[Way]
    links: dict[str, tuple[str, str]]
    duration_s: float
    notes: list[str] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
