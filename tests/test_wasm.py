"""The WebAssembly module that ``make wasm`` builds gives the results of the native build, under
Node; the page that uses it is tested in a browser.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

import pytest

import talkspurt
from command import needs, process
from test_golden import GOLDEN

ROOT = Path(__file__).parent.parent
MODULE = os.environ.get("TALKSPURT_WASM", "")
SPEECH = "speech/sense-and-sensibility.wav"

pytestmark = [
    needs("node", "nodejs", "NODE"),
    pytest.mark.skipif(not MODULE, reason="make wasm builds the module and runs this"),
    # One process has the runs that several tests ask for.
    pytest.mark.xdist_group("wasm"),
]


@functools.cache
def ran(scenario):
    return talkspurt.run(ROOT / scenario)


@functools.cache
def asked(scenario, *files, folder=ROOT):
    """What the module answers; the script fails if it imports more than the function of progress."""
    script = ["node", ROOT / "crates/wasm/run.mjs", MODULE, folder]
    done = process(*script, scenario, *files)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("first-call", [SPEECH]),
        ("sources", ["traces/mpeg4-gop.csv", "traces/h264-rtp.pcapng"]),
    ],
)
def test_the_module_gives_the_results_of_the_native_build(name, files):
    """Recordings and Opus, and traces of video."""
    scenario = f"scenarios/{name}.toml"
    found = asked(scenario, *files)
    [run] = found["runs"]
    native = ran(scenario)
    assert run["digest"] == native.digest == GOLDEN[name]
    for table in ("flows", "links"):
        expected = getattr(native, table)
        columns = {name: run[table][name] for name in run[table] if name in expected.columns}
        assert len(columns) > 20
        for column, values in columns.items():
            assert values == pytest.approx(expected[column].to_list(), nan_ok=True), column
    assert found["answer"]["sentences"] == native.answer.sentences
    assert found["answer"]["notes"] == native.answer.notes
    lengths = [[2 * len(it.sent), 2 * len(it.received)] for it in map(native.audio, native.heard)]
    assert run["heard"] == lengths
    assert found["told"] > 100 and found["memory"] < 300e6


def test_a_chart_of_a_page_is_that_of_the_report():
    """Both have the same charts, and the same outcomes of frames."""
    from talkspurt.figures import charts
    from talkspurt.report import calls

    scenario = "scenarios/first-call.toml"
    [run] = asked(scenario, SPEECH)["runs"]
    native = ran(scenario)
    assert run["charts"] == charts.of_result(native)[0]
    assert "mos" in {chart["name"] for chart in run["charts"]}
    signals = calls.of_result(native).data()["signals"]
    fates = {one["name"]: [list(run) for run in one["fates"]] for one in signals if "fates" in one}
    assert {call["name"]: call["fates"] for call in run["calls"]} == fates


def test_the_picture_and_the_animation_of_a_page_are_those_of_the_report():
    from talkspurt.report import animation, topology

    scenario = "scenarios/first-call.toml"
    [run] = asked(scenario, SPEECH)["runs"]
    native = ran(scenario)
    assert run["picture"] == vars(topology.of_result(native))
    assert run["animation"] == vars(animation.animation(native))
    assert run["animation"]["worlds"][0]["hops"] > 100


def test_a_study_is_answered_as_natively(tmp_path):
    (tmp_path / "study.toml").write_text(
        """
        title = "Two queues"
        duration = "8s"
        replications = { count = 3 }
        [[axes]]
        name = "queue"
        path = "links.up.queue.packets"
        values = [10, 100]
        [links.up]
        from = "home"
        to = "office"
        rate = "1Mbit/s"
        delay = "20ms"
        queue = { kind = "droptail", packets = 10 }
        [flows.call]
        from = "home"
        to = "office"
        transport = { kind = "udp" }
        source = { kind = "speech", codec = "pcmu", packet = "20ms" }
        [flows.upload]
        from = "home"
        to = "office"
        transport = { kind = "tcp", controller = "cubic" }
        source = { kind = "bulk" }
        """,
        encoding="utf-8",
    )
    found = asked("study.toml", folder=tmp_path)
    native = talkspurt.run(tmp_path / "study.toml", study=True)
    assert [run["digest"] for run in found["runs"]] == [run.digest for run in native.runs]
    assert found["answer"]["sentences"] == native.answer.sentences
    assert found["answer"]["questions"] == native.answer.questions
    assert len(found["table"]["rows"]) == 4


def test_what_the_module_lacks_is_a_problem_of_the_scenario():
    """It is built without DRED; a file that it does not have is missing."""
    problems = asked("scenarios/opus-repair.toml", SPEECH)["problems"]
    assert any("this page is without the models of libopus" in it["message"] for it in problems)
    problems = asked("scenarios/two-way.toml")["problems"]
    missing = "/speech/sense-and-sensibility.wav: cannot be read: there is no such file"
    assert any(missing in it["message"] for it in problems)
    assert all(it["line"] for it in problems)
