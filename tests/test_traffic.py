"""Traffic, judged from outside: what left against the trace files and tshark, what came against the
packet table, and what the scenarios tell their readers against their runs."""

from __future__ import annotations

import csv
import itertools
import math
import re
from pathlib import Path

import polars as pl
import pytest

import talkspurt
from command import dissected, needs_tshark
from talkspurt.figures import comparison
from talkspurt.report import study as study_report
from talkspurt.results.groups import condensed
from talkspurt.results.result import Result, Study
from texts import UDP, flow_text, link_text, scenario_text

ROOT = Path(__file__).parent.parent
TRACES = ROOT / "traces"


def run(
    folder: Path,
    source: str,
    rate: str = "10Mbit/s",
    queue: int = 100,
    loss: float = 0.0,
    transport: str = UDP,
) -> Result:
    line = link_text("line", "home>office", rate, "20ms", queue, loss=loss, back="{ loss = 0.0 }")
    off = "{ enabled = false }"
    flow = flow_text("video", "home>office", transport, source, start_spread="0ms", rtcp=off)
    text = scenario_text("Line", "12s", line, flow, record="{ packets = true }")
    (folder / "line.toml").write_text(text)
    found = talkspurt.run(folder / "line.toml")
    assert isinstance(found, Result)
    return found


def trace(name: str) -> list[tuple[float, int]]:
    """Times in seconds and sizes, read with nothing of ours."""
    lines = [line for line in (TRACES / name).read_text().splitlines() if line[0] != "#"]
    rows = csv.DictReader(lines)
    return [
        (int(r["time"].removesuffix("ms")) / 1000, int(r["size"].removesuffix("B"))) for r in rows
    ]


def sent(result: Result) -> pl.DataFrame:
    """Packets of the video in the order they left."""
    return result.packets("video").filter(side="from").sort("number")


