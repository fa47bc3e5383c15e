"""The packets a report animates, held against the table of every packet and hop."""

import base64
import dataclasses
import struct

import polars as pl
import pytest

import talkspurt
from talkspurt.report import animation as animations
from talkspurt.report import single

NEVER = 2**32 - 1
WIDTHS = {"flow": "H", "link": "H", "bytes": "I", "fate": "B"}
WIDTHS |= dict.fromkeys(("enqueued", "dequeued", "ended"), "I")


def shown(result):
    return animations.animation(result)


def unpacked(data):
    """The page's columns as rows: who, where, and when in seconds."""
    columns = {}
    for name, kind in WIDTHS.items():
        raw = base64.b64decode(data[name])
        columns[name] = struct.unpack(f"<{len(raw) // struct.calcsize(kind)}{kind}", raw)
    for name in ("enqueued", "dequeued", "ended"):
        columns[name] = [
            None if tick == NEVER else (data["base_ns"] + tick * data["tick_ns"]) / 1e9
            for tick in columns[name]
        ]
    columns["flow"] = [data["flows"][n]["name"] for n in columns["flow"]]
    columns["link"] = [data["links"][n]["name"] for n in columns["link"]]
    columns["fate"] = [data["fates"][n] for n in columns["fate"]]
    return pl.DataFrame(columns)


@pytest.fixture(scope="module")
def recorded(folder):
    return talkspurt.run(folder / "controlled.toml", set={"record.packets": True})


def table_of(result, begin, end):
    """What the packet table says was there between two instants; queues here drop at the door."""
    packets = result.packets()
    gone = pl.coalesce("received_s", pl.when(fate="full").then("enqueued_s"))
    return packets.with_columns(gone.alias("gone_s")).filter(
        (pl.col("enqueued_s") < end) & (pl.col("gone_s").is_null() | (pl.col("gone_s") > begin))
    )


def on_page(rows, end):
    """Rows to compare: what came after the excerpt need not be known."""
    known = pl.when(pl.col("dequeued") < end).then("dequeued").alias("dequeued")
    return rows.select("flow", "link", "bytes", "enqueued", known).sort(pl.all())


def of_table(rows, end):
    renamed = {"ip_bytes": "bytes", "enqueued_s": "enqueued", "dequeued_s": "dequeued"}
    return on_page(rows.rename(renamed).with_columns(pl.col("bytes").cast(pl.Int64)), end)


def close(a, b):
    """Equal but for the width of a tick."""
    assert a.drop("enqueued", "dequeued").equals(b.drop("enqueued", "dequeued"))
    for name in ("enqueued", "dequeued"):
        assert a[name].is_null().equals(b[name].is_null())
        assert (a[name] - b[name]).abs().max() < 1e-8


def test_around_the_first_drop_all_packets_are_there(recorded):
    made = shown(recorded)
    begin, end = made.data["from"], made.data["to"]
    rows = unpacked(made.data)
    close(on_page(rows, end), of_table(table_of(recorded, begin, end), end))
    packets = recorded.packets()
    dropped = packets.filter(~pl.col("fate").is_in(["received", "in_flight", "queued"]))
    assert begin < dropped["enqueued_s"].min() < end
    ours = rows.filter(~pl.col("fate").is_in(["received", "in_flight", "queued"]))
    within = dropped.filter(pl.col("enqueued_s").is_between(begin, end))
    assert sorted(ours["ended"]) == pytest.approx(sorted(within["enqueued_s"]), abs=1e-8)


def test_a_cap_ends_the_stretch_and_keeps_what_came_before_the_drop(folder):
    sets = {"record.packets": True, "record.animation.packets": 400}
    result = talkspurt.run(folder / "controlled.toml", set=sets)
    made = shown(result)
    begin, end = made.data["from"], made.data["to"]
    rows = unpacked(made.data)
    assert 350 < rows.height <= 400
    close(on_page(rows, end), of_table(table_of(result, begin, end), end))
    first = result.packets().filter(fate="full")["enqueued_s"].min()
    before = rows.filter(pl.col("ended") < first).height
    assert begin < first < end
    assert 90 <= before <= 110, "a quarter comes before the drop"


def test_the_scenario_chooses_another_stretch(folder):
    chosen = {"record.animation.from": "7s", "record.animation.to": "7500ms"}
    result = talkspurt.run(folder / "controlled.toml", set={"record.packets": True, **chosen})
    made = shown(result)
    assert (made.data["from"], made.data["to"]) == (7.0, 7.5)
    assert made.lead.endswith("from 7 s to 7.5 s: as the scenario asks.")
    close(on_page(unpacked(made.data), 7.5), of_table(table_of(result, 7.0, 7.5), 7.5))


