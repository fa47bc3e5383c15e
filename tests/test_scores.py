"""Scores of the sound: PESQ, ViSQOL and PLCMOS through Result.scores and the command line."""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import talkspurt
from command import output, refused, succeed
from command import talkspurt as command
from conftest import write_wav
from talkspurt import scores
from talkspurt._commands.entry import _in_full
from talkspurt.errors import BadInputError, MissingExtraError
from talkspurt.figures import charts
from talkspurt.results.audio import Audio, read_wav
from talkspurt.runs import scoring
from talkspurt.scores import aligning, models, saying
from texts import UDP, axis_text, flow_text, link_text, scenario_text

SPEECH = Path(__file__).parents[1] / "speech"
BEST = {"pesq_wb": 4.644, "pesq_nb": 4.549}
"""The end of the mappings of P.862.2 and P.862.1 for the raw score 4.5 of equal signals."""


def text(file, loss=0.0, delay="20ms", codec="g722", playout="fixed", duration="5s"):
    link = link_text("l", "a>b", "1Mbit/s", delay, loss=loss)
    source = f'{{ kind = "speech", file = "{file}", codec = "{codec}" }}'
    call = flow_text("call", "a>b", UDP, source, playout=f'{{ kind = "{playout}" }}')
    return scenario_text("Scored", duration, link, call, seed=4)


def call(more="", **values):
    """A short call: the time that ViSQOL takes grows with the square of the length."""
    return talkspurt.run(text(SPEECH / "english-man.wav", **values) + more)


def whole(result):
    (row,) = result.scores.filter(pl.col("segment").is_null()).to_dicts()
    return row


def speech(name="english-man", seconds=None):
    pcm, rate, _ = read_wav(SPEECH / f"{name}.wav")
    samples = np.frombuffer(pcm, dtype="<i2")
    return samples[: seconds and seconds * rate], rate


def clip(sent, received, rate=16_000):
    return Audio("clip", sent.tobytes(), received.tobytes(), rate)


