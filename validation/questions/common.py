"""Shared code of the question pages: studies and their runs, statistics, and pages with assertions.

A page is written only if every statement about results is true: `Page.claim` takes a statement and
its conditions, and raises an error if a condition fails. All numbers in statements and tables are
computed from the runs.
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
from talkspurt.means import bootstrap, student
from talkspurt.scenario import read
from talkspurt.study import Study
from talkspurt.terminal.progress import Bar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from made import ROOT, line, uncommitted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from talkspurt.result import Result

SCENARIOS = ROOT / "scenarios" / "questions"
PAGES = ROOT / "docs" / "questions"
HELD = ("flows", "links")
"""The tables of each run that are kept in memory."""

Row = dict[str, Any]


class UntrueError(AssertionError):
    """A statement of a page is contradicted by the runs."""


# Runs.


@dataclass(frozen=True)
class Asked:
    """A study and its runs.

    Attributes:
        name: file name in `scenarios/questions`, without extension.
        study: all runs, with only the tables in `HELD`.
        rows: measurements of each run: the axes, `replicate`, `seed`, and the columns of `measure`.
    """

    name: str
    study: Study
    rows: pl.DataFrame


def ask(name: str, measure: Callable[[Result], Iterable[Row]] = lambda _: ()) -> Asked:
    """Run a study of `scenarios/questions` on all cores.

    `measure` receives each run while all its tables are available, and returns the rows to keep.
    """
    question = read(SCENARIOS / f"{name}.toml")
    rows: dict[int, list[Row]] = {}

    def keep(i: int, result: Result) -> Result:
        given = {**result.settings, "replicate": result.replicate, "seed": result.seed}
        rows[i] = [{**given, **row} for row in measure(result)]
        held = {table: result.table(table) for table in HELD}
        # Another reference to the run would keep all its tables in memory.
        return replace(result, _read_table=held.get, _read_audio=_silent, _tables={})

    with Bar(question.plan.title) as bar:
        study = api.answer(question, on_progress=bar.on_progress, keep=keep)
    assert isinstance(study, Study)
    measured = [row for i in sorted(rows) for row in rows[i]]
    return Asked(name, study, pl.DataFrame(measured, infer_schema_length=None))


def _silent(_: str) -> None:
    """Return no audio: only tables are kept."""


# Statistics.


@dataclass(frozen=True)
class Interval:
    """The mean of replications or of paired differences, with its confidence interval."""

    mean: float
    low: float
    high: float
    count: int

    @classmethod
    def of(
        cls, numbers: Sequence[float], confidence: float = 0.95, *, kind: str = "student"
    ) -> Interval:
        """Compute Student's interval or, with `kind = "bootstrap"`, the BCa bootstrap interval."""
        mean, half, _ = student(numbers, confidence)
        assert mean is not None and half is not None, "an interval requires at least two numbers"
        low, high = mean - half, mean + half
        if kind == "bootstrap":
            low, high = bootstrap(numbers, confidence)
        return cls(mean, low, high, len(numbers))

    @property
    def differs(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0

    def show(self, digits: int = 2, scale: float = 1.0, *, sign: bool = False) -> str:
        """Format as `0.31 [0.12, 0.50]`, optionally with a sign; `0` if both limits are zero."""
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
    """Compute the paired differences of `value` from a baseline along an axis.

    `rows` contains one row for each label of the axis and replicate: filter the other axes first.
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
    """A page of `docs/questions` and its figures."""

    def __init__(self, name: str, title: str, question: str) -> None:
        """Create a page; `question` is its introductory paragraph."""
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
        """Add a heading of the second level."""
        self._body += ["", f"## {words}"]

    def text(self, words: str) -> None:
        """Add a paragraph on methods or definitions, which does not depend on results."""
        self._body += ["", *_flow(words)]

    def code(self, *lines: str) -> None:
        """Add verbatim lines."""
        self._body += ["", "```text", *lines, "```"]

    def claim(self, words: str, *holds: bool) -> None:
        """Add a paragraph on results, with the conditions that must hold.

        Raises:
            UntrueError: A condition fails or none is given. No page is written then.
        """
        self._hold(words, holds)
        self._body += ["", *_flow(words)]

    def claims_list(self, *claims: tuple[str, bool]) -> None:
        """Add a list of claims, each with its condition."""
        self._body.append("")
        for words, held in claims:
            self._hold(words, (held,))
            self._body += _flow(words, "* ")

    def _hold(self, words: str, holds: Sequence[bool]) -> None:
        untrue = [i for i, held in enumerate(holds, 1) if not held]
        if untrue or not holds:
            which = ", ".join(map(str, untrue)) or "nothing was given"
            raise UntrueError(f"{self.name}: condition fails ({which} of {len(holds)}): {words}")
        self.claims += len(holds)

    def table(
        self, header: Sequence[str], rows: Iterable[Sequence[object]], *, words: bool = False
    ) -> None:
        """Add a table; all columns except the first are right-aligned unless `words` is set."""
        rule = ["---", *["---" if words else "---:"] * (len(header) - 1)]
        cells = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
        lines = ["| " + " | ".join(row) + " |" for row in ([*header], rule, *cells)]
        self._body += ["", *lines]

    def figure(self, name: str, figure: Figure, alt: str) -> None:
        """Add a figure, stored as PNG next to the page."""
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
        print(f"wrote {self.file.relative_to(ROOT)} ({self.claims} conditions hold)")

    def _made(self, asked: Iterable[Asked]) -> list[str]:
        """Format the date, the commit and the studies as a table."""
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
        lines.append(f"| command | `.venv/bin/python validation/questions/{self.name}.py` |")
        return lines


def _flow(words: str, bullet: str = "") -> list[str]:
    """Wrap a paragraph; no-break spaces are kept."""
    return textwrap.wrap(
        re.sub(r"[ \n]+", " ", words).strip(" "),
        100,
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )


def begin(name: str, words: str) -> None:
    """Parse the command line; exit if the working tree has uncommitted changes."""
    ask_for = argparse.ArgumentParser(description=words.split("\n\n")[0])
    ask_for.add_argument("--dirty", action="store_true", help="allow uncommitted changes")
    asked = ask_for.parse_args()
    changes = uncommitted(PAGES / f"{name}*")
    if changes and not asked.dirty:
        sys.exit(f"{name}: uncommitted changes (commit them, or use --dirty):\n{changes}")
