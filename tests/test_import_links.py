"""Captures of link layers and tunnels: the same packets give the same tables, whatever they were sent in, and what is
not read is counted by its kind. tshark reads every capture, too."""

import shutil
import struct

import polars as pl
import pytest

from captures import ipv4, media, tcp, written
from command import output
from talkspurt import import_trace as read
from talkspurt.errors import BadInputError
from texts import UDP, flow_text, inline, link_text, scenario_text

RAW, ETHERNET, PPP, HDLC, WIRELESS, COOKED, RADIOTAP, SESSION, COOKED2 = (
    101, 1, 9, 50, 105, 113, 127, 51, 276
)  # fmt: skip
FROM, TO, THIRD = (bytes((2, 0, 0, 0, 0, n)) for n in (1, 2, 3))
SNAP = bytes((0xAA, 0xAA, 3, 0, 0, 0))


def ether(kind, payload):
    return TO + FROM + struct.pack(">H", kind) + payload


def ppp(packet, protocol=0x0021):
    return struct.pack(">H", protocol) + packet


def pppoe(packet, protocol=0x0021):
    inside = ppp(packet, protocol)
    return struct.pack(">BBHH", 0x11, 0, 7, len(inside)) + inside


def labels(count, payload):
    """Entries of MPLS with TTL 9; the last has the bit S."""
    return b"".join(
        struct.pack(">I", 100 + n << 12 | (n == count - 1) << 8 | 9) for n in range(count)
    ) + payload  # fmt: skip


def llc(packet):
    return SNAP + b"\x08\x00" + packet


def wlan(number, body, *, flags=0x01, quality=None, ht=False, kind=0x08, fragment=0):
    """A data frame of IEEE 802.11, by default to an access point; ``quality`` is the QoS control."""
    head = struct.pack("<BBH", kind | (0x80 if quality is not None else 0),
                       flags | (0x80 if ht else 0), 0)  # fmt: skip
    head += TO + FROM + THIRD + struct.pack("<H", (number % 4096) << 4 | fragment)
    if flags & 3 == 3:
        head += FROM
    if quality is not None:
        head += struct.pack("<H", quality)
    return head + (bytes(4) if ht else b"") + body


def aggregate(packets):
    """An A-MSDU: subframes padded to whole words, but the last."""
    frames = [TO + FROM + struct.pack(">H", len(llc(p))) + llc(p) for p in packets]
    return b"".join(f + bytes(-len(f) % 4) for f in frames[:-1]) + frames[-1]


def radiotap(frame, *, flags=None, time=False):
    """Present: a time (bit 0), flags (bit 1), and in a second word nothing."""
    present = (1 if time else 0) | (2 if flags is not None else 0) | 1 << 31
    fields = struct.pack("<II", present, 0)
    if time:
        fields += bytes(-(4 + len(fields)) % 8) + bytes(8)
    if flags is not None:
        fields += bytes((flags,))
    return struct.pack("<BBH", 0, 0, 4 + len(fields)) + fields + frame


def ipv6(protocol, payload):
    ends = bytes.fromhex("fd00" + "00" * 13 + "01" + "fd00" + "00" * 13 + "02")
    return struct.pack(">IHBB", 6 << 28, len(payload), protocol, 64) + ends + payload


def gre(payload, kind=0x0800, flags=0):
    words = sum(bool(flags & bit) for bit in (0x8000, 0x2000, 0x1000))
    return struct.pack(">HH", flags, kind) + bytes(4 * words) + payload


CALL = [(i / 50, media(i, 160 * i)) for i in range(40) if i not in (7, 20, 21)]
DATA = [(0.5 + i / 100, tcp(1 + 1000 * i, 1000)) for i in (0, 1, 2, 2, 3)]
PACKETS = sorted([*CALL, *DATA], key=lambda one: one[0])

