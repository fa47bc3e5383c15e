"""The columns of the table ``links``: what each number of a link and direction is."""

from __future__ import annotations

from talkspurt.metrics.catalogue.kinds import Column


def _link(
    name: str, label: str, unit: str, scale: float, digits: int, meaning: str, formula: str
) -> Column:
    shown = {"1": "%", "packets": "", "bytes": "", "bit/s": "kbit/s", "s": "ms"}[unit]
    own = "talkspurt's own count"
    return Column(name, "links", label, unit, shown, scale, digits, meaning, formula, own)


LINKS: tuple[Column, ...] = (
    _link(
        "rate_bps",
        "rate",
        "bit/s",
        1e-3,
        0,
        "What the link transmits; where it changes, what it begins with.",
        "as the scenario says",
    ),
    _link(
        "utilisation",
        "utilisation",
        "1",
        100,
        1,
        "Share of the window in which the transmitter was sending.",
        "time busy ÷ length of the window",
    ),
    _link(
        "sent_packets",
        "packets",
        "packets",
        1,
        0,
        "Packets of all flows whose transmission began, control packets among them.",
        "counted when a packet leaves the queue",
    ),
    _link(
        "sent_bytes",
        "bytes",
        "bytes",
        1,
        0,
        "Their IP bytes. What framing adds is not counted.",
        "Σ IP length of packets that left the queue",
    ),
    _link(
        "drops",
        "dropped",
        "packets",
        1,
        0,
        "Packets of all flows that ended here: full queue, medium, outage, or too long.",
        "full + early + medium + down + too big + retries",
    ),
    *(
        _link(f"drops_{why}", f"dropped, {label}", "packets", 1, 0, meaning, "counted when dropped")
        for why, label, meaning in (
            ("full", "full", "Packets that came to a full queue."),
            ("early", "early", "Packets that a queue's discipline dropped before it was full."),
            ("medium", "medium", "Packets that the medium lost: at random, in bursts, by bits."),
            ("down", "down", "Packets that met a link which was down."),
            ("too_big", "too big", "Packets longer than the link takes."),
            ("retries", "retries", "Packets sent on the air as often as may be, in vain."),
        )
    ),
    _link(
        "marks",
        "marked",
        "packets",
        1,
        0,
        "Packets that a queue marked with Congestion Experienced instead of dropping them.",
        "counted by the link (RFC 3168 §5)",
    ),
    _link(
        "retries",
        "retries",
        "packets",
        1,
        0,
        "Transmissions on the air that repeated one which was not acknowledged.",
        "counted by the transmitter of a cell",
    ),
    _link(
        "collisions",
        "collisions",
        "packets",
        1,
        0,
        "Transmissions on the air that met another's.",
        "counted by the transmitter of a cell",
    ),
    _link(
        "queue_mean_packets",
        "queue, mean",
        "packets",
        1,
        1,
        "Packets waiting for the transmitter, averaged over time, without the one being sent.",
        "∫ queue dt ÷ length of the window",
    ),
    _link(
        "queue_max_packets",
        "queue, longest",
        "packets",
        1,
        0,
        "The longest queue seen.",
        "maximum over the window",
    ),
    _link(
        "queue_mean_bytes",
        "queue, mean bytes",
        "bytes",
        1,
        0,
        "IP bytes waiting for the transmitter, averaged over time.",
        "∫ bytes waiting dt ÷ length of the window",
    ),
    _link(
        "sojourn_mean_s",
        "wait, mean",
        "s",
        1e3,
        1,
        "How long packets stood in the queue (RFC 8289: sojourn time), those that left it. Kept "
        "when `record.sojourn` asks for it.",
        "mean of (transmission begins − packet comes)",
    ),
    _link(
        "sojourn_p50_s",
        "wait, p50",
        "s",
        1e3,
        1,
        "Half the packets stood in the queue for less.",
        "nearest-rank quantile over packets",
    ),
    _link(
        "sojourn_p95_s",
        "wait, p95",
        "s",
        1e3,
        1,
        "95 % of the packets stood in the queue for less.",
        "nearest-rank quantile over packets",
    ),
    _link(
        "sojourn_p99_s",
        "wait, p99",
        "s",
        1e3,
        1,
        "99 % of the packets stood in the queue for less.",
        "nearest-rank quantile over packets",
    ),
    _link(
        "sojourn_max_s",
        "wait, longest",
        "s",
        1e3,
        1,
        "The longest that a packet stood in the queue.",
        "maximum over packets",
    ),
)
