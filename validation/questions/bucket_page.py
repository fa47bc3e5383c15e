"""The page of bucket.py: tables, and statements with the conditions they assert."""

from __future__ import annotations

import polars as pl
from bucket_answer import answer
from bucket_figures import SCALES_S, maps, opinions, scales, spaced, words
from bucket_rows import (
    BARE,
    CCID4,
    CCID4_TB,
    DEPTH,
    FIVE,
    FIVE_BARE,
    G711,
    G729A,
    LADDERS,
    PACKET_BYTES,
    SETTINGS,
    STEP,
    TB,
    TFRC,
    UDP,
    WIDE,
    at,
    beside,
    of,
    over,
    rates,
    signed,
    turned,
)
from common import Asked, Page

QUESTION = """\
Maldonado, Baset and Schulzrinne (2005) combined TFRC with a token bucket and a ladder of codecs
([the study](../studies.md)). They specified neither the depth of the bucket nor the time after
which the sender steps up to a better codec. This page shows how both parameters affect smoothness,
fairness and MOS, and compares TFRC-TB with TFRC and CCID 4. Eight calls share a dumbbell topology
with eight uploads over TCP and four on/off sources with heavy-tailed periods. The bottleneck uses
RED, with three rates and two delays. Numbers are means over seeds with 95 % intervals (Student's);
the value of a run is the mean over its eight calls. Differences are paired by seed. If settings are
pooled, the mean over the settings is computed first."""


def depth_and_step(page: Page, bucket: Asked) -> None:
    """Write the effect of both parameters."""
    page.heading("Bucket depth and step-up time")
    depths, step_ups = (bucket.study.axis(name).labels for name in ("depth", "step up"))
    page.text(
        "The figure shows means over the six settings. MOS and codec changes are measured with "
        "three codecs, the only ones of the study's kinds for which ITU-T G.113 specifies the "
        "robustness to packet loss. All other measures use the study's five codecs. *Share* is "
        "the throughput divided by the fair share, which is one sixteenth of the capacity that "
        "the on/off sources leave. *Variation* is the coefficient of variation of the sending "
        "rate in bins of a second (standard deviation divided by mean)."
    )
    figure = maps(bucket.rows, depths, step_ups)
    page.figure("maps", figure, "Six measures by bucket depth and step-up time")
    header = [
        "depth, step-up time",
        "MOS",
        "MOS, tenth percentile",
        "codec changes / min",
        "variation, 1 s",
        "share of a call",
        "share of an upload",
        "Jain's index",
    ]
    lines = []
    for step in step_ups:
        for depth in depths:
            mine = at(bucket.rows, ladder="three", depth=depth, step_up=step)
            columns = (
                ("mos", 2),
                ("mos_p10", 2),
                ("switches", 1),
                ("cov_5", 2),
                ("call_share", 2),
                ("upload_share", 2),
                ("jain", 2),
            )
            lines.append(
                [f"{spaced(depth)}, {spaced(step)}", *(over(mine, n).show(d) for n, d in columns)]
            )
    page.text("The same measures with intervals, for three codecs:")
    page.table(header, lines)
    most = max(
        over(at(bucket.rows, ladder=n, depth="2kB", step_up=s), "switches").mean
        / over(at(bucket.rows, ladder=n, depth="0B", step_up=s), "switches").mean
        for n in LADDERS
        for s in step_ups
    )
    three = at(bucket.rows, ladder="three")
    deeper = [beside(at(three, step_up=s), "depth", "2kB", "32kB", "mos") for s in step_ups]
    five = at(bucket.rows, ladder="five", step_up=STEP)
    dear = beside(five, "depth", "2kB", "32kB", "upload_share")
    page.claims_list(
        (
            "**A small bucket avoids most codec changes**: with 2 kB, at most "
            f"{100 * most:.0f} % of the codec changes without a bucket remain, for every step-up "
            "time and ladder.",
            most < 0.25,
        ),
        (
            "**A larger bucket does not raise the MOS**: from 2 to 32 kB, the MOS changes by "
            f"{signed(min(one.low for one in deeper))} to "
            f"{signed(max(one.high for one in deeper))} (limits of the intervals over all step-up "
            "times).",
            max(max(-one.low, one.high) for one in deeper) < 0.06,
        ),
        (
            "**A larger bucket reduces the throughput of competing flows**: with five codecs and "
            f"a step-up time of {spaced(STEP)}, an upload loses {turned(dear).show(3)} of a fair "
            "share from 2 to 32 kB.",
            dear.high < 0,
        ),
    )
    slow = at(three, depth=DEPTH)
    mos = {s: beside(slow, "step up", STEP, s, "mos") for s in step_ups if s != STEP}
    share = {s: beside(slow, "step up", STEP, s, "upload_share") for s in step_ups if s != STEP}
    page.claim(
        "**The step-up time** affects the throughput of competing flows more than the MOS. With "
        f"{spaced(DEPTH)}, relative to a step-up time of {spaced(STEP)}, the MOS changes by "
        f"{mos['0s'].show(2, sign=True)} and the throughput of an upload by "
        f"{share['0s'].show(2, sign=True)} of a fair share if the step up is immediate. The "
        f"differences are {mos['500ms'].show(2, sign=True)} and "
        f"{share['500ms'].show(2, sign=True)} after 500 ms, and {mos['8s'].show(2, sign=True)} "
        f"and {share['8s'].show(2, sign=True)} after 8 s.",
        all(max(-one.low, one.high) < 0.08 for one in mos.values()),
        share["0s"].high < 0,
        share["500ms"].high < 0,
        share["8s"].low > 0,
    )
    crowded = at(three, bottleneck="1Mbit/s", depth=DEPTH)
    rich = at(three, bottleneck="3Mbit/s", one_way="20ms", depth=DEPTH)
    climbs = at(bucket.rows, ladder="five", bottleneck="3Mbit/s", depth=DEPTH)
    page.claim(
        "The mean conceals two opposite effects. On a congested link (1 Mbit/s), fast steps up "
        "cause losses for all flows: the MOS with "
        f"{spaced(STEP)} differs from that with 500 ms by "
        f"{beside(crowded, 'step up', '500ms', STEP, 'mos').show(2, sign=True)}. On an uncongested "
        "link (3 Mbit/s, 20 ms), slow steps up fail to reach the best codec on a ladder with a "
        "gap: the same difference is "
        f"{beside(rich, 'step up', '500ms', STEP, 'mos').show(2, sign=True)}. With five codecs "
        "there is no such effect: the share of time on G.711 at 3 Mbit/s changes by "
        f"{beside(climbs, 'step up', '500ms', STEP, 'best').show(3, sign=True)}.",
        beside(crowded, "step up", "500ms", STEP, "mos").low > 0,
        beside(rich, "step up", "500ms", STEP, "mos").high < 0,
        beside(climbs, "step up", "500ms", STEP, "best").low > -0.02,
    )
    waits = beside(at(three, depth="0B"), "step up", "0s", STEP, "mos")
    page.claim(
        "Slow steps up require a bucket. Without a bucket, the sender leaves the codec whenever X "
        f"falls below its rate, and returns only after {spaced(STEP)} "
        f"({waits.show(2, sign=True)} MOS relative to immediate steps up).",
        waits.high < 0,
    )


