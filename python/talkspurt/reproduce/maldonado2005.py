"""Maldonado, Baset, Schulzrinne 2005: TFRC with a token bucket over a ladder of codecs.

The text omits RED's parameters, the bucket's depth and the rule for stepping up, and its load of 50
to 100 sources is two to four times the link's capacity: here 16 and 20 are run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import polars as pl

from talkspurt.reproduce import hops
from talkspurt.reproduce import ns2 as peer
from talkspurt.reproduce.lab import part
from talkspurt.reproduce.network import Table, flow, link
from talkspurt.reproduce.renker2008 import equation_bps
from talkspurt.reproduce.rows import Values
from talkspurt.reproduce.sample import Sample

if TYPE_CHECKING:
    from talkspurt.reproduce.lab import Lab, Run
    from talkspurt.reproduce.ns2 import Script
    from talkspurt.reproduce.sample import Value

LINK_BPS = 1.5e6
LADDER = ["pcmu", "g726-32", "g728", "g729-10", "g723.1-6.3"]
CODECS = {
    "g711": "pcmu",
    "g726": "g726-32",
    "g728": "g728",
    "g729": "g729-10",
    "g723": "g723.1-6.3",
}
BUCKET: Table = {"kind": "tfrc", "rate": {"token_bucket": {}}}
RED: Table = {"kind": "red", "packets": 50, "mode": "bytes", "mean_packet": "500B", "ns2": True}
TCP: Table = {
    "kind": "tcp",
    "controller": "sack",
    "mss": "1000B",
    "initial_window": 2,
    "receive_buffer": "100kB",
    "timestamps": False,
    "delayed_ack": False,
    "min_rto": "200ms",
    "f_rto": False,
}
MIXES = (1, 2, 4, 8, 16, 32, 64)
MIX_S, MIX_FROM_S = 120, 30
WEB_S, WEB_FROM_S = 2500, 50
WEB_SOURCES, TALK_SOURCES = 16, 20
STATED_WEB_SOURCES, STATED_TALK_SOURCES = 50, 25
STATED_WEB_S = 500
TALK_S = 600
SLOW = f"mix-tfrc-{MIXES[-1]}-rto-1s"
"""With the minimum RTO of RFC 6298; no verdict depends on it."""
SPEEDS = ("slow", "fast")
"""Without faster restart, and with it."""
FLOWS = (10, 20, 30, 40)
"""Beritelli's."""
HEAVY_TAIL: Table = {"spread": {"kind": "pareto", "shape": 1.5}}
TEN_SECONDS: Table = {"on": "10s", "off": "10s", "spread": {"kind": "constant"}}
SPOKEN_BPS = 80e3
"""G.711 in packets of 20 ms with 40 bytes of headers."""


SENT = {"series": part("flow", "sent_bytes", "generated_packets", flow="call")}
OTHERS = {"series": part("flow", "sent_bytes")}
SHOWN = {"series": part("flow", "sent_bytes", "received_bytes")}


def cases(lab: Lab) -> None:
    """The scenarios."""
    _codecs(lab)
    for kind in ("tfrc", "tb"):
        # Long runs first, to keep cores busy to the end.
        lab.ask(f"web-{kind}-inferred", web(kind, WEB_SOURCES, f"{WEB_S}s"), "inferred", **OTHERS)
        stated = web(kind, STATED_WEB_SOURCES, f"{STATED_WEB_S}s")
        lab.ask(f"web-{kind}-stated", stated, "stated", **OTHERS)
        for number in MIXES:
            kept = SHOWN if number == 8 else {}
            lab.ask(f"mix-{kind}-{number}", mix(kind, number), "inferred", **kept)
        packets = mix(kind, MIXES[-1])
        packets["links"]["bottleneck"]["queue"] = {**RED, "mode": "packets"}
        lab.ask(f"mix-{kind}-{MIXES[-1]}-packets", packets, "inferred")
        for profile, sources in (("stated", STATED_TALK_SOURCES), ("inferred", TALK_SOURCES)):
            for speed in SPEEDS:
                scenario = talk(kind, sources, restart=speed == "fast")
                lab.ask(f"talk-{kind}-{speed}-{profile}", scenario, profile, **SENT)
    slow = mix("tfrc", MIXES[-1], {**TCP, "min_rto": "1s"})
    lab.ask(SLOW, slow, "inferred")
    for number in FLOWS:
        lab.ask(f"beritelli-{number}", beritelli(number), "inferred")
    for name, transport in (
        ("udp", {"kind": "udp"}),
        ("tfrc", {"kind": "tfrc"}),
        ("tfrc-tb", BUCKET),
        ("ccid4", {"kind": "dccp", "ccid": 4}),
    ):
        lab.ask(f"call-{name}", _call(transport), "companion")


