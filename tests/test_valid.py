"""The loader of results: it takes whatever the engine can write, and rows, runs, names and values that
are missing or there twice are damage."""

import json
import shutil

import polars as pl
import pytest

import talkspurt
from captures import media, written
from command import succeed
from command import talkspurt as command
from conftest import fault
from talkspurt import import_trace as imported
from talkspurt.errors import StoreError
from texts import cbr, flow_text, link_text, scenario_text

SCENARIO = scenario_text(
    "small",
    "1s",
    link_text("sky", "a>b", "1Mbit/s", "20ms", 50),
    flow_text("call", "a>b"),
    flow_text("data", "a>b", '{ kind = "tcp", controller = "cubic" }', cbr("100kbit/s", "500B")),
    record="{ packets = true }",
)
STUDY = """
[[axes]]
path = "links.sky.delay"
values = ["20ms", "30ms"]
[replications]
count = 2
"""
DESIGN = """
[design]
kind = "latin_hypercube"
samples = 5
[[design.factors]]
path = "links.sky.queue.packets"
min = 10
max = 11
[[design.factors]]
path = "flows.call.source.codec"
values = ["pcmu", "g729"]
[replications]
count = 2
"""
FIRST = "runs/0000-20ms-r0"


@pytest.mark.parametrize(
    "value",
    [
        "links.sky.rate = 10000000Gbit/s",
        "links.sky.rate = 9223372036854775807bit/s",
        "links.sky.queue = { kind = 'droptail', bytes = '10000000000GB' }",
        "links.sky.queue = { kind = 'shaper', rate = '1Mbit/s', burst = '10000000000GB', "
        "queue = { kind = 'droptail', packets = 50 } }",
        "flows.data.transport.initial_ssthresh = 4294967295",
    ],
)
def test_what_the_engine_accepts_is_not_damaged(tmp_path, value):
    path, setting = value.split(" = ", 1)
    run = talkspurt.run(SCENARIO, set={path: setting})
    again = talkspurt.load(run.save(tmp_path / "run"))
    for table in ("flows", "links", "series", "link_series", "gauges"):
        assert again.table(table).equals(run.table(table)), table
    again.report(tmp_path / "report.html")


def test_a_study_over_rates_beyond_floats_and_over_equal_delays_is_not_damaged(tmp_path):
    axes = """
    [[axes]]
    path = "links.sky.rate"
    values = ["1Mbit/s", "10000000Gbit/s"]
    [[axes]]
    path = "links.sky.delay"
    values = ["20ms", "0.02s"]
    """
    place = tmp_path / "study"
    (tmp_path / "study.toml").write_text(SCENARIO + axes)
    assert command("run", tmp_path / "study.toml", "--out", place, "--no-report").returncode == 0
    study = talkspurt.load(place, study=True)
    shown = [(row["axis.rate"], row["axis.delay"]) for row in study.rows(study.summary(["mos"]))]
    assert set(shown) == {(r, d) for r in ("1Mbit/s", "10000000Gbit/s") for d in ("20ms", "0.02s")}


def test_designs_with_equal_points_and_imports_are_whole(tmp_path):
    study = talkspurt.run(SCENARIO + DESIGN, study=True)
    settings = [tuple(run.settings.items()) for run in study.runs]
    assert len(set(settings)) < len(settings) / 2
    assert len(talkspurt.load(study.save(tmp_path / "design"), study=True).runs) == 10
    call = written(tmp_path / "call.pcap", [(i / 50, media(i, 160 * i)) for i in range(50)])
    assert not talkspurt.load(imported([call]).save(tmp_path / "call")).flows.is_empty()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return talkspurt.run(SCENARIO + STUDY, study=True).save(tmp_path_factory.mktemp("valid") / "st")


def manifest(change):
    def harm(place):
        found = json.loads((place / "manifest.json").read_text())
        change(found)
        (place / "manifest.json").write_text(json.dumps(found))

    return harm


def axis(**changed):
    return manifest(lambda found: found["axes"][0].update(changed))


def second_run(place):
    """The second run's tables become those of the first."""
    shutil.rmtree(place / "runs/0001-20ms-r1")
    shutil.copytree(place / FIRST, place / "runs/0001-20ms-r1")


def settings(place):
    """Both replications of a setting become those of the other."""
    for folder in (place / "runs").glob("*-30ms-*"):
        manifest(lambda found: found["settings"].update(delay="20ms"))(folder)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (manifest(lambda found: found["runs"].pop()), "3 runs, and its axes and replications 4"),
        (manifest(lambda found: found.update(runs=found["runs"][:1])), "it has 1 runs"),
        (manifest(lambda found: found["runs"].append(found["runs"][0])), "two runs are the same"),
        (manifest(lambda found: found.update(replications=3)), "replications 6"),
        (manifest(lambda found: found.update(replications=0)), "'replications'"),
        (second_run, "a run is there twice, and another is missing"),
        (settings, "a run is there twice, and another is missing"),
        (axis(labels=["20ms", "30ms", "40ms"], numbers=[0.02, 0.03, 0.04]), "replications 6"),
        (axis(labels=["20ms", "20ms"]), "two values of the axis 'delay' are the same"),
        (axis(numbers=[]), "has other numbers than labels"),
        (manifest(lambda found: found["axes"].append(found["axes"][0])), "two axes are the same"),
        (manifest(lambda found: found.update(title="\ud800")), "half of a surrogate pair"),
        (manifest(lambda found: found["set"].update({"\udfff": "x"})), "half of a surrogate pair"),
    ],
)
def test_a_study_whose_runs_or_axes_are_not_whole_is_damaged(saved, tmp_path, harm, said):
    place = shutil.copytree(saved, tmp_path / "st")
    harm(place)
    with pytest.raises(StoreError, match=said):
        talkspurt.load(place)