def tokens(page: Page, asked: Asked) -> None:
    """Write the effect of required tokens before a step up."""
    page.heading("Required tokens before a step up")
    full = {
        depth: {
            label: beside(at(asked.rows, depth=depth), "tokens", "none", label, "mos")
            for label in ("half", "full")
        }
        for depth in asked.study.axis("depth").labels
    }
    page.table(
        ["depth", "MOS, none required", "half full", "full", "codec changes / min, none", "full"],
        [
            [
                spaced(depth),
                over(at(asked.rows, depth=depth, tokens="none"), "mos").show(2),
                found["half"].show(3, sign=True),
                found["full"].show(3, sign=True),
                over(at(asked.rows, depth=depth, tokens="none"), "switches").show(2),
                over(at(asked.rows, depth=depth, tokens="full"), "switches").show(2),
            ]
            for depth, found in full.items()
        ],
    )
    every = [one for found in full.values() for one in found.values()]
    page.claim(
        "Required tokens (`step_up_tokens`) in addition to the step-up time do not raise the MOS: "
        "no interval of the difference in MOS extends above "
        f"{signed(max(one.high for one in every))}. Leave this option at none.",
        all(one.high < 0.02 for one in every),
    )


def trap(page: Page, bucket: Asked, transports: Asked) -> None:
    """Write the effect of a ladder in which a codec needs over twice the rate of the next."""
    page.heading("Steps of the codec ladder")
    setting = SETTINGS[1]
    lines = []
    for ladder in LADDERS:
        named = ", ".join(
            f"{name} {rate:.0f}"
            for (name, _, _), rate in zip(LADDERS[ladder], rates(ladder), strict=True)
        )
        mine = at(bucket.rows, ladder=ladder, depth=DEPTH, step_up=STEP)
        shares = [over(of(mine, s), "best").show(0, 100) for s in SETTINGS]
        lines.append([f"{ladder}: {named}", *shares])
    page.text(
        "The table shows the percentage of the time on G.711. The rates of the codecs are in "
        "kbit/s, including RTP, UDP and IP, as TFRC-TB counts them."
    )
    page.table(["ladder", *(words(s) for s in SETTINGS)], lines)
    mine = of(at(transports.rows, codecs=G711, transport=TB), setting)
    window = 4 * PACKET_BYTES
    longest = window * 8 / (rates("three")[0] * 1e3)
    page.claim(
        f"With G.729A, twice the receive rate is {2 * rates('three')[1]:.0f} kbit/s, but G.711 "
        f"needs {rates('three')[0]:.0f} kbit/s. At {words(setting)}, the throughput equation "
        f"yields {over(mine, 'x_calc').show(0, 1e-3)} kbit/s, and X is "
        f"{over(mine, 'x').show(0, 1e-3)} kbit/s. A call can use G.711 only if its initial rate "
        "suffices. The initial rate of four packets per round trip suffices only if the "
        f"round-trip time is at most {longest * 1e3:.0f} ms, that is on the short path but not on "
        "the long path.",
        2 * rates("three")[1] < rates("three")[0],
        over(mine, "x_calc").low > 2 * 1e3 * rates("three")[0],
        over(mine, "x").high < 1e3 * rates("three")[0],
        over(mine, "best").high < 0.01,
        0.044 < longest < 0.204,
    )
    rows = of(at(transports.rows, codecs=G711), setting)
    wide = beside(rows, "transport", TB, WIDE, "mos")
    whole = beside(at(transports.rows, codecs=G711), "transport", TB, WIDE, "mos")
    page.claim(
        "A larger initial window helps in this case. An initial window of 4200 bytes, which RFC "
        "3390 allows for TCP and which CCID 4 also uses, instead of four packets of speech "
        f"changes the MOS by {wide.show(2, sign=True)} at {words(setting)} and by "
        f"{whole.show(2, sign=True)} over the six settings. Calls nevertheless use G.711 there "
        f"for only {over(at(rows, transport=WIDE), 'best').show(0, 100)} % of the time.",
        wide.low > 0,
        whole.low > 0,
        over(at(rows, transport=WIDE), "best").high < 0.95,
    )


