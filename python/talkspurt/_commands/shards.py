"""Studies in shards: every n-th run into a folder of its own, and such folders merged into a study.

For batch systems that start independent processes, such as an array job of Slurm. Shard i of n has
runs i, i + n, i + 2n, … of the plan, counted from 1, so that slow settings are spread over all
shards.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from talkspurt import api
from talkspurt._commands import running
from talkspurt._storage import file_access, output_folder, reader, writer
from talkspurt._text.escaping import print_json, visible
from talkspurt.errors import BadInputError
from talkspurt.runs.merging import KIND, Shard
from talkspurt.scenarios import provenance
from talkspurt.scenarios.source import Question, read

if TYPE_CHECKING:
    from talkspurt._commands.options import RunOptions


def run(
    question: Question,
    shard: Shard,
    out: Path | None = None,
    *,
    jobs: int | None = None,
    overwrite: bool = False,
    scores: bool = False,
) -> Path:
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
    claim = output_folder.Claim(KIND, f"{question.name} {shard}", question.absolute, overwrite)
    wanted = shard.runs(total)
    folder = out or _default(question, shard)
    parts = f"{key}-{shard.number}-of-{shard.of}"
    with output_folder.Resumable(folder, parts, len(wanted), claim) as unfinished:
        found = running.runs_into(question, wanted, unfinished, jobs, scores=scores)
        file_access.write_text(unfinished.folder / "scenario.toml", question.text)
        manifest = {
            **writer.header(KIND),
            "study": key,
            "engine": provenance.engine(),
            "shard": shard.number,
            "shards": shard.of,
            "total": total,
            "name": question.name,
            "file": claim.file,
            "title": plan.title,
            "description": plan.description,
            "axes": plan.axes,
            "design": plan.design,
            "replications": plan.replications,
            "confidence": plan.confidence,
            "set": dict(question.sets),
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


def _default(question: Question, shard: Shard) -> Path:
    return Path("runs") / f"{question.name}-{shard.number}-of-{shard.of}"


def run_and_say(scenario: Path, text: str, options: RunOptions) -> None:
    """Implements ``talkspurt run --shard``."""
    shard = Shard.parse(text)
    question = read(scenario, set=running.sets_of(options.set), seed=options.seed)
    if options.scores:
        running.check_scores(question)
    where = run(
        question, shard, options.out, jobs=options.jobs, overwrite=options.overwrite,
        scores=options.scores,
    )  # fmt: skip
    if options.json:
        print_json(reader.check(where, (KIND,)))
        return
    total = len(question.plan)
    print(visible(f"Shard {shard} of {question.name}: {len(shard.runs(total))} of {total} runs"))
    asked = options.out or _default(question, shard)
    running.say_where(running.as_asked(where, asked), False)
