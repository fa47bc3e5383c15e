"""The client: distributes runs over workers in batches of about a second and keeps what returns.

A worker gets runs only after its proof equals the client's. The runs of a worker that is lost go to
others; those of its batch are then sent one at a time, so that a run that ends its worker is found.
A worker whose machine fails (a full disk) gets no more runs. A run that fails on two workers, or on
the only one, fails as on one machine.
"""

from __future__ import annotations

import contextlib
import sys
import time
import tomllib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from talkspurt import _core
from talkspurt._cluster import proof, work
from talkspurt._cluster.workers import Future, Workers, workers_of
from talkspurt._storage import file_access, output_folder, reader
from talkspurt._text.escaping import visible
from talkspurt.errors import BadInputError
from talkspurt.results.result import Result
from talkspurt.results.run_data import Scratch
from talkspurt.runs.engine import STEP_S, Progress
from talkspurt.scenarios import provenance
from talkspurt.scenarios.source import Question

BATCH_S = 1.0
"""Duration of a batch: far more than sending it takes."""
MAX_RUNS = 500
"""Runs of a batch."""
LOOK_S = 0.5
"""Time between two looks at which workers are there."""
PATIENCE_S = 60.0
"""Time to wait for a worker if there is none."""
DEATHS = 3
"""Workers that a run may end before it counts as failed."""


@dataclass
class _Batch:
    future: Future
    worker: str
    runs: list[int]
    began: float
    patience_s: float = 1.0


