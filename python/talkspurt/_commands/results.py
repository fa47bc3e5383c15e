"""Commands for results: reports, plots, tables, and files of other tools."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

from talkspurt._commands.options import (
    Flag,
    Out,
    Pictures,
    PlotOptions,
    Report,
    Sets,
    Several,
    app,
)  # fmt: skip
from talkspurt._text.escaping import visible
from talkspurt.errors import BadInputError


@app.command(name="report")
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
    from talkspurt._commands import reporting

    reporting.rebuild(run, pdf=pdf)


@app.command(name="open")
def show(run: Path, /) -> None:
    """Open the report of a result in a browser; without one, print its path.

    Parameters
    ----------
    run
        Folder of a result or a study.
    """
    from talkspurt._commands import reporting

    reporting.show(run)


@app.command
def compare(*runs: Path, options: Pictures = Pictures()) -> None:
    """Put finished results side by side: one table, one report, one player for all their calls.

    Parameters
    ----------
    runs
        Folders of two or more runs, or of studies with the same axes.
    """
    from talkspurt._commands import reporting

    reporting.compare(runs, options)


@app.command
def export(
    source: Path,
    /,
    *,
    to: Literal["pcapng", "ns2", "nam", "qlog", "parquet", "csv", "ns2-script"],
    out: Out = None,
    set: Sets = None,
    seed: int | None = None,
) -> None:
    """Export a run to another tool's format by replaying it.

    Parameters
    ----------
    source
        Folder of a result or a study, or a scenario of one run. A study becomes one folder per run;
        as csv, its own tables.
    to
        pcapng: every link, for Wireshark. ns2, nam: every link, as ns-2's trace-all and
        namtrace-all. qlog: every endpoint. parquet: every packet on every link as a table,
        regardless of the run's record settings, and the result's tables. csv: the result's tables.
        ns2-script: a scenario as a Tcl script for ns-2.35, each line with its origin; unsupported
        features are reported by name.
    out
        Output folder; default: NAME.FORMAT next to the result, or to the study that contains the
        run. Only an earlier export is replaced. For ns2-script a file; default: standard output.
    set
        For ns2-script: PATH=VALUE overrides a scenario field; may be repeated.
    seed
        For ns2-script: replaces the scenario's seed.
    """
    if to == "ns2-script":
        from talkspurt.ns2 import command

        command.export(source, out=out, sets=set or [], seed=seed)
        return
    if set or seed is not None:
        raise BadInputError(f"--set and --seed: only for --to ns2-script, not for {to}")
    from talkspurt import export as exported

    where = exported(source, to, out, progress=True)
    for file in sorted(where.iterdir()):
        if file.name != "manifest.json":
            shown = where.joinpath(file.name) if out is None else out / file.name
            print(visible(f"{shown}/" if file.is_dir() else str(shown)))


@app.command(name="import")
def import_(
    *traces: Path,
    out: Out = None,
    payload: Several = None,
    playout: str = "60ms",
    network_delay: str | None = None,
    clock_offset: str | None = None,
    report: Report = True,
    overwrite: Flag = False,
) -> None:
    """Read a trace of ns-2 or a capture into a folder like that of a run.

    All commands for results accept the folder. What a trace does not contain
    is null in its tables; manifest.json has the file's SHA-256, what was
    assumed and what is not known.

    Parameters
    ----------
    traces
        A trace of ns-2 (wired, or either wireless format), or a capture (pcap or pcapng) of RTP,
        UDP, TCP, SCTP or DCCP; or two captures, one at each end of a path: packets in both give
        loss and delay.
    out
        Folder for the tables; default: runs/NAME.
    payload
        TYPE=ENCODING names a dynamic payload type of RTP, as in --payload 111=opus; may be
        repeated.
    playout
        Fixed playout buffer of calls, anchored at the first packet that arrives.
    network_delay
        Network delay before a single capture; without it, mouth-to-ear delay is not known, and MOS
        an upper limit.
    clock_offset
        Clock of the second capture minus that of the first, as in 12.5ms or -3ms; default: 0.
    report
        Whether to draw figures and write report.html.
    overwrite
        Replace anything talkspurt wrote to the folder before.
    """
    from talkspurt._commands import importing

    importing.import_(
        traces,
        out=out,
        payload=payload or [],
        playout=playout,
        network_delay=network_delay,
        clock_offset=clock_offset,
        report=report,
        overwrite=overwrite,
    )


@app.command
def metrics(
    run: Path | None = None,
    name: str | None = None,
    /,
    *,
    flow: str | None = None,
    link: str | None = None,
    bin: float | None = None,
    table: Flag = False,
    json: Flag = False,
    describe: Flag = False,
) -> None:
    """List all metrics, or print one metric, or the sheet, of a result or study as CSV.

    Parameters
    ----------
    run
        Folder of a result or a study; without it, all available metrics are listed.
    name
        A listed metric: mos, links.drops, m (its letter in the study of voice). Without it, the
        sheet: packets, bytes, rates, delays, jitter, loss and packet sizes of every flow, and how
        many nodes send and receive; means over the replications of a study.
    flow
        One flow; default: all.
    link
        One link, for metrics of links; default: all.
    bin
        Bin width in seconds, for metrics over time; default: 1, but 0.2 for rates as in RFC 8868
        and 5 for MOS.
    table
        Print a table with the means of a study and their intervals; for metrics over time or
        against another quantity, number, minimum, mean and maximum of the values.
    json
        Print JSON instead of text.
    describe
        Print the data dictionary instead: unit and meaning of every column of every table.
    """
    from talkspurt._terminal import catalogue

    if describe:
        if run is not None:
            raise BadInputError("--describe: describes all tables, without a result")
        catalogue.print_dictionary(as_json=json)
        return
    faults = []
    if bin is not None and not (math.isfinite(bin) and bin > 0):
        faults.append(f"--bin {bin:g}: expected seconds, more than 0")
    if table and json:
        faults.append("--table and --json: give one of them")
    if table and run is None:
        faults.append("--table: expected a folder of a result or a study")
    if name is None and run is not None and (flow or link or bin):
        faults.append("--flow, --link and --bin: for one metric, and none is named")
    if name is not None:
        from talkspurt.metrics import metric

        try:
            metric(name, of_links=link is not None)
        except KeyError as error:
            faults.append(str(error.args[0]))
    if faults:
        raise BadInputError(visible("; ".join(faults)))
    if run is None:
        catalogue.print_list(as_json=json)
        return
    form: catalogue.Form = "table" if table else "json" if json else "csv"
    try:
        if name is None:
            catalogue.print_sheet(run, form)
        else:
            catalogue.print_metric(run, name, flow, link, bin, form)
    except (KeyError, ValueError) as error:
        raise BadInputError(str(error.args[0])) from None


@app.command
def plot(
    run: Path,
    measure: str,
    /,
    *,
    options: PlotOptions = PlotOptions(),
    out: Out = None,
) -> None:
    """Draw a metric of a result or study over an axis, over time, as a distribution or a map.

    Parameters
    ----------
    run
        Folder of a result or a study.
    measure
        A metric that `talkspurt metrics` lists: mos, links.drops, goodput_over_time; of a result
        also a figure of its report, such as delay or queue.
    out
        File to write or replace, .png, .svg or .pdf; default: NAME-MEASURE.png in the current
        folder.
    """
    from talkspurt._commands import plotting

    plotting.plot(run, measure, options, out)


@app.command
def sensitivity(
    study: Path,
    measure: str,
    /,
    *,
    json: Flag = False,
    out: Out = None,
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
    from talkspurt._commands import plotting

    plotting.sensitivity(study, measure, as_json=json, out=out)
