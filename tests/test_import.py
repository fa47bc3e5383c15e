"""Imported traces against what others read in them: ns-2's own output counted by awk's rules, tshark, and the
tables of the runs that wrote the traces."""

import gzip
import shutil
import struct
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

import talkspurt
from command import dissected, needs_ns, needs_tshark, output, refused, succeed, told
from command import talkspurt as command
from conftest import row_of
from talkspurt import _core
from talkspurt import import_trace as read
from talkspurt.errors import BadInputError
from talkspurt.importing import rtp, spans, tables
from talkspurt.metrics.computing import compute
from talkspurt.results.run_data import TABLES
from talkspurt.runs import exporting
from texts import cbr, dccp, flow_text, inline, link_text, scenario_text, speech, tcp

DATA = Path(__file__).parent / "data" / "import"
LINUX = Path(__file__).parent.parent / "crates" / "proto" / "tests" / "data" / "linux-dccp"


BUFFER = inline("fixed", buffer="40ms")
SCENARIO = scenario_text(
    "To be read again",
    "6s",
    flow_text("call", "home>office", reverse=speech("pcma"), playout=BUFFER, stop="5s"),
    flow_text("cbr", "home>office", dccp(2), cbr("100kbit/s", "500B"), stop="5s"),
    flow_text("bulk", "home>office", tcp("sack"), inline("bulk", total="150kB")),
    flow_text("messages", "office>home", inline("sctp"), cbr("50kbit/s", "200B"), stop="5s"),
    link_text("near", "home>hub", "10Mbit/s", "10ms", loss=0.02),
    link_text("far", "hub>office", "1Mbit/s", "10ms", loss=0.02),
    record='{ packets = true, pcapng = ["near", "far"] }',
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with captures of both its links, and its folder."""
    folder = tmp_path_factory.mktemp("run")
    result = talkspurt.run(SCENARIO)
    return result, result.save(folder / "run", report=False)


def hops(result, flow, side, link):
    """The packets of a direction whose transmission on a link began, by number."""
    rows = result.packets(flow).filter((pl.col("side") == side) & (pl.col("link") == link))
    return {n: at for n, at in rows.select("number", "dequeued_s").iter_rows() if at is not None}


def test_tables_have_the_columns_of_a_run(run):
    result, _ = run
    for name in (*TABLES, "packets"):
        assert tables.schema(name) == dict(result.table(name).schema), name


@pytest.fixture(scope="module")
def both(run):
    _, folder = run
    return read([folder / "near.pcapng", folder / "far.pcapng"], playout="40ms")


FLOWS = {
    "udp": ("rtp-1", "call"), "dccp": ("dccp-1", "cbr"), "tcp": ("tcp-1", "bulk"),
    "sctp": ("sctp-1", "messages"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FLOWS)
def test_two_captures_give_the_loss_and_delay_of_the_run(run, both, kind):
    """Both links record the start of transmission: a packet of the first that is not on the
    second was lost between them, and the difference of the times is the delay."""
    result, _ = run
    imported, flow = FLOWS[kind]
    sides = ("from", "to") if kind == "udp" else ("from",)
    for side in sides:
        first, last = ("near", "far") if side == "from" else ("far.back", "near.back")
        if kind == "sctp":
            first, last = "far.back", "near.back"
        sent, arrived = (hops(result, flow, side, link) for link in (first, last))
        delays = sorted(round(at - sent[n], 9) for n, at in arrived.items())
        rows = both.packets(imported).filter(side=side)
        ours = rows.filter(pl.col("received_s").is_not_null())
        measured = sorted(round(d, 9) for d in ours["received_s"] - ours["dequeued_s"])
        assert measured == pytest.approx(delays, abs=2e-9)
        assert rows.height == len(sent)
        # One or two packets may be between the captures when the run ends.
        lost = rows.filter(fate="lost").height
        assert lost + rows.filter(fate="in_flight").height == len(sent) - len(arrived)
        assert lost >= 1 or kind in ("dccp", "sctp")


def test_the_call_is_played_and_scored_as_in_the_run(run, both):
    """The later capture is before the last hop: it sees no loss there, and frames earlier by the
    hop's constant time of transmission and propagation."""
    result, _ = run
    last = {"call": ("far", 0.010 + 200 * 8 / 1e6), "call.reverse": ("near.back", 0.01016)}
    for name, (link, hop_s) in last.items():
        row, ours = row_of(result, name), row_of(both, name.replace("call", "rtp-1"))
        side = "to" if "reverse" in name else "from"
        behind = result.packets("call").filter(side=side, link=link, fate="medium", ip_bytes=200)
        assert ours["missing_packets"] == row["missing_packets"] - behind.height > 0
        assert ours["late_packets"] == row["late_packets"]
        difference = row["mouth_to_ear_mean_s"] - ours["mouth_to_ear_mean_s"]
        # The source hands a frame over up to 1 ms after its capture (source.noise).
        assert difference == pytest.approx(hop_s, abs=1e-3)
        if not behind.height:
            for same in ("loss_ratio", "burst_ratio", "longest_gap_s"):
                assert ours[same] == pytest.approx(row[same])
            assert ours["mos"] == pytest.approx(row["mos"], abs=1e-6)


def test_one_capture_counts_what_passed(run):
    """Seen behind the first link, numbers tell what it lost; nothing is known of what follows."""
    result, folder = run
    ours = read([folder / "far.pcapng"])
    data = 160 + 12 + 28
    # Home has the first address. The office is seen first here, and its direction is the first.
    for side, sender, link in (("from", "10.0.0.1", "far"), ("to", "10.0.0.3", "far.back")):
        packets = result.packets("call").filter(side=side, link=link, ip_bytes=data)
        passed = packets.filter(pl.col("dequeued_s").is_not_null()).height
        (row,) = ours.flows.filter(
            pl.col("name").str.starts_with("rtp") & (pl.col("from") == sender)
        ).to_dicts()
        assert row["received_packets"] == passed
        # The first and the last packet may be lost, and then nothing tells of them.
        all_sent = result.packets("call").filter(side=side, ip_bytes=data)["number"].n_unique()
        assert 0 <= all_sent - row["sent_packets"] <= 3
        assert row["lost_packets"] == row["sent_packets"] - passed
        for unknown in ("delay_mean_s", "mouth_to_ear_mean_s", "sent_bytes", "in_flight_packets"):
            assert row[unknown] is None
        assert "an upper limit" in row["quality_note"]
    tcp = row_of(ours, "tcp-1")
    assert tcp["sent_packets"] is tcp["lost_packets"] is tcp["jitter_s"] is None
    assert ours.series("tcp-1")["sent_packets"].null_count() == ours.series("tcp-1").height


def test_network_delay_completes_a_score(run):
    _, folder = run
    without = read([folder / "far.pcapng"], playout="60ms")
    given = read([folder / "far.pcapng"], playout="60ms", delay_s=0.3)
    for name in ("rtp-1", "rtp-1.reverse"):
        rows = [row_of(one, name) for one in (without, given)]
        assert rows[0]["mos"] > rows[1]["mos"]
        # 20 ms of packet, 300 of network, 60 of buffer, 3.75 of concealment, and the first
        # packet's wait beyond the fastest one's.
        assert 0.383 < rows[1]["mouth_to_ear_mean_s"] < 0.46


def test_clock_offset_is_estimated_and_corrected(run, tmp_path):
    _, folder = run
    later = tmp_path / "far.pcap"
    shifted(folder / "far.pcapng", later, 2_000_000_000)
    shown = read([folder / "near.pcapng", later])
    facts = shown.manifest["imported"]
    bound = facts["clock_offset_bound_s"]
    assert abs(facts["clock_offset_estimate_s"] - 2.0) <= bound < 0.02
    assert shown.flows["delay_min_s"].max() > 1.9 and shown.flows["delay_min_s"].min() < -1.9
    assert any("negative" in note for note in facts["notes"])
    right = read([folder / "near.pcapng", later], clock_offset_s=2.0)
    plain = read([folder / "near.pcapng", folder / "far.pcapng"])
    assert right.flows["delay_mean_s"].to_list() == pytest.approx(
        plain.flows["delay_mean_s"].to_list()
    )


def shifted(source, target, by_ns):
    """A pcapng of ours as pcap with nanoseconds, raw IP, at other times."""
    data, at = source.read_bytes(), 0
    out = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101)
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            _, high, low, kept, whole = struct.unpack_from("<IIIII", data, at + 8)
            seconds, rest = divmod((high << 32 | low) + by_ns, 10**9)
            out += struct.pack("<IIII", seconds, rest, kept, whole) + data[at + 28 : at + 28 + kept]
        at += length
    target.write_bytes(out)


