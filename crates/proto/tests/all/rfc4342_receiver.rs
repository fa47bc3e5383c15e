//! RFC 4342 (CCID 3), clause by clause: its options as bytes (§8), and the receiving half alone with
//! handmade packets. Numbers are computed by hand.

use crate::rate_half::{ReceiverBench, SenderBench, at, ms, option, options};
use proptest::{collection, prelude::*};
use talkspurt_proto::dccp::Options;
use talkspurt_proto::dccp::ccid::Receiver as _;
use talkspurt_proto::dccp::ccid::Sender as _;
use talkspurt_proto::dccp::ccid3::options::{self as codec, LossInterval, LossIntervals};
use talkspurt_proto::dccp::options::Opt;
use talkspurt_proto::packet::Ecn;
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rate::{Config, Kind, equation};
use talkspurt_proto::time::Duration;

fn rfc_receiver() -> ReceiverBench {
    ReceiverBench::new(Profile::Rfc, Kind::Ccid3)
}

/// A receiver that has reported its first packet.
fn begun() -> ReceiverBench {
    let mut bench = rfc_receiver();
    bench.data(ms(0), 0, 0);
    bench.report(ms(0));
    bench
}

/// Data length of the first interval (RFC 5348 §6.3.1) for that many packets of 100 bytes in 200 ms.
fn first_interval(packets: f64) -> u8 {
    (1.0 / equation::loss_event_rate(100.0, 0.2, packets * 500.0)).round() as u8
}

/// True if an option of this type is present.
fn has(options: &Options, number: u8) -> bool {
    options.iter().any(|option| match option {
        Ok(Opt::ElapsedTime(_)) => number == 43,
        Ok(Opt::Ccid { kind, .. }) => number == kind,
        _ => false,
    })
}

#[test]
fn section_8_3_receive_rate_is_four_bytes_of_bytes_per_second() {
    let mut out = Options::default();
    // 20133 = 0x4ea5, the second Receive Rate of the kernel in the recording `ccid3-loss`.
    codec::push_receive_rate(&mut out, 20_133);
    assert_eq!(out.as_bytes(), [194, 6, 0, 0, 0x4e, 0xa5]);
    assert_eq!(codec::read(&out).unwrap().receive_rate, Some(20_133));
}

#[test]
fn section_8_5_loss_event_rate_is_its_inverse_rounded_up_and_all_ones_without_loss() {
    let bytes = |p: f64| {
        let mut out = Options::default();
        codec::push_loss_event_rate(&mut out, p);
        out.as_bytes().to_vec()
    };
    assert_eq!(bytes(0.01), [192, 6, 0, 0, 0, 100]);
    // 1 / 0.3 = 3.33
    assert_eq!(bytes(0.3), [192, 6, 0, 0, 0, 4]);
    assert_eq!(bytes(1.0), [192, 6, 0, 0, 0, 1]);
    assert_eq!(bytes(0.0), [192, 6, 0xff, 0xff, 0xff, 0xff]);
    // A rate whose inverse exceeds four bytes is not reported as no loss.
    assert_eq!(bytes(1e-12), [192, 6, 0xff, 0xff, 0xff, 0xfe]);
    let p = |inverse: [u8; 4]| {
        codec::read(&options(&[Opt::Ccid { kind: 192, value: &inverse }])).unwrap().loss_event_rate
    };
    assert_eq!(p([0, 0, 0, 25]), Some(0.04));
    assert_eq!(p([0xff; 4]), Some(0.0));
}

#[test]
fn section_8_6_loss_intervals_are_skip_length_and_nine_bytes_each() {
    let intervals = LossIntervals {
        skip_packets: 2,
        intervals: vec![
            LossInterval { lossless_packets: 10, lossy_packets: 1, data_packets: 9 },
            LossInterval { lossless_packets: 0x01_0203, lossy_packets: 0x0405, data_packets: 7 },
        ],
    };
    let mut out = Options::default();
    codec::push_loss_intervals(&mut out, 2, intervals.intervals.iter().copied());
    #[rustfmt::skip]
    let expected = [
        193, 21, 2,
        0, 0, 10, 0, 0, 1, 0, 0, 9,
        1, 2, 3, 0, 4, 5, 0, 0, 7,
    ];
    assert_eq!(out.as_bytes(), expected);
    assert_eq!(codec::read(&out).unwrap().intervals, Some(intervals));
}

