"""Figures of any measure of a run or a study, as lines, bars, points, boxes, a CDF or a map.

A measure is drawn over an axis of the study (or over flows, links, transports or sources), or, if
it has values over time or against another quantity, over these. Colours distinguish ``by``; what
else varies has panels of its own.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import ScaledTranslation

from talkspurt import intervals
from talkspurt.figures import bands, chart, decimating, maps, panel, scale, style, values
from talkspurt.figures.panel import MAX_PANELS
from talkspurt.figures.values import Numbers, Part, Plot, against, half_width, mean_of, short
from talkspurt.metrics.catalogue import metric, over_time
from talkspurt.results.axis import Axis
from talkspurt.results.study_data import StudyData

TALL, ROW = 3.1, 2.1
"""Height of a figure of one panel, and of each row of several, in inches."""
TALL_OF_SEVERAL = 2.5
"""Height of one panel of a measure below another."""
ROOMY = 2.2
"""Height of a measure in inches from which on the names of bands have room."""
NARROWEST = 1.9
"""Width of a panel with its numbers in inches, at least, in a figure of a given width."""
MAX_WIDTH = 16.0
"""Width of a figure of many bars, in inches, at most."""
BAR = 0.11
"""Width of a bar in inches, at least, as long as the figure may become wider."""
OWN = 1.15
"""How many times as many panels with scales of their own a width is taken for."""
LEGEND = 1.0
"""About the width of a legend in inches."""
SLOPE = 0.6
"""Height of a slanted label over its length."""
MAX_BANDS = 8
"""Of more lines, the bands of the intervals would hide everything: whiskers remain."""
WHISKERS = (5, 95)
"""Percentiles at the ends of a box's whiskers."""
NO_WHISKER = f"No whisker: {intervals.WORDS[intervals.STILL]}"
MAX_STEPS = 400


Looks = Mapping[str, style.Style]


def figure(
    study: StudyData,
    measures: str | Sequence[str],
    *,
    size: tuple[float | None, float | None] = (None, None),
    **options: Any,
) -> Figure:
    """Draw measures of the catalogue below each other; see :meth:`talkspurt.Study.figure`."""
    names = [measures] if isinstance(measures, str) else list(dict.fromkeys(measures))
    plots: list[Plot] = []
    faults: dict[str, Exception] = {}
    for name in names:
        try:
            plots.append(_plot(study, name, **options))
        except (KeyError, ValueError) as error:
            faults.setdefault(str(error.args[0]), error)
    if not names:
        raise ValueError("no metric to draw: name one")
    if len(names) > 1 and any(one.kind == "map" for one in plots):
        faults["map"] = ValueError("kind map: draws one metric")
    if faults:
        raise values.together(list(faults.values())) from None
    with style.styled():
        if plots[0].kind == "map":
            drawn = _map(plots[0])
            style.set_size(drawn, size)
            return drawn
        sheets = [_Sheet.of(plot, size, len(plots)) for plot in plots]
        if len(sheets) == 1:
            alone = Figure(figsize=(sheets[0].width, size[1] or sheets[0].height))
            sheets[0].draw(alone)
            return alone
        return _stacked(sheets, size[1])