@needs_tshark
@pytest.mark.parametrize(
    "name", ["ccid3-loss", "ccid2-loss", "ccid2-bidir", "ipv6", "ccid2-reorder"]
)
def test_dccp_of_linux_as_tshark_reads_it(name):
    """Recordings of a Linux kernel: see the README beside them."""
    file = LINUX / f"{name}.pcap"
    ours = read([file])
    data = dissected(
        file, "dccp.srcport", "dccp.seq_raw", "ip.len", where="dccp.type==2||dccp.type==4"
    )
    senders = Counter(row[0] for row in data)
    facts = ours.manifest["imported"]["flows"]
    port = {name: told["source"].rpartition(":")[2] for name, told in facts.items()}
    if name != "ipv6":
        assert ours.flows["received_bytes"].sum() == sum(int(row[2]) for row in data)
    for row in ours.flows.iter_rows(named=True):
        mine = sorted(int(one[1]) for one in data if one[0] == port[row["name"]])
        assert row["received_packets"] == senders[port[row["name"]]] == len(mine)
        port_of = port[row["name"]]
        every = dissected(file, "dccp.seq_raw", where=f"dccp.srcport=={port_of}")
        inside = {int(n) for (n,) in every if mine[0] <= int(n) <= mine[-1]}
        assert row["lost_packets"] == mine[-1] - mine[0] + 1 - len(inside)
    assert set(senders) <= set(port.values())


