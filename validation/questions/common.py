"""Shared code of the question pages: a study and its runs, statistics, and an asserting page.

A page is written only if every sentence on results is true: `Page.claim` takes the sentence and its
conditions, and aborts the script if one fails. Numbers in sentences and tables come only from the
runs.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from talkspurt import api
from talkspurt.figures import png
from talkspurt.scenario import read
from talkspurt.study import Study, bootstrap, student
from talkspurt.terminal.progress import Bar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from made import ROOT, line, uncommitted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from talkspurt.result import Result

SCENARIOS = ROOT / "scenarios" / "questions"
PAGES = ROOT / "docs" / "questions"
HELD = ("flows", "links")
"""Tables of each run that a study keeps in memory."""

Row = dict[str, Any]


class UntrueError(AssertionError):
    """A sentence of a page that the runs contradict."""


# Runs.


@dataclass(frozen=True)
class Asked:
    """A study with its runs.

    Attributes:
        name: file name in `scenarios/questions`, without extension.
        study: all runs, with only the `HELD` tables.
        rows: measurements of each run: the axes, `replicate`, `seed`, and the script's own.
    """

    name: str
    study: Study
    rows: pl.DataFrame


def ask(name: str, measure: Callable[[Result], Iterable[Row]] = lambda _: ()) -> Asked:
    """Run a study of `scenarios/questions`, on all cores.

    `measure` gets each run while all its tables are available, and returns rows to keep.
    """
    question = read(SCENARIOS / f"{name}.toml")
    rows: dict[int, list[Row]] = {}

    def keep(i: int, result: Result) -> Result:
        given = {**result.settings, "replicate": result.replicate, "seed": result.seed}
        rows[i] = [{**given, **row} for row in measure(result)]
        held = {table: result.table(table) for table in HELD}
        # Any other reference to the run would keep all of it in memory.
        return replace(result, _read_table=held.get, _read_audio=_silent, _tables={})

    with Bar(question.plan.title) as bar:
        study = api.answer(question, on_progress=bar.on_progress, keep=keep)
    assert isinstance(study, Study)
    measured = [row for i in sorted(rows) for row in rows[i]]
    return Asked(name, study, pl.DataFrame(measured, infer_schema_length=None))


def _silent(_: str) -> None:
    """Runs whose tables alone are kept have no audio."""


# Statistics.


@dataclass(frozen=True)
class Interval:
    """A mean of replications, or of paired differences, with its confidence interval."""

    mean: float
    low: float
    high: float
    count: int

    @classmethod
    def of(
        cls, numbers: Sequence[float], confidence: float = 0.95, *, kind: str = "student"
    ) -> Interval:
        """Student's interval, or the bootstrap's (`kind = "bootstrap"`, BCa)."""
        mean, half, _ = student(numbers, confidence)
        assert mean is not None and half is not None, "an interval wants two numbers"
        low, high = mean - half, mean + half
        if kind == "bootstrap":
            low, high = bootstrap(numbers, confidence)
        return cls(mean, low, high, len(numbers))

    @property
    def differs(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0

    def show(self, digits: int = 2, scale: float = 1.0, *, sign: bool = False) -> str:
        """Format as `0.31 [0.12, 0.50]`, with a sign for a difference; 0 if all are zero."""
        if self.low == self.high == 0:
            return "0"
        form = f"{'+' if sign else ''}.{digits}f"
        mean, low, high = (
            format(number * scale, form).replace("-", "−")
            for number in (self.mean, self.low, self.high)
        )
        return f"{mean} [{low}, {high}]"


def paired(
    rows: pl.DataFrame,
    axis: str,
    baseline: str,
    value: str,
    confidence: float = 0.95,
    *,
    kind: str = "student",
) -> dict[str, Interval]:
    """Differences of `value` from a baseline along an axis, replication by replication.

    `rows` has one row for each label of the axis and replicate: filter the other axes before.
    """
    base = _by_replicate(rows.filter(pl.col(axis) == baseline), value)
    found = {}
    for label in rows[axis].unique(maintain_order=True):
        if label != baseline:
            other = _by_replicate(rows.filter(pl.col(axis) == label), value)
            pairs = [other[k] - base[k] for k in base if k in other]
            found[label] = Interval.of(pairs, confidence, kind=kind)
    return found


def _by_replicate(rows: pl.DataFrame, value: str) -> dict[int, float]:
    there = rows.filter(pl.col(value).is_not_null())
    assert there["replicate"].is_unique().all(), "another axis varies too"
    return dict(there.select("replicate", pl.col(value).cast(pl.Float64)).iter_rows())


# Pages.


class Page:
    """A page of `docs/questions`, with its figures next to it."""

    def __init__(self, name: str, title: str, question: str) -> None:
        """`question` is the page's question, in a sentence or two."""
        self.name = name
        self.file = PAGES / f"{name}.md"
        self._head = [f"# {title}", "", self._written(), "", *_flow(question)]
        self._body: list[str] = []
        self._figures: dict[Path, bytes] = {}
        self.claims = 0

    def _written(self) -> str:
        return (
            f"<!-- Written by validation/questions/{self.name}.py; changes made here are lost. -->"
        )

    def heading(self, words: str) -> None:
        """A heading of the second level."""
        self._body += ["", f"## {words}"]

    def text(self, words: str) -> None:
        """Method and definitions: nothing that the runs could contradict."""
        self._body += ["", *_flow(words)]

    def code(self, *lines: str) -> None:
        """Verbatim lines."""
        self._body += ["", "```text", *lines, "```"]

    def claim(self, words: str, *holds: bool) -> None:
        """A paragraph on results, with the conditions that must hold.

        Raises:
            UntrueError: if a condition fails; then no page is written.
        """
        self._hold(words, holds)
        self._body += ["", *_flow(words)]

    def claims_list(self, *claims: tuple[str, bool]) -> None:
        """Claims as a list, each with its condition."""
        self._body.append("")
        for words, held in claims:
            self._hold(words, (held,))
            self._body += _flow(words, "* ")

    def _hold(self, words: str, holds: Sequence[bool]) -> None:
        untrue = [i for i, held in enumerate(holds, 1) if not held]
        if untrue or not holds:
            which = ", ".join(map(str, untrue)) or "nothing was given"
            raise UntrueError(f"{self.name}: not so ({which} of {len(holds)}): {words}")
        self.claims += len(holds)

    def table(
        self, header: Sequence[str], rows: Iterable[Sequence[object]], *, words: bool = False
    ) -> None:
        """A table; all columns except the first are right-aligned, unless they contain text."""
        rule = ["---", *["---" if words else "---:"] * (len(header) - 1)]
        cells = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
        lines = ["| " + " | ".join(row) + " |" for row in ([*header], rule, *cells)]
        self._body += ["", *lines]

    def figure(self, name: str, figure: Figure, alt: str) -> None:
        """A figure, as PNG next to the page."""
        file = PAGES / f"{self.name}-{name}.png"
        self._figures[file] = png(figure)
        self._body += ["", f"![{alt}]({file.name})"]

    def write(self, *asked: Asked) -> None:
        """Write the page and its figures."""
        PAGES.mkdir(parents=True, exist_ok=True)
        for file, data in self._figures.items():
            file.write_bytes(data)
        made = self._made(asked)
        self.file.write_text("\n".join([*self._head, "", *made, *self._body, ""]), encoding="utf-8")
        print(f"wrote {self.file.relative_to(ROOT)} ({self.claims} things held)")

    def _made(self, asked: Iterable[Asked]) -> list[str]:
        """Versions and date."""
        modified = (
            " **and changes that are in no commit** (`--dirty`)"
            if uncommitted(PAGES / f"{self.name}*")
            else ""
        )
        lines = [
            "| | |",
            "|---|---|",
            f"| made | {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC |",
            f"| talkspurt | commit `{line('git', 'rev-parse', 'HEAD')}`{modified} |",
        ]
        for one in asked:
            runs = one.study.runs
            seeds = one.study.replications
            digests = "".join(run.digest for run in runs)
            digest = hashlib.sha256(digests.encode()).hexdigest()[:16]
            lines.append(
                f"| study | `scenarios/questions/{one.name}.toml`: {len(runs) // seeds} settings, "
                f"{seeds} seeds each; SHA-256 of the runs' digests in order {digest}… |"
            )
        lines.append(f"| again | `.venv/bin/python validation/questions/{self.name}.py` |")
        return lines


def _flow(words: str, bullet: str = "") -> list[str]:
    """A paragraph rewrapped to lines; no-break spaces stay."""
    return textwrap.wrap(
        re.sub(r"[ \n]+", " ", words).strip(" "),
        100,
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )


def begin(name: str, words: str) -> None:
    """Read the command line; refuse to start if the page could not name a commit."""
    ask_for = argparse.ArgumentParser(description=words.split("\n\n")[0])
    ask_for.add_argument("--dirty", action="store_true", help="write with an unclean tree")
    asked = ask_for.parse_args()
    changes = uncommitted(PAGES / f"{name}*")
    if changes and not asked.dirty:
        sys.exit(f"{name}: changes that are in no commit (commit them, or --dirty):\n{changes}")
