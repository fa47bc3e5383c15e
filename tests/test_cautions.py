"""What is said before results are compared: late openings and refused packets."""

import io
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

import talkspurt
from talkspurt._terminal.tables import print_result
from talkspurt.analysis.cautions import cautions
from talkspurt.report import single
from texts import UDP, dccp, flow_text, inline, link_text, put, scenario_text, speech, tcp


def scenario(transport: str, source: str) -> str:
    link = link_text("sky", "near>far", "20Mbit/s", "270ms", 5000, back="{}")
    return scenario_text("cautions", "8s", link, flow_text("call", "near>far", transport, source))


def run(transport: str, source: str) -> talkspurt.Result:
    return talkspurt.run(scenario(transport, source))


@pytest.mark.parametrize(
    ("transport", "lead", "waited"),
    [
        (UDP, "0s", None),
        # Request and Response: a round trip of 540 ms, and the first frame is ready after 20 ms.
        (dccp(4), "0s", 0.52),
        (dccp(4), "2s", 0.0),
        (tcp("cubic"), "0s", 0.52),
        # INIT and COOKIE ECHO: two round trips.
        (inline("sctp"), "0s", 1.06),
    ],
)
def test_a_first_frame_that_waits_for_a_handshake_is_said(transport, lead, waited):
    result = run(transport, speech(lead=lead))
    found = result.flows["handshake_wait_s"][0]
    assert found == pytest.approx(waited, abs=0.02)
    said = [words for words in cautions(result.flows) if "first frame waited" in words]
    assert len(said) == (1 if waited else 0), found
    out = Console(file=io.StringIO(), width=200)
    print_result(result, out)
    assert ("waited" in out.file.getvalue()) == bool(waited)
    assert ("first frame waited" in single.html(result)) == bool(waited)


def test_check_says_so_before_anything_runs(tmp_path, capsys):
    from talkspurt._commands import app

    for transport, lead, said in [
        ("sctp", "0s", True),
        ("sctp", "1s", False),
        ("udp", "0s", False),
    ]:
        text = scenario(inline(transport), speech(lead=lead)) + 'playout = { kind = "fixed" }\n'
        file = put(tmp_path / f"{transport}-{lead}.toml", text)
        app(["check", str(file)], result_action="return_value")
        text = " ".join(capsys.readouterr().out.split())  # wrapped, after a path of any length
        assert ("waits for the handshake" in text) == said


@pytest.mark.parametrize("side", ["source", "reverse"])
@pytest.mark.parametrize("key", ["fec = true", "dred = '200ms'"])
def test_check_says_that_redundancy_of_opus_needs_sound(side, key, tmp_path, capsys):
    from talkspurt._commands import app

    wav = Path(__file__).parent.parent / "speech" / "english-man.wav"
    for more, said in ((f"opus = {{ {key} }}", True), ("red = 1", False),
                       (f"opus = {{ {key} }}, file = '{wav}'", False)):  # fmt: skip
        opus = f"{{ kind = 'speech', codec = 'opus', {more} }}"
        text = scenario(UDP, opus if side == "source" else speech())
        text += f"reverse = {opus}\n" if side == "reverse" else ""
        file = put(tmp_path / "redundancy.toml", text)
        app(["check", str(file)], result_action="return_value")
        text = " ".join(capsys.readouterr().out.split())
        found = f"call: `{side}.opus.{key.split()[0]}` changes nothing without sound"
        assert (found in text) == said, text


def test_packets_that_an_end_refuses_are_said():
    row = {
        "name": "call",
        "group": None,
        "transport": "dccp-ccid2",
        "sent_packets": 900,
        "control_packets": 100,
        "rejected_packets": 11,
        "damaged_packets": 0,
        "handshake_wait_s": 0.0,
    }
    (said,) = cautions(pl.DataFrame([row]))
    assert said.startswith("call: the ends refused 11 packets")
    none = {"sent_packets": 0, "control_packets": 0}
    (said,) = cautions(pl.DataFrame([row | none]))
    assert said.startswith("call: the ends refused 11 packets that were not damaged; `rejected")
    # Damaged packets are the path's doing, TCP refuses what it has already, and a few are common.
    for other in ({"damaged_packets": 11}, {"transport": "tcp-cubic"}, {"rejected_packets": 10}):
        assert cautions(pl.DataFrame([row | other])) == []


@pytest.mark.parametrize("profile", ["rfc", "ns2", "linux"])
def test_ccid_2_fills_a_long_path_and_nothing_is_refused(profile):
    path = {"links.sky.rate": "10Mbit/s", "links.sky.delay": "125ms", "duration": "30s"}
    text = scenario(dccp(2, profile=profile), inline("bulk", packet="1000B"))
    result = talkspurt.run(text, set=path)
    row = result.flows.to_dicts()[0]
    assert row["rejected_packets"] == row["damaged_packets"] == 0
    assert cautions(result.flows) == []
    # The link, less headers and at most ten seconds of slow start at 250 ms a round trip.
    assert row["goodput_bps"] > 10e6 * (1000 / 1036) * 20 / 30
