"""Pages of documentation as programs: their fenced blocks, run in order in one folder.

A block of ``sh`` or ``console`` is run by bash, a block of ``python`` in one namespace per page, a
block of ``r`` by Rscript. A block with ``title="NAME.toml"`` (or ``.csv``) is appended to that file. A block with
``title="Output"`` is what the block before it prints; ``Output: Calls`` is the part of it from the
line ``Calls`` to the next empty line, and ``Output, exit status 2`` belongs to a command that fails.
With ``TALKSPURT_UPDATE_PAGES=1`` in the environment, a test writes the printed text into the page.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ("docs", "scenarios", "speech", "tests", "traces", "schema")
"""Folders of the repository that pages name."""
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)?(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
OUTPUT = re.compile(r"Output(?:, exit status (?P<status>\d+))?(?:: (?P<part>.+))?$")
UPDATE = bool(os.environ.get("TALKSPURT_UPDATE_PAGES"))


@dataclass
class Block:
    """A fenced block."""

    language: str
    title: str
    text: str
    span: tuple[int, int]
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            match["language"] or "",
            match["title"] or "",
            match["text"],
            match.span("text"),
            text.count("\n", 0, match.start()) + 2,
        )
        for match in FENCE.finditer(text)
    ]


def commands(block: Block) -> list[str]:
    """The commands of a shell block, each with the lines that continue it."""
    text = re.sub(r"\\\n\s*", " ", block.text)
    lines = (re.sub(r"^\$ ", "", line.strip()) for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def words(command: str) -> list[str]:
    """The words of a command, without its comment."""
    return shlex.split(command, comments=True)


@dataclass
class Run:
    """A page that is run in a folder of its own."""

    page: Path
    place: Path
    prepare: Callable[[str], str | None]  # what is run for a command, None for nothing
    skipped: Collection[str]  # beginnings of blocks that are not run
    namespace: dict = field(default_factory=dict)
    printed: str = ""
    updates: list[tuple[tuple[int, int], str]] = field(default_factory=list)

    def __post_init__(self):
        for name in FOLDERS:
            (self.place / name).symlink_to(ROOT / name)
        tools = self.place / ".bin"
        tools.mkdir()
        program = tools / "talkspurt"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m talkspurt "$@"\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        self.cwd = self.place
        kept = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
        self.env = {name: value for name, value in os.environ.items() if name not in kept}
        self.env |= {"PATH": f"{tools}:{os.environ['PATH']}", "COLUMNS": "80"}

    def all(self):
        """Run every block."""
        found = blocks(self.page)
        for block, after in zip(found, [*found[1:], None], strict=True):
            output = OUTPUT.match(after.title) if after else None
            status = int(output["status"] or 0) if output else 0
            self.one(block, status)
            if output:
                self.compare(block, after, output["part"])
        if self.updates:
            text = self.page.read_text(encoding="utf-8")
            for (begin, end), new in reversed(self.updates):
                text = text[:begin] + new + text[end:]
            self.page.write_text(text, encoding="utf-8")

    def one(self, block, status=0):
        self.printed = ""
        if block.title.endswith((".toml", ".csv")):
            with (self.cwd / block.title).open("a", encoding="utf-8") as file:
                # An empty line between the parts of a scenario.
                file.write(block.text + ("\n" if block.title.endswith(".toml") else ""))
        elif block.language in ("sh", "console"):
            self.shell(block, status)
        elif block.language == "python":
            self.python(block)
        elif block.language == "r" and has_r():
            self.process(["Rscript", "-e", block.text], block, 0)

    def shell(self, block, status):
        first = next(iter(commands(block)), "")
        if any(re.match(begin, first) for begin in self.skipped):
            return
        lines = [line for command in commands(block) if (line := self.prepare(command))]
        script = "\n".join(["set -e", f"trap 'pwd > {self.place}/.cwd' EXIT", *lines])
        self.process(["bash", "-c", script], block, status)
        self.cwd = Path((self.place / ".cwd").read_text().strip())

    def process(self, command, block, status):
        done = subprocess.run(
            command, cwd=self.cwd, env=self.env, capture_output=True, text=True, timeout=120, check=False
        )  # fmt: skip
        where = f"{self.page.relative_to(ROOT)}:{block.line}"
        assert done.returncode == status, f"{where}: {done.stdout}{done.stderr}"
        self.printed = done.stdout + (done.stderr if status else "")

    def python(self, block):
        # The line numbers of a traceback are those of the page.
        code = compile("\n" * (block.line - 1) + block.text, str(self.page), "exec")
        out = io.StringIO()
        with contextlib.chdir(self.cwd), contextlib.redirect_stdout(out):
            exec(code, self.namespace)
        self.printed = out.getvalue()

    def compare(self, block, shown, part):
        printed = [line.rstrip() for line in self.printed.splitlines()]
        if part:
            printed = printed[printed.index(part) :]
            printed = printed[: printed.index("")] if "" in printed else printed
        printed = "\n".join(printed).strip("\n") + "\n"
        if UPDATE and printed != shown.text:
            self.updates.append((shown.span, printed))
            return
        where = f"{self.page.relative_to(ROOT)}:{shown.line}"
        assert shown.text == printed, f"{where}: TALKSPURT_UPDATE_PAGES=1 writes what is printed"


def has_r() -> bool:
    """Whether R and its package arrow are installed."""
    if shutil.which("Rscript") is None:
        return False
    asked = ["Rscript", "-e", "library(arrow)"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0
