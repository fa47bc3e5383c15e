"""The summary of bucket.py's page, with the conditions it asserts."""

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
    """Write the summary."""
    page.heading("Summary")
    three = at(bucket.rows, ladder="three")
    rows = at(transports.rows, codecs=G711)
    here = at(three, depth=DEPTH, step_up=STEP)
    flap = at(three, depth="0B", step_up=STEP)
    quick = at(three, depth="0B", step_up="0s")
    page.claim(
        f"**The recommended bucket depth is {spaced(DEPTH)}, and the recommended step-up time is "
        f"{spaced(STEP)}.** With these values, the MOS of calls is {over(here, 'mos').show(2)}, "
        f"and the codec changes {over(here, 'switches').show(1)} times per minute. Only one other "
        "combination tried scores higher by at least a hundredth: without a bucket and with "
        f"immediate steps up, the MOS is {over(quick, 'mos').show(2)}, with "
        f"{over(quick, 'switches').show(0)} codec changes per minute. Without a bucket and with a "
        f"step-up time of {spaced(STEP)}, the MOS is {over(flap, 'mos').show(2)}.",
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
        "**The codec ladder has a larger effect than depth and step-up time.** RFC 5348 limits X "
        "to twice the receive rate. A call that starts with a lower codec thus cannot reach a "
        "codec that needs more than twice the rate of the next lower one. At "
        f"{words(SETTINGS[1])}, the rate of the throughput equation is more than twice that of "
        f"G.711. Calls use this codec for {climb['five'].show(0, 100)} % of the time with the "
        f"study's five codecs, and for {climb['three'].show(0, 100)} % of the time with three.",
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
        f"**TFRC-TB has a higher MOS than TFRC with G.711**, by {beats.show(2, sign=True)} over "
        f"the six settings. The gain is {spread(better)} in the {number(better)} settings in which "
        "the fair rate is below the rate of the codec. There, the sender of TFRC drops at least "
        f"{100 * min(one.mean for one in plain[3:]):.0f} % of the speech. In {number(worse)} of "
        "the three settings in which the fair rate suffices, TFRC-TB is worse by "
        f"{spread([turned(one) for one in worse])}, because it starts at a low rate and increases "
        "it slowly or not at all. In the third, no difference was shown.",
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
        "**TFRC-TB does not have a higher MOS than CCID 4 with G.711**: the difference over the "
        f"six settings is {ccid4.show(2, sign=True)}. TFRC-TB is better by {spread(won)} at 1 "
        f"Mbit/s and worse by {spread([turned(one) for one in lost])} in {number(lost)} of the "
        "four other settings. In the fourth, no difference was shown. It leaves more capacity to "
        f"competing flows: the throughput of an upload changes by {uploads.show(2, sign=True)} of "
        "a fair share.",
        ccid4.low < 0.02,
        all(against[s].low > 0 for s in SETTINGS[4:]),
        len(lost) == sum(against[s].high < 0 for s in SETTINGS[:4]) == 3,
        uploads.low > 0,
    )
    bare = beside(rows, "transport", BARE, TB, "mos")
    low = pl.concat([at(rows, transport=TB), at(transports.rows, codecs=G729A, transport=TFRC)])
    lowly = paired(together(low, "mos", "transport"), "transport", TFRC, "mos")[TB]
    page.claim(
        "**The bucket reduces codec changes but does not raise the MOS.** Compared with a bare "
        "ladder that follows every change of X, the bucket changes the MOS by "
        f"{bare.show(2, sign=True)}, with {over(at(rows, transport=TB), 'switches').show(1)} codec "
        f"changes per minute instead of {over(at(rows, transport=BARE), 'switches').show(0)}. The "
        "E-model does not account for codec changes. The MOS of a call that always uses G.729A "
        f"over TFRC without a bucket is only {lowly.show(2)} lower.",
        bare.high < 0.05,
        over(at(rows, transport=TB), "switches").high
        < over(at(rows, transport=BARE), "switches").low / 10,
        lowly.high < 0.1,
    )
    wide = beside(rows, "transport", TB, WIDE, "mos")
    page.claim(
        f"In summary, use a depth of {spaced(DEPTH)}, a step-up time of {spaced(STEP)}, no "
        "required tokens before a step up, and a ladder in which no codec needs more than twice "
        "the rate of the next. Set the initial window in bytes, like that of TCP, instead of in "
        f"packets of speech ({wide.show(2, sign=True)} MOS).",
        wide.low > 0,
    )
