"""validation/emulate: the page of calls is made from the results, and every call is a scenario."""

import subprocess
import sys
from pathlib import Path

import pytest

import talkspurt

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "validation" / "emulate"))

import calls  # noqa: E402


def test_the_page_is_made_from_the_results(tmp_path):
    page = tmp_path / "calls.md"
    script = ROOT / "validation" / "emulate" / "calls_page.py"
    subprocess.run([sys.executable, str(script), str(page)], check=True)
    assert page.read_text() == (ROOT / "docs" / "validation" / "calls.md").read_text()


@pytest.mark.parametrize("name", calls.NETWORKS)
def test_a_call_passes_every_network(name):
    text = calls.network(name, ("a", "b"), True)
    source = {"kind": "speech", "codec": "pcmu"}
    call = {"from": "a", "to": "b", "transport": {"kind": "udp"}, "source": source}
    run = talkspurt.run(
        {"title": "A call", "seed": 1, "duration": "18s", **text, "flows": {"call": call}}
    )
    row = run.flows.filter(name="call").row(0, named=True)
    assert row["received_packets"] > 700


def test_a_band_is_the_range_and_a_margin():
    assert calls.within(0.0211, [0.02, 0.02, 0.02], "delay_p50_s") is False
    assert calls.within(0.0209, [0.02, 0.02, 0.02], "delay_p50_s") is True
    assert calls.within(4.0, [4.05, 4.1, 4.2], "mos") is True
    assert calls.within(0.01, [0.0, 0.0, 0.0], "loss_ratio") is False
