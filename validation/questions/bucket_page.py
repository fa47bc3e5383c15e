"""The page of bucket.py: its tables, and sentences with the conditions they assert."""

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
Maldonado, Baset and Schulzrinne (2005) put a token bucket over TFRC and a ladder of codecs
([the study](../studies.md)), and left open how deep the bucket is and when a better codec is taken
again. What do depth and step do to smoothness, fairness and opinion, and is a caller better off
than with plain TFRC or with CCID 4? Eight calls share a dumbbell under RED with eight uploads over
TCP and four on/off sources with heavy tails, at three rates of the bottleneck and two delays.
Numbers are means over seeds with 95 % intervals (Student's), of a run the mean over its eight
calls; differences are taken seed by seed, and where settings are put together the mean over them is
taken first."""


def depth_and_step(page: Page, bucket: Asked) -> None:
    """The effect of both parameters."""
    page.heading("Depth and step")
    depths, step_ups = (bucket.study.axis(name).labels for name in ("depth", "step up"))
    page.text(
        "Means over the six settings. MOS and changes of codec with three codecs, the only "
        "ones of the study's kind for which ITU-T G.113 has a robustness to loss; the rest "
        "with the study's five. *Share* is throughput by the fair share, which is what the "
        "on/off sources leave of the link by sixteen; the *variation* is that of the sending "
        "rate in bins of a second (standard deviation over mean)."
    )
    page.figure("maps", maps(bucket.rows, depths, step_ups), "Six measures over depth and step")
    header = [
        "depth, step",
        "MOS",
        "tenth percentile",
        "changes / min",
        "variation, 1 s",
        "share of a call",
        "share of an upload",
        "Jain",
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
    page.text("The same with intervals, three codecs:")
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
            f"**A little depth is enough for quiet**: 2 kB leave at most {100 * most:.0f} % of "
            "the changes there are without a bucket, whatever the step and ladder.",
            most < 0.25,
        ),
        (
            "**More buys no opinion**: from 2 to 32 kB MOS changes by "
            f"{signed(min(one.low for one in deeper))} to "
            f"{signed(max(one.high for one in deeper))}, ends of intervals over all steps.",
            max(max(-one.low, one.high) for one in deeper) < 0.06,
        ),
        (
            f"**It is paid for by the others**: with five codecs and steps after {spaced(STEP)} "
            f"an upload loses {turned(dear).show(3)} of a fair share from 2 to 32 kB.",
            dear.high < 0,
        ),
    )
    slow = at(three, depth=DEPTH)
    mos = {s: beside(slow, "step up", STEP, s, "mos") for s in step_ups if s != STEP}
    share = {s: beside(slow, "step up", STEP, s, "upload_share") for s in step_ups if s != STEP}
    page.claim(
        "**The step** is less a matter of opinion than of what is left to others. With "
        f"{spaced(DEPTH)}, beside a step after {spaced(STEP)}: at once "
        f"{mos['0s'].show(2, sign=True)} MOS and {share['0s'].show(2, sign=True)} of a fair "
        f"share for an upload, after 500 ms {mos['500ms'].show(2, sign=True)} and "
        f"{share['500ms'].show(2, sign=True)}, after 8 s {mos['8s'].show(2, sign=True)} and "
        f"{share['8s'].show(2, sign=True)}.",
        all(max(-one.low, one.high) < 0.08 for one in mos.values()),
        share["0s"].high < 0,
        share["500ms"].high < 0,
        share["8s"].low > 0,
    )
    crowded = at(three, bottleneck="1Mbit/s", depth=DEPTH)
    rich = at(three, bottleneck="3Mbit/s", one_way="20ms", depth=DEPTH)
    climbs = at(bucket.rows, ladder="five", bottleneck="3Mbit/s", depth=DEPTH)
    page.claim(
        "The mean hides two sides. Where the link is crowded (1 Mbit/s) quick steps bring "
        f"losses on all: {beside(crowded, 'step up', '500ms', STEP, 'mos').show(2, sign=True)} "
        f"MOS for {spaced(STEP)} beside 500 ms. Where it is not (3 Mbit/s, 20 ms) slow ones "
        "miss their moment on a ladder with a gap: "
        f"{beside(rich, 'step up', '500ms', STEP, 'mos').show(2, sign=True)}. On five codecs "
        f"they do not: {beside(climbs, 'step up', '500ms', STEP, 'best').show(3, sign=True)} of "
        "the time on G.711 at 3 Mbit/s.",
        beside(crowded, "step up", "500ms", STEP, "mos").low > 0,
        beside(rich, "step up", "500ms", STEP, "mos").high < 0,
        beside(climbs, "step up", "500ms", STEP, "best").low > -0.02,
    )
    waits = beside(at(three, depth="0B"), "step up", "0s", STEP, "mos")
    page.claim(
        "Slow steps want a bucket: without one every dip of X below the codec costs it, and "
        f"the way back takes {spaced(STEP)} each time ({waits.show(2, sign=True)} MOS beside "
        "steps at once).",
        waits.high < 0,
    )


def tokens(page: Page, asked: Asked) -> None:
    """A full bucket before a step up."""
    page.heading("A full bucket before a step up")
    full = {
        depth: {
            label: beside(at(asked.rows, depth=depth), "tokens", "none", label, "mos")
            for label in ("half", "full")
        }
        for depth in asked.study.axis("depth").labels
    }
    page.table(
        ["depth", "MOS, none asked for", "half full", "full", "changes / min, none", "full"],
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
        "To wait for tokens (`step_up_tokens`) beside the time does a caller no good: no "
        f"interval of its effect on MOS ends above {signed(max(one.high for one in every))}. "
        "Leave it at none.",
        all(one.high < 0.02 for one in every),
    )


def trap(page: Page, bucket: Asked, transports: Asked) -> None:
    """Why a ladder must have no gap wider than two."""
    page.heading("No step wider than two")
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
    page.text("Percent of the time on G.711; kbit/s with RTP, UDP and IP as TFRC-TB counts them.")
    page.table(["ladder", *(words(s) for s in SETTINGS)], lines)
    mine = of(at(transports.rows, codecs=G711, transport=TB), setting)
    window = 4 * PACKET_BYTES
    longest = window * 8 / (rates("three")[0] * 1e3)
    page.claim(
        f"From G.729A twice what is received is {2 * rates('three')[1]:.0f} kbit/s, and G.711 "
        f"needs {rates('three')[0]:.0f}. At {words(setting)} the equation gives "
        f"{over(mine, 'x_calc').show(0, 1e-3)} kbit/s, and X is "
        f"{over(mine, 'x').show(0, 1e-3)}. A call gets to G.711 only from the initial rate, "
        "four packets a round trip, which pays for it while a round trip is no longer than "
        f"{longest * 1e3:.0f} ms: on the short path, and not on the long one.",
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
        "A wider start helps there: an initial window of 4200 bytes, which RFC 3390 grants a "
        "TCP and CCID 4 has too, in place of four packets of speech is worth "
        f"{wide.show(2, sign=True)} MOS at {words(setting)} and {whole.show(2, sign=True)} over "
        "the six settings. Even so calls have G.711 there for "
        f"{over(at(rows, transport=WIDE), 'best').show(0, 100)} % of the time only.",
        wide.low > 0,
        whole.low > 0,
        over(at(rows, transport=WIDE), "best").high < 0.95,
    )


def smoothness(page: Page, bucket: Asked, transports: Asked) -> None:
    """Against time scale, compared with others."""
    page.heading("Smoothness against time scale")
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
    page.figure("scales", scales(lines, chosen), "Coefficient of variation over time scale")
    rough = [beside(of(lines, s), "transport", TFRC, FIVE, "cov_5") for s in chosen]
    page.claim(
        "The study found TFRC-TB and TFRC alike, and had expected TFRC-TB to be smoother. With "
        "its five codecs it is less smooth than TFRC with G.711: its variation over a second "
        f"is greater by {rough[0].show(2)} at {words(chosen[0])} and by {rough[1].show(2)} at "
        f"{words(chosen[1])}. With three codecs it is perfectly smooth where it cannot leave "
        f"G.729A ({words(chosen[0])}), and rougher still where it can "
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
        "The bucket is what smooths the ladder: without it, and steps up after "
        f"{spaced(STEP)} as well, the variation over a second is greater by "
        f"{turned(less['cov_5'][0]).show(2)} and {turned(less['cov_5'][1]).show(2)}, and at every "
        "scale up to 5 s.",
        *(one.high < 0 for n in names[:5] for one in less[n]),
    )


def callers(page: Page, transports: Asked) -> None:
    """The calls' scores."""
    page.heading("Beside TFRC, CCID 4 and UDP")
    rows = at(transports.rows, codecs=G711)
    labels = transports.study.axis("transport").labels
    page.text(
        "UDP, TFRC and CCID 4 hold G.711 (in the last table G.729A); the bare ladder and the "
        "buckets may fall to G.729A and G.723.1. All calls of a run score; the tenth "
        "percentile is that of its eight."
    )
    page.figure("mos", opinions(transports.rows, SETTINGS), "MOS of seven ways to carry a call")
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
    page.text("TFRC-TB beside the others, seed by seed:")
    lines = []
    for value, heading in (("mos", "MOS"), ("mos_p10", "tenth percentile")):
        for base in (TFRC, CCID4, CCID4_TB, BARE, UDP):
            lines.append(
                [
                    f"{heading} beyond {base}",
                    *(
                        beside(of(rows, s), "transport", base, TB, value).show(2, sign=True)
                        for s in SETTINGS
                    ),
                    beside(rows, "transport", base, TB, value).show(2, sign=True),
                ]
            )
    page.table(["", *(words(s) for s in SETTINGS), "all six"], lines)
    page.text(
        "Who gets what: share of a call, share of an upload, and Jain's index over all sixteen."
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
    page.text("The same from G.729A, which all can pay for nearly always: MOS.")
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
        "With G.729A there is little to adapt, and no difference between TFRC-TB and TFRC was "
        f"shown: {same.show(2, sign=True)} MOS.",
        same.low <= 0 <= same.high < 0.1,
    )
    rows = at(transports.rows, codecs=G711)
    more, low10 = (beside(rows, "transport", CCID4, CCID4_TB, n) for n in ("mos", "mos_p10"))
    page.claim(
        f"The bucket may stand over CCID 4 as well: {more.show(2, sign=True)} MOS over the six "
        f"settings beside CCID 4 with G.711, {low10.show(2, sign=True)} at the tenth percentile.",
        more.low > 0,
        low10.high < 0.05,
    )
    held = min(over(of(at(low, transport=CCID4), s), "mos").low for s in SETTINGS[:4])
    page.claim(
        f"CCID 4 by itself holds G.729A, too: it scores {held - 0.005:.2f} or more at 3 and 1.5 "
        "Mbit/s. With RTP's header a packet hands over 32 bytes, less than the 40 of headers that "
        "RFC 4828 counts beside them; they are taken from the equation's rate, and not from twice "
        "what was received, which is data already ([Departures](../reference/departures.md)).",
        held > 3.4,
        over(at(low, transport=CCID4_TB), "mos").low > 3,
    )


def in_packets(page: Page, asked: Asked) -> None:
    """RED that counts packets."""
    page.heading("Where RED counts packets")
    rows = at(asked.rows, codecs=G711)
    settings = SETTINGS[:4]
    page.text(
        "RED in bytes, ns-2's way, drops a packet of speech a fifth as often as one of an upload. "
        "Where it counts packets, all meet the same losses, and for these TFRC grants packets of "
        "speech a fifth of an upload's rate. MOS from G.711:"
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
        f"TFRC-TB beats TFRC by {tfrc.show(2)} MOS there, and CCID 4, whose rate is that of a TCP "
        f"with packets of 1460 bytes, beats TFRC-TB by {turned(ccid4).show(2)}. With "
        f"{lost.show(1, 100)} % of its packets lost on the way a call over TFRC-TB is a poor one "
        "all the same.",
        tfrc.low > 0,
        ccid4.high < 0,
        lost.low > 0.02,
    )


def never_more(page: Page, transports: Asked) -> None:
    """The long-run average."""
    page.heading("Never more than TFRC in the long run")
    buckets = transports.rows.filter(pl.col("of_x").is_not_null())
    most, share = max(buckets["beyond_x"]), max(buckets["of_x"])
    calls = 8 * buckets.height
    page.claim(
        f"By construction the tokens are what X left over. In the data: in none of {calls} calls "
        "over a bucket or a bare ladder is what was sent, at the end of any 200 ms, more than "
        f"{most:.1f} packets of G.711 ahead of the integral of X (X goes up and down a little with "
        "the last round trip, RFC 5348 §4.5, before it paces), and over a whole call it is at most "
        f"{100 * share:.0f} % of it.",
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
        "Beside calls over TFRC that hold G.711, its long-run average is lower in all six "
        "settings, and no interval reaches zero.",
        all(one.high < 0 for one in found.values()),
    )


def write(page: Page, bucket: Asked, more: Asked, transports: Asked, packets: Asked) -> None:
    """The page, from the answer to its basis."""
    answer(page, bucket, transports)
    depth_and_step(page, bucket)
    tokens(page, more)
    trap(page, bucket, transports)
    smoothness(page, bucket, transports)
    callers(page, transports)
    in_packets(page, packets)
    never_more(page, transports)
    page.heading("What was assumed")
    page.text(
        "The study names neither RED's parameters nor TCP: ns-2's RED as it comes (in bytes, "
        "mean packet 500 B, 50 of them), SACK with segments of 1000 bytes. Calls talk without "
        "pause for the 100 s that are measured. What waits longer than 60 ms at the sender is "
        "thrown away, and the listener plays all 250 ms after capture, on either path, so that "
        "delay costs all the same. A call of which nothing is heard scores 1. The E-model "
        "takes the means of Ie and Bpl over the frames heard; it has no price for changes of "
        "codec."
    )
    page.write(bucket, more, transports, packets)