@needs_tshark
def test_sctp_of_linux_as_tshark_reads_it():
    file = LINUX / "sctp.pcap"
    ours = read([file])
    rows = dissected(file, "sctp.data_tsn_raw", "frame.number", where="sctp.chunk_type==0")
    assert ours.flows["received_packets"].sum() == len(rows)
    chunks = pl.DataFrame(_core.capture(file.read_bytes())[1])
    assert [str(t) for t in chunks["tsn"]] == [t for row in rows for t in row[0].split(",")]


@needs_tshark
def test_tcp_as_tshark_reads_it(run):
    """Retransmissions behind the lossy link, distinct bytes, and the bytes of segments."""
    _, folder = run
    file = folder / "near.pcapng"
    ours = read([file])
    names = ("tcp.len", "ip.len", "tcp.analysis.retransmission", "tcp.seq")
    rows = dissected(file, *names, where="tcp.len>0")
    row = row_of(ours, "tcp-1")
    assert row["received_packets"] == len(rows)
    assert row["received_bytes"] == sum(int(one[1]) for one in rows)
    facts = ours.manifest["imported"]["flows"]["tcp-1"]
    # tshark marks what was acknowledged or sent before; so are all repeated bytes here.
    assert facts["retransmitted_packets"] == sum(bool(one[2]) for one in rows) > 0
    distinct = sum({int(one[3]): int(one[0]) for one in rows}.values())
    # Rates are over the time of the flow, which is shorter than that of the capture.
    times = [float(one[0]) for one in dissected(file, "frame.time_relative", where="tcp.len>0")]
    assert 0 < times[-1] - times[0] < 0.9 * ours.duration_s
    assert row["goodput_bps"] * (times[-1] - times[0]) / 8 == pytest.approx(distinct)


@needs_tshark
def test_rtp_as_tshark_reads_it(run):
    """Packets, losses and mean jitter of `-z rtp,streams`."""
    _, folder = run
    ports = {row[0] for row in dissected(folder / "far.pcapng", "udp.dstport", where="udp")}
    file = folder / "far.pcapng"
    decode = [word for port in ports for word in ("-d", f"udp.port=={port},rtp")]
    done = output("tshark", "-r", file, *decode, "-q", "-z", "rtp,streams")
    streams = [line.split() for line in done.splitlines() if "0x" in line]
    ours = read([file])
    assert len(streams) == 2
    for row in ours.flows.filter(pl.col("name").str.starts_with("rtp")).iter_rows(named=True):
        facts = ours.manifest["imported"]["flows"][row["name"]]
        (stream,) = (
            s for s in streams if int(next(w for w in s if w.startswith("0x")), 16) == facts["ssrc"]
        )
        at = next(i for i, word in enumerate(stream) if word.startswith("0x"))
        rest = stream[at + 1 :]
        packets = next(i for i, word in enumerate(rest) if word.isdigit())
        assert int(rest[packets]) == row["received_packets"]
        assert int(rest[packets + 1]) == row["lost_packets"]
        means = [float(word) for word in rest[packets + 3 :] if word.replace(".", "", 1).isdigit()]
        # Minimum, mean and maximum of the spacing, then of the jitter, in milliseconds.
        assert means[4] == pytest.approx(1e3 * row["jitter_s"], abs=0.02)