LINKS = {
    "PPPoE": (ETHERNET, lambda n, p: ether(0x8864, pppoe(p))),
    "PPPoE in a VLAN, padded": (
        ETHERNET, lambda n, p: ether(0x8100, b"\x00\x05\x88\x64" + pppoe(p)) + bytes(9)
    ),
    "PPPoE without Ethernet": (SESSION, lambda n, p: pppoe(p)),
    "PPP": (PPP, lambda n, p: ppp(p)),
    "PPP in HDLC": (HDLC, lambda n, p: b"\xff\x03" + ppp(p)),
    "MPLS": (ETHERNET, lambda n, p: ether(0x8847, labels(1, p))),
    "MPLS, three labels": (ETHERNET, lambda n, p: ether(0x8847, labels(3, p))),
    "Ethernet with LLC": (ETHERNET, lambda n, p: ether(len(llc(p)), llc(p))),
    "802.11": (WIRELESS, lambda n, p: wlan(n, llc(p))),
    "802.11, four addresses": (WIRELESS, lambda n, p: wlan(n, llc(p), flags=0x03)),
    "802.11, QoS": (WIRELESS, lambda n, p: wlan(n, llc(p), quality=5)),
    "802.11, QoS and HT control": (WIRELESS, lambda n, p: wlan(n, llc(p), quality=5, ht=True)),
    "radiotap": (RADIOTAP, lambda n, p: radiotap(wlan(n, llc(p)))),
    "radiotap, check sequence": (
        RADIOTAP, lambda n, p: radiotap(wlan(n, llc(p)) + b"fcs.", flags=0x10, time=True)
    ),
    "radiotap, padded header": (
        RADIOTAP,
        lambda n, p: radiotap(wlan(n, bytes(2) + llc(p), quality=0), flags=0x20, time=True),
    ),
    "radiotap, A-MSDU": (
        RADIOTAP, lambda n, p: radiotap(wlan(n, aggregate([p]), quality=0x80), flags=0)
    ),
    "Linux cooked": (COOKED, lambda n, p: bytes(14) + b"\x08\x00" + p),
    "Linux cooked 2": (COOKED2, lambda n, p: b"\x08\x00" + bytes(18) + p),
    "IP in IP": (RAW, lambda n, p: ipv4(4, p, number=n)),
    "IPv4 in IPv6": (RAW, lambda n, p: ipv6(4, p)),
    "GRE": (RAW, lambda n, p: ipv4(47, gre(p), number=n)),
    "GRE with key and number": (RAW, lambda n, p: ipv4(47, gre(p, flags=0x3000), number=n)),
    "GRE with checksum": (RAW, lambda n, p: ipv4(47, gre(p, flags=0x8000), number=n)),
    "Ethernet in GRE": (RAW, lambda n, p: ipv4(47, gre(ether(0x0800, p), 0x6558), number=n)),
    "GRE in IP in IP, behind MPLS": (
        ETHERNET, lambda n, p: ether(0x8847, labels(2, ipv4(4, ipv4(47, gre(p)))))
    ),
}  # fmt: skip


def tshark(path, *options):
    told = output("tshark", "-r", path, "-T", "fields", *options)
    return told.splitlines()


def numbers(path):
    """Addresses, identification and length of the innermost packet of each frame, as tshark reads them."""
    names = ("ip.src", "ip.dst", "ip.id", "ip.len", "udp.srcport", "tcp.seq_raw", "tcp.len")
    options = ["-E", "occurrence=l", *(part for name in names for part in ("-e", name))]
    return tshark(path, *options)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    path = written(tmp_path_factory.mktemp("plain") / "packets.pcap", PACKETS, RAW)
    return path, read([path])


@pytest.mark.parametrize("link", LINKS)
def test_every_link_layer_and_tunnel_gives_the_tables_of_its_packets(link, plain, tmp_path):
    number, wrap = LINKS[link]
    frames = [(time, wrap(n, packet)) for n, (time, packet) in enumerate(PACKETS)]
    path = written(tmp_path / "packets.pcap", frames, number)
    found = read([path])
    for table in ("flows", "packets", "events", "series"):
        assert found.table(table).equals(plain[1].table(table)), table
    assert found.manifest["imported"]["not_imported"] == {}
    assert found.flows.height == 2
    if shutil.which("tshark"):
        assert numbers(path) == numbers(plain[0])


