#!/usr/bin/env python3
"""Which transport for voice, video and data, at equal packet sizes and sound wiring?

    .venv/bin/python validation/questions/transport.py [--dirty]

Runs the three studies scenarios/questions/transport-*.toml and writes docs/questions/transport.md
with its figures; two minutes on two cores. The page's statements are asserted: if one is false, the
script aborts and no page is written.
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
"""The window's start, and when all of the data has been handed over."""
MANY = 3.1
"""MOS at R = 60, below which G.107 Annex B has nearly all users dissatisfied."""
WHOLE = ("TCP", "SCTP")
"""Transports that deliver all data."""
SLOW = ("CCID 2", "CCID 3", "TFRC")
ORDERED = ("TCP", "TCP long", "SCTP")

Of = Callable[["Result", Mapping[str, Any]], Row]


def voice(_: Result, flow: Mapping[str, Any]) -> Row:
    """The call's score."""
    return {"score": flow["mos"]}


def video(_: Result, flow: Mapping[str, Any]) -> Row:
    """Percentage of frames that were complete in time."""
    whole = flow["video_frames_complete"] - flow["video_frames_late"]
    return {"score": 100 * whole / flow["video_frames"]}


def data(result: Result, flow: Mapping[str, Any]) -> Row:
    """Percentage delivered, and the time from the last hand-over to the last arrival."""
    series = result.series("main")
    arrived = series.filter(pl.col("goodput_bps") > 0)["time_s"].to_list()
    delivered = flow["goodput_bps"] * (result.duration_s - BEGIN_S) / 8
    share = 100 * delivered / (1000 * flow["generated_packets"])
    return {"share": share, "score": max(arrived, default=math.nan) - STOP_S}


def measure(result: Result, *, of: Of) -> Iterator[Row]:
    """One run: its score, packets, effect on others, and whether it should have stopped."""
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
        "Which transport for voice, video and data?",
        """Two studies asked this of ns-2 and got answers that rest on unequal packets, greedy
        senders and agents without sinks (`talkspurt reproduce wheeb2017` and `sarao2019`;
        [Studies, re-run](../studies.md)). Asked again: each transport connected to a peer that
        listens, each packet with as much of the source, over lines it fits and does not fit.""",
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
    """A cell of a table: bold if as good as the best, in brackets if inconclusive."""
    text = f"{cell.score.mean:.{kind.digits}f}"
    return f"**{text}**" if cell.good else f"({text})" if cell.word == "open" else text


def table(page: Page, kind: Kind) -> None:
    """The scores of one kind."""
    rows = [
        (words_of(condition), *(show(kind, cell) for cell in cells.values()))
        for condition, cells in kind.all().items()
    ]
    page.table(("line, delay, beside", *(kind.among or kind.transports)), rows)


