"""validation/playout/chromium: RTC event logs are read, and buffers compared by their counters."""

import csv
import random
import sys
from itertools import accumulate

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "validation" / "playout" / "chromium"))

import calls
import eventlog
import judge
import record
import traces

LOG = ROOT / "tests" / "data" / "chromium.rtc-event-log"
"""Chromium 156, 8 s of a call over a path with 60 ms of jitter, reordering and 5 % loss."""
CAPTURE = LOG.with_suffix(".csv")
"""The same packets, in the order in which they left the emulated network, read by tshark."""


@pytest.fixture(scope="module")
def log():
    return eventlog.read(LOG.read_bytes())


def test_packets_are_those_of_a_capture(log):
    with CAPTURE.open() as lines:
        captured = [{key: int(value) for key, value in row.items()} for row in csv.DictReader(lines)]
    by_sequence = {row["sequence"]: row for row in captured}
    rows = [by_sequence[one.sequence] for one in log.packets]
    for name in ("ssrc", "timestamp", "payload_type", "marker", "size"):
        assert [getattr(one, name) for one in log.packets] == [row[name] for row in rows], name
    # Both clocks are the kernel's; the log cuts parts of a millisecond.
    waits = [one.arrival_ms - row["ms"] for one, row in zip(log.packets, rows, strict=True)]
    assert max(waits) - min(waits) <= 10
    assert [one.sequence for one in log.packets] != sorted(by_sequence)
