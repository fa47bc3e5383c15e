"""The page on TFRC-TB's bucket depth and step-up time: conditions, tables and figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from measures import PACKET_BYTES, SCALES_S
from rows import Interval, Panel, Rows, bars, draw, number

from talkspurt.figures.style import transport_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DEPTH, STEP = "8kB", "2s"
"""The parameters that the page recommends, used in `bucket-transports`."""
LADDERS = {
    "five": (
        ("G.711", 200, 20),
        ("G.726", 120, 20),
        ("G.728", 80, 20),
        ("G.729", 65, 20),
        ("G.723.1", 64, 30),
    ),
    "three": (("G.711", 200, 20), ("G.729A", 60, 20), ("G.723.1", 64, 30)),
}
"""Codecs: name, bytes per packet including RTP, UDP and IP, and milliseconds per packet."""
RATES = {ladder: [8 * size / time for _, size, time in of] for ladder, of in LADDERS.items()}
"""Rates of all codecs including headers, in kbit/s."""
STEPS = {ladder: max(a / b for a, b in pairwise(rates)) for ladder, rates in RATES.items()}
"""The largest ratio of the rates of adjacent codecs."""
TB, TFRC, BARE, CCID4 = "TFRC-TB", "TFRC", "TFRC, bare ladder", "DCCP CCID 4"
FIVE, FIVE_BARE = "TFRC-TB, five codecs", "no bucket, five codecs"
DRAWN = {
    "UDP": ("udp", (), "full"),
    TFRC: ("tfrc", (), "full"),
    BARE: ("tfrc", (2, 2), "none"),
    TB: ("tfrc-tb", (), "full"),
    "TFRC-TB, wide start": ("tfrc-tb", (2, 2), "none"),
    FIVE: ("tfrc-tb", (6, 2.5), "full"),
    FIVE_BARE: ("tfrc-tb", (2, 2), "none"),
    CCID4: ("dccp-ccid4", (), "full"),
    "DCCP CCID 4 with bucket": ("dccp-ccid4", (2, 2), "none"),
}
"""Style of each line: transport, dashes, and fill style of the marker."""
MAPS = (
    ("MOS", "mos", ".2f", "three"),
    ("MOS, tenth percentile", "mos_p10", ".2f", "three"),
    ("codec changes / min", "switches", ".1f", "three"),
    ("share of time on G.711", "best", ".2f", "five"),
    ("rate variation over 1 s", "cov_5", ".2f", "five"),
    ("share of an upload", "upload_share", ".2f", "five"),
)
"""Measures over depth and step-up time: title, measure, format and codec ladder."""


def spaced(label: str) -> str:
    """Insert a space before the unit of a label."""
    amount = label.rstrip("abcdefghijklmnopqrstuvwxyzBM/")
    return f"{amount} {label[len(amount) :]}"


SETTINGS = {
    f"{spaced(rate.replace('1500kbit', '1.5Mbit'))}, {spaced(delay)}": (rate, delay)
    for rate in ("3Mbit/s", "1500kbit/s", "1Mbit/s")
    for delay in ("20ms", "100ms")
}
"""The rate of the bottleneck and the delay of the path."""
LONG = list(SETTINGS)[1]
"""An uncongested, long path."""


def at(rows: Rows, setting: str) -> Rows:
    """Return the runs of a rate and a delay."""
    rate, delay = SETTINGS[setting]
    return rows(bottleneck=rate, one_way=delay)


def over(rows: Rows) -> list[Rows]:
    """Return the runs of each setting."""
    return [at(rows, setting) for setting in SETTINGS]


def above(rows: Rows) -> list[Interval]:
    """Return the differences in MOS that are above zero, over the settings, in ascending order."""
    found = [one.mos for one in over(rows)]
    return sorted((gain for gain in found if gain.low > 0), key=lambda gain: gain.mean)


def by_scale(bucket: Rows, transports: Rows) -> dict[str, Rows]:
    """Return the runs over transports with G.711, and those of five codecs."""
    five = bucket(ladder="five", step_up=STEP)
    rows = transports(codecs="from G.711").each("transport")
    return rows | {FIVE: five(depth=DEPTH), FIVE_BARE: five(depth="0B")}


def values(*studies: Rows) -> Mapping[str, Any]:
    """Return the values of the page by name."""
    bucket, tokens, transports, packets = (replace(rows, pooled=True) for rows in studies)
    depth, step = spaced(DEPTH), spaced(STEP)
    three, five = (bucket(ladder=ladder) for ladder in ("three", "five"))
    cells = {
        f"{spaced(depth)}, {spaced(step)}": rows
        for step, some in three.each("step up").items()
        for depth, rows in some.each("depth").items()
    }
    here, flap, quick = cells[f"{depth}, {step}"], cells[f"0 B, {step}"], cells["0 B, 0 s"]

    by = by_scale(bucket, transports)
    ours = {label: by[label] for label in transports.labels("transport")}
    lower = transports(codecs="from G.729A").each("transport")
    narrow = packets(codecs="from G.711").each("transport")
    tb, tfrc, bare, ccid4 = (by[label] for label in (TB, TFRC, BARE, CCID4))
    wide, with_bucket = by["TFRC-TB, wide start"], by["DCCP CCID 4 with bucket"]
    better, worse = above(tb - tfrc), above(tfrc - tb)
    won, lost = above(tb - ccid4), above(ccid4 - tb)
    climb = {
        f"{ladder}: {codecs(ladder)}": bucket(ladder=ladder, depth=DEPTH, step_up=STEP)
        for ladder in LADDERS
    }
    climb_five, climb_three = (at(rows, LONG).best for rows in climb.values())
    x = at(tb, LONG)

    few = max(
        some(depth="2kB").switches.mean / some(depth="0B").switches.mean
        for rows in (three, five)
        for some in rows.each("step up").values()
    )
    deeper = [
        (some(depth="32kB") - some(depth="2kB")).mos for some in three.each("step up").values()
    ]
    dear = five(step_up=STEP, depth="2kB") - five(step_up=STEP, depth="32kB")
    slower = {label: rows - here for label, rows in three(depth=DEPTH).each("step up").items()}
    crowded, rich, climbs = (
        rows(depth=DEPTH, step_up=STEP) - rows(depth=DEPTH, step_up="500ms")
        for rows in (
            three(bottleneck="1Mbit/s"),
            three(bottleneck="3Mbit/s", one_way="20ms"),
            five(bottleneck="3Mbit/s"),
        )
    )
    full = {spaced(label): rows.each("tokens") for label, rows in tokens.each("depth").items()}
    required = [(r[n] - r["none"]).mos for r in full.values() for n in ("half", "full")]

    best_kbps, next_kbps = RATES["three"][:2]
    longest_s = 4 * PACKET_BYTES * 8 / (best_kbps * 1e3)
    quiet, loud = list(SETTINGS)[3:5]
    rough, smooth = (
        [at(rows, setting) for setting in (quiet, loud)]
        for rows in (by[FIVE] - tfrc, by[FIVE_BARE] - by[FIVE])
    )
    held = min(one.mos.low for one in over(lower[CCID4])[:4])
    beyond, of_x = transports.values("beyond_x"), transports.values("of_x")
    return locals()


def codecs(ladder: str) -> str:
    """Format the codecs of a ladder with their rates in kbit/s."""
    pairs = zip(LADDERS[ladder], RATES[ladder], strict=True)
    return ", ".join(f"{name} {rate:.0f}" for (name, _, _), rate in pairs)


def minus(heading: str, by: Mapping[str, Rows]) -> dict[str, Rows]:
    """Return the differences between TFRC-TB and the other transports."""
    others = (TFRC, CCID4, "DCCP CCID 4 with bucket", BARE, "UDP")
    return {f"{heading} minus {other}": by[TB] - by[other] for other in others}


def shares(rows: Rows) -> str:
    """Format the share of a call, the share of an upload, and Jain's index."""
    measures = (rows.call_share, rows.upload_share, rows.jain)
    return " / ".join(number(one.mean, ".2f") for one in measures)


