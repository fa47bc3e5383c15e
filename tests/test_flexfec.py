"""FlexFEC (RFC 8627) in whole calls: what is sent, what it restores, and what cannot be configured.

What the blocks restore is recomputed here from the packet table: source and repair packets are distinguished by their
lengths, and the packets of a row or column follow from RFC 8627 alone.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import talkspurt
from command import refused
from conftest import row_of
from one_call import SPEECH, write_call

WOMAN = SPEECH / "spanish-woman.wav"
SOURCE_BYTES, REPAIR_BYTES = 200, 216
"""20 ms of G.711 in RTP, UDP and IP; and 4 bytes of CSRC list and 12 of FEC header more."""
LONG = 'kind = "fixed", buffer = "10s"'
RANDOM = "loss = 0.15"
BURSTS = "gilbert_elliott = { p = 0.04, r = 0.3, h = 0.0, k = 1.0 }"


def written(place, source: str, *, loss="", playout=LONG, duration=30, flow="", **more):
    flow = f"rtcp = {{ enabled = false }}\n{flow}"
    given = {"duration": duration, "link": loss, "playout": playout, "flow": flow}
    return write_call(place, source, run="record = { packets = true }", **given, **more)


@pytest.fixture
def call(tmp_path):
    def run(source: str, **options):
        result = talkspurt.run(written(tmp_path, source, **options))
        return result, row_of(result, "call")

    return run


def arrivals(result):
    """Whether each source packet and each repair packet arrived, in the order of sending."""
    packets = result.packets("call").sort("number")
    sizes = packets["ip_bytes"].unique().to_list()
    assert sorted(sizes) == [SOURCE_BYTES, REPAIR_BYTES], sizes
    kind = packets.with_columns(arrived=pl.col("received_s").is_not_null())
    return tuple(
        kind.filter(ip_bytes=size)["arrived"].to_list() for size in (SOURCE_BYTES, REPAIR_BYTES)
    )


def groups(count: int, columns: int, rows: int | None, parity: str):
    """Source packets of each repair packet, in the order of sending, of a stream without pauses."""
    size = columns * (rows or 1)
    found = []
    for first in range(0, count, size):
        block = list(range(first, min(first + size, count)))
        by_row = [block[i : i + columns] for i in range(0, len(block), columns)]
        by_column = [block[i::columns] for i in range(min(columns, len(block)))]
        if parity == "rows":
            found += by_row
        elif parity == "both":
            found += by_row + [column for column in by_column if len(column) > 1]
        else:
            # Each follows its last packet; those of an unfinished block follow the call.
            found += by_column
    return found


def restored(arrived: list[bool], protected: list[list[int]], repair: list[bool]):
    """Lost packets that RFC 8627 §6.3.4 restores."""
    assert len(protected) == len(repair)
    lost = {number for number, came in enumerate(arrived) if not came}
    found: set[int] = set()
    while True:
        missing = [
            lost.intersection(group) for group, came in zip(protected, repair, strict=True) if came
        ]
        new = {number for group in missing if len(group) == 1 for number in group}
        if not new:
            return found
        found |= new
        lost -= new


BLOCKS = [
    (1, None, "rows"),
    (4, None, "rows"),
    (7, None, "rows"),
    (5, 2, "columns"),
    (8, 6, "columns"),
    (4, 4, "both"),
    (6, 3, "both"),
]


@pytest.mark.parametrize("loss", [RANDOM, BURSTS], ids=["random", "bursts"])
@pytest.mark.parametrize(("columns", "rows", "parity"), BLOCKS)
def test_exactly_what_the_blocks_predict_is_recovered(call, columns, rows, parity, loss):
    depth = "" if rows is None else f"rows = {rows}, "
    flexfec = f'flexfec = {{ columns = {columns}, {depth}parity = "{parity}" }}'
    result, row = call(f'codec = "pcmu"\n{flexfec}', loss=loss)
    source, repair = arrivals(result)
    assert len(source) == row["generated_packets"] == 1499
    expected = restored(source, groups(len(source), columns, rows, parity), repair)
    frames = result.frames("call").sort("index")
    # The buffer is longer than a block; the last seconds are not judged.
    judged = frames.filter(pl.col("captured_s") < 18)
    lost = {number for number in judged["index"] if not source[number]}
    found = set(judged.filter(fate="recovered")["index"])
    assert lost and found == {number for number in lost if number in expected}
    assert set(judged.filter(fate="lost")["index"]) == lost - expected
    assert row["sent_packets"] == len(source) + len(repair)


@pytest.mark.parametrize(
    ("columns", "period", "share"),
    [(5, 5, 1), (4, 5, 1), (1, 5, 1), (10, 5, 0), (6, 5, 2 / 3), (6, 3, 0), (7, 10, 1)],
)
def test_a_periodic_loss(call, columns, period, share):
    # Without noise, packets leave at the same instants in all runs.
    source = f'codec = "pcmu"\nnoise = "0ms"\nflexfec = {{ columns = {columns} }}'
    packets = call(source)[0].packets("call").filter(ip_bytes=SOURCE_BYTES).sort("number")
    times = packets["enqueued_s"].to_list()
    lost = range(60 + period - 1, 1200, period)
    # A packet takes 160 us to send, and a repair packet, which follows at once, 173 us.
    steps = "".join(
        f'[[links.link.steps]]\nat = "{round(1e6 * (times[number] + after))}us"\nloss = {loss}\n'
        for number in lost
        for after, loss in ((-0.001, 1.0), (0.0002, 0.0))
    )
    result, row = call(source, loss=steps)
    arrived, repair = arrivals(result)
    assert [number for number, came in enumerate(arrived[:1400]) if not came] == list(lost)
    expected = restored(arrived, groups(len(arrived), columns, None, "rows"), repair)
    # One loss in a row is restored, two are not.
    assert row["recovered_packets"] == len(expected) == pytest.approx(share * len(lost), abs=1)


@pytest.mark.parametrize("codec", ["pcmu", "g722", "opus"])
def test_what_is_restored_sounds_as_if_nothing_was_lost(call, codec):
    source = f'file = "{WOMAN}"\ncodec = "{codec}"\nflexfec = {{ columns = 1 }}'
    whole = call(source, duration=16)[0].audio("call")
    result, row = call(source, duration=16, loss="loss = 0.1")
    fates = result.frames("call")["fate"]
    assert row["recovered_packets"] > 40 and row["missing_packets"] > 0
    missing = np.flatnonzero((fates == "lost").to_numpy())
    heard = result.audio("call")
    first = int(missing[0]) * heard.rate // 50
    # With Opus, the frame before the first loss that stayed is cross-faded with concealment.
    kept = first - heard.rate // 20
    assert kept > heard.rate and (heard.received[:kept] == whole.received[:kept]).all()


def test_a_talkspurt_ends_its_block(call):
    talk = 'talkspurts = { on = "200ms", off = "400ms" }'
    source = f'codec = "pcmu"\n{talk}\nflexfec = {{ columns = 8 }}'
    result, row = call(source, loss="loss = 0.1", flow='stop = "29s"')
    packets = result.packets("call").sort("number")
    frames = result.frames("call").sort("index")
    # A talkspurt is a run of frames that are captured 20 ms apart; one packet may be left out.
    captured = frames["captured_s"].to_numpy()
    spurts = np.split(np.arange(captured.size), np.flatnonzero(np.diff(captured) > 0.05) + 1)
    assert len(spurts) > 20
    protected, leaves = [], []
    for spurt in spurts:
        rows = [spurt[i : i + 8].tolist() for i in range(0, len(spurt), 8)]
        protected += rows
        leaves += [None if len(it) == 8 else 0.040 for it in rows]
    kinds = packets["ip_bytes"].to_numpy()
    at = packets["enqueued_s"].to_numpy()
    repair = np.flatnonzero(kinds == REPAIR_BYTES)
    assert repair.size == len(protected)
    source = np.flatnonzero(kinds == SOURCE_BYTES)
    for place, group, pause in zip(repair, protected, leaves, strict=True):
        last = at[source[group[-1]]]
        if pause is None:
            assert at[place] == pytest.approx(last, abs=1e-6)
        elif place != len(kinds) - 1:
            # Two packet durations, and the source's noise of 1 ms.
            assert at[place] - last == pytest.approx(0.041, abs=1e-6)
    arrived = packets["received_s"].is_not_null().to_numpy()
    expected = restored(arrived[source].tolist(), protected, arrived[repair].tolist())
    assert row["recovered_packets"] == pytest.approx(len(expected), abs=2)
    judged = frames.filter(pl.col("captured_s") < 18)
    found = set(judged.filter(fate="recovered")["index"])
    assert found == {number for number in expected if number < len(judged)}


def test_keep_alive_packets_are_not_protected_alone(call):
    talk = (
        'talkspurts = { on = "200ms", off = "2s" }\nkeep_alive = { every = "300ms", size = "1B" }'
    )
    result, _ = call(f'codec = "pcmu"\n{talk}\nflexfec = {{ columns = 4 }}')
    packets = result.packets("call")
    lengths = packets.group_by("ip_bytes").len().rows()
    counts = dict(lengths)
    assert set(counts) == {41, SOURCE_BYTES, REPAIR_BYTES}
    assert counts[REPAIR_BYTES] < counts[SOURCE_BYTES] / 3


def test_the_end_of_a_call_flushes_the_block(call):
    result, _ = call('codec = "pcmu"\nflexfec = { columns = 100 }', flow='stop = "1s"')
    packets = result.packets("call").sort("number")
    assert packets["ip_bytes"].to_list() == [SOURCE_BYTES] * 49 + [REPAIR_BYTES]
    assert packets["enqueued_s"][-1] == packets["enqueued_s"][-2]


def test_silence_of_opus_ends_a_block_and_lengths_differ(call, tmp_path):
    opus = 'opus = { bitrate = "24kbit/s", rate_control = "vbr" }'
    source = f'file = "{WOMAN}"\ncodec = "opus"\n{opus}'
    plain, _ = call(source, duration=16)
    result, _ = call(f"{source}\nflexfec = {{ columns = 3 }}", duration=16)
    alone = plain.packets("call").sort("number")["ip_bytes"].to_list()
    lengths = result.packets("call").sort("number")["ip_bytes"].to_list()
    assert len(set(alone)) > 5
    expected = []
    for first in range(0, len(alone), 3):
        row = alone[first : first + 3]
        expected += [*row, max(row) + 16]
    assert lengths == expected


@pytest.mark.parametrize(
    "transport",
    [
        'kind = "dccp", ccid = 3',
        'kind = "tfrc"',
        'kind = "sctp", ordered = false, max_retransmissions = 0',
    ],
)
def test_other_transports_carry_repair_packets(call, transport):
    scenario = {"loss": "loss = 0.02", "duration": 20, "transport": transport}
    (_, row), (_, plain) = (
        call(f'codec = "g729"\nlead = "500ms"\n{flexfec}', **scenario)
        for flexfec in ("flexfec = { columns = 4 }", "")
    )
    assert row["recovered_packets"] > 0.5 * row["lost_packets"] > 0
    assert plain["recovered_packets"] == 0


def test_an_adaptive_buffer_waits_where_that_pays(call):
    adaptive = 'kind = "adaptive"'
    source = 'codec = "pcmu"\n{}'
    delays, unheard = {}, {}
    for name, flexfec in [
        ("none", ""),
        ("rows", "flexfec = { columns = 4 }"),
        ("columns", 'flexfec = { columns = 5, rows = 3, parity = "columns" }'),
    ]:
        _, row = call(source.format(flexfec), loss="loss = 0.1", playout=adaptive, duration=60)
        delays[name], unheard[name] = row["mouth_to_ear_mean_s"], row["loss_ratio"]
    assert delays["none"] < delays["rows"] < delays["columns"] < 0.4
    # Of 10 % losses, a row of four and its repair packet restore 0.9^4, and early losses teach the wait.
    assert unheard["rows"] == pytest.approx(0.1 * (1 - 0.9**4), abs=0.02)
    assert unheard["columns"] < 0.05 < 0.08 < unheard["none"]
    _, row = call(
        source.format("flexfec = { columns = 4 }"),
        loss="loss = 0.1",
        playout=f'{adaptive}, recovery_wait = "0s"',
        duration=60,
    )
    assert row["mouth_to_ear_mean_s"] < delays["rows"] and row["loss_ratio"] > unheard["rows"]


def test_a_requested_rate_includes_the_repair_packets(call):
    # Opus follows the rate that CCID 4 requests.
    rows = []
    for flexfec in ("", "flexfec = { columns = 2 }"):
        source = f'codec = "opus"\nlead = "1s"\nopus = {{ bitrate = "400kbit/s" }}\n{flexfec}'
        network = {"loss": "loss = 0.03", "delay": "100ms", "transport": 'kind = "dccp", ccid = 4'}
        rows.append(call(source, duration=60, **network)[1])
    plain, protected = rows
    assert protected["sent_packets"] == pytest.approx(1.5 * plain["sent_packets"], rel=0.01)
    assert plain["throughput_bps"] < 390_000
    # With packets of the same length, it would be half as much more, or a third of them would be discarded.
    assert protected["throughput_bps"] == pytest.approx(plain["throughput_bps"], rel=0.2)
    assert protected["discarded_packets"] < 0.01 * protected["generated_packets"]


@pytest.mark.parametrize(
    ("flexfec", "transport", "said"),
    [
        ("{}", "udp", "flexfec"),
        ("{ columns = 0 }", "udp", "it must be 1 to 255"),
        ("{ columns = 256 }", "udp", "it must be 1 to 255"),
        ('{ columns = 4, rows = 1, parity = "both" }', "udp", "no length of a column: 2 to 255"),
        ('{ columns = 4, rows = 256, parity = "both" }', "udp", "no length of a column: 2 to 255"),
        ('{ columns = 4, parity = "columns" }', "udp", "flexfec.rows: column parity needs"),
        ('{ columns = 4, parity = "both" }', "udp", "flexfec.rows: column parity needs"),
        ("{ columns = 4, rows = 4 }", "udp", "flexfec.rows: row parity has one row"),
        (
            '{ columns = 60, rows = 51, parity = "columns" }',
            "udp",
            "a block of 3060 packets of 20ms spans more than 1min",
        ),
        ("{ columns = 4 }", 'tcp", controller = "reno', "TCP retransmits all that is lost"),
        ("{ columns = 4 }", "sctp", "SCTP retransmits all that is lost"),
        ('{ columns = 4 }\nladder = ["pcmu", "g729"]', "udp", "flexfec: not with a `ladder`"),
        ('{ columns = 4, parity = "diagonal" }', "udp", 'unknown word "diagonal"'),
    ],
)
def test_what_cannot_be_protected_is_one_clear_error(tmp_path, flexfec, transport, said):
    source = f'codec = "pcmu"\nflexfec = {flexfec}'
    written(tmp_path, source, transport=f'kind = "{transport}"')
    done = refused("run", "call.toml", cwd=tmp_path)
    assert said in done.stderr, done.stderr
    assert len([line for line in done.stderr.splitlines() if "call.toml" in line]) == 1


def test_all_errors_come_at_once(tmp_path):
    source = 'codec = "pcmu"\nladder = ["pcmu", "g729"]\nflexfec = { columns = 4, rows = 4 }'
    written(tmp_path, source, transport='kind = "tcp", controller = "reno"')
    done = refused("check", "call.toml", cwd=tmp_path)
    for said in ("ladder", "retransmits", "row parity has one row"):
        assert said in done.stderr
