"""What tests share: a recording, a small scenario over it, and its result, run once."""

import contextlib
import json
import math
import os
import shutil
import signal
import struct
import wave
from pathlib import Path

import polars as pl
import pytest

import talkspurt
from command import output, process
from talkspurt.errors import StoreError
from talkspurt.results.axis import Axis
from talkspurt.results.result import Result, Study
from texts import (
    BULK,
    NEWRENO,
    UDP,
    dccp,
    flow_text,
    inline,
    link_text,
    put,
    scenario_text,
    speech,
    tcp,
)

ROOT = Path(__file__).parent.parent

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


SPOKEN, FIXED = {"file": "speech.wav", "repeat": True}, inline("fixed")
SCENARIO = scenario_text(
    "Small",
    "4s",
    link_text("sky", "west>east", "256kbit/s", "120ms", 12),
    flow_text("call", "west>east", UDP, speech("pcmu", **SPOKEN), playout=FIXED),
    flow_text("tcp-call", "west>east", NEWRENO, speech("pcma", **SPOKEN), playout=FIXED),
    flow_text("upload", "west>east", NEWRENO, BULK),
    description="Two calls and an upload over a *slow* link.",
    seed=3,
    record="{ sojourn = true }",
    measure='{ from = "500ms" }',
)

SILENT = SCENARIO.replace(speech("pcmu", **SPOKEN), speech("pcmu"))
"""The same, but the first call is packets nobody can hear."""

TOKENS = inline("tfrc", rate="{ token_bucket = {} }")
CONTROLLED = scenario_text(
    "Controlled",
    "12s",
    link_text("sky", "west>east", "256kbit/s", "60ms", 12),
    flow_text("two", "west>east", dccp(2, window="{ initial_ssthresh = 8 }")),
    flow_text("three", "west>east", dccp(3), reverse=speech("pcma")),
    flow_text("tb", "west>east", TOKENS, speech(ladder='["pcmu", "g726-32", "g729a"]')),
    flow_text("upload", "west>east", tcp("newreno", mss="500B"), BULK, start="3s"),
    link_text("ground", "south>north", "2Mbit/s", "60ms", 8),
    flow_text("model", "south>north", tcp("bbr"), BULK),
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


def write_wav(path, pcm, rate=8000, channels=1):
    with wave.open(str(path), "wb") as out:
        out.setnchannels(channels)
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


def shipped(name):
    """The study of ``scenarios/NAME.toml``."""
    found = talkspurt.run(ROOT / "scenarios" / f"{name}.toml", study=True)
    assert isinstance(found, Study)
    return found


def row_of(result, name):
    """The row of a flow in the table of flows."""
    return result.flows.filter(name=name).row(0, named=True)


def problems(asked, *given, **named):
    """What is wrong with a scenario, by the error that a function raises."""
    with pytest.raises(talkspurt.ScenarioError) as caught:
        asked(*given, **named)
    return caught.value.problems


@contextlib.contextmanager
def fault(file, match=None):
    """A block that fails with an error of this file."""
    with pytest.raises(StoreError, match=match) as raised:
        yield raised
    assert raised.value.filename == str(file)


def edit(place, **said):
    """Change keys of a result's manifest; None removes one."""
    manifest = json.loads((place / "manifest.json").read_text())
    manifest.update(said)
    kept = {key: value for key, value in manifest.items() if value is not None}
    (place / "manifest.json").write_text(json.dumps(kept))


@pytest.fixture
def small(tmp_path):
    """A folder on a disk of 3 MB."""
    place = tmp_path / "small"
    place.mkdir()
    words = ("mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", place)
    if shutil.which("mount") is None or process(*words).returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield place
    output("umount", place)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with a recording, a scenario and a study."""
    place = tmp_path_factory.mktemp("scenarios")
    write_wav(place / "speech.wav", tone())
    put(place / "small.toml", SCENARIO)
    put(place / "silent.toml", SILENT)
    put(place / "controlled.toml", CONTROLLED)
    put(place / "study.toml", STUDY)
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


@pytest.fixture(scope="module")
def browser():
    """Chromium, driven by Playwright; a module whose tests need it is skipped where it is not."""
    # That module is skipped where there is no browser, and with it what asks for this.
    from test_browser import ARGUMENTS, CHROMIUM  # isort: skip

    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    """The folder of the playground's parts of others, with their packages installed by npm."""
    copy = tmp_path_factory.mktemp("parts") / "playground" / "editor"
    editor = Path(__file__).parent.parent / "playground" / "editor"
    shutil.copytree(editor, copy, ignore=shutil.ignore_patterns("node_modules"))
    required = bool(os.environ.get("TALKSPURT_REQUIRE_NPM"))
    if shutil.which("npm") is None and not required:
        pytest.skip("no npm here")
    installed = process("npm", "ci", cwd=copy)
    if installed.returncode and not required:
        pytest.skip("the registry cannot be reached")
    assert installed.returncode == 0, installed.stderr
    return copy