def _codecs(lab: Lab) -> None:
    """Each codec alone on a wire; G.711 with headers in 10 ms packets; CCID 4 overloaded."""
    wire = {"wire": link(("a", "b"), "10Mbit/s", "1ms", 100)}
    for name, codecs in (("stated", CODECS), ("inferred", {**CODECS, "g729": "g729-10"})):
        flows = {k: _speech(("a", "b"), {"kind": "udp"}, codec) for k, codec in codecs.items()}
        flows["g723"]["source"]["packet"] = "30ms"
        flows["g711-10ms"] = _speech(("a", "b"), {"kind": "udp"}, "pcmu", packet="10ms")
        for call in flows.values():
            call["rtcp"] = {"enabled": False}
        captured = part("flow", "captured_s")
        lab.ask(f"codecs-{name}", _scenario("12s", wire, flows), name, frames=captured)
    narrow = {"wire": link(("a", "b"), "300kbit/s", "20ms", 20)}
    source = {"kind": "cbr", "rate": "400kbit/s", "packet": "100B"}
    call = {"from": "a", "to": "b", "transport": {"kind": "dccp", "ccid": 4}, "source": source}
    tcp = flow(("a", "b"), TCP, {"kind": "bulk"})
    crowded = _scenario("20s", narrow, {"call": call, "tcp": tcp})
    crowded["record"] = {"packets": True}
    kept = {
        "packets": part("enqueued_s", "ip_bytes", flow="call", side="from"),
        "gauges": part("flow", "gauge", "time_s", "value", flow="call"),
    }
    lab.ask("voip-variant", crowded, "stated", **kept)


def _scenario(duration: str, links: Table, flows: Table, interval: str = "1s") -> Table:
    record = {"interval": interval, "gauges": False}
    return {"duration": duration, "record": record, "links": links, "flows": flows}


def _speech(ends: tuple[str, str], transport: Table, codec: str, **source: object) -> Table:
    said = {"kind": "speech", "codec": codec, **source}
    return {"from": ends[0], "to": ends[1], "transport": transport, "source": said}


def voice(ends: tuple[str, str], kind: str, **more: object) -> Table:
    """TFRC-TB with its ladder, or plain TFRC carrying G.711."""
    ladder = {"ladder": LADDER} if kind == "tb" else {}
    return _speech(ends, BUCKET if kind == "tb" else {"kind": "tfrc"}, "pcmu", **ladder, **more)


def _dumbbell(flows: Mapping[str, Table]) -> Table:
    """Each flow has its own hosts, unless its ends specify otherwise."""
    links = {"bottleneck": link(("west", "east"), "1500kbit/s", "20ms", RED)}
    for one in flows.values():
        for end, way in (("from", "in"), ("to", "out")):
            host = one[end]
            ends = (host, "west") if way == "in" else ("east", host)
            links[f"{way}-{host[:-2]}"] = link(ends, "10Mbit/s", "1ms", 50)
    return links


def mix(kind: str, number: int, tcp: Table = TCP) -> Table:
    """Equal numbers of TCP and TFRC (greedy) or TFRC-TB flows, started over two seconds."""
    flows = {}
    for n in range(1, number + 1):
        start = f"{2000 * n // number}ms"
        ends = (f"tcp-{n}-a", f"tcp-{n}-b")
        flows[f"tcp-{n}"] = flow(ends, tcp, {"kind": "bulk"}, start=start)
        ends = (f"other-{n}-a", f"other-{n}-b")
        greedy = flow(ends, {"kind": "tfrc", "profile": "ns2"}, {"kind": "bulk", "packet": "1000B"})
        flows[f"other-{n}"] = {**(voice(ends, kind) if kind == "tb" else greedy), "start": start}
    scenario = _scenario(f"{MIX_S}s", _dumbbell(flows), flows)
    return {**scenario, "measure": {"from": f"{MIX_FROM_S}s"}}


