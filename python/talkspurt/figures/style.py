"""Figure styles: a family of colours per kind of traffic, a shade and a marker per transport.

Voice is blue, video is orange, and all other traffic is green. The families are told apart with any
kind of colour vision, and all shades are seen on light and dark paper (``tests/test_figures.py``
computes both). Further flows of a kind over the same transport keep its shade and change its
dashes. Ink is one fixed colour, which the report replaces by the page's own.
"""

from __future__ import annotations

import hashlib
import io
import logging
import re
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from talkspurt._text.escaping import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

INK = "#24292e"
FAINT = "#9aa1a8"
PAPER = "#ffffff"

# Okabe and Ito, "Color Universal Design", 2008.
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY = "#E69F00", "#56B4E9"
# Okabe and Ito have eight; these are darker variants of three of them.
TEAL, BROWN, SLATE, OLIVE = "#1F5F7A", "#7A4B00", "#5B4A8A", "#6B7000"
PALETTE = (BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, BROWN, TEAL, SLATE, "#6b7280")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "<", "h")
"""Of what is no transport."""

FATE_COLOURS = {
    "played": "#b9c2cb",
    "recovered": GREEN,
    "late": ORANGE,
    "lost": "#3f464e",
    "discarded": PURPLE,
    "queued": "#b8a45a",
    "in_flight": "#8fb7d6",
    "pause": "#eef1f4",
}
"""Outcomes of a voice frame, and pauses in which nothing was sent."""

CAUSE_COLOURS = {"delay": ORANGE, "loss": "#3f464e", "codec": PURPLE}


@dataclass(frozen=True)
class Style:
    """Colour and marker of a kind of traffic over a transport, and dashes of one of its flows.

    Attributes:
        in_background: whether a flow is only there to disturb others.
    """

    colour: str
    marker: str
    dashes: tuple[float, ...] = ()
    kind: str = ""
    in_background: bool = False


VOICE, VIDEO, BULK = "voice", "video", "bulk"
SOURCES = {"speech": VOICE, "video": VIDEO}
"""The kinds of traffic of sources; all others are bulk."""
FAMILIES = {
    VOICE: ("#1F76D2", "#848AD6", "#6D69FA", "#6C6AB1"),
    VIDEO: ("#F96023", "#995E2B", "#D13131", "#C45F20"),
    BULK: ("#2FA094", "#2A8664", "#669C72", "#087870"),
}
"""Colours of kinds of traffic: the shades of UDP, TCP, DCCP and SCTP, which others share."""
TRANSPORTS = {
    "udp": (0, "o"),
    "tcp": (1, "s"),
    "dccp-ccid2": (2, "^"),
    "dccp-ccid3": (2, "v"),
    "dccp-ccid4": (2, "<"),
    "dccp": (2, "^"),
    "sctp": (3, "D"),
    "tfrc": (0, "P"),
    "tfrc-tb": (3, "p"),
    "beritelli": (1, "h"),
    "icmp": (0, "*"),
}
OTHER = Style("#6b7280", "X")
REAL = "real"
"""The source of flows of programs, in an emulation."""

DASHES: tuple[tuple[float, ...], ...] = ((), (6, 2.5), (2, 2), (8, 2, 2, 2), (12, 3))
"""Dashes of the first, second … flow of one colour; empty is a solid line."""

FILLS = ("full", "none", "left", "bottom", "right")
"""Marker fills of the first, second … flow of one colour."""

LINE_LENGTH = 5.5
"""Length of a line in a legend, in font sizes: long enough to show its dashes."""


def kind_of(source: str | None) -> str:
    """The kind of traffic of a source."""
    return SOURCES.get(source or "", BULK)


def transport_style(transport: str, kind: str = VOICE) -> Style:
    """Colour and marker of a kind of traffic over a transport, by its longest known prefix."""
    word = transport.lower().replace("/", "-").replace("_", "-")
    for name in sorted(TRANSPORTS, key=len, reverse=True):
        if word.startswith(name):
            place, marker = TRANSPORTS[name]
            return Style(FAMILIES[kind][place], marker, kind=kind)
    return OTHER