def answer(page: Page, kinds: list[Kind]) -> None:
    """The table of recommendations."""
    page.heading("The answer")
    seeds = kinds[0].asked.study.replications
    page.text(
        f"""Each cell names the best transport and those shown to be as good, with the best's
        mean: for **voice** MOS, for **video** the frames whole within 400 ms, for **data** the
        time after the end at which all had arrived. *As good*: the interval of
        {100 * CONFIDENCE:.0f} % on the paired difference from the best ({seeds} seeds,
        Student's) lies within {kinds[0].margin:g} of MOS, {kinds[1].margin:g} % of the frames or
        {kinds[2].margin:g} s. In brackets those whose interval covers 0 but is wider than that:
        no difference was shown, nor that there is none. Data counts where it arrives whole,
        which takes {" or ".join(WHOLE)}."""
    )
    rows = []
    for condition in kinds[0].conditions():
        cells = [kind.cells(condition) for kind in kinds]
        named = [_named(kind, cell) for kind, cell in zip(kinds, cells, strict=True)]
        rows.append((words_of(condition), *named))
    page.table(("line, delay, beside", "voice", "video", "data"), rows, words=True)
    page.text(
        """*Wide* lines carry the flow several times over, *narrow* ones about four fifths of it,
        and *lossy* ones, as wide, lose one packet in fifty each way; *upload* is a TCP with
        CUBIC, whose packets are as long as the flow's. *TCP* has segments of one packet of the
        source, *TCP long* may join what waits, as hosts do; *SCTP partial* is unordered and
        gives up after 100 ms (voice) or 300 ms (video)."""
    )
    speech, pictures, bulk = (kind.all() for kind in kinds)
    near = [condition for condition in speech if condition[:2] == ("lossy", "20 ms")]
    fits = [condition for condition in speech if condition[0] != "narrow"]
    plain = [condition for condition in fits if condition not in near]
    page.claims_list(
        (
            """**Voice**: UDP, or SCTP that gives up, wherever the line carries the call; only
            where it is short and loses packets is TCP long better, which has them in time.""",
            all(speech[c][name].good for c in plain for name in ("UDP", "SCTP partial"))
            and all(speech[c]["TCP long"].word == "best" for c in near),
        ),
        (
            """**Video**: UDP, but SCTP that gives up where the line is short and loses packets.""",
            all(pictures[c]["UDP"].good for c in plain)
            and all(pictures[c]["SCTP partial"].word == "best" for c in near),
        ),
        (
            """**Data**: TCP; there is no condition in which it is worse than SCTP.""",
            all(cells["TCP"].word != "worse" for cells in bulk.values()),
        ),
        (
            """**DCCP's CCID 2 and 3 and TFRC** are among the best for voice only where all are:
            alone on the wide short line. For video they never are with a delay of 150 ms beside an
            upload or losses.""",
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
    """Voice."""
    page.heading("Voice")
    page.text(
        """MOS of 30 s of G.711 in packets of 20 ms, with a playout buffer of 150 ms. Bold: the
        best or as good; in brackets: no difference shown; else worse than the best."""
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
            """**Alone on the wide short line it does not matter**: all are as good as each
            other.""",
            all(cell.good for cell in found["wide", "20 ms", "alone"].values()),
        ),
        (
            f"""**CCID 4 is the one congestion control that a call can live with**: where the
            line carries the call it is at most {max(one.mean for one in behind):.2f} of MOS
            behind UDP. {_list(SLOW)} are under {max(_worst(fits, SLOW)):.1f} on the long lossy
            line.""",
            max(one.high for one in behind) < 0.3
            and all(mean < 1.3 for mean in mean_of(found[far], SLOW)),
        ),
        (
            f"""**SCTP that gives up is as good as UDP** wherever the line carries the call: its
            paired differences from UDP lie within
            {max(max(-g.low, g.high) for g in partial_gap):.2f}.""",
            max(max(-gap.low, gap.high) for gap in partial_gap) < 0.25,
        ),
        (
            f"""**To wait for what was lost is right on a short line and wrong on a long one.**
            With 20 ms and losses TCP long is the best, {repair.show(2)} above UDP, since the
            lost is there again before it is to be played; with 150 ms {_list(ORDERED)} score
            {max(mean_of(found[far], ORDERED)):.2f} at most, and UDP
            {found[far]["UDP"].score.mean:.2f}.""",
            found[near]["TCP long"].word == "best"
            and repair.low > 0
            and max(mean_of(found[far], ORDERED)) < 1.2
            and found[far]["UDP"].score.low > MANY,
        ),
        (
            f"""**Short segments are dear to TCP**: beside the upload on the short lossy line TCP
            long is {short.show(2)} above TCP. A TCP counts its window in segments.""",
            short.low > 0.2,
        ),
        (
            f"""**On a line that does not carry the call there is no answer**: nobody reaches
            {MANY:g}. UDP is the best there, and takes everything (below).""",
            all(cell.score.high < MANY for cells in narrow for cell in cells.values())
            and all(cells["UDP"].word == "best" for cells in narrow),
        ),
    )


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1]


def _worst(found: Mapping[Condition, Mapping[str, Cell]], names: tuple[str, ...]) -> list[float]:
    """Means of some transports on the long lossy line, rounded up to a tenth."""
    means = [
        mean
        for condition, cells in found.items()
        if condition[:2] == ("lossy", "150 ms")
        for mean in mean_of(cells, names)
    ]
    return [int(mean * 10 + 1) / 10 for mean in means]


