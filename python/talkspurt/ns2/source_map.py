"""Where a value of the resolved scenario was said: in which line, by ``--set``, or nowhere."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from talkspurt.scenario import Question

TABLE = re.compile(r"\s*\[([^\[\]]+)\]")
KEY = re.compile(r"\s*([A-Za-z0-9_\-.\"']+)\s*=")


class SourceMap:
    """The lines of a scenario's text."""

    def __init__(self, question: Question) -> None:
        self.file = str(question.file or question.name)
        self.said: dict[str, Any] = tomllib.loads(question.text)
        self.sets = [path for path, _ in question.sets]
        self.lines = dict(_keys(question.text))

    def written(self, path: str) -> str:
        """The path as the scenario has it: ``flows.voip`` for each flow of its ``count``."""
        words = path.split(".")
        if len(words) > 1 and words[0] == "flows":
            flows = self.said.get("flows", {})
            group = words[1].rpartition("-")[0]
            if words[1] not in flows and "count" in flows.get(group, {}):
                return ".".join(["flows", group, *words[2:]])
        return path

    def line(self, path: str) -> int | None:
        """The line that says a value, or the innermost table it would stand in."""
        words = self.written(path).split(".")
        for n in range(len(words), 0, -1):
            if (line := self.lines.get(".".join(words[:n]))) is not None:
                return line
        return None

    def place(self, path: str) -> str:
        """The same in words."""
        words = self.written(path).split(".")
        if any(_meets(given.split("."), words) for given in self.sets):
            return "--set"
        return f"line {self.line(path)}" if self._is_said(words) else "default"

    def _is_said(self, words: list[str]) -> bool:
        found: Any = self.said
        for word in words:
            if not isinstance(found, dict) or word not in found:
                return False
            found = found[word]
        return True


def _meets(given: list[str], words: list[str]) -> bool:
    near = zip(given, words, strict=False)
    return len(given) <= len(words) and all(fnmatchcase(word, star) for star, word in near)


def _keys(text: str) -> Iterator[tuple[str, int]]:
    table: list[str] = []
    quoted = False
    for number, line in enumerate(text.splitlines(), start=1):
        inside, quoted = quoted, quoted ^ (line.count('"""') % 2 == 1)
        if inside:
            continue
        if found := TABLE.match(line):
            table = _words(found[1])
            yield ".".join(table), number
        elif found := KEY.match(line):
            yield ".".join([*table, *_words(found[1])]), number


def _words(path: str) -> list[str]:
    return [word.strip().strip("\"'") for word in path.split(".")]
