"""Runs a matrix of conversations with another implementation, judges them and writes their page.

A `Peer` tells how a conversation is held, what is expected of it, and which tables the page has.
`main` is the command line of all peers:

    run.py               all conversations; writes results.json.gz beside it, and the page
    run.py NAME...       those of these names or beginnings; only prints

A run refuses to start if it would write and the working tree has uncommitted changes (--dirty
overrides this, and the page states it), since the page names the commit. With --keep FOLDER, an
interrupted run of the same commit continues, if no change was uncommitted then and none is now.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import headers
from made import ROOT, build, line, load, made, save, uncommitted
from tables import fill, table

Result = dict[str, Any]
FIRST = (("made", "{date}"), ("talkspurt", "commit `{commit}`{modified}{judged}"))
LAST = (("tshark", "{tshark}"), ("rustc", "{rustc}"))
RUNNING: set[subprocess.Popen[str]] = set()
"""Programs that end with this run."""


@dataclass(frozen=True)
class Case:
    """One conversation of messages, as it is asked of both sides."""

    name: str
    title: str
    opens: str = "ours"
    """The opening side: "ours" or "theirs"."""
    closes: str = "ours"
    bytes: int = 400
    interval_ms: int = 4
    delay_ms: int = 0
    """Of the path, in either direction."""
    loss: float = 0.0
    held: float = 0.0
    hold_ms: int = 25
    seed: int = 1
    version: int = 4
    limit_s: int = 60
    knobs: dict = field(default_factory=dict)
    """Additional configuration of our endpoint."""
    words: str = ""
    """Additional arguments for their program."""

    @property
    def path(self) -> str:
        """Impairments by our side in either direction, as text."""
        parts = [f"{self.delay_ms} ms"] if self.delay_ms else []
        parts += [f"{self.loss:.0%} lost"] if self.loss else []
        parts += [f"{self.held:.0%} {self.hold_ms} ms late"] if self.held else []
        return ", ".join(parts)

    def line_words(self) -> list[str]:
        """Arguments of our program for messages and path."""
        values = {
            "bytes": self.bytes, "interval": f"{self.interval_ms}ms", "delay": f"{self.delay_ms}ms",
            "loss": self.loss, "held": self.held, "hold": f"{self.hold_ms}ms",
        }  # fmt: skip
        words = [part for name, value in values.items() for part in (f"--{name}", str(value))]
        return [*words, "--closes"] if self.closes == "ours" else words


class Wrong(list[str]):
    """Deviations from the expected result."""

    def must(self, holds: object, words: str) -> None:
        """Adds these words unless it holds."""
        if not holds:
            self.append(words)


class Peer:
    """Another implementation; subclasses set the attributes."""

    name: str
    """Of its folder and page."""
    protocol: str
    """The word for it in the arguments of our program, `peer` of crates/live."""
    cases: Sequence[Any]
    needs: tuple[str, ...] = ("tshark",)
    as_root = True
    parallel = False
    """Whether conversations may run at the same time."""
    versions: tuple[tuple[str, str], ...] = ()
    """Rows of the page's first table besides the common ones, with values of ``made``."""

    def __init__(self) -> None:
        self.results = ROOT / "validation" / self.name / "results.json.gz"
        self.page = ROOT / "docs" / "validation" / f"{self.name}.md"
        self.ours: list[str] = []

    def unready(self) -> str | None:
        """What has to be done before a run."""
        if self.as_root and os.geteuid() != 0:
            return "needs root, for the network namespace and the raw socket or TUN device"
        missing = [tool for tool in self.needs if shutil.which(tool) is None]
        return f"install {', '.join(missing)} first" if missing else None

    @contextlib.contextmanager
    def running(self, folder: Path) -> Iterator[dict]:
        """Starts what all conversations share; yields its versions."""
        yield {}

    def converse(self, case: Any, number: int, capture: Path, result: Result) -> None:
        """Holds one conversation; adds what both sides said, and tshark of the capture."""
        raise NotImplementedError

    def judge(self, case: Any, result: Result) -> list[str]:
        """Deviations from the expected result."""
        raise NotImplementedError

    def parts(self, found: dict[str, Result]) -> dict[str, object]:
        """The tables of the page, besides the first."""
        raise NotImplementedError

    def write(self, results: Result, to: Path | None = None) -> None:
        """Writes the page, or its copy `to`, from results alone."""
        told, found = results["made"], results["conversations"]
        again, changed = told.get("judged", told["commit"]), told.get("judged_modified", "")
        words = f"; judged, and this page written, with `{again}`{changed}"
        other = again != told["commit"] or (changed and not told["modified"])
        told = {**told, "judged": words if other else ""}
        rows = [(name, value.format(**told)) for name, value in (*FIRST, *self.versions, *LAST)]
        checked = headers.page(one["tshark"].get("headers", {}) for one in found.values())
        parts = {"made": table(("", ""), rows), "headers": checked, **self.parts(found)}
        fill(self.page, parts, to)


