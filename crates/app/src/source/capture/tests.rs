//! Captures built by hand, byte by byte; tshark's results for a real one are compared in Python.

use super::*;

/// UDP over IPv4 over Ethernet with an RTP header and `payload` bytes, of which `kept` are captured.
fn packet(
    ssrc: u32,
    sequence: u16,
    timestamp: u32,
    second: u8,
    payload: usize,
    kept: usize,
) -> Vec<u8> {
    let mut bytes = vec![0; 12];
    bytes.extend([0x08, 0x00]);
    bytes.extend([0x45, 0]);
    bytes.extend((40 + payload as u16).to_be_bytes());
    bytes.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend([0x13, 0x8c, 0x13, 0x8c]);
    bytes.extend((20 + payload as u16).to_be_bytes());
    bytes.extend([0, 0, 0x80, second]);
    bytes.extend(sequence.to_be_bytes());
    bytes.extend(timestamp.to_be_bytes());
    bytes.extend(ssrc.to_be_bytes());
    bytes.extend(vec![0; kept]);
    bytes
}

fn pcap(packets: &[(u32, u32, Vec<u8>)]) -> Vec<u8> {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend(65_535_u32.to_le_bytes());
    file.extend(1_u32.to_le_bytes());
    for (seconds, micros, bytes) in packets {
        for word in [*seconds, *micros, bytes.len() as u32, bytes.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(bytes);
    }
    file
}

/// The same in a section of the other byte order, with times in 2⁻²⁰ seconds.
fn pcapng(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let block = |kind: u32, mut body: Vec<u8>| {
        body.resize(body.len().next_multiple_of(4), 0);
        let length = (body.len() as u32 + 12).to_be_bytes();
        [&kind.to_be_bytes()[..], &length[..], &body[..], &length[..]].concat()
    };
    let head = [0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255];
    let mut file = block(0x0a0d_0d0a, head.to_vec());
    let interface = [0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0x80 | 20, 0, 0, 0, 0, 0, 0, 0];
    file.extend(block(1, interface.to_vec()));
    // A block of unknown type.
    file.extend(block(0x0bad, vec![1, 2, 3]));
    for (ticks, bytes) in packets {
        let mut body = 0_u32.to_be_bytes().to_vec();
        body.extend(((ticks >> 32) as u32).to_be_bytes());
        body.extend((*ticks as u32).to_be_bytes());
        body.extend((bytes.len() as u32).to_be_bytes());
        body.extend((bytes.len() as u32).to_be_bytes());
        body.extend(bytes);
        file.extend(block(6, body));
    }
    file
}

fn expected(at: u64, captured: u64, ticks: u32, marker: bool, payload_bytes: u32) -> Packet {
    let (at, captured) = (Duration::from_nanos(at), Duration::from_nanos(captured));
    Packet { at, captured, ticks, marker, payload_type: 96, payload_bytes }
}

#[test]
fn times_sizes_markers_and_frames_are_read_from_both_kinds_of_file() {
    let packets = [
        // Truncated after the header; a frame of two packets and one of one.
        packet(7, 65_535, u32::MAX - 10, 96, 1000, 0),
        packet(7, 0, u32::MAX - 10, 96 | 0x80, 300, 300),
        packet(7, 1, 3589, 96 | 0x80, 20, 20),
    ];
    let [a, b, c] = packets;
    let file = pcap(&[(5, 999_000, a.clone()), (5, 999_500, b.clone()), (6, 39_000, c.clone())]);
    let of = |file: &[u8]| Capture::parse(file, None).expect("a capture");
    let frames = [
        expected(0, 0, 0, false, 1000),
        expected(500_000, 0, 0, true, 300),
        expected(40_000_000, 40_000_000, 3600, true, 20),
    ];
    assert_eq!(of(&file), Capture { ssrc: 7, packets: frames.to_vec() });
    // 2^20 ticks per second: 2^19 are half a second.
    let file = pcapng(&[(1 << 40, a), ((1 << 40) + (1 << 19), b), ((1 << 40) + (1 << 20), c)]);
    let frames = [
        expected(0, 0, 0, false, 1000),
        expected(500_000_000, 0, 0, true, 300),
        expected(1_000_000_000, 1_000_000_000, 3600, true, 20),
    ];
    assert_eq!(of(&file).packets, frames);
    assert_eq!((of(&file).bytes(), of(&file).longest(), of(&file).clock()), (1320, 1000, 90_000));
}

#[test]
fn one_source_is_chosen_by_name_or_because_it_is_alone() {
    let of = |ssrcs: &[u32], chosen| {
        let packets =
            (0..).zip(ssrcs).map(|(index, ssrc)| (index, 0, packet(*ssrc, 0, 0, 0, 160, 0)));
        Capture::parse(&pcap(&packets.collect::<Vec<_>>()), chosen)
            .map(|capture| (capture.ssrc, capture.packets.len(), capture.clock()))
    };
    assert_eq!(of(&[5, 5, 5], None), Ok((5, 3, 8000)));
    assert_eq!(of(&[5, 6, 5, 6, 5], Some(6)), Ok((6, 2, 8000)));
    // A source with a single packet is not RTP.
    assert_eq!(of(&[5, 5, 9], None), Ok((5, 2, 8000)));
    let several = of(&[5, 6, 5, 6], None).expect_err("two");
    assert_eq!(
        several,
        "holds RTP of several sources; name one as `ssrc`: 5 (2 packets), 6 (2 packets)"
    );
    let other = of(&[5, 5], Some(7)).expect_err("none");
    assert_eq!(other, "holds no RTP of the source 7; there are 5 (2 packets)");
}

#[test]
fn what_is_no_capture_of_rtp_is_told() {
    let of = |file: &[u8]| Capture::parse(file, None).expect_err("wrong");
    assert_eq!(of(b"RIFF"), "is neither pcap nor pcapng");
    assert_eq!(of(&pcap(&[])), "holds no RTP over UDP");
    // RTCP: a sender report.
    assert_eq!(of(&pcap(&[(0, 0, packet(5, 0, 0, 200, 16, 16))])), "holds no RTP over UDP");
    let whole = pcap(&[(0, 0, packet(5, 0, 0, 0, 160, 160)), (1, 0, packet(5, 1, 0, 0, 160, 160))]);
    assert_eq!(of(&whole[..whole.len() - 1]), "ends in the middle of a packet");
    let back = pcap(&[(1, 0, packet(5, 0, 0, 0, 9, 9)), (0, 0, packet(5, 1, 0, 0, 9, 9))]);
    assert_eq!(of(&back), "packet 2: goes back in time, behind packet 1");
    for cut in 0..whole.len() {
        let _ = Capture::parse(&whole[..cut], None);
    }
}
