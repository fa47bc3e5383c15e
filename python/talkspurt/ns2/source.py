"""Sources: when units of data are handed to an agent, and their lengths there.

A unit is complete and sent at the end of its interval, as here; ns-2's own generators send at the
beginning, so they are started one interval later. Noise and silences are drawn by a few lines of
Tcl that mirror our code, from different random numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from talkspurt import _core
from talkspurt.ns2.reading import Part
from talkspurt.ns2.tcl import Tcl, number
from talkspurt.scenarios import units

RTP_BYTES = 12
EXPONENTIAL = {"kind": "exponential"}
SPREAD = "this script draws exponential lengths only"


@dataclass(frozen=True)
class Source:
    """Parameters of a source that agents and estimates need.

    Attributes:
        payload_bytes: per unit; 0 for bulk without a fixed size.
        rtp_bytes: RTP header before each unit.
        first_s: from the start to the end of the first unit.
        noise_s: upper bound of the noise.
        units: maximum number, after which a recording has ended.
        pauses_s: mean durations of talk and silence.
        total_bytes: for bulk, if limited.
    """

    part: Part
    kind: str
    payload_bytes: int
    rtp_bytes: int = 0
    interval_s: float = 0.0
    first_s: float = 0.0
    noise_s: float = 0.0
    units: int | None = None
    pauses_s: tuple[float, float] | None = None
    total_bytes: int | None = None


def read(part: Part, speech: dict[str, Any] | None) -> Source:
    """A source of the resolved scenario; ``speech`` is the topology's entry for its packets."""
    kind = part.take("kind")
    if kind == "bulk":
        packet, total = part.take("packet"), part.take("total")
        length, whole = (units.size(one) if one else None for one in (packet, total))
        return Source(part, kind, length or 0, total_bytes=whole)
    if kind not in ("cbr", "on_off", "speech"):
        part.refuse("kind", f"it has no source like {kind}")
        part.ignore(*part.names())
        return Source(part, kind, 1, interval_s=1.0)
    noise = units.seconds(part.take("noise"))
    if speech is None:
        size, rate = units.size(part.take("packet")), units.bits(part.take("rate"))
        # Integer nanoseconds, rounded up, as here.
        interval = -(-size * 8 * 1_000_000_000 // rate) / 1e9
        pauses = None
        if kind == "on_off":
            part.must("spread", EXPONENTIAL, SPREAD)
            pauses = (units.seconds(part.take("on")), units.seconds(part.take("off")))
        return Source(
            part, kind, size, interval_s=interval, first_s=interval, noise_s=noise, pauses_s=pauses
        )
    return _speech(part, speech, noise)


def _opus(part: Part) -> None:
    varies = part.peek("codec") == "opus" and part.peek("file") is not None
    opus = part.take("opus") or {}
    if varies and opus.get("dtx"):
        part.refuse("opus.dtx", "its sources do not hear a recording", "false")
    elif varies and opus.get("rate_control", "cbr") != "cbr":
        part.refuse("opus.rate_control", "its packets have one size", "cbr")


def _speech(part: Part, speech: dict[str, Any], noise: float) -> Source:
    _opus(part)
    part.ignore("codec", "packet")
    for key, why, instead in (
        ("ladder", "its sources keep one encoding", "[]"),
        ("keep_alive", "its sources are silent in silences", None),
        ("flexfec", "its sources send no repair packets", None),
        ("vad", "its sources do not hear a recording", None),
    ):
        if part.take(key):
            part.refuse(key, why, instead)
    talk = part.take("talkspurts")
    if talk and talk.get("spread", EXPONENTIAL) != EXPONENTIAL:
        part.refuse("talkspurts.spread", SPREAD)
    pauses = (units.seconds(talk["on"]), units.seconds(talk["off"])) if talk else None
    file, repeat = part.take("file"), part.take("repeat")
    interval, lead = speech["interval_s"], units.seconds(part.take("lead"))
    count = None
    if file is not None and not repeat:
        count = math.ceil(_core.recording_seconds(file) / interval)
        part.findings.note(f"{part.at('file')}: the recording's last packet is a whole one in ns-2")
    return Source(
        part, "speech", speech["bytes"], RTP_BYTES, interval,
        lead + interval + speech["look_ahead_s"], noise, count, pauses,
    )  # fmt: skip


def write(tcl: Tcl, source: Source, name: str, agent: str, unit: int, stop: float) -> None:
    """An application that hands an agent units of ``unit`` bytes, from ``$t(name)`` on."""
    part, app = source.part, f"$s({name})"
    opening = f"$t({name.removesuffix('.reverse')})"
    if source.kind == "bulk":
        tcl.add(f"set s({name}) [new Application/FTP]", part.at("kind"), "bulk")
        tcl.say(f"{app} attach-agent {agent}")
        start = "start"
        if source.total_bytes is not None:
            start = f"produce {math.ceil(source.total_bytes / unit)}"
            tcl.add(f"# {start}: packets", part.at("total"), source.total_bytes)
        tcl.say(f'$ns at {opening} "{app} {start}"')
        tcl.say(f'$ns at {number(stop)} "{app} stop"')
        return
    first, interval = number(source.first_s), number(source.interval_s)
    count = f"int(({number(stop)} - {opening} - {first}) / {interval} + 1 + 1e-9)"
    if source.units is not None:
        count = f"min({source.units}, {count})"
    if source.noise_s == 0 and source.pauses_s is None:
        tcl.add(f"set s({name}) [new Application/Traffic/CBR]", part.at("kind"), source.kind)
        tcl.say(f"{app} attach-agent {agent}")
        tcl.add(f"{app} set packetSize_ {unit}", words=f"payload {source.payload_bytes}")
        rate = number(unit * 8 / source.interval_s)
        tcl.add(f"{app} set rate_ {rate}", words=f"one each {interval} s")
        tcl.add(f"{app} set maxpkts_ [expr {{{count}}}]", words="complete by the stop")
        tcl.add(
            f'$ns at [expr {{{opening} + {first}}}] "{app} start"',
            words="when the first unit is complete",
        )
        return
    part.findings.note(f"{part.path}: noise and silences are random in ns-2; compare several seeds")
    tcl.add(f"set s({name}) [new Application]", part.at("kind"), source.kind)
    tcl.say(f"{app} attach-agent {agent}")
    talk, silence = source.pauses_s or (0, 0)
    tcl.add(
        f"clock {{{name}}} {unit} {opening} {first} {interval} {number(source.noise_s)} "
        f"{number(talk)} {number(silence)} [expr {{{count}}}]",
        part.at("noise"), words="noise, talk and silence in seconds",
    )  # fmt: skip


CLOCK = """\
# A source with a clock: a unit of so many bytes each interval, the first complete so long after the
# opening, each up to `noise` late, in order; none for an interval that begins in a silence.
proc clock {name bytes open first interval noise talk silence units} {
    upvar #0 u_$name u
    foreach word {bytes interval noise talk silence units} { set u($word) [set $word] }
    set u(begin) [expr {$open + $first - $interval}]
    set u(until) [expr {$talk > 0 ? $u(begin) + [exponential $talk] : 1e99}]
    set u(slot) 0
    set u(due) 0
    plan $name
}
proc exponential {mean} {
    global rng
    return [expr {[$rng exponential] * $mean}]
}
proc plan {name} {
    global ns rng
    upvar #0 u_$name u
    while {$u(begin) + $u(slot) * $u(interval) >= $u(until) && $u(slot) < $u(units)} {
        set resume [expr {$u(until) + [exponential $u(silence)]}]
        set u(until) [expr {$resume + [exponential $u(talk)]}]
        set slot [expr {int(ceil(($resume - $u(begin)) / $u(interval)))}]
        if {$slot > $u(slot)} { set u(slot) $slot }
    }
    if {$u(slot) >= $u(units)} { return }
    set due [expr {$u(begin) + ($u(slot) + 1) * $u(interval) + [$rng uniform 0 $u(noise)]}]
    if {$due > $u(due)} { set u(due) $due }
    $ns at $u(due) [list leave $name]
}
proc leave {name} {
    global s
    upvar #0 u_$name u
    $s($name) send $u(bytes)
    incr u(slot)
    plan $name
}"""
