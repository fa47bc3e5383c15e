"""Commands that draw, show and compare results, and draw one figure of them."""

from __future__ import annotations

import errno
import os
import re
import sys
import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from talkspurt._commands import completing
from talkspurt._commands.options import (
    Flag,
    Out,
    Overwrite,
    Pictures,
    PlotOptions,
    bin_faults,
)
from talkspurt._commands.running import say_where
from talkspurt._storage import file_access, output_folder, reader, remote
from talkspurt._storage.file_access import plain_name, real
from talkspurt._storage.output_folder import refuse_file
from talkspurt._terminal.progress import Bar
from talkspurt._text.escaping import print_json, visible
from talkspurt._text.format import nearest
from talkspurt.errors import BadInputError, StoreError
from talkspurt.metrics import metric
from talkspurt.results.result import Result, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_BINS = 100_000


def _last() -> Path:
    """The newest result of this folder and of runs/."""
    manifests = [*Path().glob("*/manifest.json"), *Path("runs").glob("*/manifest.json"),
                 *Path("runs").glob("*/*/manifest.json")]  # fmt: skip
    found = {file.parent: output_folder.manifest_of(file.parent) or {} for file in manifests}
    results = {
        folder: (str(it.get("created") or it["runs"][0].get("created", "")), folder.stat().st_mtime)
        for folder, it in found.items()
        if it.get("kind") in ("result", "study")
    }
    if not results:
        raise BadInputError("no result is here or in runs/: name the folder of one")
    last = max(results, key=results.__getitem__)
    print(visible(f"The last result: {last}"))
    return last


def rebuild(
    run: Path | None = None,
    /,
    *,
    pdf: Flag = False,
) -> None:
    """Write report.html of a result again and draw all its figures, without running its scenario.

    Parameters
    ----------
    run
        Folder of a result, of a study, or of one of its runs; default: the newest result in this
        folder or in runs/.
    pdf
        Also write each figure as PDF, in addition to SVG and PNG.
    """
    run = run or _last()
    far = remote.of(run)
    shown = far.url if far else str(run)
    folder = far.downloaded() if far else run
    answer = reader.load(folder)
    every = {"every": True} if isinstance(answer, Result) else {}
    with output_folder.beside(folder) as drawn:
        with Bar(answer.title) as bar:
            answer._draw(drawn, bar.on_step, pdf=pdf, **every)
        names = output_folder.add(drawn, folder)
    if far:
        far.put(folder, names)
    print(visible(f"Report: {shown}/{output_folder.REPORT}"))


def compare(*runs: Path, options: Pictures = Pictures()) -> None:
    """Put finished results side by side: one table, one report, one player for all their calls.

    Parameters
    ----------
    runs
        Folders of two or more runs, or of studies with the same axes.
    """
    if len(runs) < 2:
        raise BadInputError("compare: give at least two folders of results")
    names = _names(runs)
    answers = {name: reader.load(folder) for name, folder in names.items()}
    try:
        study = Study.of_answers(answers)
    except ValueError as error:
        raise BadInputError(f"compare: {visible(str(error))}") from None
    if options.json:
        print_json(study._document())
    folder = options.out or (
        None if options.json else Path("runs") / plain_name("-vs-".join(names))
    )
    if folder is not None:
        if any(real(one).is_relative_to(real(folder)) for one in runs):
            raise BadInputError(visible(f"compare: {folder} holds one of the results themselves"))
        study.save(folder, report=options.report, pdf=options.pdf, overwrite=options.overwrite)
    if not options.json:
        from talkspurt._terminal import tables

        if options.quiet:
            tables.print_answer(study.answer)
            return
        tables.print_study(study)
        assert folder is not None
        say_where(folder, options.report, beside=True)


def _names(folders: Sequence[Path]) -> dict[str, Path]:
    """A name for each result: that of its folder, or its path if two have the same."""
    last = [real(folder).name for folder in folders]
    named = {}
    for name, folder in zip(last, folders, strict=True):
        called = name if last.count(name) == 1 else str(folder)
        if called in named:
            raise BadInputError(visible(f"compare: {folder} is given twice"))
        named[called] = folder
    return named


def show(run: Path | None = None, /) -> None:
    """Open the report of a result in a browser; without one, print its path.

    Parameters
    ----------
    run
        Folder of a result or a study; default: the newest result in this folder or in runs/.
    """
    run = run or _last()
    far = remote.of(run)
    asked = far.url if far else run
    folder = far.report(Path(tempfile.mkdtemp(prefix="talkspurt-"))) if far else run
    report = folder / output_folder.REPORT
    if not report.is_file():
        reader.check(folder)
        raise BadInputError(
            visible(f"{asked}: has no report; `talkspurt report {asked}` writes it")
        )
    if _opened(report.absolute().as_uri()):
        print(visible(f"Opened {report}"))
    else:
        print(visible(f"There is no browser here; the report is {report.absolute()}"))