def test_a_text_with_a_whole_surrogate_pair_is_not_damaged(saved, tmp_path):
    place = shutil.copytree(saved, tmp_path / "st")
    manifest(lambda found: found.update(title="\U0001f600 \\ud800"))(place)
    assert "\\ud83d" in (place / "manifest.json").read_text()
    assert talkspurt.load(place, study=True).title == "\U0001f600 \\ud800"


def twice(frame):
    return pl.concat([frame[:1], frame])


def null(column):
    return lambda frame: pl.concat([frame[:1], frame[1:].with_columns(pl.lit(None).alias(column))])


def value(column, number):
    changed = pl.Series([number], dtype=pl.Float64)
    return lambda frame: frame.with_columns(pl.concat([changed, frame[column][1:]]).alias(column))


@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize(
    ("table", "harm", "said"),
    [
        ("flows", lambda frame: frame.clear(), "'call' has no row"),
        ("flows", lambda frame: frame[1:], "'call' has no row"),
        ("flows", twice, "two rows have the same name"),
        ("links", lambda frame: frame[2:], None),
        ("links", twice, "two rows have the same name"),
        ("links", value("utilisation", 1.01), "'utilisation' has a value outside of 0 to 1"),
        ("series", twice, "two rows have the same flow and time_s"),
        ("link_series", twice, "two rows have the same link and time_s"),
        ("link_series", value("utilisation", 1.01), "'utilisation' has a value outside"),
        ("frames", lambda frame: pl.concat([frame, frame[7:8]]), "the same flow and index"),
        ("frames", null("captured_s"), "'captured_s' has a row without a value"),
        ("packets", null("fate"), "'fate' has a row without a value"),
    ],
)
def test_rows_that_are_missing_or_there_twice_are_damage(saved, tmp_path, table, harm, said, runs):
    place = shutil.copytree(saved, tmp_path / "st")
    file = place / FIRST / f"{table}.parquet"
    harm(pl.read_parquet(file)).write_parquet(file)
    found = talkspurt.load(place, study=True) if runs > 1 else talkspurt.load(place / FIRST)
    if said is None:
        assert found.table(table).is_empty() == (runs == 1)
        return
    with fault(file, said):
        found.table(table)


@pytest.mark.parametrize(
    ("table", "column", "words"),
    [
        ("flows", "damaged_packets", ("report",)),
        ("flows", "late_packets", ("metrics", "--table")),
        ("links", "queue_mean_packets", ("report",)),
        ("packets", "ip_bytes", ("metrics", "--table")),
        ("gauges", "gauge", ("metrics", "gauges.cwnd")),
    ],
)
def test_a_column_without_values_ends_in_no_traceback(saved, tmp_path, table, column, words):
    place = shutil.copytree(saved / FIRST, tmp_path / "run")
    file = place / f"{table}.parquet"
    frame = pl.read_parquet(file)
    assert frame[column].drop_nulls().len()
    frame.with_columns(pl.lit(None, frame.schema[column]).alias(column)).write_parquet(file)
    done = command(words[0], place, *words[1:])
    is_key = table == "gauges"
    assert "Traceback" not in done.stderr and done.returncode == is_key, done.stderr
    assert ("is damaged: " in done.stderr) == is_key


def test_rows_in_another_order_are_not_damage(saved, tmp_path):
    place = shutil.copytree(saved, tmp_path / "st")
    for table in ("flows", "links", "series", "link_series", "frames"):
        file = place / FIRST / f"{table}.parquet"
        frame = pl.read_parquet(file).reverse()
        frame.write_parquet(file)
        assert talkspurt.load(place / FIRST).table(table).equals(frame)
        assert talkspurt.load(place, study=True).table(table).height > frame.height


def test_a_run_without_a_length_is_damaged(saved, tmp_path):
    place = shutil.copytree(saved / FIRST, tmp_path / "run")
    manifest(lambda found: found.update(duration_s=0.0))(place)
    with pytest.raises(StoreError, match="'duration_s' is not what it must be"):
        talkspurt.load(place)


def test_two_links_of_one_name_are_damage(saved, tmp_path):
    place = shutil.copytree(saved / FIRST, tmp_path / "run")
    found = json.loads((place / "topology.json").read_text())
    found["links"].append(found["links"][0])
    (place / "topology.json").write_text(json.dumps(found))
    with pytest.raises(StoreError, match="two links have the same name"):
        talkspurt.load(place)


def test_shards_whose_runs_are_of_other_settings_are_not_merged(tmp_path):
    (tmp_path / "study.toml").write_text(SCENARIO + STUDY)
    shards = [tmp_path / f"shard-{i}" for i in (1, 2)]
    for i, shard in enumerate(shards, 1):
        done = succeed("run", tmp_path / "study.toml", "--shard", f"{i}/2", "--out", shard)
    run = next((shards[0] / "runs").iterdir())
    manifest(lambda found: found.update(settings={"other": "20ms"}))(run)
    done = command("merge", *shards, "--out", tmp_path / "whole")
    assert done.returncode and "is damaged: its run 0 has other settings" in done.stderr
    for changed in ({"name": "../x"}, {"name": "\0"}, {"total": 2**62}, {"shards": 2**62}):
        manifest(lambda found, changed=changed: found.update(changed))(shards[0])
        done = command("merge", *shards)
        said = f"'{next(iter(changed))}' is not what it must be"
        assert done.returncode and said in done.stderr, done.stderr
        manifest(lambda found: found.update(name="study", total=4, shards=2))(shards[0])
