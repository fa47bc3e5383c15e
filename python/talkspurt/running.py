"""What ``talkspurt run`` does: ask, watch, print, and put the results away."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from talkspurt import entry, store, study_store
from talkspurt.result import Result
from talkspurt.scenario import Question, pairs, read
from talkspurt.study import Study
from talkspurt.terminal.progress import Bar


def run(
    scenario: Path,
    *,
    out: Path | None,
    sets: list[str],
    seed: int | None,
    as_json: bool,
    report: bool,
    jobs: int | None,
) -> None:
    """Run a scenario as the command line asks."""
    question = read(scenario, set=sets_of(sets), seed=seed)
    folder = out if out is not None else None if as_json else Path("runs") / question.name
    if folder is None:
        with Bar(question.plan.title) as bar:
            answer = entry.answer(question, jobs=jobs, on_progress=bar.on_progress)
        _print(answer, as_json)
        return
    # Whether the folder may be written is asked before the work, not after.
    with store.Staging(folder) as staging:
        answer = _run_into(question, staging, jobs, report=report)
        where = staging.commit()
    _print(answer, as_json)
    if not as_json:
        _say_where(where, folder, report)


def sets_of(sets: list[str]) -> list[tuple[str, str]]:
    """What ``--set`` was given, as pairs of path and value."""
    from talkspurt.cli import BadInputError

    try:
        return pairs(sets)
    except ValueError as error:
        raise BadInputError(f"--set: {error}") from None


def _run_into(
    question: Question, staging: store.Staging, jobs: int | None, *, report: bool
) -> Result | Study:
    """Run, and write as the runs end, so that a study never has to fit into memory."""
    plan = question.plan
    study = entry.is_study(plan)

    def place(i: int) -> Path:
        if not study:
            return staging.folder
        folder = staging.folder / study_store.run_folder(i, plan.settings(i), plan.replicate(i))
        with store.writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        return folder

    def keep(i: int, result: Result) -> Result:
        if not study:
            return result
        study_store.write_run(result, place(i))
        return store.load_result(place(i))

    with Bar(plan.title) as bar:
        answer = entry.answer(
            question, jobs=jobs, on_progress=bar.on_progress, keep=keep, captures_in=place
        )
        if isinstance(answer, Study):
            study_store.write_study(answer, staging.folder, report=report, step=bar.on_step)
        else:
            store.write_result(answer, staging.folder, report=report, step=bar.on_step)
    # Tables on the terminal are read before the folder is renamed.
    for result in answer.runs if isinstance(answer, Study) else [answer]:
        _ = result.flows, result.links
    return answer


def _print(answer: Result | Study, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(answer.to_json(), ensure_ascii=False, allow_nan=False) + "\n")
        return
    from talkspurt.terminal import tables

    if isinstance(answer, Study):
        tables.print_study(answer)
    else:
        tables.print_result(answer)


def _say_where(where: Path, asked: Path, report: bool) -> None:
    shown = asked if not asked.is_absolute() else where
    print(f"Results: {shown}/" + (f"   Report: {shown / 'report.html'}" if report else ""))