@dataclass
class _Client:
    """The state of a distribution; see the head of this file."""

    question: Question
    workers: Workers
    waiting: deque[int]
    arrived: Callable[[int, Mapping[str, bytes], work.Rows | None], None]
    study: dict[str, Any]
    proof: dict[str, str]
    codecs: list[dict[str, Any]]
    there: Mapping[str, int] = field(default_factory=dict)
    proving: dict[str, Future] = field(default_factory=dict)
    proven: set[str] = field(default_factory=set)
    rejected: dict[str, str] = field(default_factory=dict)
    batches: list[_Batch] = field(default_factory=list)
    deaths: Counter[int] = field(default_factory=Counter)
    failed: dict[int, tuple[str, str]] = field(default_factory=dict)
    lacking: dict[str, dict[str, bytes]] = field(default_factory=dict)
    scheduled: bool = True
    run_s: float | None = None
    alone_since: float | None = None
    finished: int = 0

    def look(self) -> None:
        """See which workers are there; prove new ones, and take the runs of lost ones back."""
        try:
            self.there = self.workers.names()
            if not self.scheduled:  # workers need time to come back, too
                self.scheduled, self.alone_since = True, None
            known = {*self.proven, *self.proving, *self.rejected}
            for name in self.there:
                if name not in known:
                    self.proving[name] = self.workers.submit(name, proof.of_this, self.codecs)
        except OSError:
            self.there, self.scheduled = {}, False
        for name in [name for name in self.proving if name not in self.there]:
            del self.proving[name]
        self.proven &= set(self.there)
        for batch in [b for b in self.batches if b.worker not in self.there]:
            with contextlib.suppress(Exception):  # of a client without its scheduler
                batch.future.cancel()
            self.lost(batch, blamed=self.scheduled)
        for name, future in list(self.proving.items()):
            if future.done():
                del self.proving[name]
                self.judge(name, future)
        self.check_alone()

    def judge(self, name: str, future: Future) -> None:
        """Accept or reject a worker by its proof."""
        try:
            reason = proof.difference(self.proof, future.result(timeout=PATIENCE_S))
        except CancelledError:  # the scheduler was lost: the next look asks again
            return
        except Exception as error:
            # It may lack the package, or have one without this module.
            reason = f"cannot prove what it computes: {str(error).partition(chr(10))[0]}"
        if reason is None:
            self.proven.add(name)
        else:
            self.reject(name, reason)

    def reject(self, name: str, reason: str) -> None:
        if name in self.rejected:
            return
        self.rejected[name] = reason
        self.proven.discard(name)
        print(visible(f"talkspurt: worker {name} is rejected: {reason}"), file=sys.stderr)

    def check_alone(self) -> None:
        """Raise an error if no worker is left, at once if all are rejected."""
        if self.proven or self.proving:
            self.alone_since = None
            return
        now = time.monotonic()
        self.alone_since = self.alone_since or now
        if self.there and all(name in self.rejected for name in self.there):
            reasons = "; ".join(f"{name}: {why}" for name, why in self.rejected.items())
            raise BadInputError(visible(f"--cluster: every worker is rejected: {reasons}"))
        if now - self.alone_since > PATIENCE_S:
            lacking = "no worker of the cluster" if self.scheduled else "the cluster's scheduler"
            missed = "was there" if self.scheduled else "could not be reached"
            raise _core.RunError(f"{lacking} {missed} for {PATIENCE_S:g} s")

    def lost(self, batch: _Batch, *, blamed: bool = True) -> None:
        """Take back the runs of a batch whose worker is gone, perhaps because of one of them."""
        self.batches.remove(batch)
        for i in batch.runs if blamed else ():
            if len(batch.runs) == 1:
                self.deaths[i] += 1
            else:
                self.deaths[i] = max(self.deaths[i], 1)
            if self.deaths[i] > DEATHS:
                raise _core.RunError(f"run {i + 1} ended {DEATHS} workers")
        self.waiting.extendleft(reversed(batch.runs))

    def fill(self) -> None:
        """Send batches to workers that have room: one waits at each for the one before."""
        at = Counter(batch.worker for batch in self.batches)
        for name in sorted(self.proven):
            while self.waiting and at[name] < self.there.get(name, 0) + 1:
                runs = self.next_runs(name)
                if not runs:
                    break
                study = {**self.study, "contents": self.lacking.get(name, {})}
                try:
                    future = self.workers.submit(name, work.batch, study, [*map(self.task, runs)])
                except OSError:  # `look` finds out more
                    self.waiting.extendleft(reversed(runs))
                    return
                self.batches.append(_Batch(future, name, runs, time.monotonic()))
                at[name] += 1

    def next_runs(self, name: str) -> list[int]:
        """The runs of the next batch of a worker, about a second of work."""
        slots = sum(self.there.get(one, 0) for one in self.proven)
        fair = len(self.waiting) // (2 * slots) + 1
        count = 1 if not self.run_s else int(BATCH_S / self.run_s)
        count = max(1, min(count, fair, MAX_RUNS))
        runs: list[int] = []
        for i in list(self.waiting):
            if len(runs) == count:
                break
            if self.failed.get(i, ("", ""))[0] == name and len(self.proven) > 1:
                continue  # another worker tries it
            if self.deaths[i] and runs:
                break
            runs.append(i)
            if self.deaths[i]:
                break
        for i in runs:
            self.waiting.remove(i)
        return runs

    def task(self, i: int) -> dict[str, Any]:
        plan = self.question.plan
        return {
            "run": i,
            "scenario": plan.resolved(i),
            "settings": plan.settings(i),
            "replicate": plan.replicate(i),
        }

    def gather(self) -> bool:
        """Keep what has returned; whether anything has."""
        ended = [batch for batch in self.batches if batch.future.done()]
        for batch in ended:
            try:
                reply = batch.future.result(timeout=batch.patience_s)
            except TimeoutError:
                # Its worker was lost with the result, which `look` finds; or there is much of it.
                batch.patience_s *= 2
                continue
            except Exception as error:  # the worker is gone, or the scheduler
                blamed = self.scheduled and not isinstance(error, CancelledError)
                self.lost(batch, blamed=blamed)
                continue
            self.batches.remove(batch)
            self.take(batch, reply)
        return bool(ended)

    def take(self, batch: _Batch, reply: Mapping[str, Any]) -> None:
        """Keep the runs of a reply, and repeat what is not there."""
        for i, files in reply["runs"].items():
            self.arrived(i, files, reply["rows"].get(i))
            self.finished += 1
        if reply["runs"]:
            each = (time.monotonic() - batch.began) / (1 + len(reply["runs"]))
            self.run_s = each if self.run_s is None else (self.run_s + each) / 2
        rest = [i for i in batch.runs if i not in reply["runs"]]
        self.waiting.extendleft(reversed(rest))
        if "lacks" in reply:
            named = {wanted: name for name, wanted in self.study["files"].items()}
            contents = {wanted: Path(named[wanted]).read_bytes() for wanted in reply["lacks"]}
            self.lacking[batch.worker] = contents
        else:
            self.lacking.pop(batch.worker, None)
        if "failed" in reply:
            self.fail(batch.worker, reply["failed"], reply["reason"], machine=reply["machine"])

    def fail(self, name: str, i: int, reason: str, *, machine: bool) -> None:
        if machine:
            self.reject(name, reason)
            return
        before = self.failed.get(i)
        if len(self.proven) <= 1 or (before and before[0] != name):
            raise _core.RunError(reason)
        self.failed[i] = (name, reason)


