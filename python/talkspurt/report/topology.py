"""The network as a picture: nodes, links with their properties, and coloured routes of flows.

``crates/view`` selects what is drawn, places and draws it, also for the playground. The picture
takes its colours from the page; ``file`` makes a standalone one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import polars as pl

from talkspurt import _core
from talkspurt.report.page import asset
from talkspurt.results.run_data import RunData
from talkspurt.scenarios.resolved import as_written

LEFT = 36.0
"""Left end of the lines in the legend of a file."""


@dataclass(frozen=True)
class Picture:
    """A picture and its legend.

    Attributes:
        key: its lines; each has ``flows``, ``words`` (its label), ``transport``, ``ends``,
            ``colour``, ``dashes`` and ``in_background``.
    """

    svg: str
    key: Sequence[Mapping[str, Any]]


def of_result(result: RunData) -> Picture | None:
    """The picture of a run; None for a network without nodes."""
    return picture(*described(result))


def described(result: RunData) -> tuple[str, pl.DataFrame]:
    """What the network of a run is drawn from: its description as JSON, and their table."""
    flows = result.flows.select("name", "transport", "source")
    return json.dumps(as_written(result.topology)), flows


def picture(network: str, flows: pl.DataFrame) -> Picture | None:
    """The picture of what :func:`described` returns."""
    found = _core.picture(network, flows)
    return Picture(**json.loads(found)) if found else None


def file(picture: Picture) -> str:
    """The picture with its colours and a legend, standalone."""
    head, rest = picture.svg.split(">", 1)
    style = (
        ".topology{--paper:#fcfcfa;--card:#fff;--ink:#24292e;--quiet:#646c75;--rule:#e2e4e6;"
        "font-family:system-ui,'Noto Sans','DejaVu Sans',sans-serif}"
        "@media (prefers-color-scheme:dark){.topology{--paper:#16191c;--card:#1d2125;"
        "--ink:#e3e6e8;--quiet:#98a1aa;--rule:#33393f}}" + asset("topology.css")
    )
    box = head.split('viewBox="0 0 ')[1].split('"')[0]
    width, height = map(float, box.split())
    key = []
    for place, line in enumerate(picture.key):
        y = height + 6 + 18 * place
        dashes = " ".join(f"{length:g}" for length in line["dashes"])
        dashes = f' stroke-dasharray="{dashes}"' if dashes else ""
        key.append(
            f'<line class="route" x1="{LEFT}" y1="{y}" x2="{LEFT + 26}" y2="{y}" '
            f'stroke="{line["colour"]}"{dashes}/><text class="key" x="{LEFT + 34}" '
            f'y="{y + 4}">{escape(line["words"])} – {escape(line["transport"])}, '
            f"{escape(line['ends'])}</text>"
        )
    tall = height + 18 * len(key) + 6
    head = head.replace(f"0 0 {box}", f"0 0 {width:.0f} {tall:.0f}")
    head += f' width="{width:.0f}" height="{tall:.0f}"'
    ground = f'<rect class="ground" width="{width:.0f}" height="{tall:.0f}"/>'
    body = rest.removesuffix("</svg>")
    return f"{head}><style>{style}</style>{ground}{body}{''.join(key)}</svg>\n"