def main(peer: Peer) -> int:
    """Runs the selected conversations; the exit status is 1 if any failed."""
    text = f"{sys.modules[type(peer).__module__].__doc__}\n{__doc__}"
    words = argparse.ArgumentParser(description=text, formatter_class=argparse.RawTextHelpFormatter)
    words.add_argument("names", nargs="*", help="conversations to hold; their beginning is enough")
    words.add_argument("--dirty", action="store_true", help="write with an unclean tree")
    words.add_argument("--keep", type=Path, help="folder in which captures and results stay")
    words.add_argument("--judge", action="store_true", help="judge and write what was held last")
    words.add_argument("--copy", type=Path, help="with --judge: write only a copy of the page here")
    if peer.parallel:
        words.add_argument("--jobs", type=int, default=1, help="conversations at a time")
    asked = words.parse_args()
    if asked.judge:
        return judged(peer, asked.copy)
    if reason := peer.unready():
        sys.exit(f"run: {reason}")
    chosen = selected(peer.cases, asked.names)
    if not asked.names and not asked.dirty and (changes := uncommitted(peer.results, peer.page)):
        sys.exit(f"run: changes that are in no commit (commit them, or --dirty):\n{changes}")
    # Terminating this run must also stop what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("run: ended"))
    results = {"made": made(peer.results, peer.page), "conversations": {}}
    peer.ours = [str(build("peer")), peer.protocol]
    jobs = asked.jobs if peer.parallel else 1
    with tempfile.TemporaryDirectory(prefix=f"{peer.name}-") as folder:
        hold(peer, chosen, results, asked.keep or Path(folder), bool(asked.keep), jobs)
    results["made"] |= {"jobs": jobs, "load": os.getloadavg()[2]}
    return verdict(results) if asked.names else publish(peer, results)


def selected(cases: Sequence[Case], names: list[str]) -> list[tuple[int, Case]]:
    """The conversations of these names, else of these beginnings, with their numbers; or all."""
    known = {case.name for case in cases}
    found = {name: {name} & known or {it for it in known if it.startswith(name)} for name in names}
    if unknown := [name for name in names if not found[name]]:
        sys.exit(f"run: no such conversation: {', '.join(unknown)}")
    wanted = set().union(*found.values()) if names else known
    return [(number, case) for number, case in enumerate(cases) if case.name in wanted]


def judged(peer: Peer, copy: Path | None) -> int:
    """Judges the stored conversations again, and writes their page, or only a copy of it."""
    results = load(peer.results)
    found = results["conversations"]
    if missing := [case.name for case in peer.cases if case.name not in found]:
        sys.exit(f"run: never held, so not to be judged: {', '.join(missing)}")
    for case in peer.cases:
        if found[case.name]["tshark"]:
            found[case.name]["wrong"] = peer.judge(case, found[case.name])
    if copy is None:
        return publish(peer, results)
    peer.write(results, copy)
    return verdict(results)


def publish(peer: Peer, results: Result) -> int:
    """Writes the results and the page; returns the exit status."""
    changed = " with uncommitted changes" if uncommitted(peer.results, peer.page) else ""
    head = line("git", "rev-parse", "HEAD")
    results["made"] |= {"judged": head, "judged_modified": changed}
    save(peer.results, results)
    peer.write(results)
    return verdict(results)


def verdict(results: Result) -> int:
    """Prints the number of successes; the exit status is 1 if any failed."""
    found = results["conversations"].values()
    failed = sum(bool(result["wrong"]) for result in found)
    print(f"{len(found) - failed} of {len(found)} as they should be")
    return 1 if failed else 0


