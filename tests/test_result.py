"""A run from Python: its tables, recordings and numbers, and what asking wrongly says."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import talkspurt
from conftest import TOKENS
from talkspurt.metrics.catalogue import column
from talkspurt.results.run_data import BYTES, TABLES
from texts import flow_text, link_text, scenario_text, speech

SPEECH = Path(__file__).parents[1] / "speech" / "sense-and-sensibility.wav"


def test_the_same_seed_gives_the_same_digest_and_another_does_not(folder, result):
    assert talkspurt.run(folder / "small.toml").digest == result.digest
    assert talkspurt.run(folder / "small.toml", seed=4).digest != result.digest


def test_a_field_set_over_the_scenario_changes_the_run_and_is_written_down(folder, result):
    other = talkspurt.run(folder / "small.toml", set={"links.sky.delay": "200ms"})
    assert other.digest != result.digest
    delay = result.flows.filter(name="call")["delay_min_s"][0]
    assert other.flows.filter(name="call")["delay_min_s"][0] == pytest.approx(
        delay + 0.08, abs=0.01
    )
    assert other.manifest["set"] == {"links.sky.delay": "200ms"}
    assert "200ms" in other.scenario


@pytest.mark.parametrize("table", TABLES)
def test_every_run_has_every_table(result, table):
    frame = result.table(table)
    assert isinstance(frame, pl.DataFrame)
    assert frame.width > 2


def test_packets_are_conserved(result):
    for row in result.flows.iter_rows(named=True):
        arrived_or_not = row["received_packets"] + row["lost_packets"] + row["in_flight_packets"]
        assert row["sent_packets"] == arrived_or_not, row["name"]


def test_every_frame_of_speech_has_one_fate(result):
    for call in result.calls:
        row = result.flows.filter(name=call).row(0, named=True)
        frames = result.frames(call)
        assert frames["index"].to_list() == sorted(set(frames["index"].to_list()))
        late = frames.filter(pl.col("captured_s") >= 0.5, fate="late").height
        assert row["late_packets"] == pytest.approx(late, abs=1), call


def test_loss_ratio_is_what_was_not_heard_of_what_was_due(result):
    for row in result.flows.filter(source="speech").iter_rows(named=True):
        frames = result.frames(row["name"]).filter(pl.col("captured_s") >= 0.5)
        assert frames.height == row["generated_packets"]
        # On its way at the end, and its playout would have come after it: nobody knows.
        due = pl.col("captured_s") + row["mouth_to_ear_max_s"]
        unknown = (due >= 4.0) & pl.col("fate").is_in(["queued", "in_flight", "lost"])
        judged = frames.filter(~unknown)
        unheard = judged.filter(pl.col("fate") != "played").height
        assert row["missing_packets"] + row["late_packets"] == unheard
        assert row["loss_ratio"] == pytest.approx(unheard / judged.height)


def test_series_add_up_to_the_flows(result):
    for row in result.flows.iter_rows(named=True):
        inside = result.series(row["name"]).filter(pl.col("time_s") > 0.5 + 1e-9)
        assert inside["sent_packets"].sum() == pytest.approx(row["sent_packets"], abs=1)


def test_one_flow_can_be_picked_from_every_table_of_flows(result):
    for pick in (result.series, result.gauges, result.frames, result.events):
        assert set(pick("tcp-call")["flow"].to_list()) <= {"tcp-call"}
    assert set(result.gauges("upload", "cwnd")["gauge"].to_list()) == {"cwnd"}
    assert set(result.link_series("sky")["link"].to_list()) == {"sky"}


def test_a_gauge_of_a_saved_run_is_read_without_the_others(result, tmp_path):
    saved = talkspurt.load(result.save(tmp_path / "out", report=False))
    whole = result.table("gauges")
    names = [*whole["gauge"].unique(), "no such gauge"]
    assert len(names) > 4
    for name in names:
        assert saved.gauges(gauge=name).equals(whole.filter(gauge=name)), name
        assert saved.gauges("upload", name).equals(whole.filter(gauge=name, flow="upload")), name
    assert "gauges" not in saved._tables
    with pytest.raises(KeyError, match="no flow 'nobody'"):
        saved.gauges("nobody", "cwnd")


def test_asking_for_what_is_not_there_says_what_is(result):
    with pytest.raises(KeyError, match="upload"):
        result.series("uplaod")
    with pytest.raises(KeyError, match="sky"):
        result.link_series("skye")
    with pytest.raises(KeyError, match="flows"):
        result.table("flow")
    with pytest.raises(KeyError, match="no speech"):
        result.audio("upload")
    with pytest.raises(KeyError, match=r"record\.packets"):
        result.packets()
    with pytest.raises(KeyError, match="histogram"):
        result.figure("histogram")


def test_packets_are_recorded_when_asked_for(folder):
    run = talkspurt.run(folder / "small.toml", set={"record.packets": True})
    packets = run.packets("call")
    assert packets.height > 100
    crossed = packets.filter(fate="received").drop_nulls(["dequeued_s", "received_s"])
    # 120 ms of propagation and the time the packet takes at 256 kbit/s.
    took = (crossed["received_s"] - crossed["dequeued_s"]).to_numpy()
    sent = crossed["ip_bytes"].to_numpy() * 8 / 256e3
    assert np.all(np.isclose(took, 0.12 + sent, atol=1e-6) | np.isclose(took, 0.12, atol=1e-6))


def test_what_was_heard_is_as_long_as_what_was_said(result):
    for call in result.calls:
        audio = result.audio(call)
        assert audio.rate == 8000
        assert audio.sent.dtype == np.int16
        assert audio.sent.shape == audio.received.shape
        assert audio.duration_s == pytest.approx(4.0, abs=0.1)
        assert np.abs(audio.sent).max() > 4000


def test_recordings_are_saved_as_wav_and_read_back(result, tmp_path):
    import wave

    audio = result.audio("call")
    sent, received = audio.save(tmp_path)
    for file, samples in ((sent, audio.sent), (received, audio.received)):
        with wave.open(str(file)) as read:
            assert (read.getnchannels(), read.getsampwidth(), read.getframerate()) == (1, 2, 8000)
            assert read.readframes(read.getnframes()) == samples.tobytes()


def test_the_json_document_is_plain_and_complete(result):
    document = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert set(document) == {"scenario", "seed", "duration_s", "digest", "hops", "flows", "links"}
    assert (document["scenario"], document["seed"], document["duration_s"]) == ("small", 3, 4.0)
    asked = (
        "transport generated_packets sent_packets received_packets lost_packets in_flight_packets "
        "goodput_bps delay_mean_s delay_p50_s delay_p95_s delay_max_s mouth_to_ear_p50_s jitter_s "
        "late_packets r_factor mos mouth_to_ear_mean_s"
    )
    for flow in document["flows"].values():
        assert set(asked.split()) <= set(flow)
    assert document["flows"]["upload"]["mos"] is None
    for link in document["links"].values():
        assert {"utilisation", "drops", "queue_mean_packets"} <= set(link)


def test_a_call_without_a_recording_is_a_call_that_nobody_hears(silent):
    assert silent.calls == ["call", "tcp-call"]
    assert silent.heard == ["tcp-call"]
    assert silent.frames("call").height > 190
    assert silent.flows.filter(name="call")["r_factor"][0] is not None
    with pytest.raises(KeyError, match="without a file; those that can be heard: tcp-call"):
        silent.audio("call")


def test_layers_add_up_to_the_bytes_sent(result):
    flows = result.to_json()["flows"]
    for flow in flows.values():
        layers = [flow[name] for name in BYTES]
        assert sum(layers) == flow["sent_bytes"] > 0
    # 160 bytes of G.711, RTP 12 (RFC 3550 §5.1), UDP 8 (RFC 768), IPv4 20 (RFC 791 §3.1).
    packets = flows["call"]["sent_packets"]
    assert [flows["call"][name] / packets for name in BYTES] == [160, 12, 8, 20]


def test_appendix_i_holds_speech_back(folder):
    def ear(concealment):
        changes = {"flows.call.playout.concealment": concealment}
        run = talkspurt.run(folder / "small.toml", set=changes)
        return run.flows.filter(name="call")["mouth_to_ear_p50_s"][0]

    # G.711 Appendix I §I.2.1: a delay of 30 samples, for the overlap-add at a loss.
    assert ear("g711-appendix-i") - ear("silence") == pytest.approx(30 / 8000)
    assert "3.75 ms" in column("mouth_to_ear_mean_s").meaning


def test_progress_grows_to_the_end(folder):
    seen = []
    talkspurt.run(folder / "small.toml", progress=seen.append)
    fractions = [progress.fraction for progress in seen]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    assert seen[-1].finished == seen[-1].total == 1


def test_an_interrupt_stops_the_run(folder):
    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        talkspurt.run(folder / "small.toml", set={"duration": "3h"}, progress=interrupt)


def test_notebooks_get_tables_and_players(result, silent, study):
    assert "tcp-call" in silent._repr_html_()
    assert "<table>" in result._repr_html_()
    assert "tcp-call" in result._repr_html_()
    assert "±" in study._repr_html_()
    assert result.audio("call")._repr_html_().count("<audio controls") == 2


def test_captures_live_as_long_as_their_result_and_are_saved_with_it(folder, tmp_path):
    from pathlib import Path

    run = talkspurt.run(folder / "small.toml", set={"record.pcapng": ["sky"]})
    scratch = Path(run._written)
    place = run.save(tmp_path / "out", report=False)
    assert (place / "sky.pcapng").stat().st_size > 10_000
    assert scratch.exists()
    del run
    assert not scratch.exists()


def test_words_for_a_result_and_its_sound_are_short(result):
    assert len(repr(result)) < 500
    assert len(repr(result.audio("call"))) < 100


def test_a_ladder_is_heard_changing_codec():
    source = speech(ladder='["pcmu", "g726-32", "g726-16"]', file=str(SPEECH))
    call = flow_text("call", "a>b", TOKENS, source, playout='{ buffer = "400ms" }')
    link = link_text("l", "a>b", "2Mbit/s", "20ms", 50)
    ladder = talkspurt.run(scenario_text("Ladder", "12s", link, call))
    assert len(set(ladder.frames("call")["encoding"])) > 1
    fates = ladder.frames("call")["fate"].value_counts().rows()
    assert dict(fates).get("played", 0) > 0.9 * sum(count for _, count in fates)
    audio = ladder.audio("call")
    sent, received = (x.astype(float) for x in (audio.sent, audio.received))
    # The codecs are waveform coders: what is heard is what was said, less their noise.
    assert np.corrcoef(sent, received)[0, 1] > 0.95
