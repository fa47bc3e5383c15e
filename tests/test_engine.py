"""The drive, with runs made up for the purpose."""

import time

import pytest

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
