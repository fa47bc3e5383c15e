"""Commands that run scenarios and studies."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from talkspurt._commands.options import (
    ClusterOptions,
    Flag,
    Jobs,
    Out,
    Pictures,
    RunOptions,
    Sets,
)  # fmt: skip
from talkspurt.errors import BadInputError

if TYPE_CHECKING:
    from talkspurt._cluster import Address


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
        from talkspurt._commands import shards

        shards.run_and_say(scenario, shard, options)
        return
    once = functools.partial(running.run, scenario, options, _workers(cluster))
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

    where = merged(
        shards, options.out, report=options.report, pdf=options.pdf, overwrite=options.overwrite,
        progress=True,
    )  # fmt: skip
    running.say(reader.load(where), options.json)
    if not options.json:
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
    from talkspurt.analysis.cautions import openings
    from talkspurt.scenarios.source import read

    plan = read(scenario, set=set).plan
    runs = f"{len(plan)} run{'s' if len(plan) != 1 else ''}"
    say_line(f"{scenario}: nothing wrong; {plan.title}; {runs}")
    runs_looked_at = range(min(len(plan), 100))
    for words in dict.fromkeys(w for i in runs_looked_at for w in openings(plan.resolved(i))):
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