def test_the_digest_knows_nothing_of_it(folder, recorded):
    chosen = {"record.animation": {"from": "7s", "to": "8s", "packets": 10}}
    assert talkspurt.run(folder / "controlled.toml", set=chosen).digest == recorded.digest


def test_a_run_without_drops_is_shown_from_the_window_of_measurement(folder):
    wide = {"links.*.queue.packets": 5000, "duration": "5s", "measure.from": "1s"}
    result = talkspurt.run(folder / "controlled.toml", set=wide)
    assert result.links["drops"].sum() == 0
    made = shown(result)
    assert made.data["from"] == 1.0
    assert "none was dropped" in made.lead


def test_where_there_is_none_a_word_says_why(folder):
    def run(**sets):
        return talkspurt.run(folder / "controlled.toml", set={"duration": "4s", **sets})

    none = run(**{"record.animation.packets": 0})
    assert shown(none) == "the scenario asks for none (record.animation.packets = 0)."
    assert f"No animation of packets: {shown(none)}" in single.html(none)
    crowded = shown(run(**{"record.animation": {"from": "3s", "packets": 3}}))
    assert crowded == "more packets are on their way at once than can be shown, which is 3."
    before = {"from": "0s", "to": "1ns", "packets": 100}
    idle = run(**{"flows.*.start": "1s", "record.animation": before})
    assert shown(idle) == "no packet was on a link in the excerpt that would be shown."
    old = dataclasses.replace(none, manifest={**none.manifest, "talkspurt": "0.0.1"})
    again = old.scenario.replace("packets = 0", "packets = 100")
    told = shown(dataclasses.replace(old, scenario=again))
    assert told.startswith("the run was made by talkspurt 0.0.1, and cannot be done again")


def test_a_file_that_has_gone_is_named_as_the_reason(folder):
    result = talkspurt.run(folder / "small.toml", set={"duration": "2s"})
    (wav,) = folder.glob("speech.wav")
    aside = wav.rename(folder / "aside.wav")
    try:
        assert "file that the scenario names is no longer there" in shown(result)
    finally:
        aside.rename(wav)


def test_every_network_with_traffic_can_be_chosen_and_the_lossiest_comes_first(recorded):
    made = shown(recorded)
    assert len(made.worlds) == 2
    drops = [world["drops"] for world in made.worlds]
    assert made.first == drops.index(max(drops))
    rows = unpacked(made.data)
    assert sum(world["hops"] for world in made.worlds) == rows.height
    assert {lane["world"] for lane in made.data["lanes"]} == {0, 1}


def test_many_hosts_that_are_alike_share_a_lane(pytestconfig):
    sets = {"duration": "4s", "measure.from": "1s", "topology.left": 12}
    result = talkspurt.run(pytestconfig.rootpath / "scenarios/topologies/dumbbell.toml", set=sets)
    made = shown(result)
    links = made.data["links"]
    assert (len(links), len(made.data["lanes"])) == (4 * 4 + 2, 6)
    assert all(lane["points"] for lane in made.data["lanes"])


def test_every_kind_of_drop_is_there_with_its_instant(folder):
    trouble = {
        "duration": "8s",
        "links.sky.queue": {"kind": "codel"},
        "links.sky.loss": 0.02,
        "links.sky.events": [{"at": "6s", "state": "down"}, {"at": "6100ms", "state": "up"}],
        "record.animation.from": "0s",
    }
    trouble["record.packets"] = True
    result = talkspurt.run(folder / "controlled.toml", set=trouble)
    rows = unpacked(shown(result).data)
    packets = result.packets()
    assert rows.height == packets.height < 20000, "the whole run is shown"
    link = result.links.row(by_predicate=pl.col("name") == "sky", named=True)
    for kind in ("early", "medium", "down"):
        ours = rows.filter(link="sky", fate=kind)
        assert ours.height == link[f"drops_{kind}"] > 0, kind
        assert ours["ended"].is_not_null().all()
    # CoDel drops when it takes a packet from the queue, the medium when it leaves, an outage in flight.
    early, medium, down = (rows.filter(link="sky", fate=k) for k in ("early", "medium", "down"))
    assert (early["ended"] > early["enqueued"]).all() and early["dequeued"].is_null().all()
    assert (medium["ended"] == medium["dequeued"]).all()
    assert (down["ended"] - 6.0).abs().max() < 0.11
