"""Merges shards of a study, each with every n-th run, into a study.

They are for batch systems that start independent processes, such as an array job of Slurm. Shard i
of n has runs i, i + n, i + 2n, … of the plan, counted from 1, so that slow settings are spread over
all shards.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from talkspurt._storage import file_access, output_folder, reader, writer
from talkspurt._terminal.progress import Bar, say_news
from talkspurt._text.escaping import visible
from talkspurt.errors import BadInputError
from talkspurt.results import validation
from talkspurt.results.manifest import ShardManifest

KIND = "shard"


@dataclass(frozen=True)
class Shard:
    """Shard ``number`` of ``of``, from 1."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """A shard such as ``2/4``."""
        found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text.strip())
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise BadInputError(
                f"--shard {visible(text)}: expected I/N with I from 1 to N, such as 2/4"
            )
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def folder(self, name: str) -> Path:
        """Where it goes by default, of the study of this name."""
        return Path("runs") / f"{name}-{self.number}-of-{self.of}"

    def runs(self, total: int) -> range:
        """Its runs of a plan of ``total`` runs."""
        return range(self.number - 1, total, self.of)


def merge(
    shards: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str] | None = None,
    *,
    report: bool = True,
    pdf: bool = False,
    overwrite: bool = False,
    progress: bool = False,
) -> Path:
    """Merge the shards of a study into a folder like that of ``talkspurt run``; returns the folder.

    Every table has the same bytes. The shards are copied, not changed.

    Args:
        shards: the folders of all shards, each written by ``talkspurt run STUDY --shard I/N``.
        out: output folder; default: runs/NAME.
        report: whether to draw the figures and the report; without, earlier ones stay.
        pdf: also write every figure as a file, as SVG, PNG and PDF.
        overwrite: replace a result of another scenario, or an export.
        progress: whether to show progress on standard error.

    Raises:
        talkspurt.errors.BadInputError: if a shard is missing, given twice, damaged, of another
            study or of another version; names all of them.
        talkspurt.errors.StoreError: if the folder has other content or cannot be written.
    """
    shards = [shards] if isinstance(shards, str | os.PathLike) else shards
    found = _checked([Path(folder) for folder in shards])
    first = found[0]
    places = {i: one.folder / name for one in found for i, name in one.runs.items()}
    name = str(first.manifest["name"])
    claim = output_folder.Claim("run", name, first.manifest.get("file"), overwrite)
    target = Path(out) if out is not None else Path("runs") / name
    with output_folder.Staging(target, claim) as staging:
        if progress:
            say_news(staging.news)
        copies = []
        with Bar(first.manifest["title"], shown=progress) as bar:
            for i, place in sorted(places.items()):
                bar.on_step(f"run {i + 1} of {len(places)}")
                copies.append(staging.folder / "runs" / place.name)
                with file_access.writing(copies[-1]):
                    shutil.copytree(place, copies[-1])
            study = reader.study_of(
                first.folder, first.manifest, [reader.load_result(copy) for copy in copies]
            )
            writer.write_study(study, staging.folder, step=bar.on_step)
        if report:
            with Bar(study.title, shown=progress) as bar:
                study._draw(staging.folder, bar.on_step, pdf=pdf)
        else:
            staging.keep(output_folder.DRAWN)
        return staging.commit()


@dataclass(frozen=True)
class _Found:
    """A folder with a shard, and the folder of each of its runs by number."""

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
        wrong = wrong or ["merge: give the folders of all shards of a study"]
        raise BadInputError("\n".join(map(visible, wrong)))
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
        raise BadInputError("\n".join(map(visible, wrong)))
    return [by_number[number] for number in sorted(by_number)]


_IDENTITY = ("talkspurt", "engine", "study", "shards", "total")
"""Keys of a manifest that all shards of a study share."""


def _read(folder: Path) -> _Found:
    manifest: Any = reader.check(folder, (KIND,))
    with file_access.reading(folder / output_folder.MANIFEST):
        validation.check(manifest, validation.SHARD)
        runs = {run["run"]: run["folder"] for run in manifest["runs"]}
        shard = Shard(manifest["shard"], manifest["shards"])
        if not 1 <= shard.number <= shard.of or sorted(runs) != list(shard.runs(manifest["total"])):
            raise ValueError(f"its runs are not those of shard {shard}")
    return _Found(folder, manifest, runs)


def _damage(shard: _Found) -> list[str]:
    digests = {run["run"]: run["digest"] for run in shard.manifest["runs"]}
    wrong = []
    for i, name in shard.runs.items():
        run = reader.reread(shard.folder / name)
        if run is None:
            wrong.append(f"{shard.folder / name}: cannot be read; run shard {shard.shard} again")
        elif run.digest != digests[i]:
            wrong.append(f"{shard.folder / name}: is another run than the shard's manifest says")
    return wrong
