#!/usr/bin/env python3
"""Which initial slow-start threshold does CCID 2 need for which round trip?

    .venv/bin/python validation/questions/ssthresh.py [--dirty]

Runs the three studies scenarios/questions/ssthresh*.toml and writes docs/questions/ssthresh.md with
its figures; two or three minutes on two cores. The page's statements are asserted: if one is false,
the script aborts and no page is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import ssthresh_figures as figures
from common import Interval, Page, Row, ask, begin, paired
from ssthresh_law import BIN_S, NONE, PACKETS, Law, Path, drops_stale_s, keeps_all_s, law, line

if TYPE_CHECKING:
    from talkspurt.result import Result

BAND = 0.1
SHOWN = "G.711, 20 ms"
KEEPS, DROPS = "keeps all", "drops stale"
RULES: Mapping[str, tuple[str, Callable[[float], float]]] = {
    KEEPS: ("2.5\u00a0N", lambda n: 2.5 * n),
    DROPS: ("N\u00a0+\u00a05", lambda n: n + 5),
}
"""The proposal for each kind of sender, rounded up to whole packets."""
ENOUGH = {"200 ms": "20", "600 ms": "40"}
"""In the study with other traffic: the minimum threshold tried above N + 5."""


def settled(arrived: Sequence[int], packets_per_s: float) -> float | None:
    """When all later bins but the last are within 10 % of the codec's rate, in seconds.

    None if it never holds for at least two seconds.
    """
    full = packets_per_s * BIN_S
    astray = [i for i, n in enumerate(arrived[:-1]) if abs(n - full) > BAND * full]
    last = max(astray, default=-1)
    return None if last >= len(arrived) - 5 else BIN_S * (last + 1)


def measure(result: Result, *, begin_s: float, until_s: float = math.inf) -> Iterator[Row]:
    """The call's settling time after its first word, and every flow's measures."""
    bins = result.series("call").sort("time_s")
    # Bins are identified by their ends.
    bins = bins.filter(pl.col("time_s").is_between(begin_s + 1e-9, until_s + 1e-9))
    codec = PACKETS[result.settings.get("codec", SHOWN)]
    row: Row = {"settled": settled(bins["received_packets"].to_list(), codec)}
    for flow in result.flows.iter_rows(named=True):
        for name in ("mos", "lost_packets", "discarded_packets", "goodput_bps"):
            row[f"{flow['name']}.{name}"] = flow[name]
    yield row


def rule(sender: str, n: float) -> int:
    """The proposed threshold, in whole packets."""
    return math.ceil(RULES[sender][1](n) - 1e-9)


def main() -> None:
    """Run the studies and write the page."""
    begin("ssthresh", __doc__ or "")
    alone = ask("ssthresh", partial(measure, begin_s=0.0))
    today = ask("ssthresh-today", partial(measure, begin_s=1.0))
    beside = ask("ssthresh-beside", partial(measure, begin_s=20.0, until_s=40.0))
    laws = [law(KEEPS, alone, keeps_all_s), law(DROPS, today, drops_stale_s)]
    page = Page(
        "ssthresh",
        "Which initial ssthresh for which round trip?",
        """A study of 2010 (`talkspurt reproduce nor2010`) found that G.711 over CCID 2 takes 20
        s to become stable on a link of 300 ms with an initial slow-start threshold of 20
        packets, and much less with 50 and more. Which threshold does which path need?""",
    )
    answer(page, laws)
    theory(page, laws)
    opinion(page, *laws)
    others(page, beside.rows)
    page.write(alone, today, beside)


def answer(page: Page, laws: Sequence[Law]) -> None:
    """The proposal, and its verification."""
    keeps, drops = laws
    paths = len(keeps.times)
    page.heading("The answer")
    page.text(
        f"""Let **N** be the packets a second times the round trip: what is in flight when the
        call has its rate. A call is *settled* from when on every bin of {BIN_S:g} s brings
        within {100 * BAND:.0f} % of the codec's packets. A threshold *suffices* if neither it
        nor any larger one tried settles more than one such bin later than no threshold at all.
        *Keeps all*: the sender speaks from its Request on and sends all of it, as ns-2's does.
        *Drops stale*: it speaks when it is connected, and throws away what has waited for 150
        ms."""
    )
    lead = max(t[NONE] - min(t.values()) for one in laws for t in one.times.values())
    quiet = max(p.in_flight for p in keeps.times if _nothing_below(laws, p.in_flight))
    half = {one.sender: _half(one) for one in laws}
    page.claims_list(
        (
            f"""**No threshold is best where there is room**: on {paths} paths with either
            sender, none of those tried settled more than {lead:.2f} s before none at all, which
            is what RFC 4341 says (section 5: the initial threshold may be arbitrarily high).""",
            lead <= BIN_S,
        ),
        (
            f"""**A sender that drops what is stale needs {RULES[DROPS][0]}**, rounded up: on
            each of the {paths} paths the next threshold tried at or above it settles within one
            bin of none.""",
            all(drops.cost(p, rule(DROPS, p.in_flight)) <= BIN_S for p in drops.times),
        ),
        (
            f"""**A sender that keeps all needs {RULES[KEEPS][0]}**: its backlog must be sent
            beside what is said meanwhile. Again on each of the {paths} paths.""",
            all(keeps.cost(p, rule(KEEPS, p.in_flight)) <= BIN_S for p in keeps.times),
        ),
        (
            f"""**Up to N = {quiet:g} it does not matter**: every threshold tried suffices, 2
            included. With {PACKETS[SHOWN]:.0f} packets a second that is a round trip of
            {1e3 * quiet / PACKETS[SHOWN]:.0f} ms.""",
            _nothing_below(laws, quiet) and quiet >= 5,
        ),
        (
            f"""**Too small is dear**: half of what is proposed costs up to {half[DROPS]:.1f} s
            where stale packets are dropped, and {half[KEEPS]:.1f} s where all are kept.""",
            half[DROPS] > 5 and half[KEEPS] > 5,
        ),
    )
    page.figure(
        "needed",
        figures.needed(laws, RULES),
        "Least initial threshold that suffices against N, measured and proposed, for both senders",
    )
    page.text(
        """Triangles: the least threshold tried that suffices; the line below each reaches to the
        next smaller one, which does not. Least squares through their middles, in packets, with
        intervals of 95 % from resampled paths; paths on which all thresholds suffice are left
        out."""
    )
    fits = {one.sender: line(one.informative) for one in laws}
    rows = []
    for one in laws:
        fit = fits[one.sender]
        ratios = [least.least / least.path.in_flight for least in one.informative]
        rows.append(
            (
                one.sender,
                RULES[one.sender][0],
                f"{fit.slope:.2f} [{fit.slope_ends[0]:.2f}, {fit.slope_ends[1]:.2f}]",
                _minus(f"{fit.offset:+.1f} [{fit.offset_ends[0]:+.1f}, {fit.offset_ends[1]:+.1f}]"),
                f"{fit.rms:.1f}",
                f"{min(ratios):.2f} to {max(ratios):.2f}",
                f"{len(ratios)} of {paths}",
            )
        )
    page.table(
        ("sender", "proposed", "slope", "offset", "rms", "least that suffices / N", "paths"), rows
    )
    page.claim(
        """Where stale packets are dropped the slope is about 1: a packet of threshold for each
        in flight. Where all are kept it is about 2.5, and the offset is below zero, so that the
        rule proposed, which goes through the origin, asks for more than it must where N is
        small.""",
        fits[DROPS].slope_ends[0] > 0.9 and fits[DROPS].slope_ends[1] < 1.2,
        2.0 < fits[KEEPS].slope_ends[0] < 2.5 < fits[KEEPS].slope_ends[1] < 3.0,
        fits[KEEPS].offset_ends[1] < 0,
    )


def _minus(words: str) -> str:
    return words.replace("-", "−")


def _nothing_below(laws: Sequence[Law], n: float) -> bool:
    """Whether every threshold tried suffices where at most ``n`` packets are in flight."""
    return not any(one.path.in_flight <= n for law in laws for one in law.informative)


def _half(one: Law) -> float:
    """The maximum cost of half of the proposed threshold, where that settled at all."""
    costs = [one.cost(p, rule(one.sender, p.in_flight) / 2) for p in one.times]
    return max(cost for cost in costs if math.isfinite(cost))


def theory(page: Page, laws: Sequence[Law]) -> None:
    """The closed forms, and their accuracy."""
    page.heading("Why: a closed form")
    page.text(
        """Slow start begins with w₀ packets and multiplies the window by g in a round trip: 4
        and 1.5 by RFC 4341 (a packet for every two acknowledged), 3 and 2 in ns-2. Beyond the
        threshold s it adds one. After k = log(s / w₀) / log g round trips the window is s, and
        of N (k + 1) packets said (the handshake took a round trip) (s − w₀) / (g − 1) were sent.
        The backlog B is the rest; it goes while the window grows from s by one each round trip
        and N more packets come:"""
    )
    page.code(
        "keeps all     T = RTT · (3/2 + k + √((s − N)² + 2 B) − (s − N)),   "
        "B = N (k + 1) − (s − w₀) / (g − 1)",
        "drops stale   T = RTT · (1/2 + log(min(s, N + 2) / w₀) / log g + max(0, N + 2 − s))",
    )
    page.text(
        """Where slow start alone empties the backlog before its window is s, T is RTT · (3/2 +
        k) with N (k + 1) = w₀ (gᵏ − 1) / (g − 1). The 2 of the second form is Ack Ratio 2: an
        acknowledgement speaks for two packets, and for the first of them it comes late. Nothing
        here is fitted."""
    )
    rows, errors = [], []
    for one in laws:
        measured, off, _ = (np.array(column) for column in zip(*one.errors(), strict=True))
        errors.append(off)
        near = np.abs(off) <= np.maximum(1.0, 0.1 * measured)
        steps = one.steps()
        worst = np.abs(off).argmax()
        rows.append(
            (
                one.sender,
                len(off),
                _minus(f"{off.mean():+.2f} s"),
                f"{np.sqrt(np.mean(off**2)):.2f} s",
                f"{abs(off[worst]):.1f} s of {measured[worst]:.1f} s",
                f"{100 * near.mean():.0f} %",
                f"{sum(n <= 1 for n in steps)} of {len(steps)}",
            )
        )
    page.table(
        (
            "sender",
            "times measured",
            "mean error",
            "rms",
            "worst",
            "within 1 s or 10 %",
            "least threshold that suffices right, or next to it",
        ),
        rows,
    )
    page.figure(
        "settling",
        figures.settling(laws, PACKETS[SHOWN]),
        "Time to settle against the initial threshold, measured and by the closed form",
    )
    page.text(f"{SHOWN}; points are means over the seeds, lines the closed form.")
    page.claim(
        """On the mean the form is early by less than the bin to which a measured time is rounded
        up, and its ten worst errors are all of thresholds below N.""",
        all(-BIN_S < off.mean() < 0 for off in errors),
        all(
            small
            for one in laws
            for _, _, small in sorted(one.errors(), key=lambda e: -abs(e[1]))[:10]
        ),
    )


def opinion(page: Page, keeps: Law, drops: Law) -> None:
    """The effect on listening quality."""
    page.heading("What the listener hears")
    page.text(
        f"""MOS of the first 20 s of speech with a playout buffer of 150 ms; the sender drops
        what is stale, RFC 4341's slow start, {SHOWN}; in brackets the threshold tried.
        Differences are paired, seed by seed, with Student's intervals of 95 %: nothing but the
        instant of the start varies here."""
    )
    rows, gains, rest = [], [], []
    for path in drops.times:
        n = path.in_flight
        half, full = drops.tried(path, n / 2), drops.tried(path, rule(DROPS, n))
        mos = {s: _mos(drops, path, s) for s in (half, full, NONE)}
        worth = Interval.of([a - b for a, b in zip(mos[full], mos[half], strict=True)])
        rest += [abs(a - b) for a, b in zip(mos[NONE], mos[full], strict=True)]
        gains.append((worth, path))
        if path.packets_per_s == PACKETS[SHOWN] and path.profile == "rfc":
            means = [f"{sum(v) / len(v):.2f}" for v in mos.values()]
            brackets = (f" ({half})", f" ({full})", "")
            cells = [mean + words for mean, words in zip(means, brackets, strict=True)]
            rows.append((_trip(path), f"{n:g}", *cells, worth.show(2, sign=True)))
    header = ("round trip", "N", "half of N", RULES[DROPS][0], "no threshold", "gain over half")
    page.table(header, rows)
    best, where = max(gains, key=lambda gain: gain[0].mean)
    far = [p for p in drops.times if p.rtt_s >= 0.2]
    longest = [p for p in drops.times if p.rtt_s == 0.6]
    page.claims_list(
        (
            f"""On none of the {len(drops.times)} paths does no threshold score otherwise than
            {RULES[DROPS][0]}: the largest difference of a seed is {max(rest):.3f}.""",
            max(rest) < 0.01,
        ),
        (
            f"""A threshold of half of N costs up to {best.show(2)} points, with
            {where.packets_per_s:.0f} packets a second and {_trip(where)}.""",
            best.low > 1,
        ),
        (
            f"""**To keep all is worse for the ear**: without a threshold a sender that does
            scores lower on each of the {len(far)} paths of 200 ms and more, by up to
            {max(_mean(drops, p) - _mean(keeps, p) for p in far):.2f}.""",
            all(_mean(drops, p) > _mean(keeps, p) for p in far),
        ),
        (
            """**What no threshold mends**: at 600 ms the first 20 s score below 2 whatever is
            set, with either sender. Where stale packets are dropped, more than 20 are, without
            any threshold: slow start takes so long.""",
            max(
                max(_mos(one, p, s))
                for one in (keeps, drops)
                for p in longest
                for s in drops.times[p]
            )
            < 2.0
            and all(min(_column(drops, p, NONE, "call.discarded_packets")) > 20 for p in longest),
        ),
    )


def _trip(path: Path) -> str:
    return f"{path.rtt_s * 1e3:.0f} ms"


def _column(one: Law, path: Path, s: int, name: str) -> list[float]:
    codec = next(codec for codec, rate in PACKETS.items() if rate == path.packets_per_s)
    where = {"round trip": _trip(path), "codec": codec, "profile": path.profile, "ssthresh": s}
    return one.rows.filter(**where).sort("replicate")[name].to_list()


def _mos(one: Law, path: Path, s: int) -> list[float]:
    return _column(one, path, s, "call.mos")


def _mean(one: Law, path: Path) -> float:
    """Mean score without a threshold."""
    scores = _mos(one, path, NONE)
    return sum(scores) / len(scores)


def others(page: Page, rows: pl.DataFrame) -> None:
    """The cost of a large threshold to others."""
    page.heading("What goes wrong if it is too large")
    enough = ", ".join(f"{s} packets at {trip}" for trip, s in ENOUGH.items())
    page.text(
        f"""The call begins beside another over UDP, with a bulk upload over TCP or without, on
        lines of 256 kbit/s and 2 Mbit/s whose queues hold 150 ms; {SHOWN}. What no threshold
        changes against one just above {RULES[DROPS][0]} ({enough}), in the first 20 s: means and
        Student's intervals of 99 % on paired differences; in bold those that leave out 0."""
    )
    shown = {
        "call.lost_packets": ("own packets lost", 1, 1.0),
        "bystander.lost_packets": ("the other call's", 1, 1.0),
        "upload.lost_packets": ("the upload's", 1, 1.0),
        "upload.goodput_bps": ("upload, kbit/s", 1, 1e-3),
        "call.mos": ("own MOS", 2, 1.0),
        "bystander.mos": ("the other's MOS", 2, 1.0),
    }
    keys = ("sender", "beside", "line", "round trip", "profile")
    found: dict[tuple[str, ...], dict[str, Interval]] = {}
    for key, part in rows.group_by(*keys, maintain_order=True):
        words = tuple(map(str, key))
        part = part.filter(pl.col("ssthresh").is_in([ENOUGH[words[3]], str(NONE)]))
        found[words] = {
            name: paired(part, "ssthresh", ENOUGH[words[3]], name, 0.99)[str(NONE)]
            for name in shown
        }
    differ = {key: cells for key, cells in found.items() if _any(cells)}
    page.table(
        ("setting", *(words for words, _, _ in shown.values())),
        [
            (", ".join(key), *(_bold(cells[name], *form) for name, (_, *form) in shown.items()))
            for key, cells in differ.items()
        ],
    )
    narrow = [
        cells
        for key, cells in found.items()
        if key[:4] == (KEEPS, "a call", "256 kbit/s", "600 ms")
    ]
    lost = [name for name in shown if name.endswith("lost_packets")]
    drops = [cells for key, cells in found.items() if key[0] == DROPS]
    page.claims_list(
        (
            f"""The {len(found) - len(differ)} settings that are not in the table show no
            difference in any column. **A sender that drops what is stale may leave the threshold
            out**: in its {len(drops)} settings nobody's losses differ, nor the other's MOS, and
            its own nowhere for the worse. It differs at all in {sum(map(_any, drops))} of them;
            the upload loses at most
            {max(-cells["upload.goodput_bps"].mean for cells in drops) / 1e3:.0f} kbit/s.""",
            not any(cells[name].differs for cells in drops for name in (*lost, "bystander.mos"))
            and all(cells["call.mos"].high >= 0 for cells in drops),
        ),
        (
            f"""**A backlog kept bursts, and hits itself most**: on the narrow line with 600 ms
            and no upload, no threshold costs the call {_both(narrow, "call.lost_packets")}
            packets by RFC 4341's and ns-2's slow start, and the other call
            {_both(narrow, "bystander.lost_packets")} of its thousand. At {ENOUGH["600 ms"]}
            packets neither loses any.""",
            len(narrow) == 2
            and all(
                cells["call.lost_packets"].low > cells["bystander.lost_packets"].high > 0
                for cells in narrow
            )
            and _lost(rows, "256 kbit/s", "600 ms", ENOUGH["600 ms"]) == 0,
        ),
        (
            """On the line of 2 Mbit/s nobody's losses change, with an upload or without.""",
            not any(
                cells[name].differs
                for key, cells in found.items()
                if key[2] == "2 Mbit/s"
                for name in lost
            ),
        ),
    )
    shown_rows = rows.filter(pl.col("round trip") == "600 ms", line="256 kbit/s", beside="a call")
    page.figure(
        "harm",
        figures.harm(shown_rows, (KEEPS, DROPS)),
        "Packets lost against the initial threshold on a line of 256 kbit/s with 600 ms, no upload",
    )
    page.text(
        """256 kbit/s, 600 ms, two calls and no upload, the first 20 s; intervals of 95 %, means
        over the seeds."""
    )
    tight = rows.filter(line="256 kbit/s", beside="a call and an upload")
    never = tight.filter(pl.col("settled").is_null())
    unlost = never.filter(pl.col("call.lost_packets") == 0)
    page.claim(
        f"""**What a threshold cannot do**: beside an upload on the line of 256 kbit/s the call
        is not settled within 20 s in {never.height} of {tight.height} runs, whatever the
        threshold; in all but {unlost.height} of these it lost packets, and each loss halves the
        window and sets the threshold again.""",
        never.height > 0.9 * tight.height,
        unlost.height < 0.1 * never.height,
    )


def _any(cells: Mapping[str, Interval]) -> bool:
    return any(cell.differs for cell in cells.values())


def _both(cells: Sequence[Mapping[str, Interval]], name: str) -> str:
    return " and ".join(cell[name].show(1) for cell in cells)


def _bold(cell: Interval, digits: int, scale: float) -> str:
    words = cell.show(digits, scale, sign=True)
    return f"**{words}**" if cell.differs else words


def _lost(rows: pl.DataFrame, line: str, trip: str, s: str) -> int:
    """Packets lost by both calls without an upload, all seeds and senders."""
    part = rows.filter(pl.col("round trip") == trip, line=line, beside="a call", ssthresh=s)
    return int(part["call.lost_packets"].sum() + part["bystander.lost_packets"].sum())


if __name__ == "__main__":
    main()