@needs_tshark
def test_times_and_lengths_of_every_packet_as_tshark_reads_them(run):
    _, folder = run
    file = folder / "near.pcapng"
    rows = dissected(file, "frame.number", "frame.time_epoch", "ip.len", "ip.ttl")
    ours = pl.DataFrame(_core.capture(file.read_bytes())[0]).sort("frame")
    assert [int(r[0]) for r in rows] == ours["frame"].to_list()
    assert [int(r[2]) for r in rows] == ours["ip_bytes"].to_list()
    assert [int(r[3]) for r in rows] == ours["hop_limit"].to_list()
    nanos = [round(float(r[1].split(".")[1])) + 10**9 * int(r[1].split(".")[0]) for r in rows]
    assert nanos == ours["time_ns"].to_list()


def ipv4(protocol, payload, fragment=0, number=7):
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), number, fragment, 9, protocol, 0,
                       bytes((192, 0, 2, 1)), bytes((192, 0, 2, 2)))  # fmt: skip
    return head + payload


def ipv6(following, payload):
    """With a Hop-by-Hop Options header of eight bytes."""
    options = bytes((following, 0, 1, 4, 0, 0, 0, 0))
    return (
        struct.pack(">IHBB", 6 << 28, len(options + payload), 0, 33)
        + bytes(15) + b"\1" + bytes(15) + b"\2" + options + payload
    )  # fmt: skip


def udp(source, target, payload):
    return struct.pack(">HHHH", source, target, 8 + len(payload), 0) + payload


RTP = struct.pack(">BBHII", 0x80, 0, 1, 160, 0xCAFE) + bytes(160)
DCCP = struct.pack(">HHBBHBBHI", 5001, 5002, 4, 0, 0, 2 << 1 | 1, 0, 1, 2) + bytes(50)
SHORT = struct.pack(">HHBBHI", 5001, 5002, 3, 0, 0, (2 << 1) << 24 | 77) + bytes(30)
SCTP = (
    struct.pack(">HHII", 6001, 6002, 1, 0)
    + struct.pack(">BBHIHHI", 0, 3, 26, 55, 2, 0, 0)
    + bytes(12)
)
TCP = struct.pack(">HHIIBBHHH", 80, 8080, 1000, 0, 5 << 4, 2, 9, 0, 0)
ETHER = bytes(12)

FRAMES = [
    (1, ETHER + b"\x08\x00" + ipv4(17, udp(4000, 4002, RTP)) + bytes(6)),
    (1, ETHER + b"\x81\x00\x00\x07\x08\x00" + ipv4(6, TCP)),
    (1, ETHER + b"\x86\xdd" + ipv6(33, DCCP)),
    (1, ETHER + b"\x08\x06" + bytes(28)),
    (101, ipv4(33, SHORT)),
    (101, ipv6(132, SCTP)),
    (101, ipv4(1, bytes(8))),
    (113, bytes(14) + b"\x08\x00" + ipv4(132, SCTP)),
    (276, b"\x08\x00" + bytes(18) + ipv4(17, udp(6511, 6511, DCCP))),
    (101, ipv4(17, udp(9899, 9899, SCTP))),
    (101, ipv4(17, udp(4000, 4002, RTP), 0x2000)),
    (101, ipv4(17, bytes(64), 0x0008)),
]


