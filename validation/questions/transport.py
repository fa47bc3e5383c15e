#!/usr/bin/env python3
"""Compare transports for voice, video and data at equal packet sizes.

    .venv/bin/python validation/questions/transport.py [--dirty]

Runs the three studies scenarios/questions/transport-*.toml and writes docs/questions/transport.md
with its figures. This takes two minutes on two cores. The statements of the page are asserted: if
one is false, the script raises an error and writes no page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl
import transport_figures as figures
from common import Interval, Page, Row, ask, begin, paired
from transport_verdicts import CONFIDENCE, Cell, Condition, Kind, mean_of, words_of

from talkspurt import metrics

if TYPE_CHECKING:
    from talkspurt.result import Result

BEGIN_S, STOP_S = 10.0, 20.0
"""Start of the measurement window, and end of the data source."""
MANY = 3.1
"""MOS at R = 60; below it, nearly all users are dissatisfied (G.107 Annex B)."""
WHOLE = ("TCP", "SCTP")
"""Transports that deliver all data."""
SLOW = ("CCID 2", "CCID 3", "TFRC")
ORDERED = ("TCP", "TCP long", "SCTP")

Of = Callable[["Result", Mapping[str, Any]], Row]


def voice(_: Result, flow: Mapping[str, Any]) -> Row:
    """Return the MOS of the call."""
    return {"score": flow["mos"]}


def video(_: Result, flow: Mapping[str, Any]) -> Row:
    """Return the percentage of frames that were complete in time."""
    whole = flow["video_frames_complete"] - flow["video_frames_late"]
    return {"score": 100 * whole / flow["video_frames"]}


def data(result: Result, flow: Mapping[str, Any]) -> Row:
    """Return the percentage delivered, and the time from the source's end to the last arrival."""
    series = result.series("main")
    arrived = series.filter(pl.col("goodput_bps") > 0)["time_s"].to_list()
    delivered = flow["goodput_bps"] * (result.duration_s - BEGIN_S) / 8
    share = 100 * delivered / (1000 * flow["generated_packets"])
    return {"share": share, "score": max(arrived, default=math.nan) - STOP_S}


def measure(result: Result, *, of: Of) -> Iterator[Row]:
    """Yield a row per run: score, packet sizes, effect on the upload, and circuit breaker."""
    flow, upload = (
        result.flows.row(by_predicate=pl.col("name") == name, named=True)
        for name in ("main", "upload")
    )
    stopped = metrics.compute(result, "circuit_breaker", "main")["value"].item()
    yield {
        **of(result, flow),
        "received": flow["received_packets"],
        "ip_bytes": flow["sent_bytes"] / max(flow["sent_packets"], 1),
        "payload_bytes": flow["payload_bytes"] / max(flow["sent_packets"], 1),
        "upload_bps": upload["goodput_bps"],
        "stopped_s": stopped,
    }


def main() -> None:
    """Run the studies and write the page."""
    begin("transport", __doc__ or "")
    asked = [
        ask(f"transport-{of.__name__}", partial(measure, of=of)) for of in (voice, video, data)
    ]
    kinds = [
        Kind("voice", "", 1, 0.1, 2, asked[0]),
        Kind("video", " %", 1, 1.0, 1, asked[1]),
        Kind("data", " s", -1, 0.5, 1, asked[2], WHOLE),
    ]
    page = Page(
        "transport",
        "Transports for voice, video and data",
        """Two studies compared transports in ns-2, but their results depend on unequal packet
        sizes, greedy senders and agents without sinks (`talkspurt reproduce wheeb2017` and
        `sarao2019`; [Studies, re-run](../studies.md)). This page repeats the comparison. Each
        transport is connected to a receiving peer, each packet carries the same amount of
        source data, and the lines have sufficient or insufficient capacity for the flow.""",
    )
    answer(page, kinds)
    say_voice(page, kinds[0])
    say_video(page, kinds[1])
    say_data(page, kinds[2])
    others(page, kinds)
    sound(page, kinds)
    page.write(*asked)


# Tables.


def show(kind: Kind, cell: Cell) -> str:
    """Format a cell: bold if as good as the best, in parentheses if inconclusive."""
    text = f"{cell.score.mean:.{kind.digits}f}"
    return f"**{text}**" if cell.good else f"({text})" if cell.word == "open" else text


