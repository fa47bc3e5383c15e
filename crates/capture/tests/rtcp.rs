//! RTCP as the reader of captures sees it: packets that `proto` writes come back, any bytes are read without a
//! panic, the examples of RFC 3550 and RFC 3611, and the values that tshark prints for the same packets.

use std::process::Command;

use proptest::prelude::*;
use talkspurt_capture::round_trip::{RoundTrip, round_trips};
use talkspurt_capture::rtcp::{Report, parse, plain};
use talkspurt_proto::rtcp::feedback::{Feedback, Lost, Message};
use talkspurt_proto::rtcp::{Compound, NtpTime, ReportBlock, SenderInfo, TransportWide, wire};

/// A packet of one type, whose length follows from the words.
fn packet(count: u8, packet_type: u8, words: &[u32]) -> Vec<u8> {
    let mut bytes = vec![0x80 | count, packet_type];
    bytes.extend((words.len() as u16).to_be_bytes());
    bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    bytes
}

/// Nine numbers from 65,534 on: one received 1 ms after the origin, three lost; then, 10 ms later, one
/// received, one lost, one received 1 ms before that, one 100 ms after that, and one lost.
fn steps() -> Vec<u8> {
    let chunks = [0x2001_0003, (0xc000 | 1 << 12 | 2 << 8 | 2 << 6) << 16 | 4 << 8 | 40];
    packet(15, 205, &[1, 2, 0xfffe_0009, 0x0a07, chunks[0], chunks[1], 0xfffc_0190])
}

