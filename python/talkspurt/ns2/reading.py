"""A resolved scenario read key by key, so that nothing it says is passed over in silence.

Whoever writes a part of the script takes the keys it understands. What is left when all are done is
refused by name, and so is every value that ns-2 has no word for: all of them at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from talkspurt import _core
from talkspurt.ns2.source_map import SourceMap
from talkspurt.resolved import Quantity
from talkspurt.scenario import toml_value


@dataclass
class Findings:
    """What was found on the way.

    Attributes:
        source_map: where the scenario says things.
        problems: what ns-2 cannot express.
        notes: what it leaves out or does otherwise, without being refused for it.
    """

    source_map: SourceMap
    problems: list[_core.Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def refuse(self, path: str, why: str, hint: str | None = None) -> None:
        """Name something that ns-2 cannot express, and what to set so that it can."""
        written = self.source_map.written(path)
        problem: _core.Problem = {
            "file": self.source_map.file,
            "line": self.source_map.line(path),
            "path": written,
            "message": f"ns-2 cannot express it: {why}",
            "hint": hint.replace(path, written) if hint else None,
        }
        # Both directions of a link come by the same key, and so do the flows of a count.
        if problem not in self.problems:
            self.problems.append(problem)

    def note(self, words: str) -> None:
        """Say something once."""
        if words not in self.notes:
            self.notes.append(words)

    def raise_if_any(self) -> None:
        """Refuse the whole scenario, with every reason."""
        if self.problems:
            words = "; ".join(f"{p['path']}: {p['message']}" for p in self.problems)
            raise _core.ScenarioError(words, self.problems)


class Part:
    """A table of the resolved scenario, of which keys are taken one by one."""

    def __init__(self, table: dict[str, Any], path: str, findings: Findings) -> None:
        self.path = path
        self.findings = findings
        self._left = dict(table)
        self._parts: list[Part] = []

    def take(self, key: str, default: Any = None) -> Any:
        """A value, which counts as expressed from now on."""
        return self._left.pop(key, default)

    def names(self) -> list[str]:
        """What nobody has taken yet."""
        return list(self._left)

    def peek(self, key: str) -> Any:
        """A value that is still to be taken."""
        return self._left.get(key)

    def part(self, key: str) -> Part:
        """A table in this table."""
        part = Part(self.take(key) or {}, self.at(key), self.findings)
        self._parts.append(part)
        return part

    def ignore(self, *keys: str) -> None:
        """Take keys that make no difference to the packets."""
        for key in keys:
            self.take(key)

    def must(self, key: str, wanted: Any, why: str, *, absent: bool = True) -> None:
        """Take a key that ns-2 knows one value of; refuse every other."""
        value = self.take(key)
        if value == wanted or (value is None and absent):
            return
        hint = None if wanted is None else f"--set {self.at(key)}={toml_value(wanted)}"
        self.findings.refuse(self.at(key), why, hint)

    def refuse(self, key: str, why: str, hint: str | None = None) -> None:
        """Take a key and refuse what it says."""
        self.take(key)
        self.findings.refuse(self.at(key), why, hint)

    def at(self, key: str) -> str:
        """A key's path."""
        return f"{self.path}.{key}" if self.path else key

    def rest(self) -> None:
        """Refuse what nobody took."""
        for part in self._parts:
            part.rest()
        for key, value in self._left.items():
            if isinstance(value, Quantity) or value not in (None, False, 0, {}, []):
                self.findings.refuse(self.at(key), f"nothing there is like {toml_value(value)}")
        self._left.clear()
