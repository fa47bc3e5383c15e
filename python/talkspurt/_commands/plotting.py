"""Implements ``talkspurt plot``: one figure of a saved result or study, as a file."""

from __future__ import annotations

import errno
import math
from pathlib import Path
from typing import TYPE_CHECKING

from talkspurt._storage import file_access, reader
from talkspurt._text.escaping import print_json, visible
from talkspurt.errors import BadInputError, StoreError
from talkspurt.results.result import Result
from talkspurt.results.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from talkspurt._commands.options import PlotOptions

MAX_BINS = 100_000
"""Maximum number of time bins; more are assumed to be a typing error."""


def plot(folder: Path, measure: str, options: PlotOptions, out: Path | None = None) -> Path:
    """Draw a measure of a folder's result, and return the path of the figure.

    Raises:
        talkspurt.errors.BadInputError: if the folder, the measure or an option does not fit.
    """
    faults = _unknown_ending(out)
    bin_s = options.bin
    if bin_s is not None and not (math.isfinite(bin_s) and bin_s > 0):
        faults.append(f"--bin {bin_s:g}: expected seconds, more than 0")
        bin_s = None
    try:
        answer = reader.load(folder)
    except StoreError as error:
        if error.errno != errno.EINVAL:
            raise
        raise BadInputError(visible(f"{folder}: {error.strerror}")) from None
    runs = answer.runs if isinstance(answer, Study) else (answer,)
    longest = max(run.duration_s for run in runs)
    if bin_s is not None and longest > MAX_BINS * bin_s:
        many = f"{longest / bin_s:.3g} bins in {longest:g} s"
        faults.append(f"--bin {bin_s:g}: {many}, expected at most {MAX_BINS:g}")
        bin_s = None
    file = out or Path(f"{file_access.plain_name(f'{answer.name}-{measure}')}.png")

    try:
        drawn = answer.figure(
            measure,
            over=options.over,
            by=options.by,
            kind=options.kind,
            flow=options.flow,
            link=options.link,
            bin_s=bin_s,
            time=options.time,
        )
    except (KeyError, ValueError) as error:
        faults.append(str(error.args[0]))
        if isinstance(answer, Result):
            faults += _near_figures(measure)
    if faults:
        raise BadInputError(visible("; ".join(faults)))
    _write(drawn, file)
    return file


def sensitivity(folder: Path, measure: str, *, as_json: bool, out: Path | None) -> None:
    """Print the sensitivity of a measure to the factors of a study's design, and draw it.

    Raises:
        talkspurt.errors.BadInputError: if the folder has no design, or the measure does not fit.
    """
    from talkspurt.figures import comparison

    if faults := _unknown_ending(out):
        raise BadInputError(visible(faults[0]))
    answer = reader.load(folder)
    if not isinstance(answer, Study) or answer.design is None:
        raise BadInputError(
            visible(f"{folder}: sensitivity needs a study whose scenario has a [design]")
        )
    try:
        rows = answer.sensitivity(measure).to_dicts()
    except (KeyError, ValueError) as error:
        raise BadInputError(visible(str(error.args[0]))) from None
    if as_json:
        print_json(
            {"study": answer.name, "measure": measure, "design": answer.design, "rows": rows}
        )
    else:
        from talkspurt._terminal import tables

        tables.print_sensitivity(answer, measure, rows)
    if out is None:
        return
    drawn = comparison.sensitivity(answer, measure)
    if drawn is None:
        raise BadInputError(f"-o: no index of {measure} is defined, so there is nothing to draw")
    _write(drawn, out, says=not as_json)


def _near_figures(measure: str) -> list[str]:
    """Figures of the report with a name like that of an unknown metric, as one more hint."""
    from talkspurt import figures
    from talkspurt._text.format import nearest
    from talkspurt.metrics import metric

    if measure in figures.KINDS:
        return []
    try:
        metric(measure)
    except KeyError:
        near = nearest(measure, figures.KINDS, 2)
        return [f"figures of the report: {', '.join(near)}"] if near else []
    return []


def _unknown_ending(out: Path | None) -> list[str]:
    if out is None or out.suffix.lower() in (".png", ".svg", ".pdf"):
        return []
    return [f"-o {out}: expected a name that ends in .png, .svg or .pdf"]


def _write(drawn: Figure, file: Path, *, says: bool = True) -> None:
    """Write a figure in the format of the name, and say so, and which letters its font lacks."""
    from talkspurt import figures
    from talkspurt.figures.style import unknown_letters

    ending = file.suffix.lower()
    draw = {".png": figures.png, ".svg": figures.svg, ".pdf": figures.pdf}[ending]
    file_access.replace_bytes(file, draw(drawn))
    if not says:
        return
    print(visible(f"Figure: {file}"))
    if ending != ".svg" and (letters := unknown_letters(drawn)):
        print(
            visible(
                f"Note: the font of figures lacks {letters}, and boxes stand for these letters; "
                ".svg has the text itself."
            )
        )