def table(page: Page, kind: Kind) -> None:
    """Write a table of the scores of one kind of traffic."""
    rows = [
        (words_of(condition), *(show(kind, cell) for cell in cells.values()))
        for condition, cells in kind.all().items()
    ]
    page.table(("line, delay, load", *(kind.among or kind.transports)), rows)


def answer(page: Page, kinds: list[Kind]) -> None:
    """Write the table of recommendations."""
    page.heading("Summary")
    seeds = kinds[0].asked.study.replications
    page.text(
        f"""Each cell names the best transport and those shown to be as good, with the mean of
        the best: the MOS for **voice**, the frames complete within 400 ms for **video**, and
        the time from the end of the source to the last arrival for **data**. *As good* means
        that the {100 * CONFIDENCE:.0f} % interval of the paired difference from the best
        ({seeds} seeds, Student's) lies within {kinds[0].margin:g} of MOS, {kinds[1].margin:g} %
        of the frames or {kinds[2].margin:g} s. The interval of a transport in parentheses
        includes 0 but exceeds this margin: neither a difference nor its absence was shown.
        *none* means that no transport reaches an acceptable MOS. Data is compared only for
        transports that deliver all of it: {" and ".join(WHOLE)}."""
    )
    rows = []
    for condition in kinds[0].conditions():
        cells = [kind.cells(condition) for kind in kinds]
        named = [_named(kind, cell) for kind, cell in zip(kinds, cells, strict=True)]
        rows.append((words_of(condition), *named))
    page.table(("line, delay, load", "voice", "video", "data"), rows, words=True)
    page.text(
        """*Wide* lines have several times the capacity that the flow needs, *narrow* lines
        about four fifths of it. *Lossy* lines have the capacity of wide lines and lose one
        packet in fifty in each direction. *Short* and *long* lines are those with the smaller
        and the larger delay. *upload* is a competing TCP flow with CUBIC and packets of the
        same length. *TCP* sends one packet of the source per segment. *TCP long* may combine
        queued data into longer segments, as hosts do. *SCTP partial* is unordered and abandons
        messages after 100 ms (voice) or 300 ms (video)."""
    )
    speech, pictures, bulk = (kind.all() for kind in kinds)
    near = [condition for condition in speech if condition[:2] == ("lossy", "20 ms")]
    fits = [condition for condition in speech if condition[0] != "narrow"]
    plain = [condition for condition in fits if condition not in near]
    page.claims_list(
        (
            """**Voice**: UDP or SCTP partial on lines with sufficient capacity. The exception
            is the short lossy line, where TCP long is better because its retransmissions
            arrive in time.""",
            all(speech[c][name].good for c in plain for name in ("UDP", "SCTP partial"))
            and all(speech[c]["TCP long"].word == "best" for c in near),
        ),
        (
            """**Video**: UDP on lines with sufficient capacity, except for the short lossy line,
            where SCTP partial is better.""",
            all(pictures[c]["UDP"].good for c in plain)
            and all(pictures[c]["SCTP partial"].word == "best" for c in near),
        ),
        (
            """**Data**: TCP. It is not worse than SCTP in any condition.""",
            all(cells["TCP"].word != "worse" for cells in bulk.values()),
        ),
        (
            """**DCCP's CCID 2 and 3 and TFRC** are among the best for voice only where all
            transports are, alone on the wide short line. For video they are never among the
            best at a delay of 150 ms with an upload or with losses.""",
            not any(
                speech[c][name].good
                for c in speech
                if c != ("wide", "20 ms", "alone")
                for name in SLOW
            )
            and not any(
                pictures[c][name].good
                for c in pictures
                if c[1] == "150 ms" and (c[2] == "upload" or c[0] == "lossy")
                for name in SLOW
            ),
        ),
    )


def _named(kind: Kind, cells: Mapping[str, Cell]) -> str:
    best = next(name for name, cell in cells.items() if cell.word == "best")
    good = [name for name, cell in cells.items() if cell.good]
    rest = [name for name, cell in cells.items() if not cell.good]
    unshown = [name for name in rest if cells[name].word == "open"]
    if len(cells) > len(WHOLE) and not rest:
        names = "all"
    elif rest and len(good) > 2 * len(rest) and not unshown:
        names = f"all but {', '.join(rest)}"
    else:
        names = ", ".join([best] + [name for name in good if name != best])
    names += f" ({', '.join(unshown)})" if unshown else ""
    score = cells[best].score
    words = f"{names}: {score.mean:.{kind.digits}f}{kind.unit}"
    return f"none; {words}" if kind.name == "voice" and score.high < MANY else words


