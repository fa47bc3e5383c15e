"""Commands that begin, check and run scenarios, and give results as numbers and as files."""

from __future__ import annotations

import functools
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from talkspurt import _core, templates
from talkspurt._commands import completing
from talkspurt._commands.options import (
    ClusterOptions,
    Flag,
    Flow,
    Jobs,
    Link,
    Out,
    Overwrite,
    Pictures,
    RunOptions,
    Sets,
    Whole,
    app,
    bin_faults,
)  # fmt: skip
from talkspurt._lazy import pl
from talkspurt._storage.output_folder import refuse_file
from talkspurt._terminal.progress import silent
from talkspurt._text.escaping import print_json, visible
from talkspurt.analysis.cautions import openings, silent_redundancy
from talkspurt.errors import BadInputError
from talkspurt.scenarios.source import read

if TYPE_CHECKING:
    from talkspurt._cluster import Address

MAX_BINS = 1_000_000


def run(
    scenario: Path,
    /,
    *,
    options: RunOptions = RunOptions(),
    cluster: ClusterOptions = ClusterOptions(),
    watch: Flag = False,
    shard: str | None = None,
) -> None:
    """Run a scenario, print a summary of each flow and write all results to a folder.

    Parameters
    ----------
    scenario
        TOML file that defines the network, the flows and the measurements.
    watch
        Run again whenever the scenario, or a file that it names, changes; Ctrl-C ends it.
    shard
        I/N runs every N-th run of a study from the I-th into a folder (default:
        runs/NAME-I-of-N), without a report. `talkspurt merge` makes a study of all N.
    """
    from talkspurt._commands import running

    if shard is not None:
        if watch or options.until or options.pdf or cluster.cluster:
            raise BadInputError("--shard: not together with --watch, --until, --pdf or --cluster")
        with silent(wanted=options.quiet):
            running.say_shard(scenario, shard, options)
        return
    once = functools.partial(running.run, scenario, options, _workers(cluster))
    with silent(wanted=options.quiet):
        if watch:
            running.watch(scenario, options.set or [], once)
        else:
            once()


def _workers(options: ClusterOptions) -> Address | None:
    """The cluster that these options name, if any."""
    files = {"ca": options.tls_ca, "cert": options.tls_cert, "key": options.tls_key}
    if options.cluster is None:
        if options.plain_tcp or any(files.values()):
            raise BadInputError("--plain-tcp and --tls-…: for --cluster, which is not given")
        return None
    from talkspurt._cluster import Address

    workers = Address(options.cluster, files, plain=options.plain_tcp)
    workers.check()
    return workers


def merge(*shards: Path, options: Pictures = Pictures()) -> None:
    """Merge the shards of a study into a folder with the same tables as one run of all.

    Parameters
    ----------
    shards
        Folders of all shards, each written by `talkspurt run STUDY --shard I/N`.
    """
    from talkspurt import merge as merged
    from talkspurt._commands import running
    from talkspurt._storage import reader

    with silent(wanted=options.quiet):
        where = merged(
            shards, options.out, report=options.report, pdf=options.pdf,
            overwrite=options.overwrite, progress=True,
        )  # fmt: skip
    running.say(reader.load(where), options.json, quiet=options.quiet)
    if not options.json and not options.quiet:
        running.say_where(running.as_asked(where, options.out or where), options.report)


def check(
    scenario: Path,
    /,
    *,
    set: Sets = None,
) -> None:
    """Check a scenario and report all errors, without running it.

    Parameters
    ----------
    scenario
        TOML file.
    set
        PATH=VALUE overrides a scenario field; may be repeated.
    """
    from talkspurt._terminal.console import say_line

    plan = read(scenario, set=set).plan
    runs = f"{len(plan)} run{'s' if len(plan) != 1 else ''}"
    say_line(f"{scenario}: nothing wrong; {plan.title}; {runs}")
    runs_looked_at = range(min(len(plan), 100))
    scenarios = [plan.resolved(i) for i in runs_looked_at]
    found = (words for it in scenarios for words in openings(it) + silent_redundancy(it))
    for words in dict.fromkeys(found):
        say_line(f"Warning: {words}")


