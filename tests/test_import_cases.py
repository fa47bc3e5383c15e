"""Captures of what real senders and paths do beyond a plain stream: sources that restart, events, copies,
datagrams without a number, fragments, keep-alives, packets over 64 KiB."""

import shutil
import struct
import sys

import pytest

from captures import ipv4, media, tcp, udp, written
from command import output, process, succeed
from talkspurt import import_trace as read
from talkspurt.errors import BadInputError
from talkspurt.importing import matching, rtp, spans
from talkspurt.metrics import sheet
from talkspurt.results.result import Study
from texts import BULK, NEWRENO, flow_text, link_text, put, scenario_text

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")


def imported(tmp_path, *captures):
    files = [written(tmp_path / f"{i}.pcap", packets) for i, packets in enumerate(captures)]
    return read(files)


def only_row(result):
    assert result.flows.height == 1
    return result.flows.row(0, named=True)


def counts(row):
    return [row[f"{what}_packets"] for what in ("sent", "received", "lost")]


def test_copies_of_rtp_packets_count_once(tmp_path):
    call = [(i / 50, media(i, 160 * i)) for i in range(100)]
    result = imported(tmp_path, [*call, *((time + 0.003, data) for time, data in call)])
    assert counts(only_row(result)) == [100, 100, 0]
    assert result.manifest["imported"]["flows"]["rtp-1"]["duplicate_packets"] == 100


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_packets_captured_at_two_interfaces_count_once(kind, tmp_path):
    """With one number of IP; a retransmission of TCP has another, and equal datagrams, too."""
    packets = []
    for i in range(50):
        whole = {"number": 7 + i, "hops": 64}
        for hops, later in ((64, 0), (63, 1e-5)):
            whole["hops"] = hops
            sent = tcp(1 + 1000 * i, 1000, **whole) if kind == "tcp" else udp(bytes(99), **whole)
            packets.append((i / 50 + later, sent))
    result = imported(tmp_path, packets)
    row = only_row(result)
    assert row["received_packets"] == 50
    facts = result.manifest["imported"]["flows"][row["name"]]
    assert facts["duplicate_packets"] == 50 and facts.get("retransmitted_packets", 0) == 0
    assert result.manifest["imported"]["frames"][0]["duplicate"] == 50
    assert "retransmission" not in result.events()["event"].to_list()


def test_lengths_in_the_place_of_numbers_are_no_rtp(tmp_path):
    """BACnet/IP begins with 0x81 and its length, which here is 21, then 22 in most packets."""
    sizes = [21, *[22] * 12]
    messages = [struct.pack(">BBHIQ", 0x81, 10, size, 7, 9) + bytes(size - 16) for size in sizes]
    result = imported(tmp_path, [(i, udp(data)) for i, data in enumerate(messages)])
    assert only_row(result)["name"] == "udp-1"


@pytest.mark.parametrize("number", [30_000, 65_000])
def test_a_source_that_restarts_loses_nothing(number, tmp_path):
    """A restart has another sequence number (RFC 3550 A.1) and another timestamp."""
    first = [(i / 50, media(100 + i, 160 * i)) for i in range(250)]
    second = [(5 + i / 50, media(number + i, 2**31 + 160 * i)) for i in range(250)]
    result = imported(tmp_path, first + second)
    row = only_row(result)
    assert counts(row) == [500, 500, 0]
    assert row["late_packets"] == 0 and row["jitter_s"] == pytest.approx(0, abs=1e-9)
    assert result.manifest["imported"]["flows"]["rtp-1"]["restarts"] == 1
    assert any("restarts" in note for note in result.manifest["imported"]["notes"])


def test_an_outage_is_loss(tmp_path):
    """A jump of 3500 numbers, that the timestamps confirm."""
    call = [(i / 50, media(i, 160 * i)) for i in range(8000) if not 2000 <= i < 5500]
    row = only_row(imported(tmp_path, call))
    assert counts(row) == [8000, 4500, 3500]
    assert row["longest_gap_s"] == pytest.approx(70)


@pytest.mark.parametrize("stamp", [2**31, 2**32 - 10_000_000])
def test_another_clock_behind_the_same_numbers_makes_nothing_late(stamp, tmp_path):
    """As where a gateway switches to another source, and keeps its own numbers."""
    call = [(i / 50, media(i, 160 * i + (stamp if i >= 250 else 0))) for i in range(500)]
    row = only_row(imported(tmp_path, call))
    assert row["late_packets"] == 0
    assert row["jitter_s"] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("payloads", [{}, {101: "telephone-event"}])