def pcapng(frames, resolution, offset_s=0, big=False):
    """An interface per link type; times are 1700000000.5 s and a millisecond for each frame."""
    order = ">" if big else "<"
    kinds = sorted({kind for kind, _ in frames})
    out = struct.pack(order + "IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    for kind in kinds:
        options = struct.pack(order + "HHB3xHHqHH", 9, 1, resolution, 14, 8, offset_s, 0, 0)
        size = 20 + len(options)
        out += struct.pack(order + "IIHHI", 1, size, kind, 0, 65535) + options
        out += struct.pack(order + "I", size)
    for i, (kind, data) in enumerate(frames):
        ticks = (1_700_000_000 - offset_s) * 10**resolution + (500 + i) * 10 ** (resolution - 3)
        padded = data + bytes(-len(data) % 4)
        size = 32 + len(padded)
        out += struct.pack(order + "IIIIIII", 6, size, kinds.index(kind), ticks >> 32,
                           ticks & 0xFFFFFFFF, len(data), len(data))  # fmt: skip
        out += padded + struct.pack(order + "I", size)
    return out


@needs_tshark
@pytest.mark.parametrize(
    ("resolution", "offset_s", "big"), [(6, 0, False), (9, 1_000_000_000, True)]
)
def test_links_and_encapsulations_as_tshark_reads_them(resolution, offset_s, big, tmp_path):
    file = tmp_path / "all.pcapng"
    file.write_bytes(pcapng(FRAMES, resolution, offset_s, big))
    packets, chunks, left_out, frames, untimed = _core.capture(file.read_bytes())
    assert (frames, untimed) == (12, 0)
    assert sorted(pl.DataFrame(left_out)["why"]) == [
        "IP fragments", "frames of ARP", "packets of ICMP"
    ]  # fmt: skip
    ours = pl.DataFrame(packets)
    rows = dissected(
        file, "frame.number", "frame.time_epoch", "ip.src", "ipv6.src", "tcp.srcport",
        "dccp.srcport", "sctp.srcport", "tcp.seq_raw", "dccp.seq_raw", "dccp.type",
        "sctp.data_tsn_raw", options=["-o", "ip.defragment:FALSE"],
    )  # fmt: skip
    assert len(rows) == 12
    seen = {int(row[0]): row for row in rows}
    for row in ours.iter_rows(named=True):
        _, time, v4, v6, tcp, dccp, sctp, tcp_seq, dccp_seq, dccp_type, tsn = seen[row["frame"]]
        whole, part = time.split(".")
        assert row["time_ns"] == int(whole) * 10**9 + int(part.ljust(9, "0")[:9])
        assert row["src"] == (v6 or v4)
        if row["frame"] == 9:
            # tshark does not read DCCP in UDP: it is that of frame 3, without its IPv6.
            of_3 = ours.row(by_predicate=pl.col("frame") == 3, named=True)
            assert all(row[name] == of_3[name] for name in ("src_port", "dst_port", "seq", "kind"))
            continue
        port = {"tcp": tcp, "dccp": dccp, "sctp": sctp}.get(row["protocol"])
        assert port is None or row["src_port"] == int(port)
        if row["protocol"] in ("tcp", "dccp"):
            # tshark has no raw number of 24 bits.
            assert row["seq"] == (77 if row["short_seq"] else int(tcp_seq or dccp_seq))
        if row["protocol"] == "dccp":
            assert row["kind"] == int(dccp_type) and row["short_seq"] == (row["frame"] == 5)
        if row["protocol"] == "sctp":
            assert [int(tsn)] == [
                c["tsn"] for c in pl.DataFrame(chunks).to_dicts() if c["frame"] == row["frame"]
            ]
    protocols = ours.select("frame", "protocol", "payload_bytes").rows()
    assert protocols == [
        (1, "udp", 172), (2, "tcp", 0), (3, "dccp", 50), (5, "dccp", 30), (6, "sctp", 10),
        (8, "sctp", 10), (9, "dccp", 50), (10, "sctp", 10), (11, "udp", 172),
    ]  # fmt: skip
    assert ours["rtp_ssrc"].to_list() == [0xCAFE, *[None] * 7, 0xCAFE]


def test_a_capture_of_headers_gives_the_lengths_of_packets(tmp_path):
    """`record.snaplen` keeps the first bytes, and the tables are the same but for what it cut."""
    whole, short = (
        talkspurt.run(SCENARIO, set={"record.snaplen": size} if size else {})
        for size in (None, "96B")
    )
    found = []
    for name, result in (("whole", whole), ("short", short)):
        folder = result.save(tmp_path / name, report=False)
        found.append(read([folder / "far.pcapng"]))
    # A second chunk in a packet may be behind the first 96 bytes.
    cut = pl.col("name").str.starts_with("sctp")
    assert found[0].flows.filter(~cut).equals(found[1].flows.filter(~cut))
    rows = [one.flows.filter(cut).to_dicts()[0] for one in found]
    assert rows[0].pop("goodput_bps") > 0 and rows[1].pop("goodput_bps") is None
    assert rows[0] == rows[1]


# ns-2.


@pytest.fixture(scope="module")
def wired(tmp_path_factory):
    return traced(tmp_path_factory, "wired.tcl", "wired.tr")


@pytest.fixture(scope="module", params=["old", "new"])
def wireless(tmp_path_factory, request):
    trace = traced(tmp_path_factory, "wireless.tcl", f"{request.param}.tr", request.param)
    return request.param, trace


def traced(tmp_path_factory, script, name, *words):
    """The trace that ns-2 writes for a script; without ns-2, the copy that it wrote earlier."""
    target = tmp_path_factory.mktemp("ns") / name
    if shutil.which("ns") is None:
        target.write_bytes(gzip.decompress((DATA / f"{name}.gz").read_bytes()))
        return target
    more = [*words, str(target), "ON"] if words else [str(target)]
    output("ns", DATA / script, *more, cwd=target.parent)
    return target


@needs_ns
@pytest.mark.parametrize("name", ["wired", "old", "new"])
def test_the_copies_are_what_ns_2_writes(name, tmp_path_factory):
    script = "wired.tcl" if name == "wired" else "wireless.tcl"
    fresh = traced(tmp_path_factory, script, f"{name}.tr", *([] if name == "wired" else [name]))
    assert gzip.decompress((DATA / f"{name}.tr.gz").read_bytes()) == fresh.read_bytes()


def test_wired_trace_by_the_rules_of_awk_scripts(wired):
    """Sent is `+` at the source, received `r` at the destination, lost `d`; delay by packet."""
    ours = read([wired])
    sent, received, lost, delays = Counter(), Counter(), Counter(), {}
    began = {}
    for line in wired.read_text().splitlines():
        event, time, here, there, kind, size, _, fid, src, dst, _, uid = line.split()[:12]
        if kind in ("ack", "tcpFriendCtl", "sctp") or (kind == "tcp" and size == "40"):
            continue
        if event == "+" and src.split(".")[0] == here:
            sent[fid] += 1
            began[uid] = float(time)
        elif event == "r" and dst.split(".")[0] == there:
            received[fid] += 1
            delays.setdefault(fid, []).append(float(time) - began[uid])
        elif event == "d":
            lost[fid] += 1
    assert set(sent) == {"1", "2", "3", "4"}
    for row in ours.flows.iter_rows(named=True):
        fid = row["name"].partition("-")[2]
        if row["transport"] == "sctp":
            continue
        told = (row["sent_packets"], row["received_packets"], row["lost_packets"])
        assert told == (sent[fid], received[fid], lost[fid])
        assert row["delay_mean_s"] == pytest.approx(sum(delays[fid]) / len(delays[fid]))
        assert row["in_flight_packets"] == sent[fid] - received[fid] - lost[fid]
        assert row["goodput_bps"] is None
    links = {row["name"]: row for row in ours.links.iter_rows(named=True)}
    drops = sum(line.startswith("d") for line in wired.read_text().splitlines())
    assert sum(row["drops"] for row in links.values()) == drops > 0
    assert links["1-2"]["queue_max_packets"] <= 8
    assert all(row["rate_bps"] is row["utilisation"] is None for row in links.values())


def test_wireless_traces_of_both_formats(wireless):
    name, trace = wireless
    ours = read([trace])
    lines = trace.read_text().splitlines()

    def count(event, layer):
        if name == "old":
            return sum(w[0] in event and w[3] == layer and w[6] == "cbr"
                       for w in (line.split() for line in lines) if len(w) > 6)  # fmt: skip
        return sum(
            line[0] in event and f"-Nl {layer} " in line and "-It cbr" in line for line in lines
        )

    row = ours.flows.row(by_predicate=pl.col("transport") == "udp", named=True)
    assert row["sent_packets"] == count("s", "AGT") > 100
    assert row["received_packets"] == count("r", "AGT") > 50
    assert row["lost_packets"] == count("dD", "IFQ") + count("dD", "RTR") + count("dD", "MAC") > 0
    assert ours.manifest["imported"]["format"] == f"ns-2 ({name} wireless)"
    assert ours.topology["flows"][0]["routes"] == [["0", "1", "2"]]
    # A packet of 512 bytes leaves the router with an IP header.
    assert set(ours.packets("udp-1")["ip_bytes"]) == {532}
    assert row["delay_min_s"] > 2 * 512 * 8 / 11e6


def test_both_wireless_formats_give_the_same_tables(tmp_path_factory):
    found = [
        read([traced(tmp_path_factory, "wireless.tcl", f"{name}.tr", name)])
        for name in ("old", "new")
    ]
    for table in ("flows", "packets", "series"):
        # The old format has no flow number.
        assert found[0].table(table).equals(found[1].table(table)), table


def test_lines_of_agents_and_energy_are_no_packets(tmp_path_factory, tmp_path):
    """As DSR writes them at its start, AODV with its table, and nodes with an energy model."""
    trace = traced(tmp_path_factory, "wireless.tcl", "old.tr", "old")
    lines = trace.read_text().splitlines(keepends=True)
    more = [
        "Sconfig 0.00000 tap: on snoop: rts? on errs? on\n",
        "Ssalv 1.50000 _1_ salvaging 1 -> 2 --> 3 with [0 1 2]\n",
        "A 1.000000000 _1_ deleting LL hop to 2 (delta 0.5)\n",
        "N -t 1.000000 -n 0 -e 99.500000\n",
    ]
    (tmp_path / "more.tr").write_text("".join([*more, *lines, *more]))
    assert read([tmp_path / "more.tr"]).flows.equals(read([trace]).flows)


def test_what_waits_at_the_end_of_a_simulation_is_in_flight(tmp_path):
    sent = "s {0}.0 _0_ AGT  --- {0} cbr 512 [0 0 0 0] ------- [0:0 1:0 32 0] [{0}] 0 0\n"
    drop = "D 9.0 _0_ IFQ  {1} {0} cbr 532 [0 1 0 800] ------- [0:0 1:0 32 1] [{0}] 0 0\n"
    drops = [drop.format(number, why) for number, why in ((1, "END"), (2, "IFQ"), (3, "DUP"))]
    (tmp_path / "end.tr").write_text("".join([*map(sent.format, (1, 2, 3)), *drops]))
    row = read([tmp_path / "end.tr"]).flows.row(0, named=True)
    assert (row["sent_packets"], row["lost_packets"], row["in_flight_packets"]) == (3, 1, 2)


def test_our_own_trace_gives_the_packets_of_the_run(run, tmp_path):
    """The reverse of `export --to ns2`."""
    result, folder = run
    where = exporting.export(folder, "ns2", tmp_path / "ns2")
    ours = read([where / "trace.tr"])
    # Nodes are numbered as links name them.
    nodes = {"home": "0", "hub": "1", "office": "2"}
    theirs = {(row["transport"].partition("-")[0], nodes[row["from"]]): row
              for row in result.flows.iter_rows(named=True)}  # fmt: skip
    assert ours.flows.height == len(theirs)
    for row in ours.flows.iter_rows(named=True):
        match = theirs[row["transport"], row["from"]]
        for column in ("sent_packets", "received_packets", "lost_packets", "in_flight_packets"):
            assert row[column] == match[column], (row["name"], column)
        assert row["delay_mean_s"] == pytest.approx(match["delay_mean_s"], abs=1e-8)
    drops = result.links["drops"].sum()
    assert ours.links["drops"].sum() == drops


@pytest.mark.parametrize("transport", [
    {"kind": "dccp", "ccid": 2}, {"kind": "dccp", "ccid": 3}, {"kind": "tfrc"}, {"kind": "udp"},
], ids=["ccid-2", "ccid-3", "tfrc", "udp"])  # fmt: skip
def test_rtcp_in_our_own_trace_is_no_data_whatever_carries_it(transport, tmp_path):
    """RTCP of both ends: the sender's reports, and the receiver's in the direction without media."""
    line = link_text("line", "a>b", "1Mbit/s", "20ms", 50, loss=0.02)
    call = flow_text("call", "a>b")
    result = talkspurt.run(
        scenario_text("RTCP", "20s", line, call), set={"flows.call.transport": transport}
    )
    where = exporting.export(result.save(tmp_path / "run", report=False), "ns2", tmp_path / "ns2")
    trace = (where / "trace.tr").read_text()
    assert {row.split()[2] for row in trace.splitlines() if row.split()[4] == "rtcp"} == {"0", "1"}
    ours = read([where / "trace.tr"])
    columns = ["sent_packets", "received_packets", "lost_packets", "in_flight_packets"]
    assert ours.flows.select(columns).rows() == result.flows.select(columns).rows()
    assert ours.flows["transport"].item() == transport["kind"]


# The folder, and the commands on it.


@pytest.fixture(scope="module")
def folder(run, tmp_path_factory):
    _, made = run
    target = tmp_path_factory.mktemp("imported") / "two"
    done = succeed("import", made / "near.pcapng", made / "far.pcapng", "-o", target)
    assert "Clock offset: 0 ms was assumed" in done.stdout
    return target


def test_the_folder_loads_and_says_where_it_is_from(run, folder):
    import hashlib

    _, made = run
    result = talkspurt.load(folder)
    told = result.manifest["imported"]
    for entry, name in zip(told["files"], ("near", "far"), strict=True):
        data = (made / f"{name}.pcapng").read_bytes()
        assert entry["sha256"] == hashlib.sha256(data).hexdigest()
    assert "generated_packets" in told["unknown"] and "sent_packets" not in told["unknown"]
    made_rate = compute(result, "generated_rate")
    assert made_rate["generated_pps"].null_count() == made_rate.height > 0
    assert (folder / "report.html").stat().st_size > 10_000
    assert result.packets().height == result.packets().filter(pl.col("enqueued_s").is_null()).height


@pytest.mark.parametrize("words", [
    ("metrics", "FOLDER"), ("metrics", "FOLDER", "mos"), ("metrics", "FOLDER", "goodput_over_time"),
    ("metrics", "FOLDER", "mos_over_time", "--json"), ("report", "FOLDER"),
    ("plot", "FOLDER", "delay_p95_s", "-o", "TMP/a.png"), ("plot", "FOLDER", "mos_over_time", "-o", "TMP/b.png"),
    ("compare", "FOLDER", "RUN", "-o", "TMP/cmp"),
])  # fmt: skip
def test_commands_accept_the_folder(words, folder, run, tmp_path):
    where = {"FOLDER": str(folder), "RUN": str(run[1])}
    done = command(*(where.get(w, w.replace("TMP", str(tmp_path))) for w in words))
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


def test_an_imported_trace_cannot_be_run_again(folder, tmp_path):
    done = refused("export", folder, "--to", "pcapng", "-o", tmp_path / "x")
    assert "was imported from a trace" in done.stderr
    assert not (tmp_path / "x").exists()


WRONG = {
    "empty": (b"", "is empty"),
    "text": (b"hello, world\nthis is no trace\n", "is neither pcap nor pcapng, nor a trace of ns-2"),
    "binary": (bytes(range(256)) * 9, "is neither pcap nor pcapng, nor a trace of ns-2"),
    "gzip": (gzip.compress(b"r 1 0 1 cbr 9 ------- 0 0.0 1.0 0 0\n"), "is compressed with gzip"),
    "header": (struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1), "holds no packets"),
    "cut in its first packet": ((LINUX / "ccid2.pcap").read_bytes()[:50], "holds no packets"),
    "damaged": ((LINUX / "ccid2.pcap").read_bytes()[:32] + bytes(4) + b"\xff" * 99, "ends in the middle of a packet"),
    "halfline": (b"+ 0.1 0 1 cbr 210 ------- 1 0.0 1.0 0 0\nr 0.2 0 1 cb", "line 2 ends in the middle"),
    "badline": (b"+ 0.1 0 1 cbr 210 ------- 1 0.0 1.0 0 0\nr x 0 1 cbr 210\n", "line 2 is no trace line"),
    "routing": (b"s 0.5 _0_ RTR  --- 0 AODV 48 [0 0 0 0] ------- [0:255 -1:255 30 0]\n", "holds no packets of"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_trace_is_one_error(name, tmp_path):
    data, words = WRONG[name]
    file = tmp_path / "trace"
    file.write_bytes(data)
    assert words in told("import", file, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_wrong_options_are_reported_at_once(tmp_path):
    done = refused("import", LINUX / "ccid2.pcap", "--playout", "soon", "--payload", "200=opus",
                   "--payload", "96=noise", "--clock-offset", "1ms", "-o", tmp_path / "out")  # fmt: skip
    for words in ("--playout soon", "--payload 200=opus", "--payload 96=noise", "--clock-offset"):
        assert words in done.stderr
    assert "none.pcap" in refused("import", tmp_path / "none.pcap").stderr


def test_captures_of_different_traffic_have_nothing_in_common():
    with pytest.raises(BadInputError, match="has no flow in common"):
        read([LINUX / "sctp.pcap", LINUX / "ccid2.pcap"])


# Parts.


def test_ranges_of_bytes_count_each_byte_once():
    known = spans.Spans()
    ranges = ((0, 10), (20, 30), (5, 25), (0, 30), (30, 31))
    assert [known.add(*each) for each in ranges] == [10, 10, 10, 0, 1]


def test_numbers_are_extended_over_their_wrap():
    assert rtp.unwrapped([65534, 65535, 0, 65533, 2], 16) == [65534, 65535, 65536, 65533, 65538]


def test_jitter_is_that_of_rfc_3550():
    """By hand: transit times 0, 16, 0 ms give J = 1 ms, then 1 + (16 − 1)/16 ms."""
    from talkspurt.importing.model import Packet

    packets = [
        Packet(i, True, 200, sent, sent + transit, "received")
        for i, (sent, transit) in enumerate(((0.0, 0.1), (0.02, 0.116), (0.04, 0.1)))
    ]
    assert tables.jitter_s(packets) == pytest.approx((0.001 + 0.001 + 0.015 / 16) / 2)
