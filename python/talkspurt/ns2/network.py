"""Nodes, links with their queues, and routes in ns-2.

ns-2 has one link between two nodes, so links are identified by their ends. A ``DropTail`` of N
holds N − 1 packets besides the one in transmission; medium losses come from an error model after
the transmitter and the propagation, as here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from talkspurt.ns2.reading import Findings, Part
from talkspurt.ns2.tcl import Tcl, number
from talkspurt.scenarios import units
from talkspurt.scenarios.resolved import plain
from talkspurt.scenarios.source import toml_value

MEDIUM = {
    "jitter": ("0ns", "its links delay every packet alike"),
    "framing": ("none", "packets have one length on all links"),
    "bit_error_rate": (0.0, "packets are lost whatever their length; loss is a probability"),
    "duplicate": (0.0, "no packet arrives twice"),
    "reorder": (False, "links keep order"),
}


@dataclass(frozen=True)
class Wire:
    """One direction of a link: our name, ns-2's node numbers."""

    name: str
    ends: tuple[int, int]
    rate_bps: int
    mtu_bytes: int


def write_nodes(tcl: Tcl, names: list[str]) -> None:
    """The nodes, numbered in this order."""
    tcl.say("", "# Nodes: all that links and flows name")
    tcl.say(*(f"set n({name}) [$ns node]" for name in names))


def write_links(tcl: Tcl, links: Part, names: list[str], findings: Findings) -> list[Wire]:
    """Both directions of all links."""
    wires: list[Wire] = []
    known: dict[tuple[int, int], str] = {}
    for name in links.names():
        link = links.part(name)
        ends = (names.index(link.take("from")), names.index(link.take("to")))
        if other := known.get(ends) or known.get(ends[::-1]):
            findings.refuse(link.path, f"{other} joins the same nodes, and there is one link there")
        known[ends] = link.path
        _refuse_changes(link)
        forward = {key: link.take(key) for key in ("rate", "delay", "queue", "loss", *MEDIUM)}
        mtu = units.size(link.take("mtu"))
        back = link.part("back")
        tcl.say("", f"# {link.path}")
        wires.append(_direction(tcl, Part(forward, link.path, findings), {}, ends, names, mtu))
        for key in ("gilbert_elliott", "steps", "trace"):
            if back.take(key):
                back.refuse(key, "see the forward direction")
        own = Part({key: back.take(key) for key in forward}, back.path, findings)
        wires.append(_direction(tcl, own, forward, ends[::-1], names, mtu))
    return wires


def _refuse_changes(link: Part) -> None:
    two_states = "its two-state errors count time or packets, but not by these four"
    for key, why, instead in (
        ("gilbert_elliott", two_states, None),
        ("steps", "a packet in transmission would go on at the old rate", "[]"),
        ("trace", "rates do not come from files", None),
        ("events", "its outages come with routing of their own", "[]"),
    ):
        if link.take(key):
            link.refuse(key, why, instead)


def _direction(
    tcl: Tcl,
    said: Part,
    forward: dict[str, Any],
    ends: tuple[int, int],
    names: list[str],
    mtu: int,
) -> Wire:
    """One direction; absent keys are as forward."""
    there = said.path.removesuffix(".back")

    def value(key: str) -> tuple[Any, str]:
        own = said.take(key)
        return (own, said.at(key)) if own is not None else (forward.get(key), f"{there}.{key}")

    for key, (nothing, why) in MEDIUM.items():
        found, path = value(key)
        if plain(found) != nothing:
            said.findings.refuse(path, why, str(nothing).replace("False", "false"))
    (rate, rate_path), (delay, delay_path) = value("rate"), value("delay")
    (queue, queue_path), (loss, loss_path) = value("queue"), value("loss")
    bits, seconds = units.bits(rate), units.seconds(delay)
    nodes = " ".join(f"$n({names[end]})" for end in ends)
    kind, limit, place = _queue(tcl, Part(queue, queue_path, said.findings), bits)
    tcl.add(
        f"$ns simplex-link {nodes} {bits} {number(seconds)} {kind}",
        rate_path, rate, words=f"{delay_path.rsplit('.', 1)[-1]} = {toml_value(delay)}",
    )  # fmt: skip
    tcl.add(f"$ns queue-limit {nodes} {limit}", *place)
    if loss:
        tcl.add(f"lossy {nodes} {number(loss)}", loss_path, loss)
    name = there.removeprefix("links.") + (".back" if said.path.endswith(".back") else "")
    return Wire(name, ends, bits, mtu)


