"""Commands that run scenarios and studies."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Literal

from talkspurt._commands.explaining import explain
from talkspurt._commands.options import Flag, Jobs, Out, Report, Sets, Several, app
from talkspurt.errors import BadInputError


@app.command
def run(
    scenario: Path,
    /,
    *,
    out: Out = None,
    set: Sets = None,
    seed: int | None = None,
    json: Flag = False,
    report: Report = True,
    pdf: Flag = False,
    jobs: Jobs = None,
    overwrite: Flag = False,
    watch: Flag = False,
    scores: Flag = False,
    until: Several = None,
    most: int | None = None,
    shard: str | None = None,
    cluster: str | None = None,
    tls_ca: Path | None = None,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    plain_tcp: Flag = False,
) -> None:
    """Run a scenario, print a summary of each flow and write all results to a folder.

    Parameters
    ----------
    scenario
        TOML file that defines the network, the flows and the measurements.
    out
        Folder for the results, or a URL such as s3://bucket/name; default: runs/NAME. Earlier
        results of the same scenario are replaced when the run is done; those of another scenario,
        and exports, only with --overwrite; a folder with other content is never changed.
    set
        PATH=VALUE overrides a scenario field, as in --set links.sky.delay=20ms; may be repeated.
    seed
        Replaces the scenario's seed: 0 to 9223372036854775807 (2^63 − 1).
    json
        Print only a JSON document on standard output; results are written only with --out.
    report
        Whether to write report.html; without, an earlier one stays.
    pdf
        Also write every figure to figures/, as SVG, PNG and PDF.
    jobs
        Concurrent runs, with axes or replications; default: all cores.
    overwrite
        Replace anything talkspurt wrote to the folder before, of this scenario or another.
    watch
        Run again whenever the scenario, or a file that it names, changes; Ctrl-C ends it.
    scores
        Score the sound of calls by PESQ, ViSQOL and PLCMOS, some seconds for each minute of a
        call. Needs pip install 'talkspurt[scores]'.
    until
        MEASURE=WIDTH runs more replications until half the interval of a measure is at most WIDTH
        for every flow and setting: mos=0.1, delay_p95_s=5ms or, of the mean, goodput_bps=5%; may
        be repeated.
    most
        Maximum number of replications with --until; default: 100.
    shard
        I/N runs every N-th run of a study from the I-th into a folder (default:
        runs/NAME-I-of-N), without a report. `talkspurt merge` makes a study of all N.
    cluster
        Workers for the runs of a study: tls://HOST:PORT or tcp://HOST:PORT of a scheduler of
        dask.distributed, or local:N for N processes here. Needs pip install 'talkspurt[cluster]'.
    tls_ca
        Certificate of the authority that signed those of the cluster; default: dask's settings.
    tls_cert
        Our certificate.
    tls_key
        Our private key.
    plain_tcp
        Permit tcp:// to other machines, where whoever reaches a port can execute code.
    """
    from talkspurt._commands import running

    if jobs is not None and jobs < 1:
        raise BadInputError(f"--jobs {jobs}: expected 1 or more")
    if pdf and not report:
        raise BadInputError("--pdf and --no-report: without a report no figure is drawn")
    if shard is not None:
        if watch or until or pdf or cluster:
            raise BadInputError("--shard: not together with --watch, --until, --pdf or --cluster")
        from talkspurt._commands import shards

        shards.run_and_say(
            scenario, shard, out=out, sets=set or [], seed=seed, as_json=json, jobs=jobs,
            overwrite=overwrite, scores=scores,
        )  # fmt: skip
        return
    workers = None
    if cluster is not None:
        from talkspurt._cluster import Address

        files = {"ca": tls_ca, "cert": tls_cert, "key": tls_key}
        workers = Address(cluster, files, plain=plain_tcp)
        workers.check()
    elif plain_tcp or tls_ca or tls_cert or tls_key:
        raise BadInputError("--plain-tcp and --tls-…: for --cluster, which is not given")
    once = functools.partial(
        running.run,
        scenario,
        out=out,
        sets=set or [],
        seed=seed,
        as_json=json,
        report=report,
        pdf=pdf,
        jobs=jobs,
        overwrite=overwrite,
        scores=scores,
        until=until or [],
        at_most=most,
        cluster=workers,
    )
    if watch:
        running.watch(scenario, set or [], once, lambda error: explain(error) is not None)
    else:
        once()


@app.command
def merge(
    *shards: Path,
    out: Out = None,
    json: Flag = False,
    report: Report = True,
    pdf: Flag = False,
    overwrite: Flag = False,
) -> None:
    """Merge the shards of a study into a folder with the same tables as one run of all.

    Parameters
    ----------
    shards
        Folders of all shards, each written by `talkspurt run STUDY --shard I/N`.
    out
        Folder for the study; default: runs/NAME.
    json
        Print only a JSON document on standard output.
    report
        Whether to draw figures and write report.html; without, earlier ones stay.
    pdf
        Also write each figure as PDF, in addition to SVG and PNG.
    overwrite
        Replace anything talkspurt wrote to the folder before, of this scenario or another.
    """
    from talkspurt._commands import shards as parts

    if pdf and not report:
        raise BadInputError("--pdf and --no-report: without a report no figure is drawn")
    parts.merge_and_say(shards, out, as_json=json, report=report, pdf=pdf, overwrite=overwrite)


@app.command
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
    from talkspurt.analysis.cautions import openings
    from talkspurt.scenarios.source import read

    plan = read(scenario, set=set).plan
    runs = f"{len(plan)} run{'s' if len(plan) != 1 else ''}"
    say_line(f"{scenario}: nothing wrong; {plan.title}; {runs}")
    runs_looked_at = range(min(len(plan), 100))
    for words in dict.fromkeys(w for i in runs_looked_at for w in openings(plan.resolved(i))):
        say_line(f"Warning: {words}")


@app.command
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
        study, out=out, as_json=json, fresh_ns2=ns2, jobs=jobs, sets=set or [], pdf=pdf, live=live
    )


@app.command
def crosscheck(
    scenario: Path,
    /,
    *,
    set: Sets = None,
    seed: int | None = None,
    seeds: int | None = None,
    json: Flag = False,
    trace: Path | None = None,
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

    command.crosscheck(scenario, sets=set or [], seed=seed, seeds=seeds, as_json=json, trace=trace)
