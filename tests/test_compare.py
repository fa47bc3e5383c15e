"""``talkspurt compare``: finished runs and studies side by side."""

import json
import re
import signal
from pathlib import Path

import pytest

import talkspurt
from talkspurt._commands import main
from talkspurt._storage.interrupts import STOPS
from texts import UDP, axis_text, flow_text, link_text, scenario_text

SPEECH = Path(__file__).parents[1] / "speech" / "sense-and-sensibility.wav"
SCENARIO = scenario_text(
    "A call",
    "3s",
    link_text("l", "a>b", "1Mbit/s", "20ms", 50, loss=0.05),
    flow_text("call", "a>b", UDP, f'{{ kind = "speech", codec = "pcmu", file = "{SPEECH}" }}'),
)
STUDY = SCENARIO + axis_text("links.l.delay", '["20ms", "90ms"]')


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    at = tmp_path_factory.mktemp("compare")
    far = {"links.l.delay": "200ms"}, {"links.l.loss": "0.1"}
    for name, (alone, several) in (("near", ({}, {})), ("far", far)):
        talkspurt.run(SCENARIO, set=alone).save(at / name, report=False)
        study = talkspurt.run(STUDY, set=several, study=True)
        study.save(at / f"study-{name}", report=False)
    return at


@pytest.fixture
def call(monkeypatch):
    def called(*words):
        monkeypatch.setattr("sys.argv", ["talkspurt", *words])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code or 0

    before = {number: signal.getsignal(number) for number in STOPS}
    yield called
    # A command ignores them when it ends, and what this process ignores, later commands would.
    for number, handler in before.items():
        signal.signal(number, handler)


def test_runs_side_by_side(folders):
    near, far = (talkspurt.load(folders / name) for name in ("near", "far"))
    both = talkspurt.compare({"near": near, "far": far})
    assert [axis.labels for axis in both.axes] == [("near", "far")]
    rows = both.flows.select("axis.run", "seed", "mos").to_dicts()
    assert rows == [
        {"axis.run": name, "seed": 1, "mos": one.flows["mos"][0]}
        for name, one in (("near", near), ("far", far))
    ]
    assert rows[1]["mos"] < rows[0]["mos"]
    assert near.settings == {}, "the runs themselves are as before"


def test_studies_with_equal_axes(folders):
    both = talkspurt.compare(
        {name: talkspurt.load(folders / f"study-{name}", study=True) for name in ("near", "far")}
    )
    assert [axis.name for axis in both.axes] == ["run", "delay"]
    assert len(both.runs) == 4
    (cell,) = both.select(run="far", delay="90ms")
    assert cell.flows["loss_ratio"][0] > 0.05


def test_the_command_writes_a_study_with_a_player(folders, monkeypatch, capsys, call):
    monkeypatch.chdir(folders)
    assert call("compare", "near", "far") == 0
    assert "runs/near-vs-far/report.html" in capsys.readouterr().out
    page = (folders / "runs/near-vs-far/report.html").read_text()
    assert "A call – near, far" in page
    player = re.search(r'<script type="application/json" id="player">(.*?)</script>', page)[1]
    names = [signal["name"] for signal in json.loads(player)["signals"]]
    assert names == ["reference", "near · call", "far · call"]
    again = talkspurt.load(folders / "runs/near-vs-far", study=True)
    assert [run.settings for run in again.runs] == [{"run": "near"}, {"run": "far"}]
    assert call("compare", "near", "far", "--json") == 0
    assert [axis["name"] for axis in json.loads(capsys.readouterr().out)["axes"]] == ["run"]


def test_runs_of_one_study_are_compared_and_drawn(folders, monkeypatch, call):
    """Their settings of the study are no axes of the comparison."""
    monkeypatch.chdir(folders)
    runs = sorted(str(one) for one in Path("study-near/runs").iterdir())
    assert call("compare", *runs, "--out", "of-a-study") == 0
    assert (folders / "of-a-study" / "report.html").exists()
    study = talkspurt.load(folders / "of-a-study", study=True)
    assert study.figure("mos").axes


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["near"], "at least two"),
        (["near", "near"], "given twice"),
        (["near", "nothing"], "nothing: there is no result"),
        (["near", "study-far"], "near is a single run, and study-far is a study"),
        (["near", "far", "-o", "far"], "holds one of the results"),
        (["near", "far", "--pdf", "--no-report"], "--pdf"),
    ],
)
def test_bad_input_is_said(folders, monkeypatch, capsys, call, words, said):
    monkeypatch.chdir(folders)
    assert call("compare", *words) == 2
    assert said in capsys.readouterr().err
