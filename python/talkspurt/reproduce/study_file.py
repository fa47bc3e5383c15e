"""A study's two files, which are read before any run and modified by none.

``studies/NAME.toml`` has printed values, statements, inferences with reasons, and bands;
``studies/NAME.runs.toml`` how the study is run: scenarios, rows, notes and figures.

A note has the ids of its ``rows`` and a ``text`` with facts of the runs in braces.

A scenario is a filled template. ``{word}`` in it stands for a word of the scenario or a part of the
file, which may itself have such words; alone in a text, it becomes the word's value of any type. A
table with the key ``each AXIS`` is included once for every entry of the axis, ``each 3`` with ``n``
from 1 to 3. A ``[[scenario]]`` with ``each`` stands for one of every combination of entries.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any, TypeVar

from talkspurt.reproduce.band import MEAN, SHARE, Band, StudyFileError
from talkspurt.reproduce.rows import Spec

T = TypeVar("T")
Words = Mapping[str, Any]
Axes = Mapping[str, Sequence[Words]]
WORD = re.compile(r"\{([\w.-]+)\}")
EACH = "each "

FILES = files("talkspurt.reproduce") / "studies"
"""Folder of the studies' files, ns-2 scripts and recorded values."""


@dataclass(frozen=True)
class Inferred:
    """A parameter omitted or contradicted in the text, with its replacement and reason."""

    name: str
    value: str
    reason: str


@dataclass(frozen=True)
class StudyFile:
    """The printed values of a study, and what the text states and leaves out.

    Attributes:
        how: how a row's number is computed from its runs, by prefix of its id.
        replications: number of replications, by prefix of scenario names; default 1.
    """

    name: str
    title: str
    citation: str
    asks: str
    stated: Mapping[str, Any]
    inferred: tuple[Inferred, ...]
    rows: tuple[Spec, ...]
    how: Mapping[str, str]
    replications: Mapping[str, int]

    def recipe(self, id: str) -> str:
        """How a row's number is computed."""
        return _by_beginning(self.how, id, "")

    def repeated(self, name: str) -> int:
        """The number of replications of this scenario, under consecutive seeds."""
        return _by_beginning(self.replications, name, 1)

    @property
    def facts(self) -> dict[str, Any]:
        """What the checks compute from: the stated parameters, and the printed values by row."""
        return {**self.stated, "printed": {row.id: row.paper for row in self.rows}}


def _by_beginning(of: Mapping[str, T], name: str, otherwise: T) -> T:
    """The entry with the longest matching prefix of a name."""
    fitting = [start for start in of if name.startswith(start)]
    return of[max(fitting, key=len)] if fitting else otherwise


@cache
def recorded(study: str, peer: str) -> Mapping[str, Any]:
    """What was recorded of ``ns2`` or of ``linux``; empty if nothing was."""
    file = FILES / f"{study}.{peer}.json"
    found: Mapping[str, Any] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    return found


def load(name: str) -> StudyFile:
    """The file of a study of the package."""
    return parse(name, (FILES / f"{name}.toml").read_text(encoding="utf-8"))


def parse(name: str, text: str) -> StudyFile:
    """A study's file from its text."""
    table = tomllib.loads(text)
    tables: Mapping[str, Any] = table.get("tables", {})
    rows = [spec(row) for row in [*_expanded(tables), *table.get("row", [])]]
    rows.sort(key=_place)
    ids = [row.id for row in rows]
    twice = {id for id in ids if ids.count(id) > 1}
    if twice:
        raise StudyFileError(f"{name}: said twice: {', '.join(sorted(twice))}")
    unknown = [row.id for row in rows if row.restates and row.restates not in ids]
    if unknown:
        raise StudyFileError(f"{name}: restates no row: {', '.join(unknown)}")
    return StudyFile(
        name=name,
        **{key: table[key] for key in ("title", "citation", "asks")},
        **{key: table.get(key, {}) for key in ("stated", "how", "replications")},
        inferred=tuple(Inferred(**entry) for entry in table.get("inferred", [])),
        rows=tuple(rows),
    )


def _place(row: Spec) -> list[tuple[int, str]]:
    """Figures and tables in order, Fig 7 before Fig 13, the rows of each as written."""
    parts = re.split(r"(\d+)", row.id.partition("/")[0])
    return [(int(part), "") if part.isdigit() else (0, part) for part in parts]


