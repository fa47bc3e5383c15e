"""The drive, with runs made up for the purpose."""

import time

import pytest

from talkspurt.errors import StoreError
from talkspurt.runs import engine


class Deaf:
    """A run that never ends and does not hear that it is cancelled."""

    def __init__(self):
        self.cancelled = False
        self.waited = 0.0

    def progress(self):
        return 0.0

    def wait(self, seconds):
        if self.cancelled:
            self.waited += seconds
        time.sleep(seconds)
        return False

    def cancel(self):
        self.cancelled = True


class Plan:
    """A plan of such runs."""

    def __init__(self):
        self.started = []

    def start(self, i, captures, tables, meanings, heard):
        self.started.append(Deaf())
        return self.started[-1]


def test_runs_that_will_not_end_are_left_after_one_grace_together():
    def interrupt(progress):
        raise KeyboardInterrupt

    plan = Plan()
    with pytest.raises(KeyboardInterrupt):
        engine.drive(plan, range(9), jobs=4, on_end=lambda i, outcome: None, on_progress=interrupt)
    assert len(plan.started) == 4
    assert all(run.cancelled for run in plan.started)
    assert sum(run.waited for run in plan.started) <= 2  # seconds: who presses Ctrl-C looks on


class Ended:
    """A run that has ended when it is asked for the first time, with a result or an error."""

    def __init__(self, i, said, error=None):
        self.i, self.said, self.error = i, said, error
        said.append(("start", i))

    def progress(self):
        return 1.0

    def wait(self, _):
        return True

    def cancel(self):
        self.said.append(("cancel", self.i))

    def result(self):
        self.said.append(("result", self.i))
        if self.error:
            raise self.error
        return self.i


def test_a_thread_ends_before_another_takes_its_place():
    said = []
    engine.each(
        lambda i: Ended(i, said),
        range(3),
        jobs=1,
        on_end=lambda i, found: said.append(("end", found)),
    )
    each = ["start 0", "result 0", "start 1", "end 0", "result 1", "start 2", "end 1", "result 2"]
    assert [f"{what} {i}" for what, i in said] == [*each, "end 2"]


def test_runs_that_ended_before_one_with_an_error_are_kept():
    said = []
    error = OSError(28, "No space left on device", "/runs/flows.parquet")
    with pytest.raises(StoreError, match="the disk is full"):
        engine.each(
            lambda i: Ended(i, said, error if i == 1 else None),
            range(4),
            jobs=2,
            on_end=lambda i, found: said.append(("end", found)),
        )
    assert ("end", 0) in said and ("end", 2) not in said
    assert ("cancel", 2) in said
