"""Maldonado, Baset, Schulzrinne 2005: TFRC with a token bucket over a ladder of codecs.

The text leaves out RED's parameters, the bucket's depth and the rule for stepping up, and its load
of 50 to 100 sources is two to four times what the link carries: 16 and 20 of them are run here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from talkspurt.reproduce import hops
from talkspurt.reproduce.network import Table, flow, link
from talkspurt.reproduce.renker2008 import equation_bps
from talkspurt.reproduce.rows import Value, Values

if TYPE_CHECKING:
    from talkspurt.reproduce.lab import Case, Lab
    from talkspurt.reproduce.ns2 import Script

LINK_BPS = 1.5e6
LADDER = ["pcmu", "g726-32", "g728", "g729-10", "g723.1-6.3"]
CODECS = {"g711": "pcmu", "g726": "g726-32", "g728": "g728", "g729": "g729", "g723": "g723.1-6.3"}
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
}
MIXES = (1, 8, 64)
MIX_S, MIX_FROM_S = 120, 30
WEB_S, WEB_FROM_S = 2500, 50
WEB_SOURCES, TALK_SOURCES = 16, 20
STATED_WEB_SOURCES, STATED_TALK_SOURCES = 50, 25
STATED_WEB_S = 500
SEEDS = (1, 2, 3, 4, 5)
TALK_S = 600
HEAVY_TAIL: Table = {"spread": {"kind": "pareto", "shape": 1.5}}
TEN_SECONDS: Table = {"on": "10s", "off": "10s", "spread": {"kind": "constant"}}
SPOKEN_BPS = 80e3
"""G.711 in packets of 20 ms with 40 bytes of headers."""


def cases(lab: Lab) -> None:
    """What is run."""
    _codecs(lab)
    # Long runs first: cores stay busy to the end.
    for seed in SEEDS:
        for kind in ("tfrc", "tb"):
            scenario = web(kind, WEB_SOURCES, f"{WEB_S}s")
            lab.ask(f"web-{kind}-{seed}", {**scenario, "seed": seed}, "inferred")
    for number in MIXES:
        for kind in ("tfrc", "tb"):
            lab.ask(f"mix-{kind}-{number}", mix(kind, number), "inferred")
    for kind in ("tfrc", "tb"):
        lab.ask(f"web-{kind}-stated", web(kind, STATED_WEB_SOURCES, f"{STATED_WEB_S}s"))
        for profile, sources in (("stated", STATED_TALK_SOURCES), ("inferred", TALK_SOURCES)):
            for speed in ("slow", "fast"):
                scenario = talk(kind, sources, restart=speed == "fast")
                for seed, name in talk_names(kind, speed, profile):
                    lab.ask(name, {**scenario, "seed": seed}, profile)
        packets = mix(kind, MIXES[-1])
        packets["links"]["bottleneck"]["queue"] = {**RED, "mode": "packets"}
        lab.ask(f"mix-{kind}-{MIXES[-1]}-packets", packets, "inferred")
    for number in (10, 20, 30, 40):
        lab.ask(f"beritelli-{number}", beritelli(number), "inferred")
    for name, transport in (
        ("udp", {"kind": "udp"}),
        ("tfrc", {"kind": "tfrc"}),
        ("tfrc-tb", BUCKET),
        ("ccid4", {"kind": "dccp", "ccid": 4}),
    ):
        lab.ask(f"call-{name}", _call(transport), "companion")


def talk_names(kind: str, speed: str, profile: str) -> list[tuple[int, str]]:
    """Seeds and names of the runs of talk and silence."""
    first = f"talk-{kind}-{speed}-{profile}"
    return [(seed, first if seed == SEEDS[0] else f"{first}-{seed}") for seed in SEEDS]


def _codecs(lab: Lab) -> None:
    """Each codec alone on a wire; G.711 with headers in 10 ms packets; CCID 4 offered too much."""
    wire = {"wire": link(("a", "b"), "10Mbit/s", "1ms", 100)}
    for name, codecs in (("stated", CODECS), ("inferred", {**CODECS, "g729": "g729-10"})):
        flows = {k: _speech(("a", "b"), {"kind": "udp"}, codec) for k, codec in codecs.items()}
        flows["g723"]["source"]["packet"] = "30ms"
        flows["g711-10ms"] = _speech(("a", "b"), {"kind": "udp"}, "pcmu", packet="10ms")
        for call in flows.values():
            call["rtcp"] = {"enabled": False}
        lab.ask(f"codecs-{name}", _scenario("12s", wire, flows), name)
    narrow = {"wire": link(("a", "b"), "300kbit/s", "20ms", 20)}
    source = {"kind": "cbr", "rate": "400kbit/s", "packet": "100B"}
    call = {"from": "a", "to": "b", "transport": {"kind": "dccp", "ccid": 4}, "source": source}
    tcp = flow(("a", "b"), TCP, {"kind": "bulk"})
    crowded = _scenario("20s", narrow, {"call": call, "tcp": tcp})
    crowded["record"]["packets"] = True
    lab.ask("voip-variant", crowded)


def _scenario(duration: str, links: Table, flows: Table, interval: str = "1s") -> Table:
    record = {"interval": interval}
    return {"duration": duration, "record": record, "links": links, "flows": flows}


def _speech(ends: tuple[str, str], transport: Table, codec: str, **source: object) -> Table:
    said = {"kind": "speech", "codec": codec, **source}
    return {"from": ends[0], "to": ends[1], "transport": transport, "source": said}


def voice(ends: tuple[str, str], kind: str, **more: object) -> Table:
    """TFRC-TB with its ladder, or plain TFRC carrying G.711."""
    ladder = {"ladder": LADDER} if kind == "tb" else {}
    return _speech(ends, BUCKET if kind == "tb" else {"kind": "tfrc"}, "pcmu", **ladder, **more)


def _dumbbell(names: Iterable[str]) -> Table:
    links = {"bottleneck": link(("west", "east"), "1500kbit/s", "20ms", RED)}
    for name in names:
        links[f"in-{name}"] = link((f"{name}-a", "west"), "10Mbit/s", "1ms", 50)
        links[f"out-{name}"] = link(("east", f"{name}-b"), "10Mbit/s", "1ms", 50)
    return links


def mix(kind: str, number: int) -> Table:
    """As many TCP flows as TFRC (greedy) or TFRC-TB flows, started over two seconds."""
    flows = {}
    for n in range(1, number + 1):
        start = f"{2000 * n // number}ms"
        ends = (f"tcp-{n}-a", f"tcp-{n}-b")
        flows[f"tcp-{n}"] = flow(ends, TCP, {"kind": "bulk"}, start=start)
        ends = (f"other-{n}-a", f"other-{n}-b")
        greedy = flow(ends, {"kind": "tfrc", "profile": "ns2"}, {"kind": "bulk", "packet": "1000B"})
        flows[f"other-{n}"] = {**(voice(ends, kind) if kind == "tb" else greedy), "start": start}
    scenario = _scenario(f"{MIX_S}s", _dumbbell(flows), flows)
    return {**scenario, "measure": {"from": f"{MIX_FROM_S}s"}}


def _background(number: int) -> Table:
    source = {
        "kind": "on_off",
        "rate": "200kbit/s",
        "packet": "500B",
        "on": "1s",
        "off": "2s",
        **HEAVY_TAIL,
    }
    return {
        f"web-{n}": flow((f"web-{n}-a", f"web-{n}-b"), {"kind": "udp"}, source)
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
    scenario = _scenario(duration, _dumbbell(flows), flows, "200ms")
    scenario["record"]["gauges"] = False
    return scenario


def talk(kind: str, sources: int, *, restart: bool) -> Table:
    """Ten seconds of talk, ten of silence, beside on/off sources."""
    # A packet every couple of round trips, as long as the others: TFRC counts bytes.
    kept = {"every": "100ms", "size": "160B"}
    call = voice(("call-a", "call-b"), kind, talkspurts=TEN_SECONDS, keep_alive=kept)
    rate = {**call["transport"].get("rate", {}), "idle": "rfc3448", "faster_restart": restart}
    call["transport"] = {"kind": "tfrc", "rate": rate}
    call["send_queue"] = {"drop": "stale", "lifetime": "100ms"}
    flows = {"call": call, **_background(sources)}
    return _scenario(f"{TALK_S}s", _dumbbell(flows), flows, "200ms")


def beritelli(number: int) -> Table:
    """So many voice flows under the delay listener on 150 kb/s."""
    flows = {
        f"call-{n}": _speech(("a", "b"), {"kind": "beritelli"}, "pcmu", ladder=LADDER)
        for n in range(1, number + 1)
    }
    return _scenario("60s", {"wire": link(("a", "b"), "150kbit/s", "20ms", 50)}, flows)


def _call(transport: Table) -> Table:
    """A call of today beside eight TCP uploads."""
    flows = {
        f"tcp-{n}": flow((f"tcp-{n}-a", f"tcp-{n}-b"), TCP, {"kind": "bulk"}) for n in range(8)
    }
    call = voice(("call-a", "call-b"), "tb")
    # Those codecs of which ITU-T G.113 tells what lost packets do to them.
    call["source"]["ladder"] = ["pcmu", "g729a", "g723.1-6.3"]
    call["transport"] = transport
    call["send_queue"] = {"drop": "stale", "lifetime": "100ms"}
    call["playout"] = {"buffer": "100ms"}
    flows["call"] = call
    return _scenario("120s", _dumbbell(flows), flows)


def values(lab: Lab) -> Values:
    """Every row's values."""
    stated: dict[str, Value] = {
        "restart/with": float(round_trips(1.0, 12.0, 4.0)),
        "restart/without": float(round_trips(1.0, 12.0, 2.0)),
    }
    inferred: dict[str, Value] = {}
    for profile, found in (("stated", stated), ("inferred", inferred)):
        case = lab.cases[f"codecs-{profile}"]
        for name in CODECS:
            found[f"codec/{name}"] = codec_kbps(case, name)
    inferred["restart/g711-rate"] = _wire_kbytes(lab.cases["codecs-inferred"], "g711-10ms")
    stated |= _voip_variant(lab.cases["voip-variant"])
    inferred |= _fairness(lab)
    fallen = {}
    for profile, found in (("stated", stated), ("inferred", inferred)):
        silence, fallen[profile] = _silence(lab, profile)
        found |= _smoothness(web_cases(lab, profile)) | silence
    # The text says this of 16 sources.
    del stated["fig5/near-zero"]
    crowd = 64 * mean_share(lab.cases["mix-tb-64"], "other") / (2 * 64)
    packets = {k: mean_share(lab.cases[f"mix-{k}-64-packets"], "tcp") for k in ("tfrc", "tb")}
    web = {k: variation_by_scale(c, "other")[1.0] for k, c in web_cases(lab, "inferred").items()}
    fit = math.floor(150e3 / (8 * 40 / 0.02))
    notes = {
        "restart/g711-rate": "In 20 ms packets it is "
        f"{_wire_kbytes(lab.cases['codecs-inferred'], 'g711'):.3g} kB/s",
        "fig3/comparable/64": f"64 TFRC-TB flows, most at low codecs, take {100 * crowd:.0f} % "
        "of the link, and RED in bytes (ns-2's default) spares their short packets. Under RED in "
        f"packets TCP keeps {packets['tb']:.2f} of its share, {packets['tfrc']:.2f} beside TFRC: "
        f"{packets['tb'] / packets['tfrc']:.2f}",
        "fig5/similar": "The text calls them similar and, a sentence on, TFRC-TB's very close to "
        f"zero because its rate has a limit, which TFRC's has not: {web['tb']:.3g} and "
        f"{web['tfrc']:.3g} here. Both sentences hold only if TFRC's rate was limited too",
        "fig7/congestion": ". ".join(
            f"With the {profile} parameters {fast} of {spurts} talkspurts fall with faster "
            f"restart, {slow} without"
            for profile, (slow, fast, spurts) in fallen.items()
        ),
        "restart/with": "Counted: the rate quadruples in each round trip without congestion",
        "restart/without": "Counted: the rate doubles",
        "floyd/nominal": "From X_calc, p and R of a run of CCID 4, by the throughput equation",
    }
    for number in (10, 20, 30, 40):
        stated[f"beritelli/{number}"] = float(fit)
        flows = lab.cases[f"beritelli-{number}"].result.flows
        missed = 100 * _mean(flows["loss_ratio"])
        notes[f"beritelli/{number}"] = (
            f"Stated stands for how many have room for their headers. Run here over the delay "
            f"listener, {missed:.0f} % of the frames of {number} flows are not heard"
        )
    used = {row: _cases_of(row) for row in (*stated, *inferred)}
    return Values(stated, inferred, notes=notes, cases=used)