# Results.


def say_voice(page: Page, kind: Kind) -> None:
    """Write the results for voice."""
    page.heading("Voice")
    page.text(
        """The table shows the MOS of 30 s of G.711 in packets of 20 ms, with a playout buffer
        of 150 ms. The best transport and those as good are in bold. Those for which no
        difference from the best was shown are in parentheses. All others are worse."""
    )
    table(page, kind)
    figure = figures.scores(kind, ("score", "MOS", kind.transports))
    page.figure("voice", figure, "MOS by condition and transport")
    found = kind.all()
    fits = {condition: cells for condition, cells in found.items() if condition[0] != "narrow"}
    narrow = [cells for condition, cells in found.items() if condition[0] == "narrow"]
    near, far = ("lossy", "20 ms", "alone"), ("lossy", "150 ms", "alone")
    behind = [kind.gap(condition, "UDP", "CCID 4") for condition in fits]
    partial_gap = [kind.gap(condition, "UDP", "SCTP partial") for condition in fits]
    repair = kind.gap(near, "TCP long", "UDP")
    short = kind.gap(("lossy", "20 ms", "upload"), "TCP long", "TCP")
    page.claims_list(
        (
            """**Alone on the wide short line the transport does not matter**: all are equally
            good.""",
            all(cell.good for cell in found["wide", "20 ms", "alone"].values()),
        ),
        (
            f"""**Of the DCCP and TFRC congestion controls, only CCID 4 suits a call**: on lines
            with sufficient capacity, its MOS is at most {max(one.mean for one in behind):.2f}
            below that of UDP. {_list(SLOW)} score below {max(_worst(fits, SLOW)):.1f} on the
            long lossy line.""",
            max(one.high for one in behind) < 0.3
            and all(mean < 1.3 for mean in mean_of(found[far], SLOW)),
        ),
        (
            f"""**SCTP partial is as good as UDP** on lines with sufficient capacity: the
            intervals of its paired differences from UDP lie within
            {max(max(-g.low, g.high) for g in partial_gap):.2f}.""",
            max(max(-gap.low, gap.high) for gap in partial_gap) < 0.25,
        ),
        (
            f"""**Retransmission raises the MOS on a short line and lowers it on a long line.**
            At 20 ms with losses, TCP long is the best, {repair.show(2)} above UDP, because
            retransmitted data arrives before its playout time. At 150 ms, {_list(ORDERED)}
            score at most {max(mean_of(found[far], ORDERED)):.2f}, and UDP scores
            {found[far]["UDP"].score.mean:.2f}.""",
            found[near]["TCP long"].word == "best"
            and repair.low > 0
            and max(mean_of(found[far], ORDERED)) < 1.2
            and found[far]["UDP"].score.low > MANY,
        ),
        (
            f"""**Small segments cost TCP throughput**: with the upload on the short lossy line,
            TCP long scores {short.show(2)} above TCP. TCP counts its congestion window in
            segments.""",
            short.low > 0.2,
        ),
        (
            f"""**On a line with insufficient capacity, no transport suffices**: none reaches a
            MOS of {MANY:g}. UDP scores best there, but starves the upload (see below).""",
            all(cell.score.high < MANY for cells in narrow for cell in cells.values())
            and all(cells["UDP"].word == "best" for cells in narrow),
        ),
    )


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1]


def _worst(found: Mapping[Condition, Mapping[str, Cell]], names: tuple[str, ...]) -> list[float]:
    """Return the means of some transports on the long lossy line, rounded up to a tenth."""
    means = [
        mean
        for condition, cells in found.items()
        if condition[:2] == ("lossy", "150 ms")
        for mean in mean_of(cells, names)
    ]
    return [int(mean * 10 + 1) / 10 for mean in means]


