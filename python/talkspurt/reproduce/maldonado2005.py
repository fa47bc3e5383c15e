"""Maldonado, Baset, Schulzrinne 2005: TFRC with a token bucket over a ladder of codecs.

The text omits RED's parameters, the bucket's depth and the rule for stepping up, and its load of 50
to 100 sources is two to four times the link's capacity: here 16 and 20 are run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import polars as pl

from talkspurt.reproduce import hops
from talkspurt.reproduce import ns2 as peer
from talkspurt.reproduce.lab import part
from talkspurt.reproduce.renker2008 import equation_bps
from talkspurt.reproduce.rows import Values
from talkspurt.reproduce.runs_file import notes
from talkspurt.reproduce.sample import Sample

if TYPE_CHECKING:
    from talkspurt.reproduce.figures import Points, Runs, Spec
    from talkspurt.reproduce.lab import Lab, Run, Table
    from talkspurt.reproduce.ns2 import Script
    from talkspurt.reproduce.sample import Value

LINK_BPS = 1.5e6
CODECS = ("g711", "g726", "g728", "g729", "g723")
MIXES = (1, 2, 4, 8, 16, 32, 64)
MIX_S, MIX_FROM_S = 120, 30
WEB_FROM_S = 50
KINDS = ("tfrc", "tb")
SPEEDS = ("slow", "fast")
"""Without faster restart, and with it."""
FLOWS = (10, 20, 30, 40)
"""Beritelli's."""
SPOKEN_BPS = 80e3
"""G.711 in packets of 20 ms with 40 bytes of headers."""

AXES = {
    f"{number} starts": [{"n": n, "start": f"{2000 * n // number}ms"} for n in range(1, number + 1)]
    for number in MIXES
}
"""The flows of each kind of a mix, started over two seconds."""
KEEP = {
    "call": {"series": part("flow", "sent_bytes", "generated_packets", flow="call")},
    "sent": {"series": part("flow", "sent_bytes")},
    "mix-8": {"series": part("flow", "sent_bytes", "received_bytes")},
    "frames": {"frames": part("flow", "captured_s")},
    "variant": {
        "packets": part("enqueued_s", "ip_bytes", flow="call", side="from"),
        "gauges": part("flow", "gauge", "time_s", "value", flow="call"),
    },
}


def values(lab: Lab) -> Values:
    """The values of all rows."""
    stated, inferred = (lab.rows(ROWS, f"-{p}") for p in ("stated", "inferred"))
    # The text states this for 16 sources.
    del stated["fig5/near-zero"]
    stated |= lab.rows([(["voip-variant"], voip_variant)], "")
    inferred |= lab.rows([(["codecs-inferred"], wire_rate), *MIXED], "")
    for row, gain in (("restart/with", 4.0), ("restart/without", 2.0)):
        stated[row] = Sample((float(round_trips(1.0, 12.0, gain)),))
    for number in FLOWS:
        for found, packet_s in ((stated, 0.1), (inferred, 0.02)):
            fit = math.floor(150e3 / (8 * 40 / packet_s))
            found[f"beritelli/{number}"] = Sample((float(fit),))
        lab.used[f"beritelli/{number}"] = [f"beritelli-{number}"]
    said = notes("maldonado2005", _facts(lab))
    lab.used["fig3/comparable/64"] += [f"mix-{kind}-64-packets" for kind in KINDS]
    lab.used["fig3/share/64"] += [SLOW]
    return Values(stated, inferred, notes=said, cases=lab.used)


SLOW = "mix-tfrc-64-rto-1s"
"""With the minimum RTO of RFC 6298; no verdict depends on it."""


def _facts(lab: Lab) -> dict[str, object]:
    """The numbers in the notes: further results of the runs, and of ns-2's."""

    def share(name: str, kind: str) -> str:
        return lab.each([name], lambda run: {"": mean_share(run, kind)})[""].show()

    def lost(kind: str) -> str:
        return lab.each(["mix-tfrc-64"], lambda run: {"": percent_lost(run, kind)})[""].show()

    def at_1_s(kind: str) -> str:
        names = [f"web-{kind}-inferred"]
        return lab.each(names, lambda run: {"": variation_by_scale(run)[1.0]})[""].show()

    packets = [f"mix-{kind}-64-packets" for kind in KINDS]
    taken = lab.each(["mix-tb-64"], lambda run: {"": 50 * mean_share(run, "other")})[""]
    ratio = lab.each(packets, lambda *runs: {"": _gain(*runs)})[""]
    return {
        **{f"{kind} at 1 s": at_1_s(kind) for kind in KINDS},
        **{f"{kind} lost": lost(kind) for kind in ("tcp", "other")},
        "tcp": share("mix-tfrc-64", "tcp"),
        "slow": share(SLOW, "other"),
        "taken": taken.show(),
        "in packets": [*(share(name, "tcp") for name in packets), ratio.show()],
        "ns-2": peer.beyond("maldonado2005"),
        "twenty": _wire_kbytes(lab.first("codecs-inferred"), "g711"),
        "missed": {n: 100 * _mean(lab.first(f"beritelli-{n}").flows["loss_ratio"]) for n in FLOWS},
        "fallen": {
            f"{speed} {profile}": _all_fallen(lab.cases[f"talk-tfrc-{speed}-{profile}"].runs)
            for profile in ("stated", "inferred")
            for speed in SPEEDS
        },
    }


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