def _cases_of(row: str) -> list[str]:
    kind, _, rest = row.partition("/")
    number = rest.rpartition("/")[2]
    webs = [f"web-{kind}-{end}" for end in ("stated", *SEEDS) for kind in ("tfrc", "tb")]
    calls = "tb" if rest == "tb-reduced" else "tfrc"
    talks = [
        name
        for speed in ("slow", "fast")
        for profile in ("stated", "inferred")
        for _, name in talk_names(calls, speed, profile)
    ]
    mixed = number if number in map(str, MIXES) else "8" if kind == "fig4" else "1"
    mixes = [f"mix-{k}-{mixed}" for k in ("tfrc", "tb")]
    if rest == f"comparable/{MIXES[-1]}":
        mixes += [f"{name}-packets" for name in mixes]
    return {
        "codec": ["codecs-stated", "codecs-inferred"],
        "restart": ["codecs-inferred"] if rest == "g711-rate" else [],
        "fig3": mixes,
        "fig4": mixes,
        "fig5": [] if "load" in rest else webs,
        "fig6": [] if "load" in rest else talks,
        "fig7": talks,
        "floyd": ["voip-variant"],
        "beritelli": [f"beritelli-{number}"],
    }[kind]


def round_trips(begin: float, end: float, gain: float) -> int:
    """Round trips in which a rate that grows by a factor reaches another."""
    return math.ceil(math.log(end / begin, gain))