def say_video(page: Page, kind: Kind) -> None:
    """Write the results for video."""
    page.heading("Video")
    page.text(
        """The table shows the percentage of frames complete within 400 ms, for 30 s of video at
        200 kbit/s and 25 frames per second with two packets of 500 bytes per frame. TCP long
        sends a frame in one segment: its packets are longer than those of the other transports,
        and half as many packets can be lost."""
    )
    table(page, kind)
    figure = figures.scores(kind, ("score", "frames complete in time / %", kind.transports))
    page.figure("video", figure, "Frames complete in time by condition and transport")
    found = kind.all()
    near = [("lossy", "20 ms", beside) for beside in ("alone", "upload")]
    far = [("lossy", "150 ms", beside) for beside in ("alone", "upload")]
    narrow = [cells for condition, cells in found.items() if condition[0] == "narrow"]
    both = 100 * 0.98**2
    busy = found["wide", "150 ms", "upload"]
    gains = [kind.gap(condition, "SCTP partial", "UDP") for condition in near]
    page.claims_list(
        (
            """**Alone on the wide short line the transport does not matter**, as for voice.""",
            all(cell.good for cell in found["wide", "20 ms", "alone"].values()),
        ),
        (
            f"""**UDP loses as many frames as the loss rate predicts**: alone on the lossy lines,
            {found[near[0]]["UDP"].score.show(1)} and {found[far[0]]["UDP"].score.show(1)} % of
            the frames are complete. The probability that both packets of a frame arrive is
            0.98² = {both:.1f} %.""",
            all(
                found[c]["UDP"].score.low < both < found[c]["UDP"].score.high
                for c in (near[0], far[0])
            ),
        ),
        (
            f"""**On the short lossy line SCTP partial is the best**, alone and with the upload:
            it completes more frames than UDP, by {gains[0].show(1)} and {gains[1].show(1)} % of
            all frames.""",
            all(found[condition]["SCTP partial"].good for condition in near)
            and all(gap.low > 1 for gap in gains),
        ),
        (
            f"""**On the long lossy line only CCID 4 comes close to UDP**: it completes
            fewer frames, by {kind.gap(far[0], "UDP", "CCID 4").show(1)} and
            {kind.gap(far[1], "UDP", "CCID 4").show(1)} % of all frames. All others are worse by
            at least {_second(kind, far):.0f} % of all frames.""",
            all(
                cell.word == "worse"
                for condition in far
                for name, cell in found[condition].items()
                if name not in ("UDP", "CCID 4")
            )
            and all(kind.gap(condition, "UDP", "CCID 4").high < 10 for condition in far)
            and _second(kind, far) > 15,
        ),
        (
            f"""**With the upload on the wide long line** UDP is the best. All others except
            {_others_near(busy)} are behind by more than 5 % of all frames.""",
            busy["UDP"].word == "best" and _others_near(busy) == "CCID 4",
        ),
        (
            f"""**On the narrow line no transport suffices**: none completes more than
            {max(cell.score.mean for cells in narrow for cell in cells.values()):.0f} % of the
            frames. The bit rate of the video must be reduced.""",
            all(cell.score.high < 51 for cells in narrow for cell in cells.values()),
        ),
    )


def _second(kind: Kind, conditions: list[Condition]) -> float:
    """Return the distance from UDP to the best transport other than UDP and CCID 4."""
    return min(
        kind.gap(condition, "UDP", name).mean
        for condition in conditions
        for name in kind.transports
        if name not in ("UDP", "CCID 4")
    )


def _others_near(cells: Mapping[str, Cell]) -> str:
    """List the transports less than 5 below the best, with an interval above −10."""
    return ", ".join(
        name
        for name, cell in cells.items()
        if cell.difference is not None and cell.difference.low > -10 and cell.difference.mean > -5
    )


