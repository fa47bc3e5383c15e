"""validation/apps: every network is a scenario, and what is heard is placed and scored."""

import shutil
import sys

import numpy as np
import pytest

from conftest import ROOT, row_of
from talkspurt.results.audio import wav

sys.path.insert(0, str(ROOT / "validation" / "apps"))

import hearing
import networks


@pytest.mark.parametrize("name", networks.TITLES)
def test_packets_pass_every_network(name, tmp_path):
    for trace in networks.TRACES:
        (tmp_path / trace).write_text("1\n2\n3\n")
    network = networks.links(name, tmp_path)
    flow = {
        "transport": {"kind": "udp"},
        "source": {"kind": "cbr", "rate": "80kbit/s", "packet": "100B"},
    }
    (run,) = networks.simulated(name, network, flow, 24.0, seconds=2, seeds=[1])
    assert row_of(run, "ours")["received_packets"] > 180
    # Packets wait where the tables read the queue.
    assert networks.bottleneck(name) in run.links["name"].to_list()


def test_without_its_traces_a_network_is_skipped(capsys):
    assert [name for name, _ in networks.networks(None)] == [
        name for name in networks.TITLES if name != "lte"
    ]
    assert "lte: skipped" in capsys.readouterr().out


def test_a_band_is_the_range_and_a_margin():
    ours = [9.0, 10.0, 12.0]
    assert networks.within(8.5, ours, 0.05, 0.0)
    assert not networks.within(8.4, ours, 0.05, 0.0)
    assert networks.within(12.9, ours, 0.0, 1.0)
    assert not networks.within(13.1, ours, 0.0, 1.0)


def test_a_segment_is_found_in_what_was_said():
    draw = np.random.default_rng(1)
    spoken = (draw.normal(size=80_000) * 3000).astype(np.int16)
    for at in (0, 1, 40_000, 80_000 - 8000):
        noise = draw.normal(size=8000) * 2000
        segment = (0.5 * spoken[at : at + 8000] + noise).astype(np.int16)
        assert hearing._place(spoken, segment) == at


def test_what_arrives_late_and_whole_has_the_best_score(tmp_path):
    pytest.importorskip("pesq")
    if shutil.which("ffmpeg") is None:
        pytest.skip("needs ffmpeg")
    speech = hearing.read(hearing.speech(tmp_path, 8000), 8000)
    late = np.concatenate([np.zeros(3000, np.int16), speech[5000 : 5000 + 9 * 8000]])
    file = tmp_path / "late.wav"
    file.write_bytes(wav(late.tobytes(), 8000))
    assert hearing.pesq(file, tmp_path, 8000, 9) == pytest.approx(4.549, abs=0.01)