def say_video(page: Page, kind: Kind) -> None:
    """Video."""
    page.heading("Video")
    page.text(
        """Percent of the frames that were whole within 400 ms, of 30 s of 200 kbit/s, 25 frames
        a second, two packets of 500 bytes each. TCP long makes one segment of a frame: its
        packets are not equal to the others', and it has half as many to lose."""
    )
    table(page, kind)
    figure = figures.scores(kind, ("score", "frames whole in time / %", kind.transports))
    page.figure("video", figure, "Frames in time by condition and transport")
    found = kind.all()
    near = [("lossy", "20 ms", beside) for beside in ("alone", "upload")]
    far = [("lossy", "150 ms", beside) for beside in ("alone", "upload")]
    narrow = [cells for condition, cells in found.items() if condition[0] == "narrow"]
    both = 100 * 0.98**2
    busy = found["wide", "150 ms", "upload"]
    gains = [kind.gap(condition, "SCTP partial", "UDP") for condition in near]
    page.claims_list(
        (
            """**Alone on the wide short line it does not matter**, here either.""",
            all(cell.good for cell in found["wide", "20 ms", "alone"].values()),
        ),
        (
            f"""**UDP loses what the line loses**: alone on the lossy lines
            {found[near[0]]["UDP"].score.show(1)} and {found[far[0]]["UDP"].score.show(1)} % of
            the frames are whole; that both packets of a frame arrive has the chance 0.98² =
            {both:.1f} %.""",
            all(
                found[c]["UDP"].score.low < both < found[c]["UDP"].score.high
                for c in (near[0], far[0])
            ),
        ),
        (
            f"""**On the short lossy line SCTP that gives up is the best**, alone and beside the
            upload: {gains[0].show(1)} and {gains[1].show(1)} % more frames than over UDP.""",
            all(found[condition]["SCTP partial"].good for condition in near)
            and all(gap.low > 1 for gap in gains),
        ),
        (
            f"""**On the long lossy line nothing comes near UDP** but CCID 4, which brings fewer by
            {kind.gap(far[0], "UDP", "CCID 4").show(1)} and
            {kind.gap(far[1], "UDP", "CCID 4").show(1)} % of the frames; all others are worse,
            by {_second(kind, far):.0f} % or more.""",
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
            f"""**Beside the upload on the wide long line** UDP is the best, and all but
            {_others_near(busy)} are more than 5 % of the frames behind.""",
            busy["UDP"].word == "best" and _others_near(busy) == "CCID 4",
        ),
        (
            f"""**On the narrow line there is no answer**: no transport brings more than
            {max(cell.score.mean for cells in narrow for cell in cells.values()):.0f} % of the
            frames. The picture must become smaller.""",
            all(cell.score.high < 51 for cells in narrow for cell in cells.values()),
        ),
    )


def _second(kind: Kind, conditions: list[Condition]) -> float:
    """How far the best transport except UDP and CCID 4 is behind UDP."""
    return min(
        kind.gap(condition, "UDP", name).mean
        for condition in conditions
        for name in kind.transports
        if name not in ("UDP", "CCID 4")
    )


def _others_near(cells: Mapping[str, Cell]) -> str:
    """Transports other than the best whose whole interval is less than 5 behind."""
    return ", ".join(
        name
        for name, cell in cells.items()
        if cell.difference is not None and cell.difference.low > -10 and cell.difference.mean > -5
    )


