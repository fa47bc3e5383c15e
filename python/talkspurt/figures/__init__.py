"""Figures of a run. Each is a function from a result to a matplotlib figure.

Figures draw what tables hold and compute nothing that belongs in a table. At most twelve flows
are drawn; a figure with more says how many it leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from talkspurt.figures import quality, speech, time
from talkspurt.figures.style import inline_svg, png, styled, svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from talkspurt.result import Result

Draw = Callable[["Result", "str | None", "str | None"], "Figure | None"]


@dataclass(frozen=True)
class Kind:
    """A kind of figure.

    Attributes:
        title: what it is called.
        alt: what it shows, for those who cannot see it.
        draw: makes it of a result, a flow and a link; None when the run has nothing to show.
        each_call: whether there is one for each call that can be heard.
    """

    title: str
    alt: str
    draw: Draw
    each_call: bool = False


KINDS: dict[str, Kind] = {
    "delay": Kind("One-way delay", "One-way delay of each flow over time", time.delay),
    "goodput": Kind("Goodput", "Goodput of each flow over time", time.goodput),
    "queue": Kind("Queue", "Packets waiting where queues are longest, over time", time.queue),
    "cwnd": Kind("Congestion window", "Congestion window of each flow over time", time.cwnd),
    "delay_ecdf": Kind(
        "How long frames take", "Share of voice frames delivered within a time", speech.delay_ecdf
    ),
    "mos": Kind("MOS", "MOS of each call and what it lost to delay, loss and codec", quality.mos),
    "fates": Kind(
        "Fate of each frame",
        "Which voice frames were played, late or lost, over time",
        speech.fates,
    ),
    "waveform": Kind(
        "Said and heard", "Waveform sent above waveform received", speech.waveform, each_call=True
    ),
}
"""Every kind of figure by name."""


def figure(
    result: Result, kind: str, *, flow: str | None = None, link: str | None = None
) -> Figure:
    """Draw one figure.

    Raises:
        KeyError: for an unknown kind, flow or link.
        ValueError: when the run has nothing of the kind to show.
    """
    if kind not in KINDS:
        raise KeyError(f"no figure {kind!r}; there are {', '.join(KINDS)}")
    if flow is not None:
        result._check_name("flow", flow)
    if link is not None:
        result._check_name("link", link)
    with styled():
        drawn = KINDS[kind].draw(result, flow, link)
    if drawn is None:
        of = f" of {flow}" if flow else ""
        raise ValueError(f"this run has nothing to show in the figure {kind!r}{of}")
    return drawn


MOST_CALLS = 8
"""Figures made one per call are made for this many calls at most, unasked."""


def every(result: Result) -> Iterator[tuple[str, Figure]]:
    """Every figure the run has something to show in, with the name of its file."""
    with styled():
        for name, kind in KINDS.items():
            flows: list[str | None] = [*result.heard[:MOST_CALLS]] if kind.each_call else [None]
            for flow in flows:
                drawn = kind.draw(result, flow, None)
                if drawn is not None:
                    yield (f"{name}-{flow}" if flow else name), drawn


def both(figure: Figure) -> dict[str, bytes]:
    """The figure as SVG and as PNG, by file ending."""
    return {"svg": svg(figure), "png": png(figure)}


__all__ = ["KINDS", "Kind", "both", "every", "figure", "inline_svg", "png", "styled", "svg"]
