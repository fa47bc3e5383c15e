"""validation/playout/chromium: recorded calls are complete, and buffers compared by their counters."""

import shutil
import sys
from itertools import accumulate, pairwise

import numpy as np
import pytest

from conftest import ROOT, row_of

sys.path.insert(0, str(ROOT / "validation" / "playout" / "chromium"))

import judge
import record
import recordings
import twice
from networks import scenario

import talkspurt
import traces

RECORDED = [
    (name, seed)
    for name in traces.ALL
    for seed in traces.SEEDS
    if recordings.file(name, seed).exists()
]


def test_the_same_counters_agree_and_others_do_not():
    call = recordings.load(*RECORDED[0])
    same = judge.compare(call, lambda call: call["samples"])
    assert same.apart_s == [0.0] * (len(call["samples"]["ms"]) - 1)
    assert judge.Verdict("steady", [same]).is_within

    def later(call, seconds=0.0, lost=0.0):
        samples = call["samples"]
        emitted, taken = samples["jitterBufferEmittedCount"], samples["totalSamplesReceived"]
        delays = zip(samples["jitterBufferDelay"], emitted, strict=True)
        concealed = zip(samples["concealedSamples"], taken, strict=True)
        return samples | {
            "jitterBufferDelay": [delay + seconds * count for delay, count in delays],
            "concealedSamples": [old + lost * count for old, count in concealed],
        }

    for seconds, lost, is_within in (
        (0.0199, 0.0049, True), (0.0201, 0.0, False), (0.0, 0.0051, False)
    ):  # fmt: skip
        compared = judge.compare(call, lambda call, s=seconds, n=lost: later(call, s, n))
        assert judge.Verdict("steady", [compared]).is_within is is_within


def test_a_second_in_which_one_emitted_nothing_is_beyond_every_tolerance():
    theirs = {"jitterBufferDelay": [0.0, 48.0, 48.0], "jitterBufferEmittedCount": [0, 960, 960]}
    ours = {"jitterBufferDelay": [0.0, 0.0, 48.0], "jitterBufferEmittedCount": [0, 0, 960]}
    rest = {"concealedSamples": [0, 0, 0], "totalSamplesReceived": [0, 960, 1920]}
    call = {"samples": theirs | rest}
    assert judge.compare(call, lambda _: ours | rest).apart_s == [float("inf")] * 2
    assert judge.compare(call, lambda _: theirs | rest).apart_s == [0.0]


def test_two_streams_of_a_call_are_compared_at_the_same_samples(tmp_path, monkeypatch):
    monkeypatch.setattr(judge, "TWICE", tmp_path / "twice.json")

    def sample(now, ssrc, packets, delay_s):
        emitted = 960 * packets
        return dict.fromkeys(record.COUNTERS, 0) | {
            "type": "inbound-rtp", "kind": "audio", "ssrc": ssrc, "packetsReceived": packets,
            "jitterBufferDelay": delay_s * emitted, "jitterBufferEmittedCount": emitted,
            "totalSamplesReceived": emitted, "concealedSamples": emitted / 100,
        } | {"now": now}  # fmt: skip

    told = [
        {"now": now, "kept": [sample(now, 2, max(0, at - 1), 0.05), sample(now, 1, at, 0.04)]}
        for now, at in ((7, 1), (8, 2), (9, 51), (10, 101))
    ]
    # The second stream had no packet at the first sample.
    found = twice.apart(told)
    assert found.apart_s == pytest.approx([0.01, 0.01])
    assert found.delays_s == pytest.approx((0.04, 0.05))
    twice.save("roaming-2", found)
    twice.save("outage-1", judge.Compared([float("inf")], (0.1, 0.2), (0.01, 0.02)))
    read = judge.twice()
    assert read["roaming"][0].apart_s == [0.01, 0.01]
    assert read["roaming"][0].concealed == (0.01, 0.01)
    assert read["outage"][0].apart_s == [float("inf")]