#[test]
fn section_8_6_an_option_holds_28_intervals_and_numbers_stop_at_their_greatest() {
    let endless = LossInterval {
        lossless_packets: u64::MAX >> 1,
        lossy_packets: u64::MAX >> 1,
        data_packets: u64::MAX,
    };
    let mut out = Options::default();
    codec::push_loss_intervals(&mut out, 3, [endless; 30].into_iter());
    assert_eq!(out.as_bytes().len(), 255);
    assert_eq!(out.as_bytes()[3..12], [0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff]);
    let read = codec::read(&out).unwrap().intervals.unwrap();
    assert_eq!((read.skip_packets, read.intervals.len()), (3, 28));
}

#[test]
fn section_8_6_1_the_bit_before_loss_length_is_no_part_of_it() {
    let value = [0, 0, 0, 10, 0x80, 0, 1, 0, 0, 11];
    let read = codec::read(&options(&[Opt::Ccid { kind: 193, value: &value }])).unwrap();
    assert_eq!(read.intervals.unwrap().intervals[0].lossy_packets, 1);
}

#[test]
fn section_6_the_first_data_packet_is_acknowledged_and_then_each_round_trip_of_counts() {
    let mut bench = rfc_receiver();
    bench.data(ms(0), 0, 0);
    assert!(bench.report(ms(0)).is_some());
    for (seq, ccval) in [(1, 1), (2, 2), (3, 3)] {
        bench.data(ms(10 * seq), seq, ccval);
        assert!(bench.report(ms(10 * seq)).is_none(), "CCVal {ccval}");
    }
    bench.data(ms(40), 4, 4);
    assert!(bench.report(ms(40)).is_some());
    // Over the wrap of four bits: 4 → 14 in steps of five, then 2 is 18.
    bench.data(ms(50), 5, 7);
    assert!(bench.report(ms(50)).is_none());
    bench.data(ms(90), 6, 12);
    assert!(bench.report(ms(90)).is_some());
    bench.data(ms(100), 7, 15);
    assert!(bench.report(ms(100)).is_none());
    bench.data(ms(110), 8, 0);
    assert!(bench.report(ms(110)).is_some(), "12 + 4 = 16, which is 0");
}

#[test]
fn section_6_a_new_loss_event_is_reported_at_once() {
    let mut bench = begun();
    for seq in 2..=3 {
        bench.data(ms(seq), seq, 0);
        assert!(bench.report(ms(seq)).is_none());
    }
    // RFC 5348 §5.1: the third after the missing one makes it lost.
    bench.data(ms(4), 4, 0);
    assert!(bench.report(ms(4)).is_some());
}

#[test]
fn section_6_a_required_acknowledgement_tells_time_rate_and_intervals() {
    let mut bench = rfc_receiver();
    bench.set_rtt(ms(100));
    bench.data(ms(0), 0, 0);
    bench.report(ms(0));
    // Packets of 100 bytes each 20 ms, the last 5 ms ago: five in the last round trip (RFC 5348 §6.2).
    for seq in 1..=10 {
        bench.data(ms(20 * seq), seq, (seq / 2) as u8);
    }
    let report = bench.report(ms(205)).expect("due since count 4");
    // 500 units of 10 µs.
    assert_eq!(option(&report, 43), Some(vec![0x01, 0xf4]));
    assert_eq!(option(&report, 194), Some(5000_u32.to_be_bytes().to_vec()));
    // Nothing skipped; no loss: one interval of eleven packets, whose data length is zero until the
    // first loss event (§6.1.1).
    assert_eq!(option(&report, 193), Some(vec![0, 0, 0, 11, 0, 0, 0, 0, 0, 0]));
    assert_eq!(option(&report, 192), None, "RFC 4342 §8.4: off unless negotiated");
}

