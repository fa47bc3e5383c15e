"""Agents: ns-2's agent for each transport, and its parameter names.

Parameters without effect on packets are skipped; those with a single value in ns-2 must have that
value. The behaviour of ns-2.35 was determined from its traces and its agents' variables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from talkspurt.ns2.reading import Part
from talkspurt.ns2.source import Source
from talkspurt.ns2.tcl import number
from talkspurt.scenarios import units
from talkspurt.scenarios.source import toml_value

Setting = tuple[str, str, str, Any]
"""A variable of an agent, its value, and the scenario path and value it comes from."""

IP_BYTES = {"v4": 20, "v6": 40}


@dataclass
class Agents:
    """The two ends of a flow.

    Attributes:
        unit_bytes: what an application sends per unit, for each direction.
        at_start: commands to the caller at the start of the flow.
        listens: whether the callee needs a listen command.
        packet_bytes: the longest IP packet.
        greedy: whether the caller sends without an application.
        pairs: two if each direction has its own pair of agents.
        acks: packets returned per packet sent, to estimate the trace length.
    """

    caller: str
    callee: str
    unit_bytes: list[int]
    here: list[Setting] = field(default_factory=list)
    there: list[Setting] = field(default_factory=list)
    at_start: list[Setting] = field(default_factory=list)
    listens: bool = False
    packet_bytes: int = 0
    greedy: bool = False
    pairs: int = 1
    acks: float = 1.0


@dataclass(frozen=True)
class Flow:
    """Properties of a flow that the functions below need."""

    part: Part
    transport: Part
    sizing: str
    version: str
    sources: list[Source]
    marks: bool

    def set(self, name: str, value: float | str, key: str, said: Any) -> Setting:
        """A variable set from a transport parameter."""
        shown = value if isinstance(value, str) else number(value)
        return name, shown, self.transport.at(key), said


def write(flow: Flow) -> Agents:
    """The agents of a flow."""
    kind = flow.transport.take("kind")
    known = {"udp": _udp, "tcp": _tcp, "sctp": _sctp, "dccp": _dccp, "tfrc": _tfrc}
    if kind in known:
        return known[kind](flow)
    flow.transport.refuse("kind", f"it has no agent like {kind}")
    flow.transport.ignore(*flow.transport.names())
    return Agents("UDP", "Null", [1, 1])


def _udp(flow: Flow) -> Agents:
    headers = 8 + IP_BYTES[flow.version]
    if flow.sizing == "ns2":
        unit = [source.payload_bytes for source in flow.sources]
    else:
        unit = [source.payload_bytes + source.rtp_bytes + headers for source in flow.sources]
    path, said = flow.part.at("sizing"), flow.sizing
    agents = Agents("UDP", "Null", unit, packet_bytes=max(unit), acks=0.0)
    # Longer units would be split.
    agents.here.append(("packetSize_", str(max(unit)), path, said))
    # An agent with its own application aborts the run when it receives.
    agents.pairs = len(flow.sources)
    return agents


TCP = {
    "tahoe": ("TCP", "tahoe"),
    "reno": ("TCP/Reno", "reno"),
    "newreno": ("TCP/Newreno", "newreno"),
    "sack": ("TCP/Sack1", "sack"),
}
FRAMING_BYTES = 2
"""RFC 4571's length field before each media packet."""


