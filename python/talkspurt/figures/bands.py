"""Bands behind scores: the classes of users' satisfaction of ITU-T G.107 Annex B."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from talkspurt._text.format import VERDICTS
from talkspurt.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from talkspurt.metrics.catalogue import Quantity

CLASSED = {
    "mos": "from_mos", "mos_over_time": "from_mos", "r_factor": "from_r", "r_over_time": "from_r",
    "estimated_mos": "from_mos", "estimated_mos_over_time": "from_mos",
}  # fmt: skip
"""The measures on whose scales there are classes."""
BANDS = (
    (style.GREEN, 0.16), (style.GREEN, 0.08), (style.ORANGE, 0.08), (style.ORANGE, 0.16),
    (style.VERMILLION, 0.10), (style.VERMILLION, 0.18),
)  # fmt: skip
"""Colour and opacity of a class, the best first."""
LEAST_BAND = 0.03
"""Share of the height at which a band has its name beside it."""


def draw(ax: Axes, measure: str, shown: Quantity, *, named: bool) -> str:
    """Draw the classes of a measure along y, with names beside them; returns what to say of them.

    The limits of the axis must be set. Nothing is drawn, and nothing said, of other measures.
    """
    ends = CLASSED.get(measure)
    if ends is None:
        return ""
    top = shown.most
    lowest, highest = ax.get_ylim()
    for one, (colour, opacity) in zip(VERDICTS, BANDS, strict=True):
        low = max(getattr(one, ends), shown.least)
        ax.axhspan(low, top, color=colour, alpha=opacity, linewidth=0, zorder=0.1)
        begin, end = max(low, lowest), min(top, highest)
        if named and end - begin > LEAST_BAND * (highest - lowest):
            look: dict[str, Any] = {"fontsize": 6, "va": "center"}
            place: dict[str, Any] = {"transform": ax.get_yaxis_transform()}
            ax.text(1.006, (begin + end) / 2, one.short, **look, **place)
        top = low
    names = f": {', '.join(one.short for one in VERDICTS)}, from the top"
    return f"Bands: users' satisfaction, ITU-T G.107 Annex B{'' if named else names}."