def collect(
    question: Question,
    runs: Iterable[int],
    executor: Any,
    *,
    place: Callable[[int], Path] | None = None,
    kept: Callable[[int], None] = lambda _: None,
    on_progress: Callable[[Progress], None] = lambda _: None,
    ended: Callable[[int, work.Rows], None] = lambda *_: None,
) -> dict[int, Result]:
    """Run these runs of a plan on workers; ``place`` is the folder that each gets.

    ``kept`` is called when it is there, and ``ended`` with its summary tables if they are short.

    Raises:
        BadInputError: if every worker is rejected.
        talkspurt.RunError: if a run could not be finished, or there are no workers.
    """
    wanted = list(runs)
    results: dict[int, Result] = {}
    if not wanted:
        return results
    files, codecs = _needs(question, wanted)
    plan = question.plan

    def arrived(i: int, content: Mapping[str, bytes], rows: work.Rows | None) -> None:
        if rows is not None:
            ended(i, rows)
        if place is not None:
            folder = place(i)
            write_files(content, output_folder.part(folder))
            results[i] = reader.put(folder)
            kept(i)
            return
        # The folder lives as long as the result.
        scratch = Scratch()
        write_files(content, scratch.path)
        results[i] = replace(reader.load_result(scratch.path), _written=scratch)

    study = {
        "name": question.name,
        "title": plan.title,
        "description": plan.description,
        "file": question.absolute,
        "set": dict(question.sets),
        "files": files,
    }
    client = _Client(
        question, workers_of(executor), deque(wanted), arrived, study, proof.of_this(codecs), codecs
    )
    looked = -LOOK_S
    try:
        while client.finished < len(wanted):
            if time.monotonic() - looked >= LOOK_S:
                client.look()
                looked = time.monotonic()
            client.fill()
            if not client.gather():
                time.sleep(STEP_S / 5)
            done = client.finished
            on_progress(Progress(done / len(wanted), done, len(wanted)))
    finally:
        for batch in client.batches:
            with contextlib.suppress(Exception):
                batch.future.cancel()
    return results


def _needs(question: Question, runs: Iterable[int]) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """The files that the runs name, each with its SHA-256, and the encodings that they use."""
    files: dict[str, str] = {}
    codecs: list[dict[str, Any]] = []
    for i in runs:
        resolved = question.plan.resolved(i)
        if "file" not in resolved:
            continue
        for name in provenance.named(resolved):
            if name not in files and (hashed := work.sha256(Path(name))):
                files[name] = hashed
        codecs += [one for one in proof.sources(tomllib.loads(resolved)) if one not in codecs]
    return files, codecs


def write_files(content: Mapping[str, bytes], folder: Path) -> None:
    for name, data in content.items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name:
            raise BadInputError(f"a worker returned a file outside its run: {visible(name)}")
        file_access.write_bytes(folder / path, data)