def _plot(
    study: StudyData,
    measure: str,
    *,
    over: str | None = None,
    by: str | None = None,
    kind: str | None = None,
    flow: str | None = None,
    link: str | None = None,
    bin_s: float | None = None,
    time: bool = False,
) -> Plot:
    """What is to be drawn of a measure."""
    faults: list[Exception] = []
    over, by = (values.axis_called(study, name) for name in (over, by))
    if time and over not in (None, values.TIME):
        faults.append(ValueError(f"time, and over {over!r}: give one of them"))
    if kind is not None and kind not in values.KINDS:
        faults.append(ValueError(f"no kind of figure {kind!r}: expected {', '.join(values.KINDS)}"))
    is_axis = any(axis.name == values.TIME for axis in study.axes)
    along_time = time or (over == values.TIME and not is_axis)
    try:
        one = metric(measure, of_links=link is not None)
        if along_time:
            one = over_time(one)
    except (KeyError, ValueError) as error:
        faults += values.unknown(study, None, None if along_time else over, by)
        raise values.together([error, *faults, *values.unknown_places(study, flow, link)]) from None
    if along_time:
        over = None
    faults += values.unknown(study, one, over, by)
    if over is not None and over == by:
        faults.append(ValueError(f"over and by are both {over!r}"))
    name, other = (link, flow) if one.of_links else (flow, link)
    if other is not None:
        kinds = ("links", "flows") if one.of_links else ("flows", "links")
        faults.append(ValueError(f"{one.full_name} is of {kinds[0]}, not of {kinds[1]}"))
    try:
        found = values.parts(study, one, name, bin_s)
        if not found and not faults:
            faults.append(values.missing(study, one, name))
    except (KeyError, ValueError) as error:
        faults.append(error)
    if faults:
        raise values.together(faults) from None
    drawn = values.chosen(study, one, found, over, by, kind)
    drawn.notes.extend(filter(None, [values.sample_note(study, one, found)]))
    return drawn


def _stacked(sheets: Sequence[_Sheet], height: float | None) -> Figure:
    """Several measures below each other, with one legend if it is the same for all."""
    heights = [sheet.height for sheet in sheets]
    width = max(sheet.width for sheet in sheets)
    figure = Figure(figsize=(width, height or sum(heights)))
    places = figure.subfigures(len(sheets), 1, squeeze=False, height_ratios=heights)[:, 0]
    together = len({sheet.entries for sheet in sheets}) == 1
    for sheet, place in zip(sheets, places, strict=True):
        sheet.draw(place, alone=False, legend=not together)
    if together:
        sheets[0].legend(figure)
    style.note(figure, *dict.fromkeys(words for sheet in sheets for words in sheet.notes))
    return figure