def _opened(address: str) -> bool:
    desktop = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    try:
        return desktop and webbrowser.open(address)
    except webbrowser.Error:
        return False


def plot(
    run: Path,
    /,
    *measures: Annotated[str, Parameter(completer=completing.plotted)],
    options: PlotOptions = PlotOptions(),
    out: Out = None,
    overwrite: Overwrite = False,
) -> None:
    """Draw metrics of a result or study over an axis, over time, as a distribution or a map.

    Parameters
    ----------
    run
        Folder of a result or a study.
    measures
        A metric that `talkspurt metrics` lists: mos, links.drops, goodput_over_time; or a title of
        a table, as in "Longest gap"; several are drawn below each other. Of a result also a figure
        of its report, such as delay or queue.
    out
        File to write, .png, .svg or .pdf; default: NAME-MEASURE.png in the current folder.
    """
    from talkspurt.figures import style

    if not measures:
        raise BadInputError("plot: MEASURE is missing; `talkspurt metrics` lists metrics")
    faults = _unknown_ending(out)
    try:
        answer = reader.load(run)
    except StoreError as error:
        if error.errno != errno.EINVAL:
            raise
        raise BadInputError(visible(f"{run}: {error.strerror}")) from None
    runs = answer.runs if isinstance(answer, Study) else (answer,)
    wrong = bin_faults(options.bin, max(one.duration_s for one in runs), MAX_BINS)
    file = out or Path(f"{plain_name('-'.join([answer.name, *measures]))}.png")
    faults += [*wrong, *options.faults(file.suffix.lower())]
    try:
        drawn = answer.figure(
            measures[0] if len(measures) == 1 else measures,
            over=options.over,
            by=options.by,
            kind=options.kind,
            flow=options.flow,
            link=options.link,
            bin_s=None if wrong else options.bin,
            time=options.time,
            size=options.size,
        )
    except (KeyError, ValueError) as error:
        faults.append(str(error.args[0]))
        if isinstance(answer, Result):
            faults += [fault for measure in measures for fault in _near_figures(measure)]
    if faults:
        raise BadInputError(visible("; ".join(faults)))
    style.set_title(drawn, options.title)
    _write(drawn, file, overwrite=overwrite, dpi=options.dpi)


def sensitivity(
    study: Path,
    measure: Annotated[str, Parameter(completer=completing.metrics)],
    /,
    *,
    json: Flag = False,
    out: Out = None,
    overwrite: Overwrite = False,
) -> None:
    """Print how much a metric of a study depends on each factor of its design.

    Parameters
    ----------
    study
        Folder of a study whose scenario has a [design].
    measure
        A metric of flows that `talkspurt metrics` lists, such as mos or delay_mean_s.
    json
        Print only a JSON document on standard output.
    out
        Also draw the indices as bars with intervals into a file, .png, .svg or .pdf.
    """
    from talkspurt.figures import comparison

    if faults := _unknown_ending(out):
        raise BadInputError(visible(faults[0]))
    answer = reader.load(study)
    if not isinstance(answer, Study) or answer.design is None:
        raise BadInputError(
            visible(f"{study}: sensitivity needs a study whose scenario has a [design]")
        )
    try:
        rows = answer.sensitivity(measure).to_dicts()
    except (KeyError, ValueError) as error:
        raise BadInputError(visible(str(error.args[0]))) from None
    if json:
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
    _write(drawn, out, says=not json, overwrite=overwrite)


def _near_figures(measure: str) -> list[str]:
    """Figures of the report with a name like that of an unknown metric, as one more hint."""
    from talkspurt import figures

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


WRITTEN = re.compile(rb"Matplotlib|Software\0talkspurt")
"""What our figures say of the program that wrote them."""


def _write(
    drawn: Figure, file: Path, *, says: bool = True, overwrite: bool, dpi: int | None = None
) -> None:
    """Write a figure in the format of the name, and say so, and which letters its font lacks."""
    from talkspurt import figures
    from talkspurt.figures.style import PNG_DPI, unknown_letters

    def is_earlier(there: Path) -> bool:
        return WRITTEN.search(there.read_bytes()) is not None

    refuse_file(file, is_earlier, "figure of talkspurt", overwrite=overwrite)
    ending = file.suffix.lower()
    if ending == ".png":
        data = figures.png(drawn, dpi or PNG_DPI)
    else:
        data = {".svg": figures.svg, ".pdf": figures.pdf}[ending](drawn)
    file_access.replace_bytes(file, data)
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