def test_packets_of_an_aggregate_are_single_ones(plain, tmp_path):
    """IEEE 802.11-2020 §9.3.2.2: several packets in a frame, of lengths that need padding."""
    packets = [media(i, 160 * i, size=100 + i) for i in range(12)]
    frames = [(i, wlan(i, aggregate(packets[4 * i : 4 * i + 4]), quality=0x80)) for i in range(3)]
    path = written(tmp_path / "packets.pcap", frames, WIRELESS)
    found = read([path]).packets()
    assert found["ip_bytes"].to_list() == [140 + i for i in range(12)]
    assert found["received_s"].to_list() == [0.0] * 4 + [1.0] * 4 + [2.0] * 4
    if shutil.which("tshark"):
        told = [length for row in tshark(path, "-e", "ip.len") for length in row.split(",")]
        assert [int(length) for length in told] == found["ip_bytes"].to_list()


def test_what_is_not_read_is_counted_by_its_kind(tmp_path):
    speech = [media(i, 160 * i) for i in range(9)]
    more = {
        "repetitions of frames of IEEE 802.11": [wlan(8, llc(speech[8]), flags=0x09)],
        "encrypted frames of IEEE 802.11": [wlan(50, bytes(8) + speech[0], flags=0x41)] * 2,
        "frames of IEEE 802.11 without data": [
            wlan(51, b"", kind=0x48), wlan(52, b"", kind=0x80), bytes((0xD4, 0)) + bytes(8),
        ],
        "fragments of frames of IEEE 802.11": [
            wlan(53, llc(speech[0])[:90], flags=0x05), wlan(53, llc(speech[0])[90:], fragment=1),
        ],
        "frames of LLC without IP": [wlan(60, b"\x42\x42\x03" + bytes(20))],
        "frames of ARP": [wlan(61, SNAP + b"\x08\x06" + bytes(28))],
        "frames of EtherType 0x22f0": [wlan(62, SNAP + b"\x22\xf0" + bytes(28))],
        "packets of ICMP": [wlan(63, llc(ipv4(1, bytes(8))))],
        "packets of IP protocol 253": [wlan(64, llc(ipv4(253, bytes(8))))],
        "packets of GRE without IP": [wlan(65, llc(ipv4(47, gre(bytes(40), 0x880B))))],
        "packets cut off in their headers": [wlan(66, llc(speech[0][:24]))],
        "packets of MPLS without IP": [wlan(67, SNAP + b"\x88\x47" + labels(2, bytes(40)))],
        "packets of PPP without IP": [wlan(68, SNAP + b"\x88\x64" + pppoe(bytes(8), 0xC021))],
        "frames of PPPoE discovery": [wlan(69, SNAP + b"\x88\x63" + bytes(20))],
        "frames cut off before the IP header": [wlan(70, SNAP)],
    }  # fmt: skip
    sent = [wlan(i, llc(packet)) for i, packet in enumerate(speech)]
    left_out = [frame for frames in more.values() for frame in frames]
    damaged = [radiotap(wlan(90, llc(speech[1])), flags=0x50)]
    every = [*map(radiotap, [*sent, *left_out]), *damaged]
    path = written(tmp_path / "all.pcap", list(enumerate(every)), RADIOTAP)
    found = read([path])
    assert found.flows["received_packets"].to_list() == [9]
    expected = {name: len(frames) for name, frames in more.items()}
    told = dict(found.manifest["imported"]["not_imported"])
    (frames,) = found.manifest["imported"]["frames"]
    assert frames["captured"] == len(every)
    # Repetitions are duplicates, which are not left out.
    told["repetitions of frames of IEEE 802.11"] = frames["duplicate"]
    assert told == {**expected, "frames with a wrong check sequence": 1}
    if shutil.which("tshark"):
        for rule, name in {
            "wlan.fc.protected == 1": "encrypted frames of IEEE 802.11",
            "wlan.frag > 0 || wlan.fc.frag == 1": "fragments of frames of IEEE 802.11",
            "wlan.fc.retry == 1": "repetitions of frames of IEEE 802.11",
            "wlan.fc.type != 2 || wlan.fc.subtype == 4": "frames of IEEE 802.11 without data",
            "arp": "frames of ARP",
            "icmp": "packets of ICMP",
        }.items():
            assert len(tshark(path, "-Y", rule, "-e", "frame.number")) == told[name], name


