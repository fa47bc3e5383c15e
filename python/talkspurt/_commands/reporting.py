"""Commands that draw, show and compare results."""

from __future__ import annotations

import os
import sys
import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from talkspurt._commands.options import Flag, Pictures
from talkspurt._commands.running import say_where
from talkspurt._storage import output_folder, reader, remote
from talkspurt._storage.file_access import plain_name, real
from talkspurt._terminal.progress import Bar
from talkspurt._text.escaping import print_json, visible
from talkspurt.errors import BadInputError
from talkspurt.results.result import Result, Study


def rebuild(
    run: Path,
    /,
    *,
    pdf: Flag = False,
) -> None:
    """Write report.html of a result again and draw all its figures, without running its scenario.

    Parameters
    ----------
    run
        Folder of a result, of a study, or of one of its runs.
    pdf
        Also write each figure as PDF, in addition to SVG and PNG.
    """
    far = remote.of(run)
    shown = far.url if far else str(run)
    folder = far.downloaded() if far else run
    answer = reader.load(folder)
    from talkspurt.report import pictures

    with output_folder.beside(folder) as drawn:
        with Bar(answer.title) as bar:
            if isinstance(answer, Result):
                pictures.of_result(answer, drawn, bar.on_step, every=True, pdf=pdf)
            else:
                pictures.of_study(answer, drawn, bar.on_step, pdf=pdf)
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
        print_json(study.to_json())
    folder = options.out or (
        None if options.json else Path("runs") / plain_name("-vs-".join(names))
    )
    if folder is not None:
        if any(real(one).is_relative_to(real(folder)) for one in runs):
            raise BadInputError(visible(f"compare: {folder} holds one of the results themselves"))
        study.save(folder, report=options.report, pdf=options.pdf, overwrite=options.overwrite)
    if not options.json:
        from talkspurt._terminal import tables

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


def show(run: Path, /) -> None:
    """Open the report of a result in a browser; without one, print its path.

    Parameters
    ----------
    run
        Folder of a result or a study.
    """
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
    """Whether a graphical browser opened an address."""
    desktop = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    try:
        return desktop and webbrowser.open(address)
    except webbrowser.Error:
        return False