def flow_styles(flows: Mapping[str, tuple[str, str | None]]) -> dict[str, Style]:
    """A style for each flow, from its transport and source, and its place among flows like it.

    Beside calls, video and programs, other flows are in the background.
    """
    media = {name for name, (_, source) in flows.items() if source in (*SOURCES, REAL)}
    seen: dict[str, int] = {}
    styles = {}
    for flow, (transport, source) in flows.items():
        kind = kind_of(source)
        style = transport_style(transport, kind)
        if style == OTHER:
            style = replace(OTHER, colour=FAMILIES[kind][0], kind=kind)
        place = seen.get(style.colour, 0)
        seen[style.colour] = place + 1
        colour = shade(style.colour, SHADES[place // len(DASHES) % len(SHADES)])
        behind = bool(media) and flow not in media
        dashes = DASHES[place % len(DASHES)]
        styles[flow] = replace(style, colour=colour, dashes=dashes, in_background=behind)
    return styles


NEAR = 0.4
"""Data whose minimum exceeds this share of its maximum has an axis without zero."""


def bounds(low: float, high: float) -> tuple[float, float]:
    """Limits of an axis for data: from zero, or fitted if the data is far from it."""
    if low > NEAR * high > 0:
        margin = 0.08 * (high - low) or 0.1 * high
        return low - margin, high + margin
    return min(low, 0.0), 1.06 * high if high > 0 else 1.0


SHADES = (0.0, -0.25, 0.25)
"""Darkening (below 0) or lightening of a colour when the dashes repeat."""


def shade(colour: str, share: float) -> str:
    """A colour mixed with black or white."""
    end = 255 if share > 0 else 0
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(part + abs(share) * (end - part)):02X}" for part in parts)


# Any: matplotlib types each of its three hundred settings by name.
RC: Any = {
    "svg.fonttype": "none",
    "pdf.fonttype": 42,  # TrueType, searchable and editable
    "svg.hashsalt": "talkspurt",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "axes.formatter.useoffset": False,
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.7,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "lines.linewidth": 1.5,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "figure.constrained_layout.use": True,
}


@contextmanager
def styled(*, math: bool = False) -> Iterator[None]:
    """Apply our style, isolated from the user's settings.

    A dollar sign is literal, since names and titles are arbitrary text; with ``math`` it starts a
    formula, for figures that contain only our own text.
    """
    import matplotlib as mpl

    with mpl.rc_context({**RC, "text.parse_math": math}):
        yield


def _is_no_advice(record: logging.LogRecord) -> bool:
    words = record.getMessage()
    return "MPLCONFIGDIR" not in words and not words.startswith("mkdir -p failed")


# It advises where nobody asked to keep its caches if the home folder is read-only. All modules that
# import it import this one before.
logging.getLogger("matplotlib").addFilter(_is_no_advice)


PNG_DPI = 160
WIDTH = 7.2
"""Width of a figure in inches."""


def sheet(
    title: str, *, width: float = WIDTH, height: float = 2.9, rows: int = 1, **layout: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with its axes, stacked vertically."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    axes = figure.subplots(rows, 1, squeeze=False, **layout)[:, 0]
    axes[0].set_title(title)
    return figure, list(axes)


def panels(
    title: str, count: int, columns: int, *, width: float = WIDTH, height: float, **layout: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with ``count`` axes in rows, under one title."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    return figure, fill(figure, title, count, columns, **layout)


def fill(
    figure: Figure | SubFigure, title: str, count: int, columns: int, **layout: Any
) -> list[Axes]:
    """Fill a figure, or a part of one, with ``count`` axes in rows, under one title."""
    grid = figure.subplots(-(-count // columns), columns, squeeze=False, **layout).ravel()
    for ax in grid[count:]:
        ax.set_visible(False)
    figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold", color=INK)
    return list(grid[:count])


LETTERS = 110
"""Maximum letters per line of a note of a full-width figure."""


def set_title(figure: Figure, title: str | None) -> None:
    """Give a figure another title, if there is one."""
    if title is None:
        return
    if figure.get_suptitle() or figure.subfigs:
        figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold", color=INK)
    else:
        figure.axes[0].set_title(title, loc="left", fontsize=10, fontweight="bold", color=INK)


def set_size(figure: Figure, size: tuple[float | None, float | None]) -> None:
    """Give a figure another width and height, in inches, as far as they are given."""
    width, height = size
    figure.set_size_inches(width or figure.get_figwidth(), height or figure.get_figheight())


def note(figure: Figure | SubFigure, *words: str) -> None:
    """A note below a figure, or a part of one; nothing if it is empty."""
    whole = figure.get_figure(root=True)
    assert whole is not None
    letters = int(LETTERS * whole.get_figwidth() / WIDTH)
    lines = [line for part in words if part for line in wrap(part, letters)]
    if lines:
        figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=7.5, color=INK)


def notes_of(figure: Figure) -> str:
    """The note below a figure."""
    return figure.get_supxlabel().replace("\n", " ")


MAX_NAMES = 8


def left_out(what: str, names: Sequence[str]) -> str:
    """A sentence on the items not drawn; empty if all are drawn."""
    if not names:
        return ""
    named = "; ".join(names[:MAX_NAMES])
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return f"Not drawn: {len(names)} {what}{'s' if len(names) != 1 else ''}: {named}{more}."


def label_ends(ax: Axes, ends: Iterable[tuple[float, float, str, str]]) -> None:
    """Label lines at their right ends (x, y, text, colour), shifted to avoid overlap."""
    import numpy as np

    figure = ax.get_figure(root=True)
    spec = ax.get_subplotspec()
    assert figure is not None and spec is not None
    heights = np.asarray(spec.get_gridspec().get_height_ratios(), dtype=float)
    share = float(heights[spec.rowspan.start] / heights.sum())
    # In axes fractions, independent of the scale; approximate distances suffice.
    gap = 11 / (figure.get_figheight() * 72 * 0.8 * share)
    fractions = ax.transScale + ax.transLimits
    placed: list[float] = []
    right = ax.get_xlim()[1]
    named = [
        (float(fractions.transform((right, y))[1]), y, text, colour) for _, y, text, colour in ends
    ]
    for fraction, y, text, colour in sorted(named, key=lambda end: end[0]):
        at = max(fraction, 0.0)
        if placed and at < placed[-1] + gap:
            at = placed[-1] + gap
        placed.append(at)
        ax.annotate(
            text,
            (right, y),
            xytext=(1.012, at),
            textcoords="axes fraction",
            color=colour,
            va="center",
            fontsize=8.5,
            annotation_clip=False,
        )


def svg(figure: Figure) -> bytes:
    """The figure as SVG, deterministic."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    file = io.BytesIO()
    # Not savefig, which draws everything twice.
    with _printing(figure, figure.dpi):
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(file, metadata={"Date": None})
    # The layout is done, which takes longer than drawing; other formats use it.
    figure.set_layout_engine("none")
    # XML cannot contain control characters, and pictures must not contain bidi controls.
    return visible(file.getvalue().decode("utf-8"), lines=True).encode("utf-8")


@dataclass(frozen=True)
class Drawn:
    """A figure drawn as SVG, for files and for the report, with its width in inches."""

    name: str
    svg: bytes
    width: float
    notes: str

    @classmethod
    def of(cls, name: str, figure: Figure, drawn: bytes | None = None) -> Drawn:
        """A figure, drawn now unless the SVG is given."""
        picture = svg(figure) if drawn is None else drawn
        return cls(name, picture, figure.get_figwidth(), notes_of(figure))


def pdf(figure: Figure) -> bytes:
    """The figure as PDF, deterministic."""
    from matplotlib.backends.backend_pdf import FigureCanvasPdf

    file = io.BytesIO()
    # Not savefig, as above; our figures have no background.
    with _printing(figure, figure.dpi):
        canvas: Any = FigureCanvasPdf(figure)
        canvas.print_pdf(file, metadata={"CreationDate": None})
    return file.getvalue()


def png(figure: Figure, dpi: float = PNG_DPI) -> bytes:
    """The figure as PNG on white."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    file = io.BytesIO()
    face = figure.get_facecolor()
    with _printing(figure, dpi):
        figure.set_facecolor(PAPER)
        canvas: Any = FigureCanvasAgg(figure)
        canvas.draw()
        # Nothing of it is transparent. This level and strategy make smaller files of figures than
        # Pillow's, in two thirds of the time.
        drawn = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
        written = PngInfo()
        written.add_text("Software", "talkspurt")
        how = {"compress_level": 4, "compress_type": zlib.Z_DEFAULT_STRATEGY, "pnginfo": written}
        drawn.save(file, "PNG", dpi=(dpi, dpi), **how)
        figure.set_facecolor(face)
    return file.getvalue()


@contextmanager
def _printing(figure: Figure, dpi: float) -> Iterator[None]:
    """Draw in our style and at this resolution, and restore the figure's own."""
    import matplotlib as mpl

    own = figure.dpi
    figure.dpi = dpi
    try:
        with mpl.rc_context(RC), warnings.catch_warnings():
            # One for each letter, with a place in our source; :func:`unknown_letters` tells them.
            warnings.filterwarnings("ignore", message=r"Glyph \d+ ")
            yield
    finally:
        figure.dpi = own


def unknown_letters(figure: Figure) -> str:
    """The letters that the font of the figure's texts lacks; boxes stand for them."""
    from matplotlib.font_manager import findfont, get_font
    from matplotlib.text import Text

    found: dict[str, None] = {}
    for text in figure.findobj(Text):
        known = get_font(findfont(text.get_fontproperties())).get_charmap()
        found |= {it: None for it in text.get_text() if it.isprintable() and ord(it) not in known}
    return "".join(found)


def inline_svg(drawn: bytes, alt: str) -> str:
    """A figure of :func:`svg` as an inline element with the page's ink, and unique ids."""
    text = drawn.decode("utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = text.replace(INK, "currentColor")
    salt = hashlib.sha256(text.encode()).hexdigest()[:8]
    text = re.sub(r'\bid="([^"]+)"', rf'id="f{salt}-\1"', text)
    text = re.sub(r'(url\(|xlink:href=")#', rf"\1#f{salt}-", text)
    head, rest = text.split(">", 1)
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    return f'{head} role="img" aria-label="{escape(alt, quote=True)}">{rest}'