def test_a_capture_of_nothing_that_is_read_says_what_it_holds(tmp_path):
    frames = [wlan(i, bytes(60), flags=0x41) for i in range(3)] + [wlan(9, b"", kind=0x80)]
    path = written(tmp_path / "locked.pcap", list(enumerate(frames)), WIRELESS)
    with pytest.raises(BadInputError) as error:
        read([path])
    assert str(error.value) == (
        f"{path}: holds no packets of RTP, UDP, TCP, SCTP or DCCP over IP: 3 encrypted frames of IEEE "
        "802.11, 1 frames of IEEE 802.11 without data"
    )


def test_a_frame_sent_again_counts_once_only_after_itself(tmp_path):
    """The Retry bit alone does not make a frame a copy: the capture may have missed the first."""
    packets = [media(i, 160 * i) for i in range(4)]
    frames = [
        wlan(1, llc(packets[0])), wlan(2, llc(packets[1]), flags=0x09),
        wlan(2, llc(packets[1]), flags=0x09), wlan(3, llc(packets[2])),
        wlan(3, llc(packets[3]), flags=0x09, quality=0),
    ]  # fmt: skip
    path = written(tmp_path / "again.pcap", list(enumerate(frames)), WIRELESS)
    found = read([path])
    assert found.flows["received_packets"].to_list() == [4]
    (frames,) = found.manifest["imported"]["frames"]
    assert (frames["data"], frames["duplicate"], frames["not_imported"]) == (4, 1, 0)


def test_fragments_of_a_tunnel_are_one_packet(tmp_path):
    inner = ipv4(17, struct.pack(">HHHH", 4000, 4002, 1408, 0) + bytes(1400), number=3)
    parts = [
        (0.0, ipv4(4, inner[:800], number=1, fragment=0x2000)),
        (0.1, ipv4(4, inner[800:], number=1, fragment=100)),
    ]
    path = written(tmp_path / "parts.pcap", parts, RAW)
    found = read([path])
    row = found.flows.row(0, named=True)
    assert (row["received_packets"], row["received_bytes"]) == (1, 1428)
    assert found.packets()["received_s"].to_list() == [0.0]  # from the first packet on
    assert found.manifest["imported"]["not_imported"] == {}
    assert found.manifest["imported"]["flows"]["udp-1"]["source"] == "10.0.0.1:4000"


def test_a_capture_in_frames_can_be_replayed(tmp_path):
    from talkspurt import run

    wrap = LINKS["radiotap, check sequence"][1]
    frames = [(time, wrap(n, packet)) for n, (time, packet) in enumerate(CALL)]
    paths = [written(tmp_path / "raw.pcap", CALL, RAW),
             written(tmp_path / "air.pcap", frames, RADIOTAP)]  # fmt: skip
    link = link_text("l", "a>b", "1Mbit/s", "1ms", 9)
    flows = (flow_text("f", "a>b", UDP, inline("replay", file=str(path))) for path in paths)
    rows = [
        run(scenario_text("replay", "2s", link, flow)).flows.drop("source", strict=False)
        for flow in flows
    ]
    assert rows[0].equals(rows[1])
    assert rows[0].select(pl.col("sent_packets")).item() == len(CALL)
