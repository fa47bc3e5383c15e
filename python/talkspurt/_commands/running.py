"""Implements ``talkspurt run``: runs, shows progress, prints, and stores the results."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never

from talkspurt import _core, api
from talkspurt._commands.entry import explain
from talkspurt._storage import disk_space, file_access, output_folder, reader, remote, writer
from talkspurt._terminal.progress import Bar, say_news
from talkspurt._text.escaping import print_json, visible
from talkspurt.analysis.answer import Answer
from talkspurt.analysis.answer import answer as conclude
from talkspurt.errors import BadInputError
from talkspurt.results import concatenation
from talkspurt.results.result import Result, Study
from talkspurt.results.run_data import recorded
from talkspurt.runs import scoring, sequential
from talkspurt.runs.merging import KIND, Shard
from talkspurt.scenarios import provenance
from talkspurt.scenarios.resolved import recordings, values
from talkspurt.scenarios.source import Question, pairs, read
from talkspurt.scores import Segments, models

if TYPE_CHECKING:
    import polars as pl

    from talkspurt._cluster import Address
    from talkspurt._cluster.work import Rows
    from talkspurt._commands.options import RunOptions

WATCH_S = 0.3
"""Time between two looks at the files of ``--watch``."""


def run(scenario: Path, options: RunOptions, cluster: Address | None = None) -> None:
    wanted = _targets(options.until or (), options.most)
    most = options.most or sequential.MAX_REPLICATIONS
    dry = options.out is None and options.json and cluster is None
    series = not dry or options.scores is not None or bool(wanted)
    question = read(scenario, set=sets_of(options.set), seed=options.seed, series=series)
    if options.scores:
        check_scores(question)
    if wanted:
        count = sequential.first(question.plan.replications, most)
        question = sequential.repeated(question, count, options.seed)
    with contextlib.ExitStack() as stack:
        executor = None
        if cluster is not None:
            if not api.is_study(question.plan):
                raise BadInputError(
                    "--cluster: the scenario is a single run, without axes or replications"
                )
            from talkspurt._cluster import connected

            executor = stack.enter_context(connected(cluster))
        far = None if options.out is None else remote.of(options.out)
        if far is not None:
            name, file = question.name, question.absolute
            far.check(output_folder.Claim("run", name, file, options.overwrite))
            here = far.folder(stack.enter_context(tempfile.TemporaryDirectory()))
            options = replace(options, out=here)
        _run(question, wanted, most, options, far=far, executor=executor)


def _run(
    question: Question,
    wanted: Sequence[sequential.Target],
    most: int,
    options: RunOptions,
    *,
    far: remote.Remote | None,
    executor: Any,
) -> None:
    """Run a scenario that was read, here or with the workers of an executor.

    The folder is uploaded if it goes ``far``.
    """
    seed, as_json, report = options.seed, options.json, options.report
    folder = options.out or (None if as_json else Path("runs") / question.name)
    answer: Result | Study
    if folder is None:
        # Nothing is stored, so nothing is captured and no disk space is needed. The document has
        # the tables of flows and links; targets may be of others.
        there: Mapping[int, Result] = {}
        while True:
            with Bar(question.plan.title) as bar:
                answer = api.answer(
                    question,
                    jobs=options.jobs,
                    on_progress=bar.on_progress,
                    keeping=api.Keeping(written_in=lambda _: None),
                    there=there,
                    executor=executor,
                    tables="memory" if options.scores or wanted else "none",
                    memory_limit=options.memory_bytes,
                )
            if options.scores:
                _score_here(answer, options.scores, options.jobs)
            following = _following(question, answer, wanted, most, seed)
            if following is None:
                break
            question, there = following
        say(answer, as_json)
        _say_outcome(answer, wanted, shown=False)
        return
    # Check that the folder is writable before the work, not after.
    claim = output_folder.Claim("run", question.name, question.absolute, options.overwrite)
    said = undrawn = None
    if api.is_study(question.plan):
        before: Study | None = None
        while True:
            key = writer.key(question)
            with output_folder.Resumable(folder, key, len(question.plan), claim, far) as unfinished:
                more = sequential.known(question, before) if before else {}
                answer = _study_into(
                    question, unfinished, options, more, executor=executor, last=not wanted
                )
                following = _following(question, answer, wanted, most, seed)
                if following is None and report:
                    with Bar(answer.title) as bar:
                        answer._draw(unfinished.folder, bar.on_step, pdf=options.pdf)
                if following is None and not as_json:
                    # It reads tables of the runs, whose folders are about to be renamed.
                    said = answer.answer
                kept = (following is not None or not report) and unfinished.keep(
                    output_folder.DRAWN
                )
                where = unfinished.commit()
                answer = reader.moved_study(answer, where)
            if following is None:
                break
            # Every step leaves a complete study in the folder.
            question = following[0]
            saved = reader.load(where)
            assert isinstance(saved, Study)
            before = saved
    else:
        with output_folder.Staging(folder, claim, far) as staging:
            answer = _run_into(question, staging, options)
            kept = not report and staging.keep(output_folder.DRAWN)
            where = staging.commit()
            answer = answer.moved(where)
            undrawn = staging.undrawn
            report = report and undrawn is None
    say(answer, as_json, said, quiet=options.quiet)
    _say_outcome(answer, wanted, shown=not as_json and not options.quiet)
    if not as_json and not options.quiet:
        say_where(far.url if far else as_asked(where, folder), report)
    if kept:
        say_news([f"the report is of an earlier run; `talkspurt report {folder}` draws it again"])
    if undrawn is not None:
        raise undrawn


def _targets(until: Sequence[str], most: int | None) -> tuple[sequential.Target, ...]:
    if most is not None and not until:
        raise BadInputError("--most: the limit of --until, which is not given")
    if most is not None and most < 2:
        raise BadInputError(f"--most {most}: expected at least 2, for an interval")
    try:
        return sequential.targets(until)
    except (KeyError, ValueError) as error:
        raise BadInputError(visible(f"--until: {error.args[0]}")) from None


def _following(
    question: Question,
    answer: Result | Study,
    wanted: Sequence[sequential.Target],
    most: int,
    seed: int | None,
) -> tuple[Question, Mapping[int, Result]] | None:
    """The next step of ``--until`` and what is there of it; None if there is none."""
    if not wanted:
        return None
    assert isinstance(answer, Study)
    try:
        count = sequential.more(answer, wanted, most)
    except (KeyError, ValueError) as error:
        raise BadInputError(visible(f"--until: {error.args[0]}")) from None
    if not count:
        return None
    following = sequential.repeated(question, count, seed)
    return following, sequential.known(following, answer)


def _say_outcome(
    answer: Result | Study, wanted: Sequence[sequential.Target], *, shown: bool
) -> None:
    if not wanted:
        return
    assert isinstance(answer, Study)
    reached, words = sequential.outcome(answer, wanted)
    if not reached:
        print(f"talkspurt: not narrow enough: {words}", file=sys.stderr)
    elif shown:
        from talkspurt._terminal import console

        console.say(words, console.console())


def watch(scenario: Path, sets: list[str], once: Callable[[], None]) -> Never:
    """Run whenever the scenario or a file that it names changes, until a signal ends it."""
    while True:
        seen = _stamps(scenario, sets)
        try:
            once()
        except Exception as error:
            if explain(error) is None:
                raise
        say_news([f"waiting for a change of {scenario}"])
        while (now := _stamps(scenario, sets)) == seen:
            time.sleep(WATCH_S)
        # An editor may write a file in several steps.
        while now != (now := _stamps(scenario, sets)):
            time.sleep(WATCH_S)


def _stamps(scenario: Path, sets: list[str]) -> dict[Path, tuple[int, int] | None]:
    """Size and time of change of the scenario, and of the files it names if it can be read."""
    files = [scenario]
    with contextlib.suppress(Exception):
        plan = read(scenario, set=sets_of(sets)).plan
        files += map(Path, provenance.files(plan.resolved(0)))
    found: dict[Path, tuple[int, int] | None] = {}
    for file in files:
        try:
            stat = file.stat()
            found[file] = stat.st_size, stat.st_mtime_ns
        except OSError:
            found[file] = None
    return found


def sets_of(sets: list[str] | None) -> list[tuple[str, str]]:
    """``--set`` options as pairs of path and value."""
    try:
        return pairs(sets or [])
    except ValueError as error:
        raise BadInputError(f"--set: {error}") from None


def check_scores(question: Question) -> None:
    """Refuse a run whose calls cannot be scored, before it starts."""
    models.check()
    plan = question.plan
    if not any(recordings(values(plan.resolved(i))) for i in range(len(plan))):
        raise BadInputError(
            "--scores: no flow has a recording to be scored: name one with `file` in the source of "
            "a call, or leave --scores out"
        )


def _score_here(answer: Result | Study, wanted: Segments, jobs: int | None) -> None:
    runs = answer.runs if isinstance(answer, Study) else [answer]
    _score(
        answer.title, enumerate(runs), wanted, jobs,
        lambda i, table: runs[i]._tables.update(scores=table),
    )  # fmt: skip


def _score(
    title: str,
    runs: Iterable[tuple[int, Result]],
    wanted: Segments,
    jobs: int | None,
    keep: Callable[[int, pl.DataFrame], None],
) -> None:
    with Bar(title) as bar:
        scoring.score(
            runs, wanted, jobs=jobs, keep=keep,
            on_progress=lambda it: bar.on_fraction(
                it.fraction,
                f"scores of {it.finished}/{it.total} calls" if it.total > 1 else "scores",
            ),
        )  # fmt: skip


def _run_into(question: Question, staging: output_folder.Staging, options: RunOptions) -> Result:
    say_news(staging.news)
    _check_room(question, [0], staging)
    with Bar(question.plan.title) as bar:
        answer = api.answer(
            question,
            on_progress=bar.on_progress,
            keeping=api.Keeping(written_in=lambda _: staging.folder),
            tables="folder",
            memory_limit=options.memory_bytes,
        )
        assert isinstance(answer, Result)
    if options.scores:
        _score_here(answer, options.scores, options.jobs)
    with Bar(question.plan.title) as bar:
        writer.write_result(answer, staging.folder, step=bar.on_step)
        if options.report:
            with staging.drawing():
                answer._draw(staging.folder, bar.on_step, pdf=options.pdf)
    return answer


def _study_into(
    question: Question,
    unfinished: output_folder.Resumable,
    options: RunOptions,
    more: Mapping[int, Result],
    *,
    executor: Any,
    last: bool,
) -> Study:
    """Run a study and write it; ``more`` are runs that are known from elsewhere and are copied.

    After the ``last`` runs, the connection to a cluster is closed while the study is written.
    """
    wanted = [i for i in range(len(question.plan)) if i not in more]
    gathered = concatenation.Gathered()
    found = runs_into(question, wanted, unfinished, options, executor=executor, ended=gathered.add)
    if last and hasattr(executor, "release"):  # others are closed by those who made them
        executor.release()
    runs = {**more, **found}
    stacks = gathered.stacks(runs)
    answer = Study.of_results(question, [runs[i] for i in range(len(runs))], stacks)
    with Bar(answer.title) as bar:
        writer.write_study(answer, unfinished.folder, step=bar.on_step)
    return answer


def runs_into(
    question: Question,
    wanted: Sequence[int],
    unfinished: output_folder.Resumable,
    options: RunOptions,
    *,
    executor: Any = None,
    ended: Callable[[int, _core.Outcome | Rows], None] = lambda *_: None,
) -> dict[int, Result]:
    """Write runs as they end, to bound memory and to skip finished runs on restart.

    ``ended`` is called with the summary tables of each run that ends.
    """
    plan = question.plan

    def place(i: int) -> Path:
        unfinished.check()
        name = writer.run_folder(i, plan.settings(i), plan.replicate(i))
        return unfinished.folder / name

    def written(i: int) -> Path:
        unfinished.check()
        folder = output_folder.part(place(i))
        with file_access.writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        return folder

    def keep(i: int, result: Result) -> Result:
        unfinished.check()
        return reader.keep_run(result, place(i))

    complete = [i for i in wanted if (place(i) / output_folder.MANIFEST).exists()]
    there = {i: run for i in complete if (run := reader.reread(place(i)))}
    say_news(unfinished.news)
    if there:
        say_news([f"{len(there)} of {len(wanted)} runs were there already"])
    missing = [i for i in wanted if i not in there]
    _check_room(question, missing, unfinished, options.jobs)
    with Bar(plan.title) as bar:
        found = there | api.collect(
            question,
            missing,
            jobs=options.jobs,
            on_progress=bar.on_progress,
            keeping=api.Keeping(
                keep, written, place, kept=lambda i: unfinished.finish(place(i)), ended=ended
            ),
            executor=executor,
            tables="folder",
            memory_limit=options.memory_bytes,
        )
    if options.scores:
        # Of copies, so that what is read for the scores does not stay in memory.
        copies = ((i, reader.moved(run, place(i))) for i, run in found.items())
        _score(
            plan.title, copies, options.scores, options.jobs,
            lambda i, it: writer.write_run_table(place(i), "scores", it),
        )  # fmt: skip
    return found


def run_shard(question: Question, shard: Shard, options: RunOptions) -> Path:
    """Run one shard of a study into a folder, and return the folder.

    Raises:
        BadInputError: if the scenario is a single run, or has fewer runs than shards.
        talkspurt.errors.StoreError: if the folder has other content or cannot be written.
    """
    plan = question.plan
    total = len(plan)
    if not api.is_study(plan):
        raise BadInputError(
            f"--shard {shard}: the scenario is a single run, without axes or replications"
        )
    if shard.of > total:
        most = f"{total} shards" if total > 1 else "one shard"
        raise BadInputError(f"--shard {shard}: the study has {total} runs, so at most {most}")
    key = writer.key(question)
    claim = output_folder.Claim(
        KIND, f"{question.name} {shard}", question.absolute, options.overwrite
    )
    wanted = shard.runs(total)
    folder = options.out or shard.folder(question.name)
    parts = f"{key}-{shard.number}-of-{shard.of}"
    with output_folder.Resumable(folder, parts, len(wanted), claim) as unfinished:
        found = runs_into(question, wanted, unfinished, options)
        file_access.write_text(unfinished.folder / "scenario.toml", question.text)
        manifest = {
            **writer.header(KIND),
            "study": key,
            "engine": provenance.engine(),
            "shard": shard.number,
            "shards": shard.of,
            "total": total,
            "file": claim.file,
            **question.facts,
            "runs": [
                {
                    "run": i,
                    "folder": writer.run_folder(i, result.settings, result.replicate),
                    "settings": dict(result.settings),
                    "seed": result.seed,
                    "digest": result.digest,
                }
                for i, result in sorted(found.items())
            ],
        }
        file_access.write_text(
            unfinished.folder / output_folder.MANIFEST, file_access.to_json(manifest)
        )
        return unfinished.commit()


def say_shard(scenario: Path, text: str, options: RunOptions) -> None:
    shard = Shard.parse(text)
    question = read(scenario, set=sets_of(options.set), seed=options.seed)
    if options.scores:
        check_scores(question)
    where = run_shard(question, shard, options)
    if options.json:
        print_json(reader.check(where, (KIND,)))
        return
    if options.quiet:
        return
    total = len(question.plan)
    print(visible(f"Shard {shard} of {question.name}: {len(shard.runs(total))} of {total} runs"))
    asked = options.out or shard.folder(question.name)
    say_where(as_asked(where, asked), False)


def _check_room(
    question: Question, runs: list[int], staging: output_folder.Staging, jobs: int | None = None
) -> None:
    """Refuse to start captures and packet tables that exceed the disk space."""
    asked = [i for i in runs if question.plan.writes_packets(i)]
    if asked:
        records = {i: recorded(question.plan.resolved(i)) for i in asked}
        counts = disk_space.count(question.plan, asked, jobs)
        needs = (disk_space.recorded(c, records[i]) for i, c in zip(asked, counts, strict=True))
        disk_space.check(sum(needs), "what the scenario records of packets", staging.target)


def say(
    answer: Result | Study,
    as_json: bool,
    said: Answer | None = None,
    *,
    quiet: bool = False,
) -> None:
    """Print a result as tables or JSON, or only the answer."""
    if as_json:
        # Without causes, for which JSON alone would have to keep all frames.
        found = conclude(answer, causes=False)
        document = answer._document() if isinstance(answer, Study) else answer.to_json()
        print_json({**document, "answer": asdict(found)})
        return
    from talkspurt._terminal import tables

    if quiet:
        tables.print_answer(said or conclude(answer))
    elif isinstance(answer, Study):
        tables.print_study(answer, found=said)
    else:
        tables.print_result(answer)


def say_where(place: Path | str, report: bool, *, beside: bool = False) -> None:
    """Print the folder of a result, or its URL, and its report below or ``beside`` it."""
    shown = visible(file_access.url_of(place) or str(place))
    between = "   Report: " if beside else "\nReport:  "
    page = f"{between}{shown}/{output_folder.REPORT}" if report else ""
    print(f"Results: {shown}/{page}")


def as_asked(where: Path, asked: Path) -> Path:
    """A folder that was written, as it was asked for if that is a path from here."""
    return where if asked.is_absolute() else asked