def smoothness(page: Page, bucket: Asked, transports: Asked) -> None:
    """Write the smoothness by time scale."""
    page.heading("Smoothness by time scale")
    chosen = [SETTINGS[3], SETTINGS[4]]
    rows = at(transports.rows, codecs=G711)
    names = [f"cov_{bins}" for bins in SCALES_S]
    keys = ["bottleneck", "one way", "replicate", *names]
    ladders = at(bucket.rows, step_up=STEP)
    lines = pl.concat(
        [
            rows.select("transport", *keys),
            *(
                at(ladders, ladder="five", depth=depth).select(
                    pl.lit(label).alias("transport"), *keys
                )
                for depth, label in ((DEPTH, FIVE), ("0B", FIVE_BARE))
            ),
        ]
    )
    page.figure("scales", scales(lines, chosen), "Coefficient of variation by time scale")
    rough = [beside(of(lines, s), "transport", TFRC, FIVE, "cov_5") for s in chosen]
    page.claim(
        "The study expected TFRC-TB to be smoother than TFRC, but found both to be similar. With "
        "the five codecs of the study, TFRC-TB is less smooth than TFRC with G.711: its variation "
        f"over a second is larger by {rough[0].show(2)} at {words(chosen[0])} and by "
        f"{rough[1].show(2)} at {words(chosen[1])}. With three codecs, its rate is constant where "
        f"it cannot leave G.729A ({words(chosen[0])}), and varies even more where it can "
        f"({over(of(at(rows, transport=TB), chosen[1]), 'cov_5').show(2)} at "
        f"{words(chosen[1])}).",
        *(one.low > 0 for one in rough),
        over(of(at(rows, transport=TB), chosen[0]), "cov_5").high < 0.01,
        over(of(at(rows, transport=TB), chosen[0]), "best").high < 0.01,
        over(of(at(rows, transport=TB), chosen[1]), "cov_5").mean
        > over(of(lines.filter(transport=FIVE), chosen[1]), "cov_5").mean,
    )
    less = {
        n: [beside(of(lines, s), "transport", FIVE_BARE, FIVE, n) for s in chosen] for n in names
    }
    page.claim(
        "The bucket smooths the sending rate. Without a bucket, and with the same step-up time of "
        f"{spaced(STEP)}, the variation over a second is larger by "
        f"{turned(less['cov_5'][0]).show(2)} and {turned(less['cov_5'][1]).show(2)}. It is larger "
        "at every time scale up to 5 s.",
        *(one.high < 0 for n in names[:5] for one in less[n]),
    )