def say_data(page: Page, kind: Kind) -> None:
    """Write the results for data."""
    page.heading("Data")
    page.text(
        """The source sends for ten seconds at 500 kbit/s in packets of 1000 bytes. The table
        shows the percentage that arrived and, for the two transports that deliver everything,
        the seconds from the end of the source to the last byte. CCID 4, which is designed for
        small packets, and partial reliability are excluded."""
    )
    rows = []
    for condition, cells in kind.all().items():
        shares = [
            f"{kind.part(condition).filter(transport=name)['share'].mean():.1f}"
            for name in kind.transports
        ]
        rows.append((words_of(condition), *shares, *(show(kind, cells[name]) for name in WHOLE)))
    header = [f"{name}, %" for name in kind.transports] + [f"{name}, s" for name in WHOLE]
    page.table(("line, delay, load", *header), rows)
    page.figure(
        "data",
        figures.scores(
            kind,
            ("share", "arrived / %", kind.transports),
            ("score", "last arrival after end of source / s", WHOLE),
        ),
        "Percentage of data that arrived and time of the last arrival, by condition and transport",
    )
    found = kind.all()
    whole = kind.rows.filter(pl.col("transport").is_in(WHOLE))
    rest = kind.rows.filter(~pl.col("transport").is_in(WHOLE))
    lossy = rest.filter(line="lossy")
    narrow = rest.filter(line="narrow", transport="UDP")
    faster = [c for c, cells in found.items() if kind.gap(c, "TCP", "SCTP").low > kind.margin]
    slower = [c for c, cells in found.items() if kind.gap(c, "SCTP", "TCP").low > kind.margin]
    page.claims_list(
        (
            f"""**Only {" and ".join(WHOLE)} deliver everything**, in each of {whole.height}
            runs. On the lossy lines, none of the other transports delivers everything in any of
            {lossy.height} runs.""",
            whole["share"].min() > 99.999 and lossy["share"].max() < 99.999,
        ),
        (
            f"""**UDP on the narrow line loses the data that exceeds the capacity**,
            {100 - narrow["share"].max():.0f} to {100 - narrow["share"].min():.0f} %. Transports
            with congestion control delay data instead, and lose less on average in each of
            these conditions.""",
            narrow["share"].max() < 80
            and all(
                part.filter(transport=name)["share"].mean()
                > part.filter(transport="UDP")["share"].mean()
                for condition in kind.conditions()
                if condition[0] == "narrow"
                for part in [kind.part(condition)]
                for name in SLOW
            ),
        ),
        (
            f"""**TCP finishes earlier than SCTP, or no difference was shown**: it finishes
            earlier in {len(faster)} conditions ({_conditions(faster)}), where the whole interval
            exceeds {kind.margin:g} s. It finishes later by this criterion in no condition.""",
            len(faster) > 0 and not slower,
        ),
    )


def _conditions(some: list[Condition]) -> str:
    return "; ".join(words_of(one) for one in some)


def others(page: Page, kinds: list[Kind]) -> None:
    """Write the effect on the upload."""
    page.heading("Effect on the upload")
    page.text(
        f"""The table shows the mean goodput of the upload in kbit/s. Values above the goodput
        beside UDP are in bold, values below it are in parentheses, if the
        {100 * CONFIDENCE:.0f} % interval of the paired difference excludes 0."""
    )
    names = kinds[0].transports
    rows, narrow, wide = [], [], []
    for kind in kinds:
        for condition in kind.conditions():
            if condition[2] != "upload":
                continue
            part = kind.part(condition)
            away = paired(part, "transport", "UDP", "upload_bps", CONFIDENCE)
            base = part.filter(transport="UDP")["upload_bps"].mean()
            cells = [_gain(base, away.get(name), name in kind.transports) for name in names]
            rows.append((f"{kind.name}: {condition[0]}, {condition[1]}", *cells))
            if kind.name != "data" and condition[0] == "narrow":
                narrow.append(base)
            if condition[0] == "wide" and condition[1] == "20 ms":
                wide += [abs(one.mean) / base for one in away.values()]
    page.table(("competing flow", *names), rows)
    udp_rows = pl.concat(
        kind.rows.filter(transport="UDP").select("line", pl.col("stopped_s").cast(pl.Float64))
        for kind in kinds
    )
    udp, stops = udp_rows.height, udp_rows.filter(pl.col("stopped_s").is_not_null())
    stopped, narrow_stopped = stops.height, stops.filter(line="narrow").height
    page.claims_list(
        (
            f"""**UDP above the line rate starves flows with congestion control**: beside voice
            or video over UDP on a narrow line, the goodput of the upload is at most
            {max(narrow) / 1e3:.1f} kbit/s.""",
            max(narrow) < 5e3,
        ),
        (
            f"""On the wide short line, the transport has little effect on the upload: its
            goodput differs by at most {100 * max(wide):.0f} % from the goodput beside UDP.""",
            max(wide) < 0.05,
        ),
        (
            f"""**RFC 8083's circuit breaker rarely triggers**: it would have stopped {stopped}
            of {udp} flows over UDP, all on narrow lines. It triggers only if a flow sends at
            more than ten times the rate of a TCP flow.""",
            stopped < 0.05 * udp and stopped == narrow_stopped,
        ),
    )