def _tcp(flow: Flow) -> Agents:
    knobs = flow.transport
    controller = knobs.take("controller")
    agent, recovery = TCP.get(controller, ("TCP", None))
    if recovery is None:
        why = "its CUBIC knows no RACK-TLP" if controller == "cubic" else "it came later"
        knobs.refuse("controller", why)
    knobs.must("recovery", recovery, "its agents repair losses as their names say")
    knobs.must("pacing", False, "its windows send at once")
    knobs.must("nagle", False, "its segments are never held back")
    knobs.must("notsent_lowat", None, "its agents take all that comes")
    # Its own rule (`window_rule = "ns2"`); it differs from RFC 5681's if losses are random.
    knobs.take("window_rule")
    f_rto = knobs.take("f_rto")
    if f_rto or (f_rto is None and controller == "sack"):
        knobs.refuse("f_rto", "its F-RTO answers otherwise than RFC 4015", "false")
    if flow.sources[0].kind != "bulk":
        _must_take_all(knobs)
    knobs.ignore(
        "hystart", "window_scaling", "max_retransmissions",
        "max_synack_retransmissions", "msl",
    )  # fmt: skip
    if len(flow.sources) > 1:
        flow.part.refuse("reverse", "data goes one way over its TCP agents")
    mss, source = knobs.take("mss"), flow.sources[0]
    message = source.payload_bytes + source.rtp_bytes + FRAMING_BYTES
    stamps = bool(knobs.take("timestamps"))
    # Bytes of options in a segment.
    options = 12 if stamps else 0
    segment = units.size(mss) - options
    if flow.sources[0].kind != "bulk" and segment != message:
        beside = ", beside 12 of options" if options else ""
        why = f"each message, {message} bytes, is a segment there{beside}"
        knobs.refuse("mss", why, f"{message + options}B")
    delayed, sack = knobs.take("delayed_ack"), controller == "sack"
    ack_delay = knobs.take("ack_delay")
    # Bulk data in flight is limited by the smaller buffer.
    buffers = {key: knobs.take(key) for key in ("receive_buffer", "send_buffer")}
    narrow = min(
        (key for key, said in buffers.items() if said), key=lambda k: units.size(buffers[k])
    )
    window = max(1, units.size(buffers[narrow]) // segment)
    sink = "TCPSink" + ("/Sack1" if sack else "") + ("/DelAck" if delayed else "")
    agents = Agents(agent, sink, [segment], acks=0.5 if delayed else 1.0)
    base = IP_BYTES[flow.version] + 20 if flow.sizing == "rfc" else 40
    option = 12 if flow.sizing == "rfc" else 0
    agents.packet_bytes = segment + base + option * stamps
    agents.here += [
        flow.set("packetSize_", segment, "mss", mss),
        ("tcpip_base_hdr_size_", str(base), flow.part.at("sizing"), flow.sizing),
        ("ts_option_size_", str(option), flow.part.at("sizing"), flow.sizing),
        flow.set("timestamps_", str(stamps).lower(), "timestamps", stamps),
        flow.set("window_", window, narrow, buffers[narrow]),
        ("tcpTick_", "0.001", "", "the clock that round trips are measured by, s"),
        ("rtxcur_init_", "1.0", "", "first timeout, s (RFC 6298 2.1)"),
    ]
    agents.there += [
        ("packetSize_", str(base + option * stamps), flow.part.at("sizing"), flow.sizing),
        ("ts_echo_rfc1323_", str(stamps).lower(), knobs.at("timestamps"), stamps),
    ]
    agents.here += _knobs(
        knobs,
        {
            "initial_window": ("windowInit_", float),
            "min_rto": ("minrto_", units.seconds),
            "max_rto": ("maxrto_", units.seconds),
            "ecn": ("ecn_", int),
        },
    )
    agents.at_start += _knobs(knobs, {"initial_ssthresh": ("ssthresh_", float)})
    if controller == "reno":
        words = "RFC 5681 knows no `recover`: what is lost next is retransmitted fast, too"
        agents.here.append(("bugFix_", "false", "", words))
    if delayed:
        agents.there.append(flow.set("interval_", units.seconds(ack_delay), "ack_delay", ack_delay))
    return agents


USUAL_BUFFER = 4_000_000
"""A send buffer that never fills here."""


def _must_take_all(knobs: Part) -> None:
    """Report a send buffer that may fill: ns-2 has none."""
    if units.size(knobs.take("send_buffer")) < USUAL_BUFFER:
        knobs.refuse("send_buffer", "its agents take all that comes", "4MB")


SCTP_HEADERS = 12
CHUNK_HEADER = 16


def _sctp(flow: Flow) -> Agents:
    knobs = flow.transport
    for key, wanted, why in (
        ("association", None, "an association of its has one application"),
        ("lifetime", None, "its partial reliability counts retransmissions, not time"),
        ("scheduler", "fcfs", "its messages leave as they come"),
        ("ecn", False, "its association hears no marks"),
        ("interleaving", False, "it has no I-DATA"),
        ("max_burst", 4, "its Max.Burst is 4"),
        ("bundling", True, "its messages leave together"),
        ("potentially_failed", None, "it came before RFC 7829"),
    ):
        knobs.must(key, wanted, why)
    if flow.sources[0].kind == "bulk":
        knobs.ignore("ack_clocked", "nagle")
    knobs.must("ack_clocked", True, "new data leaves when a SACK comes in, and at no other time")
    knobs.must("nagle", False, "what a SACK lets go leaves, full packets or not")
    knobs.ignore("cookie_life", "multistreaming")
    _must_take_all(knobs)
    if flow.version != "v4":
        flow.part.refuse("ip", "its chunks reckon with an IPv4 header", "v4")
    unit = []
    for source in flow.sources:
        rtp = source.rtp_bytes if flow.sizing == "rfc" else 0
        unit.append((source.payload_bytes or 1000) + rtp)
    agents = Agents("SCTP", "SCTP", unit, packet_bytes=units.size(knobs.peek("mtu")), acks=0.5)
    mtu = knobs.take("mtu")
    largest = units.size(mtu) - 20 - SCTP_HEADERS
    chunk = CHUNK_HEADER + max(unit) if flow.sources[0].kind == "bulk" else largest
    if max(unit) + CHUNK_HEADER > largest:
        flow.part.refuse("source", "its messages fit one packet")
    both = [
        flow.set("mtu_", units.size(mtu), "mtu", mtu),
        ("dataChunkSize_", str(chunk), flow.part.at("source"), None),
    ]
    frequency = knobs.take("sack_frequency")
    if frequency > 2:
        knobs.refuse("sack_frequency", "it acknowledges each packet or every second", "2")
    both.append(flow.set("useDelayedSacks_", int(frequency == 2), "sack_frequency", frequency))
    both += _knobs(
        knobs,
        {
            "ordered": ("unordered_", lambda x: int(not x)),
            "streams": ("numOutStreams_", float),
            "sack_delay": ("sackDelay_", units.seconds),
            "rto_initial": ("initialRto_", units.seconds),
            "rto_min": ("minRto_", units.seconds),
            "rto_max": ("maxRto_", units.seconds),
            "association_max_retrans": ("associationMaxRetrans_", float),
            "path_max_retrans": ("pathMaxRetrans_", float),
            "max_init_retransmits": ("maxInitRetransmits_", float),
            "heartbeat_interval": ("heartbeatInterval_", units.seconds),
            "receive_buffer": ("initialRwnd_", units.size),
        },
    )
    window, threshold = knobs.take("initial_window"), knobs.take("initial_ssthresh")
    # RFC 9260 7.2.1; in ns-2 counted in packets of the largest chunk.
    bytes_ = units.size(window) if window else min(4 * largest, max(2 * largest, 4404))
    if bytes_ % largest and window:
        knobs.refuse("initial_window", f"its window is a multiple of {largest} B")
    both.append(flow.set("initialCwnd_", max(1, round(bytes_ / largest)), "initial_window", window))
    limit = units.size(threshold) if threshold else 1_000_000_000
    both.append(flow.set("initialSsthresh_", limit, "initial_ssthresh", threshold))
    limited = knobs.take("max_retransmissions")
    if limited is not None:
        both.append(flow.set("reliability_", limited, "max_retransmissions", limited))
        both.append(flow.set("numUnrelStreams_", 1, "max_retransmissions", limited))
    agents.here = both
    agents.there = list(both)
    return agents


def _only_ns2(flow: Flow) -> None:
    flow.transport.must(
        "profile", "ns2", "it has its own values of the knobs left open", absent=False
    )
    if flow.sizing != "ns2":
        flow.part.refuse("sizing", "its packets of this transport have lengths of their own", "ns2")


def _dccp(flow: Flow) -> Agents:
    knobs = flow.transport
    _only_ns2(flow)
    ccid = knobs.take("ccid")
    knobs.must("ccid_back", ccid, "both of its halves have one CCID")
    if ccid not in (2, 3):
        knobs.refuse("ccid", f"it has no CCID {ccid}")
    knobs.must("sequence_window", None, "its validity checks have their own window")
    for key in ("allow_short_seqnos", "data_checksum", "send_rtt_estimate", "init_cookie",
                "listen_packets", "ack_vector"):  # fmt: skip
        knobs.must(key, False, "its agents do not know it")
    knobs.ignore(
        "service", "sequence_window_follows", "checksum_coverage", "minimum_checksum_coverage",
        "send_ndp_count", "server_timewait", "msl", "request_timeout", "max_timeout", "give_up",
        "mtu",
    )  # fmt: skip
    unit = [source.payload_bytes or 1000 for source in flow.sources]
    agent = "DCCP/TCPlike" if ccid == 2 else "DCCP/TFRC"
    agents = Agents(agent, agent, unit, listens=True, packet_bytes=max(unit) + 44)
    agents.acks = 0.5 if ccid == 2 else 0.1
    both = _ecn(flow)
    queue = flow.part.part("send_queue")
    queue.must("drop", "newest", "a full send queue drops what comes")
    queue.ignore("lifetime")
    packets = queue.take("packets")
    if packets is not None:
        both.append(("sb_size_", str(packets), queue.at("packets"), packets))
    window, rate = knobs.part("window"), knobs.part("rate")
    other = rate if ccid == 2 else window
    both += _window(window) if ccid == 2 else _rate(rate)
    other.ignore(*other.names())
    agents.here, agents.there = (
        [("packetSize_", str(size), flow.part.at("source"), None), *both]
        for size in (unit[0], unit[-1])
    )
    return agents


def _ecn(flow: Flow) -> list[Setting]:
    """ECN in both halves of an agent.

    Off if no queue marks: the packets are the same, and the sender cannot reset the connection over
    mismatched ECN nonce sums, as happens after many simultaneous losses.
    """
    ecn, path = flow.transport.take("ecn"), flow.transport.at("ecn")
    value = (str(int(ecn is not False)), path, ecn)
    if ecn is not False and not flow.marks:
        value = ("0", "", "no queue marks, and its check of nonces may fail after losses")
    return [(name, *value) for name in ("use_ecn_local_", "use_ecn_remote_")]


def _knobs(part: Part, names: dict[str, tuple[str, Callable[[Any], float]]]) -> list[Setting]:
    given = []
    for here, (there, turned) in names.items():
        value = part.take(here)
        if value is not None:
            given.append((there, number(turned(value)), part.at(here), value))
    return given


def _window(part: Part) -> list[Setting]:
    part.must("slow_start", "per_packet", "its window doubles in slow start")
    part.must("application_limited", "grow", "its window grows though the application does not")
    part.must("idle", "keep", "its window survives silence")
    part.must("max_rto", "1min", "its timeout is bounded by 60 s")
    part.must("ack_ratio_control", True, "it always controls acknowledgements")
    part.must("elapsed_time", False, "its CCID 2 tells no Elapsed Time")
    return _knobs(
        part,
        {
            "initial_window": ("initial_cwnd_", float),
            "initial_ssthresh": ("initial_ssthresh_", float),
            "initial_rto": ("initial_rto_", units.seconds),
            "min_rto": ("min_rto_", units.seconds),
            "ack_ratio": ("ack_ratio_remote_", float),
            "ack_delay": ("dack_delay_", units.seconds),
        },
    )


def _rate(part: Part) -> list[Setting]:
    for key, wanted in (
        ("initial_window", 1), ("idle", "rfc3448"), ("receive_rate", "rfc4342"),
        ("faster_restart", False),
        ("history_discounting", False), ("loss_intervals", 8), ("minimum_interval", None),
        ("credit", None), ("minimum_timeout", None), ("feedback_per_rtt", 1),
        ("counter_follows_acks", True), ("elapsed_time", True), ("loss_intervals_option", True),
        ("ask_loss_event_rate", False), ("token_bucket", None),
    ):  # fmt: skip
        part.must(key, wanted, "its CCID 3 has no setting for it")
    return _knobs(
        part,
        {
            "nominal_size": ("s_s_", units.size),
            "rtt_weight": ("s_rtt_q_", float),
            "timer_granularity": ("s_os_time_gran_", units.seconds),
            "p_floor": ("s_smallest_p_", float),
            "oscillation_prevention": ("s_use_osc_prev_", int),
        },
    )


def _tfrc(flow: Flow) -> Agents:
    knobs = flow.transport
    _only_ns2(flow)
    rate = knobs.part("rate")
    if len(flow.sources) > 1:
        flow.part.refuse("reverse", "data goes one way over its TFRC agents")
    source = flow.sources[0]
    greedy = {"kind": "bulk", "packet": f"{source.payload_bytes}B"}
    if source.kind != "bulk":
        why = "its TFRC sends as fast as it may, whatever is handed to it"
        flow.part.refuse("source", why, toml_value(greedy))
    unit = source.payload_bytes or 1000
    nominal = rate.take("nominal_size")
    if (units.size(nominal) if nominal else 1000) != unit:
        rate.refuse("nominal_size", "it computes with what it sends", f"{unit}B")
    for key, wanted in (
        ("idle", "ns2"), ("receive_rate", "rfc4342"), ("faster_restart", False),
        ("oscillation_prevention", True),
        ("loss_intervals", 8), ("p_floor", 0), ("minimum_interval", None), ("credit", None),
        ("timer_granularity", None), ("minimum_timeout", None), ("initial_window", None),
        ("counter_follows_acks", None), ("elapsed_time", None), ("loss_intervals_option", None),
        ("ask_loss_event_rate", None), ("token_bucket", None),
    ):  # fmt: skip
        rate.must(key, wanted, "its TFRC has no setting for it")
    agents = Agents("TFRC", "TFRCSink", [unit], packet_bytes=unit + 32, greedy=True, acks=0.1)
    agents.here = [
        ("packetSize_", str(unit), flow.part.at("source"), None),
        *_knobs(rate, {"rtt_weight": ("df_", float)}),
    ]
    agents.there = _knobs(
        rate,
        {"feedback_per_rtt": ("NumFeedback_", float), "history_discounting": ("discount_", int)},
    )
    agents.here.append(flow.set("ecn_", int(bool(ecn := knobs.take("ecn"))), "ecn", bool(ecn)))
    return agents
