"""The counters of jitter buffers, which have the names and meanings of WebRTC's statistics."""

import polars as pl
import pytest

import talkspurt
from talkspurt.metrics import jitter_buffer
from talkspurt.metrics.computing import compute

NETWORKS = {
    "steady": {"delay": "20ms"},
    "losses": {"delay": "20ms", "jitter": "3ms", "loss": 0.05},
    "jitter": {"delay": "5ms", "jitter": "80ms"},
}


def run(network, playout):
    """A call of 20 s."""
    link = {"from": "a", "to": "b", "rate": "1Mbit/s", "queue": {"kind": "droptail", "packets": 99}}
    call = {
        "from": "a", "to": "b", "transport": {"kind": "udp"}, "playout": playout,
        "source": {"kind": "speech", "codec": "pcmu"},
    }  # fmt: skip
    links = {"path": link | NETWORKS[network]}
    return talkspurt.run({"title": "b", "duration": "20s", "links": links, "flows": {"call": call}})


@pytest.mark.parametrize("profile", ["talkspurt", "libwebrtc"])
@pytest.mark.parametrize("network", NETWORKS)
def test_all_sound_is_from_the_buffer_or_concealed_or_stretched(network, profile):
    result = run(network, {"kind": "adaptive", "profile": profile})
    rows = jitter_buffer.over_time(result, "call", 1.0)
    parts = pl.col("jitter_buffer_emitted_s") + pl.col("concealed_s")
    parts += pl.col("inserted_s") - pl.col("removed_s")
    assert rows.select((parts - pl.col("total_received_s")).abs().max()).item() < 1e-9
    # As long as it was played, from the first frame's beginning to the last one's end.
    frames = result.frames("call").filter(pl.col("fate") == "played").sort("playout_s")
    played_s = frames["playout_s"][-1] - frames["playout_s"][0] + 0.02
    assert rows["total_received_s"].sum() == pytest.approx(played_s, abs=0.02)
    flow = result.flows.row(0, named=True)
    if flow["lost_packets"] == 0:
        assert rows["concealed_s"].sum() == pytest.approx(flow["paused_s"], abs=1e-6)
    if network == "losses":
        # Each lost frame in its time, and the pauses.
        lost_s = 0.02 * (flow["missing_packets"] + flow["late_packets"]) + flow["paused_s"]
        assert rows["concealed_s"].sum() == pytest.approx(lost_s, rel=0.15)
    total = compute(result, "concealed_sound")["value"].item()
    assert total == pytest.approx(rows["concealed_s"].sum())
    binned = compute(result, "concealed_sound_over_time", bin_s=1.0)
    assert binned["concealed_s"].to_list() == rows["concealed_s"].to_list()


def test_a_fixed_buffer_waits_as_long_as_it_is_set():
    result = run("steady", {"kind": "fixed", "buffer": "60ms"})
    # Concealment by G.711 Appendix I delays by 3.75 ms.
    assert compute(result, "jitter_buffer_delay")["value"].item() == pytest.approx(
        0.06375, abs=1e-3
    )
    assert compute(result, "jitter_buffer_target")["value"].item() is None
    assert compute(result, "removed_sound")["value"].item() == 0


def test_a_flow_without_speech_has_no_counters():
    link = {
        "from": "a",
        "to": "b",
        "rate": "1Mbit/s",
        "delay": "9ms",
        "queue": {"kind": "droptail", "packets": 9},
    }
    bulk = {
        "from": "a",
        "to": "b",
        "transport": {"kind": "tcp", "controller": "sack"},
        "source": {"kind": "bulk"},
    }
    result = talkspurt.run(
        {"title": "b", "duration": "1s", "links": {"path": link}, "flows": {"bulk": bulk}}
    )
    assert compute(result, "concealment_events")["value"].item() is None
    assert compute(result, "inserted_sound_over_time").is_empty()
