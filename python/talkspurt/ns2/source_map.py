"""The origin of resolved values: a line, ``--set``, or the default."""

from __future__ import annotations

from fnmatch import fnmatchcase

from talkspurt import _core
from talkspurt.scenarios.source import Question


class SourceMap:
    """The lines of a scenario's text."""

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