def callers(page: Page, transports: Asked) -> None:
    """Write the MOS of the calls."""
    page.heading("Comparison with TFRC, CCID 4 and UDP")
    rows = at(transports.rows, codecs=G711)
    labels = transports.study.axis("transport").labels
    page.text(
        "UDP, TFRC and CCID 4 always use G.711 (in the last table G.729A). The bare ladder and "
        "the buckets may step down to G.729A and G.723.1. The MOS includes all calls of a run; "
        "the tenth percentile is that of its eight calls."
    )
    page.figure("mos", opinions(transports.rows, SETTINGS), "MOS of calls over seven transports")
    for value, heading in (("mos", "MOS"), ("mos_p10", "tenth percentile of MOS")):
        page.table(
            [heading, *(words(s) for s in SETTINGS), "all six"],
            [
                [
                    label,
                    *(over(of(at(rows, transport=label), s), value).show(2) for s in SETTINGS),
                    over(at(rows, transport=label), value).show(2),
                ]
                for label in labels
            ],
        )
    page.text("Differences between TFRC-TB and the other transports, paired by seed:")
    lines = []
    for value, heading in (("mos", "MOS"), ("mos_p10", "tenth percentile")):
        for base in (TFRC, CCID4, CCID4_TB, BARE, UDP):
            lines.append(
                [
                    f"{heading} minus {base}",
                    *(
                        beside(of(rows, s), "transport", base, TB, value).show(2, sign=True)
                        for s in SETTINGS
                    ),
                    beside(rows, "transport", base, TB, value).show(2, sign=True),
                ]
            )
    page.table(["", *(words(s) for s in SETTINGS), "all six"], lines)
    page.text(
        "Throughput: share of a call, share of an upload, and Jain's index over all sixteen flows."
    )
    page.table(
        ["call / upload / Jain", *(words(s) for s in SETTINGS)],
        [
            [
                label,
                *(
                    " / ".join(
                        f"{over(of(at(rows, transport=label), s), n).mean:.2f}"
                        for n in ("call_share", "upload_share", "jain")
                    )
                    for s in SETTINGS
                ),
            ]
            for label in labels
        ],
    )
    page.text("MOS of calls that start with G.729A, for which the rate nearly always suffices:")
    low = at(transports.rows, codecs=G729A)
    page.table(
        ["MOS", *(words(s) for s in SETTINGS), "all six"],
        [
            [
                label,
                *(over(of(at(low, transport=label), s), "mos").show(2) for s in SETTINGS),
                over(at(low, transport=label), "mos").show(2),
            ]
            for label in labels
        ],
    )
    same = beside(low, "transport", TFRC, TB, "mos")
    page.claim(
        "With G.729A, calls rarely change the codec, and TFRC-TB differs little from TFRC: "
        f"{same.show(2, sign=True)} MOS.",
        -0.05 < same.low <= same.high < 0.05,
    )
    rows = at(transports.rows, codecs=G711)
    more, low10 = (beside(rows, "transport", CCID4, CCID4_TB, n) for n in ("mos", "mos_p10"))
    page.claim(
        "CCID 4 can also use the bucket. Relative to CCID 4 with G.711, the bucket changes the "
        f"MOS by {more.show(2, sign=True)} over the six settings, and its tenth percentile by "
        f"{low10.show(2, sign=True)}.",
        more.low > 0,
        low10.high < 0.05,
    )
    held = min(over(of(at(low, transport=CCID4), s), "mos").low for s in SETTINGS[:4])
    page.claim(
        "CCID 4 without a bucket can also carry G.729A: its MOS is at least "
        f"{held - 0.005:.2f} at 3 and 1.5 Mbit/s. A packet contains 32 bytes including the RTP "
        "header, less than the 40 bytes of headers that RFC 4828 counts in addition. The headers "
        "are subtracted from the rate of the throughput equation, but not from twice the receive "
        "rate, which already excludes headers ([Departures](../reference/departures.md)).",
        held > 3.4,
        over(at(low, transport=CCID4_TB), "mos").low > 3,
    )


