#!/usr/bin/env python3
"""Determine the initial slow-start threshold that CCID 2 needs for a given round-trip time.

    .venv/bin/python validation/questions/ssthresh.py [--dirty]

Runs the three studies scenarios/questions/ssthresh*.toml and writes docs/questions/ssthresh.md with
its figures. This takes two or three minutes on two cores. The statements of the page are asserted:
if one is false, the script raises an error and writes no page.
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
"""The proposed threshold for each kind of sender, before rounding up to whole packets."""
ENOUGH = {"200 ms": "20", "600 ms": "40"}
"""The smallest threshold above N + 5 in the study with competing traffic, by round-trip time."""


def settled(arrived: Sequence[int], packets_per_s: float) -> float | None:
    """Return the seconds after which all bins but the last are within 10 % of the codec's rate.

    Return None if this period is shorter than two seconds.
    """
    full = packets_per_s * BIN_S
    astray = [i for i, n in enumerate(arrived[:-1]) if abs(n - full) > BAND * full]
    last = max(astray, default=-1)
    return None if last >= len(arrived) - 5 else BIN_S * (last + 1)


def measure(result: Result, *, begin_s: float, until_s: float = math.inf) -> Iterator[Row]:
    """Yield the settling time of the call, from `begin_s` on, and the measures of all flows."""
    bins = result.series("call").sort("time_s")
    # `time_s` is the end of a bin.
    bins = bins.filter(pl.col("time_s").is_between(begin_s + 1e-9, until_s + 1e-9))
    codec = PACKETS[result.settings.get("codec", SHOWN)]
    row: Row = {"settled": settled(bins["received_packets"].to_list(), codec)}
    for flow in result.flows.iter_rows(named=True):
        for name in ("mos", "lost_packets", "discarded_packets", "goodput_bps"):
            row[f"{flow['name']}.{name}"] = flow[name]
    yield row


def rule(sender: str, n: float) -> int:
    """Return the proposed threshold in whole packets."""
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
        "Initial ssthresh by round-trip time",
        """A study of 2010 (`talkspurt reproduce nor2010`) found that G.711 over CCID 2 takes 20
        s to become stable on a link with a delay of 300 ms if the initial slow-start threshold
        is 20 packets, and much less time if the threshold is 50 packets or more. This page
        determines the threshold that a path requires.""",
    )
    answer(page, laws)
    theory(page, laws)
    opinion(page, *laws)
    others(page, beside.rows)
    page.write(alone, today, beside)


def answer(page: Page, laws: Sequence[Law]) -> None:
    """Write the proposed thresholds and their verification."""
    keeps, drops = laws
    paths = len(keeps.times)
    page.heading("Summary")
    page.text(
        f"""**N** is the packet rate multiplied by the round-trip time: the number of packets in
        flight when the call sends at its full rate. A call is *settled* from the time at which
        the number of packets received in every later bin of {BIN_S:g} s is within
        {100 * BAND:.0f} % of the codec's. A threshold *suffices* if neither it nor any larger
        threshold tried settles more than one such bin later than a sender without a threshold.
        *Keeps all*: the sender generates speech from its DCCP-Request on and sends all of it,
        like the sender of ns-2. *Drops stale*: the sender generates speech once the connection
        is established, and drops packets that have waited for 150 ms."""
    )
    lead = max(t[NONE] - min(t.values()) for one in laws for t in one.times.values())
    quiet = max(p.in_flight for p in keeps.times if _nothing_below(laws, p.in_flight))
    half = {one.sender: _half(one) for one in laws}
    page.claims_list(
        (
            f"""**On an uncongested path, no threshold is best**: on {paths} paths with either
            sender, none of the thresholds tried settled more than {lead:.2f} s earlier than a
            sender without a threshold. This agrees with RFC 4341 (section 5: the initial
            threshold may be arbitrarily high).""",
            lead <= BIN_S,
        ),
        (
            f"""**A sender that drops stale packets needs a threshold of {RULES[DROPS][0]}**,
            rounded up: on each of the {paths} paths, the smallest threshold tried at or above
            this value settles at most one bin later than a sender without a threshold.""",
            all(drops.cost(p, rule(DROPS, p.in_flight)) <= BIN_S for p in drops.times),
        ),
        (
            f"""**A sender that keeps all packets needs a threshold of {RULES[KEEPS][0]}**, because
            it must send its backlog in addition to the current speech. This threshold suffices
            on each of the {paths} paths.""",
            all(keeps.cost(p, rule(KEEPS, p.in_flight)) <= BIN_S for p in keeps.times),
        ),
        (
            f"""**Up to N = {quiet:g} the threshold does not matter**: every threshold tried
            suffices, including 2. At {PACKETS[SHOWN]:.0f} packets per second, this corresponds
            to a round-trip time of {1e3 * quiet / PACKETS[SHOWN]:.0f} ms.""",
            _nothing_below(laws, quiet) and quiet >= 5,
        ),
        (
            f"""**A threshold that is too small delays settling**: half of the proposed value
            costs up to {half[DROPS]:.1f} s if the sender drops stale packets, and up to
            {half[KEEPS]:.1f} s if it keeps all packets.""",
            half[DROPS] > 5 and half[KEEPS] > 5,
        ),
    )
    page.figure(
        "needed",
        figures.needed(laws, RULES),
        "Minimum sufficient initial threshold against N, measured and proposed, for both senders",
    )
    page.text(
        """Triangles show the smallest threshold tried that suffices. The line below each
        triangle extends to the next smaller threshold, which does not suffice. The table shows
        least-squares lines through the midpoints, in packets, with 95 % intervals from
        resampled paths. Paths on which all thresholds suffice are excluded."""
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
        ("sender", "proposed", "slope", "offset", "rms error", "minimum threshold / N", "paths"),
        rows,
    )
    page.claim(
        """If the sender drops stale packets, the slope is about 1: one packet of threshold per
        packet in flight. If it keeps all packets, the slope is about 2.5 and the offset is
        negative. The proposed rule passes through the origin, so for small N it requires a
        larger threshold than necessary.""",
        fits[DROPS].slope_ends[0] > 0.9 and fits[DROPS].slope_ends[1] < 1.2,
        2.0 < fits[KEEPS].slope_ends[0] < 2.5 < fits[KEEPS].slope_ends[1] < 3.0,
        fits[KEEPS].offset_ends[1] < 0,
    )


def _minus(words: str) -> str:
    return words.replace("-", "−")


def _nothing_below(laws: Sequence[Law], n: float) -> bool:
    """Whether every threshold tried suffices on paths with at most `n` packets in flight."""
    return not any(one.path.in_flight <= n for law in laws for one in law.informative)


def _half(one: Law) -> float:
    """Return the maximum cost of half of the proposed threshold, if the call settled."""
    costs = [one.cost(p, rule(one.sender, p.in_flight) / 2) for p in one.times]
    return max(cost for cost in costs if math.isfinite(cost))


def theory(page: Page, laws: Sequence[Law]) -> None:
    """Write the closed forms and their accuracy."""
    page.heading("Closed form of the settling time")
    page.text(
        """Slow start begins with a window of w₀ packets and multiplies it by g per round trip:
        4 and 1.5 according to RFC 4341 (one packet for every two acknowledged), 3 and 2 in
        ns-2. Above the threshold s, the window grows by one packet per round trip. After k =
        log(s / w₀) / log g round trips, the window is s. The codec has then generated N (k + 1)
        packets (the handshake took one round trip), of which the sender has sent (s − w₀) / (g
        − 1). The remainder is the backlog B. It drains while the window grows from s by one
        packet per round trip and the codec generates N more packets per round trip:"""
    )
    page.code(
        "keeps all     T = RTT · (3/2 + k + √((s − N)² + 2 B) − (s − N)),   "
        "B = N (k + 1) − (s − w₀) / (g − 1)",
        "drops stale   T = RTT · (1/2 + log(min(s, N + 2) / w₀) / log g + max(0, N + 2 − s))",
    )
    page.text(
        """If slow start alone drains the backlog before the window reaches s, T is RTT · (3/2 +
        k) with N (k + 1) = w₀ (gᵏ − 1) / (g − 1). The 2 in the second form results from Ack
        Ratio 2: an acknowledgement covers two packets, and is late for the first of them. No
        parameter is fitted."""
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
            "settling times",
            "mean error",
            "rms error",
            "largest error",
            "within 1 s or 10 %",
            "minimum threshold exact or adjacent",
        ),
        rows,
    )
    page.figure(
        "settling",
        figures.settling(laws, PACKETS[SHOWN]),
        "Settling time against the initial threshold, measured and by the closed form",
    )
    page.text(f"{SHOWN}. Points show means over the seeds, lines show the closed form.")
    page.claim(
        """On average the closed form is early by less than one bin; measured times are rounded
        up to a bin. Its ten largest errors all occur at thresholds below N.""",
        all(-BIN_S < off.mean() < 0 for off in errors),
        all(
            small
            for one in laws
            for _, _, small in sorted(one.errors(), key=lambda e: -abs(e[1]))[:10]
        ),
    )


def opinion(page: Page, keeps: Law, drops: Law) -> None:
    """Write the effect on listening quality."""
    page.heading("Listening quality")
    page.text(
        f"""The table shows the MOS of the first 20 s of speech with a playout buffer of 150 ms
        for {SHOWN}. The sender drops stale packets and uses RFC 4341's slow start. The
        threshold tried is in parentheses. Differences are paired by seed, with Student's 95 %
        intervals. Only the start time varies between seeds."""
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
    header = ("RTT", "N", "half of N", RULES[DROPS][0], "no threshold", "gain over half")
    page.table(header, rows)
    best, where = max(gains, key=lambda gain: gain[0].mean)
    far = [p for p in drops.times if p.rtt_s >= 0.2]
    longest = [p for p in drops.times if p.rtt_s == 0.6]
    page.claims_list(
        (
            f"""On all {len(drops.times)} paths, the MOS without a threshold equals the MOS with
            {RULES[DROPS][0]}: the largest difference for a seed is {max(rest):.3f}.""",
            max(rest) < 0.01,
        ),
        (
            f"""A threshold of half of N lowers the MOS by up to {best.show(2)}, at
            {where.packets_per_s:.0f} packets per second and a round-trip time of
            {_trip(where)}.""",
            best.low > 1,
        ),
        (
            f"""**Keeping all packets lowers the MOS**: without a threshold, a sender that keeps
            all packets scores lower than a sender that drops stale packets on each of the
            {len(far)} paths with a round-trip time of at least 200 ms, by up to
            {max(_mean(drops, p) - _mean(keeps, p) for p in far):.2f}.""",
            all(_mean(drops, p) > _mean(keeps, p) for p in far),
        ),
        (
            """**At long round-trip times, the MOS is low with every threshold**: at 600 ms the
            first 20 s score below 2 with either sender. A sender that drops stale packets
            drops more than 20 of them even without a threshold, because slow start takes
            long.""",
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
    """Return the mean MOS without a threshold."""
    scores = _mos(one, path, NONE)
    return sum(scores) / len(scores)


def others(page: Page, rows: pl.DataFrame) -> None:
    """Write the effect of a large threshold on competing flows."""
    page.heading("Effect of a large threshold on competing flows")
    enough = ", ".join(f"{s} packets at {trip}" for trip, s in ENOUGH.items())
    page.text(
        f"""The call ({SHOWN}) starts while another call over UDP is active, with or without a
        bulk upload over TCP, on lines of 256 kbit/s and 2 Mbit/s with queues of 150 ms. The
        table shows the change from a threshold just above {RULES[DROPS][0]} ({enough}) to no
        threshold, in the first 20 s: means of paired differences with Student's 99 %
        intervals. Differences whose interval excludes 0 are in bold."""
    )
    shown = {
        "call.lost_packets": ("packets lost: call", 1, 1.0),
        "bystander.lost_packets": ("packets lost: other call", 1, 1.0),
        "upload.lost_packets": ("packets lost: upload", 1, 1.0),
        "upload.goodput_bps": ("upload goodput / (kbit/s)", 1, 1e-3),
        "call.mos": ("MOS: call", 2, 1.0),
        "bystander.mos": ("MOS: other call", 2, 1.0),
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
            difference in any column. **A sender that drops stale packets needs no threshold**:
            in its {len(drops)} settings, neither the losses of any flow nor the MOS of the
            other call differ, and the MOS of the call itself is not lower. A difference in any
            column occurs in {sum(map(_any, drops))} of these settings. The goodput of the
            upload falls by at most
            {max(-cells["upload.goodput_bps"].mean for cells in drops) / 1e3:.0f} kbit/s.""",
            not any(cells[name].differs for cells in drops for name in (*lost, "bystander.mos"))
            and all(cells["call.mos"].high >= 0 for cells in drops),
        ),
        (
            f"""**A sender that keeps its backlog sends bursts, and mostly loses its own
            packets**: on the narrow line with a round-trip time of 600 ms and no upload, a
            sender without a threshold loses {_both(narrow, "call.lost_packets")} packets more
            with RFC 4341's and ns-2's slow start, and the other call loses
            {_both(narrow, "bystander.lost_packets")} of its thousand packets. At a threshold of
            {ENOUGH["600 ms"]} packets, neither call loses any.""",
            len(narrow) == 2
            and all(
                cells["call.lost_packets"].low > cells["bystander.lost_packets"].high > 0
                for cells in narrow
            )
            and _lost(rows, "256 kbit/s", "600 ms", ENOUGH["600 ms"]) == 0,
        ),
        (
            """On the line of 2 Mbit/s, the losses of no flow change, with or without an upload.""",
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
        "Lost packets against the initial threshold at 256 kbit/s and 600 ms, without an upload",
    )
    page.text(
        """Line of 256 kbit/s, round-trip time of 600 ms, two calls and no upload, first 20 s.
        Points are means over the seeds with 95 % intervals."""
    )
    tight = rows.filter(line="256 kbit/s", beside="a call and an upload")
    never = tight.filter(pl.col("settled").is_null())
    unlost = never.filter(pl.col("call.lost_packets") == 0)
    page.claim(
        f"""**No threshold lets the call settle beside an upload on a slow line**: with an upload
        on the line of 256 kbit/s, the call does not settle within 20 s in {never.height} of
        {tight.height} runs, regardless of the threshold. In all but {unlost.height} of these
        runs it lost packets, and each loss halves the window and sets a new threshold.""",
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
    """Return the packets lost by both calls without an upload, over all seeds and senders."""
    part = rows.filter(pl.col("round trip") == trip, line=line, beside="a call", ssthresh=s)
    return int(part["call.lost_packets"].sum() + part["bystander.lost_packets"].sum())


if __name__ == "__main__":
    main()