def test_equal_signals_score_at_the_top():
    """PESQ of equal signals is the end of its mapping; the others know no better clip than it."""
    samples, _ = speech(seconds=5)
    found = scores.rate(clip(samples, samples))
    assert found["pesq_wb"] == pytest.approx(BEST["pesq_wb"], abs=1e-3)
    assert found["pesq_nb"] is None and found["reason"] is None
    narrow = samples[::2].copy()
    assert scores.rate(clip(narrow, narrow, 8_000))["pesq_nb"] == pytest.approx(
        BEST["pesq_nb"], abs=1e-3
    )
    rng = np.random.default_rng(1)
    lossy = samples.copy()
    for place in rng.choice(len(samples) // 320, 25, replace=False):
        lossy[place * 320 : (place + 1) * 320] = 0
    worse = scores.rate(clip(samples, lossy))
    for column in ("pesq_wb", "visqol", "plcmos"):
        assert worse[column] < found[column] - 0.3, column


def test_the_models_are_those_of_their_packages():
    """Against a call of each package by itself, for a damaged clip."""
    from pesq import pesq
    from visqol import VisqolApi

    samples, rate = speech("french-woman", 5)
    noisy = samples + np.random.default_rng(2).normal(0, 300, len(samples)).astype(np.int16)
    found = scores.rate(clip(samples, noisy))
    assert found["pesq_wb"] == pytest.approx(pesq(rate, samples, noisy, "wb"), abs=0.01)
    api = VisqolApi()
    api.create(mode="speech", use_lattice_model=True)
    asked = api.measure_from_arrays(samples / 32768, noisy / 32768, rate)
    assert found["visqol"] == pytest.approx(asked.moslqo, abs=1e-6)
    # PLCMOS draws its listeners at random: fifteen of them agree within a few hundredths.
    features, session, _ = models._plcmos_session()
    spectra = features(noisy / 32768).astype(np.float32)[None, None]
    others = np.random.default_rng(9).normal(size=(15, 1, 64)).astype(np.float32)
    heard = [session.run(None, {"degraded_audio": spectra, "rater_embed": it}) for it in others]
    assert found["plcmos"] == pytest.approx(float(np.mean(heard)), abs=0.15)


FIVE_SECONDS = '[measure]\nto = "5s"\n'


@pytest.fixture(scope="module")
def lossless():
    return call(duration="5.5s", more=FIVE_SECONDS)


def test_more_loss_scores_lower(lossless):
    rows = [whole(lossless), whole(call(loss=0.05)), whole(call(loss=0.25))]
    for column in ("pesq_wb", "visqol", "plcmos"):
        falling = [row[column] for row in rows]
        assert falling == sorted(falling, reverse=True), (column, falling)
        assert falling[0] - falling[-1] > 0.5, (column, falling)


def test_delay_alone_changes_no_score(lossless):
    """Half a second more, before an echo would be counted: only the E-model knows."""
    far = call(delay="500ms", duration="6.5s", more=FIVE_SECONDS)
    for column in ("pesq_wb", "visqol", "plcmos"):
        assert whole(far)[column] == pytest.approx(whole(lossless)[column], abs=0.02), column
    assert far.flows["mouth_to_ear_p50_s"][0] > lossless.flows["mouth_to_ear_p50_s"][0] + 0.4


def test_the_table_has_the_call_and_its_segments(lossless):
    table = lossless.scores
    assert table.columns == [
        "flow", "segment", "start_s", "duration_s", "judged_segments", "speech_segments",
        "pesq_nb", "pesq_wb", "visqol", "plcmos", "reason",
    ]  # fmt: skip
    assert table["segment"].to_list() == [None, 0]
    assert lossless.scores is table, "computed once"
    captured = lossless.frames("call")["captured_s"][0]
    assert table["start_s"].to_list() == [captured, captured]
    assert table["pesq_nb"].null_count() == 2 and table["reason"].null_count() == 2


def test_segments_are_of_eight_seconds_and_a_short_rest_joins_the_last():
    rate = 100
    for seconds, ends in ((3, [3]), (9, [9]), (11.9, [11.9]), (12, [8, 12]), (26, [8, 16, 26])):
        found = scores.segments(round(seconds * rate), rate)
        assert [end / rate for _, end in found] == ends
        assert all(end == start for (_, end), (start, _) in itertools.pairwise(found))
    assert scores.segments(0, rate) == []


def test_three_segments_are_the_middles_of_equal_parts():
    assert [*scores.chosen([0, 1, 2], "three")] == [0, 1, 2]
    assert [*scores.chosen(range(7), "three")] == [1, 3, 5]
    assert [*scores.chosen([4, 5, 6, 9], "three")] == [4, 6, 9]
    assert [*scores.chosen(range(300), "three")] == [50, 150, 250]
    assert [*scores.chosen(range(7), "all")] == [*range(7)]


@pytest.fixture
def short_segments(monkeypatch):
    monkeypatch.setattr(scores, "SEGMENT_S", 3.0)
    monkeypatch.setattr(scores, "REST_S", 1.5)


@pytest.fixture
def long_call(tmp_path, short_segments):
    """Of six segments of 3 s, nothing is said in the second and third."""
    samples, rate = speech("spanish-woman")
    parts = (samples[: 3 * rate], np.zeros(6 * rate, dtype=np.int16), samples[: 9 * rate])
    write_wav(tmp_path / "long.wav", np.concatenate(parts).tobytes(), rate)
    (tmp_path / "long.toml").write_text(text("long.wav", loss=0.1, duration="18.2s"))
    return talkspurt.run(tmp_path / "long.toml")


def test_a_call_is_the_mean_of_its_segments(long_call, tmp_path):
    """By default of three of those with speech; what is saved is not taken for all of them."""
    three = long_call.scores.to_dicts()
    place = long_call.save(tmp_path / "three", report=False)
    assert talkspurt.load(place).score() is not None
    every = talkspurt.load(place).score("all").to_dicts()
    for (first, *segments), judged in ((three, [0, 4, 5]), (every, [0, 3, 4, 5])):
        said = [row for row in segments if row["reason"] is None]
        assert [row["segment"] for row in said] == judged
        assert (first["judged_segments"], first["speech_segments"]) == (len(judged), 4)
        for column in ("pesq_wb", "visqol", "plcmos"):
            assert first[column] == pytest.approx(np.mean([row[column] for row in said]))
        silent = [row for row in segments if row["reason"] is not None]
        assert [(row["segment"], row["reason"]) for row in silent] == [(1, SILENCE), (2, SILENCE)]
    assert [row for row in every if row["segment"] != 3][1:] == three[1:]
    found = scores.document(long_call)["call"]
    assert (found["judged_segments"], found["speech_segments"]) == (3, 4)
    assert saying.judged([long_call]) == (
        "Judged: 3 of 4 segments of 3 s; --scores=all judges all."
    )
    long_call.score("all")
    assert saying.judged([long_call]) == "Judged: 4 of 4 segments of 3 s."
    assert long_call.score("three")["judged_segments"][0] == 4, "more is not computed again"


def test_the_chart_of_segments_has_gaps(long_call):
    long_call.score()
    (chart,) = [one for one in charts.of_result(long_call)[0] if one["name"] == "pesq"]
    (line,) = chart["panels"][0]["lines"]
    values = dict(zip(line["x"], line["values"], strict=True))
    at = long_call.scores["start_s"][0]
    for time, there in ((2, True), (7.5, False), (11, False), (14, True), (17, True)):
        # A step has the value of its end.
        end = min(x for x in values if x >= at + time)
        assert (values[end] is not None) is there, time


SILENCE = "nothing is said in the reference"


def test_silence_and_short_clips_have_no_score_and_a_reason():
    samples, _ = speech()
    nothing = np.zeros_like(samples)
    cases = (
        (nothing, samples, SILENCE),
        (samples[:8000], samples[:8000], "shorter than 1 s"),
        (np.concatenate([samples[:12000], nothing]), nothing, "less than 1 s of speech"),
    )
    for sent, received, reason in cases:
        found = scores.rate(clip(sent, received))
        assert found["reason"] == reason
        assert all(found[column] is None for column in scores.COLUMNS)


def test_a_call_of_which_nothing_is_heard_is_not_left_out():
    """Without a score, a mean over runs would be better the more calls fail completely."""
    samples, _ = speech()
    found = scores.rate(clip(samples, np.zeros_like(samples)))
    assert (found["pesq_wb"], found["visqol"], found["plcmos"]) == (1.0, 1.0, 1.0)
    assert "nothing was heard" in found["reason"]


def test_a_pause_of_the_speaker_takes_up_a_change_of_delay():
    """By construction: the second half is 180 ms later, as after a growing buffer."""
    rate = 8000
    rng = np.random.default_rng(3)
    word = lambda: rng.normal(0, 4000, rate).astype(np.int16)  # noqa: E731
    pause = np.zeros(rate, dtype=np.int16)
    sent = np.concatenate([word(), pause, word(), pause, word()])
    late, early = round(0.18 * rate), round(0.05 * rate)
    received = np.concatenate(
        [sent[: 2 * rate], np.zeros(late, dtype=np.int16), sent[2 * rate : 3 * rate + 100],
         sent[3 * rate + 100 + early :]]
    )  # fmt: skip
    begins = np.arange(0, 5, 0.02)
    moved = np.where(begins < 1.5, 0.0, np.where(begins < 3.5, 0.18, 0.13))
    found = aligning.undone(sent, received, rate, begins, moved)
    assert np.array_equal(found, sent)


def test_a_change_within_speech_is_heard():
    """Nothing is removed where something is said: the words until the next pause stay late."""
    rate = 8000
    rng = np.random.default_rng(3)
    word = rng.normal(0, 4000, 2 * rate).astype(np.int16)
    pause = np.zeros(rate, dtype=np.int16)
    sent = np.concatenate([word, pause, word])
    gap = np.zeros(800, dtype=np.int16)
    received = np.concatenate([sent[:rate], gap, sent[rate:]])
    begins = np.arange(0, 5, 0.02)
    found = aligning.undone(sent, received, rate, begins, np.where(begins < 1.0, 0.0, 0.1))
    assert np.array_equal(found[: 2 * rate], received[: 2 * rate])
    assert np.array_equal(found[3 * rate :], sent[3 * rate :])


def test_an_adaptive_buffer_that_grows_in_a_pause_costs_little(tmp_path):
    """The delay grows by 180 ms in a pause of 1.2 s: against the same call without the step."""
    samples, rate = speech("french-woman")
    silence = np.zeros(round(1.2 * rate), dtype=np.int16)
    both = np.concatenate([samples[: 5 * rate], silence, samples[5 * rate : 10 * rate]])
    write_wav(tmp_path / "two.wav", both.tobytes(), rate)
    steps = axis_text("links.l.steps", '[[], [{ at = "5.3s", delay = "200ms" }]]')
    moving = text("two.wav", playout="adaptive", duration="13s")
    (tmp_path / "two.toml").write_text(moving + steps)
    plain, moved = talkspurt.run(tmp_path / "two.toml", study=True).runs
    frames = moved.frames("call")
    delay = (frames["playout_s"] - frames["captured_s"]).drop_nulls()
    assert delay.max() - delay.min() > 0.15, "the buffer did follow the delay"
    # Until the buffer changes its delay within speech, at 7.4 s, nothing can be heard of the step.
    step = 7 * rate
    quality = []
    for run in (plain, moved):
        found = aligning.aligned(run, "call")
        assert len(found.sent) == len(found.received)
        quality.append(models.score("pesq", found.sent[:step], found.received[:step], rate))
    assert quality[1] == pytest.approx(quality[0], abs=0.05)
    # Without alignment, the step would be taken for a distortion.
    unaligned = moved.audio("call").received[:step]
    assert models.score("visqol", found.sent[:step], unaligned, rate) < models.score(
        "visqol", found.sent[:step], found.received[:step], rate
    )


def test_frames_captured_outside_the_window_are_not_judged():
    run = call(duration="10s", more='[measure]\nfrom = "2s"\nto = "7s"\n')
    row = whole(run)
    assert row["start_s"] == pytest.approx(2.0, abs=0.02)
    assert row["duration_s"] == pytest.approx(5.0, abs=0.02)


def test_contradicting_scores_are_reported():
    assert scores.disagreement({"pesq": 3.0, "visqol": 3.6, "plcmos": 3.7}) is None
    assert scores.disagreement({"pesq": 3.0, "visqol": None, "plcmos": None}) is None
    said = scores.disagreement({"pesq": 2.0, "visqol": 3.0, "plcmos": 4.5})
    assert said == "PLCMOS says 4.50 and PESQ 2.00"
    row = saying.Row((), "call", "call", {"pesq": 2.0, "visqol": 3.0, "plcmos": 4.5}, [])
    fine = saying.Row((), "other", "other", {"pesq": 3.0, "visqol": 3.0, "plcmos": 3.5}, [])
    assert saying.apart([fine]) == []
    assert saying.apart([row, fine]) == [
        "call: PLCMOS says 4.50 and PESQ 2.00. They differ by more than 0.7: quote neither alone."
    ]
    assert saying.apart([row, row])[0].startswith("In 2 of 2 rows, scores differ by more than 0.7")


def test_each_model_says_what_it_measures_and_what_it_misses():
    for one in scores.MODELS.values():
        for sentence in (one.meaning, one.misses):
            assert sentence.endswith(".") and ". " not in sentence, one.name


@pytest.fixture
def blocked(monkeypatch):
    monkeypatch.setitem(sys.modules, "pesq", None)


def test_a_missing_extra_is_one_error_with_the_remedy(blocked, lossless):
    with pytest.raises(MissingExtraError, match=r"pip install 'talkspurt\[scores\]'") as error:
        models.check()
    assert isinstance(error.value, BadInputError) and isinstance(error.value, ImportError)
    assert "pesq" in str(error.value) and "visqol" not in str(error.value)
    with pytest.raises(MissingExtraError):
        _ = call(delay="1ms", duration="1s").scores


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    place = tmp_path_factory.mktemp("scored")
    samples, rate = speech()
    write_wav(place / "speech.wav", samples[: 4 * rate].tobytes(), rate)
    (place / "run.toml").write_text(text("speech.wav", loss=0.1))
    axis = axis_text("links.l.loss", "[0.02, 0.3]", name="loss")
    study = text("speech.wav", loss=0.1) + axis + "[replications]\ncount = 2\n"
    (place / "study.toml").write_text(study)
    return place


def test_without_the_extra_no_run_starts(saved):
    """In a process in which onnxruntime cannot be imported."""
    (saved / "without").mkdir()
    (saved / "without" / "sitecustomize.py").write_text(
        "import sys\nsys.modules['onnxruntime'] = None\n"
    )
    env = {"PYTHONPATH": str(saved / "without")}
    done = refused("run", "run.toml", "--scores", "-o", "none", cwd=saved, env=env)
    assert done.stderr == (
        "talkspurt: scores need onnxruntime, not installed: pip install 'talkspurt[scores]'\n"
    )
    assert not (saved / "none").exists() and done.stdout == ""
    # Without --scores the extra is not needed.
    assert command("run", "run.toml", "--json", cwd=saved, env=env).returncode == 0


def test_a_run_without_a_recording_cannot_be_scored(saved):
    (saved / "mute.toml").write_text(
        (saved / "run.toml").read_text().replace('file = "speech.wav", ', "")
    )
    done = refused("run", "mute.toml", "--scores", cwd=saved)
    assert done.stderr.startswith("talkspurt: --scores: no flow has a recording")
    assert done.stderr.count("\n") == 1


def test_how_many_segments_is_three_or_all(saved):
    done = refused("run", "run.toml", "--scores=none-such", cwd=saved)
    assert done.stderr == "talkspurt: run: --scores none-such: expected one of three, all\n"
    # The word behind it is not its value.
    mute = refused("run", "--scores", "none-such.toml", cwd=saved)
    assert "none-such.toml" in mute.stderr and "--scores" not in mute.stderr
    assert _in_full(["run", "--scores", "a.toml", "--", "--scores"]) == [
        "run", "--scores=three", "a.toml", "--", "--scores",
    ]  # fmt: skip
    assert _in_full(["run", "a.toml", "--scores"])[-1] == "--scores=three"
    assert _in_full(["run", "--scores", "all", "a.toml"])[1:3] == ["--scores", "all"]
    shown = succeed("run", "--help", cwd=saved, env={"COLUMNS": "80"}).stdout
    assert "[choices: three, all]" in " ".join(shown.replace("│", " ").split())


def test_workers_compute_what_this_process_computes(saved):
    """The study has eight calls, which the command gives to two processes."""
    succeed("run", "study.toml", "--scores=all", "--jobs", "2", "-o", "two", cwd=saved)
    for run in talkspurt.load(saved / "two", study=True).runs[:2]:
        assert run.scores.equals(scores.table(run, "all"))


def test_the_end_of_a_worker_is_an_error(lossless):
    with scoring._workers(1) as free:
        free[0].process.kill()
        with pytest.raises(talkspurt.RunError, match="a process that computed scores ended"):
            scoring._Scoring(free, scores.prepared(lossless, "call")).wait(30.0)


def test_without_a_place_for_compiled_code_values_are_the_same(lossless):
    program = (
        "import sys, talkspurt; print(talkspurt.load(sys.argv[1]).scores['visqol'][0])\n"
        "from visqol.numba_accel import has_numba; import numba; print(has_numba())"
    )
    with tempfile.TemporaryDirectory() as place:
        folder = lossless.save(Path(place) / "run", report=False)
        (folder / "scores.parquet").unlink(missing_ok=True)
        # numba raises the same error as for want of a directory.
        env = {"NUMBA_CACHE_LOCATOR_CLASSES": "None_such"}
        found = output(sys.executable, "-c", program, str(folder), env=env).split()
    assert found == [str(whole(lossless)["visqol"]), "False"]


def test_the_command_prints_saves_and_draws_scores(saved):
    done = succeed("run", "run.toml", "--scores", "-o", "out", cwd=saved, env={"COLUMNS": "80"})
    assert "XNNPACK" not in done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    head = lines.index("Scores of the sound") + 1
    assert lines[head].split() == ["call", "PESQ", "ViSQOL", "PLCMOS"]
    assert "Judged: 1 of 1 segments of 8 s." in lines
    for label in ("PESQ (wideband)", "ViSQOL", "PLCMOS"):
        assert any(line.startswith(f"{label} ") for line in lines[head + 1 :]), label
    kept = pl.read_parquet(saved / "out" / "scores.parquet")
    shown = lines[head + 2].split()
    assert shown[1:] == [f"{kept[column][0]:.2f}" for column in ("pesq_wb", "visqol", "plcmos")]
    page = (saved / "out" / "report.html").read_text()
    assert '<section id="sound">' in page and "without a trace" in page
    assert "Judged: 1 of 1 segments of 8 s." in page
    # The E-model has no score of this codec: the estimate is shown, and why.
    assert "estimated MOS" in page and "G.113 Appendix I has no Ie" in page
    loaded = talkspurt.load(saved / "out")
    assert loaded.is_scored and loaded.scores.equals(kept)
    asked = command("metrics", "out", "pesq", cwd=saved).stdout.splitlines()
    assert asked[0] == "flow,value"
    assert float(asked[1].split(",")[1]) == pytest.approx(kept["pesq_wb"][0])


def test_json_has_scores_only_if_asked(saved):
    plain = json.loads(command("run", "run.toml", "--json", cwd=saved).stdout)
    assert "scores" not in plain
    assert plain["flows"]["call"]["r_factor"] is None
    assert plain["flows"]["call"]["quality_note"].startswith("no score: ")
    scored = json.loads(command("run", "run.toml", "--json", "--scores", cwd=saved).stdout)
    found = scored["scores"]["call"]
    assert found["pesq_nb"] is None and 1 < found["pesq_wb"] < 4.65
    (segment,) = found["segments"]
    assert segment["segment"] == 0 and segment["visqol"] == found["visqol"]
    assert found["judged_segments"] == 1 and "judged_segments" not in segment
    assert scored["digest"] == plain["digest"]


def test_studies_have_means_with_intervals(saved):
    done = succeed("run", "study.toml", "--scores", "-o", "study", cwd=saved, env={"COLUMNS": "80"})
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "Scores of the sound" in done.stdout
    study = talkspurt.load(saved / "study", study=True)
    assert study.is_scored
    rows = {
        (row["axis.loss"], row["measure"]): row
        for row in study.summary(["pesq", "visqol", "plcmos"]).to_dicts()
    }
    for model, column in (("pesq", "pesq_wb"), ("visqol", "visqol"), ("plcmos", "plcmos")):
        low, high = rows[0.02, model], rows[0.3, model]
        assert low["mean"] > high["mean"] + 0.3, model
        values = [whole(run)[column] for run in study.select(loss="0.02")]
        assert low["mean"] == pytest.approx(np.mean(values))
        # Student's interval from two values: mean ± 12.706 · |a − b| / 2.
        half = 12.7062 * abs(values[0] - values[1]) / 2
        assert low["high"] - low["mean"] == pytest.approx(half, rel=1e-4)
    saved_rows = pl.read_parquet(saved / "study" / "summary.parquet")
    assert {"pesq", "visqol", "plcmos"} <= set(saved_rows["measure"])
    differences = pl.read_parquet(saved / "study" / "differences-loss.parquet")
    assert "pesq" in differences["measure"]
    assert pl.read_parquet(saved / "study" / "scores.parquet").height == 8
    page = (saved / "study" / "report.html").read_text()
    assert '<section id="sound">' in page


def test_nothing_of_the_extra_is_imported_without_need(saved):
    program = (
        "import sys, talkspurt; talkspurt.run(sys.argv[1]).to_json(); "
        "print([m for m in ('pesq', 'visqol', 'speechmos', 'onnxruntime') if m in sys.modules])"
    )
    words = [sys.executable, "-c", program, str(saved / "run.toml")]
    done = output(*words)
    assert done == "[]\n"