def _background(number: int) -> Table:
    """On/off sources to a single host, since nothing queues behind the bottleneck."""
    source = {
        "kind": "on_off",
        "rate": "200kbit/s",
        "packet": "500B",
        "on": "1s",
        "off": "2s",
        **HEAVY_TAIL,
    }
    return {
        f"web-{n}": flow((f"web-{n}-a", "web-b"), {"kind": "udp"}, source)
        for n in range(1, number + 1)
    }


def web(kind: str, sources: int, duration: str) -> Table:
    """One TCP, one TFRC (greedy) or TFRC-TB, and on/off sources."""
    other = mix(kind, 1)["flows"]["other-1"]
    tcp = flow(("tcp-a", "tcp-b"), TCP, {"kind": "bulk"})
    flows = {
        "tcp": tcp,
        "other": {**other, "from": "other-a", "to": "other-b"},
        **_background(sources),
    }
    return _scenario(duration, _dumbbell(flows), flows, "200ms")


def talk(kind: str, sources: int, *, restart: bool) -> Table:
    """Ten seconds of talk, ten of silence, next to on/off sources."""
    # A packet every few round trips, with the same length: TFRC counts bytes.
    kept = {"every": "100ms", "size": "160B"}
    call = voice(("call-a", "call-b"), kind, talkspurts=TEN_SECONDS, keep_alive=kept)
    rate = {**call["transport"].get("rate", {}), "idle": "rfc3448", "faster_restart": restart}
    call["transport"] = {"kind": "tfrc", "rate": rate}
    call["send_queue"] = {"drop": "stale", "lifetime": "100ms"}
    flows = {"call": call, **_background(sources)}
    return _scenario(f"{TALK_S}s", _dumbbell(flows), flows, "200ms")


def beritelli(number: int) -> Table:
    """``number`` voice flows under the delay listener on 150 kb/s."""
    flows = {
        f"call-{n}": _speech(("a", "b"), {"kind": "beritelli"}, "pcmu", ladder=LADDER)
        for n in range(1, number + 1)
    }
    return _scenario("60s", {"wire": link(("a", "b"), "150kbit/s", "20ms", 50)}, flows)


def _call(transport: Table) -> Table:
    """A present-day call next to eight TCP uploads."""
    flows = {
        f"tcp-{n}": flow((f"tcp-{n}-a", f"tcp-{n}-b"), TCP, {"kind": "bulk"}) for n in range(8)
    }
    call = voice(("call-a", "call-b"), "tb")
    # The codecs whose loss impairment is in ITU-T G.113.
    call["source"]["ladder"] = ["pcmu", "g729a", "g723.1-6.3"]
    call["transport"] = transport
    call["send_queue"] = {"drop": "stale", "lifetime": "100ms"}
    call["playout"] = {"buffer": "100ms"}
    flows["call"] = call
    return _scenario("120s", _dumbbell(flows), flows)


def values(lab: Lab) -> Values:
    """The values of all rows."""
    stated: dict[str, Sample] = {
        "restart/with": Sample((float(round_trips(1.0, 12.0, 4.0)),)),
        "restart/without": Sample((float(round_trips(1.0, 12.0, 2.0)),)),
    }
    inferred: dict[str, Sample] = {}
    for profile, found in (("stated", stated), ("inferred", inferred)):
        found |= lab.samples([f"codecs-{profile}"], codecs)
        found |= lab.samples([f"web-{kind}-{profile}" for kind in ("tfrc", "tb")], smoothness)
        plain = [f"talk-tfrc-{speed}-{profile}" for speed in SPEEDS]
        found |= lab.samples(plain, after_silence)
        found |= lab.samples([f"talk-tb-fast-{profile}"], reduced)
    inferred |= lab.samples(
        ["codecs-inferred"], lambda run: {"restart/g711-rate": _wire_kbytes(run, "g711-10ms")}
    )
    stated |= lab.samples(["voip-variant"], _voip_variant)
    for number in MIXES:
        inferred |= lab.samples([f"mix-{k}-{number}" for k in ("tfrc", "tb")], MIXED[number])
    # The text states this for 16 sources.
    del stated["fig5/near-zero"]
    for number in FLOWS:
        for found, packet_s in ((stated, 0.1), (inferred, 0.02)):
            fit = math.floor(150e3 / (8 * 40 / packet_s))
            found[f"beritelli/{number}"] = Sample((float(fit),))
    return Values(stated, inferred, notes=_notes(lab), cases=lab.used)