#[test]
fn section_8_4_loss_event_rate_is_sent_where_the_feature_says_so() {
    let mut bench = rfc_receiver();
    bench.receiver.agree(true, false);
    bench.data(ms(0), 0, 0);
    let report = bench.report(ms(0)).unwrap();
    assert_eq!(option(&report, 192), Some(vec![0xff; 4]));
    assert!(option(&report, 193).is_some());
}

#[test]
fn linux_tells_receive_rate_and_loss_event_rate_only() {
    let mut bench = ReceiverBench::new(Profile::Linux, Kind::Ccid3);
    bench.data(ms(0), 0, 0);
    // The first report of every kernel in the recordings: rate 0, no loss.
    assert_eq!(
        bench.report(ms(0)).unwrap().as_bytes(),
        [194, 6, 0, 0, 0, 0, 192, 6, 0xff, 0xff, 0xff, 0xff]
    );
}

/// Linux's omissions are separate parameters under any profile.
#[test]
fn section_6_what_a_report_bears_are_knobs() {
    let kinds = |elapsed_time, loss_intervals_option, profile, kind| {
        let mut config = Config::default();
        (config.elapsed_time, config.loss_intervals_option) = (elapsed_time, loss_intervals_option);
        let mut bench = ReceiverBench::with(&config, profile, kind);
        bench.data(ms(0), 0, 0);
        bench.report(ms(0));
        bench.data(ms(1), 1, 5);
        let report = bench.report(ms(2)).unwrap();
        [43, 194, 192, 193, 195].map(|number| has(&report, number))
    };
    for profile in [Profile::Rfc, Profile::Linux] {
        let (three, four) = (Kind::Ccid3, Kind::Ccid4);
        let full = kinds(Some(true), Some(true), profile, three);
        assert_eq!(full, [true, true, false, true, false], "{profile:?}");
        let full = kinds(Some(true), Some(true), profile, four);
        assert_eq!(full, [true, true, false, true, true], "{profile:?}");
        let bare = [false, true, true, false, false];
        assert_eq!(kinds(Some(false), Some(false), profile, three), bare, "{profile:?}");
        assert_eq!(kinds(Some(false), Some(false), profile, four), bare, "{profile:?}");
    }
    let open = |profile| kinds(None, None, profile, Kind::Ccid3);
    assert_ne!(open(Profile::Rfc), open(Profile::Linux));
}

#[test]
fn section_8_6_missing_packets_that_may_still_come_are_skipped() {
    let mut bench = rfc_receiver();
    for seq in [0, 1, 2] {
        bench.data(ms(seq), seq, 0);
    }
    bench.report(ms(2));
    bench.data(ms(50), 4, 4);
    let report = bench.report(ms(50)).unwrap();
    // Up to 4, the missing 3 and what came behind it are in no interval yet.
    assert_eq!(option(&report, 193), Some(vec![2, 0, 0, 3, 0, 0, 0, 0, 0, 0]));
}

#[test]
fn section_6_1_a_loss_interval_begins_with_the_loss() {
    let mut bench = begun();
    for seq in (1..=9).chain(11..=13) {
        bench.data(ms(seq), seq, 0);
    }
    let report = bench.report(ms(13)).unwrap();
    // Latest first: packet 10 lost and three after it; ten before it, without a lossy part. These are
    // worth thirteen packets in 200 ms (§6.1.1: it may be more than there were).
    #[rustfmt::skip]
    let expected = vec![
        0,
        0, 0, 3, 0, 0, 1, 0, 0, 4,
        0, 0, 10, 0, 0, 0, 0, 0, first_interval(13.0),
    ];
    assert_eq!(option(&report, 193), Some(expected));
}

