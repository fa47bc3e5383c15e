"""Figures of the page on transports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from common import Interval
from transport_verdicts import CONFIDENCE, Kind, words_of

from talkspurt.figures import styled
from talkspurt.figures.style import FAINT, transport_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES = {"CCID 2": "dccp-ccid2", "CCID 3": "dccp-ccid3", "CCID 4": "dccp-ccid4"}
"""Names of transports in the table of styles, if they differ from the labels."""
HOLLOW = ("TCP long", "SCTP partial")
"""Transports drawn with hollow markers, because they share colour and marker with another."""


def scores(kind: Kind, *columns: tuple[str, str, Sequence[str]]) -> Figure:
    """Plot means with intervals of one or more columns, each with its label and transports.

    The figure has a row for each condition.
    """
    from matplotlib.figure import Figure

    conditions = kind.conditions()
    with styled(math=True):
        figure = Figure(figsize=(8.4, 5.4))
        axes = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
        for ax, (column, label, names) in zip(axes, columns, strict=True):
            _dots(ax, kind, column, names)
            ax.set_xlabel(label)
        axes[0].set_yticks(range(len(conditions)), [words_of(one) for one in conditions])
        axes[0].set_ylim(len(conditions) - 0.4, -0.6)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", fontsize=8)
    return figure


def _dots(ax: Axes, kind: Kind, column: str, chosen: Sequence[str]) -> None:
    names = kind.transports
    for place, name in enumerate(names):
        if name not in chosen:
            continue
        style = transport_style(STYLES.get(name, name))
        shift = (place - (len(names) - 1) / 2) * 0.085
        found = []
        for condition in kind.conditions():
            rows = kind.part(condition).filter(transport=name)
            found.append(Interval.of(rows[column].to_list(), CONFIDENCE))
        ax.errorbar(
            [one.mean for one in found],
            [row + shift for row in range(len(found))],
            xerr=[one.high - one.mean for one in found],
            color=style.colour,
            marker=style.marker,
            markersize=4,
            markerfacecolor="white" if name in HOLLOW else style.colour,
            linestyle="none",
            elinewidth=1,
            label=name,
        )
    for row in range(len(kind.conditions()) - 1):
        ax.axhline(row + 0.5, color=FAINT, linewidth=0.5, alpha=0.5)
    ax.grid(axis="y", visible=False)
