"""How a study is run: scenarios, rows, notes and figures in ``studies/NAME.runs.toml``.

A note has the ids of its ``rows`` and a ``text`` with facts of the runs in braces.

A scenario is a filled template. ``{word}`` in it stands for a word of the scenario or a part of the
file, which may itself have such words; alone in a text, it becomes the word's value of any type. A
table with the key ``each AXIS`` is included once for every entry of the axis, ``each 3`` with ``n``
from 1 to 3. A ``[[scenario]]`` with ``each`` stands for one of every combination of entries.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

from talkspurt.reproduce.study_file import FILES

Words = Mapping[str, Any]
Axes = Mapping[str, Sequence[Words]]
WORD = re.compile(r"\{([\w.-]+)\}")
EACH = "each "


@dataclass(frozen=True)
class Scenario:
    """A scenario of a study.

    Attributes:
        name: its name.
        profile: ``stated``, ``inferred`` or ``companion``: the origin of its parameters.
        keep: name of the parts of tables to keep.
        table: the scenario.
    """

    name: str
    profile: str
    keep: str
    table: dict[str, Any]


@cache
def runs_file(study: str) -> Mapping[str, Any]:
    """How a study is run: its scenarios, notes and figures."""
    return tomllib.loads((FILES / f"{study}.runs.toml").read_text(encoding="utf-8"))


@cache
def _parts() -> Words:
    """Parts of the scenarios of several studies."""
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
