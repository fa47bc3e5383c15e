"""The columns of the table ``flows``: what each number of a flow is."""

from __future__ import annotations

from talkspurt.metrics.catalogue.kinds import Better, Column


def _seconds(name: str, label: str, meaning: str, formula: str, source: str) -> Column:
    return Column(name, "flows", label, "s", "ms", 1e3, 1, meaning, formula, source, "lower")


def _packets(
    name: str, label: str, meaning: str, formula: str, better: Better = "neither"
) -> Column:
    own = "talkspurt's own count"
    return Column(name, "flows", label, "packets", "", 1, 0, meaning, formula, own, better)


def _frames(
    name: str, label: str, meaning: str, formula: str, better: Better = "neither"
) -> Column:
    own = "talkspurt's own count"
    return Column(name, "flows", label, "frames", "", 1, 0, meaning, formula, own, better)


def _bytes(name: str, label: str, meaning: str, formula: str) -> Column:
    own = "talkspurt's own count, of packets with payload"
    return Column(name, "flows", label, "bytes", "B", 1, 0, meaning, formula, own)


def _points(name: str, label: str, meaning: str, formula: str) -> Column:
    source = "ITU-T G.107 §7; shares after Shapley (1953), so that they add up"
    return Column(name, "flows", label, "MOS", "", 1, 2, meaning, formula, source, "lower")


