"""Commands that give results as files of other tools, and as numbers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from talkspurt._commands.options import Flag, Out, Sets, bin_faults
from talkspurt._text.escaping import print_json, visible
from talkspurt.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

MAX_BINS = 1_000_000
"""Maximum number of time bins (rows)."""


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
    faults = bin_faults(bin)
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
    try:
        found = _values(run, name, flow, link, bin, as_table=table)
    except (KeyError, ValueError) as error:
        raise BadInputError(str(error.args[0])) from None
    if found is not None and json:
        print_json(found.to_dicts())
    elif found is not None:
        sys.stdout.write(found.write_csv())


def _values(
    run: Path, name: str | None, flow: str | None, link: str | None, bin_s: float | None, *,
    as_table: bool,
) -> pl.DataFrame | None:  # fmt: skip
    """A metric of a result, or its sheet; None if it has been printed as a table."""
    from talkspurt import metrics
    from talkspurt._storage import reader
    from talkspurt.metrics import sheet
    from talkspurt.results.study_data import StudyData

    result = reader.load(run)
    study = result if isinstance(result, StudyData) else StudyData.of_run(result)
    if faults := bin_faults(bin_s, max(one.duration_s for one in study.runs), MAX_BINS):
        raise BadInputError(faults[0])
    if as_table:
        from talkspurt._terminal import tables

        if name is None:
            tables.print_sheet(study)
        else:
            tables.print_metric(study, name, flow, link, bin_s)
        return None
    if name is None:
        return sheet.sheet(study)
    if isinstance(result, StudyData):
        table = result.compute(name, flow, bin_s, link=link)
    else:
        table = metrics.compute(result, name, flow, bin_s, link=link)
    one = metrics.metric(name, of_links=link is not None)
    if table.is_empty() and isinstance(one, metrics.Column):
        from talkspurt.figures.values import missing

        raise missing(study, one, flow or link)
    return table