def reproduce(
    study: Literal["nor2010", "wheeb2017", "maldonado2005", "sarao2019", "renker2008", "all"],
    /,
    *,
    out: Out = None,
    set: Sets = None,
    json: Flag = False,
    ns2: Flag = False,
    pdf: Flag = False,
    live: Flag = False,
    jobs: Jobs = None,
    overwrite: Overwrite = False,
) -> None:
    """Re-run a published study: printed value, our value, and a verdict with its reason.

    Parameters
    ----------
    study
        One of the five original studies of talkspurt, or all of them.
    out
        Folder for the dossiers, scenarios and figures; default: runs/reproduce-STUDY.
    set
        PATH=VALUE overrides a field of every scenario of the study that has it, as in
        --set links.bottleneck.queue.packets=100; may be repeated. Rows of varied scenarios say so.
    json
        Print only a JSON document on standard output; dossiers are written only with --out.
    ns2
        Run ns-2, which must be installed, instead of using its recorded values.
    pdf
        Also write each figure of the dossiers as PDF, in addition to SVG and PNG.
    live
        Measure the transfers of renker2008 over sockets across an emulated radio, in real time, and
        print simulated, measured and a Linux kernel's values; takes 16 minutes and needs root.
    jobs
        Concurrent runs; default: all cores.
    """
    from talkspurt.reproduce import running

    if jobs is not None and jobs < 1:
        raise BadInputError(f"--jobs {jobs}: expected 1 or more")
    running.run(
        study, out=out, as_json=json, fresh_ns2=ns2, jobs=jobs, sets=set or [], pdf=pdf, live=live,
        overwrite=overwrite,
    )  # fmt: skip


def crosscheck(
    scenario: Path,
    /,
    *,
    set: Sets = None,
    seed: Whole | None = None,
    seeds: Whole | None = None,
    json: Flag = False,
    trace: Path | None = None,
    overwrite: Overwrite = False,
) -> None:
    """Run a scenario here and in ns-2.35, and print both measurements side by side.

    Parameters
    ----------
    scenario
        TOML file; all features unsupported by ns-2 are reported by name.
    set
        PATH=VALUE overrides a scenario field; may be repeated.
    seed
        Replaces the scenario's seed.
    seeds
        Runs in each simulator, whose means are compared; default: the scenario's replications, or
        5, or 1 with --trace.
    json
        Print only a JSON document on standard output.
    trace
        File for ns-2's trace; by default the trace is not kept, only read while it is written.
    """
    from talkspurt.ns2 import command

    command.crosscheck(
        scenario, sets=set or [], seed=seed, seeds=seeds, as_json=json, trace=trace,
        overwrite=overwrite,
    )  # fmt: skip


def export(
    source: Path,
    /,
    *,
    to: Literal["table", "xlsx", "csv", "parquet", "pcapng", "qlog", "ns2", "nam", "ns2-script"],
    out: Out = None,
    overwrite: Overwrite = False,
    set: Sets = None,
    seed: Whole | None = None,
) -> None:
    """Export a result as one table or several, or a run to another tool's format by replaying it.

    Parameters
    ----------
    source
        Folder of a result or a study, or a scenario of one run. A study becomes one folder per run;
        as table, xlsx or csv, one output of all.
    to
        table: one CSV file for spreadsheets, a row for each run and flow, units in the header.
        xlsx: the same as a workbook; needs pip install 'talkspurt[xlsx]'. csv: all tables of the
        result, in SI units. parquet: the tables, and every packet on every link, regardless of the
        run's record settings. pcapng: every link, for Wireshark. qlog: every endpoint. ns2, nam:
        every link, as ns-2's trace-all and namtrace-all. ns2-script: a scenario as a Tcl script for
        ns-2.35, each line with its origin; unsupported features are reported by name.
    out
        Output folder, or file for table, xlsx and ns2-script; default: NAME.FORMAT (NAME.table.csv)
        next to the result, or to the study that contains the run; of ns2-script standard output.
    set
        For ns2-script: PATH=VALUE overrides a scenario field; may be repeated.
    seed
        For ns2-script: replaces the scenario's seed.
    """
    if to == "ns2-script":
        from talkspurt.ns2 import command

        command.export(source, out=out, sets=set or [], seed=seed, overwrite=overwrite)
        return
    if set or seed is not None:
        raise BadInputError(f"--set and --seed: only for --to ns2-script, not for {to}")
    from talkspurt import export as exported

    where = exported(source, to, out, progress=True, overwrite=overwrite)
    if where.is_file():
        print(visible(f"Table: {where}"))
        return
    for file in sorted(where.iterdir()):
        if file.name != "manifest.json":
            shown = where.joinpath(file.name) if out is None else out / file.name
            print(visible(f"{shown}/" if file.is_dir() else str(shown)))