def _mean(values: Iterable[float | None]) -> float:
    kept = [value for value in values if value is not None]
    return sum(kept) / len(kept)


def codec_kbps(case: Case, name: str) -> float:
    """Payload of a packet by the speech in it, from the bytes and frames of the run."""
    frames = case.result.frames(name)["captured_s"].sort()
    spacing = (float(frames[-1]) - float(frames[0])) / (frames.len() - 1)
    return 8e-3 * case.flow(name, "payload_bytes") / case.flow(name, "sent_packets") / spacing


def _wire_kbytes(case: Case, name: str) -> float:
    frames = case.result.frames(name)["captured_s"].sort()
    spacing = (float(frames[-1]) - float(frames[0])) / (frames.len() - 1)
    return 1e-3 * case.flow(name, "sent_bytes") / case.flow(name, "sent_packets") / spacing


def _voip_variant(case: Case) -> dict[str, Value]:
    """Nominal size and least interval of CCID 4, as its run shows them."""
    names = ("equation_rate", "loss_event_rate", "srtt")
    calls = case.result.gauges("call")
    at = calls.filter(gauge="equation_rate")["time_s"][-1]
    rate, loss, rtt = (
        float(calls.filter(pl.col("gauge") == name, pl.col("time_s") <= at)["value"][-1])
        for name in names
    )
    packets = case.packets().filter(flow="call", side="from").filter(pl.col("ip_bytes") > 110)
    gaps = packets["enqueued_s"].diff().drop_nulls()
    least = float(gaps.min())  # type: ignore[arg-type]
    return {"floyd/nominal": rate / equation_bps(1, loss, rtt), "floyd/interval": 1e3 * least}


