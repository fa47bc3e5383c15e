"""The first part of bucket.py's page: the answer, with the conditions it asserts."""

from __future__ import annotations

import polars as pl
from bucket_figures import spaced, words
from bucket_rows import (
    BARE,
    CCID4,
    DEPTH,
    G711,
    G729A,
    LADDERS,
    PAYS,
    SETTINGS,
    STEP,
    TB,
    TFRC,
    WIDE,
    at,
    beside,
    each,
    number,
    of,
    over,
    rates,
    split,
    spread,
    steps,
    together,
    turned,
)
from common import Asked, Page, paired


def answer(page: Page, bucket: Asked, transports: Asked) -> None:
    """The answer first."""
    page.heading("Answer")
    three = at(bucket.rows, ladder="three")
    rows = at(transports.rows, codecs=G711)
    here = at(three, depth=DEPTH, step_up=STEP)
    flap = at(three, depth="0B", step_up=STEP)
    quick = at(three, depth="0B", step_up="0s")
    page.claim(
        f"**A bucket of {spaced(DEPTH)}, and up after {spaced(STEP)}.** Calls score "
        f"{over(here, 'mos').show(2)} with it, and change codec "
        f"{over(here, 'switches').show(1)} times a minute. Of the other depths and steps tried "
        "only one scores higher by a hundredth or more, no bucket at all and steps up at once: "
        f"{over(quick, 'mos').show(2)}, with {over(quick, 'switches').show(0)} changes a "
        f"minute. Without a bucket and up after {spaced(STEP)} it is "
        f"{over(flap, 'mos').show(2)}.",
        all(
            over(mine, "mos").mean < over(here, "mos").mean + 0.01
            for mine in each(three.filter((pl.col("depth") != "0B") | (pl.col("step up") != "0s")))
        ),
        over(quick, "mos").mean > over(here, "mos").mean + 0.01,
        beside(at(three, step_up=STEP), "depth", "0B", DEPTH, "mos").low > 0,
    )
    climb = {
        n: over(of(at(bucket.rows, ladder=n, depth=DEPTH, step_up=STEP), SETTINGS[1]), "best")
        for n in LADDERS
    }
    paid = over(of(at(rows, transport=TB), SETTINGS[1]), "x_calc")
    page.claim(
        "**More than either, the ladder decides.** RFC 5348 limits X to twice what was "
        "received, so a codec that needs more than twice the rate of the next is out of reach "
        f"for a call that begins below it. At {words(SETTINGS[1])}, where the throughput "
        "equation would pay for G.711 more than twice over, calls spend "
        f"{climb['five'].show(0, 100)} % of their time on it with the study's five codecs, and "
        f"{climb['three'].show(0, 100)} % with three.",
        climb["five"].low > 0.95,
        climb["three"].high < 0.05,
        max(a / b for a, b in steps("five")) < 2 < max(a / b for a, b in steps("three")),
        paid.low > 2e3 * rates("three")[0],
    )
    beats = beside(rows, "transport", TFRC, TB, "mos")
    gains = {s: beside(of(rows, s), "transport", TFRC, TB, "mos") for s in SETTINGS}
    better, worse = split(gains)
    plain = [over(of(at(rows, transport=TFRC), s), "discarded") for s in SETTINGS]
    page.claim(
        f"**It beats TFRC for a caller with G.711**, by {beats.show(2, sign=True)} MOS over the "
        f"six settings, and where it matters: by {spread(better)} in the {number(better)} where "
        "the fair rate does not pay for the codec, and TFRC's sender throws away "
        f"{100 * min(one.mean for one in plain[3:]):.0f} % of the speech or more. In "
        f"{number(worse)} of the three where it does pay, TFRC-TB is worse by "
        f"{spread([turned(one) for one in worse])}, because it starts low and climbs slowly, or "
        "not at all; in the third no difference was shown.",
        beats.low > 0,
        len(better) == len(PAYS) == 3,
        len(worse) == 2,
        all(gains[s].low > 0 for s in SETTINGS[3:]),
        sum(gains[s].high < 0 for s in PAYS) == len(worse),
        all(one.low > 0.05 for one in plain[3:]),
        all(one.high < 0.01 for one in plain[:3]),
        all(over(of(at(rows, transport=TB), s), "best").mean < 0.8 for s in PAYS),
    )
    ccid4 = beside(rows, "transport", CCID4, TB, "mos")
    against = {s: beside(of(rows, s), "transport", CCID4, TB, "mos") for s in SETTINGS}
    won, lost = split(against)
    uploads = beside(rows, "transport", CCID4, TB, "upload_share")
    page.claim(
        f"**It does not beat CCID 4 with G.711**: {ccid4.show(2, sign=True)} MOS over the six, "
        f"better by {spread(won)} at 1 Mbit/s and worse by "
        f"{spread([turned(one) for one in lost])} elsewhere. What it does better is to leave "
        f"something: an upload has {uploads.show(2, sign=True)} of a fair share more beside it.",
        ccid4.low < 0.02,
        all(against[s].low > 0 for s in SETTINGS[4:]),
        all(against[s].high < 0 for s in SETTINGS[:4]),
        uploads.low > 0,
    )
    bare = beside(rows, "transport", BARE, TB, "mos")
    low = pl.concat([at(rows, transport=TB), at(transports.rows, codecs=G729A, transport=TFRC)])
    lowly = paired(together(low, "mos", "transport"), "transport", TFRC, "mos")[TB]
    page.claim(
        "**The bucket buys quiet, not opinion.** Beside a bare ladder that follows every "
        f"change of X it is worth {bare.show(2, sign=True)} MOS, for "
        f"{over(at(rows, transport=TB), 'switches').show(1)} changes of codec a minute instead "
        f"of {over(at(rows, transport=BARE), 'switches').show(0)}, of which the E-model knows "
        "nothing. And whoever takes G.729A over plain TFRC and stays with it is worse off by "
        f"{lowly.show(2)} MOS only.",
        bare.high < 0.05,
        over(at(rows, transport=TB), "switches").high
        < over(at(rows, transport=BARE), "switches").low / 10,
        lowly.high < 0.1,
    )
    wide = beside(rows, "transport", TB, WIDE, "mos")
    page.claim(
        f"So: {spaced(DEPTH)}, {spaced(STEP)}, no tokens asked for before a step, no step of the "
        "ladder wider than two, and an initial window in bytes like TCP's instead of in packets of "
        f"speech ({wide.show(2, sign=True)} MOS).",
        wide.low > 0,
    )
