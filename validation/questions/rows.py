"""Means of runs over seeds with their intervals, and their text and figures on a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from talkspurt.analysis.means import bootstrap, student
from talkspurt.figures import png, styled
from talkspurt.figures.style import LINE_LENGTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Interval:
    """The mean of replications or of paired differences, with its confidence interval."""

    mean: float
    low: float
    high: float
    count: int

    @classmethod
    def of(
        cls, numbers: Sequence[float], confidence: float = 0.95, *, kind: str = "student"
    ) -> Interval:
        """Compute Student's interval or, with `kind = "bootstrap"`, the BCa bootstrap interval."""
        mean, half, _ = student(numbers, confidence)
        assert mean is not None and half is not None, "an interval requires at least two numbers"
        low, high = mean - half, mean + half
        if kind == "bootstrap":
            low, high = bootstrap(numbers, confidence)
        return cls(mean, low, high, len(numbers))

    @property
    def differs(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0

    @property
    def size(self) -> float:
        """The largest distance from zero within the interval."""
        return max(abs(self.low), abs(self.high))

    def __format__(self, spec: str) -> str:
        """Format as `0.31 [0.12, 0.50]`; `0` if both limits are zero."""
        if self.low == self.high == 0:
            return "0"
        mean, low, high = (number(value, spec) for value in (self.mean, self.low, self.high))
        return f"{mean} [{low}, {high}]"


@dataclass(frozen=True)
class Rows:
    """Runs of a study; an attribute is the mean of a measure over the seeds with its interval.

    Attributes:
        frame: one row for each run: the labels of the axes, `replicate`, and the measures.
        pooled: whether the mean over settings is taken first; otherwise, all must be one setting.
        confidence: the confidence level of intervals.
        minus: runs to subtract, paired by seed.
    """

    frame: pl.DataFrame
    pooled: bool = False
    confidence: float = 0.95
    minus: Rows | None = None

    def __call__(self, **setting: str | Sequence[str]) -> Rows:
        """Select runs by labels; `_` in the name of an axis represents a space."""
        frame = self.frame
        for name, labels in setting.items():
            some = [labels] if isinstance(labels, str) else list(labels)
            frame = frame.filter(pl.col(name.replace("_", " ")).is_in(some))
        return replace(self, frame=frame, minus=self.minus and self.minus(**setting))

    def __sub__(self, other: Rows) -> Rows:
        assert self.minus is None, "a difference of differences"
        return replace(self, minus=other)

    def __getattr__(self, measure: str) -> Interval:
        if measure.startswith("_"):
            raise AttributeError(measure)
        return self.interval(measure)

    def interval(self, measure: str, kind: str = "student") -> Interval:
        """Return the mean over the seeds with its interval."""
        return Interval.of(list(self.seeds(measure).values()), self.confidence, kind=kind)

    def seeds(self, measure: str) -> dict[int, float]:
        """Return the number of each replication; the mean over the settings if they are pooled."""
        found = self.frame.filter(pl.col(measure).is_not_null())
        if self.pooled:
            found = found.group_by("replicate", maintain_order=True).agg(pl.col(measure).mean())
        assert found["replicate"].is_unique().all(), "another axis varies too"
        numbers = dict(found.select("replicate", pl.col(measure).cast(pl.Float64)).iter_rows())
        if self.minus is None:
            return numbers
        base = self.minus.seeds(measure)
        return {k: numbers[k] - value for k, value in base.items() if k in numbers}

    def values(self, measure: str) -> list[float]:
        """Return the measure of every run that has one."""
        return self.frame[measure].drop_nulls().to_list()

    def labels(self, axis: str) -> list[str]:
        """Return the labels of an axis in order."""
        return self.frame[axis.replace("_", " ")].unique(maintain_order=True).to_list()

    def each(self, axis: str) -> dict[str, Rows]:
        """Return the runs of each label of an axis."""
        return {label: self(**{axis: label}) for label in self.labels(axis)}


# Text.


def number(value: float, spec: str) -> str:
    """Format a number in a unit, as in `.0f*1e3`, with a minus sign instead of a hyphen."""
    form, _, factor = spec.partition("*")
    return format(value * float(factor) if factor else value, form).replace("-", "−")


def shown(value: Any, spec: str | None) -> str:
    """Format a number or an interval with a format, and other values as they are."""
    if not spec:
        return str(value)
    return format(value, spec) if isinstance(value, Interval) else number(value, spec)


# Figures.

Panel = tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]
"""Properties of the axes, and arguments of `Axes.errorbar` for each curve."""


def draw(
    size: tuple[float, float],
    panels: Sequence[Panel],
    legend: Mapping[str, Any] | None = None,
    finish: Callable[[Sequence[Axes]], None] = lambda _: None,
    **layout: Any,
) -> bytes:
    """Draw curves in panels, side by side unless `layout` gives rows, and return a PNG file.

    `finish` adds what are no curves.
    """
    from matplotlib.figure import Figure

    with styled(math=True):
        figure = Figure(figsize=size)
        layout = {"nrows": 1, "ncols": len(panels), "squeeze": False} | layout
        axes = list(figure.subplots(**layout).flat)
        for ax, (_, curves) in zip(axes, panels, strict=True):
            for curve in curves:
                ax.errorbar(**{"elinewidth": 1.2, "capsize": 2, **curve})
        # Limits of shared axes depend on all curves.
        for ax, (properties, _) in zip(axes, panels, strict=True):
            ax.set(**properties)
            ax.minorticks_off()
            if "sharey" in layout:
                ax.label_outer()
        finish(axes)
        if legend is not None:
            names = axes[0].get_legend_handles_labels()
            figure.legend(*names, **{"fontsize": 8, "handlelength": LINE_LENGTH, **legend})
        return png(figure)


def bars(found: Sequence[Interval], along: str = "y") -> dict[str, Any]:
    """Return the arguments of `Axes.errorbar` for means with intervals."""
    return {
        along: [one.mean for one in found],
        f"{along}err": [one.high - one.mean for one in found],
    }