def _notes(lab: Lab) -> dict[str, str]:
    """Further results of the runs."""
    whole = [f"mix-{k}-{MIXES[-1]}" for k in ("tfrc", "tb")]
    taken = lab.each(whole[1:], lambda run: {"tb": 50 * mean_share(run, "other")})["tb"]
    packets = lab.each(
        [f"{name}-packets" for name in whole],
        lambda tfrc, tb: {
            "tfrc": mean_share(tfrc, "tcp"),
            "tb": mean_share(tb, "tcp"),
            "ratio": mean_share(tb, "tcp") / mean_share(tfrc, "tcp"),
        },
    )
    web = {
        kind: lab.each(
            [f"web-{kind}-inferred"], lambda run: {"at 1 s": variation_by_scale(run)[1.0]}
        )["at 1 s"]
        for kind in ("tfrc", "tb")
    }
    fallen = []
    for profile in ("stated", "inferred"):
        names = [f"talk-tfrc-{speed}-{profile}" for speed in SPEEDS]
        slow, fast = (_all_fallen(lab.cases[name].runs) for name in names)
        fallen.append(
            f"With the {profile} parameters {fast[0]} of {fast[1]} talkspurts fall with faster "
            f"restart, {slow[0]} of {slow[1]} without"
        )
    twenty = lab.first("codecs-inferred")
    notes = {
        f"fig3/share/{MIXES[-1]}": _crowded(lab),
        "restart/g711-rate": f"In 20 ms packets it is {_wire_kbytes(twenty, 'g711'):.3g} kB/s",
        f"fig3/comparable/{MIXES[-1]}": f"{MIXES[-1]} TFRC-TB flows, most at low codecs, take "
        f"{taken.show()} % of the link, and RED in bytes (ns-2's default) spares "
        f"their short packets. Under RED in packets TCP keeps {packets['tb'].show()} of its share, "
        f"{packets['tfrc'].show()} beside TFRC: {packets['ratio'].show()}",
        "fig5/similar": "The text calls them similar and, a sentence on, TFRC-TB's very close to "
        "zero because its rate has a limit, which TFRC's has not: "
        f"{web['tb'].show()} and {web['tfrc'].show()} here. Both sentences hold only if TFRC's "
        "rate was limited too",
        "fig7/congestion": ". ".join(fallen),
        "restart/with": "Counted: the rate quadruples in each round trip without congestion",
        "restart/without": "Counted: the rate doubles",
        "floyd/nominal": "From X_calc, p and R of a run of CCID 4, by the throughput equation",
    }
    for number in FLOWS:
        missed = 100 * _mean(lab.first(f"beritelli-{number}").flows["loss_ratio"])
        lab.used[f"beritelli/{number}"] = [f"beritelli-{number}"]
        notes[f"beritelli/{number}"] = (
            f"The values are how many have room for their headers. Run here over the delay "
            f"listener, {missed:.0f} % of the frames of {number} flows are not heard"
        )
    lab.used[f"fig3/comparable/{MIXES[-1]}"] += [f"{name}-packets" for name in whole]
    lab.used[f"fig3/share/{MIXES[-1]}"] += [SLOW]
    return notes


