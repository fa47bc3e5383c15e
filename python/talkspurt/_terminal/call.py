"""A call on the terminal while it lasts: rates, codecs, loss, buffer, round-trip time and MOS."""

from __future__ import annotations

import os
import sys
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from talkspurt._terminal.console import Display
from talkspurt._text.escaping import below, visible
from talkspurt._text.format import rate_text, time_text

LEAD_S = 1.0
"""Time before the speech begins, in which the clocks are compared."""
NONE = "–"


class Screen:
    """A table on standard error that is replaced as the call goes on; use as a context manager."""

    def __init__(self, title: str) -> None:
        self.title = visible(title)
        console = Display(file=below(sys.stderr), highlight=False, markup=False)
        still = os.environ.get("TERM") == "dumb"
        self._live = None if still else Live(console=console, transient=True, auto_refresh=False)

    def __enter__(self) -> Screen:
        if self._live is not None:
            self._live.start()
        return self

    def show(self, state: dict[str, Any] | None) -> None:
        """Show the state of the call, as ``view`` of the compiled part reports it."""
        if self._live is not None:
            self._live.update(render(self.title, state), refresh=True)

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()


def render(title: str, state: dict[str, Any] | None) -> Group:
    """The screen for a state; None before there is one."""
    if state is None:
        return Group(Text(f"{title}: setting up. Ctrl-C hangs up."))
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("", "rate", "codec", "loss", "buffer", "MOS"):
        table.add_column(name, justify="left" if name in ("", "codec") else "right")
    for way in ("sent", "heard"):
        it = state[way]
        rate, loss, buffer, mos = (it.get(k) for k in ("rate_bps", "loss", "buffer_s", "mos"))
        table.add_row(
            way,
            NONE if rate is None else rate_text(rate),
            it["codec"] or NONE,
            "" if way == "sent" else NONE if loss is None else f"{100 * loss:.1f} %",
            "" if way == "sent" else NONE if buffer is None else time_text(buffer),
            "" if way == "sent" else NONE if mos is None else f"{mos:.1f}",
        )
    passed = max(0.0, state["passed_s"] - LEAD_S)
    rtt = NONE if state["rtt_s"] is None else time_text(state["rtt_s"])
    return Group(
        Text(f"{title}, {passed:.0f} s. Ctrl-C hangs up."),
        table,
        Text(f"Round-trip time {rtt}. Means of the last 5 s; MOS is an estimate of this end."),
    )