FLOWS: tuple[Column, ...] = (
    _packets(
        "generated_packets",
        "generated",
        "Units of data the source made in the window: frames of speech, packets of a constant or "
        "on/off source, segments' worth of bulk data.",
        "generated = queued + handed to the transport + discarded by the send queue",
    ),
    _packets(
        "queued_packets",
        "still queued",
        "Units that waited for the transport when the run ended.",
        "counted at the end of the run",
    ),
    _packets(
        "discarded_packets",
        "discarded",
        "Units the full send queue threw away because the transport had no room.",
        "counted when dropped",
        "lower",
    ),
    _packets(
        "sent_packets",
        "sent",
        "IP packets with payload that left the sender; with TCP, retransmissions count again.",
        "sent = received + lost + in flight",
    ),
    _packets(
        "received_packets",
        "received",
        "IP packets with payload that reached the other end.",
        "counted on arrival",
    ),
    _packets(
        "lost_packets",
        "lost",
        "IP packets with payload that the network dropped: full queues, the medium, outages, or "
        "being longer than a link takes.",
        "lost = sent − received − in flight",
        "lower",
    ),
    _packets(
        "in_flight_packets",
        "in flight",
        "IP packets with payload still on their way when the run ended.",
        "counted at the end of the run",
    ),
    _packets(
        "control_packets",
        "control",
        "Packets without payload: connection set-up, pure acknowledgements, RTCP reports.",
        "counted apart from sent packets",
    ),
    _packets(
        "rejected_packets",
        "rejected",
        "Packets that reached the other end and that it refused: a wrong checksum, numbers outside "
        "its windows, a wrong tag, or nothing it expects. TCP refuses what it has already. Those "
        "of a side without a source count with the side that has one.",
        "counted by the receiving end, by the time they came",
        "lower",
    ),
    _packets(
        "damaged_packets",
        "damaged",
        "Of the rejected packets, those with a wrong checksum: damaged on the way.",
        "counted by the receiving end, by the time they came",
        "lower",
    ),
    _bytes(
        "sent_bytes",
        "bytes sent",
        "Bytes of the IP packets with payload that left the sender, headers included.",
        "payload + media headers + transport headers + network headers",
    ),
    _bytes(
        "received_bytes",
        "bytes received",
        "Bytes of the IP packets with payload, of those sent in the window, that reached the other "
        "end, headers included.",
        "Σ IP length of received packets",
    ),
    _bytes(
        "payload_bytes",
        "payload",
        "Data that was sent, each time it was sent: speech, and with TCP its framing and "
        "retransmissions.",
        "bytes of transport payload − media headers",
    ),
    _bytes(
        "media_header_bytes",
        "media headers",
        "Headers of RTP around the speech and, in a byte stream, the length before each packet "
        "(RFC 4571). What TCP sends again counts as payload.",
        "12 bytes a frame over UDP, 14 in a stream",
    ),
    _bytes(
        "transport_header_bytes",
        "transport headers",
        "Headers of UDP or TCP, options included.",
        "UDP: 8 bytes a packet; TCP: 20 bytes and its options",
    ),
    _bytes(
        "network_header_bytes",
        "network headers",
        "Headers of IP. Those of the links below are not counted.",
        "IPv4: 20 bytes a packet; IPv6: 40 bytes",
    ),
    Column(
        "goodput_bps",
        "flows",
        "goodput",
        "bit/s",
        "kbit/s",
        1e-3,
        1,
        "Data handed to the receiving application, each byte once: headers and retransmissions "
        "do not count.",
        "8 × payload bytes delivered in the window ÷ length of the window",
        "RFC 2647 §3.17",
        "higher",
    ),
    Column(
        "throughput_bps",
        "flows",
        "throughput",
        "bit/s",
        "kbit/s",
        1e-3,
        1,
        "IP bytes that arrived, headers and retransmissions included.",
        "8 × IP bytes received in the window ÷ length of the window",
        "RFC 5136 §2.3",
    ),
    _seconds(
        "delay_min_s",
        "delay, least",
        "The fastest data packet.",
        "minimum of arrival − departure",
        "RFC 7679 §5.3",
    ),
    _seconds(
        "delay_mean_s",
        "delay, mean",
        "One-way network delay of data packets: from leaving the sender to arrival. Waiting in "
        "the sender's own queue is not in it.",
        "mean of arrival − departure",
        "RFC 7679",
    ),
    _seconds(
        "delay_p50_s",
        "delay, median",
        "Half the data packets crossed the network faster than this, from leaving the sender to "
        "arrival. Waiting in the sender's own queue is not in it.",
        "50th percentile of arrival − departure",
        "RFC 7679 §5.1",
    ),
    _seconds(
        "delay_p95_s",
        "delay, 95 %",
        "Nineteen of twenty data packets crossed the network faster than this.",
        "95th percentile of arrival − departure",
        "RFC 7679 §5.1",
    ),
    _seconds(
        "delay_p99_s",
        "delay, 99 %",
        "Ninety-nine of a hundred data packets crossed the network faster than this.",
        "99th percentile of arrival − departure",
        "RFC 7679 §5.1",
    ),
    _seconds(
        "delay_max_s",
        "delay, longest",
        "The slowest data packet that arrived.",
        "maximum of arrival − departure",
        "RFC 7679",
    ),
    _seconds(
        "handshake_wait_s",
        "waited for handshake",
        "How long the first frame of speech was ready and waited for the transport's handshake. A "
        "receiver that counts playout from the first arrival plays the whole call that much later.",
        "opening of the connection − first frame ready, at least 0; none without a handshake",
        "talkspurt's own count",
    ),
    _seconds(
        "jitter_s",
        "jitter",
        "How unevenly packets arrive: the smoothed difference between the spacing of arrivals "
        "and the spacing of departures.",
        "J ← J + (|D| − J) / 16, averaged over the window",
        "RFC 3550 §6.4.1 and A.8",
    ),
    _packets(
        "held_back_packets",
        "held back",
        "Messages that had arrived and could not be delivered yet: an earlier one of their stream "
        "was missing. Only SCTP tells.",
        "messages delivered that had waited for an earlier one of their stream (RFC 9260 §6.6)",
        "lower",
    ),
    _seconds(
        "head_of_line_mean_s",
        "head-of-line wait",
        "How long a message waited at the receiver for earlier ones of its stream. On a stream of "
        "its own a flow waits for its own losses alone, out of order for none. Only SCTP tells.",
        "mean over all messages delivered of (delivery − arrival of its last part), RTCP apart",
        "RFC 9260 §6.6",
    ),
    _seconds(
        "head_of_line_max_s",
        "head-of-line wait, longest",
        "The message that waited longest at the receiver for earlier ones of its stream.",
        "maximum of (delivery − arrival of its last part), RTCP apart",
        "RFC 9260 §6.6",
    ),
    _seconds(
        "mouth_to_ear_p50_s",
        "mouth to ear",
        "What the speakers notice: from a sound's capture to its playing at the far end. "
        "Packetisation, send queue, handshake, network, and the jitter buffer are all in it, and "
        "the 3.75 ms by which concealment after G.711 Appendix I holds speech back, where it runs.",
        "median of (playout of a frame's first sample − its capture)",
        "ITU-T G.114 §1",
    ),
    _seconds(
        "mouth_to_ear_max_s",
        "mouth to ear, longest",
        "The longest time from a sound's capture to its playing.",
        "maximum of (playout of a frame's first sample − its capture)",
        "ITU-T G.114 §1",
    ),
    _packets(
        "late_packets",
        "late",
        "Voice frames that arrived after the moment they should have been played, and are thus "
        "as good as lost.",
        "delivered after their playout instant",
        "lower",
    ),
    _packets(
        "missing_packets",
        "missing",
        "Voice frames never delivered: lost, discarded, or still waiting or on their way when they "
        "should have been played. Those whose turn would have come after the end of the run are "
        "not judged.",
        "judged frames − delivered frames",
        "lower",
    ),
    Column(
        "loss_ratio",
        "flows",
        "lost or late",
        "1",
        "%",
        100,
        2,
        "Share of voice frames the listener did not hear, for whatever reason.",
        "(missing + late) ÷ judged frames",
        "ITU-T G.107 §7.4 (Ppl); loss and discard as in RFC 3611 §4.7.1",
        "lower",
        most=1.0,
    ),
    Column(
        "burst_ratio",
        "flows",
        "burst ratio",
        "1",
        "",
        1,
        2,
        "Whether losses come in runs: 1 when they fall at random, more when they cluster.",
        "mean length of a run of losses × (1 − loss ratio)",
        "ITU-T G.107 §7.4 (BurstR)",
        "lower",
    ),
    Column(
        "longest_gap_s",
        "flows",
        "longest gap",
        "s",
        "s",
        1,
        2,
        "The longest period of speech of which the listener heard nothing. The speaker's own "
        "pauses are not counted.",
        "sum of the lengths of consecutive frames missing or late, of the longest such run",
        "talkspurt's own measure",
        "lower",
    ),
    _frames(
        "video_frames",
        "frames",
        "Frames of video (of a replay: packets with one timestamp) captured in the window. Those "
        "that were not complete and whose deadline would have come after the end of the run are "
        "not counted.",
        "runs of packets made at one instant of capture",
    ),
    _frames(
        "video_frames_complete",
        "complete",
        "Frames of which every packet was delivered, late or not.",
        "frames with as many packets delivered as made",
        "higher",
    ),
    _frames(
        "video_frames_late",
        "late",
        "Complete frames whose last packet came after the deadline.",
        "delivery of the last packet − capture > deadline",
        "lower",
    ),
    _seconds(
        "frame_delay_p50_s",
        "frame delay, median",
        "From a frame's capture to the delivery of its last packet: send queue, the time its "
        "packets take one after another, network and what the transport does about losses.",
        "median over the complete frames",
        "talkspurt's own measure",
    ),
    _seconds(
        "frame_delay_p95_s",
        "frame delay, 95 %",
        "Nineteen of twenty complete frames took no longer than this.",
        "95th percentile over the complete frames",
        "talkspurt's own measure",
    ),
    _seconds(
        "frame_delay_max_s",
        "frame delay, longest",
        "The slowest frame that was completed.",
        "maximum over the complete frames",
        "talkspurt's own measure",
    ),
    Column(
        "r_factor",
        "flows",
        "R",
        "1",
        "",
        1,
        1,
        "The E-model's rating of the call, 0 to 100, from delay, loss and codec. 93.2 is a call "
        "with nothing wrong, and 0 is as bad as it gets, however little was heard. It is a "
        "planning estimate, not a listening test.",
        "R = Ro − Is − Id − Ie,eff + A, kept within 0 … 100",
        "ITU-T G.107 §7.1",
        "higher",
        most=100.0,
    ),
    Column(
        "mos",
        "flows",
        "MOS",
        "MOS",
        "",
        1,
        2,
        "The mean opinion the E-model expects of a conversation, 1 (bad) to 4.5 (as good as "
        "telephone speech gets).",
        "MOS = 1 + 0.035 R + R (R − 60)(100 − R) · 7·10⁻⁶",
        "ITU-T G.107 Annex B",
        "higher",
        least=1.0,
        most=4.5,
    ),
    _points(
        "mos_lost_to_delay",
        "lost to delay",
        "Points of MOS that the mouth-to-ear delay cost.",
        "MOS gained by taking delay and echo away, averaged over the orders of taking causes away",
    ),
    _points(
        "mos_lost_to_loss",
        "lost to loss",
        "Points of MOS that lost and late frames cost.",
        "MOS gained by taking loss away, averaged over the orders of taking causes away",
    ),
    _points(
        "mos_lost_to_codec",
        "lost to codec",
        "Points of MOS that the codec itself cost; G.711 is the reference and costs none.",
        "MOS gained by Ie = 0, averaged over the orders of taking causes away",
    ),
)