def _crowded(lab: Lab) -> str:
    """The mutual effect of 64 flows of each kind, here and in ns-2."""
    of = lab.each(
        [f"mix-tfrc-{MIXES[-1]}"],
        lambda run: (
            {"tcp": mean_share(run, "tcp")}
            | {f"{kind} lost": percent_lost(run, kind) for kind in ("tcp", "other")}
        ),
    )
    slow = lab.each([SLOW], lambda run: {"tfrc": mean_share(run, "other")})["tfrc"]
    theirs = peer.beyond("maldonado2005")
    said = (
        f"TCP keeps {of['tcp'].show()} of its share; {of['tcp lost'].show()} % of its packets are "
        f"lost and {of['other lost'].show()} % of TFRC's"
    )
    if theirs:
        said += (
            f", where in ns-2 TCP keeps {theirs['TCP share']:.2f}, {theirs['TCP lost']:.1f} % of "
            f"its packets are lost and {theirs['TFRC lost']:.1f} % of TFRC's"
        )
    return (
        f"{said}. With TCP's minimum RTO of 1 s TFRC takes {slow.show()}. An earlier version of "
        "talkspurt ran TCP with 1 s and TFRC with a t_RTO of 4 R and without the cap of ns-2's "
        "equation; the agreement of the earlier version with ns-2 was a coincidence"
    )


def percent_lost(run: Run, kind: str) -> float:
    """Lost packets of the flows of a kind, as a share of those sent."""
    mine = run.flows.filter(run.flows["name"].str.starts_with(kind))
    return 100 * float(mine["lost_packets"].sum()) / float(mine["sent_packets"].sum())


def round_trips(begin: float, end: float, gain: float) -> int:
    """Round trips for a rate that grows by a factor to reach another."""
    return math.ceil(math.log(end / begin, gain))


def _mean(values: Iterable[float | None]) -> float:
    kept = [value for value in values if value is not None]
    return sum(kept) / len(kept)


def codecs(run: Run) -> dict[str, Value]:
    """The rates of all codecs."""
    return {f"codec/{name}": codec_kbps(run, name) for name in CODECS}


def codec_kbps(run: Run, name: str) -> float:
    """Payload bits of a packet per duration of its speech, from the run's bytes and frames."""
    payload = run.flow(name, "payload_bytes") / run.flow(name, "sent_packets")
    return 8e-3 * payload / _spacing_s(run, name)


def _wire_kbytes(run: Run, name: str) -> float:
    sent = run.flow(name, "sent_bytes") / run.flow(name, "sent_packets")
    return 1e-3 * sent / _spacing_s(run, name)


def _spacing_s(run: Run, name: str) -> float:
    frames = run.of("frames", name)["captured_s"].sort()
    return (float(frames[-1]) - float(frames[0])) / (frames.len() - 1)


def _voip_variant(run: Run) -> dict[str, Value]:
    """Nominal size and minimum interval of CCID 4, from its run."""
    gauges = {
        name: run.gauges("call", name) for name in ("equation_rate", "loss_event_rate", "srtt")
    }
    at = gauges["equation_rate"]["time_s"][-1]
    rate, loss, rtt = (
        float(found.filter(pl.col("time_s") <= at)["value"][-1]) for found in gauges.values()
    )
    # RFC 5622 §5: headers of 36 bytes are deducted from the equation's rate (RFC 4828 §4.2).
    payload = float(run.flow("call", "payload_bytes") / run.flow("call", "sent_packets"))
    whole = rate * (payload + 36) / payload
    packets = run.packets.filter(pl.col("ip_bytes") > 110)
    gaps = packets["enqueued_s"].diff().drop_nulls()
    least = float(gaps.min())  # type: ignore[arg-type]
    return {"floyd/nominal": whole / equation_bps(1, loss, rtt), "floyd/interval": 1e3 * least}


def _shares(run: Run, kind: str) -> list[float]:
    """Throughput of each flow of a kind over the fair share, including headers."""
    mine = run.flows.filter(run.flows["name"].str.starts_with(kind))
    fair = LINK_BPS / run.flows.height
    return [float(bps) / fair for bps in mine["throughput_bps"]]


def mean_share(run: Run, kind: str) -> float:
    """Mean throughput of the flows of a kind over the fair share."""
    return _mean(_shares(run, kind))


def counted_kbps(run: Run, name: str) -> float:
    """Throughput by the study's count: IP, UDP and RTP headers, without TFRC's own 16 bytes."""
    sent = run.flow(name, "sent_packets")
    each = (run.flow(name, "payload_bytes") + run.flow(name, "media_header_bytes")) / sent + 28
    return 8e-3 * each * run.flow(name, "received_packets") / (MIX_S - MIX_FROM_S)


