"""Scenario input: converts all accepted sources for the Rust parser.

A file, a text or a dict becomes TOML text and a :class:`talkspurt._core.Plan`. Checks are left to
the Rust side, which reports all errors at once, with line and path.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from talkspurt import _core
from talkspurt._storage import file_access
from talkspurt._text import problems
from talkspurt._text.escaping import whole
from talkspurt.errors import FileWarning
from talkspurt.scenarios.resolved import Quantity

Source: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"
"""Accepted scenario sources: a file, its text, or a dict of the same structure."""

Sets: TypeAlias = "Mapping[str, Any] | Iterable[str | tuple[str, Any]]"
"""Overrides of scenario fields: ``{"links.sky.delay": "20ms"}`` or ``["a.b=3"]``."""


MAX_BYTES = 16 << 20
"""Maximum length of a scenario file; anything longer is not a scenario."""


@dataclass(frozen=True)
class Question:
    """A valid scenario.

    Attributes:
        name: name of results: the file's name without extension.
        file: the file it was read from, if any.
        text: TOML as given.
        sets: overrides, as pairs of path and TOML value.
        plan: its runs.
    """

    name: str
    file: Path | None
    text: str
    sets: tuple[tuple[str, str], ...]
    plan: _core.Plan

    @property
    def absolute(self) -> str | None:
        """The absolute path of the file, as manifests hold it."""
        return whole(str(self.file.absolute())) if self.file else None

    @property
    def facts(self) -> dict[str, Any]:
        """What the manifest of a study holds of it."""
        plan = self.plan
        return {
            "name": self.name, "title": plan.title, "description": plan.description,
            "axes": plan.axes, "design": plan.design, "replications": plan.replications,
            "confidence": plan.confidence, "set": dict(self.sets),
        }  # fmt: skip


def read(
    scenario: Source,
    *,
    set: Sets | None = None,
    seed: int | None = None,
    series: bool = True,
    hosts: bool = False,
) -> Question:
    """Read a scenario.

    Args:
        scenario: path of a TOML file, TOML text (anything with a line break), or a dict.
        set: overrides of scenario fields, by dotted path.
        seed: replaces the scenario's seed.
        series: whether runs record time series, whose bins must fit memory.
        hosts: whether programs run at nodes, so that the scenario needs no flow of its own.

    Raises:
        talkspurt.ScenarioError: with all errors.
        OSError: if the file cannot be read.

    Warns:
        FileWarning: if a file that the scenario names has columns that are not read, for example.
    """
    name, file, text, base = _text(scenario)
    name, text = whole(name), whole(text)
    sets = tuple((whole(path), whole(value)) for path, value in pairs(set))
    if seed is not None and not 0 <= seed < 1 << 63:
        message = f"{seed} is no seed: expected a whole number from 0 to {(1 << 63) - 1}"
        raise _error("seed", message, "--seed", path="seed")
    # Rust reports the file's name as it was given, so that editors find the line.
    called = whole(str(file)) if file else name
    try:
        plan = _core.load(
            text, called, str(base), list(sets), seed, unit_cube, series=series, hosts=hosts
        )
    except _core.ScenarioError as error:
        raise problems.answered(error) from None
    for note in plan.notes:
        warnings.warn(f"{called}: {note}", FileWarning, stacklevel=2)
    return Question(name, file, text, sets, plan)


def _error(
    place: str, message: str, file: str, *, line: int | None = None, path: str = "",
    hint: str | None = None,
) -> _core.ScenarioError:  # fmt: skip
    problem: _core.Problem = {
        "file": file, "line": line, "path": path, "message": message, "hint": hint,
    }  # fmt: skip
    return _core.ScenarioError(f"{place}: {message}", [problem])


def pairs(sets: Sets | None) -> list[tuple[str, str]]:
    """Overrides as pairs of path and TOML value."""
    if sets is None:
        return []
    if isinstance(sets, str):
        raise TypeError('set takes a dict or a list, such as {"seed": 2} or ["seed=2"]')
    items = sets.items() if isinstance(sets, Mapping) else (_split(item) for item in sets)
    return [(path, value if isinstance(value, str) else toml_value(value)) for path, value in items]


def _split(item: str | tuple[str, Any]) -> tuple[str, Any]:
    if not isinstance(item, str):
        return item
    path, equals, value = item.partition("=")
    if not equals or not path.strip():
        raise ValueError(f"{item!r} is not PATH=VALUE, such as links.sky.delay=20ms")
    return path.strip(), value.strip()


def toml_value(value: object) -> str:
    """A value as one line of TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Quantity):
        return _text_value(value.text)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        inner = (f"{_text_value(str(k))} = {toml_value(v)}" for k, v in value.items())
        return f"{{{', '.join(inner)}}}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(v) for v in value) + "]"
    return _text_value(str(value))


def _text_value(text: str) -> str:
    # JSON's escapes are all TOML basic-string escapes except \/, which json never writes; DEL is
    # the only control character that json does not escape and TOML forbids.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def _text(scenario: Source) -> tuple[str, Path | None, str, Path]:
    """Name, file, TOML text and the base folder of relative paths."""
    if isinstance(scenario, Mapping):
        import tomli_w

        return "scenario", None, tomli_w.dumps(dict(scenario)), Path.cwd()
    if isinstance(scenario, str) and "\n" in scenario:
        return "scenario", None, scenario, Path.cwd()
    file = Path(scenario)
    return file.stem, file, _read_file(file), file.absolute().parent


def _read_file(file: Path) -> str:
    try:
        data = file_access.read_bytes(file, MAX_BYTES)
        # Editors may write a byte order mark, or Windows line ends.
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        said = f"there is no such scenario file{_nearest(file)}"
        raise FileNotFoundError(2, said, str(file)) from None
    except IsADirectoryError:
        said = f"is a folder, not a scenario file{_inside(file)}"
        raise IsADirectoryError(21, said, str(file)) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        words, hint = "not UTF-8 text", "a scenario is TOML"
        raise _error(f"{file}:{line}", words, str(file), line=line, hint=hint) from None


def _nearest(file: Path) -> str:
    try:
        names = [f"{entry.name}" for entry in file.parent.iterdir() if entry.suffix == ".toml"]
    except OSError:
        return f"; nor is there a folder {file.parent}"
    import difflib

    near = difflib.get_close_matches(file.name, names, n=1, cutoff=0.5)
    return f"; did you mean {file.parent / near[0]}?" if near else ""


def _inside(folder: Path) -> str:
    found = sorted(folder.glob("*.toml"))
    return f"; did you mean {found[0]}?" if len(found) == 1 else ""


def unit_cube(kind: str, samples: int, dimensions: int, seed: int) -> list[list[float]]:
    """Points with coordinates in 0 to 1: ``latin_hypercube``, or a scrambled ``sobol`` sequence.

    Equal arguments give equal points: numpy's PCG64 and scipy's integer scrambling do not depend on
    the machine.
    """
    import numpy as np
    from scipy.stats import qmc

    rng = np.random.default_rng(seed)
    if kind == "sobol":
        # 64 bits: with the default of 30, points would repeat digits of the range.
        cube = qmc.Sobol(dimensions, scramble=True, bits=64, rng=rng).random(samples)
    else:
        cube = qmc.LatinHypercube(dimensions, rng=rng).random(samples)
    points: list[list[float]] = cube.tolist()
    return points