def test_events_in_a_call_are_not_late_speech(payloads, tmp_path):
    """RFC 4733 §2.5.1.2: all packets of an event have the time of its begin."""
    call = []
    for i in range(500):
        event = 10 <= i % 50 < 20
        data = media(i, 160 * (i - i % 50 + 10), 101, 4) if event else media(i, 160 * i)
        call.append((i / 50, data))
    row = only_row(read([written(tmp_path / "events.pcap", call)], payloads=payloads))
    assert counts(row) == [500, 500, 0]
    assert (row["late_packets"], row["concealed_ratio"], row["jitter_s"]) == (0, 0, 0)
    assert row["mos"] > 4.3


def test_numbers_of_a_path_that_overtakes_are_no_restart():
    """A burst of 200 packets 200 places later."""
    order = [*range(1000), *range(1200, 1400), *range(1000, 1200), *range(1400, 2000)]
    rows = [{"rtp_seq": n % 65536, "rtp_timestamp": 160 * n} for n in order]
    assert rtp.numbers(rows) == (order, set())


def test_the_sheet_counts_senders_of_one_capture(tmp_path):
    """What arrived was sent, also where the capture does not tell how much."""
    ahead = [(i / 50, tcp(1 + 1000 * i, 1000)) for i in range(10)]
    result = imported(tmp_path, ahead)
    assert sheet.nodes(Study.of_run(result)) == [{"nodes": 2, "senders": 1, "receivers": 1}]


# Two captures.


def test_datagrams_without_a_number_are_matched_by_their_payload(tmp_path):
    """Linux does not number the packets of an unconnected socket."""
    lost = set(range(3, 500, 11))

    def packets(hops, later):
        return [
            (i / 50 + later, udp(struct.pack(">I", i) + bytes(96), hops=hops))
            for i in range(500)
            if hops == 64 or i not in lost
        ]

    row = only_row(imported(tmp_path, packets(64, 0), packets(60, 0.05)))
    assert counts(row) == [500, 500 - len(lost), len(lost)]
    assert row["delay_min_s"] == pytest.approx(0.05) == row["delay_max_s"]


def test_what_one_capture_lacks_is_said_and_the_rest_imported(tmp_path):
    ahead = [(i / 50, udp(struct.pack(">I", i), hops=9)) for i in range(50)]
    later = [(t + 0.01, udp(struct.pack(">I", i), hops=8)) for i, (t, _) in enumerate(ahead)]
    back = [
        (t, ipv4(17, struct.pack(">HHHHI", 4002, 4000, 12, 0, i), back=True))
        for i, (t, _) in enumerate(ahead)
    ]
    result = imported(tmp_path, ahead + back, later)
    assert counts(only_row(result)) == [50, 50, 0]
    assert result.manifest["imported"]["not_imported"] == {matching.ONE_SIDED: 50}
    assert result.manifest["imported"]["directions_in_one_capture"] == 1


# Lengths.