def _variation(bins: Sequence[float]) -> float:
    series = pl.Series(bins)
    mean = float(series.mean())  # type: ignore[arg-type]
    return float(series.std()) / mean if mean else float("nan")  # type: ignore[arg-type]


def sent_bytes(run: Run, name: str) -> list[float]:
    """Bytes sent in each bin."""
    return run.series(name)["sent_bytes"].cast(pl.Float64).to_list()


def one_of_each(tfrc: Run, tb: Run) -> dict[str, Value]:
    """One TCP flow next to one TFRC flow, and next to one TFRC-TB flow."""
    return {
        "fig3/factor/1": mean_share(tfrc, "other") / mean_share(tfrc, "tcp"),
        "fig3/few": mean_share(tb, "tcp"),
        "fig3/best-codec": counted_kbps(tb, "other-1"),
    }


def eight_of_each(tfrc: Run, tb: Run) -> dict[str, Value]:
    """Eight TCP flows next to eight of TFRC, and next to eight of TFRC-TB."""
    steady = {}
    for kind, run in (("tfrc", tfrc), ("tb", tb)):
        each = [sent_bytes(run, f"other-{n}")[MIX_FROM_S:] for n in range(1, 9)]
        steady[kind] = _mean([_variation(bins) for bins in each])
    gained = mean_share(tb, "tcp") / mean_share(tfrc, "tcp")
    return {
        "fig3/factor/8": mean_share(tfrc, "other") / mean_share(tfrc, "tcp"),
        "fig3/comparable/8": gained,
        "fig4/more-stable": steady["tb"] / steady["tfrc"],
        "fig4/tcp-gains": gained,
    }


def many_of_each(tfrc: Run, tb: Run) -> dict[str, Value]:
    """64 TCP flows next to 64 of TFRC, and next to 64 of TFRC-TB."""
    return {
        "fig3/share/64": mean_share(tfrc, "other"),
        "fig3/comparable/64": mean_share(tb, "tcp") / mean_share(tfrc, "tcp"),
    }


FEW = (2, 4)
"""Flows of each kind whose fair share is far above the best codec's rate."""


def some_of_each(number: int, tfrc: Run, tb: Run) -> dict[str, Value]:
    """``number`` TCP flows next to as many of TFRC, and next to as many of TFRC-TB."""
    found: dict[str, Value] = {
        f"fig3/factor/{number}": mean_share(tfrc, "other") / mean_share(tfrc, "tcp")
    }
    if number in FEW:
        found[f"fig3/few/{number}"] = mean_share(tb, "tcp")
    else:
        found[f"fig3/comparable/{number}"] = mean_share(tb, "tcp") / mean_share(tfrc, "tcp")
    return found


MIXED = {number: partial(some_of_each, number) for number in MIXES} | {
    1: one_of_each,
    8: eight_of_each,
    64: many_of_each,
}

SCALES_S = (0.2, 0.4, 1.0, 2.0, 4.0, 10.0, 20.0)
"""Time scales of Fig 5, multiples of the series' bin."""


def variation_by_scale(run: Run, name: str = "other") -> dict[float, float]:
    """Coefficient of variation of the sending rate at each time scale."""
    found = {}
    # Sums of whole numbers, which are exact.
    until = [0.0, *accumulate(sent_bytes(run, name)[round(WEB_FROM_S / 0.2) :])]
    for scale in SCALES_S:
        ends = until[:: round(scale / 0.2)]
        found[scale] = _variation([end - start for start, end in pairwise(ends)])
    return found


def smoothness(tfrc: Run, tb: Run) -> dict[str, Value]:
    """Variation of the sending rates next to on/off sources, over time scales."""
    scales = {"tfrc": variation_by_scale(tfrc), "tb": variation_by_scale(tb)}
    tcp = {k: variation_by_scale(run, "tcp")[1.0] for k, run in (("tfrc", tfrc), ("tb", tb))}
    fall = {kind: of[0.2] - of[20.0] for kind, of in scales.items()}
    return {
        "fig5/near-zero": scales["tb"][1.0],
        # A constant rate cannot be a divisor.
        **{
            f"fig5/tcp-four-times/{kind}": tcp[kind] / scales[kind][1.0]
            if scales[kind][1.0]
            else None
            for kind in tcp
        },
        "fig5/similar": scales["tb"][1.0] / scales["tfrc"][1.0],
        "fig5/stable-over-scales": fall["tb"] / fall["tfrc"],
    }


