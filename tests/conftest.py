"""What tests share: a recording, a small scenario over it, and its result, run once."""

import math
import os
import signal
import struct
import wave

import polars as pl
import pytest

import talkspurt
from talkspurt.results.axis import Axis
from talkspurt.results.result import Result, Study
from texts import BULK, NEWRENO, UDP, flow_text, link_text, scenario_text

LIVE = (
    "call", "emulate", "emulated_calls", "live", "measure", "measure_ip", "measure_tcp", "quiet",
    "real_time_input", "stopping_live",
)  # fmt: skip
"""Files whose tests run in real time: they mostly wait."""
LONG = ("pages", "scores", "reproduce_studies", "plot", "hand_edited", "stopping", "streaming")
"""Files to begin with, so that no worker is left alone with one at the end."""

# A process started under nohup, or in the background of a script, ignores these signals and passes
# that on; tests send them.
if "PYTEST_XDIST_WORKER" in os.environ:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path, config):
    """Import no files for the sake of tests that are not selected, which takes seconds."""
    live = {"live": True, "not live": False}.get(config.option.markexpr)
    name = collection_path.name
    if live is not None and name.startswith("test_") and (_name(collection_path) in LIVE) != live:
        return True
    return None


def pytest_collection_modifyitems(items):
    """Mark tests that run in real time, and begin with the longest files."""
    for item in items:
        if _name(item.path) in LIVE:
            item.add_marker(pytest.mark.live)
    order = {name: i for i, name in enumerate(LONG)}
    items.sort(key=lambda item: order.get(_name(item.path), len(LONG)))


def _name(path):
    return path.stem.removeprefix("test_")


SCENARIO = scenario_text(
    "Small",
    "4s",
    link_text("sky", "west>east", "256kbit/s", "120ms", 12),
    flow_text(
        "call",
        "west>east",
        UDP,
        '{ kind = "speech", file = "speech.wav", codec = "pcmu", repeat = true }',
        playout='{ kind = "fixed" }',
    ),
    flow_text(
        "tcp-call",
        "west>east",
        NEWRENO,
        '{ kind = "speech", file = "speech.wav", codec = "pcma", repeat = true }',
        playout='{ kind = "fixed" }',
    ),
    flow_text("upload", "west>east", NEWRENO, BULK),
    description="Two calls and an upload over a *slow* link.",
    seed=3,
    record="{ sojourn = true }",
    measure='{ from = "500ms" }',
)

SILENT = SCENARIO.replace('file = "speech.wav", codec = "pcmu", repeat = true', 'codec = "pcmu"')
"""The same, but the first call is packets nobody can hear."""

CONTROLLED = scenario_text(
    "Controlled",
    "12s",
    link_text("sky", "west>east", "256kbit/s", "60ms", 12),
    flow_text("two", "west>east", '{ kind = "dccp", ccid = 2, window = { initial_ssthresh = 8 } }'),
    flow_text(
        "three",
        "west>east",
        '{ kind = "dccp", ccid = 3 }',
        reverse='{ kind = "speech", codec = "pcma" }',
    ),
    flow_text(
        "tb",
        "west>east",
        '{ kind = "tfrc", rate = { token_bucket = {} } }',
        '{ kind = "speech", codec = "pcmu", ladder = ["pcmu", "g726-32", "g729a"] }',
    ),
    flow_text(
        "upload",
        "west>east",
        '{ kind = "tcp", controller = "newreno", mss = "500B" }',
        BULK,
        start="3s",
    ),
    link_text("ground", "south>north", "2Mbit/s", "60ms", 8),
    flow_text("model", "south>north", '{ kind = "tcp", controller = "bbr" }', BULK),
    seed=3,
)
"""Calls under congestion control beside an upload, and an upload by another road."""

STUDY = (
    SCENARIO
    + """
[[axes]]
name = "delay"
path = "links.sky.delay"
values = ["20ms", "200ms"]

[replications]
count = 3
confidence = 0.9
"""
)


def tone(seconds=1.5, rate=8000):
    """A tone that comes and goes, so that silence and sound both occur."""
    samples = (
        int(9000 * math.sin(2 * math.pi * 200 * i / rate) * max(0.0, math.sin(7 * i / rate)))
        for i in range(int(seconds * rate))
    )
    return b"".join(struct.pack("<h", sample) for sample in samples)


def write_wav(path, pcm, rate=8000):
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(pcm)


def made(settings, replicate, mos, flows=(("call", "udp"),), **columns):
    """A result of which only the flows' MOS is known, one for all, and further columns."""
    names, transports = zip(*flows, strict=True)
    flows = pl.DataFrame(
        {"name": names, "transport": transports, "mos": [mos] * len(names)},
        schema={"name": pl.String, "transport": pl.String, "mos": pl.Float64},
    ).with_columns(pl.Series(name, values) for name, values in columns.items())
    return Result(
        name="made", title="", description="", settings=settings, replicate=replicate, seed=replicate,
        scenario="", topology={"flows": []}, manifest={"duration_s": 1.0}, _read_table={"flows": flows}.get, _read_audio=lambda _: None,
    )  # fmt: skip


def made_study(values, replications):
    runs = [
        made({"over": over}, replicate, mos)
        for over, numbers in values.items()
        for replicate, mos in enumerate(numbers)
    ]
    axis = Axis("over", "flows.*.transport", tuple(values))
    return Study("made", "", "", (axis,), replications, 0.95, "", runs)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with a recording, a scenario and a study."""
    place = tmp_path_factory.mktemp("scenarios")
    write_wav(place / "speech.wav", tone())
    (place / "small.toml").write_text(SCENARIO, encoding="utf-8")
    (place / "silent.toml").write_text(SILENT, encoding="utf-8")
    (place / "controlled.toml").write_text(CONTROLLED, encoding="utf-8")
    (place / "study.toml").write_text(STUDY, encoding="utf-8")
    return place


@pytest.fixture(scope="session")
def result(folder):
    return talkspurt.run(folder / "small.toml")


@pytest.fixture(scope="session")
def silent(folder):
    return talkspurt.run(folder / "silent.toml")


@pytest.fixture(scope="session")
def controlled(folder):
    return talkspurt.run(folder / "controlled.toml")


@pytest.fixture(scope="session")
def study(folder):
    return talkspurt.run(folder / "study.toml", study=True)
