"""The WebAssembly module that ``make wasm`` builds imports nothing and gives the results of the
native build, under Node.
"""

from __future__ import annotations

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
]


def answer(scenario, *files):
    """What the module answers; the script fails if the module has imports."""
    script = ["node", ROOT / "crates/wasm/run.mjs", MODULE, ROOT]
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
    [run] = answer(scenario, *files)["runs"]
    native = talkspurt.run(ROOT / scenario)
    assert run["digest"] == native.digest == GOLDEN[name]
    for table in ("flows", "links"):
        expected = getattr(native, table)
        columns = {name: run[table][name] for name in run[table] if name in expected.columns}
        assert len(columns) > 20
        for column, values in columns.items():
            assert values == pytest.approx(expected[column].to_list(), nan_ok=True), column


def test_what_the_module_lacks_is_a_problem_of_the_scenario():
    """It is built without DRED; a file that it does not have is missing."""
    problems = answer("scenarios/opus-repair.toml", SPEECH)["problems"]
    assert any("this build of libopus is without it" in problem for problem in problems)
    problems = answer("scenarios/two-way.toml")["problems"]
    assert "/speech/sense-and-sensibility.wav: cannot be read: there is no such file" in "".join(
        problems
    )