def in_packets(page: Page, asked: Asked) -> None:
    """Write the results for RED in packets."""
    page.heading("RED in packets")
    rows = at(asked.rows, codecs=G711)
    settings = SETTINGS[:4]
    page.text(
        "RED in bytes, as in ns-2, drops a packet of speech a fifth as often as a packet of an "
        "upload. If RED counts packets, all flows have the same loss rate. At equal loss rates, "
        "TFRC allows packets of speech a fifth of the rate of an upload. MOS of calls that start "
        "with G.711:"
    )
    labels = asked.study.axis("transport").labels
    page.table(
        ["MOS", *(words(s) for s in settings), "all four"],
        [
            [
                label,
                *(over(of(at(rows, transport=label), s), "mos").show(2) for s in settings),
                over(at(rows, transport=label), "mos").show(2),
            ]
            for label in labels
        ],
    )
    tfrc = beside(rows, "transport", TFRC, TB, "mos")
    ccid4 = beside(rows, "transport", CCID4, TB, "mos")
    lost = over(at(rows, transport=TB), "lost")
    page.claim(
        f"The MOS of TFRC-TB is {tfrc.show(2)} above that of TFRC. The MOS of CCID 4, whose rate "
        f"is that of a TCP with packets of 1460 bytes, is {turned(ccid4).show(2)} above that of "
        "TFRC-TB. The quality of a call over TFRC-TB is nevertheless poor, because "
        f"{lost.show(1, 100)} % of its packets are lost.",
        tfrc.low > 0,
        ccid4.high < 0,
        lost.low > 0.02,
    )


def never_more(page: Page, transports: Asked) -> None:
    """Write the long-term average."""
    page.heading("Long-term average rate")
    buckets = transports.rows.filter(pl.col("of_x").is_not_null())
    most, share = max(buckets["beyond_x"]), max(buckets["of_x"])
    calls = 8 * buckets.height
    page.claim(
        "By design, the tokens are the unused part of X. The runs confirm this: in none of "
        f"{calls} calls with a bucket or a bare ladder does the data sent, at the end of any 200 "
        f"ms, exceed the integral of X by more than {most:.1f} packets of G.711. (The sender "
        "paces at X corrected by the last round-trip time, RFC 5348 §4.5.) Over a whole call, the "
        f"data sent is at most {100 * share:.0f} % of the integral.",
        most < 6,
        share < 1,
    )
    rows = at(transports.rows, codecs=G711)
    found = {s: beside(of(rows, s), "transport", TFRC, TB, "call_bps") for s in SETTINGS}
    page.table(
        ["throughput of a call / (kbit/s)", *(words(s) for s in SETTINGS)],
        [
            [
                TFRC,
                *(
                    over(of(at(rows, transport=TFRC), s), "call_bps").show(1, 1e-3)
                    for s in SETTINGS
                ),
            ],
            [
                TB,
                *(over(of(at(rows, transport=TB), s), "call_bps").show(1, 1e-3) for s in SETTINGS),
            ],
            ["difference", *(one.show(1, 1e-3, sign=True) for one in found.values())],
        ],
    )
    page.claim(
        "The long-term average of TFRC-TB is below that of calls over TFRC with G.711 in all six "
        "settings, and no interval includes zero.",
        all(one.high < 0 for one in found.values()),
    )


def write(page: Page, bucket: Asked, more: Asked, transports: Asked, packets: Asked) -> None:
    """Write the page."""
    answer(page, bucket, transports)
    depth_and_step(page, bucket)
    tokens(page, more)
    trap(page, bucket, transports)
    smoothness(page, bucket, transports)
    callers(page, transports)
    in_packets(page, packets)
    never_more(page, transports)
    page.heading("Assumptions")
    page.text(
        "The study specifies neither the parameters of RED nor the TCP variant. The runs use RED "
        "with the defaults of ns-2 (in bytes, mean packet 500 B, 50 packets) and SACK with "
        "segments of 1000 bytes. Calls send continuous speech for the 100 s that are measured. "
        "The sender drops packets that have waited for more than 60 ms. The listener plays each "
        "frame 250 ms after capture on both paths, so delay lowers the MOS of all calls equally. "
        "A call of which no frame is played has a MOS of 1. The E-model uses the means of Ie and "
        "Bpl over the frames played, and does not account for codec changes."
    )
    page.write(bucket, more, transports, packets)