def _shares(case: Case, kind: str) -> list[float]:
    """Throughput of each flow of a kind by the fair share, headers counted."""
    flows = case.result.flows
    mine = flows.filter(flows["name"].str.starts_with(kind))
    fair = LINK_BPS / flows.height
    return [float(bps) / fair for bps in mine["throughput_bps"]]


def mean_share(case: Case, kind: str) -> float:
    """Mean throughput of the flows of a kind by the fair share."""
    return _mean(_shares(case, kind))


def counted_kbps(case: Case, name: str) -> float:
    """Throughput as the study counts: IP, UDP and RTP headers, not TFRC's own 16 bytes."""
    sent = case.flow(name, "sent_packets")
    each = (case.flow(name, "payload_bytes") + case.flow(name, "media_header_bytes")) / sent + 28
    return 8e-3 * each * case.flow(name, "received_packets") / (MIX_S - MIX_FROM_S)


def _variation(bins: Sequence[float]) -> float:
    series = pl.Series(bins)
    mean = float(series.mean())  # type: ignore[arg-type]
    return float(series.std()) / mean if mean else float("nan")  # type: ignore[arg-type]


def sent_bytes(case: Case, name: str) -> list[float]:
    """Bytes sent in each bin."""
    return [float(value) for value in case.result.series(name)["sent_bytes"]]