@pytest.mark.parametrize("name", ["steady", "wifi"])
def test_our_buffer_gets_the_recorded_arrivals(name, monkeypatch):
    if shutil.which("ffmpeg") is None:
        pytest.skip("needs ffmpeg")
    # A fixed buffer plays the first frame 400 ms after its arrival, and the others in its rhythm.
    monkeypatch.setattr(judge, "PLAYOUT", {"kind": "fixed", "buffer": "400ms"})
    call = recordings.load(name, 1)
    arrived_ms = 1e3 * judge.arrived_s_of(call["arrivals"]["ms"])
    there = recordings.places(call)
    played_ms = 20 * (there - there[0]) + 400
    samples = judge.replay(call)
    delays_ms = [1e3 * delay for delay in judge.delays_s(samples)]
    sampled_ms = recordings.sampled_ms(call)
    edges = pairwise(sampled_ms)
    for (begin, end), delay_ms in zip(edges, delays_ms, strict=True):
        inside = (begin < played_ms) & (played_ms <= end)
        assert np.mean((played_ms - arrived_ms)[inside]) == pytest.approx(delay_ms, abs=1e-3)
    # What no packet brought is concealed, unless the next one repairs it.
    repaired = there[call["arrivals"]["fec"]] - 1
    played = np.arange((sampled_ms[-1] - 400) / 20)
    missing = set(played) - set(there) - set(repaired)
    assert samples["concealedSamples"][-1] / recordings.FRAME == pytest.approx(len(missing), abs=1)


@pytest.mark.parametrize("name", traces.ALL)
def test_a_call_passes_every_trace(name, tmp_path):
    flow = {
        "from": "a", "to": "b", "start": "5s", "stop": "12s", "transport": {"kind": "udp"},
        "source": {"kind": "cbr", "rate": "40kbit/s", "packet": "100B"},
    }  # fmt: skip
    links = {"line": traces.link(name, 1, tmp_path)}
    run = talkspurt.run(scenario({"links": links}, {"ours": flow}, seconds=14))
    assert row_of(run, "ours")["received_packets"] > 300


def test_traces_are_held_out():
    assert min(len(traces.DEV), len(traces.HELD_OUT)) >= 6
    assert not set(traces.DEV) & set(traces.HELD_OUT)
    again = [traces.roaming(np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert np.array_equal(again[0], again[1])
    assert not np.array_equal(again[0], again[2])


def test_the_flag_of_fec_is_where_rfc_6716_has_it():
    assert record.is_with_fec(bytes([0x68, 0xC0]))
    assert not record.is_with_fec(bytes([0x68, 0x80]))
    assert not record.is_with_fec(bytes([0xF8, 0xC0]))
    assert record.payload(bytes([0x90, *range(11), 0xBE, 0xDE, 0, 1, *range(4), 7, 8])) == b"\7\10"


def test_places_are_counted_from_the_first_packet_that_was_sent():
    stamps = [2**32 - 960, 2**32 - 1920, 0, 960]
    assert recordings.places({"arrivals": {"timestamp": stamps}}).tolist() == [1, 0, 2, 3]


def test_counters_that_were_read_late_are_placed_by_what_was_played():
    samples = {"ms": [13.0, 1_012.5, 2_012.0], "totalSamplesReceived": [0, 48_000, 98_880]}
    call = {"playouts": list(range(-20, 3000, 10)), "samples": samples}
    # 2 060 ms of sound were taken from 10 ms on: until 2 070 ms, and not yet at 2 080.
    assert recordings.sampled_ms(call).tolist() == [13.0, 1_012.5, 2_070.0]


@pytest.mark.parametrize(
    ("waits_ms", "words"),
    [([10] * 100, ""), ([30] * 33, ""), ([10] * 90 + [70] + [10] * 3, "for 0.070 s"),
     ([10] * 97 + [31], "in 3.1")],
)  # fmt: skip
def test_a_call_of_a_busy_machine_is_spoiled(waits_ms, words):
    playouts = list(accumulate(waits_ms, initial=0))
    samples = {"ms": [0, playouts[-1]], "totalSamplesReceived": [0, 48 * playouts[-1]]}
    call = {"playouts": playouts, "samples": samples}
    assert words in recordings.spoiled(call)
    assert bool(recordings.spoiled(call)) is bool(words)
    for count, is_short in ((47.8, False), (47.7, True), (48.3, True)):
        samples["totalSamplesReceived"][1] = count * playouts[-1]
        assert ("short" in recordings.spoiled(call)) is is_short


def test_what_was_recorded_is_complete():
    for name, seed in RECORDED:
        call, words = recordings.load(name, seed), f"{name}-{seed}"
        assert not recordings.spoiled(call), words
        assert (call["trace"], call["seed"]) == (name, seed)
        assert -1 < call["clock_ms"][0] <= call["clock_ms"][1] < 10, words
        arrivals, samples = call["arrivals"], call["samples"]
        assert recordings.starved(call)["seconds"] > traces.CALL_S - 2, words
        at = np.searchsorted(arrivals["ms"], samples["ms"], side="right")
        fec = np.searchsorted(arrivals["fec"], at)
        assert max(abs(fec - samples["fecPacketsReceived"])) <= 1, words
        # Besides, Chromium counts packets of padding.
        assert min(samples["packetsReceived"] - at) >= -2, words