def wire_rate(run: Run) -> dict[str, Value]:
    """G.711 with headers in packets of 10 ms."""
    return {"restart/g711-rate": _wire_kbytes(run, "g711-10ms")}


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


def voip_variant(run: Run) -> dict[str, Value]:
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


def sent_bytes(run: Run, name: str) -> list[float]:
    """Bytes sent in each bin."""
    return run.series(name)["sent_bytes"].cast(pl.Float64).to_list()


def _gain(tfrc: Run, tb: Run) -> float:
    """TCP's share next to TFRC-TB over that next to TFRC."""
    return mean_share(tb, "tcp") / mean_share(tfrc, "tcp")


def _unsteady(run: Run) -> float:
    """Mean variation of the sending rate of eight flows, second by second."""
    each = [sent_bytes(run, f"other-{n}")[MIX_FROM_S:] for n in range(1, 9)]
    return _mean([hops.variation(bins) for bins in each])


def mixed(number: int, tfrc: Run, tb: Run) -> dict[str, Value]:
    """``number`` TCP flows next to as many of TFRC, and next to as many of TFRC-TB."""
    found: dict[str, Value] = {}
    if number == MIXES[-1]:
        found["fig3/share/64"] = mean_share(tfrc, "other")
    else:
        factor = mean_share(tfrc, "other") / mean_share(tfrc, "tcp")
        found[f"fig3/factor/{number}"] = factor
    if number < 8:
        # The fair share is far above the best codec's rate.
        found["fig3/few" if number == 1 else f"fig3/few/{number}"] = mean_share(tb, "tcp")
    else:
        found[f"fig3/comparable/{number}"] = _gain(tfrc, tb)
    if number == 1:
        found["fig3/best-codec"] = counted_kbps(tb, "other-1")
    if number == 8:
        found["fig4/more-stable"] = _unsteady(tb) / _unsteady(tfrc)
        found["fig4/tcp-gains"] = _gain(tfrc, tb)
    return found


SCALES_S = (0.2, 0.4, 1.0, 2.0, 4.0, 10.0, 20.0)
"""Time scales of Fig 5, multiples of the series' bin."""


def variation_by_scale(run: Run, name: str = "other") -> dict[float, float]:
    """Coefficient of variation of the sending rate at each time scale."""
    found = {}
    # Sums of whole numbers, which are exact.
    until = [0.0, *accumulate(sent_bytes(run, name)[round(WEB_FROM_S / 0.2) :])]
    for scale in SCALES_S:
        ends = until[:: round(scale / 0.2)]
        found[scale] = hops.variation([end - start for start, end in pairwise(ends)])
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
    spread = [
        hops.variation([_mean(spurt[:5]) for spurt in talkspurts(run)]) for run in (slow, fast)
    ]
    return {
        "fig6/seldom": _percent_fallen(slow),
        "fig7/consistent": spread[1] / spread[0] if spread[0] else None,
        "fig7/congestion": _percent_fallen(fast) - _percent_fallen(slow),
    }


def reduced(fast: Run) -> dict[str, Value]:
    """TFRC-TB's talkspurts with faster restart."""
    return {"fig7/tb-reduced": _percent_fallen(fast)}


ROWS: Table = (
    (["codecs"], codecs),
    (["web-tfrc", "web-tb"], smoothness),
    (["talk-tfrc-slow", "talk-tfrc-fast"], after_silence),
    (["talk-tb-fast"], reduced),
)
MIXED: Table = [([f"mix-{kind}-{n}" for kind in KINDS], partial(mixed, n)) for n in MIXES]
"""Which rows are computed from which runs."""


def curves(runs: Runs) -> Callable[[Spec], Points]:
    """Shares, rates in kb/s over time, and variations over time scales."""

    def points(line: Spec) -> Points:
        if line["of"] == "share":
            each = [runs(f"mix-{line['kind']}-{number}") for number in MIXES]
            return MIXES, [Sample(tuple(mean_share(r, line["who"]) for r in of)) for of in each]
        if line["of"] == "variation":
            found = [variation_by_scale(run) for run in runs(line["run"])]
            return SCALES_S, [Sample(tuple(of[scale] for of in found)) for scale in SCALES_S]
        run = runs(line["run"])[0]
        if line["of"] == "received":
            bins = run.series(line["flow"])["received_bytes"].to_list()
            return [float(second) for second in range(MIX_S)], [8e-3 * bytes_ for bytes_ in bins]
        bins = [8e-3 * bytes_ / 0.2 for bytes_ in sent_bytes(run, "call")]
        return [0.2 * n for n in range(len(bins))], bins

    return points


def _mixed_in_ns2(script: Script, number: int) -> tuple[pl.DataFrame, float, float]:
    """The hops after the flows have started, and the shares of TCP and TFRC."""
    frame = script.hops(number, number, 0, MIX_S)
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