def _gain(base: float, away: Interval | None, there: bool) -> str:
    if not there:
        return "–"
    text = f"{(base + (away.mean if away else 0)) / 1e3:.0f}"
    if away is None or not away.differs:
        return text
    return f"**{text}**" if away.low > 0 else f"({text})"


def sound(page: Page, kinds: list[Kind]) -> None:
    """Write the checks of packet sizes, delivery and intervals."""
    page.heading("Checks of packet sizes, delivery and intervals")
    page.text(
        """The table shows the bytes of the source per data packet and, in parentheses, the
        bytes of the IP packet, on the wide short line without an upload. The difference is the
        header overhead of each transport."""
    )
    names = kinds[0].transports
    rows, uneven, single = [], [], []
    for kind in kinds:
        part = kind.part(("wide", "20 ms", "alone"))
        means = part.group_by("transport").agg(pl.col("payload_bytes", "ip_bytes").mean())
        sizes = {name: (payload, ip) for name, payload, ip in means.iter_rows()}
        cells = [f"{sizes[n][0]:.0f} ({sizes[n][1]:.0f})" if n in sizes else "–" for n in names]
        rows.append((kind.name, *cells))
        wide = kind.rows.filter(pl.col("transport") != "TCP long", line="wide")
        base = sizes["UDP"][0]
        off = (pl.col("payload_bytes") / base - 1).abs()
        single.append(wide.select("transport", off))
        means = wide.group_by("transport", "delay", "beside").agg(pl.col("payload_bytes").mean())
        uneven += means.select(off)["payload_bytes"].to_list()
    page.table(("source", *names), rows)
    runs = sum(kind.rows.height for kind in kinds)
    every = pl.concat([kind.rows.select("line", "beside", "received") for kind in kinds])
    fits = every.filter(pl.col("line") != "narrow")
    unheard = every.filter(line="narrow", received=0).height
    same, compared = _bootstrapped(kinds)
    farthest = pl.concat(single).sort("payload_bytes", descending=True)
    others = farthest.filter(pl.col("transport") != "SCTP")
    page.claims_list(
        (
            f"""In every condition with a wide line, the mean payload per packet differs from that
            of UDP by at most {100 * max(uneven):.1f} %, in a single run by at most
            {100 * farthest["payload_bytes"][0]:.1f} %: {farthest["transport"][0]} bundles chunks
            that it retransmits (RFC 9260 §6.3.3, E3). Other transports differ in a run by at most
            {100 * others["payload_bytes"].max():.1f} %. TCP long is excluded.""",
            max(uneven) < 0.05
            and farthest["transport"][0] == "SCTP"
            and others["payload_bytes"].max() < 0.05,
        ),
        (
            f"""Data arrived in each of the {fits.height} runs on wide and lossy lines. On narrow
            lines, no data arrived in {unheard} of {runs - fits.height} runs: beside the upload,
            a transport with congestion control may wait for half a minute or longer after
            consecutive losses.""",
            fits["received"].min() > 0 and unheard < 0.01 * (runs - fits.height),
        ),
        (
            f"""In {same} of {compared} comparisons with the best, the bootstrap (BCa) gives the
            same verdict as Student's interval. With {100 * CONFIDENCE:.0f} % intervals, one
            comparison in a hundred shows a difference by chance.""",
            same / compared > 0.9,
        ),
    )


def _bootstrapped(kinds: list[Kind]) -> tuple[int, int]:
    """Count the verdicts that the bootstrap confirms, and all verdicts."""
    pairs = [
        (cell.word, kind.cells(condition, "bootstrap")[name].word)
        for kind in kinds
        for condition, cells in kind.all().items()
        for name, cell in cells.items()
        if cell.word != "best"
    ]
    return sum(one == other for one, other in pairs), len(pairs)


if __name__ == "__main__":
    main()