def _queue(tcl: Tcl, queue: Part, bits: int) -> tuple[str, int, tuple[str, Any, str]]:
    """The settings of a queue; its kind, its limit in ns-2, and the origin of the limit."""
    kind = queue.take("kind")
    if kind == "red":
        limit = _red(tcl, queue)
        queue.rest()
        return "RED", limit, (queue.at("packets"), limit, "")
    if kind != "droptail":
        queue.refuse("kind", f"there is no queue like {kind} in ns-2.35")
        return "DropTail", 1, ("", None, "")
    exactly = bool(queue.take("ns2"))
    # The rate of a link that ns-2 can have does not change.
    queue.take("follow_rate")
    packets, size, time = (queue.take(key) for key in ("packets", "bytes", "time"))
    queue.rest()
    if sum(value is not None for value in (packets, size, time)) > 1:
        queue.findings.refuse(queue.path, "a queue has one limit, in packets or in bytes")
    tcl.say(f"Queue/DropTail set queue_in_bytes_ {str(packets is None).lower()}")
    if packets is not None:
        words = "as ns-2 counts: N - 1 wait" if exactly else "ns-2 lets one fewer wait than it says"
        limit = packets if exactly else packets + 1
        return "DropTail", limit, (queue.at("packets"), packets, words)
    # With a mean packet of one byte the limit is in bytes, and one byte fewer fits.
    tcl.say("Queue/DropTail set mean_pktsize_ 1")
    if size is not None:
        return "DropTail", units.size(size) + 1, (queue.at("bytes"), size, "one byte fewer fits")
    held = int(bits * units.seconds(time) / 8)
    return "DropTail", held + 1, (queue.at("time"), time, "in bytes, of which one fewer fits")


RED: tuple[tuple[str, str, float, Callable[[Any], float]], ...] = (
    ("thresh_", "min_threshold", 0, float),
    ("maxthresh_", "max_threshold", 0, float),
    ("linterm_", "max_p", 10, lambda p: 1 / p),
    ("q_weight_", "weight", 0, float),
    ("targetdelay_", "target_delay", 0.005, units.seconds),
    ("mean_pktsize_", "mean_packet", 500, units.size),
)
"""ns-2's variables, our keys, ns-2's value if the key is absent, and the conversion."""


def _red(tcl: Tcl, queue: Part) -> int:
    if not queue.take("ns2"):
        queue.refuse("ns2", "its RED spreads drops otherwise (wait_)", "true")
    in_bytes = queue.take("mode") == "bytes"
    queue.take("follow_rate")
    for there, here, otherwise, turned in RED:
        value = queue.take(here)
        shown = otherwise if value is None else turned(value)
        tcl.add(
            f"Queue/RED set {there} {number(shown)}",
            queue.at(here), value, words="ns-2 computes it" if value is None else "",
        )  # fmt: skip
    for there, here in (("gentle_", "gentle"), ("setbit_", "ecn")):
        value = bool(queue.take(here))
        tcl.add(f"Queue/RED set {there} {str(value).lower()}", queue.at(here), value)
    adaptive = bool(queue.take("adaptive"))
    tcl.add(f"Queue/RED set adaptive_ {int(adaptive)}", queue.at("adaptive"), adaptive)
    mean = "Queue/RED set idle_pktsize_ [Queue/RED set mean_pktsize_]"
    tcl.add(mean, words="an idle queue's average decays in steps of a mean packet")
    for there in ("bytes_", "queue_in_bytes_"):
        shown_mode = "bytes" if in_bytes else "packets"
        tcl.add(f"Queue/RED set {there} {str(in_bytes).lower()}", queue.at("mode"), shown_mode)
    return int(queue.take("packets"))


def write_routes(tcl: Tcl, flows: list[dict[str, Any]], findings: Findings) -> None:
    """The routes in use, per node by destination."""
    tcl.say("", "# Routes: those that the flows take here, and no others")
    hops: dict[tuple[str, str], tuple[str, str]] = {}
    for flow in flows:
        for route in (flow["routes"][0], flow["back"][0]):
            for at, onward in itertools.pairwise(route):
                next_hop, first = hops.setdefault((at, route[-1]), (onward, flow["name"]))
                if next_hop != onward:
                    findings.refuse(
                        f"flows.{flow['name']}.via",
                        f"at {at} it leaves for {onward}, but flows.{first} for {next_hop}: routes "
                        f"there go by the destination, {route[-1]}",
                    )
    for (at, to), (onward, _) in hops.items():
        tcl.say(f"$n({at}) add-route [$n({to}) id] [[$ns link $n({at}) $n({onward})] head]")


LOSSY = """\
# Losses on the medium: behind the transmitter and the propagation, and in the trace.
proc lossy {from to probability} {
    global ns rng trace
    set link [$ns link $from $to]
    set errors [new ErrorModel]
    $errors unit pkt
    $errors set rate_ $probability
    set draw [new RandomVariable/Uniform]
    $draw use-rng $rng
    $errors ranvar $draw
    set lost [$ns create-trace Drop $trace $from $to]
    $lost target [new Agent/Null]
    $errors drop-target $lost
    $errors target [[$link link] target]
    [$link link] target $errors
}"""