fn transport_wide(bytes: &[u8]) -> TransportWide {
    match parse(bytes).expect("complete").as_slice() {
        [Report::TransportWide { report, .. }] => report.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn transport_wide_feedback() {
    let read = transport_wide(&steps());
    assert_eq!((read.base, read.count), (65_534, 9));
    assert_eq!((read.reference_time, read.feedback_count), (10, 7));
    let received = [(65_534, Some(4)), (2, Some(40)), (4, Some(-4)), (5, Some(400))];
    assert_eq!(read.received, received);
    let at = |us: i64| Some(10 * 64_000 + us);
    let arrivals = [(65_534, at(1000)), (2, at(11_000)), (4, at(10_000)), (5, at(110_000))];
    assert_eq!(read.arrivals_us().collect::<Vec<_>>(), arrivals);

    // Without room for the times: received, at unknown times.
    let untimed = packet(15, 205, &[1, 2, 0x0007_0003, 0x0a07, 0xb800_0000]);
    assert_eq!(transport_wide(&untimed).received, [(7, None), (8, None), (9, None)]);
    // Fewer statuses than promised.
    let cut = parse(&packet(15, 205, &[1, 2, 0x0007_0040, 0x0a07, 0xb800_0000]));
    let cut = cut.expect_err("missing statuses");
    assert_eq!(cut.to_string(), "RTCP transport-wide feedback is cut short");
    assert_eq!(cut.read.len(), 1);
}

/// Figure 2 of RFC 3550 §6.4.1, captured at the sender; and the answer to a receiver's reference time.
#[test]
fn the_round_trip_of_rfc_3550_figure_2() {
    let words = [7, 0xb44d_b705, 0x2000_0000, 0, 0, 0];
    let (lsr, dlsr) = (0xb705_2000, 0x0005_4000);
    let reports = [
        packet(0, 200, &words),
        packet(1, 201, &[8, 7, 0, 0, 0, lsr, dlsr]),
        packet(0, 207, &[7, 0x0400_0002, words[1], words[2]]),
        packet(0, 207, &[8, 0x0500_0003, 7, lsr, dlsr]),
        packet(0, 200, &[9, words[1], words[2], 0, 0, 0]),
    ]
    .map(|bytes| parse(&bytes).expect("complete").remove(0));
    let [sender, receiver, reference, delay, other] = &reports;
    let (sent, answered) = (25_125_000_000, 36_500_000_000);
    let found = RoundTrip { time_ns: answered, source: 7, by: 8, seconds: 6.125 };
    assert_eq!(round_trips([(sent, sender), (answered, receiver)]), [found]);
    assert_eq!(round_trips([(sent, reference), (answered, delay)]), [found]);
    // An answer before the report, to another source, and sooner than the delay it names.
    assert_eq!(round_trips([(sent, receiver), (answered, sender)]), []);
    assert_eq!(round_trips([(sent, other), (answered, receiver)]), []);
    assert_eq!(round_trips([(answered - 5_000_000_000, sender), (answered, receiver)]), []);
}

/// The traces of RFC 3611 §4.1: 45 packets from 13,821 on of which two are lost, in both encodings; with a
/// third loss; and this thinned.
#[test]
fn loss_runs_of_rfc_3611() {
    let runs = |thinning: u32, chunks: [u32; 4]| {
        let words = [chunks[0] << 16 | chunks[1], chunks[2] << 16 | chunks[3]];
        let ranges = 13_821 << 16 | 13_866;
        let header = 0x0100_0004 | thinning << 16;
        let bytes = packet(0, 207, &[1, header, 2, ranges, words[0], words[1]]);
        match parse(&bytes).expect("complete").as_slice() {
            [Report::LossRuns { received, lost, .. }] => (*received, *lost),
            other => panic!("{other:?}"),
        }
    };
    let (all, run) = (0xffff, 0x4000);
    assert_eq!(runs(0, [all, 0x8000 | 0b111_1110_1011_1111, all, 0]), (43, 2));
    let second = 0x8000 | 0b010_1111_1111_1111;
    assert_eq!(runs(0, [run | 21, second, run | 9, 0]), (43, 2));
    assert_eq!(runs(0, [run | 21, second, 0x8000 | 0b111_1111_0100_0000, 0]), (42, 3));
    assert_eq!(runs(2, [0x8000 | 0b111_1101_1110_0000, 0, 0, 0]), (9, 2));
}

#[test]
fn damaged_packets_give_what_was_read() {
    let sender = packet(1, 200, &[7, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13]);
    let nack = packet(1, 205, &[7, 8, 0x0064_0005]);
    let both = [sender.clone(), nack.clone()].concat();
    let read = parse(&both).expect("complete");
    assert_eq!(read[1], Report::Nack { sender: 7, media: 8, lost: vec![100, 101, 103] });
    // Cut in the list of the NACK, and in the report block.
    let cut = parse(&both[..both.len() - 4]).expect_err("cut");
    assert_eq!((&cut.read[0], cut.read.len()), (&read[0], 2));
    let cut = parse(&both[..40]).expect_err("cut");
    let Report::Sender { ssrc: 7, info, blocks } = &cut.read[0] else { panic!("{cut:?}") };
    assert_eq!((info.octets, blocks.len()), (5, 0));
    assert_eq!(cut.to_string(), "RTCP packet is cut short");
    // A chunk without an end costs its names, not the feedback behind it.
    let named = packet(1, 202, &[7, 0x0103_6162]);
    let cut = parse(&[sender, named, nack].concat()).expect_err("malformed");
    assert_eq!((cut.to_string().as_str(), cut.read), ("RTCP SDES item is cut short", read));
    // Version 1, and padding longer than the packet.
    assert!(parse(&[0x40, 200, 0, 0]).expect_err("version").read.is_empty());
    assert!(parse(&[0xa0, 200, 0, 1, 0, 0, 0, 9]).expect_err("padding").read.is_empty());
}

/// Congestion control feedback on a packet received with CE half a second before the report, on a lost one, and
/// on one received at an unknown time; transport-wide feedback; and a report block.
#[test]
fn as_json() {
    let json = |bytes: &[u8]| serde_json::to_value(parse(bytes).expect("complete")).expect("data");
    let feedback = packet(11, 205, &[7, 8, 0xffff_0003, 0xe200_0000, 0x9fff_0000, 0xaabb]);
    let metrics = serde_json::json!([[3, 512], null, [0, 8191]]);
    let stream = serde_json::json!({ "ssrc": 8, "begin": 65_535, "metrics": metrics });
    let kind = "congestion_control";
    let expected = serde_json::json!({
        "kind": kind, "sender": 7, "timestamp": 0xaabb, "streams": [stream]
    });
    assert_eq!(json(&feedback), serde_json::json!([expected]));
    let expected = serde_json::json!({
        "kind": "transport_wide", "sender": 1, "media": 2, "base": 65_534, "count": 9,
        "reference_time": 10, "feedback_count": 7,
        "received": [[65_534, 4], [2, 40], [4, -4], [5, 400]]
    });
    assert_eq!(json(&steps()), serde_json::json!([expected]));
    let receiver = json(&packet(1, 201, &[8, 7, 0x4000_0002, 3, 4, 5, 6]));
    let block = serde_json::json!({
        "ssrc": 7, "fraction_lost": 64, "cumulative_lost": 2, "highest_sequence": 3, "jitter": 4,
        "last_sr": 5, "delay_since_last_sr": 6
    });
    assert_eq!(receiver, serde_json::json!([{ "kind": "receiver", "ssrc": 8, "blocks": [block] }]));
}

#[test]
fn lengths_of_plain_packets_add_up() {
    let (receiver, feedback) = (packet(0, 201, &[7]), packet(1, 206, &[7, 8]));
    assert!(plain(&receiver) && plain(&feedback) && plain(&[&*receiver, &*feedback].concat()));
    assert!(!plain(&[]) && !plain(&receiver[..6]) && !plain(&packet(0, 96, &[7])));
    // SRTCP: behind one packet the index and a tag; behind several an encrypted header.
    assert!(!plain(&[&*receiver, &[0x80, 0, 0, 5].repeat(4)].concat()));
    assert!(!plain(&[&*receiver, &[0x5a, 0xa5, 0, 1, 1, 2, 3, 4], &[0x80, 0, 0, 5]].concat()));
}

fn blocks() -> impl Strategy<Value = Vec<ReportBlock>> {
    let block = (any::<[u32; 5]>(), any::<u8>(), -(1 << 23)..1 << 23);
    let block = block.prop_map(|(words, fraction_lost, cumulative_lost)| ReportBlock {
        ssrc: words[0],
        fraction_lost,
        cumulative_lost,
        highest_sequence: words[1],
        jitter: words[2],
        last_sr: words[3],
        delay_since_last_sr: words[4],
    });
    prop::collection::vec(block, 0..32)
}

proptest! {
    /// Bytes without form, and behind the header and the SSRC of a packet of each type.
    #[test]
    fn any_bytes_are_read(
        packet_type in 200_u8..212,
        first: u8,
        block_type in 0_u8..9,
        mut content in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let _ = parse(&content);
        if let Some(byte) = content.first_mut() {
            *byte = block_type;
        }
        let [high, low] = (content.len() as u16 / 4 + 1).to_be_bytes();
        let bytes = [&[0x80 | first & 0x3f, packet_type, high, low, 0, 0, 0, 7], &*content].concat();
        let reports = parse(&bytes).unwrap_or_else(|cut| cut.read);
        prop_assert!(round_trips((0..).zip(&reports)).len() <= bytes.len());
        prop_assert!(serde_json::to_string(&reports).is_ok());
    }

    #[test]
    fn written_packets_come_back(
        ssrc: u32,
        info: Option<[u32; 5]>,
        blocks in blocks(),
        cname in "[a-z@.]{1,40}",
        lost in prop::collection::btree_set(0_u16..400, 1..40),
        bye: bool,
    ) {
        let sender = info.map(|words| SenderInfo {
            ntp: NtpTime(u64::from(words[0]) << 32 | u64::from(words[1])),
            rtp_timestamp: words[2],
            packets: words[3],
            octets: words[4],
        });
        let lost: Vec<u16> = lost.into_iter().collect();
        let message = Message::Nack { media: 5, lost: Lost::list(&lost) };
        let feedback = vec![Feedback { sender: ssrc, message }];
        let (reports, name) = (blocks.clone(), cname.clone());
        let compound = Compound { ssrc, sender, reports, cname, feedback, bye, reduced: false };
        let mut bytes = Vec::new();
        wire::emit(&compound, &mut bytes);
        prop_assert!(plain(&bytes));
        let mut expected = vec![
            match sender {
                Some(info) => Report::Sender { ssrc, info, blocks },
                None => Report::Receiver { ssrc, blocks },
            },
            Report::Cname { ssrc, name },
            Report::Nack { sender: ssrc, media: 5, lost },
        ];
        expected.extend(bye.then(|| Report::Bye { ssrcs: vec![ssrc], reason: None }));
        prop_assert_eq!(parse(&bytes), Ok(expected));
    }

    /// Statuses in runs, and in vectors of one bit and of two bits.
    #[test]
    fn transport_wide_statuses_come_back(
        base: u16,
        chunks in prop::collection::vec((0..3, prop::collection::vec(0_u16..3, 14)), 1..12),
        spare in 0..7_usize,
        delta: i16,
    ) {
        let (mut symbols, mut words) = (Vec::new(), Vec::new());
        for (kind, list) in chunks {
            match kind {
                0 => {
                    symbols.extend([list[0]; 9]);
                    words.push(list[0] << 13 | 9);
                }
                1 => {
                    let bits = list.iter().map(|symbol| symbol & 1);
                    symbols.extend(bits.clone());
                    words.push(bits.fold(2, |chunk, bit| chunk << 1 | bit));
                }
                _ => {
                    symbols.extend(&list[..7]);
                    words.push(list[..7].iter().fold(3, |chunk, pair| chunk << 2 | pair));
                }
            }
        }
        symbols.truncate(symbols.len() - spare);
        let count = symbols.len() as u32;
        let mut bytes = packet(15, 205, &[1, 2, u32::from(base) << 16 | count, 0x500]);
        bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        let mut received = Vec::new();
        for (place, symbol) in (0_u16..).zip(&symbols) {
            let step = match symbol {
                0 => continue,
                1 => {
                    bytes.push(delta as u8);
                    i16::from(delta as u8)
                }
                _ => {
                    bytes.extend(delta.to_be_bytes());
                    delta
                }
            };
            received.push((base.wrapping_add(place), Some(step)));
        }
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let words = bytes.len() as u16 / 4 - 1;
        bytes[2..4].copy_from_slice(&words.to_be_bytes());
        prop_assert_eq!(transport_wide(&bytes).received, received);
    }
}

/// Values of a field that tshark prints in the one packet of a capture; none if it is not installed.
fn dissected(payload: &[u8], names: &[&str]) -> Option<Vec<String>> {
    if Command::new("tshark").arg("--version").output().is_err() {
        let required = std::env::var_os("TALKSPURT_REQUIRE_TSHARK").is_some();
        assert!(!required, "TALKSPURT_REQUIRE_TSHARK is set and tshark is not installed");
        println!("skipped: tshark not installed");
        return None;
    }
    let length = payload.len() as u32;
    // pcap of raw IP; a record; IPv4 without options; UDP without a checksum.
    let words = [
        &[0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 0xffff, 101, 0, 0, 28 + length, 28 + length][..],
        &[0x4500_0000 | (28 + length), 0, 0x4011_0000, 0x0a00_0001, 0x0a00_0002],
        &[5005 << 16 | 5007, (8 + length) << 16],
    ]
    .concat();
    let file =
        [words.iter().flat_map(|word| word.to_be_bytes()).collect(), payload.to_vec()].concat();
    let name = format!("rtcp-{}.pcap", names[0]);
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, file).expect("a file");
    let mut command = Command::new("tshark");
    command.args(["-n", "-d", "udp.port==5005,rtcp", "-T", "fields"]).arg("-r").arg(&path);
    let output = command.args(names.iter().flat_map(|name| ["-e", *name])).output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    Some(text.trim_end_matches('\n').split('\t').map(str::to_owned).collect())
}

/// A packet, the fields of tshark below `rtcp.`, and the same values of ours.
fn agrees(bytes: &[u8], names: &[&str], ours: impl Fn(&Report) -> Option<Vec<i64>>) {
    let names: Vec<_> = names.iter().map(|name| format!("rtcp.{name}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let Some(theirs) = dissected(bytes, &names) else { return };
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).expect("digits"),
        None => text.parse::<f64>().unwrap_or_else(|_| panic!("{text:?} of {theirs:?}")) as i64,
    };
    let theirs: Vec<_> = theirs.iter().flat_map(|list| list.split(',')).map(number).collect();
    let read = parse(bytes).expect("complete");
    let [report] = read.as_slice() else { panic!("{read:?}") };
    assert_eq!(ours(report), Some(theirs), "{report:?}");
}

#[test]
fn reports_as_tshark_reads_them() {
    let sender = [7, 0xb44d_b705, 0x2000_0000, 3, 4, 5, 8, 0x19ff_fffe, 10, 11, 12, 13];
    let names = [
        "timestamp.ntp.msw",
        "timestamp.ntp.lsw",
        "timestamp.rtp",
        "sender.packetcount",
        "sender.octetcount",
        "ssrc.identifier",
        "ssrc.fraction",
        "ssrc.cum_nr",
        "ssrc.ext_high",
        "ssrc.jitter",
        "ssrc.lsr",
        "ssrc.dlsr",
    ];
    agrees(&packet(1, 200, &sender), &names, |report| {
        let Report::Sender { info, blocks, .. } = report else { return None };
        let (high, low) = ((info.ntp.0 >> 32) as u32, info.ntp.0 as u32);
        let ours = [high, low, info.rtp_timestamp, info.packets, info.octets, blocks[0].ssrc];
        let block = &blocks[0];
        let rest = [block.highest_sequence, block.jitter, block.last_sr, block.delay_since_last_sr];
        let lost = [block.fraction_lost.into(), block.cumulative_lost.into()];
        let (ours, rest) = (ours.map(i64::from), rest.map(i64::from));
        Some([&ours[..], &lost, &rest].concat())
    });

    let voip = [
        1,
        0x0700_0008,
        2,
        0x0c0d_5410,
        0x0078_0208,
        0x0019_0032,
        0xec9c_2d10,
        0x5d5a_0a14,
        0x3300_003c,
        0x0050_00c8,
    ];
    let names = [
        "burstdensity",
        "gapdensity",
        "burstduration",
        "gapduration",
        "rtdelay",
        "esdelay",
        "signallevel",
        "noiselevel",
        "rerl",
        "gmin",
        "rfactor",
        "extrfactor",
        "moslq",
        "moscq",
        "jbnominal",
        "jbmax",
        "jbabsmax",
    ]
    .map(|name| format!("xr.voipmetrics.{name}"));
    agrees(&packet(0, 207, &voip), &names.each_ref().map(String::as_str), |report| {
        let Report::Voip(one) = report else { return None };
        let densities = [one.burst_density, one.gap_density].map(i64::from);
        let times = [one.burst_ms, one.gap_ms, one.round_trip_ms, one.end_system_ms].map(i64::from);
        let levels = [one.signal_dbm0?, one.noise_dbm0?].map(i64::from);
        let bytes = [one.echo_return_loss_db?, one.gap_min, one.r_factor?, one.external_r_factor?];
        let scores = [one.mos_lq? / 10, one.mos_cq? / 10].map(i64::from);
        let buffer = [one.buffer_nominal_ms, one.buffer_maximum_ms, one.buffer_absolute_ms];
        let (bytes, buffer) = (bytes.map(i64::from), buffer.map(i64::from));
        Some([&densities[..], &times, &levels, &bytes, &scores, &buffer].concat())
    });

    let summary = [1, 0x06e8_0009, 2, 0x0064_00c8, 3, 4, 5, 6, 7, 8, 0x3c40_3e01];
    let names = [
        "xr.beginseq",
        "xr.endseq",
        "xr.stats.lost",
        "xr.stats.dups",
        "xr.stats.minjitter",
        "xr.stats.maxjitter",
        "xr.stats.meanjitter",
        "xr.stats.devjitter",
        "xr.stats.minttl",
        "xr.stats.maxttl",
        "xr.stats.meanttl",
        "xr.stats.devttl",
    ];
    agrees(&packet(0, 207, &summary), &names, |report| {
        let Report::Statistics(one) = report else { return None };
        let ranges = [one.begin.into(), one.end.into(), one.lost?.into(), one.duplicates?.into()];
        let (jitter, hops) = (one.jitter?.map(i64::from), one.hop_limit?.map(i64::from));
        Some([ranges, jitter, hops].concat())
    });
}

#[test]
fn feedback_as_tshark_reads_it() {
    let names = ["baseseq", "statuscount", "reftime", "pktcount", "recv_delta"]
        .map(|name| format!("rtpfb.transportcc.{name}"));
    agrees(&steps(), &names.each_ref().map(String::as_str), |report| {
        let Report::TransportWide { report: one, .. } = report else { return None };
        let [base, count] = [one.base, one.count].map(i64::from);
        let head = [base, count, one.reference_time.into(), one.feedback_count.into()];
        // tshark prints times without a sign.
        let deltas = one.received.iter().map(|(_, delta)| i64::from(delta.unwrap_or(0) as u16));
        Some(head.into_iter().chain(deltas).collect())
    });

    let remb = u32::from_be_bytes(*b"REMB");
    let bytes = packet(15, 206, &[7, 0, remb, 2 << 24 | 3 << 18 | 0x1_2345, 8, 9]);
    let names =
        ["number_ssrcs", "br_exp", "br_mantissa", "ssrc"].map(|one| format!("psfb.remb.fci.{one}"));
    agrees(&bytes, &names.each_ref().map(String::as_str), |report| {
        let Report::MaximumRate { bps, ssrcs, .. } = report else { return None };
        let head = [ssrcs.len() as i64, 3, *bps as i64 >> 3];
        Some(head.into_iter().chain(ssrcs.iter().map(|ssrc| i64::from(*ssrc))).collect())
    });

    let bytes = packet(4, 206, &[7, 0, 8, 0x2a00_0000]);
    agrees(&bytes, &["psfb.fir.fci.ssrc", "psfb.fir.fci.csn"], |report| {
        let Report::FullIntra { requests, .. } = report else { return None };
        Some(vec![requests[0].ssrc.into(), requests[0].sequence.into()])
    });

    let bytes = packet(3, 205, &[7, 0, 8, 5 << 26 | 0x1_0001 << 9 | 40]);
    let names =
        ["ssrc", "exp", "mantissa", "measuredoverhead"].map(|one| format!("rtpfb.tmmbr.fci.{one}"));
    agrees(&bytes, &names.each_ref().map(String::as_str), |report| {
        let Report::RateRequest { limits, .. } = report else { return None };
        Some(vec![limits[0].ssrc.into(), 5, limits[0].bps as i64 >> 5, limits[0].overhead.into()])
    });
}
