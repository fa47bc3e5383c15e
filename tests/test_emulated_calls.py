"""validation/emulate: every call of the page of calls is a scenario."""

import sys

import pytest

import talkspurt
from conftest import ROOT, row_of

sys.path.insert(0, str(ROOT / "validation" / "emulate"))

import calls


@pytest.mark.parametrize("name", calls.NETWORKS)
def test_a_call_passes_every_network(name):
    text = calls.network(name, ("a", "b"), True)
    source = {"kind": "speech", "codec": "pcmu"}
    call = {"from": "a", "to": "b", "transport": {"kind": "udp"}, "source": source}
    run = talkspurt.run(
        {"title": "A call", "seed": 1, "duration": "18s", **text, "flows": {"call": call}}
    )
    assert row_of(run, "call")["received_packets"] > 700


def test_a_band_is_the_range_and_a_margin():
    assert calls.within(0.0211, [0.02, 0.02, 0.02], "delay_p50_s") is False
    assert calls.within(0.0209, [0.02, 0.02, 0.02], "delay_p50_s") is True
    assert calls.within(4.0, [4.05, 4.1, 4.2], "mos") is True
    assert calls.within(0.01, [0.0, 0.0, 0.0], "loss_ratio") is False
