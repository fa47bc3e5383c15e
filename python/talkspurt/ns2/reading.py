"""Reads a resolved scenario key by key, so that no setting is silently ignored.

Each part of the script writer takes the keys it supports. Keys left at the end are reported by
name, and so are all values that ns-2 does not support, all at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from talkspurt import _core
from talkspurt.scenarios.resolved import Quantity
from talkspurt.scenarios.source import Question, toml_value


class SourceMap:
    """The origin of resolved values: a line of the scenario's text, ``--set``, or the default."""

    def __init__(self, question: Question) -> None:
        self.file = str(question.file or question.name)
        self.sets = [path for path, _ in question.sets]
        self.lines = dict(_core.lines(question.text))

    def written(self, path: str) -> str:
        """The path as written: ``flows.voip`` for each flow of its ``count``."""
        words = path.split(".")
        if len(words) > 1 and words[0] == "flows":
            group = words[1].rpartition("-")[0]
            if f"flows.{words[1]}" not in self.lines and f"flows.{group}.count" in self.lines:
                return ".".join(["flows", group, *words[2:]])
        return path

    def line(self, path: str) -> int | None:
        """The line that sets a value, or the innermost table that contains it."""
        words = self.written(path).split(".")
        for n in range(len(words), 0, -1):
            if (line := self.lines.get(".".join(words[:n]))) is not None:
                return line
        return None

    def place(self, path: str) -> str:
        """The origin as text."""
        words = self.written(path).split(".")
        if any(_meets(given.split("."), words) for given in self.sets):
            return "--set"
        return f"line {self.line(path)}" if ".".join(words) in self.lines else "default"


def _meets(given: list[str], words: list[str]) -> bool:
    near = zip(given, words, strict=False)
    return len(given) <= len(words) and all(fnmatchcase(word, star) for star, word in near)


@dataclass
class Findings:
    """Features that ns-2 does not support, and differences that are no errors."""

    source_map: SourceMap
    problems: list[_core.Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def refuse(self, path: str, why: str, instead: str | None = None) -> None:
        """Report a feature unsupported by ns-2, with a value to set in its place."""
        written = self.source_map.written(path)
        change = f"{written}={instead}"
        hint = f"--set '{change}'" if " " in change else f"--set {change}"
        problem: _core.Problem = {
            "file": self.source_map.file,
            "line": self.source_map.line(path),
            "path": written,
            "message": f"ns-2 cannot express it: {why}",
            "hint": None if instead is None else hint,
        }
        # Both directions of a link share a key, and so do the flows of a count.
        if problem not in self.problems:
            self.problems.append(problem)

    def note(self, words: str) -> None:
        """Add a note, once."""
        if words not in self.notes:
            self.notes.append(words)

    def raise_if_any(self) -> None:
        """Raise ScenarioError with all problems."""
        if self.problems:
            words = "; ".join(f"{p['path']}: {p['message']}" for p in self.problems)
            raise _core.ScenarioError(words, self.problems)


class Part:
    """A table of the resolved scenario, whose keys are taken one by one."""

    def __init__(self, table: dict[str, Any], path: str, findings: Findings) -> None:
        self.path = path
        self.findings = findings
        self._left = dict(table)
        self._parts: list[Part] = []

    def take(self, key: str, default: Any = None) -> Any:
        """Take a value, which then counts as supported."""
        return self._left.pop(key, default)

    def names(self) -> list[str]:
        """The keys not yet taken."""
        return list(self._left)

    def peek(self, key: str) -> Any:
        """A value that has not been taken."""
        return self._left.get(key)

    def part(self, key: str) -> Part:
        """A nested table."""
        part = Part(self.take(key) or {}, self.at(key), self.findings)
        self._parts.append(part)
        return part

    def ignore(self, *keys: str) -> None:
        """Take keys that do not affect packets."""
        for key in keys:
            self.take(key)

    def must(self, key: str, wanted: Any, why: str, *, absent: bool = True) -> None:
        """Take a key for which ns-2 supports a single value; report any other."""
        value = self.take(key)
        if value != wanted and not (value is None and absent):
            self.refuse(key, why, None if wanted is None else toml_value(wanted))

    def refuse(self, key: str, why: str, instead: str | None = None) -> None:
        """Take a key and report its value as unsupported, with one to set in its place."""
        self.take(key)
        self.findings.refuse(self.at(key), why, instead)

    def at(self, key: str) -> str:
        """A key's path."""
        return f"{self.path}.{key}" if self.path else key

    def rest(self) -> None:
        """Report the keys not taken."""
        for part in self._parts:
            part.rest()
        for key, value in self._left.items():
            if isinstance(value, Quantity) or value not in (None, False, 0, {}, []):
                self.findings.refuse(self.at(key), f"nothing there is like {toml_value(value)}")
        self._left.clear()