# Figures.


def figures(*studies: Rows) -> Mapping[str, bytes]:
    """Draw the figures of the page."""
    bucket, _, transports, _ = (replace(rows, pooled=True) for rows in studies)
    by = by_scale(bucket, transports)
    scales = [_scales(by, setting) for setting in list(SETTINGS)[3:5]]
    depths, step_ups = bucket.labels("depth"), bucket.labels("step up")
    ticks = {"xticks": range(len(depths)), "yticks": range(len(step_ups))}
    names = {"xticklabels": [*map(spaced, depths)], "yticklabels": [*map(spaced, step_ups)]}
    axes = {"xlabel": "bucket depth", "ylabel": "step-up time"}
    maps: list[Panel] = [
        ({**ticks, **names, **axes, "title": f"{title} ({ladder})"}, ())
        for title, _, _, ladder in MAPS
    ]

    def fill_maps(axes: Sequence[Axes]) -> None:
        for ax, (_, measure, spec, ladder) in zip(axes, MAPS, strict=True):
            rows = bucket(ladder=ladder)
            grid = [
                [rows(depth=d, step_up=s).frame[measure].mean() for d in depths] for s in step_ups
            ]
            _map(ax, grid, spec)

    return {
        "maps": draw(
            (9.2, 4.6), maps, finish=fill_maps, nrows=2, ncols=3, sharex=True, sharey=True
        ),
        "mos": draw((9.2, 3.6), [_opinions(by)], {"loc": "outside right upper"}),
        "scales": draw(
            (9.2, 3.2), scales, {"loc": "outside lower center", "ncols": 4}, sharey=True
        ),
    }