@dataclass(frozen=True)
class _Sheet:
    """The panels of a measure: how many, how large, and what the legend beside them names."""

    drawn: Plot
    every: Mapping[tuple[str, ...], list[Part]]
    columns: int
    width: float
    height: float
    own: float
    shared: bool
    named: Looks
    has_room: bool
    """For the names of bands."""

    @classmethod
    def of(cls, drawn: Plot, size: tuple[float | None, float | None], of: int) -> _Sheet:
        """Lay out the panels of one of so many measures, in a figure of a size if one is given."""
        given, whole = size
        every = drawn.panels()
        count = min(len(every), MAX_PANELS)
        labels = drawn.labels(drawn.by)
        columns = 1 if count == 1 else 2 if count in (2, 4) else 3
        width = given or style.WIDTH
        if given:
            columns = max(1, min(columns, int(given / NARROWEST)))
        below = 0.0
        shared = count > 1 and drawn.place not in drawn.rest
        # Panels with scales of their own are narrower by their numbers.
        own = 1.0 if shared or count == 1 else OWN
        of_bars = drawn.kind in ("bars", "box")
        # Lines and points of numbers are placed to scale.
        if drawn.over and (of_bars or not scale.numbers(drawn.labels(drawn.over))):
            groups = drawn.groups(drawn.over).labels
            bars = len(labels) * BAR if of_bars else 0.0
            need = len(groups) * max(bars, panel.SLOPING / 72) + 1.8
            if not given:
                if columns * need > style.WIDTH:
                    columns = max(1, min(columns, int(MAX_WIDTH / need)))
                width = min(max(style.WIDTH, columns * need), MAX_WIDTH)
            if panel.slanted(groups, own * columns * style.WIDTH / width):
                below = max(map(len, groups)) * panel.LETTER / 72 * SLOPE
        tall = TALL_OF_SEVERAL if of > 1 else TALL
        height = tall if count == 1 else 0.9 + ROW * -(-count // columns)
        named = {} if drawn.by else _transports_to_name(drawn)
        if drawn.by and len(labels) > 1:
            named = {label: drawn.looks[label] for label in labels}
        height = max(height + below, 0.9 + 0.17 * len(named))
        has_room = columns == 1 and (whole is None or whole / of >= ROOMY)
        return cls(drawn, every, columns, width, height, own, shared, named, has_room)

    @property
    def entries(self) -> tuple[Any, ...]:
        """What the legend says."""
        return (self.drawn.by, self.drawn.kind, *self.named.items())

    def legend(self, figure: Figure | SubFigure) -> None:
        if self.named:
            _legend(self.drawn, figure, self.drawn.by or "transport", self.named)

    @property
    def notes(self) -> list[str]:
        """What is said below the panels, once they are drawn."""
        rest = [_words(self.drawn, key) for key in list(self.every)[MAX_PANELS:]]
        return list(filter(None, [*self.drawn.notes, style.left_out("panel", rest)]))

    def draw(
        self,
        figure: Figure | SubFigure,
        *,
        alone: bool = True,
        legend: bool = True,
    ) -> None:
        """Draw the panels, with a legend beside them and, if they are ``alone``, notes below."""
        drawn, columns = self.drawn, self.columns
        draw: Any = _cdf if drawn.kind == "cdf" else _curves
        if drawn.kind != "cdf" and drawn.over is not None:
            draw = {"bars": _bars, "box": _boxes}.get(drawn.kind, _points)
        shown = list(self.every.items())[:MAX_PANELS]
        grid = style.fill(
            figure,
            textwrap.shorten(_title(drawn), int(13 * self.width), placeholder=" …"),
            len(shown),
            columns,
            sharex=drawn.kind != "cdf" and len(shown) > 1,
            sharey=self.shared,
        )
        beside = LEGEND if self.named else 0.0
        across = self.own * columns * style.WIDTH / self.width
        for i, (ax, (key, found)) in enumerate(zip(grid, shown, strict=True)):
            bottom = i >= len(shown) - columns
            draw(drawn, ax, found, across, bottom=bottom)
            if drawn.kind != "cdf":
                said = bands.draw(ax, drawn.one.name, drawn.quantity, named=self.has_room)
                drawn.notes.extend(filter(None, [said]))
            if key:
                words = _words(drawn, key)
                letters = panel.TITLE_LETTERS * (self.width - beside) / columns / self.own
                ax.set_title(short(words, int(letters)), fontsize=9, fontweight="normal")
            if i % columns == 0:
                ax.set_ylabel(textwrap.fill(ax.get_ylabel(), 34 if len(shown) == 1 else 26))
            else:
                ax.set_ylabel("")
            if drawn.kind != "cdf" and not bottom:
                ax.set_xlabel("")
        if legend:
            self.legend(figure)
        if alone:
            style.note(figure, *dict.fromkeys(self.notes))


def _words(drawn: Plot, key: Sequence[str]) -> str:
    named = zip(drawn.rest, key, strict=True)
    return " · ".join(label if name == drawn.place else f"{name} {label}" for name, label in named)


def _title(drawn: Plot) -> str:
    """The measure, and the only flow or link that has it."""
    names = {part.told[drawn.place] for part in drawn.parts}
    label = drawn.quantity.label
    label = label[:1].upper() + label[1:]
    if drawn.over is None and drawn.kind not in ("cdf", "map"):
        quantity = against(drawn.one)
        assert quantity is not None
        label += f" against {quantity.label}" if drawn.kind == "points" else ""
    return f"{label} · {names.pop()}" if len(names) == 1 else label


def _legend(drawn: Plot, figure: Figure | SubFigure, title: str, looks: Looks) -> None:
    handles: list[Any] = []
    for label, look in looks.items():
        words = short(label) or "–"
        if drawn.kind in ("bars", "box"):
            handles.append(Patch(color=look.colour, label=words))
            continue
        joined = drawn.kind in ("lines", "cdf")
        drawing: dict[str, Any] = {"color": look.colour, "lw": 1.4}
        drawing["ls"] = ((0, look.dashes) if look.dashes else "-") if joined else "none"
        if drawn.kind != "cdf" and (drawn.over is not None or not joined):
            drawing |= {"marker": look.marker, "ms": 5}
        handles.append(Line2D([], [], label=words, **drawing))
    lines = drawn.kind in ("lines", "cdf")
    figure.legend(
        handles=handles,
        loc="outside right upper",
        title=short(title),
        title_fontsize=8,
        alignment="left",
        fontsize=8 if len(handles) <= 24 else 7,
        handlelength=style.LINE_LENGTH - 2 if lines else 1.2,
    )


def _said(drawn: Plot, rows: Sequence[Mapping[str, Any]]) -> None:
    if against(drawn.one) is not None:
        drawn.notes.append("Means over each run.")
    several, of_bars = drawn.study.replications > 1, drawn.kind == "bars"
    if several and any(map(intervals.ends, rows)):
        drawn.notes.append(_of_runs(drawn, "Means of", drawn.study.replications))
    still = (NO_WHISKER if of_bars else panel.NO_BAR) if several else ""
    drawn.notes.extend(panel.said(rows, still, "" if of_bars else panel.MEMBERS))


def _of_runs(drawn: Plot, what: str, count: int) -> str:
    """A note on the runs that a mean is of, and its interval."""
    return f"{what} {count} runs with Student's {drawn.study.confidence * 100:g} % intervals."


def _cells(drawn: Plot, found: Sequence[Part]) -> dict[tuple[str, str], list[Part]]:
    cells: dict[tuple[str, str], list[Part]] = {}
    assert drawn.over is not None
    for part in found:
        key = (part.told[drawn.over], part.told[drawn.by] if drawn.by else "")
        cells.setdefault(key, []).append(part)
    return cells


def _rows(drawn: Plot, found: Sequence[Part]) -> dict[tuple[str, str], dict[str, Any]]:
    rows = {key: drawn.row(its) for key, its in _cells(drawn, found).items()}
    _said(drawn, list(rows.values()))
    return rows


def _limits(drawn: Plot, ax: Axes, seen: Iterable[float], *, zero: bool = False) -> None:
    """MOS has a fixed scale; others are fitted to the values, or begin at zero."""
    if drawn.is_mos:
        ax.set_ylim(1, 4.6)
    else:
        _widen(ax, [drawn.quantity.scale * value for value in seen], zero=zero)


def _widen(ax: Axes, seen: Sequence[float], *, zero: bool) -> None:
    """Limits that hold the values of this panel and of those that share its axis."""
    if not seen:
        return
    known = getattr(ax.figure, "_talkspurt_seen", {})
    group = frozenset(id(other) for other in ax.get_shared_y_axes().get_siblings(ax))
    every = known.setdefault(group, [])
    every += [value for value in seen if math.isfinite(value)]
    ax.figure._talkspurt_seen = known  # type: ignore[union-attr]
    low, high = min(every), max(every)
    ax.set_ylim(*style.bounds(min(low, 0.0) if zero else low, high))


def _points(drawn: Plot, ax: Axes, found: Sequence[Part], columns: float, *, bottom: bool) -> None:
    """Means with intervals over an axis, joined as lines or with the single values beside them."""
    assert drawn.over is not None
    rows, cells = _rows(drawn, found), _cells(drawn, found)
    labels, axis = drawn.labels(drawn.over), drawn.axis(drawn.over)
    numbers = scale.numbers(labels)
    size, joined = drawn.quantity.scale, drawn.kind == "lines"
    colours = _one_colour_each(drawn)
    order = sorted(range(len(labels)), key=lambda i: numbers[i]) if numbers else range(len(labels))
    shown = drawn.labels(drawn.by)
    figure = ax.get_figure(root=True)
    assert figure is not None
    for n, label in enumerate(shown):
        look = drawn.looks[label]
        aside = (n - (len(shown) - 1) / 2) * min(panel.BESIDE, 24 / len(shown))
        if axis.sampled:  # hardly two of the values are equal
            aside = 0.0
        beside: Any = ax.transData + ScaledTranslation(aside / 72, 0, figure.dpi_scale_trans)
        none = {"measure": drawn.one.full_name, "mean": None, "low": None, "count": 0}
        its = [rows.get((labels[i], label), none) for i in order]
        x = [numbers[i] if numbers else float(i) for i in order]
        if joined:
            bands = len(shown) <= MAX_BANDS
            panel.join(ax, x, its, look.colour, look.dashes, size, beside, bands=bands)
        for i, at, row in zip(order, x, its, strict=True):
            if row["mean"] is None:
                continue
            own = look if drawn.by else colours.get(labels[i], look)
            if not joined:
                its_parts = (part for part in cells[labels[i], label] if not part.outside)
                values = [part.number * size for part in its_parts]
                if len(values) > 1:
                    faint: dict[str, Any] = {"alpha": 0.35, "ls": "none", "transform": beside}
                    ax.plot([at] * len(values), values, ".", color=own.colour, **faint)
            panel.point(ax, at, row, own, 0, size, beside)
    panel.frame(ax, axis, numbers, columns, bottom=bottom)
    if numbers:
        ax.update_datalim([(x, 0.0) for x in numbers], updatey=False)
        ax.autoscale_view(scaley=False)
    ax.set_ylabel(drawn.quantity.head)
    seen = panel.extent(rows.values())
    if not joined:
        seen += [part.number for part in found]
    _limits(drawn, ax, seen)


def _one_colour_each(drawn: Plot) -> dict[str, style.Style]:
    """The style of each label of ``over``, if it has one transport and nothing else has colours."""
    if drawn.by or drawn.over is None:
        return {}
    transports = drawn.transports(drawn.over)
    if len(transports) < len(drawn.labels(drawn.over)):
        return {}
    return {label: style.transport_style(name, drawn.traffic) for label, name in transports.items()}


def _transports_to_name(drawn: Plot) -> dict[str, style.Style]:
    """The transports that colours stand for, if the labels of ``over`` do not say them."""
    if drawn.over is None or drawn.kind == "cdf" or not _one_colour_each(drawn):
        return {}
    names = list(dict.fromkeys(drawn.transports(drawn.over).values()))
    one_each = len(names) == len(drawn.labels(drawn.over))
    if one_each and drawn.over != drawn.place:
        return {}
    # All kinds of TCP have one colour.
    sharing: dict[style.Style, list[str]] = {}
    for name in names:
        sharing.setdefault(style.transport_style(name, drawn.traffic), []).append(name)
    looks = {", ".join(its): look for look, its in sharing.items()}
    return looks if len(looks) > 1 else {}


def _bars(drawn: Plot, ax: Axes, found: Sequence[Part], columns: float, *, bottom: bool) -> None:
    assert drawn.over is not None
    rows = _rows(drawn, found)
    labels, size = drawn.labels(drawn.over), drawn.quantity.scale
    colours = _one_colour_each(drawn)
    made = []
    for label in drawn.labels(drawn.by):
        its = [rows.get((group, label)) for group in labels]
        own = drawn.looks[label].colour
        made.append(
            chart.Bars(
                label,
                [math.nan if row is None else size * intervals.level(row) for row in its],
                [colours[group].colour for group in labels] if colours else own,
                ends=[_scaled(intervals.ends(row), size) if row else None for row in its],
                bounds=[row is not None and row["bound"] is not None for row in its],
            )
        )
    chart.draw_bars(ax, made, drawn.quantity.head)
    panel.frame(ax, drawn.groups(drawn.over), None, columns, bottom=bottom)
    _limits(drawn, ax, panel.extent(rows.values()), zero=True)


def _scaled(end: intervals.Ends | None, size: float) -> intervals.Ends | None:
    return end and replace(end, low=size * end.low, high=size * end.high)


def _boxes(drawn: Plot, ax: Axes, found: Sequence[Part], columns: float, *, bottom: bool) -> None:
    """Boxes over an axis: of the values of each run, or of what each run has over time."""
    assert drawn.over is not None
    labels, shown = drawn.labels(drawn.over), drawn.labels(drawn.by)
    cells, size = _cells(drawn, found), drawn.quantity.scale
    colours = _one_colour_each(drawn)
    width = 0.8 / len(shown)
    seen: list[float] = []
    for n, label in enumerate(shown):
        for i, group in enumerate(labels):
            its = cells.get((group, label))
            if not its:
                continue
            values = _pooled(its)
            seen += (float(values.min()), float(values.max()))
            colour = colours[group].colour if colours else drawn.looks[label].colour
            at = i - 0.4 + width * (n + 0.5)
            _box(ax, at, 0.8 * width, size * values, colour)
    about = "the values over time of all runs" if against(drawn.one) else "the values of all runs"
    drawn.notes.append(
        f"Boxes: median and quartiles of {about}; whiskers: {WHISKERS[0]} and {WHISKERS[1]} %; "
        "dots: minimum and maximum."
    )
    drawn.notes.extend([OF_BOUNDS] if any(part.outside for part in found) else [])
    panel.frame(ax, drawn.groups(drawn.over), None, columns, bottom=bottom)
    ax.grid(visible=False, axis="x")
    ax.set_ylabel(drawn.quantity.head)
    _limits(drawn, ax, seen)


def _box(ax: Axes, x: float, width: float, values: Numbers, colour: str) -> None:
    low, first, median, third, high = np.percentile(values, [WHISKERS[0], 25, 50, 75, WHISKERS[1]])
    left, right = x - width / 2, x + width / 2
    ax.fill_between([left, right], first, third, color=colour, alpha=0.3, linewidth=0)
    ax.plot(
        [left, right, right, left, left], [first, first, third, third, first], color=colour, lw=1
    )
    ax.plot([left, right], [median, median], color=colour, lw=2.2, solid_capstyle="butt")
    for start, end in ((first, low), (third, high)):
        ax.plot([x, x], [start, end], color=colour, lw=1)
        ax.plot([x - width / 4, x + width / 4], [end, end], color=colour, lw=1)
    ax.plot([x, x], [values.min(), values.max()], ".", color=colour, ms=3.5)


OF_BOUNDS = "Values outside the range of their model count with their upper bound."


def _pooled(found: Sequence[Part]) -> Numbers:
    values: Numbers = np.concatenate([part.y for part in found])
    finite: Numbers = values[np.isfinite(values)]
    return finite


def _cdf(drawn: Plot, ax: Axes, found: Sequence[Part], columns: float, *, bottom: bool) -> None:
    """The share of values up to each value, with a band if each of several runs has many values."""
    size = drawn.quantity.scale
    of_curves = against(drawn.one) is not None
    for label, look, its in drawn.by_label(found):
        values = np.sort(_pooled(its))
        x, share = _steps(values)
        replicates = sorted({part.replicate for part in its})
        band: list[tuple[float, float]] = []
        if of_curves and len(replicates) > 1:
            of_each = [_pooled([p for p in its if p.replicate == r]) for r in replicates]
            rows = np.array(
                [np.searchsorted(np.sort(one), x, side="right") / len(one) for one in of_each]
            )
            share = mean_of(rows)
            half = np.nan_to_num(half_width(rows, drawn.study.confidence))
            low, high = np.clip(share - half, 0, 1), np.clip(share + half, 0, 1)
            band = list(zip(low.tolist(), high.tolist(), strict=True))
            drawn.notes.append(_of_runs(drawn, "Means of the shares in", len(replicates)))
        line = chart.Line(
            label, (size * x).tolist(), share.tolist(), look.colour, look.dashes,
            steps=True, band=band, marker="o" if len(x) == 2 and x[0] == x[1] else "",
        )  # fmt: skip
        chart.draw(ax, [line], drawn.quantity.head, "share of values", legend=False)
    drawn.notes.extend([OF_BOUNDS] if any(part.outside for part in found) else [])
    ax.set_ylim(0, 1.02)
    if drawn.is_mos:
        ax.set_xlim(1, 4.6)
    panel.few_ticks(ax, columns)


def _steps(values: Numbers) -> tuple[Numbers, Numbers]:
    """The steps of an empirical distribution; of many values, at equal shares."""
    if len(values) <= MAX_STEPS:
        x = np.append(values[:1], values)
        return x, np.arange(len(values) + 1) / len(values)
    share = np.linspace(0, 1, MAX_STEPS)
    return np.quantile(values, share, method="inverted_cdf"), share


def _curves(drawn: Plot, ax: Axes, found: Sequence[Part], columns: float, *, bottom: bool) -> None:
    """Values over time or against another quantity: means of several runs, or those of one."""
    quantity = against(drawn.one)
    assert quantity is not None
    for label, look, its in drawn.by_label(found):
        if values.same_places(drawn.one) and (drawn.kind == "lines" or len(its) > 1):
            lines = [_mean(drawn, label, look, its)]
        else:
            first = min(part.replicate for part in its)
            if drawn.study.replications > 1:
                seed = next(part.seed for part in its if part.replicate == first)
                drawn.notes.append(f"Of seed {seed} alone, no mean.")
            lines = [_single(drawn, label, look, p) for p in its if p.replicate == first]
        chart.draw(ax, lines, quantity.head, drawn.quantity.head, legend=False)
    if quantity.label.startswith("time") and quantity.label != "time scale":
        ax.set_xlim(0, max(run.duration_s for run in drawn.study.runs))
    elif quantity.label == "time scale":
        ax.set_xscale("log")
    seen = [float(v) for line in ax.get_lines() for v in np.asarray(line.get_ydata(), dtype=float)]
    if drawn.is_mos:
        ax.set_ylim(1, 4.6)
    else:
        _widen(ax, seen, zero=False)


def _mean(drawn: Plot, label: str, look: style.Style, its: Sequence[Part]) -> chart.Line:
    size = drawn.quantity.scale
    if its[0].until_s and len(its) == 1:
        return _single(drawn, label, look, its[0])
    x, rows, replicates = values.mean_line(its)
    mean = mean_of(rows)
    band: list[tuple[float, float]] = []
    if len(replicates) > 1:
        half = np.nan_to_num(half_width(rows, drawn.study.confidence))
        least, most = drawn.quantity.least, drawn.quantity.most
        low, high = np.clip(mean - half, least, most), np.clip(mean + half, least, most)
        band = list(zip((size * low).tolist(), (size * high).tolist(), strict=True))
        drawn.notes.append(_of_runs(drawn, "Means of", len(replicates)))
    if len({part.member for part in its}) > 1:
        drawn.notes.append("Means over the flows of a line.")
    return _line(drawn, label, look, x, mean, band=band)


def _single(drawn: Plot, label: str, look: style.Style, part: Part) -> chart.Line:
    assert part.x is not None
    x, y = part.x, part.y
    if part.until_s and len(x):
        x, y = np.append(x, part.until_s), np.append(y, y[-1])
    if drawn.kind == "lines":
        order = np.argsort(x, kind="stable")
        places = decimating.kept(pl.Series(x[order]), pl.Series(y[order]))
        order = order[places.to_numpy()]
        x, y = x[order], y[order]
    return _line(drawn, label, look, x, y, steps=bool(part.until_s))


def _line(
    drawn: Plot, label: str, look: style.Style, x: Numbers, y: Numbers, **more: Any
) -> chart.Line:
    quantity, joined = against(drawn.one), drawn.kind == "lines"
    assert quantity is not None
    return chart.Line(
        label, (quantity.scale * x).tolist(), (drawn.quantity.scale * y).tolist(),
        look.colour, look.dashes, joined=joined,
        marker="" if joined and len(x) > 1 else look.marker, **more,
    )  # fmt: skip


def _map(drawn: Plot) -> Figure:
    """Cells over two axes, one map for each panel."""
    assert drawn.over is not None and drawn.by is not None
    cells: dict[str, maps.Cells] = {}
    for key, found in drawn.panels().items():
        shown = cells.setdefault(" · ".join(key), {})
        for (over, by), its in _cells(drawn, found).items():
            shown[by, over] = maps.cell(drawn.row(its), drawn.quantity.scale)
    down, along = (Axis(name, "", tuple(drawn.labels(name))) for name in (drawn.by, drawn.over))
    words = ["Means over each run."] if against(drawn.one) is not None else []
    if drawn.study.replications > 1:
        words.append(f"Means of {drawn.study.replications} runs.")
    return maps.draw(drawn.quantity, drawn.one.name, down, along, cells, _title(drawn), words)