@pytest.mark.parametrize("name", ["h264-low-delay.csv", "mpeg4-gop.csv"])
def test_frames_leave_byte_for_byte_and_their_delays_follow_from_the_packet_table(
    tmp_path: Path, name: str
) -> None:
    source = f'{{ kind = "video", file = "{TRACES / name}", packet = "1000B", deadline = "60ms" }}'
    result = run(tmp_path, source, rate="1500kbit/s", queue=30, loss=0.01)
    frames = trace(name)
    # Cut by hand: packets of 1000 bytes and the rest, 40 of headers each.
    expected = [min(1000, size - at) + 40 for _, size in frames for at in range(0, size, 1000)]
    packets = sent(result)
    assert packets["ip_bytes"].to_list() == expected
    # Every frame from its packets alone.
    table = result.video_frames("video")
    arrived = iter(packets["received_s"].to_list())
    complete, late, delays = 0, 0, []
    for (captured, size), row in zip(frames, table.iter_rows(named=True), strict=True):
        own = [next(arrived) for _ in range(math.ceil(size / 1000))]
        assert math.isclose(row["captured_s"], captured, abs_tol=1e-9)
        assert (row["packets"], row["bytes"]) == (len(own), size)
        assert row["delivered_packets"] == sum(at is not None for at in own)
        if None in own:
            assert row["complete_s"] is None
            continue
        assert row["complete_s"] == max(own)
        complete += 1
        delays.append(max(own) - captured)
        late += delays[-1] > 0.06
    row = result.flows.row(0, named=True)
    assert (row["video_frames"], row["video_frames_complete"]) == (len(frames), complete)
    assert row["video_frames_late"] == late
    assert 0 < late < complete < len(frames)
    delays.sort()
    for column, percent in (("p50", 50), ("p95", 95), ("max", 100)):
        rank = -(-len(delays) * percent // 100)
        assert math.isclose(row[f"frame_delay_{column}_s"], delays[rank - 1], abs_tol=1e-9)


def test_every_frame_is_complete_over_a_stream(tmp_path: Path) -> None:
    source = f'{{ kind = "video", file = "{TRACES / "h264-low-delay.csv"}" }}'
    cubic = '{ kind = "tcp", controller = "cubic" }'
    result = run(tmp_path, source, "3Mbit/s", 50, 0.02, cubic)
    row = result.flows.row(0, named=True)
    assert row["lost_packets"] > 0
    assert (row["video_frames"], row["video_frames_complete"]) == (250, 250)
    bytes_sent = sum(size for _, size in trace("h264-low-delay.csv"))
    assert result.video_frames()["bytes"].sum() == bytes_sent


@needs_tshark
def test_a_capture_is_sent_again_as_tshark_reads_it(tmp_path: Path) -> None:
    capture = TRACES / "h264-rtp.pcapng"
    fields = ("frame.time_relative", "udp.length", "rtp.timestamp", "rtp.marker", "rtp.ssrc")
    rows = dissected(capture, *fields, options=["-d", "udp.port==5004,rtp", "-Y", "rtp"])
    assert len(rows) > 300
    assert {row[4] for row in rows} == {f"0x{20_260_101:08x}"}
    # A rate at which nothing waits: a bit a nanosecond and more.
    source = f'{{ kind = "replay", file = "{capture}" }}'
    result = run(tmp_path, source, rate="100Gbit/s", queue=1000)
    packets = sent(result)
    # UDP's length counts its header; IP's 20 bytes come on top.
    assert packets["ip_bytes"].to_list() == [int(row[1]) + 20 for row in rows]
    first = float(rows[0][0])
    for at, row in zip(packets["enqueued_s"].to_list(), rows, strict=True):
        assert math.isclose(at, float(row[0]) - first, abs_tol=1e-9)
    # Frames are runs of one timestamp.
    stamps = [row[2] for row in rows]
    runs = 1 + sum(a != b for a, b in itertools.pairwise(stamps))
    table = result.video_frames()
    assert table.height == runs
    assert (
        table["packets"].to_list()[:3]
        == [sum(1 for stamp in stamps if stamp == which) for which in dict.fromkeys(stamps)][:3]
    )
    markers = sum(row[3] in ("1", "True") for row in rows)
    assert markers == runs


@pytest.fixture(scope="module")
def video() -> Study:
    return talkspurt.run(ROOT / "scenarios" / "video.toml", study=True)


@pytest.fixture(scope="module")
def many() -> Result:
    found = talkspurt.run(ROOT / "scenarios" / "many.toml")
    assert isinstance(found, Result)
    return found


def pictures(video: Study, over: str) -> pl.DataFrame:
    """The video's rows of the flows table, one a replication."""
    runs = video.select(**{"video transport": over})
    return pl.concat([run.flows.filter(name="video") for run in runs])


def test_the_video_scenario_says_what_its_runs_show(video: Study) -> None:
    def share(over: str, column: str) -> list[float]:
        rows = pictures(video, over)
        return (rows[column] / rows["video_frames"]).to_list()

    def missing(over: str) -> float:
        return 1 - sum(share(over, "video_frames_complete")) / 5

    # "No frame is late, and one in twenty-five is never whole."
    assert share("UDP", "video_frames_late") == [0] * 5
    assert 0.03 < missing("UDP") < 0.05
    # "Every frame is whole in the end. One frame in five is late, some by more than a second."
    for stream in ("TCP", "SCTP"):
        rows = pictures(video, stream)
        assert rows["lost_packets"].min() > 0
        assert missing(stream) == 0
        assert rows["discarded_packets"].sum() == 0
        assert rows["frame_delay_max_s"].max() > 1.4
    late = [*share("TCP", "video_frames_late"), *share("SCTP", "video_frames_late")]
    assert min(late) > 0.05
    assert 0.15 < sum(late) / 10 < 0.25
    # "No frame is late, one in ten is missing over CCID 3 and one in five over CCID 2."
    for dccp in ("DCCP CCID 2", "DCCP CCID 3"):
        assert share(dccp, "video_frames_late") == [0] * 5
        assert pictures(video, dccp)["discarded_packets"].min() > 0
    assert 0.08 < missing("DCCP CCID 3") < 0.13
    assert 0.17 < missing("DCCP CCID 2") < 0.25


def test_the_report_of_the_study_has_its_video(video: Study) -> None:
    page = study_report.html(video)
    section = page[page.index('<section id="video">') :].split("</section>")[0]
    rows = [
        [re.sub("<[^>]+>", " ", cell).split() for cell in re.findall(r"<t[hd][ >].*?</t[hd]>", row)]
        for row in re.findall(r"<tr>.*?</tr>", section)
    ]
    assert [" ".join(row[0]) for row in rows[1:]] == list(video.axis("video transport").labels)
    for row, label in zip(rows[1:], video.axis("video transport").labels, strict=True):
        late = pictures(video, label)["video_frames_late"].mean()
        assert row[4][0] == f"{late:.0f}", row
    drawn = [name for name, _ in comparison.every(video)]
    assert {"video_frames_complete", "video_frames_late", "frame_delay_p95_s"} < set(drawn)


def talk(result: Result, flow: str) -> list[float]:
    """Captures of the frames of talk: the next frame is 20 ms away. After noise it is farther."""
    at = result.frames(flow)["captured_s"].to_list()
    return [a for a, b in itertools.pairwise(at) if b - a < 0.021]


def test_five_hundred_conversations_have_the_shares_of_p59(many: Result) -> None:
    """From the frames of both sides: time in slots of 20 ms from the first word on."""
    slots, double, silent = 0, 0, 0
    for number in range(1, 501):
        sides = [talk(many, f"call-{number}"), talk(many, f"call-{number}.reverse")]
        first = min(side[0] for side in sides if side)
        one, other = ({round((at - first) / 0.02) for at in side} for side in sides)
        count = int((19.5 - first) / 0.02)
        time = set(range(count))
        slots += count
        double += len(one & other & time)
        silent += len(time - one - other)
    # The chain of ITU-T P.59 in closed form; 7000 cycles leave half a per cent of error.
    cycle = 0.854 + 0.4 * 0.226 + 0.6 * 0.456
    assert abs(silent / slots - 0.6 * 0.456 / cycle) < 0.015
    assert abs(double / slots - 0.4 * 0.226 / cycle) < 0.01


def test_five_hundred_calls_are_one_row_and_five_hundred_flows(many: Result) -> None:
    flows = many.flows
    assert flows.filter(group="call").height == 500
    rows = condensed(flows.to_dicts())
    assert [row["name"] for row in rows] == [
        "call × 500",
        "call.reverse × 500",
        "browser × 40",
        "burst × 20",
    ]
    calls = flows.filter(group="call")
    assert rows[0]["sent_packets"] == calls["sent_packets"].sum()
    assert math.isclose(rows[0]["mos"], calls["mos"].mean())
    # "They take 17 to 18 with their comfort noise": IP bytes of one direction.
    assert 17e6 < rows[0]["throughput_bps"] < 18e6
    # "If everybody talked at once, the calls alone would take 40 Mbit/s": 200 bytes every 20 ms.
    assert 500 * 200 * 8 / 0.02 == 40e6
    # "The line carries them."
    assert rows[0]["loss_ratio"] < 0.001
    # Each has dice of its own.
    assert calls["sent_packets"].n_unique() > 100


def test_the_page_of_many_flows_has_a_row_for_each_group(many: Result, tmp_path: Path) -> None:
    page = many.report(tmp_path / "report.html").read_text()
    assert "call × 500" in page
    assert "call-77<" not in page


def test_what_the_text_of_sources_says() -> None:
    run = talkspurt.run(Path(__file__).parent.parent / "scenarios" / "sources.toml")
    assert isinstance(run, talkspurt.Result)

    def rates(flow: str) -> list[float]:
        return [8 * sent / 0.2 for sent in run.series(flow)["sent_bytes"]]

    # Speech is on and off, and in a conversation two take turns, and now and then talk at once.
    assert 0.2 < sum(rate == 0 for rate in rates("talkspurts")) / 150 < 0.8
    sides = [[rate > 0 for rate in rates(f"conversation{side}")] for side in ("", ".reverse")]
    both = sum(a and b for a, b in zip(*sides, strict=True))
    one = sum(a != b for a, b in zip(*sides, strict=True))
    assert 0 < both < one
    # Poisson packets scatter about their rate: 200 kbit/s of 500 bytes and headers of 28.
    mean = sum(rates("poisson")) / 150
    assert mean == pytest.approx(200e3 * 528 / 500, rel=0.05)
    assert max(rates("poisson")) > 1.3 * mean
    # Who takes what there is has 2 Mbit/s while it has something to send, and then nothing.
    busy = sorted(run.series("pauses")["goodput_bps"], reverse=True)
    # Of 1500 bytes 1448 are payload.
    assert all(1.85e6 < rate <= 2e6 for rate in busy[:50])
    assert busy[-30:] == [0.0] * 30
    assert max(rates("web")) > 10 * sum(rates("web")) / 150
