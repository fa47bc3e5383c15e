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
    pdf: bool,
    jobs: int | None,
) -> None:
    """Run a scenario as the command line asks."""
    question = read(scenario, set=sets_of(sets), seed=seed)
    folder = out if out is not None else None if as_json else Path("runs") / question.name
    answer: Result | Study
    if folder is None:
        with Bar(question.plan.title) as bar:
            answer = entry.answer(question, jobs=jobs, on_progress=bar.on_progress)
        _print(answer, as_json)
        return
    # Whether the folder may be written is asked before the work, not after.
    if entry.is_study(question.plan):
        with store.Resumable(folder, study_store.key(question), len(question.plan)) as unfinished:
            answer = _study_into(question, unfinished, jobs, report=report, pdf=pdf)
            where = unfinished.commit()
    else:
        with store.Staging(folder) as staging:
            answer = _run_into(question, staging, report=report, pdf=pdf)
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
    question: Question, staging: store.Staging, *, report: bool, pdf: bool
) -> Result | Study:
    """One run, and what came of it written."""
    with Bar(question.plan.title) as bar:
        answer = entry.answer(
            question, on_progress=bar.on_progress, captures_in=lambda _: staging.folder
        )
        assert isinstance(answer, Result)
        store.write_result(answer, staging.folder, report=report, pdf=pdf, step=bar.on_step)
    # Tables on the terminal are read before the folder is renamed.
    _ = answer.flows, answer.links
    return answer


def _study_into(
    question: Question, unfinished: store.Resumable, jobs: int | None, *, report: bool, pdf: bool
) -> Study:
    """Runs written as they end, so that a study need not fit into memory, and none done twice."""
    plan = question.plan

    def place(i: int) -> Path:
        name = study_store.run_folder(i, plan.settings(i), plan.replicate(i))
        return unfinished.folder / name

    def captures(i: int) -> Path:
        folder = study_store.part(place(i))
        with store.writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        return folder

    there = {i: found for i in range(len(plan)) if (found := _finished(place(i)))}
    _say_what_is_there(unfinished, len(there), len(plan))
    with Bar(plan.title) as bar:
        answer = entry.answer(
            question,
            jobs=jobs,
            on_progress=bar.on_progress,
            keep=lambda i, result: study_store.keep_run(result, place(i)),
            captures_in=captures,
            there=there,
        )
        assert isinstance(answer, Study)
        study_store.write_study(answer, unfinished.folder, report=report, pdf=pdf, step=bar.on_step)
    for result in answer.runs:
        _ = result.flows, result.links
    return answer


def _finished(folder: Path) -> Result | None:
    return study_store.reread(folder) if (folder / store.MANIFEST).exists() else None


def _say_what_is_there(unfinished: store.Resumable, there: int, total: int) -> None:
    if there:
        print(f"talkspurt: {there} of {total} runs were there already", file=sys.stderr)
    for other in unfinished.others:
        print(
            f"talkspurt: {other} holds runs of another scenario or version, left unfinished; "
            "remove it unless that is to go on",
            file=sys.stderr,
        )


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
