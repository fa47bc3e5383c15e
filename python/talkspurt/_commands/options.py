"""The command line's application, and the options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from talkspurt import __version__

app = App(
    name="talkspurt",
    help="A laboratory for the transport of live voice and video.",
    version=__version__,
    help_format="plaintext",
    suppress_keyboard_interrupt=False,  # main reports the partial results
)

Flag = Annotated[bool, Parameter(negative=())]
"""An option without a value; off unless it is given."""
Several = Annotated[list[str] | None, Parameter(negative=())]
"""An option that may be repeated."""
Jobs = Annotated[int | None, Parameter(name="--jobs", alias="-j")]
Out = Annotated[Path | None, Parameter(name="--out", alias="-o")]
Report = Annotated[bool, Parameter(negative="--no-report", show_default=False)]
Sets = Annotated[list[str] | None, Parameter(name="--set", alias="-s", negative=())]
