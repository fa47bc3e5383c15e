"""The command that judges congestion control by published test cases."""

from __future__ import annotations

import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from talkspurt._commands.options import EvaluateOptions, Flag
from talkspurt._storage import output_folder
from talkspurt._storage.file_access import plain_name
from talkspurt._terminal.progress import Bar, say_news, silent
from talkspurt._text.escaping import print_json
from talkspurt.errors import BadInputError, Faults
from talkspurt.scenarios.source import pairs

if TYPE_CHECKING:
    from talkspurt.evaluate.running import Work


def evaluate(
    suite: Literal["rmcat"],
    /,
    *,
    list: Flag = False,
    options: EvaluateOptions = EvaluateOptions(),
) -> int:
    """Judge congestion control by the test cases of RFC 8867 and RFC 8869.

    The exit status is 0 if no band is missed, 1 if one is, 2 for bad input or a failed program.
    With --baseline it is 1 if anything is worse than there.
    An evaluation that was stopped or killed goes on from there.

    Parameters
    ----------
    suite
        rmcat: RFC 8867 §5.1 to §5.8 and §6.1 to §6.3, RFC 8869 §3.1 and §3.2.
    list
        Print the cases, their variants, and what is not there, and run nothing.
    """
    from talkspurt._commands.running import as_asked, say_where
    from talkspurt._terminal.console import console
    from talkspurt.evaluate import running, showing

    work = _work(options)
    plan = work.plan
    if list:
        if options.json:
            print_json([asdict(case) for case in plan.cases])
        else:
            showing.print_list(plan.cases, console())
        return 0
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
    if found.failed:
        raise BadInputError(f"{plan.program} failed: {'; '.join(found.failed)}")
    faulty = ("missed", "worse", "open") if options.strict else ("missed", "worse")
    return 1 if any(map(found.count, faulty)) else 0


def _work(options: EvaluateOptions) -> Work:
    """What is evaluated.

    Raises:
        BadInputError: with everything that is wrong with the options.
    """
    from talkspurt.evaluate import cases, running

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
    plan = running.Plan(cases.select([]), [], seeds, program=program or None)
    with faults.gathered():
        plan = replace(plan, sets=pairs(options.set))
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
    if not plan.candidates:
        # What is set is judged nevertheless, apart from what the candidate has.
        sets = [one for one in plan.sets if not one[0].startswith(("media.", "flows.video"))]
        plan = replace(plan, sets=sets, candidates=cases.candidates([], ["udp"]))
    work = running.Work(plan, {})
    with faults.gathered():
        work = running.Work.of(plan)
    faults.check()
    return work