def _expanded(tables: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of printed tables, a cell each: ``cells`` holds lines of numbers, ``columns`` names.

    ``bands`` sets the band of a line or a cell; all other keys of a table apply to all its rows,
    with ``{line}`` and ``{column}`` replaced by their names. ``lines`` has further keys of a line
    or, as ``line/column``, of a cell.
    """
    rows = []
    for name, table in tables.items():
        shared = {k: v for k, v in table.items() if k not in ("columns", "cells", "bands", "lines")}
        for line, cells in table["cells"].items():
            for column, paper in zip(table["columns"], cells, strict=True):
                if paper == "":
                    continue
                row = {
                    key: value.format(line=line, column=column) if isinstance(value, str) else value
                    for key, value in shared.items()
                }
                row["id"] = f"{name}/{line}/{column}".lower().replace(" ", "-")
                row["paper"] = paper
                for more in (line, f"{line}/{column}"):
                    if more in table.get("bands", {}):
                        row["band"] = table["bands"][more]
                for more in (line, f"{line}/{column}"):
                    row |= table.get("lines", {}).get(more, {})
                rows.append(row)
    return rows


def spec(row: Mapping[str, Any]) -> Spec:
    """A row of the file."""
    wanted = {"id", "quantity", "unit", "paper", "where", "band"}
    unknown = set(row) - set(Spec.__dataclass_fields__)
    for words, names in (("unknown", unknown), ("not said", wanted - set(row))):
        if names:
            raise StudyFileError(f"{row.get('id')}: {words}: {', '.join(sorted(names))}")
    paper = row["paper"]
    lists = {name: tuple(row[name]) for name in ("missing", "checks") if name in row}
    band = Band.of(row["band"])
    if not isinstance(paper, str):
        if isinstance(paper, bool):
            raise StudyFileError(f"{row['id']}: write yes or no as words")
        paper = float(paper)
        if band == Band():
            raise StudyFileError(f"{row['id']}: a number wants a band")
    if row.get("of", MEAN) not in (MEAN, SHARE):
        raise StudyFileError(f"{row['id']}: of is {MEAN} or {SHARE}, not {row['of']}")
    if row.get("of") == SHARE and band == Band():
        raise StudyFileError(f"{row['id']}: words are a share without being told")
    return Spec(**{**row, **lists, "paper": paper, "band": band})


@dataclass(frozen=True)
class Scenario:
    """A scenario of a study, and which parts of tables to keep of its runs."""

    name: str
    profile: str
    """``stated``, ``inferred`` or ``companion``: the origin of its parameters."""
    keep: str
    table: dict[str, Any]


@cache
def runs_file(study: str) -> Mapping[str, Any]:
    """How a study is run: its scenarios, notes and figures."""
    return tomllib.loads((FILES / f"{study}.runs.toml").read_text(encoding="utf-8"))


@cache
def _parts() -> Words:
    return tomllib.loads((FILES / "parts.toml").read_text(encoding="utf-8"))


def scenarios(study: str, computed: Axes | None = None) -> Iterator[Scenario]:
    """All scenarios of a study; ``computed`` are axes that its file does not spell out."""
    templates = runs_file(study)["templates"]
    for entry, words, axes in _entries(study, "scenario", computed or {}):
        table = _filled(templates[entry["template"]], words, axes)
        yield Scenario(entry["name"], entry["profile"], entry.get("keep", ""), table)


def filled(study: str, kind: str) -> Iterator[Words]:
    """The tables ``[[kind]]``: figures are ``figure``, or ``live`` for runs in real time."""
    for entry, _, _ in _entries(study, kind, {}):
        yield entry


def _entries(study: str, kind: str, computed: Axes) -> Iterator[tuple[Words, Words, Axes]]:
    """The tables ``[[kind]]`` of every combination, with the words that fill them and all axes."""
    file = runs_file(study)
    axes: Axes = {**file.get("axes", {}), **computed}
    for entry in file.get(kind, ()):
        own = {key: value for key, value in entry.items() if key not in ("each", "with")}
        for chosen in product(*(axes[axis] for axis in entry.get("each", ()))):
            words = {**_parts(), **file.get("parts", {})}
            for some in (*chosen, entry.get("with", {})):
                words |= some
            yield _filled(own, words, axes), words, axes


def _filled(value: Any, words: Words, axes: Axes) -> Any:
    """A copy with all words replaced and all axes included."""
    if isinstance(value, list):
        return [_filled(item, words, axes) for item in value]
    if isinstance(value, str):
        alone = WORD.fullmatch(value)
        if alone:
            return _filled(words[alone[1]], words, axes)
        return WORD.sub(lambda word: str(_filled(words[word[1]], words, axes)), value)
    if not isinstance(value, dict):
        return value
    table: dict[str, Any] = {}
    for key, inner in value.items():
        name = str(_filled(key, words, axes))
        if not name.startswith(EACH):
            table[name] = _filled(inner, words, axes)
            continue
        axis = name.removeprefix(EACH)
        entries = [{"n": n + 1} for n in range(int(axis))] if axis.isdigit() else axes[axis]
        for entry in entries:
            table |= _filled(inner, {**words, **entry}, axes)
    return table


def notes(study: str, facts: Mapping[str, Any]) -> dict[str, str]:
    """The notes on a study's rows, with these facts; several notes on a row follow each other."""
    found: dict[str, list[str]] = {}
    for note in runs_file(study)["note"]:
        for row in note["rows"]:
            found.setdefault(row, []).append(note["text"].format_map(facts))
    return {row: ". ".join(texts) for row, texts in found.items()}