def _fairness(lab: Lab) -> dict[str, Value]:
    tcp = {
        (k, n): mean_share(lab.cases[f"mix-{k}-{n}"], "tcp") for k in ("tfrc", "tb") for n in MIXES
    }
    other = {
        (k, n): mean_share(lab.cases[f"mix-{k}-{n}"], "other")
        for k in ("tfrc", "tb")
        for n in MIXES
    }
    found: dict[str, Value] = {
        f"fig3/factor/{n}": other["tfrc", n] / tcp["tfrc", n] for n in (1, 8)
    }
    found["fig3/share/64"] = other["tfrc", 64]
    found["fig3/few"] = tcp["tb", 1]
    found["fig3/best-codec"] = counted_kbps(lab.cases["mix-tb-1"], "other-1")
    for n in (8, 64):
        found[f"fig3/comparable/{n}"] = tcp["tb", n] / tcp["tfrc", n]
    steady = {}
    for kind in ("tfrc", "tb"):
        case = lab.cases[f"mix-{kind}-8"]
        each = [sent_bytes(case, f"other-{n}")[MIX_FROM_S:] for n in range(1, 9)]
        steady[kind] = _mean([_variation(bins) for bins in each])
    found["fig4/more-stable"] = steady["tb"] / steady["tfrc"]
    found["fig4/tcp-gains"] = tcp["tb", 8] / tcp["tfrc", 8]
    return found


SCALES_S = (0.2, 0.4, 1.0, 2.0, 4.0, 10.0, 20.0)
"""Time scales of Fig 5, multiples of the series' bin."""


def variation_by_scale(cases: Sequence[Case], name: str) -> dict[float, float]:
    """Coefficient of variation of the sending rate at each time scale, mean of the runs."""
    found: dict[float, list[float]] = {scale: [] for scale in SCALES_S}
    for case in cases:
        bins = sent_bytes(case, name)[round(WEB_FROM_S / 0.2) :]
        for scale in SCALES_S:
            width = round(scale / 0.2)
            sums = [sum(bins[i : i + width]) for i in range(0, len(bins) - width + 1, width)]
            found[scale].append(_variation(sums))
    return {scale: _mean(each) for scale, each in found.items()}


