"""The command that judges congestion control by published test cases."""

from __future__ import annotations

import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

from talkspurt._commands.options import EvaluateOptions, Flag
from talkspurt._commands.running import as_asked, say_where
from talkspurt._storage import output_folder
from talkspurt._storage.file_access import plain_name
from talkspurt._terminal.console import console
from talkspurt._terminal.progress import Bar, say_news, silent
from talkspurt._text.escaping import print_json
from talkspurt.errors import Faults
from talkspurt.evaluate import cases, running, showing
from talkspurt.scenarios.source import pairs


def evaluate(
    suite: Literal["rmcat"],
    /,
    *,
    list: Flag = False,
    options: EvaluateOptions = EvaluateOptions(),
) -> int:
    """Judge congestion control by the test cases of RFC 8867 and RFC 8869.

    The exit status is 0 if no band is missed, 1 if one is, 2 for bad input.
    With --baseline it is 1 if anything is worse than there.
    An evaluation that was stopped or killed goes on from there.

    Parameters
    ----------
    suite
        rmcat: RFC 8867 §5.1 to §5.8 and §6.1 to §6.3, RFC 8869 §3.1 and §3.2.
    list
        Print the cases, their variants, and what is not there, and run nothing.
    """
    plan = _plan(options)
    if list:
        if options.json:
            print_json([asdict(case) for case in plan.cases])
        else:
            showing.print_list(plan.cases, console())
        return 0
    work = running.Work.of(plan)
    sets = [one.replace("=", "-") for one in options.set or []]
    named = "-".join([suite, *(options.case or []), *sets])
    folder = options.out
    if folder is None and not options.json and not options.quiet:
        folder = Path("runs") / plain_name(f"evaluate-{named}")
    claim = output_folder.Claim("evaluation", named, overwrite=options.overwrite)
    with silent(wanted=options.quiet), Bar(f"evaluate {suite}") as bar:
        if folder is None:
            found = running.evaluate(work, jobs=options.jobs, on_progress=bar.on_progress)
        else:
            parts = len(work.tasks)
            with output_folder.Resumable(folder, plan.key, parts, claim) as unfinished:
                say_news(unfinished.news)
                found = running.evaluate(
                    work, unfinished, jobs=options.jobs, on_progress=bar.on_progress
                )
                page = showing.page(found) if options.report else None
                where = running.write(found, unfinished, page)
    if options.json:
        print_json(found.to_json())
    elif options.quiet:
        print(showing.summary(found))
    else:
        showing.print_all(found, console())
    if folder is not None and not (options.json or options.quiet):
        say_where(as_asked(where, folder), options.report)
    failed = ("missed", "worse", "open") if options.strict else ("missed", "worse")
    return 1 if any(map(found.count, failed)) else 0


def _plan(options: EvaluateOptions) -> running.Plan:
    """What is evaluated.

    Raises:
        BadInputError: with everything that is wrong with the options.
    """
    faults = Faults()
    seeds, jobs = options.seeds, options.jobs
    faults.add(f"--seeds {seeds}: expected 1 or more", unless=seeds >= 1)
    faults.add(f"--jobs {jobs}: expected 1 or more", unless=jobs is None or jobs >= 1)
    named = options.program
    # A path without a folder is one here, before it is a command.
    program = named and shutil.which(named.absolute() if named.exists() else named)
    faults.add(
        f"--program {options.program}: no such program", unless=program or not options.program
    )
    plan = running.Plan([], [], seeds, program=program or None)
    with faults.gathered():
        plan = replace(plan, cases=cases.select(options.case or []))
    with faults.gathered():
        found = cases.candidates(options.controller or [], options.transport or [])
        plan = replace(plan, candidates=found, baseline=options.baseline)
        names = [one.name for one in found]
        fits = options.baseline is None or (options.baseline in names and len(names) > 1)
        faults.add(
            f"--baseline {options.baseline}: expected one of several candidates, which are "
            f"{', '.join(names)}",
            unless=fits,
        )
    with faults.gathered():
        plan = replace(plan, sets=pairs(options.set))
    faults.check()
    return plan