#[test]
fn section_6_1_1_a_lost_packet_without_data_is_no_loss_where_ndp_counts_tell() {
    for (ndp, lost) in [(Some(1), false), (None, true)] {
        let mut bench = begun();
        bench.data_with(ms(2), 2, 0, |packet| packet.ndp = ndp);
        bench.data(ms(3), 3, 0);
        bench.data(ms(4), 4, 0);
        assert_eq!(bench.report(ms(4)).is_some(), lost, "{ndp:?}");
    }
}

#[test]
fn section_6_1_1_data_length_counts_data_packets() {
    let mut bench = rfc_receiver();
    bench.data(ms(0), 0, 0);
    bench.bare(ms(1), 1);
    bench.report(ms(1));
    // 2 is marked; of the four packets from it on two have data.
    bench.data_with(ms(2), 2, 0, |packet| (packet.ndp, packet.ecn) = (Some(1), Ecn::Ce));
    bench.bare(ms(3), 3);
    bench.bare(ms(4), 4);
    bench.data_with(ms(5), 5, 4, |packet| packet.ndp = Some(2));
    let report = bench.report(ms(5)).unwrap();
    assert_eq!(option(&report, 193).unwrap()[..10], [0, 0, 0, 3, 0, 0, 1, 0, 0, 2]);
}

#[test]
fn section_10_2_losses_more_than_four_counts_apart_are_two_events() {
    // Packets 5 and 15 are lost; the counter grows by one each `every` packets.
    let events = |every: u64| {
        let mut bench = rfc_receiver();
        for seq in (0..25).filter(|seq| ![5, 15].contains(seq)) {
            bench.data(ms(seq), seq, ((seq / every) % 16) as u8);
        }
        let report = bench.report(ms(25)).unwrap();
        let intervals = option(&report, 193).unwrap();
        (intervals.len() - 1) / 9 - 1
    };
    // Counts 1 and 3: one event. Counts 2 and 7: two.
    assert_eq!(events(4), 1);
    assert_eq!(events(2), 2);
}

#[test]
fn section_5_a_mark_counts_as_a_loss() {
    let mut bench = begun();
    bench.data_with(ms(1), 1, 0, |packet| packet.ecn = Ecn::Ce);
    let report = bench.report(ms(1)).expect("a new loss event");
    let expected = vec![0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, first_interval(2.0)];
    assert_eq!(option(&report, 193), Some(expected));
}

#[test]
fn section_10_3_the_receiver_learns_the_round_trip_from_the_counter() {
    let mut bench = rfc_receiver();
    // A count each 25 ms.
    for seq in 0..9 {
        bench.data(ms(25 * seq), seq, seq as u8);
    }
    assert_eq!(bench.receiver.machine().rtt(), Some(ms(100)));
    // A step of five may stand for any time of five quarters or more: at most 4/5 of it.
    let mut sparse = rfc_receiver();
    for seq in 0..3 {
        sparse.data(ms(500 * seq), seq, ((5 * seq) % 16) as u8);
    }
    assert_eq!(sparse.receiver.machine().rtt(), Some(ms(400)));
    // A gap gives no information: steps may have been lost in it.
    let mut holes = rfc_receiver();
    for seq in 0..9 {
        holes.data(ms(50 * seq), 2 * seq, (2 * seq) as u8);
    }
    assert_eq!(holes.receiver.machine().rtt(), None);
}

#[test]
fn a_receivers_round_trips_are_averaged_as_a_senders_are() {
    let mut bench = rfc_receiver();
    bench.set_rtt(ms(100));
    bench.set_rtt(ms(200));
    assert_eq!(bench.receiver.machine().rtt(), Some(ms(110)));
    // ns-2 (`dccp_tfrc.cc`, `sampleRTT`): the last one counts.
    let mut bench = ReceiverBench::new(Profile::Ns2, Kind::Ccid3);
    bench.set_rtt(ms(100));
    bench.set_rtt(ms(200));
    assert_eq!(bench.receiver.machine().rtt(), Some(ms(200)));
}

