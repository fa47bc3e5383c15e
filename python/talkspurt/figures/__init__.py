"""Figures of a run. Each is a function from a result to a matplotlib figure.

Figures draw the content of tables and compute nothing that belongs in a table. At most 24 flows are
drawn, in panels of up to six; a figure states how many more there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from talkspurt._text.format import offered
from talkspurt.figures import drawing, inside, media, time
from talkspurt.figures.drawing import Draw
from talkspurt.figures.style import inline_svg, pdf, png, styled, svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from talkspurt.results.run_data import RunData


@dataclass(frozen=True)
class Kind:
    """A kind of figure.

    Attributes:
        title: its title.
        alt: text alternative.
        draw: draws it for a result, a flow and a link; None if the run has no data for it.
        each: the flows that each get their own figure, if it is drawn per flow.
        in_report: whether the report of a run includes it as a picture, beside its own charts.
    """

    title: str
    alt: str
    draw: Draw
    each: Callable[[RunData], Sequence[str]] | None = None
    in_report: bool = False


def _of_sender(gauge: str, title: str, alt: str, shown: str) -> Kind:
    """The state of each sender that has a gauge; ``shown`` is what a picture of one shows."""
    draw = inside.drawn_of(gauge, shown)
    return Kind(title, alt, draw, each=lambda result: inside.directions(result, gauge))


KINDS: dict[str, Kind] = {
    "delay": Kind(
        "One-way delay",
        "One-way delay of each flow over time",
        drawing.of(
            "delay",
            "delay",
            "series",
            calls=True,
            more=": mean of each bin, shaded up to its longest",
            also=time.up_to_longest,
        ),
    ),
    "mouth_to_ear": Kind(
        "Mouth-to-ear delay and its parts",
        "Mouth-to-ear delay of each call over time, as the sum of its parts",
        drawing.of("mouth-to-ear", "mouth-to-ear delay", "frames"),
    ),
    "goodput": Kind(
        "Goodput",
        "Goodput of each flow over time, before the capacity of its bottleneck",
        drawing.of("goodput", "goodput", "series", "link_series"),
    ),
    "queue": Kind("Queue", "Packets waiting where queues are longest, over time", time.queue),
    "sojourn": Kind(
        "Wait in the queue",
        "How long packets waited where queues are longest, and what their queue made of it",
        time.sojourn,
    ),
    "cwnd": Kind(
        "Congestion window",
        "Congestion window of each flow over time",
        drawing.of("cwnd", "cwnd", "cwnd"),
    ),
    "rates": _of_sender(
        "rate",
        "Allowed rate",
        "Allowed, received and computed rate of a sender, its round-trip time and loss event rate",
        "the allowed rate and what it is made of",
    ),
    "window": _of_sender(
        "cwnd_packets",
        "Window of CCID 2",
        "Congestion window, threshold and pipe in packets, and Ack Ratio, over time",
        "congestion window, and what fills it",
    ),
    "bucket": _of_sender(
        "encoding",
        "Tokens and encoding",
        "Tokens saved, where there are any, and the encoding in use, over time",
        "tokens saved, and the encoding they hold",
    ),
    "mos": Kind(
        "MOS",
        "MOS of each call and what it lost to delay, loss and codec",
        media.mos,
    ),
    "delay_ecdf": Kind(
        "How long frames take",
        "Share of voice frames delivered within a time",
        drawing.of("delay-ecdf", "frames", "frames"),
    ),
    "frame_delay": Kind(
        "How long frames of video take",
        "Delay of each frame of video, and which were never decodable, over time",
        drawing.of("frame-delay", "frame delay", "video_frames"),
    ),
    "mos_over_time": Kind(
        "MOS over time",
        "MOS of each window of each call, over time",
        drawing.of("mos", "MOS", "frames", also=media.mark_best),
    ),
    "fates": Kind(
        "Fate of each frame",
        "Which voice frames were played, late or lost, over time",
        media.fates,
    ),
    "waveform": Kind(
        "Said and heard",
        "Waveform sent above waveform received",
        media.waveform,
        each=lambda result: result.heard,
    ),
}
"""All kinds of figures by name."""


def figure(
    result: RunData, kind: str, *, flow: str | None = None, link: str | None = None
) -> Figure:
    """Draw one figure.

    Raises:
        KeyError: for an unknown kind, flow or link.
        ValueError: if the run has no data for this kind.
    """
    if kind not in KINDS:
        raise KeyError(f"no figure {kind!r}; {offered(kind, KINDS)}")
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


MAX_EACH = 8
"""Per-flow figures are drawn by default for at most this many flows."""


def every(result: RunData, *, only_of_report: bool = False) -> Iterator[tuple[str, Figure]]:
    """All figures for which the run has data, with their file names; or those of its report."""
    kinds = {name: kind for name, kind in KINDS.items() if kind.in_report or not only_of_report}
    if not kinds:
        return  # without the import of the plotting library
    with styled():
        for name, kind in kinds.items():
            flows: list[str | None] = [*kind.each(result)[:MAX_EACH]] if kind.each else [None]
            for flow in flows:
                drawn = kind.draw(result, flow, None)
                if drawn is not None:
                    yield (f"{name}-{flow}" if flow else name), drawn


def formats(figure: Figure, *, as_pdf: bool = False) -> dict[str, bytes]:
    """The figure as SVG and PNG, and optionally PDF, by file extension.

    A PDF takes several times as long as the others: its fonts are subset.
    """
    made = {"svg": svg(figure), "png": png(figure)}
    return made | {"pdf": pdf(figure)} if as_pdf else made


__all__ = [
    "KINDS",
    "Kind",
    "every",
    "figure",
    "formats",
    "inline_svg",
    "pdf",
    "png",
    "styled",
    "svg",
]