def fragments(payload, number, begin):
    """A datagram in fragments of 1500 bytes, a tenth of a millisecond apart."""
    data = udp(payload)[20:]
    return [
        (begin + at * 1e-7,
         ipv4(17, data[at : at + 1480], number=number,
              fragment=at // 8 | (0x2000 if at + 1480 < len(data) else 0)))
        for at in range(0, len(data), 1480)
    ]  # fmt: skip


def test_fragments_count_with_their_datagram(tmp_path):
    datagrams = [fragments(bytes(3992), i, i / 10) for i in range(101)]
    # Fragments of two datagrams may be mixed, and their order may change.
    datagrams[7] = [(t + 0.1, data) for t, data in reversed(datagrams[7])]
    packets = [packet for one in datagrams for packet in one]
    # Of the last one, the middle is missing.
    del packets[-2]
    result = imported(tmp_path, packets)
    row = only_row(result)
    assert row["received_packets"] == 101
    assert row["received_bytes"] == 100 * (4000 + 3 * 20) + 1500
    span = 8 / row["throughput_bps"] * row["received_bytes"]
    assert row["goodput_bps"] * span / 8 == pytest.approx(100 * 3992 + 1472)
    assert result.manifest["imported"]["not_imported"] == {"IP fragments": 1}


@needs_tshark
def test_throughput_of_fragments_is_that_of_tshark(tmp_path):
    file = written(
        tmp_path / "f.pcap", [p for i in range(50) for p in fragments(bytes(3992), i, i / 10)]
    )
    told = output("tshark", "-r", file, "-q", "-z", "io,stat,0,BYTES")
    total = next(line for line in told.splitlines() if "<>" in line).split("|")[2]
    assert only_row(read([file]))["received_bytes"] == int(total)


@pytest.mark.parametrize("most", [None, 96])
def test_segments_longer_than_64_kib_have_their_length_from_the_frame(most, tmp_path):
    """Their IP header has no length: it has 16 bits."""
    packets = [(i / 10, tcp(1 + 100_000 * i, 100_000, total=0)) for i in range(11)]
    row = only_row(read([written(tmp_path / "big.pcap", packets, most=most)]))
    assert row["received_bytes"] == 11 * 100_040
    assert row["goodput_bps"] == pytest.approx(8 * 11 * 100_000)


def test_a_keep_alive_with_a_byte_is_no_retransmission(tmp_path):
    """RFC 1122 §4.2.3.6. Wireshark says the same of both."""
    data = [(i / 10, tcp(100 + 1000 * i, 1000)) for i in range(20)]
    again = [(1.95, tcp(100 + 1000 * 19, 1000))]
    alive = [(5.0 + i, tcp(99 + 1000 * 20, 1)) for i in range(5)]
    result = imported(tmp_path, data + again + alive)
    assert result.manifest["imported"]["flows"]["tcp-1"]["retransmitted_packets"] == 1
    assert only_row(result)["goodput_bps"] == pytest.approx(8 * 20_000 / 9)


def test_an_unknown_link_type_is_named(tmp_path):
    with pytest.raises(BadInputError, match=r"link type 249 \(USBPcap\), which are not read"):
        read([written(tmp_path / "usb.pcap", [(0, bytes(60))], link=249)])


def test_ranges_know_their_end():
    known = spans.Spans()
    assert known.end is None
    known.add(10, 20)
    known.add(0, 5)
    assert known.end == 20


def test_a_capture_of_a_call_alone_is_a_result(tmp_path):
    """Its description is a complete scenario, which ended in a traceback."""
    call = [(i / 50, media(i, 160 * i)) for i in range(100)]
    folder = imported(tmp_path, call).save(tmp_path / "out", report=True)
    assert (folder / "report.html").exists()


def test_many_hosts_at_links_of_unknown_rate_are_drawn_as_one(tmp_path):
    """Before, the report ended in a traceback."""
    packets = [
        (i / 100, data[:12] + bytes((10, 0, 1, i % 20 + 1)) + data[16:])
        for i, data in ((i, media(i // 20, 160 * (i // 20))) for i in range(200))
    ]
    folder = imported(tmp_path, packets).save(tmp_path / "out", report=True)
    assert "10.0.1.1 …" in (folder / "report.html").read_text()


def test_queues_over_time_are_those_of_the_run(tmp_path):
    """The mean of each bin, from the lines of ns-2, as the simulator integrated it."""
    import talkspurt

    link = link_text("line", "a>b", "1Mbit/s", "20ms", 20)
    text = scenario_text("A queue", "4s", link, flow_text("bulk", "a>b", NEWRENO, BULK))
    scenario = put(tmp_path / "queue.toml", text)
    succeed("run", scenario, "--out", tmp_path / "run", "--no-report")
    succeed("export", tmp_path / "run", "--to", "ns2", "--out", tmp_path / "trace")
    found, own = read([tmp_path / "trace" / "trace.tr"]), talkspurt.load(tmp_path / "run")
    for name, here in (("line", "0-1"), ("line.back", "1-0")):
        ours = talkspurt.metrics.compute(found, "link_queue", link=here)
        theirs = talkspurt.metrics.compute(own, "link_queue", link=name)
        assert ours["time_s"].to_list() == theirs["time_s"].to_list()
        # Packets that wait at the end of the trace have not left: the last second lacks them.
        assert ours["queue_packets"].to_list()[:3] == pytest.approx(
            theirs["queue_packets"].to_list()[:3], abs=1e-4
        )
        mean = found.links.filter(name=here)["queue_mean_packets"].item()
        series = found.link_series(here)
        width = series["time_s"].diff().fill_null(series["time_s"][0])
        total = (series["queue_packets"] * width).sum() / series["time_s"][-1]
        assert total == pytest.approx(mean)


def to_itself(data):
    """A packet whose destination is its source."""
    return data[:16] + data[12:16] + data[20:]


@pytest.mark.parametrize("with_others", [False, True])
def test_a_host_that_sends_to_itself_is_drawn_and_counted(with_others, tmp_path):
    """As on loopback: such a link has a length, and the report of other flows is not lost with it."""
    call = [(i / 50, to_itself(media(i, 160 * i))) for i in range(100)]
    others = [(i / 50, media(i, 160 * i)) for i in range(100)] if with_others else []
    result = imported(tmp_path, call + others)
    assert [counts(row) for row in result.flows.to_dicts()] == [[100, 100, 0]] * (1 + with_others)
    place = result.save(tmp_path / "out")
    picture = (place / "figures" / "topology.svg").read_text()
    assert "nan" not in picture and picture.count("<polyline") == 2 * (1 + with_others)
    assert (place / "report.html").stat().st_size > 10_000


def test_a_socket_that_sends_to_itself_sends_in_one_direction(tmp_path):
    packet = to_itself(udp(bytes(100)))
    packet = packet[:22] + packet[20:22] + packet[24:]
    result = imported(tmp_path, [(i / 10, packet) for i in range(20)])
    assert only_row(result)["received_packets"] == 20
    assert result.packets().height == 20


def stray(data, ssrc):
    return data[:36] + struct.pack(">I", ssrc) + data[40:]


@pytest.mark.parametrize("number", [5, 5000, 40_000])
def test_a_packet_of_another_source_loses_nothing(number, tmp_path):
    """Its number is not one of the source that it is among; RFC 3550 A.1 takes two for a source."""
    call = [(i / 50, media(100 + i, 160 * i)) for i in range(100)]
    other = (0.995, stray(media(number, 5, 13, 1), 0xDEAD))
    result = imported(tmp_path, [*call, other])
    alone = only_row(imported(tmp_path, call))
    row, single = result.flows.to_dicts()
    assert counts(row) == [100, 100, 0] and counts(single) == [1, 1, 0]
    assert (row["mos"], row["jitter_s"]) == (alone["mos"], alone["jitter_s"])
    assert single["mos"] is None


def test_sources_beside_a_packet_of_another_are_whole(tmp_path):
    first = [(i / 50, media(100 + i, 160 * i)) for i in range(100)]
    second = [(3 + i / 50, stray(media(300 + i, 160 * i), 4)) for i in range(100)]
    result = imported(tmp_path, [*first, (2.5, stray(media(5000, 5), 3)), *second])
    expected = [[100, 100, 0], [1, 1, 0], [100, 100, 0]]
    assert [counts(row) for row in result.flows.to_dicts()] == expected


def dccp(number, kind=4):
    # RFC 4340 §5.1: extended numbers; a Request has a service code, other packets acknowledge one.
    head = struct.pack(">HHBBHB", 4000, 4002, 6 if kind == 4 else 4, 0, 0, kind << 1 | 1)
    head += bytes(1) + struct.pack(">Q", number)[2:]
    head += bytes(4) if kind == 0 else bytes(8)
    return ipv4(33, head + bytes(50 if kind == 4 else 0))


@pytest.mark.parametrize("first", [2**47, 900, 30])
def test_a_second_connection_of_dccp_on_the_same_ports_loses_nothing(first, tmp_path):
    """It has an initial number of its own (RFC 4340 §7.2)."""
    both = [
        (10 * later + i / 50, dccp(begin + i, 0 if i == 0 else 4))
        for later, begin in ((0, 100), (1, first))
        for i in range(50)
    ]
    assert counts(only_row(imported(tmp_path, both))) == [98, 98, 0]


def test_the_length_of_a_file_is_checked_before_it_is_read(tmp_path):
    """In a process that may have 600 MB, in which any capture of 3 kB is read."""
    small = written(tmp_path / "small.pcap", [(i / 50, media(i, 160 * i)) for i in range(15)])
    for name, head in (("zeros.pcap", b""), ("long.pcap", small.read_bytes()), ("long.toml", b"")):
        with (tmp_path / name).open("wb") as file:
            file.write(head)
            file.truncate(10 << 30)
    words = f"ulimit -v 1500000; exec {sys.executable} -m talkspurt"
    for name, command, code, said in (
        ("small.pcap", "import", 0, ""), ("zeros.pcap", "import", 2, "is neither pcap nor pcapng"),
        ("long.pcap", "import", 2, "is longer than 4096 MiB"),
        ("long.toml", "check", 2, "is longer than 16 MiB"),
    ):  # fmt: skip
        more = "--no-report --out out" if command == "import" else ""
        line = f"{words} {command} {name} {more}"
        done = process("bash", "-c", line, cwd=tmp_path, env={"POLARS_MAX_THREADS": "1"})
        assert done.returncode == code and said in done.stderr, done.stderr