def metrics(
    run: Path | None = None,
    name: Annotated[str | None, Parameter(completer=completing.metrics)] = None,
    /,
    *,
    flow: Flow = None,
    link: Link = None,
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
        A listed metric: mos, links.drops, m (its letter in the study of voice), "Longest gap" (the
        title of a column on the terminal). A score outside the range of its model is a text, such
        as "below 1.71: out of range", in JSON its upper limit `bound`. Without a name, the
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
        from talkspurt.runs import exporting

        sys.stdout.write(exporting.marked_values(found).write_csv())


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
    return study.with_bounds(one, table, flow)


def init(
    template: templates.Name = "first-call",
    path: Path = Path(),
    /,
    *,
    list: Flag = False,
    overwrite: Annotated[Overwrite, Parameter(alias="--force")] = False,
) -> None:
    """Write a commented scenario to start from, with its recording and the JSON Schema.

    Parameters
    ----------
    template
        The scenario; --list shows the question that each one answers.
    path
        Folder, or a file that ends in .toml; default: TEMPLATE.toml in the current folder.
    list
        Only list the templates.
    """
    if list:
        examples()
        return
    written = templates.write(template, path, overwrite=overwrite)
    for file in written:
        print(visible(str(file)))
    print()
    print(visible(f"Next: talkspurt run {shlex.quote(str(written[0]))}"))


def examples(name: templates.Name | None = None, /) -> None:
    """List the scenarios that `talkspurt init` can write, or print one.

    Parameters
    ----------
    name
        The scenario to print; without it, all are listed.
    """
    if name is not None:
        print(templates.text(name).rstrip())
        return
    titles = templates.titles()
    width = max(map(len, titles))
    for each, title in titles.items():
        print(f"{each:<{width}}  {title}")
    print("\n`talkspurt init NAME` writes one into the current folder, ready to run.")


def schema(*, out: Out = None, overwrite: Overwrite = False) -> None:
    """Print the JSON Schema of a scenario, for editors.

    Taplo, and Even Better TOML for VS Code, complete and check a scenario with the first line
    "#:schema ./talkspurt.schema.json", a path from the scenario's folder. `talkspurt init` writes
    the line and the file.

    Parameters
    ----------
    out
        File to write; default: standard output.
    """
    if out is None:
        print(_core.schema().rstrip())
        return
    refuse_file(
        out, lambda file: b'"$schema"' in file.read_bytes(), "JSON Schema", overwrite=overwrite
    )
    out.write_text(_core.schema(), encoding="utf-8")


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print a script that completes commands, options and templates in a shell.

    For bash, with the folder made first:
    talkspurt completion bash > ~/.local/share/bash-completion/completions/talkspurt

    For zsh, with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc:
    talkspurt completion zsh > ~/.zfunc/_cyclopts_talkspurt

    For fish:
    talkspurt completion fish > ~/.config/fish/completions/talkspurt.fish

    Parameters
    ----------
    shell
        The shell that reads the script.
    """
    print(app.generate_completion(shell=shell).rstrip())