def say_data(page: Page, kind: Kind) -> None:
    """Data."""
    page.heading("Data")
    page.text(
        """Ten seconds of 500 kbit/s in packets of 1000 bytes: percent that arrived, and for the
        two that deliver everything the seconds from the end of the source to the last byte. CCID
        4, which is for small packets, and partial reliability have no part here."""
    )
    rows = []
    for condition, cells in kind.all().items():
        shares = [
            f"{kind.part(condition).filter(transport=name)['share'].mean():.1f}"
            for name in kind.transports
        ]
        rows.append((words_of(condition), *shares, *(show(kind, cells[name]) for name in WHOLE)))
    header = [f"{name}, %" for name in kind.transports] + [f"{name}, s" for name in WHOLE]
    page.table(("line, delay, beside", *header), rows)
    page.figure(
        "data",
        figures.scores(
            kind,
            ("share", "arrived / %", kind.transports),
            ("score", "last arrival after the end / s", WHOLE),
        ),
        "Share of the data that arrived and time of the last arrival, by condition and transport",
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
            runs. On the lossy lines none of the others does in any of {lossy.height}.""",
            whole["share"].min() > 99.999 and lossy["share"].max() < 99.999,
        ),
        (
            f"""**UDP on the narrow line loses what does not fit**,
            {100 - narrow["share"].max():.0f} to {100 - narrow["share"].min():.0f} %; what obeys
            congestion control waits instead, and loses less on average in each such condition.""",
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
            f"""**TCP is done sooner than SCTP, or no difference was shown**: sooner in
            {len(faster)} conditions ({_conditions(faster)}), by more than {kind.margin:g} s with
            all of the interval, later in none.""",
            len(faster) > 0 and not slower,
        ),
    )


def _conditions(some: list[Condition]) -> str:
    return "; ".join(words_of(one) for one in some)


def others(page: Page, kinds: list[Kind]) -> None:
    """The upload's share."""
    page.heading("What it costs the upload")
    page.text(
        f"""Goodput of the upload in kbit/s, mean; bold where it is more than beside UDP, in
        brackets where it is less, with an interval of {100 * CONFIDENCE:.0f} % on the paired
        difference that leaves out 0."""
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
    page.table(("beside", *names), rows)
    udp_rows = pl.concat(
        kind.rows.filter(transport="UDP").select("line", pl.col("stopped_s").cast(pl.Float64))
        for kind in kinds
    )
    udp, stops = udp_rows.height, udp_rows.filter(pl.col("stopped_s").is_not_null())
    stopped, narrow_stopped = stops.height, stops.filter(line="narrow").height
    page.claims_list(
        (
            f"""**UDP that does not fit starves what does obey**: beside voice or video over UDP
            on a narrow line the upload gets {max(narrow) / 1e3:.1f} kbit/s at most.""",
            max(narrow) < 5e3,
        ),
        (
            f"""On the wide short line the choice costs the upload next to nothing: its goodput
            differs from that beside UDP by {100 * max(wide):.0f} % at most.""",
            max(wide) < 0.05,
        ),
        (
            f"""**RFC 8083's circuit breaker seldom helps**: it would have stopped {stopped} of
            {udp} flows over UDP, all of them on narrow lines. A flow may send ten times what a
            TCP would before it opens.""",
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
    """Checks equal sizes, correct wiring, and robust intervals."""
    page.heading("Equal packets, sound wiring, intervals")
    page.text(
        """Bytes of the source in a packet with data, and in brackets those of the IP packet, on
        the wide short line without an upload: the headers are what each transport costs."""
    )
    names = kinds[0].transports
    rows, uneven = [], []
    for kind in kinds:
        part = kind.part(("wide", "20 ms", "alone"))
        means = part.group_by("transport").agg(pl.col("payload_bytes", "ip_bytes").mean())
        sizes = {name: (payload, ip) for name, payload, ip in means.iter_rows()}
        cells = [f"{sizes[n][0]:.0f} ({sizes[n][1]:.0f})" if n in sizes else "–" for n in names]
        rows.append((kind.name, *cells))
        wide = kind.rows.filter(pl.col("transport") != "TCP long", line="wide")
        base = sizes["UDP"][0]
        uneven += [abs(size / base - 1) for size in wide["payload_bytes"]]
    page.table(("source", *names), rows)
    runs = sum(kind.rows.height for kind in kinds)
    every = pl.concat([kind.rows.select("line", "beside", "received") for kind in kinds])
    fits = every.filter(pl.col("line") != "narrow")
    unheard = every.filter(line="narrow", received=0).height
    same, compared = _bootstrapped(kinds)
    page.claims_list(
        (
            f"""TCP long apart, no run on a wide line has packets whose mean load is more than
            {100 * max(uneven):.1f} % from UDP's.""",
            max(uneven) < 0.05,
        ),
        (
            f"""In each of the {fits.height} runs on wide and lossy lines data arrived. On narrow
            ones none did in {unheard} of {runs - fits.height}: beside the upload, what obeys may
            wait for half a minute and longer after losses in a row.""",
            fits["received"].min() > 0 and unheard < 0.01 * (runs - fits.height),
        ),
        (
            f"""Of {compared} comparisons with the best, the bootstrap (BCa) gives the same
            verdict as Student's interval in {same}. With intervals of {100 * CONFIDENCE:.0f} %
            one comparison in a hundred says too much by chance.""",
            same / compared > 0.9,
        ),
    )


def _bootstrapped(kinds: list[Kind]) -> tuple[int, int]:
    """The number of verdicts that the bootstrap confirms, and of all."""
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