def talkspurts(run: Run) -> list[list[float]]:
    """The sending rate in each talkspurt after the first, in bins of 200 ms, bits per second."""
    bins = [8 * bytes_ / 0.2 for bytes_ in sent_bytes(run, "call")]
    made = run.series("call")["generated_packets"].to_list()
    found: list[list[float]] = []
    now: list[float] = []
    for rate, frames in zip(bins, made, strict=True):
        # Silence has two or three packets in 200 ms, talk ten (or six of 30 ms).
        if frames >= 5:
            now.append(rate)
        elif now:
            found.append(now)
            now = []
    return [spurt for spurt in found[1:] if len(spurt) >= 25]


def _fallen(run: Run) -> list[bool]:
    """For each talkspurt, whether it falls below half the codec's rate after 2 s."""
    return [any(rate < SPOKEN_BPS / 2 for rate in spurt[10:-1]) for spurt in talkspurts(run)]


def _all_fallen(runs: Iterable[Run]) -> tuple[int, int]:
    """The number of falling talkspurts, and of all."""
    every = [fallen for run in runs for fallen in _fallen(run)]
    return sum(every), len(every)


def _percent_fallen(run: Run) -> float:
    fallen = _fallen(run)
    return 100 * sum(fallen) / len(fallen)


def after_silence(slow: Run, fast: Run) -> dict[str, Value]:
    """TFRC's talkspurts without faster restart, and with it."""
    spread = [_variation([_mean(spurt[:5]) for spurt in talkspurts(run)]) for run in (slow, fast)]
    return {
        "fig6/seldom": _percent_fallen(slow),
        "fig7/consistent": spread[1] / spread[0] if spread[0] else None,
        "fig7/congestion": _percent_fallen(fast) - _percent_fallen(slow),
    }


def reduced(fast: Run) -> dict[str, Value]:
    """TFRC-TB's talkspurts with faster restart."""
    return {"fig7/tb-reduced": _percent_fallen(fast)}


def _mixed_in_ns2(script: Script, number: int) -> tuple[pl.DataFrame, float, float]:
    """The hops after the flows have started, and the shares of TCP and TFRC."""
    with script.run(number, number, 0, MIX_S) as trace:
        frame = hops.of_ns2(trace)
    flow_number = pl.col("flow").str.split(" ").list.first().cast(pl.Int64)
    frame = frame.with_columns(flow_number.alias("n"))
    arrived = frame.filter(pl.col("received_s") > MIX_FROM_S)
    of = arrived.group_by("n").agg(pl.col("bytes").sum())
    fair = LINK_BPS / (2 * number)
    share: Mapping[int, float] = {
        int(n): 8 * size / (MIX_S - MIX_FROM_S) / fair for n, size in of.iter_rows()
    }
    tcp = _mean([share.get(n, 0.0) for n in range(number)])
    return frame, tcp, _mean([share.get(n, 0.0) for n in range(number, 2 * number)])


def ns2_beyond(script: Script) -> dict[str, float]:
    """TCP's share in ns-2 with 64 flows of each kind, and the losses of both."""
    number = MIXES[-1]
    frame, tcp, _ = _mixed_in_ns2(script, number)
    lost = {}
    for name, mine in (("TCP", pl.col("n") < number), ("TFRC", pl.col("n") >= number)):
        # Packets of the last second may still be queued when the run ends.
        sent = frame.filter(mine, pl.col("enqueued_s").is_between(MIX_FROM_S, MIX_S - 1))
        lost[f"{name} lost"] = round(100 * sent["dequeued_s"].null_count() / sent.height, 4)
    return {"TCP share": round(tcp, 6), **lost}


def ns2(script: Script) -> dict[str, Value]:
    """Fig 3 for plain TFRC in ns-2."""
    found: dict[str, Value] = {}
    for number in MIXES:
        _, tcp, tfrc = _mixed_in_ns2(script, number)
        if number == MIXES[-1]:
            found[f"fig3/share/{number}"] = tfrc
        else:
            found[f"fig3/factor/{number}"] = tfrc / tcp
    return found
