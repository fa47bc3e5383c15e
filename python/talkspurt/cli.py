"""The command line: ``run``, ``check``, ``export``, ``crosscheck``, ``metrics`` and ``schema``.

It parses words and prints answers; everything it does can be done from Python. Polars, matplotlib
and the report are imported only by the commands that need them, so that ``--help`` is quick.
Exit codes: 0 done, 1 something failed, 2 bad input, 130 Ctrl-C, 143 terminated.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Literal

from cyclopts import App, CycloptsError, Parameter

from talkspurt import __version__, _core, interrupts
from talkspurt.errors import BadInputError, OtherVersionWarning
from talkspurt.visible import below, guard, visible

if TYPE_CHECKING:
    from rich.console import Console

app = App(
    name="talkspurt",
    help="A laboratory for the transport of live voice and video.",
    version=__version__,
    help_format="plaintext",
    suppress_keyboard_interrupt=False,  # main says what is kept
)


@app.command
def run(
    scenario: Path,
    /,
    *,
    out: Annotated[Path | None, Parameter(name="--out", alias="-o")] = None,
    set: Annotated[list[str] | None, Parameter(name="--set", alias="-s", negative=())] = None,
    seed: int | None = None,
    json: Annotated[bool, Parameter(name="--json", negative=())] = False,
    report: Annotated[bool, Parameter(negative="--no-report", show_default=False)] = True,
    pdf: Annotated[bool, Parameter(name="--pdf", negative=())] = False,
    jobs: Annotated[int | None, Parameter(name="--jobs", alias="-j")] = None,
    overwrite: Annotated[bool, Parameter(name="--overwrite", negative=())] = False,
) -> None:
    """Run a scenario; print what came of each flow and write everything else into a folder.

    Parameters
    ----------
    scenario
        TOML file that says what network, what flows, and what to measure.
    out
        Folder for the results; runs/NAME unless given. Earlier results of the same scenario are
        replaced when the run is done; those of another, and exports, only with --overwrite; a
        folder that holds anything else is left alone.
    set
        PATH=VALUE sets a field of the scenario, as in --set links.sky.delay=20ms; may be repeated.
    seed
        Replaces the scenario's seed: 0 to 9223372036854775807 (2^63 − 1).
    json
        Print one JSON document and nothing else on standard output; results are written only with
        --out.
    report
        Whether to draw figures and write report.html.
    pdf
        Write each figure as PDF, too, beside SVG and PNG.
    jobs
        Runs at a time, when there are axes or replications; all cores unless given.
    overwrite
        Replace whatever talkspurt wrote into the folder before, of this scenario or of another.
    """
    from talkspurt import running

    if jobs is not None and jobs < 1:
        raise BadInputError(f"--jobs {jobs}: expected 1 or more")
    if pdf and not report:
        raise BadInputError("--pdf and --no-report: without a report no figure is drawn")
    running.run(
        scenario,
        out=out,
        sets=set or [],
        seed=seed,
        as_json=json,
        report=report,
        pdf=pdf,
        jobs=jobs,
        overwrite=overwrite,
    )


@app.command
def check(
    scenario: Path,
    /,
    *,
    set: Annotated[list[str] | None, Parameter(name="--set", alias="-s", negative=())] = None,
) -> None:
    """Read a scenario, say everything that is wrong with it, and run nothing.

    Parameters
    ----------
    scenario
        TOML file.
    set
        PATH=VALUE sets a field of the scenario first; may be repeated.
    """
    from talkspurt.cautions import openings
    from talkspurt.scenario import read

    plan = read(scenario, set=set).plan
    runs = f"{len(plan)} run{'s' if len(plan) != 1 else ''}"
    print(visible(f"{scenario}: nothing wrong; {plan.title}; {runs}"))
    runs_looked_at = range(min(len(plan), 100))
    for words in dict.fromkeys(w for i in runs_looked_at for w in openings(plan.resolved(i))):
        print(visible(f"Warning: {words}"))


@app.command
def export(
    source: Path,
    /,
    *,
    to: Literal["pcapng", "ns2", "nam", "qlog", "parquet", "csv", "ns2-script"],
    out: Annotated[Path | None, Parameter(name="--out", alias="-o")] = None,
    set: Annotated[list[str] | None, Parameter(name="--set", alias="-s", negative=())] = None,
    seed: int | None = None,
) -> None:
    """Write a run for another tool: do it again, and write its packets while they move.

    Parameters
    ----------
    source
        Folder of a result, or a scenario of one run. Of a study, one of the folders in runs/.
    to
        pcapng: every link, for Wireshark. ns2, nam: every link, as ns-2's trace-all and
        namtrace-all. qlog: every endpoint. parquet: every packet on every link as a table, whatever
        the run recorded, and the result's tables. csv: the result's tables. ns2-script: a scenario
        as a Tcl script for ns-2.35, each line with source_map it comes; what ns-2 cannot express is
        refused by name, all at once.
    out
        Folder to write into; NAME.FORMAT beside the result, or beside the study of which it is a
        run, unless given. Only an earlier export is replaced. Of ns2-script a file; standard
        output unless given.
    set
        Of ns2-script: PATH=VALUE sets a field of the scenario first; may be repeated.
    seed
        Of ns2-script: replaces the scenario's seed.
    """
    if to == "ns2-script":
        from talkspurt.ns2 import command

        command.export(source, out=out, sets=set or [], seed=seed)
        return
    if set or seed is not None:
        raise BadInputError(f"--set and --seed: only for --to ns2-script, not for {to}")
    from talkspurt import exporting

    where = exporting.export(source, to, out)
    for file in sorted(where.iterdir()):
        if file.name != "manifest.json":
            shown = where.joinpath(file.name) if out is None else out / file.name
            print(visible(f"{shown}/" if file.is_dir() else str(shown)))


@app.command
def crosscheck(
    scenario: Path,
    /,
    *,
    set: Annotated[list[str] | None, Parameter(name="--set", alias="-s", negative=())] = None,
    seed: int | None = None,
    json: Annotated[bool, Parameter(name="--json", negative=())] = False,
    trace: Path | None = None,
) -> None:
    """Run a scenario here and in ns-2.35, and print what both measured side by side.

    Parameters
    ----------
    scenario
        TOML file; what ns-2 cannot express is refused by name, all at once.
    set
        PATH=VALUE sets a field of the scenario first; may be repeated.
    seed
        Replaces the scenario's seed.
    json
        Print one JSON document and nothing else on standard output.
    trace
        File that keeps ns-2's trace; it is read as it is written and not kept unless given.
    """
    from talkspurt.ns2 import command

    command.crosscheck(scenario, sets=set or [], seed=seed, as_json=json, trace=trace)


@app.command
def metrics(
    run: Path | None = None,
    name: str | None = None,
    /,
    *,
    flow: str | None = None,
    link: str | None = None,
    bin: float | None = None,
    json: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> None:
    """List every metric, or give one of a result as CSV.

    Parameters
    ----------
    run
        Folder of a result; without it, all that there is to ask for is listed.
    name
        A metric that is listed: mos, links.drops, m (its letter in the study of voice).
    flow
        One flow; all unless given.
    link
        One link, for what is measured of links; all unless given.
    bin
        Width of a bin in seconds, for what is counted over time; 1 unless given, 0.2 for rates as
        RFC 8868 has them and 5 for MOS.
    json
        Print JSON in the place of text.
    """
    from talkspurt.terminal import catalogue

    if bin is not None and not (math.isfinite(bin) and bin > 0):
        raise BadInputError(f"--bin {bin:g}: expected seconds, more than 0")
    if run is None:
        catalogue.print_list(as_json=json)
        return
    if name is None:
        raise BadInputError("which metric? `talkspurt metrics` lists them")
    try:
        catalogue.print_metric(run, name, flow, link, bin, as_json=json)
    except (KeyError, ValueError) as error:
        raise BadInputError(str(error.args[0])) from None


@app.command
def schema() -> None:
    """Print the JSON Schema of a scenario, for editors."""
    print(_core.schema().rstrip())


@app.command
def reproduce(
    study: Literal["nor2010", "wheeb2017", "maldonado2005", "sarao2019", "renker2008", "all"],
    /,
    *,
    out: Annotated[Path | None, Parameter(name="--out", alias="-o")] = None,
    json: Annotated[bool, Parameter(name="--json", negative=())] = False,
    ns2: Annotated[bool, Parameter(name="--ns2", negative=())] = False,
    jobs: Annotated[int | None, Parameter(name="--jobs", alias="-j")] = None,
) -> None:
    """Re-run a published study: what was printed, what comes out, and a verdict with its reason.

    Parameters
    ----------
    study
        One of the five studies talkspurt grew from, or all of them.
    out
        Folder for the dossiers, scenarios and figures; runs/reproduce-STUDY unless given.
    json
        Print one JSON document and nothing else on standard output; dossiers are written only with
        --out.
    ns2
        Run ns-2, which must be installed, instead of showing what it gave when it was recorded.
    jobs
        Runs at a time; all cores unless given.
    """
    from talkspurt.reproduce import running

    if jobs is not None and jobs < 1:
        raise BadInputError(f"--jobs {jobs}: expected 1 or more")
    running.run(study, out=out, as_json=json, fresh_ns2=ns2, jobs=jobs)


def main() -> None:
    """Entry point: everything that goes wrong ends in words and an exit code."""
    global _stops
    _stops = 0
    for number in interrupts.STOPS:
        signal.signal(number, _on_stop)
    warnings.formatwarning = _in_words
    guard()
    code = _code()
    # From here on nothing is left that could be stopped, and nothing that could fail.
    for number in interrupts.STOPS:
        signal.signal(number, signal.SIG_IGN)
    try:
        sys.stdout.flush()
    except OSError as error:
        if code == 0 and error.errno != errno.EPIPE:
            code = explain(error) or 1
        _hush()
    sys.exit(code)


def _code() -> int:
    """Do what the command line asks, and give the exit code."""
    try:
        try:
            app.console = _console(sys.stdout)
            app.error_console = _console(sys.stderr)
            app(sys.argv[1:], exit_on_error=False, result_action="return_value")
            sys.stdout.flush()
        except (KeyboardInterrupt, Terminated) as stop:
            _say(f"talkspurt: stopped; {_left(stop)}")
            return 130 if isinstance(stop, KeyboardInterrupt) else 128 + signal.SIGTERM
        return 0
    except CycloptsError:  # which has already been printed
        return 2
    except BrokenPipeError:
        _hush()
        return 0
    except (KeyboardInterrupt, Terminated):  # while that was said
        return 130
    except Exception as error:
        code = explain(error)
        if code is None:
            raise
        return code


def _console(stream: IO[str]) -> Console:
    from talkspurt.terminal.tables import Output

    return Output(file=below(stream))


def _left(stop: BaseException) -> str:
    """What there is after a stop."""
    done = [f"{visible(str(place))} is written" for place in interrupts.written]
    return "; ".join([*done, *filter(None, [_kept(stop)])]) or "nothing was written"


def _kept(error: BaseException) -> str:
    """What outlives the error, if anything does."""
    return "; ".join(getattr(error, "__notes__", []))


class Terminated(BaseException):
    """Somebody asked the process to end (SIGTERM)."""


_stops = 0
"""How often somebody asked the process to end."""
MOST_STOPS = 3
"""So often it has to be asked to end at once, without removing what it had begun."""


def _on_stop(number: int, frame: object) -> None:
    """Stop at the first signal; let nothing disturb what is then put away but the third."""
    global _stops
    _stops += 1
    if _stops >= MOST_STOPS:
        if sys.__stderr__ is not None and sys.__stderr__.isatty():
            os.write(sys.__stderr__.fileno(), b"\x1b[?25h\n")  # a progress bar hides the cursor
        os._exit(128 + number)
    if _stops == 1:
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated


_plainly = warnings.formatwarning


def _in_words(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """A warning for users as everything else is said to them; others as Python does."""
    if issubclass(category, OtherVersionWarning):
        return f"talkspurt: {visible(str(message))}\n"
    return _plainly(message, category, filename, lineno, line)


def _hush() -> None:
    # The reader is gone (`| head`), or the disk is full: let the last flush go nowhere.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def explain(error: Exception) -> int | None:
    """Say in words what went wrong; the exit code, or None for a fault of talkspurt's own."""
    if isinstance(error, _core.ScenarioError):
        for problem in error.problems:
            _say(problem_line(problem))
        return 2
    if isinstance(error, BadInputError):
        _say(f"talkspurt: {error}")
        return 2
    if isinstance(error, _core.RunError):
        _say("; ".join(filter(None, [f"talkspurt: {error}", _kept(error)])))
        return 1
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        said = visible(f"talkspurt: {where}{error.strerror or error}")
        _say("; ".join(filter(None, [said, _kept(error)])))
        return 2 if error.errno in NAMED_WRONGLY else 1
    return None


NAMED_WRONGLY = {
    errno.ENOENT,
    errno.EISDIR,
    errno.ENOTDIR,
    errno.EEXIST,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENXIO,
    errno.EMSGSIZE,
    errno.ELOOP,
    errno.ENAMETOOLONG,
}
"""System errors whose cause is the name of a file the user gave."""


def problem_line(problem: _core.Problem) -> str:
    """A fault of a scenario as compilers say it: ``file:line: path: message – hint``."""
    where = problem["file"] or "scenario"
    if problem["line"] is not None:
        where += f":{problem['line']}"
    words = [where, *([problem["path"]] if problem["path"] else []), problem["message"]]
    return visible(": ".join(words) + (f" – {problem['hint']}" if problem["hint"] else ""))


def _say(words: str) -> None:
    with contextlib.suppress(OSError):
        print(words, file=sys.stderr, flush=True)
