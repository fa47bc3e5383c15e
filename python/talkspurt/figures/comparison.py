"""Figures of a study: each measure over its first axis, with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from talkspurt import measures
from talkspurt.figures.style import DASHES, TRANSPORTS, sheet, styled, transport_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from talkspurt.study import Study

SHOWN = ("mos", "mouth_to_ear_p50_s", "loss_ratio", "delay_p95_s", "goodput_bps")
MOST = 12
"""Lines drawn at most."""


def every(study: Study) -> Iterator[tuple[str, Figure]]:
    """A figure for each measure that has a value, with the name of its file."""
    for name in SHOWN:
        drawn = over_first_axis(study, name)
        if drawn is not None:
            yield name, drawn


def over_first_axis(study: Study, name: str) -> Figure | None:
    """Means and intervals of one measure over the first axis; a line per flow and other setting."""
    shown = measures.measure(name)
    rows = [row for row in study.summary([name]).to_dicts() if row["mean"] is not None]
    if not rows or not study.axes:
        return None
    axis, *others = study.axes
    lines: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        lines.setdefault((row["flow"], *(row[a.name] for a in others)), []).append(row)
    unit = f" / {shown.shown_unit}" if shown.shown_unit else ""
    with styled():
        figure, (ax,) = sheet(f"{shown.label}{unit} over {axis.name}", height=3.1)
        place = {label: i for i, label in enumerate(axis.labels)}
        drawn = dict(list(lines.items())[:MOST])
        used: dict[str, int] = {}
        for i, (key, line) in enumerate(drawn.items()):
            colour, marker = _colour(study, key)
            dashes = DASHES[used.get(colour, 0) % len(DASHES)]
            used[colour] = used.get(colour, 0) + 1
            shift = (i - (len(drawn) - 1) / 2) * 0.05
            x = [place[row[axis.name]] + shift for row in line]
            y = [row["mean"] * shown.scale for row in line]
            half = [
                ((row["mean"] - row["low"]) if row["low"] is not None else 0) * shown.scale
                for row in line
            ]
            ax.errorbar(
                x, y, yerr=half if any(half) else None, color=colour, marker=marker, markersize=5,
                capsize=3, linewidth=1.2, label=" · ".join(key),
                linestyle=(0, dashes) if dashes else "-",
            )  # fmt: skip
        ax.set_xticks(range(len(axis.labels)), axis.labels)
        ax.set_xlim(-0.4, len(axis.labels) - 0.6)
        ax.set_xlabel(axis.name)
        ax.set_ylabel(f"{shown.label}{unit}")
        if name == "mos":
            ax.set_ylim(1, 4.6)
        else:
            ax.set_ylim(bottom=0)
        figure.legend(loc="outside right upper", fontsize=8)
    return figure


def _colour(study: Study, key: tuple[str, ...]) -> tuple[str, str]:
    """By the transport that is an axis, or else by the flow's own when it is always the same."""
    for label in key[1:]:
        if any(label.lower().startswith(name) for name in TRANSPORTS):
            style = transport_style(label)
            return style.colour, style.marker
    flows = study.flows
    used = flows.filter(name=key[0])["transport"].unique().to_list()
    style = transport_style(used[0] if len(used) == 1 else "")
    return style.colour, style.marker
