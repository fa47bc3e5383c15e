"""Studies in shards: every n-th run into a folder of its own, and such folders merged into a study.

For batch systems that start independent processes, such as an array job of Slurm. Shard i of n has
runs i, i + n, i + 2n, … of the plan, counted from 1, so that slow settings are spread over all
shards.
"""

from __future__ import annotations

import functools
import re
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from talkspurt import api
from talkspurt._commands import running
from talkspurt._storage import file_access, output_folder, reader, writer
from talkspurt._terminal.progress import Bar
from talkspurt._text.escaping import print_json, visible
from talkspurt.errors import BadInputError
from talkspurt.results import validation
from talkspurt.scenarios import provenance
from talkspurt.scenarios.source import Question, read

if TYPE_CHECKING:
    from talkspurt._commands.options import Pictures, RunOptions
    from talkspurt.results.manifest import ShardManifest
    from talkspurt.results.study import Study

KIND = "shard"


@dataclass(frozen=True)
class Shard:
    """Shard ``number`` of ``of``, from 1."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """A shard such as ``2/4``.

        Raises:
            BadInputError: if it is not one.
        """
        found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text.strip())
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise BadInputError(
                f"--shard {visible(text)}: expected I/N with I from 1 to N, such as 2/4"
            )
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def runs(self, total: int) -> range:
        """Its runs of a plan of ``total`` runs."""
        return range(self.number - 1, total, self.of)


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
    claim = output_folder.Claim(
        KIND, f"{question.name} {shard}", running.file_of(question), overwrite
    )
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
    running.say_where(where, options.out or _default(question, shard), False)


def merge(
    folders: Sequence[Path],
    out: Path | None = None,
    *,
    overwrite: bool = False,
    draw: Callable[[Study, Path], None] | None = None,
) -> Path:
    """Merge the shards of a study into a folder like that of ``talkspurt run``; returns the folder.

    Every table has the same bytes. The shards are copied, not changed. ``draw`` writes the report
    to a folder; without it, an earlier one stays.

    Raises:
        BadInputError: if a shard is missing, given twice, damaged, of another study or of another
            version; names all of them.
        talkspurt.errors.StoreError: if the folder has other content or cannot be written.
    """
    shards = _checked(folders)
    first = shards[0]
    places = {i: one.folder / name for one in shards for i, name in one.runs.items()}
    name = str(first.manifest["name"])
    claim = output_folder.Claim("run", name, first.manifest.get("file"), overwrite)
    with output_folder.Staging(out or Path("runs") / name, claim) as staging:
        running.say_news(staging)
        copies = []
        with Bar(first.manifest["title"]) as bar:
            for i, place in sorted(places.items()):
                bar.on_step(f"run {i + 1} of {len(places)}")
                copies.append(staging.folder / "runs" / place.name)
                with file_access.writing(copies[-1]):
                    shutil.copytree(place, copies[-1])
            study = reader.study_of(
                first.folder, first.manifest, [reader.load_result(copy) for copy in copies]
            )
            writer.write_study(study, staging.folder, step=bar.on_step)
        if draw is not None:
            draw(study, staging.folder)
        else:
            staging.keep(output_folder.DRAWN)
        return staging.commit()


def merge_and_say(folders: Sequence[Path], options: Pictures) -> None:
    """Implements ``talkspurt merge``."""
    draw = functools.partial(running.draw, pdf=options.pdf) if options.report else None
    where = merge(folders, options.out, overwrite=options.overwrite, draw=draw)
    running.say(reader.load(where), options.json)
    if not options.json:
        running.say_where(where, options.out or where, options.report)


@dataclass(frozen=True)
class _Found:
    """A folder with a shard.

    Attributes:
        folder: the folder.
        manifest: its manifest.
        runs: the folder of each run by its number.
    """

    folder: Path
    manifest: ShardManifest
    runs: Mapping[int, str]

    @property
    def shard(self) -> Shard:
        return Shard(self.manifest["shard"], self.manifest["shards"])

    def differs(self, other: _Found) -> str | None:
        """Why it is not of the same study as another shard, or None."""
        here, there = self.manifest, other.manifest
        if here["talkspurt"] != there["talkspurt"]:
            versions = f"talkspurt {here['talkspurt']}, and {other.folder} by {there['talkspurt']}"
            return f"was made by {versions}"
        if here["engine"] != there["engine"]:
            return f"was made by another build of talkspurt than {other.folder}"
        if here["study"] != there["study"]:
            return f"is of another study than {other.folder}, or of other files that it names"
        if here["shards"] != there["shards"] or here["total"] != there["total"]:
            return f"is shard {self.shard}, and {other.folder} is shard {other.shard}"
        return None


def _checked(folders: Sequence[Path]) -> list[_Found]:
    """The shards of one study, complete and disjoint, in order."""
    wrong: list[str] = []
    found: list[_Found] = []
    for folder in folders:
        try:
            found.append(_read(folder))
        except OSError as error:
            wrong.append(f"{error.filename or folder}: {error.strerror or error}")
    if not found:
        raise BadInputError(_lines(wrong or ["merge: give the folders of all shards of a study"]))
    # What most of them are of is meant; the others are foreign.
    of = Counter(tuple(str(one.manifest.get(key)) for key in _IDENTITY) for one in found)
    (usual, _), *_ = of.most_common(1)
    first = next(o for o in found if tuple(str(o.manifest.get(key)) for key in _IDENTITY) == usual)
    by_number: dict[int, _Found] = {}
    for one in found:
        number = one.manifest["shard"]
        if reason := one.differs(first):
            wrong.append(f"{one.folder}: {reason}")
        elif number in by_number:
            wrong.append(f"{one.folder}: is shard {one.shard}, as is {by_number[number].folder}")
        else:
            by_number[number] = one
            wrong += _damage(one)
    missing = [str(n) for n in range(1, first.manifest["shards"] + 1) if n not in by_number]
    if missing:
        shards = f"shard{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
        wrong.append(f"of {first.manifest['name']} is missing: {shards} of {first.shard.of}")
    if wrong:
        raise BadInputError(_lines(wrong))
    return [by_number[number] for number in sorted(by_number)]


_IDENTITY = ("talkspurt", "engine", "study", "shards", "total")
"""Keys of a manifest that all shards of a study share."""


def _lines(wrong: Sequence[str]) -> str:
    return "\ntalkspurt: ".join(map(visible, wrong))


def _read(folder: Path) -> _Found:
    """The shard in a folder.

    Raises:
        StoreError: if there is none, or its manifest is damaged.
    """
    manifest: Any = reader.check(folder, (KIND,))
    with file_access.reading(folder / output_folder.MANIFEST):
        validation.check(manifest, validation.SHARD)
        runs = {run["run"]: run["folder"] for run in manifest["runs"]}
        shard = Shard(manifest["shard"], manifest["shards"])
        if not 1 <= shard.number <= shard.of or sorted(runs) != list(shard.runs(manifest["total"])):
            raise ValueError(f"its runs are not those of shard {shard}")
    return _Found(folder, manifest, runs)


def _damage(shard: _Found) -> list[str]:
    """Runs of a shard that cannot be read."""
    digests = {run["run"]: run["digest"] for run in shard.manifest["runs"]}
    wrong = []
    for i, name in shard.runs.items():
        run = reader.reread(shard.folder / name)
        if run is None:
            wrong.append(f"{shard.folder / name}: cannot be read; run shard {shard.shard} again")
        elif run.digest != digests[i]:
            wrong.append(f"{shard.folder / name}: is another run than the shard's manifest says")
    return wrong