def _map(ax: Axes, grid: Sequence[Sequence[float]], spec: str) -> None:
    """Show a number and a shade for each depth (across) and step-up time (down)."""
    ax.imshow(grid, cmap="cividis", aspect="auto")
    ax.grid(visible=False)
    every = [value for row in grid for value in row]
    middle = (min(every) + max(every)) / 2
    for y, row in enumerate(grid):
        for x, value in enumerate(row):
            place = {"ha": "center", "va": "center", "fontsize": 8}
            ax.text(
                x, y, number(value, spec), color="white" if value < middle else "black", **place
            )


def _style(label: str) -> dict[str, Any]:
    transport, dashes, filling = DRAWN[label]
    style = transport_style(transport)
    look = {"color": style.colour, "marker": style.marker, "fillstyle": filling, "label": label}
    return look | ({"dashes": dashes} if dashes else {})


def _opinions(by: Mapping[str, Rows]) -> Panel:
    """Show the MOS by setting: markers are means of the calls, dashes tenth percentiles."""
    curves = []
    for i, label in enumerate(label for label in DRAWN if label not in (FIVE, FIVE_BARE)):
        place = {"x": [x + (i - 3) * 0.11 for x in range(len(SETTINGS))], "linestyle": "none"}
        style = {key: value for key, value in _style(label).items() if key != "dashes"}
        rows = [*over(by[label])]
        curves.append({**place, **bars([one.mos for one in rows]), **style})
        low = {"y": [one.mos_p10.mean for one in rows], "marker": "_", "markersize": 7}
        curves.append({**place, **style, **low, "label": None})
    return {
        "title": "MOS of eight calls starting with G.711: mean, and tenth percentile (–)",
        "xticks": range(len(SETTINGS)),
        "xticklabels": [setting.replace(", ", "\n") for setting in SETTINGS],
        "ylabel": "MOS",
        "ylim": (1, 4.2),
    }, curves


def _scales(by: Mapping[str, Rows], setting: str) -> Panel:
    """Show the coefficient of variation of the sending rate against the time scale."""
    curves = []
    for label in DRAWN:
        if label not in ("UDP", "TFRC-TB, wide start"):
            frame = at(by[label], setting).frame
            y = [frame[f"cov_{bins}"].mean() for bins in SCALES_S]
            y = [math.nan if value is None else value for value in y]
            curves.append({"x": list(SCALES_S.values()), "y": y, "markersize": 4, **_style(label)})
    return {
        "title": setting,
        "xscale": "log",
        "xticks": list(SCALES_S.values()),
        "xticklabels": [f"{scale:g}" for scale in SCALES_S.values()],
        "xlabel": "time scale / s",
        "ylabel": "coefficient of variation",
        "ylim": (0, None),
    }, curves