#[test]
fn losses_before_any_data_are_not_reported() {
    let mut bench = rfc_receiver();
    for seq in [0, 2, 3, 4] {
        bench.bare(ms(seq), seq);
        assert!(bench.report(ms(seq)).is_none());
    }
}

proptest! {
    /// Arbitrary input causes no panic, and reports stay within their bytes.
    #[test]
    fn any_packets_and_any_options(
        packets in collection::vec((0_u64..400, any::<u8>(), any::<bool>(), any::<Option<u64>>()), 0..300),
        options in collection::vec(any::<u8>(), 0..300),
        acks in collection::vec((0_u64..2000, any::<u32>()), 0..40),
    ) {
        let bytes = Options::from_bytes(&options);
        for kind in [Kind::Ccid3, Kind::Ccid4] {
            let mut receiver = ReceiverBench::new(Profile::Rfc, kind);
            for (place, (seq, ccval, data, ndp)) in packets.iter().enumerate() {
                let now = ms(place as u64);
                receiver.data_with(now, *seq, ccval & 15, |packet| {
                    packet.ndp = *ndp;
                    packet.options = &bytes;
                    packet.data_bytes = data.then_some(100);
                });
                if let Some(report) = receiver.report(now) {
                    prop_assert!(codec::read(&report).is_ok());
                }
            }
            let mut sender = SenderBench::new(Profile::Rfc, kind);
            let count = sender.fill(100);
            for (number, (seq, elapsed)) in acks.iter().enumerate() {
                let now = ms(count + number as u64);
                sender.elapsed = Some(Duration::from_micros(u64::from(*elapsed)));
                let mut list: Vec<_> = bytes.iter().filter_map(Result::ok).collect();
                list.push(Opt::Ccid { kind: 194, value: &[0, 0, 1, 0] });
                sender.ack(now, *seq, &list);
                sender.send(now, 100);
                sender.sender.permit(at(now));
            }
        }
    }
}

/// RFC 4342 §8.6.2, whose first interval has ten packets and a data length of 15: "might be less than,
/// equal to, or even greater than its sequence length" (§6.1.1). And §8.6.1: a further option goes on
/// where the first left off, unless it skips packets.
#[test]
fn section_8_6_2_the_example_is_read() {
    let first = [2, 0, 0, 10, 128, 0, 1, 0, 0, 10, 0, 0, 8, 0, 0, 5, 0, 0, 10];
    let second = [0, 0, 0, 8, 0, 0, 1, 0, 0, 8, 0, 0, 10, 128, 0, 0, 0, 0, 15];
    let whole = [&first[..], &second[1..]].concat();
    let read = |values: &[&[u8]]| {
        let list: Vec<_> = values.iter().map(|value| Opt::Ccid { kind: 193, value }).collect();
        codec::read(&options(&list)).expect("well formed").intervals.unwrap()
    };
    let lengths: Vec<_> = read(&[&whole])
        .intervals
        .iter()
        .map(|it| (it.lossless_packets, it.lossy_packets, it.data_packets))
        .collect();
    assert_eq!(lengths, [(10, 1, 10), (8, 5, 10), (8, 1, 8), (10, 0, 15)]);
    assert_eq!(read(&[&first, &second]), read(&[&whole]));
    let skips = [&[1], &second[1..]].concat();
    assert_eq!(read(&[&first, &skips]).intervals.len(), 2);
}

/// §8.6: numbers count back from the acknowledged packet, so that Skip Length and all intervals
/// reach from it to the first, even if a gap exceeds Skip Length.
#[test]
fn section_8_6_intervals_meet_over_a_long_gap() {
    let mut bench = begun();
    bench.data(ms(1), 1, 0);
    bench.data(ms(500), 1000, 5);
    let value = option(&bench.report(ms(500)).unwrap(), 193).unwrap();
    let read = codec::read(&options(&[Opt::Ccid { kind: 193, value: &value }])).unwrap();
    let told = read.intervals.unwrap();
    let spanned: u64 = told.intervals.iter().map(LossInterval::packets).sum();
    assert_eq!(u64::from(told.skip_packets) + spanned, 1001);
}