def web_cases(lab: Lab, profile: str) -> dict[str, list[Case]]:
    """The runs beside on/off sources, by what runs beside them."""
    ends = ["stated"] if profile == "stated" else [str(seed) for seed in SEEDS]
    return {kind: [lab.cases[f"web-{kind}-{end}"] for end in ends] for kind in ("tfrc", "tb")}


def _smoothness(cases: Mapping[str, Sequence[Case]]) -> dict[str, Value]:
    scales = {kind: variation_by_scale(each, "other") for kind, each in cases.items()}
    fall = {kind: of[0.2] - of[20.0] for kind, of in scales.items()}
    return {
        "fig5/near-zero": scales["tb"][1.0],
        "fig5/similar": scales["tb"][1.0] / scales["tfrc"][1.0],
        "fig5/stable-over-scales": fall["tb"] / fall["tfrc"],
    }


def talkspurts(case: Case) -> list[list[float]]:
    """The sending rate in each talkspurt after the first, in bins of 200 ms, bits a second."""
    bins = [8 * bytes_ / 0.2 for bytes_ in sent_bytes(case, "call")]
    made = [float(n) for n in case.result.series("call")["generated_packets"]]
    found: list[list[float]] = []
    now: list[float] = []
    for rate, frames in zip(bins, made, strict=True):
        # In silence two or three packets are made in 200 ms, in talk ten (or six of 30 ms).
        if frames >= 5:
            now.append(rate)
        elif now:
            found.append(now)
            now = []
    return [spurt for spurt in found[1:] if len(spurt) >= 25]


def _silence(lab: Lab, profile: str) -> tuple[dict[str, Value], tuple[int, int, int]]:
    """The rows; and of TFRC's talkspurts how many fall without faster restart, with it, and all."""
    spread, low, count = {}, {}, {}
    for kind in ("tfrc", "tb"):
        for speed in ("slow", "fast"):
            names = talk_names(kind, speed, profile)
            spurts = [spurt for _, name in names for spurt in talkspurts(lab.cases[name])]
            first = [_mean(spurt[:5]) for spurt in spurts]
            fallen = [any(rate < SPOKEN_BPS / 2 for rate in spurt[10:-1]) for spurt in spurts]
            spread[kind, speed] = _variation(first)
            low[kind, speed] = 100 * sum(fallen) / len(fallen)
            count[kind, speed] = (sum(fallen), len(fallen))
    slow = spread["tfrc", "slow"]
    rows: dict[str, Value] = {
        "fig6/seldom": low["tfrc", "slow"],
        "fig7/consistent": spread["tfrc", "fast"] / slow if slow else None,
        "fig7/congestion": low["tfrc", "fast"] - low["tfrc", "slow"],
        "fig7/tb-reduced": low["tb", "fast"],
    }
    return rows, (count["tfrc", "slow"][0], *count["tfrc", "fast"])


def ns2(script: Script) -> dict[str, Value]:
    """Fig 3 for plain TFRC as ns-2 gives it, and its coefficient of variation beside 16 sources."""
    found: dict[str, Value] = {}
    for number in MIXES:
        with script.run(number, number, 0, MIX_S) as trace:
            frame = hops.of_ns2(trace)
        arrived = frame.filter(pl.col("received_s") > MIX_FROM_S)
        flow_number = pl.col("flow").str.split(" ").list.first().cast(pl.Int64)
        of = arrived.group_by(flow_number.alias("n")).agg(pl.col("bytes").sum())
        fair = LINK_BPS / (2 * number)
        share: Mapping[int, float] = {
            int(n): 8 * size / (MIX_S - MIX_FROM_S) / fair for n, size in of.iter_rows()
        }
        tcp = _mean([share.get(n, 0.0) for n in range(number)])
        tfrc = _mean([share.get(n, 0.0) for n in range(number, 2 * number)])
        if number == MIXES[-1]:
            found[f"fig3/share/{number}"] = tfrc
        else:
            found[f"fig3/factor/{number}"] = tfrc / tcp
    return found