def hold(
    peer: Peer, cases: list[tuple[int, Case]], results: Result, folder: Path, keep: bool, jobs: int
) -> None:
    """Holds the conversations, `jobs` at a time, except those stored by a run of this very code."""
    folder.mkdir(parents=True, exist_ok=True)
    stored = folder / "results.json.gz"
    before = load(stored) if stored.exists() else results
    made = [each["made"] for each in (before, results)]
    if made[0]["commit"] == made[1]["commit"] and not any(each["modified"] for each in made):
        results["conversations"] |= before["conversations"]
    left = [it for it in cases if it[1].name not in results["conversations"]]
    pool = ThreadPoolExecutor(jobs)
    with peer.running(folder) as told:
        results["made"] |= told
        try:
            for (_, case), result in zip(
                left, pool.map(lambda it: attempt(peer, *it, folder, keep), left), strict=True
            ):
                results["conversations"][case.name] = result
                save(stored, results)
        finally:
            # On Ctrl-C and the like: start no more, and stop the running ones.
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(RUNNING):
                process.terminate()
    results["conversations"] = {case.name: results["conversations"][case.name] for _, case in cases}


def attempt(peer: Peer, number: int, case: Case, folder: Path, keep: bool) -> Result:
    """Holds one conversation; an exception also becomes a result."""
    capture = folder / f"{case.name}.pcapng"
    result: Result = {"title": case.title, "ours": [], "theirs": [], "tshark": {}}
    began = time.monotonic()
    try:
        peer.converse(case, number, capture, result)
        result["wrong"] = peer.judge(case, result)
    except Exception as error:
        traceback.print_exc()
        result["wrong"] = [f"{type(error).__name__}: {error}"]
    result["seconds"] = round(time.monotonic() - began, 1)
    if not keep:
        capture.unlink(missing_ok=True)
    print(f"{case.name:30} {'; '.join(result['wrong']) or 'as it should be'}", flush=True)
    return result


class Side(Protocol):
    """The other side of a conversation, in a guest or on this machine."""

    def start(self, command: str) -> None:
        """Starts its program."""

    def wait_for(self, event: str) -> list[dict]:
        """What it says up to this event."""

    def finish(self, patience: float) -> tuple[list[dict], int]:
        """The rest of what it says, and its exit status."""


def converse(case: Case, ours: list[str], theirs: str, side: Side, result: Result) -> None:
    """Starts the listening side, then the opening side; without `theirs`, only ours."""
    if case.opens == "ours" and theirs:
        side.start(theirs)
        result["theirs"] += side.wait_for("listening")
    with started(*ours) as process:
        if case.opens != "ours":
            assert process.stdout
            process.stdout.readline()
            side.start(theirs)
        said = process.communicate(timeout=case.limit_s + 60)[0]
        result["ours"] += [json.loads(row) for row in said.splitlines() if row.startswith("{")]
    if theirs:
        result["theirs"] += side.finish(case.limit_s + 30)[0]


@contextlib.contextmanager
def started(*words: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A program with captured output, which ends with this block or with the run."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, **options)
    RUNNING.add(process)
    try:
        yield process
    finally:
        RUNNING.discard(process)
        process.terminate()
        process.wait()
        if process.stdout:
            process.stdout.close()


def address(host: str, port: int) -> str:
    """An address in our programs' syntax."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def last(said: list[dict], event: str) -> dict:
    """The last event of this name, or an empty one."""
    return next((one for one in reversed(said) if one.get("event") == event), {})


def overview(
    heads: str, cases: Sequence[Any], found: dict[str, Result],
    row: Callable[[Any, Result], list[str]], align: str, others: Sequence[Any] = (),
) -> str:  # fmt: skip
    """The table of these conversations, and why some of them or of the `others` failed."""
    held = [(case, found[case.name]) for case in cases if case.name in found]
    rows = [[*row(case, one), "no" if one["wrong"] else "yes"] for case, one in held]
    held += [(case, found[case.name]) for case in others if case.name in found]
    wrong = [f"* {case.name}: {'; '.join(one['wrong'])}" for case, one in held if one["wrong"]]
    text = table(f"{heads} | passed", rows, align)
    return "\n".join([text, "", *wrong]) if wrong else text
